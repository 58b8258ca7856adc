"""What Jobs and JobSets cost, counted in calls and not in seconds: twice as many pods, or sets, cost twice as much and no more."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from functools import partial
from types import FrameType
from typing import Any

import pytest

from kubemini.api.resources import JOB_SETS, JOBS, PODS
from kubemini.api.trees import Tree
from kubemini.sim.cluster import SimCluster, simulate

Scenario = Callable[[SimCluster], Awaitable[object]]
Life = Callable[[int], Scenario]
CONTROLLERS = ("namespaces", "service-accounts", "garbage-collector", "job", "nodes", "scheduler", "kubelet", "jobset")
TOLERANCE = 1.12
"""How much more per pod a doubling may cost: logarithms, and larger heaps."""


def calls(scenario: Scenario, size: int, *, before: Scenario | None = None) -> int:
    """Run a scenario and return how many functions were called, Python's own included; what comes `before` it is not counted."""
    count = 0

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    async def counted(cluster: SimCluster) -> None:
        await cluster.settle(60)
        if before is not None:
            await before(cluster)
        sys.setprofile(note)
        try:
            await scenario(cluster)
        finally:
            sys.setprofile(None)

    fleet = [{"count": size // 100 + 2, "name": "n-{i}", "cpu": 640, "memory": "256Gi", "pods": 250}]
    simulate(counted, fleet=fleet, controllers=CONTROLLERS)
    return count


def template(seconds: int = 5) -> Tree:
    """Return a pod template."""
    annotations = {"kubemini.dev/run-for": f"{seconds}s"}
    return {"metadata": {"annotations": annotations}, "spec": {"restartPolicy": "Never", "containers": [{"name": "m", "image": "i"}]}}


def lasting(pods: int, mode: str = "NonIndexed") -> Scenario:
    """Return the life of a Job of so many pods."""

    async def scenario(cluster: SimCluster) -> None:
        spec = {"parallelism": pods, "completions": pods, "completionMode": mode, "template": template()}
        await cluster.client.create(JOBS, {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "default"}, "spec": spec})
        assert await cluster.settle(600)
        assert (await cluster.get("job/j"))["status"]["succeeded"] == pods

    return scenario


def running(pods: int) -> Scenario:
    """Return the beginning of a Job whose pods run on."""

    async def scenario(cluster: SimCluster) -> None:
        spec = {"parallelism": pods, "template": template(3600)}
        await cluster.client.create(JOBS, {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "default"}, "spec": spec})
        await cluster.settle(60)

    return scenario


def disturbed(pods: int) -> Scenario:
    """Return the life of a Job of so many pods, half of which are deleted while they run."""

    async def scenario(cluster: SimCluster) -> None:
        spec = {"parallelism": pods, "completions": pods, "backoffLimit": pods, "completionMode": "Indexed", "template": template(30)}
        await cluster.client.create(JOBS, {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "default"}, "spec": spec})
        await cluster.settle(15)
        for pod in (await cluster.list("pod"))[::2]:
            await cluster.client.delete(PODS, pod["metadata"]["name"], namespace="default")
        assert await cluster.settle(600)
        assert (await cluster.get("job/j"))["status"]["failed"] == pods // 2

    return scenario


def many_sets(sets: int) -> Scenario:
    """Return the lives of so many JobSets of two Jobs."""

    async def scenario(cluster: SimCluster) -> None:
        job = {"parallelism": 1, "completions": 1, "backoffLimit": 0, "template": template()}
        spec = {"replicatedJobs": [{"name": "w", "replicas": 2, "template": {"spec": job}}]}
        for number in range(sets):
            meta = {"name": f"js-{number}", "namespace": "default"}
            await cluster.client.create(JOB_SETS, {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": meta, "spec": spec})
        assert await cluster.settle(600)
        assert all(each["status"]["terminalState"] == "Completed" for each in await cluster.list("jobset"))

    return scenario


def one_set(jobs: int) -> Scenario:
    """Return the life of a JobSet of so many Jobs that restarts once."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(JOB_SETS, restarting(jobs))
        assert await cluster.settle(600)
        js = await cluster.get("jobset/js")
        assert (js["status"]["restarts"], js["status"]["terminalState"]) == (1, "Completed")

    return scenario


def restarting(jobs: int) -> Tree:
    """Return a JobSet whose first attempt fails."""
    pods = template()
    pods["metadata"]["annotations"]["kubemini.dev/fail-at"] = "0"
    job = {"parallelism": 1, "completions": 1, "backoffLimit": 0, "template": pods}
    spec = {"replicatedJobs": [{"name": "w", "replicas": jobs, "template": {"spec": job}}], "failurePolicy": {"maxRestarts": 1}}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "js", "namespace": "default"}, "spec": spec}


@pytest.mark.parametrize(
    "life, size",
    [
        pytest.param(lasting, 100, id="job"),
        pytest.param(partial(lasting, mode="Indexed"), 100, id="indexed job"),
        pytest.param(disturbed, 100, id="half of the pods are deleted"),
        pytest.param(many_sets, 50, id="small jobsets"),
        pytest.param(one_set, 50, id="jobset that restarts"),
    ],
)
def test_twice_as_many_cost_twice_as_much(life: Life, size: int) -> None:
    """A whole life costs as many calls per pod, or per set, with twice the number of them."""
    # What clusters share is made by the first
    calls(life(4), 4)
    assert calls(life(2 * size), 2 * size) <= 2 * TOLERANCE * calls(life(size), size)


def test_an_event_that_comes_alone() -> None:
    """A pod that is no longer ready costs its Job as many calls however many pods it has: what is remembered of the others stands."""

    def life(pods: int) -> Scenario:
        async def scenario(cluster: SimCluster) -> None:
            ready = {"conditions": [{"type": "Ready", "status": "False"}]}
            name = (await cluster.list("pod"))[0]["metadata"]["name"]
            await cluster.client.patch(PODS, name, {"status": ready}, namespace="default", subresource="status", type="strategic")
            await cluster.settle(30)
            assert (await cluster.get("job/j"))["status"]["ready"] == pods - 1

        return scenario

    few, many = (calls(life(pods), pods, before=running(pods)) for pods in (150, 300))
    assert many <= TOLERANCE * few
