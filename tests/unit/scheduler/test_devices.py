"""Devices: pools, selectors, requests, constraints, taints, counters."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.controllers.scheduler.cache import NodeInfo
from kubemini.controllers.scheduler.devices import Catalogue, ClaimProblem, Inventory, allocate
from tests.unit.scheduler.samples import cluster, node

Tree = dict[str, Any]
DRIVER = "gpu.example.com"
CLASSES = {"gpu": {"metadata": {"name": "gpu"}, "spec": {"selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]}}}


def devices_of(name: str, *devices: Tree, generation: int = 1, count: int = 1, where: Tree | None = None, **spec: Any) -> Tree:
    """Return a slice of the pool of a node."""
    pool = {"name": name, "generation": generation, "resourceSliceCount": count}
    return {"spec": {"driver": DRIVER, "pool": pool, "devices": list(devices), **(where or {"nodeName": name}), **spec}}


def gpu(name: str, *, memory: str = "", taints: list[Tree] | None = None, **attributes: Any) -> Tree:
    """Return a device."""
    kinds = {str: "string", bool: "bool", int: "int"}
    device: Tree = {"name": name, "attributes": {key: {kinds[type(value)]: value} for key, value in attributes.items()}}
    if memory:
        device["capacity"] = {"memory": {"value": memory}}
    if taints:
        device["taints"] = taints
    return device


def claim(*requests: Tree, constraints: list[Tree] | None = None) -> Tree:
    """Return a claim."""
    devices: Tree = {"requests": list(requests)}
    if constraints:
        devices["constraints"] = constraints
    return {"metadata": {"name": "c", "uid": "u-c"}, "spec": {"devices": devices}}


def wants(name: str = "r", count: int = 1, *selectors: str, **more: Any) -> Tree:
    """Return a request."""
    exactly = {
        "deviceClassName": "gpu",
        "allocationMode": "ExactCount",
        "count": count,
        "selectors": [{"cel": {"expression": text}} for text in selectors],
        **more,
    }
    return {"name": name, "exactly": exactly}


def info(name: str = "a", **labels: str) -> NodeInfo:
    """Return a node."""
    return cluster(node(name, labels=labels)).nodes[name]


def got(slices: list[Tree], *claims: Tree, on: NodeInfo | None = None, allocated: tuple[str, ...] = ()) -> list[list[str]] | None:
    """Return the names of the devices that claims get on a node."""
    inventory = Inventory(Catalogue(slices), CLASSES, dict.fromkeys((DRIVER, "a", name) for name in allocated))
    found = allocate(list(claims), on or info(), inventory)
    return None if found is None else [[each["device"] for each in allocation["devices"]["results"]] for allocation in found]


def test_first_free_device() -> None:
    """A request gets the first free devices of the node in the order in which they are published."""
    slices = [devices_of("a", gpu("g0"), gpu("g1"), gpu("g2"))]
    assert got(slices, claim(wants(count=2))) == [["g0", "g1"]]
    assert got(slices, claim(wants(count=2)), allocated=("g0",)) == [["g1", "g2"]]
    assert got(slices, claim(wants(count=3)), allocated=("g0",)) is None
    assert got(slices, claim(wants()), on=info("b")) is None


def test_claims_of_a_pod_share_the_node() -> None:
    """All claims of a pod are served together, or none is."""
    slices = [devices_of("a", gpu("g0"), gpu("g1"))]
    assert got(slices, claim(wants()), claim(wants())) == [["g0"], ["g1"]]
    assert got(slices, claim(wants()), claim(wants(count=2))) is None


def test_selectors_see_attributes_and_capacity() -> None:
    """CEL sees attributes under the driver's domain, versions, booleans and quantities; a missing one is no match, not an error."""
    slices = [devices_of("a", gpu("small", model="s", memory="16Gi"), gpu("big", model="b", memory="80Gi", fast=True))]
    assert got(slices, claim(wants("r", 1, f"device.attributes['{DRIVER}'].model == 'b'"))) == [["big"]]
    assert got(slices, claim(wants("r", 1, f"device.capacity['{DRIVER}'].memory.compareTo(quantity('40Gi')) >= 0"))) == [["big"]]
    assert got(slices, claim(wants("r", 1, f"device.attributes['{DRIVER}'].fast"))) == [["big"]]
    assert got(slices, claim(wants("r", 1, "device.attributes['elsewhere.com'].x == 1"))) is None
    assert got(slices, claim(wants("r", 1, "!('x' in device.attributes['elsewhere.com'])"))) == [["small"]]


def test_problems_of_a_claim() -> None:
    """A missing class and an expression that does not compile are the claim's fault, on every node."""
    slices = [devices_of("a", gpu("g0"))]
    missing = {"name": "r", "exactly": {"deviceClassName": "none"}}
    with pytest.raises(ClaimProblem, match="request r: device class none does not exist"):
        got(slices, claim(missing))
    with pytest.raises(ClaimProblem, match="CEL compilation failed"):
        got(slices, claim(wants("r", 1, "device.driver ==")))


def test_only_complete_pools_of_the_newest_generation() -> None:
    """A pool counts once all slices of its newest generation are there; older ones are void."""
    half = devices_of("a", gpu("g0"), generation=2, count=2)
    assert got([half], claim(wants())) is None
    assert got([half, devices_of("a", gpu("g1"), generation=2, count=2)], claim(wants(count=2))) == [["g0", "g1"]]
    assert got([devices_of("a", gpu("old")), devices_of("a", gpu("new"), generation=2)], claim(wants())) == [["new"]]


def test_where_devices_can_be_used() -> None:
    """Devices are for one node, for those of a selector, or for all; the allocation says so."""
    everywhere = devices_of("net", gpu("g0"), where={"allNodes": True})
    assert got([everywhere], claim(wants())) == [["g0"]]
    term = {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r1"]}]}
    rack = devices_of("net", gpu("g0"), where={"nodeSelector": {"nodeSelectorTerms": [term]}})
    assert got([rack], claim(wants())) is None
    assert got([rack], claim(wants()), on=info("a", rack="r1")) == [["g0"]]
    found = allocate([claim(wants())], info("a", rack="r1"), Inventory(Catalogue([rack]), CLASSES, {}))
    assert found is not None
    assert found[0]["nodeSelector"] == {"nodeSelectorTerms": [term]}
    found = allocate([claim(wants())], info(), Inventory(Catalogue([everywhere]), CLASSES, {}))
    assert found is not None
    assert "nodeSelector" not in found[0]


def test_all_devices() -> None:
    """AllocationMode All takes every device that matches, or fails when one of them is taken."""
    slices = [devices_of("a", gpu("g0"), gpu("g1"))]
    every = {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}
    assert got(slices, claim(every)) == [["g0", "g1"]]
    assert got(slices, claim(every), allocated=("g1",)) is None


def test_alternatives_in_order() -> None:
    """The first alternative that fits is taken, and the result names it."""
    slices = [devices_of("a", gpu("g0", model="s"))]
    options = [
        {
            "name": "big",
            "deviceClassName": "gpu",
            "allocationMode": "ExactCount",
            "count": 1,
            "selectors": [{"cel": {"expression": f"device.attributes['{DRIVER}'].model == 'b'"}}],
        },
        {"name": "any", "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1},
    ]
    found = allocate([claim({"name": "r", "firstAvailable": options})], info(), Inventory(Catalogue(slices), CLASSES, {}))
    assert found is not None
    assert found[0]["devices"]["results"][0]["request"] == "r/any"


def test_constraints_make_the_search_go_back() -> None:
    """matchAttribute wants equal values, distinctAttribute different ones; the search tries combinations."""
    slices = [devices_of("a", gpu("g0", numa=0), gpu("g1", numa=1), gpu("g2", numa=1))]
    match = [{"matchAttribute": f"{DRIVER}/numa"}]
    assert got(slices, claim(wants(count=2), constraints=match)) == [["g1", "g2"]]
    distinct = [{"distinctAttribute": f"{DRIVER}/numa"}]
    assert got(slices, claim(wants(count=2), constraints=distinct)) == [["g0", "g1"]]
    assert got(slices, claim(wants(count=3), constraints=distinct)) is None


def test_device_taints() -> None:
    """A tainted device is left alone unless the request tolerates it; the result carries the tolerations."""
    taint = {"key": "broken", "value": "y", "effect": "NoSchedule"}
    slices = [devices_of("a", gpu("g0", taints=[taint]))]
    assert got(slices, claim(wants())) is None
    assert got(slices, claim(wants(tolerations=[{"key": "broken", "operator": "Exists"}]))) == [["g0"]]


def test_admin_access_sees_what_is_taken() -> None:
    """An administrator's request may look at allocated devices, and takes none away."""
    slices = [devices_of("a", gpu("g0"))]
    assert got(slices, claim(wants(adminAccess=True)), claim(wants()), allocated=()) == [["g0"], ["g0"]]
    assert got(slices, claim(wants(adminAccess=True)), allocated=("g0",)) == [["g0"]]


def test_shared_counters() -> None:
    """Partitions that draw on one counter set exclude each other once it is used up."""

    def part(name: str, slots: str) -> Tree:
        return {"name": name, "consumesCounters": [{"counterSet": "card", "counters": {"slots": {"value": slots}}}]}

    shared = [{"name": "card", "counters": {"slots": {"value": "4"}}}]
    slices = [devices_of("a", part("whole", "4"), part("half-0", "2"), part("half-1", "2"), sharedCounters=shared)]
    assert got(slices, claim(wants(count=2))) == [["half-0", "half-1"]]
    assert got(slices, claim(wants()), allocated=("half-0",)) == [["half-1"]]
    assert got(slices, claim(wants()), allocated=("whole",)) is None
