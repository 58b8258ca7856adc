"""Defects of kubemini itself that the searches of this folder found, each with the smallest thing that shows it."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from kubemini.api.resources import JOBS
from kubemini.api.trees import Tree
from kubemini.controllers.job.accounting import collect
from kubemini.controllers.job.counting import count
from kubemini.controllers.job.pods import FINALIZER, INDEX
from kubemini.controllers.job.verdict import Verdict, judge
from kubemini.controllers.job.view import JobView
from kubemini.sim.cluster import SimCluster, simulate
from kubemini.testing.invariants import Checker
from kubemini.testing.invariants.job import job_invariants
from tests.quality.jobs import CONTROLLERS, LAGGING, template
from tests.quality.searching import program

FAILED = Verdict("FailureTarget", "DeadlineExceeded", "")


def job(**spec: object) -> JobView:
    """Return a Job."""
    return JobView({"metadata": {"name": "j", "namespace": "default", "uid": "job"}, "spec": {"template": template(), **spec}})


def pod(uid: str, phase: str, *, deleting: bool = False, restarts: int = 0) -> Tree:
    """Return a pod that carries the tracking finalizer."""
    meta: Tree = {"uid": uid, "name": uid, "finalizers": [FINALIZER]}
    if deleting:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"metadata": meta, "spec": {"nodeName": "n"}, "status": {"phase": phase, "containerStatuses": [{"name": "m", "restartCount": restarts}]}}


def test_a_pod_that_was_counted_is_not_counted_with_the_end() -> None:
    """A terminating pod whose finalizer is gone, though the cache does not show it, is not counted again when the Job fails."""
    removing: Mapping[str, None] = {"counted": None}
    counts = count(job(), [pod("counted", "Running", deleting=True), pod("new", "Running", deleting=True)], dict(removing))
    ended = collect(job(), counts, FAILED, [], (), None, removing)
    assert ended.failed == ["new"]


def test_restarts_of_terminating_pods_count_towards_the_limit() -> None:
    """The verdict that deleted the pods is found again while they terminate, where writing it did not work."""
    restarting = job(template=template("OnFailure"), backoffLimit=3)
    counts = count(restarting, [pod("a", "Running", deleting=True, restarts=2), pod("b", "Running", restarts=1)], {})
    verdict = judge(restarting, counts, failed=0, completed=[], failed_indexes=None, now=0, started=0)
    assert verdict is not None
    assert verdict.reason == "BackoffLimitExceeded"


def test_a_pod_out_of_range_loses_its_finalizer() -> None:
    """A pod that succeeds with an index that a scale-down took away is not counted, and can go all the same."""
    elastic = job(completionMode="Indexed", completions=2)
    beyond = pod("beyond", "Succeeded")
    beyond["metadata"]["annotations"] = {INDEX: "2"}
    ended = collect(elastic, count(elastic, [beyond], {}), None, [], (), None)
    assert (ended.release, ended.succeeded) == ([beyond], [])


@given(seed=st.integers(0, 2**16), managed_by=st.sampled_from([None, "example.com/other"]))
@settings(max_examples=10)
def test_pods_of_a_job_that_was_made_anew_can_go(seed: int, managed_by: str | None) -> None:
    """A Job is deleted and another one has its name before the controller looks: the pods of the first lose their finalizer, and go."""

    async def scenario(cluster: SimCluster) -> None:
        tree: Tree = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "default"}, "spec": {"template": template()}}
        await cluster.settle(60)
        first = await cluster.client.create(JOBS, tree)
        await cluster.settle(30)
        await cluster.delete("job/j", propagation="Background")
        await cluster.client.create(JOBS, {**tree, "spec": {**tree["spec"], "managedBy": managed_by}})
        await cluster.settle(60)
        uid = first["metadata"]["uid"]
        assert not [each for each in await cluster.list("pod") if each["metadata"]["ownerReferences"][0]["uid"] == uid]

    simulate(scenario, seed=seed, faults=LAGGING, fleet="cpu:1", controllers=CONTROLLERS)


@given(seed=st.integers(0, 2**16), after=st.sampled_from([6.0, 6.5, 7.0, 7.5, 8.0]))
@settings(max_examples=20)
def test_a_job_that_has_all_it_needs_completes_though_suspended(seed: int, after: float) -> None:
    """A Job that is suspended when all its pods have succeeded is Complete, or suspended with all that this means; never neither."""

    async def scenario(cluster: SimCluster) -> None:
        checker = Checker(cluster.store, job_invariants())
        await cluster.settle(60)
        spec = {"parallelism": 2, "completions": 2, "template": template()}
        await cluster.client.create(JOBS, {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "default"}, "spec": spec})
        await cluster.settle(after)
        await cluster.client.patch(JOBS, "j", {"spec": {"suspend": True}}, namespace="default")
        assert await cluster.settle(1000)
        checker.at_rest()

    simulate(scenario, seed=seed, faults=LAGGING, fleet="cpu:1", controllers=CONTROLLERS, program=program({}, 3))


def test_a_pod_that_never_started_comes_to_an_end() -> None:
    """A bound pod that is deleted before it started ends Failed while a finalizer keeps it, so that the Job which waits for its end replaces it."""

    def slow(pod: Tree) -> dict[str, float]:
        return {"start_after": 20, "run_for": 1}

    async def scenario(cluster: SimCluster) -> None:
        spec = {"podReplacementPolicy": "Failed", "template": template()}
        await cluster.client.create(JOBS, {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "default"}, "spec": spec})
        await cluster.settle(5)
        (bound,) = await cluster.list("pod")
        assert bound["spec"]["nodeName"]
        await cluster.delete_pod("default", bound["metadata"]["name"])
        assert await cluster.settle(1000)
        status = (await cluster.get("job/j"))["status"]
        assert (status["failed"], status["succeeded"]) == (1, 1)

    simulate(scenario, fleet="cpu:1", controllers=CONTROLLERS, program=slow)
