"""Nodes that fail or shut under placed Workloads, and pods that can no longer get to theirs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kubemini import SimCluster
from kubemini.api.trees import Tree
from kubemini.controllers.kueue.topology.failures import hosts_of, wish
from tests.unit.kueue.test_lives import KUEUE, condition, job, play, queues, told

TAINT = {"key": "example.com/broken", "value": "true", "effect": "NoExecute"}
ENDED = "Pod terminated by Kueue NodeController due to node taint"


async def hosts(cluster: SimCluster, *names: str, cpu: str = "1", **racks: str) -> None:
    """Make nodes of one rack, each with room for one pod, and queues for them; keywords give nodes racks of their own, as ``rack,cpu``."""
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "", "lastTransitionTime": cluster.env.stamp()}
    for name in (*names, *racks):
        rack, _, size = racks.get(name, f"r,{cpu}").partition(",")
        resources = {"cpu": size, "memory": "64Gi", "pods": "110"}
        labels = {"kubernetes.io/hostname": name, "rack": rack, "pool": "tas"}
        status = {"capacity": resources, "allocatable": resources, "conditions": [ready]}
        await cluster.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status})
    built = queues(cpu="100")
    built[0]["spec"] = {"nodeLabels": {"pool": "tas"}, "topologyName": "t"}
    levels = [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]
    await cluster.apply([{"apiVersion": KUEUE, "kind": "Topology", "metadata": {"name": "t"}, "spec": {"levels": levels}}, *built])
    await cluster.settle(30)


def placed_job(pods: int = 1, tolerations: list[Tree] | None = None, how: str = "required") -> Tree:
    """Return a queued Job that wants to stand within one rack."""
    made = job("j", pods=pods)
    made["spec"]["backoffLimit"] = 6
    made["spec"]["template"]["metadata"] = {"annotations": {f"kueue.x-k8s.io/podset-{how}-topology": "rack"}}
    if tolerations:
        made["spec"]["template"]["spec"]["tolerations"] = tolerations
    return made


async def places(cluster: SimCluster) -> list[str]:
    """Return the hosts that the only Workload has in its assignment."""
    (workload,) = await cluster.list("workload.kueue.x-k8s.io")
    return sorted(hosts_of(workload))


async def pods_of(cluster: SimCluster) -> list[Tree]:
    """Return the pods that are not over."""
    return [each for each in await cluster.list("pod") if each["status"]["phase"] not in ("Succeeded", "Failed")]


async def taint(cluster: SimCluster, name: str, *taints: Tree) -> None:
    """Give a node taints."""
    await cluster.patch(f"node/{name}", {"spec": {"taints": list(taints)}})


def test_a_pod_that_cannot_get_to_its_node_fails() -> None:
    """A pod that waits for a node which has shut is let fail, its node is replaced, and its successor goes to the new one."""

    async def scenario(cluster: SimCluster) -> None:
        await hosts(cluster, "a", "b")
        # Kueue knows nothing of ports: the pod is sent there, and the scheduler does not let it in
        ports = [{"containerPort": 80, "hostPort": 80}]
        blocker: Tree = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "late", "namespace": "default"},
            "spec": {"containers": [{"name": "c", "image": "i", "ports": ports}], "nodeName": "a"},
        }
        await cluster.apply(blocker)
        made = placed_job()
        made["spec"]["template"]["spec"]["containers"][0]["ports"] = ports
        await cluster.apply(made)
        await asyncio.sleep(5)
        assert await places(cluster) == ["a"]
        (waiting,) = [each for each in await pods_of(cluster) if each["metadata"]["name"] != "late"]
        assert "nodeName" not in waiting["spec"]
        await taint(cluster, "a", {**TAINT, "effect": "NoSchedule"})
        await asyncio.sleep(30)
        failed = next(each for each in await cluster.list("pod") if each["metadata"]["uid"] == waiting["metadata"]["uid"])
        assert failed["status"]["phase"] == "Failed"
        assert condition(failed, "TerminatedByKueue") == ("True", "UnschedulableOnAssignedNode", ENDED)
        assert ("Normal", "PodTerminatedByKueue", ENDED) in await told(cluster, "Pod")
        assert await places(cluster) == ["b"]
        assert [each["spec"].get("nodeName") for each in await pods_of(cluster) if each["metadata"]["name"] != "late"] == ["b"]

    play(scenario)


def test_a_taint_that_is_borne_for_a_time() -> None:
    """While its pods bear a taint the place stays; once they are gone it is replaced."""

    async def scenario(cluster: SimCluster) -> None:
        await hosts(cluster, "a", "b")
        await cluster.apply(placed_job(tolerations=[{"key": TAINT["key"], "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 20}]))
        await asyncio.sleep(5)
        (was,) = await places(cluster)
        await taint(cluster, was, TAINT)
        await asyncio.sleep(10)
        assert await places(cluster) == [was]
        await asyncio.sleep(60)
        (now,) = await places(cluster)
        assert now != was
        assert [each["spec"].get("nodeName") for each in await pods_of(cluster)] == [now]

    play(scenario)


def test_a_taint_that_is_borne_for_good() -> None:
    """A taint that is tolerated without limit does not count, whoever stands there."""

    async def scenario(cluster: SimCluster) -> None:
        await hosts(cluster, "a", "b")
        await cluster.apply(placed_job(tolerations=[{"key": TAINT["key"], "operator": "Exists"}]))
        await asyncio.sleep(5)
        (was,) = await places(cluster)
        await taint(cluster, was, TAINT)
        for each in await pods_of(cluster):
            await cluster.delete(f"pod/{each['metadata']['name']}")
        await asyncio.sleep(60)
        assert await places(cluster) == [was]

    play(scenario)


@pytest.mark.parametrize("gate, moves", [(True, False), (False, True)])
def test_whether_pods_are_asked(gate: bool, moves: bool) -> None:
    """Running pods keep a tainted place, unless ``TASReplaceNodeOnPodTermination`` is off: then it is replaced at once."""

    async def scenario(cluster: SimCluster) -> None:
        await hosts(cluster, "a", "b")
        await cluster.apply(placed_job())
        await asyncio.sleep(5)
        (was,) = await places(cluster)
        await taint(cluster, was, {**TAINT, "effect": "NoSchedule"})
        await asyncio.sleep(20)
        assert (await places(cluster) != [was]) is moves

    settings: dict[str, Any] = {"featureGates": {"TASReplaceNodeOnPodTermination": gate}}
    play(scenario, kueue=settings)


def test_a_pod_for_a_former_place_fails() -> None:
    """A pod that is sent to a node where its Workload has no place (any more) is let fail."""

    async def scenario(cluster: SimCluster) -> None:
        await hosts(cluster, "a", "b")
        await cluster.apply(placed_job())
        await asyncio.sleep(5)
        (here,) = await places(cluster)
        (workload,) = await cluster.list("workload.kueue.x-k8s.io")
        there = {"a": "b", "b": "a"}[here]
        notes = {"kueue.x-k8s.io/workload": workload["metadata"]["name"], "kueue.x-k8s.io/podset-required-topology": "rack"}
        stray: Tree = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "stray", "namespace": "default", "annotations": notes},
            "spec": {
                "nodeSelector": {"kubernetes.io/hostname": there},
                "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "9"}}}],
            },
        }
        await cluster.apply(stray)
        await asyncio.sleep(5)
        assert (await cluster.get("pod/stray"))["status"]["phase"] == "Failed"
        assert len(await pods_of(cluster)) == 1

    play(scenario)


def test_the_second_failure_is_named_last() -> None:
    """Two failed nodes evict; the one that failed first stands first in the message."""

    async def scenario(cluster: SimCluster) -> None:
        await hosts(cluster, "a", "b", cpu="1")
        await cluster.apply(placed_job(pods=2))
        await asyncio.sleep(5)
        assert await places(cluster) == ["a", "b"]
        await cluster.delete("node/b")
        await asyncio.sleep(0.5)
        await cluster.delete("node/a")
        await asyncio.sleep(5)
        message = "Workload eviction triggered due to multiple TAS assigned node failures, including: b, a"
        assert ("Normal", "EvictedDueToNodeFailures", message) in await told(cluster, "Workload")

    play(scenario)


def test_misses_are_tried_again_ever_more_rarely() -> None:
    """Without a node to go to, and without failing fast, the second pass doubles its pauses until there is one."""

    async def scenario(cluster: SimCluster) -> None:
        await hosts(cluster, "a")
        await cluster.apply(placed_job())
        await asyncio.sleep(5)
        await cluster.delete("node/a")
        await asyncio.sleep(60)
        events = [each for each in await cluster.list("event") if each["reason"] == "SecondPassFailed"]
        counts = [int((each.get("series") or {}).get("count") or each.get("count") or 1) for each in events]
        assert sum(counts) in range(4, 8)
        await hosts(cluster, "b")
        await asyncio.sleep(40)
        assert await places(cluster) == ["b"]

    play(scenario, kueue={"featureGates": {"TASFailedNodeReplacementFailFast": False}})


def test_a_replacement_is_wanted_as_the_place_was() -> None:
    """Where a rack was preferred, the rack that fits best is looked for, not the fullest host."""

    async def scenario(cluster: SimCluster) -> None:
        await hosts(cluster, a="r1,1", b="r2,3", c="r3,2", d="r3,2")
        await cluster.apply(placed_job(how="preferred"))
        await asyncio.sleep(5)
        assert await places(cluster) == ["a"]
        await cluster.delete("node/a")
        await asyncio.sleep(20)
        assert await places(cluster) == ["b"]

    play(scenario)


def test_a_level_that_is_gone_cannot_be_required_of_a_replacement() -> None:
    """Without the level that a Workload requires, nothing replaces its failed node: it is evicted."""

    async def scenario(cluster: SimCluster) -> None:
        await hosts(cluster, "a", "b")
        await cluster.apply(placed_job())
        await asyncio.sleep(5)
        (was,) = await places(cluster)
        await cluster.patch("topology/t", {"spec": {"levels": [{"nodeLabel": "kubernetes.io/hostname"}]}})
        await asyncio.sleep(5)
        await cluster.delete(f"node/{was}")
        await asyncio.sleep(10)
        message = f"Workload was evicted as there was no replacement for unhealthy node(s): {was}"
        assert ("Normal", "EvictedDueToNodeFailures", message) in await told(cluster, "Workload")

    play(scenario)


def test_broken_slices_are_mended_where_they_are() -> None:
    """Missing pods go to the domain of the slice that they complete, in the finest slices that they make up; whole slices go anywhere."""
    levels = ["block", "rack", "kubernetes.io/hostname"]
    layers = {"podsetSliceRequiredTopologyConstraints": [{"topology": "block", "size": 4}, {"topology": "rack", "size": 2}]}
    rest = [(("b0", "r0", "h0"), 1), (("b0", "r1", "h1"), 2), (("b1", "r0", "h2"), 4)]
    assert wish({"preferred": "block", **layers}, levels, rest, 1) == ({"preferred": "block"}, ("b0", "r0"))
    two = {"preferred": "block", "podSetSliceRequiredTopology": "rack", "podSetSliceSize": 2}
    assert wish({"preferred": "block", **layers}, levels, rest[1:], 2) == (two, ("b0",))
    assert wish({"preferred": "block", **layers}, levels, rest[2:], 4) == ({"preferred": "block", **layers}, None)
    assert wish({"required": "block"}, levels, rest, 1) == ({"required": "block"}, ("b0",))
    only = {"podSetSliceRequiredTopology": "block", "podSetSliceSize": 4}
    assert wish(only, levels, rest, 1) == ({"unconstrained": True}, ("b0",))
