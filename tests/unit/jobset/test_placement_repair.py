"""The repair loop of exclusive placement: which followers go, what they say of it, and when it has to wait."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from kubemini import SimCluster
from kubemini.api.resources import NODES, PODS
from kubemini.api.trees import Tree
from kubemini.api.wellknown import jobset as names
from kubemini.sim.cluster import simulate
from kubemini.testing.invariants.jobset import condition

RACK = "example.com/rack"
OWNER = [{"apiVersion": "batch/v1", "kind": "Job", "name": "js-w-0", "uid": "uid-of-job", "controller": True}]
DISRUPTED = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "for somebody else"}
READY = {"type": "Ready", "status": "True"}


async def _pod(
    cluster: SimCluster, index: int, *, selector: Tree | None = None, finalizers: tuple[str, ...] = (), conditions: tuple[Tree, ...] = ()
) -> None:
    meta: Tree = {
        "name": f"js-w-0-{index}-abcde",
        "namespace": "default",
        "labels": {names.JOB_KEY: "key"},
        "annotations": {names.EXCLUSIVE_TOPOLOGY: RACK, "batch.kubernetes.io/job-completion-index": str(index)},
        "ownerReferences": OWNER,
        "finalizers": list(finalizers),
    }
    spec: Tree = {"nodeName": "n-0", "containers": [{"name": "main", "image": "pause"}]}
    made = await cluster.client.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {**spec, "nodeSelector": selector or {}}})
    if conditions:
        await cluster.client.update_status(PODS, {**made, "status": {"phase": "Running", "conditions": list(conditions)}})


async def _node(cluster: SimCluster, labels: Tree) -> None:
    await cluster.client.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n-0", "labels": labels}, "spec": {}})


async def _left(cluster: SimCluster) -> dict[str, Tree]:
    return {pod["metadata"]["name"][7:8]: pod for pod in await cluster.client.list(PODS)}


async def _going(cluster: SimCluster) -> list[str]:
    return [index for index, pod in (await _left(cluster)).items() if "deletionTimestamp" in pod["metadata"]]


def _played(scenario: Callable[[SimCluster], Awaitable[None]]) -> None:
    simulate(scenario, controllers=("namespaces", "service-accounts", "jobset"))


@pytest.mark.parametrize("selector", [None, {RACK: "r1"}])
def test_it_waits_for_a_node_that_is_not_there(selector: Tree | None) -> None:
    """A follower without a domain, or of another one, goes once the leader's node says where it is; until then nothing is known and it stays."""

    async def scenario(cluster: SimCluster) -> None:
        await _pod(cluster, 0)
        await _pod(cluster, 1, selector=selector)
        await cluster.env.sleep(5)
        assert await _going(cluster) == []
        await _node(cluster, {RACK: "r0"})
        await cluster.env.sleep(60)
        assert await _going(cluster) == ["1"]

    _played(scenario)


def test_what_followers_say_as_they_go() -> None:
    """Followers are marked as disrupted in the place of an older mark, those that go already too; one that is disrupted for another reason stays so."""

    async def scenario(cluster: SimCluster) -> None:
        await _node(cluster, {RACK: "r0"})
        held = ("example.com/hold",)
        await _pod(cluster, 1, selector={RACK: "r1"}, finalizers=held, conditions=({**DISRUPTED, "status": "False"}, READY))
        await _pod(cluster, 2, selector={RACK: "r0"}, finalizers=held, conditions=(DISRUPTED,))
        await _pod(cluster, 3, selector={RACK: "r0"}, finalizers=held, conditions=(READY,))
        await cluster.client.delete(PODS, "js-w-0-3-abcde", namespace="default")
        await _pod(cluster, 0)
        await cluster.env.sleep(5)
        left = await _left(cluster)
        assert await _going(cluster) == ["1", "2", "3"]
        found = {index: [(each["type"], each.get("reason")) for each in left[index]["status"]["conditions"]] for index in "123"}
        assert found == {
            "1": [("DisruptionTarget", "ExclusivePlacementViolation"), ("Ready", None)],
            "2": [("DisruptionTarget", "PreemptionByScheduler")],
            "3": [("Ready", None), ("DisruptionTarget", "ExclusivePlacementViolation")],
        }
        assert condition(left["1"], "DisruptionTarget") == "True"

    _played(scenario)
