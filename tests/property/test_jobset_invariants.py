"""JobSets under arbitrary shapes, programs, disturbances and faults: what they promise holds at every commit, and they come to the right end."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kubemini.api.resources import JOB_SETS, JOBS, NODES, PODS, SERVICES
from kubemini.api.trees import Tree
from kubemini.machinery.errors import NotFound
from kubemini.sim.cluster import SimCluster, simulate
from kubemini.sim.faults import PERFECT, Faults
from kubemini.testing.invariants import Checker
from kubemini.testing.invariants.job_exact import Excuses
from kubemini.testing.invariants.jobset import condition, jobset_invariants
from kubemini.testing.invariants.jobset_exact import exact_jobset_invariants

CONTROLLERS = ("namespaces", "service-accounts", "garbage-collector", "job", "nodes", "kubelet", "jobset")
"""What a JobSet needs to live; pods are pinned to a node."""
PROCESSES = ("kube-controller-manager", "jobset-controller-manager")
ROUGH = Faults(watch_delay=0.5, request_delay=0.05, lost_before=0.03, lost_after=0.03, conflict=0.05)
HORIZON = 7200.0


@dataclass
class Role:
    """One replicated job and what its pods do."""

    replicas: int = 1
    pods: int = 1
    run_for: int | None = 10
    fail_at: tuple[int, ...] = ()
    """Restart attempts in which its pods fail."""
    depends_on: str = ""
    """Ready or Complete: waits for the role before."""


@dataclass
class Step:
    """Something that happens to a JobSet after some seconds."""

    after: int
    what: str
    which: int = 0


@dataclass
class Life:
    """A whole run."""

    roles: list[Role]
    max_restarts: int | None = None
    strategy: str = "Recreate"
    in_order: bool = False
    suspended: bool = False
    operator: str = "All"
    steps: list[Step] = field(default_factory=list)
    seed: int = 0
    faults: Faults = PERFECT

    def jobset(self) -> Tree:
        """Return the JobSet."""
        roles = []
        for index, role in enumerate(self.roles):
            annotations = {} if role.run_for is None else {"kubemini.dev/run-for": f"{role.run_for}s"}
            if role.fail_at:
                annotations["kubemini.dev/fail-at"] = ",".join(map(str, role.fail_at))
            container = {"name": "main", "image": "pause"}
            job = {
                "parallelism": role.pods,
                "completions": role.pods,
                "backoffLimit": 0,
                "template": {
                    "metadata": {"annotations": annotations},
                    "spec": {"nodeName": "n-0", "restartPolicy": "Never", "containers": [container]},
                },
            }
            tree: Tree = {"name": f"r{index}", "replicas": role.replicas, "template": {"spec": job}}
            if role.depends_on and index and not self.in_order:
                tree["dependsOn"] = [{"name": f"r{index - 1}", "status": role.depends_on}]
            roles.append(tree)
        spec: Tree = {"replicatedJobs": roles, "suspend": self.suspended, "successPolicy": {"operator": self.operator}}
        if self.max_restarts is not None:
            spec["failurePolicy"] = {"maxRestarts": self.max_restarts, "restartStrategy": self.strategy}
        if self.in_order:
            spec["startupPolicy"] = {"startupPolicyOrder": "InOrder"}
        return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "js", "namespace": "default"}, "spec": spec}


ROLES = st.builds(
    Role,
    replicas=st.integers(0, 3),
    pods=st.integers(1, 2),
    run_for=st.sampled_from([0, 3, 10, 10]),
    fail_at=st.sampled_from([(), (), (0,), (1,), (0, 1, 2, 3)]),
    depends_on=st.sampled_from(["", "", "Ready", "Complete"]),
)
STEPS = st.builds(
    Step,
    after=st.integers(0, 12),
    what=st.sampled_from(
        ["suspend", "resume", "delete job", "kill pod", "delete pod", "delete service", "restart controllers", "restart jobset", "lose node"]
    ),
    which=st.integers(0, 7),
)
LIVES = st.builds(
    Life,
    roles=st.lists(ROLES, min_size=1, max_size=3),
    max_restarts=st.none() | st.integers(0, 2),
    strategy=st.sampled_from(["Recreate", "BlockingRecreate"]),
    in_order=st.booleans(),
    suspended=st.booleans(),
    operator=st.sampled_from(["All", "All", "Any"]),
    steps=st.lists(STEPS, max_size=5),
    seed=st.integers(0, 2**32),
    faults=st.sampled_from([PERFECT, ROUGH]),
)


async def node(cluster: SimCluster) -> None:
    """Make the one node."""
    room = {"cpu": "64", "memory": "64Gi", "pods": "200"}
    await cluster.client.create(
        NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n-0"}, "spec": {}, "status": {"capacity": room, "allocatable": room}}
    )


async def take(cluster: SimCluster, step: Step) -> None:
    """Do one thing; what it needs may be gone."""

    async def chosen(resource: Any) -> Tree | None:
        found = await cluster.client.list(resource, "default")
        return found[step.which % len(found)] if found else None

    await cluster.env.sleep(step.after)
    match step.what:
        case "suspend" | "resume":
            await cluster.client.patch(JOB_SETS, "js", {"spec": {"suspend": step.what == "suspend"}}, namespace="default")
        case "delete job":
            if (job := await chosen(JOBS)) is not None:
                await cluster.client.delete(JOBS, job["metadata"]["name"], namespace="default", propagation="Background")
        case "kill pod":
            if (pod := await chosen(PODS)) is not None:
                await cluster.fail_pod("default", pod["metadata"]["name"])
        case "delete pod":
            if (pod := await chosen(PODS)) is not None:
                await cluster.delete_pod("default", pod["metadata"]["name"])
        case "delete service":
            await cluster.client.delete(SERVICES, "js", namespace="default")
        case "lose node":
            await cluster.lose_node("n-0")
            await cluster.env.sleep(400)
            await cluster.recover_node("n-0")
        case "restart jobset":
            await cluster.restart("jobset-controller-manager")
        case _:
            for process in PROCESSES:
                await cluster.restart(process)


async def live(cluster: SimCluster, life: Life) -> Tree:
    """Play a life to its end under the checker, and return the JobSet."""
    checker = Checker(cluster.store, [*jobset_invariants(), *exact_jobset_invariants(Excuses())])
    await node(cluster)
    await cluster.client.create(JOB_SETS, life.jobset())
    for step in life.steps:
        with suppress(NotFound):
            await take(cluster, step)
    await cluster.client.patch(JOB_SETS, "js", {"spec": {"suspend": False}}, namespace="default")
    assert await cluster.settle(HORIZON), "the cluster never comes to rest"
    checker.at_rest()
    return await cluster.client.get(JOB_SETS, "js", "default")


def play(life: Life) -> Tree:
    """Run a life on a fresh cluster."""
    return simulate(lambda cluster: live(cluster, life), seed=life.seed, faults=life.faults, controllers=CONTROLLERS)


@given(LIVES)
@settings(max_examples=60)
def test_promises_hold_whatever_happens(life: Life) -> None:
    """Whatever happens to a JobSet on the way, every promise holds, and once it is left alone it ends or runs."""
    js = play(life)
    total = sum(role.replicas for role in life.roles)
    if total:
        assert "True" in (condition(js, "Completed"), condition(js, "Failed"))
    assert not js["status"].get("restarts") or life.max_restarts


@given(LIVES)
@settings(max_examples=20)
def test_undisturbed_ends(life: Life) -> None:
    """Left alone, a JobSet whose pods all succeed in some allowed attempt completes after exactly the failing ones; otherwise it fails at the limit."""
    life.steps = []
    for role in life.roles:
        # all roles of an attempt end at the same time, so that which attempts fail is not up to the order of events
        role.run_for, role.depends_on = 10, ""
        role.replicas = max(role.replicas, 1)
    life.in_order, life.operator = False, "All"
    js = play(life)
    attempts = range((life.max_restarts or 0) + 1)
    good = next((attempt for attempt in attempts if not any(attempt in role.fail_at for role in life.roles)), None)
    if good is None:
        assert condition(js, "Failed") == "True"
        assert js["status"]["restarts"] == (life.max_restarts or 0)
        reason = next(each["reason"] for each in js["status"]["conditions"] if each["type"] == "Failed")
        assert reason == ("FailedJobs" if life.max_restarts is None else "ReachedMaxRestarts")
    else:
        assert condition(js, "Completed") == "True"
        assert js["status"]["restarts"] == js["status"].get("restartsCountTowardsMax", 0) == good
        succeeded = {entry["name"]: entry["succeeded"] for entry in js["status"]["replicatedJobsStatus"]}
        assert succeeded == {f"r{index}": role.replicas for index, role in enumerate(life.roles)}


@given(st.integers(0, 2**32), st.integers(0, 6), st.sampled_from([PERFECT, ROUGH]), st.booleans())
@settings(max_examples=15)
def test_ttl_leaves_nothing(seed: int, seconds: int, faults: Faults, fails: bool) -> None:
    """After its time a finished JobSet is gone with all that it had, whether it completed or failed."""
    life = Life([Role(replicas=2, pods=2, fail_at=(0,) if fails else ())], seed=seed, faults=faults)

    async def scenario(cluster: SimCluster) -> None:
        checker = Checker(cluster.store, [*jobset_invariants(), *exact_jobset_invariants(Excuses())])
        await node(cluster)
        js = life.jobset()
        await cluster.client.create(JOB_SETS, {**js, "spec": {**js["spec"], "ttlSecondsAfterFinished": seconds}})
        assert await cluster.settle(HORIZON)
        checker.at_rest()
        for resource in (JOB_SETS, JOBS, PODS, SERVICES):
            assert [each["metadata"]["name"] for each in await cluster.client.list(resource) if each["metadata"]["name"] != "kubernetes"] == []

    simulate(scenario, seed=seed, faults=faults, controllers=CONTROLLERS)


@given(st.integers(0, 2**32), st.integers(0, 20))
@settings(max_examples=15)
def test_recreated_under_the_same_name(seed: int, after: int) -> None:
    """A JobSet that is deleted and made again at once never counts the Jobs of its predecessor, and runs to its end."""
    life = Life([Role(replicas=2), Role()], seed=seed, faults=ROUGH)

    async def scenario(cluster: SimCluster) -> None:
        checker = Checker(cluster.store, jobset_invariants())
        await node(cluster)
        await cluster.client.create(JOB_SETS, life.jobset())
        await cluster.env.sleep(after)
        await cluster.client.delete(JOB_SETS, "js", namespace="default", propagation="Background")
        await cluster.client.create(JOB_SETS, life.jobset())
        assert await cluster.settle(HORIZON)
        checker.at_rest()
        js = await cluster.client.get(JOB_SETS, "js", "default")
        assert condition(js, "Completed") == "True"
        assert {job["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-uid"] for job in await cluster.client.list(JOBS)} == {js["metadata"]["uid"]}

    simulate(scenario, seed=seed, faults=ROUGH, controllers=CONTROLLERS)


RACK = "example.com/rack"
EXCLUSIVE = {"alpha.jobset.sigs.k8s.io/exclusive-topology": RACK}


@given(
    racks=st.integers(1, 3),
    sizes=st.lists(st.tuples(st.integers(1, 2), st.integers(1, 3)), min_size=1, max_size=2),
    steps=st.lists(
        st.builds(Step, after=st.integers(0, 6), what=st.sampled_from(["kill pod", "delete pod", "delete job"]), which=st.integers(0, 9)), max_size=4
    ),
    retries=st.sampled_from([0, 2]),
    seed=st.integers(0, 2**32),
    faults=st.sampled_from([PERFECT, Faults(watch_delay=0.3, request_delay=0.02, conflict=0.05)]),
)
@settings(max_examples=25)
def test_exclusive_placement_holds(racks: int, sizes: list[tuple[int, int]], steps: list[Step], retries: int, seed: int, faults: Faults) -> None:
    """Whatever happens to pods, leaders included, no rack ends up with two Jobs and no Job in two racks; with racks enough everybody runs."""

    async def scenario(cluster: SimCluster) -> None:
        checker = Checker(cluster.store, jobset_invariants())
        room = {"cpu": "64", "memory": "64Gi", "pods": "100"}

        async def rack(number: int) -> None:
            for index in range(2):
                meta = {"name": f"n-{number}-{index}", "labels": {RACK: f"r{number}"}}
                status = {"capacity": room, "allocatable": room}
                await cluster.client.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": {}, "status": status})

        for number in range(racks):
            await rack(number)
        for number, (replicas, pods) in enumerate(sizes):
            template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "pause"}]}}
            job = {"parallelism": pods, "completions": pods, "backoffLimit": retries, "template": template}
            body = {"replicatedJobs": [{"name": "w", "replicas": replicas, "template": {"spec": job}}], "failurePolicy": {"maxRestarts": 9}}
            meta = {"name": f"js{number}", "namespace": "default", "annotations": EXCLUSIVE}
            await cluster.client.create(JOB_SETS, {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": meta, "spec": body})
        for step in steps:
            with suppress(NotFound):
                await take(cluster, step)
        wanted = sum(replicas for replicas, _ in sizes)
        for number in range(racks, wanted):
            await rack(number)
        assert await cluster.settle(HORIZON), "the cluster never comes to rest"
        checker.at_rest()
        running = [pod for pod in await cluster.client.list(PODS) if pod["status"]["phase"] == "Running"]
        assert len(running) == sum(replicas * pods for replicas, pods in sizes)

    simulate(scenario, seed=seed, faults=faults, controllers=(*CONTROLLERS, "scheduler"))
