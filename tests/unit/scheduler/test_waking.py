"""Whatever makes room wakes a pod that waits for it: each test is a small cluster in which only one event can help."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kubemini.api.resources import (
    DEVICE_CLASSES,
    NAMESPACES,
    NODES,
    POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from kubemini.controllers.scheduler.claims import DeviceClaims
from kubemini.controllers.scheduler.controller import SchedulerController
from kubemini.machinery.errors import ApiStatus, Forbidden
from kubemini.sim.cluster import SimCluster, simulate

Tree = dict[str, Any]
CONTROLLERS = ("namespaces", "service-accounts", "garbage-collector", "nodes", "scheduler", "kubelet")
GATES = {"GenericWorkload": True, "GangScheduling": True}


def play(scenario: Callable[[SimCluster], Awaitable[None]], *cpus: str) -> None:
    """Run a scenario on nodes n-0, n-1 … with so much cpu, each in a rack of its own."""

    async def whole(cluster: SimCluster) -> None:
        await cluster.settle(60.0)
        for name, value, policy in (("low", 1, "PreemptLowerPriority"), ("high", 100, "PreemptLowerPriority"), ("polite", 100, "Never")):
            await cluster.client.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value, "preemptionPolicy": policy})
        for number, cpu in enumerate(cpus):
            labels = {"kubernetes.io/hostname": f"n-{number}", "rack": f"r{number}"}
            allocatable = {"cpu": cpu, "memory": "64Gi", "pods": "110"}
            await cluster.client.create(NODES, {"metadata": {"name": f"n-{number}", "labels": labels}, "status": {"allocatable": allocatable}})
        await cluster.settle(60.0)
        await scenario(cluster)

    simulate(whole, seed=1, controllers=CONTROLLERS, feature_gates=GATES)


async def make(cluster: SimCluster, name: str, cpu: str = "1", *, namespace: str = "default", labels: Tree | None = None, **spec: Any) -> None:
    """Create a pod and let it come to rest."""
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    body = {"metadata": {"name": name, "namespace": namespace, "labels": labels or {}}, "spec": {"containers": [container], **spec}}
    await cluster.client.create(PODS, body)
    await cluster.settle(60.0)


async def delete(cluster: SimCluster, name: str) -> None:
    """Delete a pod and let the rest come to rest."""
    await cluster.delete_pod("default", name)
    await cluster.settle(60.0)


async def bound(cluster: SimCluster) -> list[str]:
    """Return the names of the pods that have a node."""
    return [each["metadata"]["name"] for each in await cluster.client.list(PODS) if each["spec"].get("nodeName")]


def test_a_gang_does_not_speak_for_equal_pods() -> None:
    """Room for one is no room for a gang of two; an equal pod that is in no gang takes it."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(
            POD_GROUPS, {"metadata": {"name": "g", "namespace": "default"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}
        )
        for name in ("a", "b"):
            await make(cluster, name, "2", priorityClassName="high")
        for name in ("g-0", "g-1"):
            await make(cluster, name, "2", priorityClassName="high", schedulingGroup={"podGroupName": "g"})
        await make(cluster, "single", "2", priorityClassName="high")
        await delete(cluster, "a")
        assert await bound(cluster) == ["b", "single"]

    play(scenario, "4")


def test_one_that_may_not_preempt_does_not_speak_for_one_that_may() -> None:
    """Where less than enough was freed, the equal pod that may preempt takes the rest."""

    async def scenario(cluster: SimCluster) -> None:
        await make(cluster, "weak", "2", priorityClassName="low", terminationGracePeriodSeconds=0)
        await make(cluster, "strong", "2", priorityClassName="high")
        for name, level in (("courteous", "polite"), ("pushing", "high")):
            await make(cluster, name, "3", priorityClassName=level)
        await delete(cluster, "strong")
        assert await bound(cluster) == ["pushing"]

    play(scenario, "4")


def test_a_node_that_goes_takes_its_domain_along() -> None:
    """Pods that are spread over racks wait for a rack that is full until it is no more."""

    async def scenario(cluster: SimCluster) -> None:
        spread = {"topologyKey": "rack", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "s"}}}
        for name in ("a", "b"):
            await make(cluster, name, labels={"app": "s"}, topologySpreadConstraints=[spread])
        assert await bound(cluster) == ["a"]
        await cluster.client.delete(NODES, "n-1")
        await cluster.settle(60.0)
        assert await bound(cluster) == ["a", "b"]

    play(scenario, "4", "500m")


def test_a_namespace_changes_whom_a_term_means() -> None:
    """A pod that others keep away by its namespace's labels comes when those change."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(NAMESPACES, {"metadata": {"name": "other", "labels": {"loud": "yes"}}})
        await cluster.settle(60.0)
        term = {"topologyKey": "rack", "labelSelector": {"matchLabels": {"app": "x"}}, "namespaceSelector": {"matchLabels": {"loud": "yes"}}}
        await make(cluster, "quiet", affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
        await make(cluster, "loud", namespace="other", labels={"app": "x"})
        assert await bound(cluster) == ["quiet"]
        await cluster.client.patch(NAMESPACES, "other", {"metadata": {"labels": {"loud": None}}})
        await cluster.settle(60.0)
        assert sorted(await bound(cluster)) == ["loud", "quiet"]

    play(scenario, "4")


def test_a_nomination_that_is_taken_back_makes_room() -> None:
    """A node is kept for a nominated pod only as long as its status says so, whoever wrote it."""

    async def scenario(cluster: SimCluster) -> None:
        await make(cluster, "nominated", "4", priorityClassName="high", nodeSelector={"rack": "none"})
        await cluster.client.patch(PODS, "nominated", {"status": {"nominatedNodeName": "n-0"}}, namespace="default", subresource="status")
        await cluster.settle(60.0)
        await make(cluster, "behind", "4", priorityClassName="low")
        assert await bound(cluster) == []
        await cluster.client.patch(PODS, "nominated", {"status": {"nominatedNodeName": None}}, namespace="default", subresource="status")
        await cluster.settle(60.0)
        assert await bound(cluster) == ["behind"]

    play(scenario, "4")


@pytest.mark.parametrize("where", ["containers", "initContainers"])
def test_a_pod_that_asks_for_less_makes_room(where: str) -> None:
    """What a resize gives back, of a container or a sidecar, goes to a pod that waits."""

    async def scenario(cluster: SimCluster) -> None:
        sidecar = {"name": "s", "image": "i", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}
        await make(cluster, "big", "2", initContainers=[sidecar])
        await make(cluster, "small", "2")
        assert await bound(cluster) == ["big"]
        name, cpu = ("c", "1") if where == "containers" else ("s", "0")
        smaller = {"spec": {where: [{"name": name, "resources": {"requests": {"cpu": cpu}}}]}}
        await cluster.client.patch(PODS, "big", smaller, namespace="default", type="strategic", subresource="resize")
        await cluster.settle(60.0)
        assert await bound(cluster) == ["big", "small"]

    play(scenario, "4")


def test_a_binding_that_is_refused_is_told_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pod says what refused it, others may take the place meanwhile, and it is bound after its back-off."""
    bind = SchedulerController._bind
    times: list[float] = []

    async def scenario(cluster: SimCluster) -> None:
        async def once(self: SchedulerController, assumed: Any) -> None:
            times.append(cluster.loop.time())
            if len(times) == 1:
                raise Forbidden("not today")
            await bind(self, assumed)

        monkeypatch.setattr(SchedulerController, "_bind", once)
        await make(cluster, "p")
        assert await bound(cluster) == ["p"]
        events = [each["note"] for each in await cluster.list("events.events.k8s.io") if each["reason"] == "FailedScheduling"]
        assert events == ['running Bind plugin "DefaultBinder": not today']
        assert times[1] - times[0] >= 1.0

    play(scenario, "4")


def test_members_of_a_gang_are_bound_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The binding of one member is lost: the others are bound at once, and it comes after its back-off."""
    bind = SchedulerController._bind
    tried: list[str] = []

    async def once(self: SchedulerController, assumed: Any) -> None:
        tried.append(assumed.pod["metadata"]["name"])
        if len(tried) == 1:
            raise ApiStatus("the connection to the server was lost")
        await bind(self, assumed)

    async def scenario(cluster: SimCluster) -> None:
        monkeypatch.setattr(SchedulerController, "_bind", once)
        await cluster.client.create(
            POD_GROUPS, {"metadata": {"name": "g", "namespace": "default"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}}
        )
        for name in ("g-0", "g-1", "g-2"):
            await make(cluster, name, schedulingGroup={"podGroupName": "g"})
        assert await bound(cluster) == ["g-0", "g-1", "g-2"]
        assert tried == ["g-0", "g-1", "g-2", "g-0"]

    play(scenario, "4")


@pytest.mark.parametrize("minimum", [1, 2])
def test_a_gang_does_not_drive_out_its_own(minimum: int) -> None:
    """A member that preempts does so in its turn, before less important ones have a place: they are no victims, and wait where their room is gone."""

    async def scenario(cluster: SimCluster) -> None:
        spec = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
        await make(cluster, "weak", "3", priorityClassName="low")
        for name, cpu, level in (("major", "4", "high"), ("minor", "1", "low")):
            await make(cluster, name, cpu, priorityClassName=level, schedulingGroup={"podGroupName": "g"})
        await cluster.client.create(POD_GROUPS, {"metadata": {"name": "g", "namespace": "default"}, "spec": spec})
        await cluster.settle(60.0)
        assert await bound(cluster) == (["major"] if minimum == 1 else ["weak"])
        assert "minor" in [each["metadata"]["name"] for each in await cluster.client.list(PODS)]

    play(scenario, "4")


ONE_DEVICE = {"devices": {"requests": [{"name": "g", "exactly": {"deviceClassName": "gpu"}}]}}


def test_devices_come_where_a_pod_may_preempt() -> None:
    """A full node hides that it lacks devices, too: once it has them the pod preempts, though devices were not what refused it."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(DEVICE_CLASSES, {"metadata": {"name": "gpu"}, "spec": {}})
        await cluster.client.create(RESOURCE_CLAIMS, {"metadata": {"name": "c", "namespace": "default"}, "spec": ONE_DEVICE})
        await make(cluster, "weak", "3", priorityClassName="low")
        await make(cluster, "strong", "3", priorityClassName="high", resourceClaims=[{"name": "d", "resourceClaimName": "c"}])
        assert await bound(cluster) == ["weak"]
        pool = {"name": "n-0", "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": "gpu.example.com", "nodeName": "n-0", "pool": pool, "devices": [{"name": "g0"}]}
        await cluster.client.create(RESOURCE_SLICES, {"metadata": {"name": "s"}, "spec": spec})
        await cluster.settle(60.0)
        assert await bound(cluster) == ["strong"]

    play(scenario, "4")


def test_members_of_a_gang_wait_for_their_claims() -> None:
    """A pod whose claims were not made yet is not tried, in a gang or not."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(RESOURCE_CLAIM_TEMPLATES, {"metadata": {"name": "t", "namespace": "default"}, "spec": {"spec": ONE_DEVICE}})
        await cluster.client.create(
            POD_GROUPS, {"metadata": {"name": "g", "namespace": "default"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}}}
        )
        members: tuple[tuple[str, Tree], ...] = (("alone", {}), ("member", {"schedulingGroup": {"podGroupName": "g"}}))
        for name, more in members:
            await make(cluster, name, resourceClaims=[{"name": "d", "resourceClaimTemplateName": "t"}], **more)
        assert await bound(cluster) == []

    play(scenario, "4")


@pytest.mark.parametrize("done", [True, False])
def test_an_allocation_whose_answer_was_lost_is_looked_up(monkeypatch: pytest.MonkeyPatch, done: bool) -> None:
    """Where it was written the pod is bound in the same try; where not, the pod says so and tries again."""
    begin = DeviceClaims.__init__
    lost: list[str] = []

    class Client:
        """Loses the first answer about a claim's status."""

        def __init__(self, inner: Any) -> None:
            self._inner = inner

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

        async def update_status(self, resource: Any, obj: Tree) -> Tree:
            """Write, and lose the answer of the first one, or the request."""
            first = not lost
            lost.append(obj["metadata"]["name"])
            written: Tree = await self._inner.update_status(resource, obj) if done or not first else obj
            if first:
                raise ApiStatus("the connection to the server was lost")
            return written

    def started(self: DeviceClaims, ctx: Any) -> None:
        begin(self, ctx)
        monkeypatch.setattr(self, "_client", Client(ctx.client))

    monkeypatch.setattr(DeviceClaims, "__init__", started)

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(DEVICE_CLASSES, {"metadata": {"name": "gpu"}, "spec": {}})
        pool = {"name": "n-0", "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": "gpu.example.com", "nodeName": "n-0", "pool": pool, "devices": [{"name": "g0"}]}
        await cluster.client.create(RESOURCE_SLICES, {"metadata": {"name": "s"}, "spec": spec})
        await cluster.client.create(RESOURCE_CLAIMS, {"metadata": {"name": "c", "namespace": "default"}, "spec": ONE_DEVICE})
        await cluster.settle(60.0)
        await make(cluster, "p", resourceClaims=[{"name": "d", "resourceClaimName": "c"}])
        assert await bound(cluster) == ["p"]
        told = [each["note"] for each in await cluster.list("events.events.k8s.io") if each["reason"] == "FailedScheduling"]
        assert told == ([] if done else ['running PreBind plugin "DynamicResources": the connection to the server was lost'])

    play(scenario, "4")
