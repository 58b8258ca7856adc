"""Which changes of a node may help a pod that was refused."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.api.resources import NODES, PODS
from kubemini.controllers.scheduler.hints import may_help
from kubemini.sim.cluster import SimCluster, simulate

Tree = dict[str, Any]
TAINT = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
TOLERATION = {"key": "dedicated", "operator": "Exists"}
CONTROLLERS = ("namespaces", "service-accounts", "garbage-collector", "nodes", "scheduler", "kubelet")


def node(labels: Tree | None = None, cpu: str = "4", **spec: Any) -> Tree:
    """Return a node."""
    return {"metadata": {"name": "n", "labels": labels or {}}, "spec": spec, "status": {"allocatable": {"cpu": cpu, "pods": "10"}}}


def spec(cpu: str = "1", **more: Any) -> Tree:
    """Return the spec of a pod."""
    return {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}], **more}


@pytest.mark.parametrize(
    "plugin, pod, old, new, helps",
    [
        ("NodeUnschedulable", spec(), node(unschedulable=True), node(), True),
        ("NodeUnschedulable", spec(), node(), node(unschedulable=True), False),
        ("NodeUnschedulable", spec(), node(), node({"a": "b"}), False),
        ("TaintToleration", spec(), node(taints=[TAINT]), node(), True),
        ("TaintToleration", spec(), node(taints=[TAINT]), node({"a": "b"}, taints=[TAINT]), False),
        ("TaintToleration", spec(tolerations=[TOLERATION]), node(taints=[TAINT]), node(), False),
        ("NodeAffinity", spec(nodeSelector={"a": "b"}), node(), node({"a": "b"}), True),
        ("NodeAffinity", spec(nodeSelector={"a": "b"}), node(), node({"a": "c"}), False),
        ("NodeAffinity", spec(nodeSelector={"a": "b"}), node({"a": "b"}), node({"a": "b", "c": "d"}), False),
        ("NodeResourcesFit", spec("6"), node(), node(cpu="8"), True),
        ("NodeResourcesFit", spec("6"), node(), node(cpu="5"), False),
        ("NodeResourcesFit", spec("6"), node(cpu="8"), node({"a": "b"}, cpu="8"), False),
        ("NodePorts", spec(), node(), node(cpu="8"), False),
        ("PodTopologySpread", spec(), node(), node({"zone": "a"}), True),
    ],
)
def test_each_plugin_has_its_hint(plugin: str, pod: Tree, old: Tree, new: Tree, helps: bool) -> None:
    """A pod is tried again only for a change that can turn what a plugin said; plugins without a hint hope for any change."""
    assert may_help([plugin], pod, old, new) is helps
    assert may_help(["NodePorts", plugin], pod, old, new) is helps


def test_a_change_that_cannot_help_costs_no_attempt() -> None:
    """A label that no pod asks for wakes nobody, one that a pod asks for wakes that pod alone, and places it."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(NODES, node())
        await cluster.settle(60.0)
        for name, wanted in (("a", {"a": "b"}), ("c", {"c": "d"})):
            meta = {"name": name, "namespace": "default"}
            await cluster.client.create(PODS, {"metadata": meta, "spec": spec(nodeSelector=wanted)})
        await cluster.settle(60.0)

        async def patched(labels: Tree) -> dict[str, int]:
            before = cluster.store.revision
            await cluster.client.patch(NODES, "n", {"metadata": {"labels": labels}})
            await cluster.settle(60.0)
            events = [record.obj for record in cluster.events.values() if record.revision > before]
            told = [each["involvedObject"]["name"] for each in events if each["involvedObject"]["kind"] == "Pod"]
            return {name: told.count(name) for name in ("a", "c")}

        assert await patched({"x": "y"}) == {"a": 0, "c": 0}
        found = await patched({"a": "b"})
        assert found["a"] > 0
        assert found["c"] == 0
        assert (await cluster.client.get(PODS, "a", "default"))["spec"]["nodeName"] == "n"

    simulate(scenario, seed=1, controllers=CONTROLLERS)
