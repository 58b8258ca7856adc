"""Whole lives of JobSets under virtual time: reported bugs of upstream, gates, and what only shows when all controllers act together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kubemini.api.resources import EVENTS, JOB_SETS, JOBS, NODES, PERSISTENT_VOLUME_CLAIMS, PODS, SERVICES
from kubemini.api.trees import Tree, set_in
from kubemini.controllers.jobset import create
from kubemini.controllers.jobset.controller import JobSetController
from kubemini.runtime.settings import Settings
from kubemini.sim.cluster import SimCluster, simulate
from kubemini.sim.faults import PERFECT, Faults
from kubemini.store import Change
from kubemini.testing.invariants import Checker
from kubemini.testing.invariants.jobset import condition, jobset_invariants

BASE = ("namespaces", "service-accounts", "garbage-collector", "job", "nodes", "kubelet", "jobset")
ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"
RACK = "example.com/rack"
FOREIGN = {"suspend": True, "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "m", "image": "i"}]}}}


def role(name: str = "w", replicas: int = 1, pods: int = 1, *, programs: Tree | None = None, own: Tree | None = None, **job: Any) -> Tree:
    """Return a replicated job whose pods do what `programs` (``kubemini.dev`` annotations) say."""
    annotations = {f"kubemini.dev/{key}": value for key, value in (programs or {}).items()}
    spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "pause"}]}
    body = {"parallelism": pods, "completions": pods, "backoffLimit": 0, **job, "template": {"metadata": {"annotations": annotations}, "spec": spec}}
    return {"name": name, "replicas": replicas, "template": {"spec": body}, **(own or {})}


def jobset(*roles: Tree, name: str = "js", annotations: Tree | None = None, pinned: bool = True, **spec: Any) -> Tree:
    """Return a JobSet; `pinned` puts its pods on node n-0."""
    placed = [set_in(each, ("template", "spec", "template", "spec", "nodeName"), "n-0") if pinned else each for each in roles]
    meta = {"name": name, "namespace": "default", "annotations": annotations or {}}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": meta, "spec": {"replicatedJobs": placed, **spec}}


async def nodes(cluster: SimCluster, count: int = 1, per_rack: int = 1, *, first: int = 0) -> None:
    """Make nodes n-0, n-1, … in racks."""
    room = {"cpu": "64", "memory": "64Gi", "pods": "100"}
    for index in range(first, first + count):
        meta = {"name": f"n-{index}", "labels": {RACK: f"r{index // per_rack}"}}
        await cluster.client.create(
            NODES, {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": {}, "status": {"capacity": room, "allocatable": room}}
        )


async def live(cluster: SimCluster, name: str = "js") -> Tree:
    """Return a JobSet."""
    return await cluster.client.get(JOB_SETS, name, "default")


async def jobs(cluster: SimCluster) -> dict[str, Tree]:
    """Return all Jobs by name."""
    return {job["metadata"]["name"]: job for job in await cluster.client.list(JOBS)}


async def pods(cluster: SimCluster, phase: str = "Running") -> list[Tree]:
    """Return the pods in a phase."""
    return [pod for pod in await cluster.client.list(PODS) if pod["status"].get("phase") == phase]


def played(
    scenario: Callable[[SimCluster], Awaitable[None]],
    *,
    seed: int = 1,
    faults: Faults = PERFECT,
    scheduler: bool = False,
    promises: bool = True,
    count: int = 1,
    per_rack: int = 1,
    **cluster: Any,
) -> None:
    """Run a scenario with every promise checked, and let it come to rest."""

    async def run(sim: SimCluster) -> None:
        checker = Checker(sim.store, jobset_invariants() if promises else [])
        await nodes(sim, count, per_rack)
        await scenario(sim)
        assert await sim.settle(7200), "the cluster never comes to rest"
        checker.at_rest()

    simulate(run, seed=seed, faults=faults, controllers=(*BASE, "scheduler") if scheduler else BASE, **cluster)


# ----------------------------------------------------------------------------------------------- leftovers and staleness


def test_orphans_block_but_do_not_count() -> None:
    """Jobs that an orphaning deletion left are not taken for the new JobSet's: their names block it until they are gone."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(JOB_SETS, jobset(role()))
        await cluster.settle()
        await cluster.client.delete(JOB_SETS, "js", namespace="default", propagation="Orphan")
        await cluster.settle()
        await cluster.client.create(JOB_SETS, jobset(role()))
        await cluster.settle(30)
        assert "status" not in await live(cluster)
        said = [event for event in await cluster.client.list(EVENTS) if event["reason"] == "JobCreationFailed"]
        assert said[0]["message"] == 'job "js-w-0" creation failed with error: jobs.batch "js-w-0" already exists'
        await cluster.client.delete(JOBS, "js-w-0", namespace="default", propagation="Background")
        await cluster.settle()
        assert (await live(cluster))["status"]["replicatedJobsStatus"][0]["ready"] == 1

    played(scenario)


@pytest.mark.parametrize("seed", range(4))
def test_a_restarted_controller_with_cold_and_stale_caches(seed: int) -> None:
    """A controller that comes up with a JobSet older than its Jobs does not fall back to an earlier attempt."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(
            JOB_SETS, jobset(role(replicas=3, programs={"run-for": "5s", "fail-at": "0,1"}), failurePolicy={"maxRestarts": 3})
        )
        for _ in range(6):
            await cluster.env.sleep(2.5)
            await cluster.restart("jobset-controller-manager")
        await cluster.settle()
        js = await live(cluster)
        assert (condition(js, "Completed"), js["status"]["restarts"]) == ("True", 2)

    played(scenario, seed=seed, faults=Faults(watch_delay=2.0, request_delay=0.2))


def test_a_job_deleted_by_hand_comes_back() -> None:
    """Whatever becomes of a child Job or the Service of a running JobSet, it is made again without a restart."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(JOB_SETS, jobset(role(replicas=2)))
        await cluster.settle()
        before = (await jobs(cluster))["js-w-1"]["metadata"]["uid"]
        await cluster.client.delete(JOBS, "js-w-1", namespace="default", propagation="Background")
        await cluster.client.delete(SERVICES, "js", namespace="default")
        await cluster.settle()
        assert (await jobs(cluster))["js-w-1"]["metadata"]["uid"] != before
        assert (await live(cluster))["status"]["restarts"] == 0

    played(scenario)


def test_a_lost_node_restarts_the_gang() -> None:
    """When a node falls silent its pods are evicted, their Jobs fail, and the whole JobSet starts anew elsewhere."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(JOB_SETS, jobset(role(replicas=2), pinned=False, failurePolicy={"maxRestarts": 1}))
        await cluster.settle()
        lost = (await pods(cluster))[0]["spec"]["nodeName"]
        await cluster.lose_node(lost)
        await cluster.settle(1800)
        await cluster.client.delete(NODES, lost)
        await cluster.settle(1800)
        js = await live(cluster)
        assert js["status"]["restarts"] == 1
        assert {pod["spec"]["nodeName"] for pod in await pods(cluster)} == {"n-0", "n-1"} - {lost}
        assert js["status"]["replicatedJobsStatus"][0]["ready"] == 2

    played(scenario, scheduler=True, count=2)


def test_a_restart_waits_for_the_last_pod_of_the_failed_job() -> None:
    """A Job that is about to fail is active until its slowest pod has ended: only then the JobSet knows of the failure, and restarts."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(JOB_SETS, jobset(role(pods=2), failurePolicy={"maxRestarts": 1}))
        await cluster.settle()
        failing, slow = await cluster.client.list(PODS)
        for pod, phase in ((slow, "Running"), (failing, "Failed")):
            await cluster.client.update_status(PODS, {**pod, "status": {"phase": phase}})
        await cluster.settle(60)
        (job,) = (await jobs(cluster)).values()
        assert [each["type"] for each in job["status"]["conditions"]] == ["FailureTarget"]
        status = (await live(cluster))["status"]
        assert (status["restarts"], status["replicatedJobsStatus"][0]["failed"]) == (0, 0)
        await cluster.client.delete(PODS, slow["metadata"]["name"], namespace="default", grace=0)
        await cluster.settle(60)
        assert (await live(cluster))["status"]["restarts"] == 1

    # Without a kubelet pods end when the test says so
    simulate(scenario, controllers=[each for each in BASE if each not in ("kubelet", "nodes")])


def test_an_unreadable_label_stalls_and_mends() -> None:
    """A child Job whose attempt label was broken stalls its JobSet; mended, it goes on."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(JOB_SETS, jobset(role(replicas=2)))
        await cluster.settle()
        await cluster.client.patch(JOBS, "js-w-0", {"metadata": {"labels": {ATTEMPT: "x"}}}, namespace="default")
        await cluster.client.delete(JOBS, "js-w-1", namespace="default", propagation="Background")
        await cluster.settle(60)
        assert sorted(await jobs(cluster)) == ["js-w-0"]
        await cluster.client.patch(JOBS, "js-w-0", {"metadata": {"labels": {ATTEMPT: "0"}}}, namespace="default")
        await cluster.settle()
        assert sorted(await jobs(cluster)) == ["js-w-0", "js-w-1"]

    played(scenario)


# ----------------------------------------------------------------------------------------------- ends


def test_active_jobs_go_at_the_end_not_at_the_ttl() -> None:
    """Workers are deleted as soon as the driver has succeeded, long before the time to live is over."""

    async def scenario(cluster: SimCluster) -> None:
        success = {"operator": "All", "targetReplicatedJobs": ["driver"]}
        body = jobset(role("driver", programs={"run-for": "5s"}), role("w", 2), successPolicy=success, ttlSecondsAfterFinished=600)
        await cluster.client.create(JOB_SETS, body)
        await cluster.settle(60)
        assert sorted(await jobs(cluster)) == ["js-driver-0"]
        assert condition(await live(cluster), "Completed") == "True"
        await cluster.settle()
        assert await cluster.client.list(JOB_SETS) == []
        assert await jobs(cluster) == {}

    played(scenario)


def test_the_ttl_of_a_jobset_that_somebody_else_runs() -> None:
    """A JobSet of another manager is left alone, but for its time to live once that manager says that it has ended."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(JOB_SETS, jobset(role(), managedBy="acme.io/other", ttlSecondsAfterFinished=10))
        await cluster.settle()
        assert await jobs(cluster) == {}
        ended = {"type": "Completed", "status": "True", "reason": "Done", "message": "", "lastTransitionTime": cluster.env.stamp()}
        await cluster.client.patch(JOB_SETS, "js", {"status": {"restarts": 0, "conditions": [ended]}}, namespace="default", subresource="status")
        await cluster.settle()
        assert await cluster.client.list(JOB_SETS) == []

    played(scenario, promises=False)


def test_ends_are_counted_once() -> None:
    """The counters of failed and completed JobSets count each end once, conflicts or not."""
    (controller, _) = create(Settings())
    assert isinstance(controller, JobSetController)

    async def scenario(cluster: SimCluster) -> None:
        (loop,) = (each for each in cluster.managers["jobset-controller-manager"].controllers if isinstance(each, JobSetController))
        await cluster.client.create(JOB_SETS, jobset(role(programs={"run-for": "5s"}), name="good"))
        await cluster.client.create(JOB_SETS, jobset(role(programs={"run-for": "5s", "exit-code": "1"}), name="bad"))
        await cluster.settle()
        assert {counter.name: counter.samples for counter in loop.metrics.all()} == {
            "jobset_failed_total": {("bad", "default"): 1},
            "jobset_completed_total": {("good", "default"): 1},
        }

    played(scenario, faults=Faults(conflict=0.3, watch_delay=0.3))


def test_events_are_of_the_newer_dialect() -> None:
    """An event says that it is of reconciling, by whom, and when to the microsecond; repeated trouble is a series, not another event."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(
            JOBS, {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "js-w-0", "namespace": "default"}, "spec": FOREIGN}
        )
        await cluster.client.create(JOB_SETS, jobset(role()))
        await cluster.settle(60)
        (event,) = (each for each in await cluster.client.list(EVENTS) if each["reason"] == "JobCreationFailed")
        assert (event["action"], event["reportingComponent"], event["type"]) == ("Reconciling", "jobset", "Warning")
        assert event["eventTime"].endswith("Z")
        assert event["series"]["count"] == 2
        assert event["message"].startswith('job "js-w-0" creation failed with error: ')
        # It would be tried for ever
        await cluster.delete("jobset/js")

    played(scenario, promises=False)


def test_events_are_about_what_was_written() -> None:
    """What is said of a change of the status names the revision of the JobSet that has it."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(JOB_SETS, jobset(role(programs={"run-for": "5s"})))
        await cluster.settle()
        (event,) = (each for each in await cluster.client.list(EVENTS) if each["involvedObject"]["kind"] == "JobSet")
        assert event["reason"] == "AllJobsCompleted"
        assert event["involvedObject"]["resourceVersion"] == (await live(cluster))["metadata"]["resourceVersion"]

    played(scenario)


def test_percent_signs_in_events() -> None:
    """An error text serves as a format without arguments, so a percent sign in it is garbled."""

    async def scenario(cluster: SimCluster) -> None:
        wrong = set_in(role(), ("template", "spec", "template", "metadata", "labels"), {"share": "50% of it"})
        await cluster.client.create(JOB_SETS, jobset(wrong))
        await cluster.settle(10)
        (event,) = (each for each in await cluster.client.list(EVENTS) if each["reason"] == "JobCreationFailed")
        assert 'Invalid value: "50%!o(MISSING)f it"' in event["message"]
        await cluster.delete("jobset/js")

    played(scenario, promises=False)


def test_claims_that_are_refused() -> None:
    """The first claim of a policy that is refused keeps the later ones of that policy waiting, not those of other policies."""

    async def scenario(cluster: SimCluster) -> None:
        def policy(*names: str) -> Tree:
            size = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
            return {
                "templates": [{"metadata": {"name": name, "labels": {"bad": "no label"} if name == "wrong" else {}}, "spec": size} for name in names]
            }

        mounts = [{"name": name, "mountPath": f"/{name}"} for name in ("wrong", "later", "other")]
        mounting = set_in(role(), ("template", "spec", "template", "spec", "containers"), [{"name": "m", "image": "i", "volumeMounts": mounts}])
        await cluster.client.create(JOB_SETS, jobset(mounting, volumeClaimPolicies=[policy("wrong", "later"), policy("other")]))
        await cluster.settle(10)
        assert [claim["metadata"]["name"] for claim in await cluster.client.list(PERSISTENT_VOLUME_CLAIMS)] == ["other-js"]
        await cluster.delete("jobset/js")

    played(scenario, promises=False)


# ----------------------------------------------------------------------------------------------- suspension


def test_suspended_when_all_pods_had_succeeded() -> None:
    """A Job that was suspended between its last pod's success and its own end counts as ready; it is resumed in its turn all the same."""

    async def scenario(cluster: SimCluster) -> None:
        body = jobset(role("a", programs={"run-for": "5s"}), role("b", programs={"run-for": "5s"}), startupPolicy={"startupPolicyOrder": "InOrder"})
        await cluster.client.create(JOB_SETS, body)
        await cluster.settle(4)
        job = (await jobs(cluster))["js-a-0"]
        await cluster.client.patch(JOBS, "js-a-0", {"spec": {"suspend": True}}, namespace="default")
        status = {"succeeded": 1, "completedIndexes": "0", "startTime": job["status"]["startTime"]}
        await cluster.client.patch(JOBS, "js-a-0", {"status": status}, namespace="default", subresource="status")
        await cluster.settle()
        assert condition(await live(cluster), "Completed") == "True"

    played(scenario, promises=False)


def test_a_new_flavor_reaches_the_pods() -> None:
    """What a queue writes into a suspended template is where the pods go, and nothing of what it wrote before keeps them pending."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(JOB_SETS, jobset(role(), pinned=False, suspend=True))
        path = "/spec/replicatedJobs/0/template/spec/template/spec/nodeSelector"

        async def admitted(selector: Tree) -> str:
            patch = [{"op": "add", "path": path, "value": selector}, {"op": "replace", "path": "/spec/suspend", "value": False}]
            await cluster.client.patch(JOB_SETS, "js", patch, namespace="default", type="json")
            await cluster.settle()
            (pod,) = await pods(cluster)
            return str(pod["spec"]["nodeName"])

        assert await admitted({RACK: "r0"}) == "n-0"
        drained = [{"op": "remove", "path": path}, {"op": "replace", "path": "/spec/suspend", "value": True}]
        await cluster.client.patch(JOB_SETS, "js", drained, namespace="default", type="json")
        await cluster.settle()
        assert await pods(cluster) == []
        assert await admitted({"kubernetes.io/hostname": "n-1"}) == "n-1"

    async def labelled(cluster: SimCluster) -> None:
        for name in ("n-0", "n-1"):
            await cluster.client.patch(NODES, name, {"metadata": {"labels": {"kubernetes.io/hostname": name}}})
        await scenario(cluster)

    played(labelled, scheduler=True, count=2)


# ----------------------------------------------------------------------------------------------- gates


def test_one_job_restarts_alone() -> None:
    """With gate RestartJob the failed Job alone is made again, until the budget that all share is used up."""

    async def scenario(cluster: SimCluster) -> None:
        policy = {"maxRestarts": 2, "rules": [{"name": "one", "action": "RestartJob"}]}
        await cluster.client.create(JOB_SETS, jobset(role(replicas=3), failurePolicy=policy))
        for round_, index in enumerate((0, 2, 1)):
            await cluster.settle()
            before = {name: job["metadata"]["uid"] for name, job in (await jobs(cluster)).items()}
            (victim,) = (pod for pod in await pods(cluster) if pod["metadata"]["labels"]["jobset.sigs.k8s.io/job-index"] == str(index))
            await cluster.fail_pod("default", victim["metadata"]["name"])
            await cluster.settle()
            if round_ < 2:
                after = {name: job["metadata"]["uid"] for name, job in (await jobs(cluster)).items()}
                assert {name for name in before if before[name] != after[name]} == {f"js-w-{index}"}
        js = await live(cluster)
        assert condition(js, "Failed") == "True"
        (entry,) = js["status"]["replicatedJobsStatus"]
        assert (entry["jobRestarts"], js["status"]["restarts"]) == ([1, 0, 1], 0)

    played(scenario, feature_gates={"RestartJob": True})


def test_elastic_jobs_grow_and_shrink() -> None:
    """With gate ElasticJobSet a new size reaches running Jobs in place."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(JOB_SETS, jobset(role(pods=2)))
        await cluster.settle()
        uid = (await jobs(cluster))["js-w-0"]["metadata"]["uid"]
        for size in (4, 1):
            base = "/spec/replicatedJobs/0/template/spec/"
            patch = [{"op": "replace", "path": base + field, "value": size} for field in ("parallelism", "completions")]
            await cluster.client.patch(JOB_SETS, "js", patch, namespace="default", type="json")
            await cluster.settle()
            assert len(await pods(cluster)) == size
        assert (await jobs(cluster))["js-w-0"]["metadata"]["uid"] == uid

    played(scenario, feature_gates={"ElasticJobSet": True})


def test_agents_restart_in_place() -> None:
    """With gate InPlaceRestart pods that fell behind are called up to the highest attempt, and the barrier lifts when all have reached it."""
    never_fails: dict[str, Any] = {"backoffLimit": 2147483647, "podReplacementPolicy": "Failed"}

    async def report(cluster: SimCluster, *attempts: int) -> Tree:
        for pod, attempt in zip(await cluster.client.list(PODS), attempts, strict=True):
            patch = {"metadata": {"annotations": {"jobset.sigs.k8s.io/in-place-restart-attempt": str(attempt)}}}
            await cluster.client.patch(PODS, pod["metadata"]["name"], patch, namespace="default")
        await cluster.settle()
        return dict((await live(cluster))["status"])

    async def scenario(cluster: SimCluster) -> None:
        policy = {"maxRestarts": 2, "restartStrategy": "InPlaceRestart"}
        await cluster.client.create(JOB_SETS, jobset(role(replicas=2, **never_fails), failurePolicy=policy))
        await cluster.settle()
        status = await report(cluster, 0, 0)
        assert (status["currentInPlaceRestartAttempt"], status.get("previousInPlaceRestartAttempt")) == (0, None)
        status = await report(cluster, 0, 1)
        assert (status["currentInPlaceRestartAttempt"], status["previousInPlaceRestartAttempt"]) == (0, 0)
        status = await report(cluster, 1, 1)
        assert status["currentInPlaceRestartAttempt"] == 1
        status = await report(cluster, 1, 3)
        assert (status["terminalState"], status["restarts"]) == ("Failed", 0)

    played(scenario, feature_gates={"InPlaceRestart": True})


# ----------------------------------------------------------------------------------------------- exclusive placement


def exclusive(*roles: Tree, **more: Any) -> Tree:
    """Return a JobSet whose Jobs have a rack each."""
    return jobset(*roles, annotations={"alpha.jobset.sigs.k8s.io/exclusive-topology": RACK}, pinned=False, **more)


def racks(found: list[Tree]) -> dict[str, set[str]]:
    """Return the racks of the pods of each Job, two nodes to a rack."""
    places: dict[str, set[str]] = {}
    for pod in found:
        places.setdefault(pod["metadata"]["labels"]["batch.kubernetes.io/job-name"], set()).add(f"r{int(pod['spec']['nodeName'][2:]) // 2}")
    return places


@pytest.mark.parametrize("seed", range(3))
def test_each_job_has_a_rack_of_its_own(seed: int) -> None:
    """Jobs sit in one rack each, also after a restart; one for which there is no rack waits with a pending leader alone."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(JOB_SETS, exclusive(role(replicas=3, pods=3), failurePolicy={"maxRestarts": 2}))
        await cluster.settle(300)
        placed = racks(await pods(cluster))
        assert sorted(len(each) for each in placed.values()) == [1, 1]
        assert len(await pods(cluster)) == 6
        assert len(await pods(cluster, "Pending")) == 1
        await cluster.fail_pod("default", (await pods(cluster))[0]["metadata"]["name"])
        await cluster.settle(300)
        assert (await live(cluster))["status"]["restarts"] == 1
        assert sorted(len(each) for each in racks(await pods(cluster)).values()) == [1, 1]
        await nodes(cluster, 2, 2, first=4)
        await cluster.settle(300)
        assert sorted(racks(await pods(cluster)).values(), key=str) == [{"r0"}, {"r1"}, {"r2"}]

    played(scenario, seed=seed, scheduler=True, count=4, per_rack=2, faults=Faults(watch_delay=0.2, request_delay=0.02))


def test_a_leader_that_moves_takes_its_followers_along() -> None:
    """When a leader is replaced within its Job and lands in another rack, followers of the old rack are deleted as disrupted and follow it."""

    async def cordoned(cluster: SimCluster, rack: str) -> None:
        for node in await cluster.client.list(NODES):
            if node["metadata"]["labels"][RACK] == rack:
                await cluster.client.patch(NODES, node["metadata"]["name"], {"spec": {"unschedulable": True}})

    async def scenario(cluster: SimCluster) -> None:
        gone: list[str] = []
        before_observer = cluster.store.observer

        def note(table: str, change: Change) -> None:
            if before_observer is not None:
                before_observer(table, change)
            if table == "pods" and change.new is not None and condition(change.new.obj, "DisruptionTarget"):
                gone.append(change.key)

        cluster.store.observer = note
        ignore = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]}
        await cluster.client.create(JOB_SETS, exclusive(role(pods=3, backoffLimit=3, podFailurePolicy=ignore)))
        bound: list[Tree] = []
        while not bound:
            await cluster.env.sleep(0.001)
            bound = [pod for pod in await cluster.client.list(PODS) if pod["spec"].get("nodeName")]
        (leader,) = bound
        (before,) = racks(bound)["js-w-0"]
        await cordoned(cluster, before)
        await cluster.settle()
        assert [pod["spec"]["nodeSelector"] for pod in await pods(cluster, "Pending")] == [{RACK: before}] * 2
        await cluster.fail_pod("default", leader["metadata"]["name"])
        await cluster.settle()
        assert len(await pods(cluster)) == 3
        assert racks(await pods(cluster)) == {"js-w-0": {"r0", "r1"} - {before}}
        assert len(set(gone)) == 2
        assert not condition(await live(cluster), "Failed")

    played(scenario, scheduler=True, count=4, per_rack=2)


# ----------------------------------------------------------------------------------------------- economy


def test_pods_of_a_role_share_what_they_run() -> None:
    """All pods of all Jobs of a role hold the very same list of containers, after a restart too."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(
            JOB_SETS, jobset(role(replicas=3, pods=2, programs={"run-for": "5s", "fail-at": "0"}), failurePolicy={"maxRestarts": 1})
        )
        await cluster.settle(3)
        first = {id(pod["spec"]["containers"]) for pod in await cluster.client.list(PODS)}
        assert len(first) == 1
        await cluster.settle()
        found = await cluster.client.list(PODS)
        assert {pod["metadata"]["labels"][ATTEMPT] for pod in found} == {"1"}
        assert {id(pod["spec"]["containers"]) for pod in found} == first

    played(scenario)


def test_passes_do_not_grow_with_the_jobs() -> None:
    """A JobSet takes about as many passes to start however many Jobs it has: their events are answered together."""

    def passes(replicas: int) -> int:
        taken = 0

        async def scenario(cluster: SimCluster) -> None:
            nonlocal taken
            (loop,) = (each for each in cluster.managers["jobset-controller-manager"].controllers if isinstance(each, JobSetController))
            await cluster.client.create(JOB_SETS, jobset(role(replicas=replicas)))
            await cluster.settle()
            taken = loop.queue.adds

        played(scenario, promises=False)
        return taken

    assert passes(90) <= 2 * passes(9)


def test_the_same_seed_gives_the_same_life() -> None:
    """A life is repeated by its seed, byte for byte."""

    def life(seed: int) -> bytes:
        async def scenario(cluster: SimCluster) -> bytes:
            trace = cluster.trace()
            await nodes(cluster)
            await cluster.client.create(
                JOB_SETS, jobset(role("a", 2), role("b", 2, programs={"run-for": "3s", "fail-at": "0"}), failurePolicy={"maxRestarts": 1})
            )
            await cluster.settle(60)
            return trace.bytes

        return simulate(scenario, seed=seed, faults=Faults(watch_delay=0.3, request_delay=0.05, lost_after=0.05, conflict=0.05), controllers=BASE)

    assert life(3) == life(3)
    assert life(3) != life(4)
