"""Reported defects of upstream's Job controller that no mutant stands for, each played as it was reported."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from kubemini.api.resources import JOBS, PODS
from kubemini.api.trees import Tree
from kubemini.sim.cluster import SimCluster, simulate
from kubemini.sim.faults import PERFECT, Faults
from kubemini.testing.invariants import Checker
from kubemini.testing.invariants.job import condition, job_invariants
from tests.unit.job.test_runs import CONTROLLERS, job

T = TypeVar("T")


def played(scenario: Callable[[SimCluster], Awaitable[T]], *, run_for: float = 3600.0, faults: Faults = PERFECT, **program: Any) -> T:
    """Run a scenario under the promises of Jobs, with pods that run for so long."""

    async def checked(cluster: SimCluster) -> T:
        checker = Checker(cluster.store, job_invariants())
        result = await scenario(cluster)
        assert checker.violation is None, checker.violation
        return result

    return simulate(checked, faults=faults, fleet="cpu:1", controllers=CONTROLLERS, program=lambda pod: {"run_for": run_for, **program})


async def status_of(cluster: SimCluster) -> Tree:
    """Return the Job's status."""
    found: Tree = (await cluster.get("job/j")).get("status") or {}
    return found


async def say(cluster: SimCluster, pod: Tree, phase: str, **more: Any) -> None:
    """Report a phase of a pod, as a kubelet does."""
    body = {"status": {"phase": phase, **more}}
    await cluster.client.patch(PODS, pod["metadata"]["name"], body, namespace="default", subresource="status")


def test_a_pod_that_was_counted_as_failed_and_succeeds_after_all() -> None:
    """The first decision stands (kubernetes#111646): a terminating pod counted as failed is no success when it ends well, and is not counted twice."""

    async def scenario(cluster: SimCluster) -> Tree:
        await cluster.client.create(JOBS, job(backoffLimit=6))
        await cluster.settle(20)
        (pod,) = await cluster.list("pod")
        held = {"metadata": {"finalizers": [*pod["metadata"]["finalizers"], "example.com/held"]}}
        pod = await cluster.client.patch(PODS, pod["metadata"]["name"], held, namespace="default")
        await cluster.delete_pod("default", pod["metadata"]["name"])
        await cluster.settle(2)
        assert (await status_of(cluster))["failed"] == 1
        await say(cluster, pod, "Succeeded")
        await cluster.settle(5)
        return await status_of(cluster)

    status = played(scenario)
    assert (status["failed"], status.get("succeeded", 0), status["uncountedTerminatedPods"]) == (1, 0, {})


@pytest.mark.parametrize("conditions", [[], [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}]])
def test_a_disrupted_pod_that_succeeds_is_a_success(conditions: list[Tree]) -> None:
    """A pod in phase Succeeded is a success, whatever its conditions say, and is not run again (kubernetes#115688)."""
    policy = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]}

    async def scenario(cluster: SimCluster) -> Tree:
        await cluster.client.create(JOBS, job(podFailurePolicy=policy))
        await cluster.settle(20)
        (pod,) = await cluster.list("pod")
        await say(cluster, pod, "Succeeded", conditions=[*pod["status"]["conditions"], *conditions])
        await cluster.settle(600)
        assert len(await cluster.list("pod")) == 1
        return await cluster.get("job/j")

    end = played(scenario)
    assert (condition(end, "Complete") is not None, end["status"]["succeeded"]) == (True, 1)


def test_a_failure_policy_waits_for_the_exit_code() -> None:
    """A terminating pod is no failure yet where a policy is to judge it: it is judged once it has ended (kubernetes#113855)."""
    policy = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [137]}}]}

    async def scenario(cluster: SimCluster) -> tuple[Tree, Tree]:
        await cluster.client.create(JOBS, job(podFailurePolicy=policy))
        await cluster.settle(20)
        (pod,) = await cluster.list("pod")
        await cluster.lose_node("cpu-0")
        await cluster.delete_pod("default", pod["metadata"]["name"])
        await cluster.settle(20)
        waiting = await status_of(cluster)
        await cluster.recover_node("cpu-0")
        await cluster.settle(60)
        return waiting, await cluster.get("job/j")

    waiting, end = played(scenario)
    assert (waiting["terminating"], waiting.get("failed", 0), waiting.get("active", 0), waiting.get("conditions")) == (1, 0, 0, None)
    failed = condition(end, "Failed")
    assert failed is not None
    assert failed["reason"] == "PodFailurePolicy"
    assert "failed with exit code 137 matching FailJob rule at index 0" in failed["message"]


def test_completed_indexes_survive_a_suspension() -> None:
    """A resumed Job runs the missing indexes only: a gang that comes back has fewer pods (kueue#10487)."""

    async def scenario(cluster: SimCluster) -> tuple[Tree, list[Tree]]:
        await cluster.client.create(JOBS, job(completionMode="Indexed", parallelism=3, completions=3))
        await cluster.settle(20)
        await say(cluster, (await cluster.list("pod"))[1], "Succeeded")
        await cluster.settle(5)
        await cluster.client.patch(JOBS, "j", {"spec": {"suspend": True}}, namespace="default")
        await cluster.settle(20)
        suspended = await status_of(cluster)
        await cluster.client.patch(JOBS, "j", {"spec": {"suspend": False}}, namespace="default")
        await cluster.settle(20)
        return suspended, [pod for pod in await cluster.list("pod") if pod["status"]["phase"] == "Running"]

    suspended, running = played(scenario)
    assert (suspended["completedIndexes"], suspended["succeeded"], suspended.get("failed", 0)) == ("1", 1, 0)
    assert sorted(pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] for pod in running) == ["0", "2"]


def test_an_index_in_its_back_off_keeps_its_place() -> None:
    """No index further on starts in place of one that waits for its back-off (seen on 1.36)."""

    async def scenario(cluster: SimCluster) -> tuple[list[str], list[str]]:
        await cluster.client.create(JOBS, job(completionMode="Indexed", parallelism=2, completions=4, backoffLimitPerIndex=2))
        await cluster.settle(1)
        await say(cluster, (await cluster.list("pod"))[0], "Failed")
        seen = []
        for seconds in (5, 15):
            await cluster.env.sleep(seconds)
            pods = [pod for pod in await cluster.list("pod") if pod["status"]["phase"] == "Running"]
            seen.append(sorted(pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] for pod in pods))
        return seen[0], seen[1]

    assert played(scenario) == (["1"], ["0", "1"])


def test_a_queue_moves_a_job_that_never_ran_and_one_that_did() -> None:
    """Scheduling directives change while a Job is suspended, before its first run (kubernetes#139281) and after it (kubernetes#113221)."""

    async def scenario(cluster: SimCluster) -> list[Tree]:
        await cluster.client.create(JOBS, job(suspend=True))
        seen = []
        for zone in ("a", "b"):
            await cluster.client.patch(JOBS, "j", {"spec": {"template": {"spec": {"nodeSelector": {"zone": zone}}}}}, namespace="default")
            await cluster.client.patch(JOBS, "j", {"spec": {"suspend": False}}, namespace="default")
            await cluster.settle(5)
            seen += [pod["spec"]["nodeSelector"] for pod in await cluster.list("pod")]
            await cluster.client.patch(JOBS, "j", {"spec": {"suspend": True}}, namespace="default")
            await cluster.settle(5)
        return seen

    assert played(scenario) == [{"zone": "a"}, {"zone": "b"}]
