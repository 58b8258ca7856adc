"""Lives of one JobSet: any roles and policies, pods that exit as drawn, things done to it on the way; then it is left alone, ends or runs, and goes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import strategies as st

from kubemini.api.resources import JOB_SETS, JOBS, NODES, PODS, SERVICES, Resource
from kubemini.api.trees import Tree
from kubemini.machinery.errors import ApiStatus
from kubemini.sim.cluster import SimCluster
from kubemini.sim.faults import PERFECT, Faults
from kubemini.testing.invariants import Checker
from kubemini.testing.invariants.gangs import gang_invariants
from kubemini.testing.invariants.job import job_invariants
from kubemini.testing.invariants.job_exact import Excuses
from kubemini.testing.invariants.jobset import ended, jobset_invariants
from kubemini.testing.invariants.jobset_exact import exact_jobset_invariants
from tests.quality.searching import Scenario, play

CONTROLLERS = ("namespaces", "service-accounts", "garbage-collector", "job", "nodes", "scheduler", "kubelet", "jobset")
PROCESSES = ("kube-controller-manager", "jobset-controller-manager")
ROUGH = Faults(watch_delay=0.5, request_delay=0.05, lost_before=0.03, lost_after=0.03, conflict=0.05)
LATE = Faults(watch_delay=1.5, request_delay=0.05)
CONFLICTS = replace(LATE, conflict=0.3)
RACK, ZONE = "rack", "zone"
NODES_PER_RACK = 2

Steps = tuple[tuple[int, str, int], ...]


@dataclass(frozen=True)
class Life:
    """One run; `forever` for pods that never end by themselves."""

    spec: Tree
    steps: Steps = ()
    seed: int = 0
    faults: Faults = PERFECT
    exclusive: bool = False
    racks: int = 3
    forever: bool = False

    def jobset(self) -> Tree:
        """Return the JobSet."""
        meta: Tree = {"name": "js", "namespace": "default"}
        if self.exclusive:
            meta["annotations"] = {"alpha.jobset.sigs.k8s.io/exclusive-topology": RACK}
        return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": meta, "spec": self.spec}


def role(name: str, replicas: int, pods: int, run_for: int | None, fail_at: str, *, retries: int = 0, depends_on: Tree | None = None) -> Tree:
    """Return a replicated job; `fail_at` names the restart attempts in which its pods fail."""
    annotations = {} if run_for is None else {"kubemini.dev/run-for": f"{run_for}s"}
    if fail_at:
        annotations["kubemini.dev/fail-at"] = fail_at
    spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "pause"}]}
    job = {"parallelism": pods, "completions": pods, "backoffLimit": retries, "template": {"metadata": {"annotations": annotations}, "spec": spec}}
    found: Tree = {"name": name, "replicas": replicas, "template": {"spec": job}}
    return {**found, "dependsOn": [depends_on]} if depends_on else found


@st.composite
def roles(
    draw: st.DrawFn, *, forever: bool = False, depends: bool = False, fails: tuple[str, ...] = ("", "", "0", "1", "0,1,2,3"), least: int = 1
) -> list[Tree]:
    """Draw replicated jobs."""
    found: list[Tree] = []
    for index in range(draw(st.integers(least, 3))):
        need = draw(st.sampled_from(["", "Ready", "Complete"])) if depends and index else ""
        found.append(
            role(
                f"r{index}",
                draw(st.integers(1, 2)),
                draw(st.integers(1, 2)),
                None if forever else draw(st.sampled_from([3, 6, 10])),
                "" if forever else draw(st.sampled_from(fails)),
                depends_on={"name": f"r{index - 1}", "status": need} if need else None,
            )
        )
    return found


def sets(replicated: st.SearchStrategy[list[Tree]], **more: st.SearchStrategy[object]) -> st.SearchStrategy[Tree]:
    """Draw a spec; further fields that are drawn as None are left out."""
    fields = st.fixed_dictionaries({"replicatedJobs": replicated, **more})
    return fields.map(lambda spec: {name: value for name, value in spec.items() if value is not None})


def restarts(*strategies: str, least: int = 0) -> st.SearchStrategy[Tree]:
    """Draw a failure policy without rules."""
    return st.fixed_dictionaries(
        {"maxRestarts": st.integers(least, 2), "restartStrategy": st.sampled_from(strategies or ("Recreate", "BlockingRecreate"))}
    )


def steps(*deeds: str, size: int = 4, waits: tuple[int, ...] = (0, 1, 2, 4, 8)) -> st.SearchStrategy[Steps]:
    """Draw what happens: after so many seconds, what, to which."""
    return st.lists(st.tuples(st.sampled_from(waits), st.sampled_from(deeds), st.integers(0, 7)), max_size=size).map(tuple)


NO_STEPS: st.SearchStrategy[Steps] = st.just(())


def lives(
    spec: st.SearchStrategy[Tree],
    deeds: st.SearchStrategy[Steps] = NO_STEPS,
    faults: tuple[Faults, ...] = (PERFECT, LATE),
    **more: st.SearchStrategy[object],
) -> st.SearchStrategy[Life]:
    """Draw lives."""
    return st.builds(Life, spec=spec, steps=deeds, seed=st.integers(0, 2**16), faults=st.sampled_from(faults), **more)


# ----------------------------------------------------------------------------------------------- playing


async def rack(cluster: SimCluster, number: int) -> None:
    """Make the nodes of a rack."""
    room = {"cpu": "64", "memory": "64Gi", "pods": "100"}
    for index in range(NODES_PER_RACK):
        meta = {"name": f"n-{number}-{index}", "labels": {RACK: f"r{number}", ZONE: f"z{number}"}}
        await cluster.client.create(
            NODES, {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": {}, "status": {"capacity": room, "allocatable": room}}
        )


async def do(cluster: SimCluster, excuses: Excuses, life: Life, what: str, which: int) -> None:
    """Do one thing; what is gone already is left alone."""

    async def chosen(resource: Resource) -> str:
        found = await cluster.client.list(resource, "default")
        return str(found[which % len(found)]["metadata"]["name"]) if found else "none"

    try:
        match what:
            case "suspend" | "resume":
                await cluster.client.patch(JOB_SETS, "js", {"spec": {"suspend": what == "suspend"}}, namespace="default")
            case "delete job":
                await cluster.client.delete(JOBS, await chosen(JOBS), namespace="default", propagation="Background")
            case "fail pod":
                await cluster.fail_pod("default", await chosen(PODS))
            case "delete pod":
                await cluster.delete_pod("default", await chosen(PODS))
            case "fail leader" | "delete leader":
                leaders = [
                    each
                    for each in await cluster.client.list(PODS)
                    if (each["metadata"].get("labels") or {}).get("batch.kubernetes.io/job-completion-index") == "0"
                ]
                if leaders:
                    name = leaders[which % len(leaders)]["metadata"]["name"]
                    await (cluster.fail_pod if what == "fail leader" else cluster.delete_pod)("default", name)
            case "delete service":
                await cluster.client.delete(SERVICES, "js", namespace="default")
            case "delete node":
                await cluster.client.delete(NODES, await chosen_node(cluster, which))
            case "retarget":
                spec = (await cluster.client.get(JOB_SETS, "js", "default"))["spec"]
                await cluster.client.patch(
                    JOB_SETS, "js", {"spec": {"replicatedJobs": [bound(each, which) for each in spec["replicatedJobs"]]}}, namespace="default"
                )
            case "restart":
                await cluster.restart(PROCESSES[which % len(PROCESSES)])
            case "again":
                excuses.excuse((await cluster.client.get(JOB_SETS, "js", "default"))["metadata"]["uid"])
                await cluster.client.delete(JOB_SETS, "js", namespace="default", propagation="Background")
                await cluster.client.create(JOB_SETS, life.jobset())
            case _:
                raise ValueError(what)
    except ApiStatus as refused:
        if refused.code not in (404, 409, 422):
            raise


async def chosen_node(cluster: SimCluster, which: int) -> str:
    """Return the name of a node."""
    nodes = await cluster.client.list(NODES)
    return str(nodes[which % len(nodes)]["metadata"]["name"])


def bound(replicated: Tree, which: int) -> Tree:
    """Return a replicated job whose pods select a rack, by one key or the other."""
    job = replicated["template"]["spec"]
    pods = job["template"]
    selector = {RACK: "r0"} if which % 2 else {ZONE: "z0"}
    template = {**pods, "spec": {**pods["spec"], "nodeSelector": selector}}
    return {**replicated, "template": {**replicated["template"], "spec": {**job, "template": template}}}


def one_ends(spec: Tree) -> Tree:
    """Return a spec of which the pods of the first role end."""
    first, *rest = spec["replicatedJobs"]
    return {**spec, "replicatedJobs": [role("r0", first["replicas"], 1, 5, ""), *rest, role("last", 1, 1, None, "")]}


def played(life: Life) -> None:
    """Play a life to its end."""
    excuses = Excuses()

    async def scenario(cluster: SimCluster, checker: Checker) -> None:
        for number in range(life.racks):
            await rack(cluster, number)
        await cluster.client.create(JOB_SETS, life.jobset())
        for after, what, which in life.steps:
            if await cluster.settle(after):
                checker.at_rest()
            await do(cluster, excuses, life, what, which)
        if life.spec.get("suspend") or any(what == "suspend" for _, what, _ in life.steps):
            if await cluster.settle(2000):
                checker.at_rest()
            await do(cluster, excuses, life, "resume", 0)
        assert await cluster.settle(20_000), "the cluster never comes to rest"
        checker.at_rest()
        if "ttlSecondsAfterFinished" not in life.spec:
            js = await cluster.client.get(JOB_SETS, "js", "default")
            if life.spec.get("managedBy") is None:
                _check_end(life, js, await cluster.client.list(PODS))
            excuses.excuse(js["metadata"]["uid"])
            await cluster.client.delete(JOB_SETS, "js", namespace="default", propagation="Background")
            await cluster.settle(2000)
            checker.at_rest()
        left = [each["metadata"]["name"] for resource in (JOB_SETS, JOBS, PODS, SERVICES) for each in await cluster.client.list(resource)]
        assert left in ([], ["kubernetes"]), f"left: {left}"

    invariants = [*jobset_invariants(), *exact_jobset_invariants(excuses), *job_invariants(), *gang_invariants()]
    play(scenario, invariants, seed=life.seed, faults=life.faults, controllers=CONTROLLERS)


def _check_end(life: Life, js: Tree, pods: object) -> None:
    if not life.forever:
        assert ended(js), f"the JobSet has not ended: {js.get('status')}"
    elif not ended(js):
        assert isinstance(pods, list)
        running = [each for each in pods if each["status"]["phase"] == "Running"]
        wanted = sum(each["replicas"] * each["template"]["spec"]["parallelism"] for each in life.spec["replicatedJobs"])
        assert len(running) == wanted, f"{len(running)} pods run of {wanted}"


# ----------------------------------------------------------------------------------------------- scenarios

OPERATORS = st.fixed_dictionaries({"operator": st.sampled_from(["All", "Any"])}, optional={"targetReplicatedJobs": st.just(["r0"])})
POLICY = st.none() | restarts()
ACTIONS = ("FailJobSet", "RestartJobSet", "RestartJobSetAndIgnoreMaxRestarts")
RULES = st.lists(
    st.fixed_dictionaries(
        {"action": st.sampled_from(ACTIONS)},
        optional={
            "targetReplicatedJobs": st.sampled_from([["r0"], ["r1"]]),
            "onJobFailureReasons": st.sampled_from([["BackoffLimitExceeded"], ["DeadlineExceeded"]]),
        },
    ),
    min_size=1,
    max_size=3,
)
RULED = st.builds(
    lambda rules, limit: {"maxRestarts": limit, "rules": [{**rule, "name": f"rule{index}"} for index, rule in enumerate(rules)]},
    RULES,
    st.integers(0, 2),
)

ANY = Scenario(
    "JobSet",
    lives(
        sets(roles(), failurePolicy=POLICY, successPolicy=st.none() | OPERATORS, suspend=st.booleans()),
        steps("suspend", "resume", "delete job", "fail pod", "delete pod", "delete service", "restart"),
        faults=(PERFECT, ROUGH),
    ),
    played,
)
"""Anything happens to a JobSet."""
FAILING = Scenario("failing JobSet", lives(sets(roles(fails=("0", "0,1", "0,1,2,3", "")), failurePolicy=restarts())), played)
"""Pods fail, nothing else happens."""
RULED_SETS = Scenario("failure policy rules", lives(sets(roles(fails=("0", "0,1", "1"), least=2), failurePolicy=RULED)), played)
SUCCESS = Scenario("JobSet success policy", lives(sets(roles(fails=("",), least=2), successPolicy=OPERATORS)), played)
DEPENDING = Scenario("dependsOn", lives(sets(roles(depends=True, fails=("",), least=2), failurePolicy=POLICY)), played)
IN_ORDER = Scenario(
    "in order",
    lives(
        sets(roles(fails=("", "0"), least=2), failurePolicy=POLICY, startupPolicy=st.just({"startupPolicyOrder": "InOrder"}), suspend=st.booleans()),
        steps("suspend", "resume"),
    ),
    played,
)
RUNNING = Scenario(
    "running JobSet",
    lives(
        sets(roles(forever=True), failurePolicy=restarts(least=2), suspend=st.booleans()),
        steps("suspend", "resume", "delete service", "delete job", "fail pod", waits=(0, 2, 6, 20)),
        forever=st.just(True),
    ),
    played,
)
"""Pods run for ever: at rest everything is there."""
PAUSED = Scenario(
    "paused JobSet",
    lives(sets(roles(forever=True)), st.tuples(st.tuples(st.integers(0, 20), st.just("suspend"), st.just(0))), forever=st.just(True)),
    played,
    examples=10,
)
SUSPENDED_AS_IT_ENDS = Scenario(
    "in order, suspended as it ends",
    lives(
        sets(roles(fails=("",), least=2), startupPolicy=st.just({"startupPolicyOrder": "InOrder"})),
        st.tuples(st.tuples(st.integers(3, 12), st.just("suspend"), st.just(0))),
        faults=(LATE,),
    ),
    played,
)
ONE_ENDS = Scenario("success of one", lives(sets(roles(forever=True), successPolicy=st.just({"operator": "Any"})).map(one_ends)), played, examples=20)
ONE_ENDS_AND_RETIRES = Scenario(
    "success of one, and time to live",
    lives(sets(roles(forever=True), successPolicy=st.just({"operator": "Any"}), ttlSecondsAfterFinished=st.just(10)).map(one_ends)),
    played,
    examples=20,
)
RETARGETED = Scenario(
    "retargeted while suspended",
    lives(
        sets(roles(forever=True), failurePolicy=restarts(least=2)),
        st.tuples(
            *(
                st.tuples(st.sampled_from([5, 9]), st.just(what), st.integers(0, 3))
                for what in ("suspend", "retarget", "resume", "suspend", "retarget", "resume")
            )
        ),
        forever=st.just(True),
        racks=st.just(1),
    ),
    played,
    examples=20,
)
RETIRING = Scenario(
    "JobSet time to live",
    lives(
        sets(roles(least=2), failurePolicy=POLICY, successPolicy=OPERATORS, ttlSecondsAfterFinished=st.sampled_from([0, 3, 10, 20])),
        steps("again", size=2, waits=(3, 6, 9, 14, 20)),
    ),
    played,
)
ANEW = Scenario(
    "JobSet made anew",
    lives(sets(roles(), failurePolicy=POLICY, successPolicy=OPERATORS), steps("again", waits=(0, 1, 3, 5, 8)), faults=(LATE,)),
    played,
    examples=60,
)
FOREIGN = Scenario("JobSet managed by others", lives(sets(roles(), managedBy=st.just("example.com/other"))), played, examples=5)
COORDINATED = Scenario(
    "coordinator",
    lives(
        sets(
            roles(),
            coordinator=st.fixed_dictionaries({"replicatedJob": st.just("r0")}, optional={"jobIndex": st.just(0), "podIndex": st.just(0)}),
            network=st.sampled_from([{"enableDNSHostnames": True}, {"enableDNSHostnames": True, "subdomain": "net"}]),
        )
    ),
    played,
    examples=10,
)
CONFLICTING = Scenario("conflicts", lives(sets(roles(), failurePolicy=restarts()), faults=(CONFLICTS,)), played)


def _placed(replicas: int, pods: int, retries: int, policy: Tree) -> Tree:
    return {"replicatedJobs": [role("w", replicas, pods, None, "", retries=retries)], "failurePolicy": policy}


PLACED = Scenario(
    "exclusive placement",
    lives(
        st.builds(_placed, st.integers(1, 3), st.integers(2, 3), st.sampled_from([0, 3]), restarts(least=2)),
        steps("fail leader", "delete leader", "delete leader", "fail pod", "suspend", "resume", waits=(0, 1, 2, 3, 6)),
        faults=(PERFECT, LATE),
        exclusive=st.just(True),
        racks=st.just(4),
        forever=st.just(True),
    ),
    played,
)
"""Each Job has a rack for itself; leaders fail and go."""
PLACED_RETRYING = Scenario(
    "exclusive placement, pods retried",
    lives(
        st.builds(_placed, st.integers(1, 2), st.integers(2, 3), st.just(6), restarts(least=2)),
        steps("fail leader", "fail pod", size=5, waits=(3, 12, 30)),
        faults=(PERFECT, LATE),
        exclusive=st.just(True),
        forever=st.just(True),
    ),
    played,
)
"""Pods fail and are retried within their Job: failed ones stay beside their successors."""
