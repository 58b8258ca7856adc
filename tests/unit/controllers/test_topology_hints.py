"""Hints of the annotation topology-mode: in proportion to the CPU of zones, or none, with an event."""

from collections import Counter
from typing import Any

import pytest

from kubemini.api.resources import DEPLOYMENTS, ENDPOINT_SLICES, EVENTS, NODES, SERVICES
from kubemini.controllers.endpoints.topology import Allocation, allocated, is_overloaded, shares
from kubemini.sim.cluster import SimCluster, simulate

ZONE = "topology.kubernetes.io/zone"
MODE = "service.kubernetes.io/topology-mode"


def node(name: str, zone: str, cpu: str = "4", *, ready: bool = True, labels: dict[str, str] | None = None) -> dict[str, Any]:
    """Return a node."""
    about = {"name": name, "labels": {**({ZONE: zone} if zone else {}), **(labels or {})}}
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return {"metadata": about, "spec": {}, "status": {"allocatable": {"cpu": cpu, "pods": "110"}, "conditions": conditions}}


def test_zones_share_by_the_cpu_of_ready_nodes() -> None:
    """Control planes and nodes that are not ready do not count; one without a zone or CPU, or a single zone, spoils all."""
    control = {"node-role.kubernetes.io/control-plane": ""}
    nodes = [node("a", "x", "3"), node("b", "y", "1"), node("c", "y", "9", ready=False), node("d", "y", "9", labels=control)]
    assert shares(nodes) == {"x": 0.75, "y": 0.25}
    assert shares([*nodes, node("e", "")]) is shares([*nodes, node("e", "x", "0")]) is shares(nodes[:1]) is None


@pytest.mark.parametrize(
    "share,total,expected",
    [
        ({"x": 0.75, "y": 0.25}, 4, {"x": Allocation(3.0, 3), "y": Allocation(1.0, 1)}),
        ({"x": 0.5, "y": 0.5}, 6, {"x": Allocation(3.0, 3), "y": Allocation(3.0, 3)}),
        ({"x": 0.5, "y": 0.5}, 12, {"x": Allocation(6.0, 7), "y": Allocation(6.0, 7)}),
        ({"x": 0.5, "y": 0.5}, 1, "Insufficient number of endpoints (1 endpoints, 2 zones)"),
        (
            {"x": 0.7, "y": 0.15, "z": 0.15},
            3,
            "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold (3 endpoints, 3 zones)",
        ),
        (None, 9, "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes"),
    ],
)
def test_endpoints_are_allocated_by_share(share: dict[str, float] | None, total: int, expected: Any) -> None:
    """With a least that keeps each within 120 % of its load, and what is spare on top."""
    assert allocated(share, total) == expected


def test_hints_fit_until_a_zone_has_too_few() -> None:
    """Down to the least number; no hints always fit, and any are wrong where nothing is known of nodes."""
    share = {"x": 0.5, "y": 0.5}
    assert not is_overloaded({"x": 6, "y": 5}, share)
    assert is_overloaded({"x": 8, "y": 4}, share)
    assert is_overloaded({"x": 4}, share)
    assert is_overloaded({"x": 1}, None)
    assert not is_overloaded({}, None)


def test_endpoints_are_lent_to_the_zone_that_lacks_them() -> None:
    """All pods run in one of two zones; losing the zone, or the annotation, takes the hints away. Events tell each."""

    async def scenario(cluster: SimCluster) -> None:
        client = cluster.client
        for name, zone in (("a", "x"), ("b", "y")):
            await client.create(NODES, node(name, zone))
        pods = {"nodeName": "a", "containers": [{"name": "c", "image": "i"}]}
        template = {"metadata": {"labels": {"app": "d"}}, "spec": pods}
        spec = {"replicas": 4, "selector": {"matchLabels": {"app": "d"}}, "template": template}
        await client.create(DEPLOYMENTS, {"metadata": {"name": "d", "namespace": "default"}, "spec": spec})
        about = {"name": "s", "namespace": "default", "annotations": {MODE: "Auto"}}
        await client.create(SERVICES, {"metadata": about, "spec": {"selector": {"app": "d"}, "ports": [{"port": 80}]}})

        async def hints() -> Counter[str]:
            await cluster.settle(20)
            (slice_,) = await client.list(ENDPOINT_SLICES, "default")
            assert len(slice_["endpoints"]) == 4
            return Counter(zone["name"] for each in slice_["endpoints"] for zone in each.get("hints", {}).get("forZones", ()))

        async def said() -> list[str]:
            found = [each for each in await client.list(EVENTS, "default") if each["reason"].startswith("TopologyAwareHints")]
            return [f"{each['type']} {each['message']}" for each in sorted(found, key=lambda each: str(each["metadata"]["name"]))]

        assert await hints() == {"x": 2, "y": 2}
        before = [each["metadata"]["resourceVersion"] for each in await client.list(ENDPOINT_SLICES, "default")]
        await client.patch(SERVICES, "s", {"metadata": {"annotations": {"note": "1"}}}, namespace="default")
        assert await hints() == {"x": 2, "y": 2}
        assert [each["metadata"]["resourceVersion"] for each in await client.list(ENDPOINT_SLICES, "default")] == before
        await client.patch(NODES, "b", {"metadata": {"labels": {ZONE: "x"}}})
        assert await hints() == {}
        await client.patch(NODES, "b", {"metadata": {"labels": {ZONE: "y"}}})
        await client.patch(SERVICES, "s", {"metadata": {"annotations": {"note": "2"}}}, namespace="default")
        assert await hints() == {"x": 2, "y": 2}
        await client.patch(SERVICES, "s", {"metadata": {"annotations": {MODE: None}}}, namespace="default")
        assert await hints() == {}
        found = [each for index, each in enumerate(await said()) if index == 0 or "without" not in each]
        assert "Normal Topology Aware Hints has been enabled, addressType: IPv4" in found
        assert f"Warning {NO_NODES}, addressType: IPv4" in found
        assert found[-1] == "Warning Topology Aware Hints has been disabled, addressType: IPv4"

    simulate(scenario, fleet="none")


NO_NODES = "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes"
