"""Volumes: which claims stop a pod, which nodes serve them, which volume is chosen."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kubemini.controllers.scheduler import volumes
from kubemini.controllers.scheduler.cache import NodeInfo
from kubemini.controllers.scheduler.deciding import Rejection
from kubemini.controllers.scheduler.filters import Refusal
from kubemini.controllers.scheduler.volume_binding import VolumeBinder, VolumePlan
from tests.unit.scheduler.samples import cluster, node, pod

Tree = dict[str, Any]


class Shelf:
    """Storage from plain dicts."""

    def __init__(self, *objects: Tree) -> None:
        self.by_kind: dict[tuple[str, str], Tree] = {(each["kind"], each["metadata"]["name"]): each for each in objects}
        self.promised: dict[str, str] = {}
        self.spaces: list[Tree] | None = None

    def claim(self, namespace: str, name: str) -> Tree | None:
        """Return a claim."""
        return self.by_kind.get(("Claim", name))

    def volume(self, name: str) -> Tree | None:
        """Return a volume."""
        return self.by_kind.get(("Volume", name))

    def volumes_of(self, storage_class: str) -> Iterable[Tree]:
        """Return the volumes of a class."""
        return [each for (kind, _), each in self.by_kind.items() if kind == "Volume" and each["spec"].get("storageClassName", "") == storage_class]

    def storage_class(self, name: str) -> Tree | None:
        """Return a class."""
        return self.by_kind.get(("Class", name))

    def csi_node(self, name: str) -> Tree | None:
        """Return a CSINode."""
        return self.by_kind.get(("CSINode", name))

    def capacities(self, storage_class: str) -> list[Tree] | None:
        """Return published capacities."""
        return self.spaces

    def taken(self, volume: str) -> str | None:
        """Return whom a volume was promised to."""
        return self.promised.get(volume)


def claim(name: str = "c", *, bound: str = "", size: str = "5Gi", of: str = "late", **meta: Any) -> Tree:
    """Return a claim."""
    spec: Tree = {"storageClassName": of, "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    if bound:
        spec["volumeName"] = bound
    return {
        "kind": "Claim",
        "metadata": {"name": name, "namespace": "default", "uid": f"u-{name}", **meta},
        "spec": spec,
        "status": {"phase": "Bound" if bound else "Pending"},
    }


def volume(name: str, *, size: str = "10Gi", on: str = "", of: str = "late", **more: Any) -> Tree:
    """Return an available volume, on one node if given."""
    spec: Tree = {"storageClassName": of, "accessModes": ["ReadWriteOnce"], "capacity": {"storage": size}, **more}
    if on:
        term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [on]}]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    return {"kind": "Volume", "metadata": {"name": name}, "spec": spec, "status": {"phase": "Available"}}


def storage_class(name: str = "late", *, provisioner: str = volumes.NO_PROVISIONER, mode: str = "WaitForFirstConsumer", **more: Any) -> Tree:
    """Return a storage class."""
    return {"kind": "Class", "metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode, **more}


def user(name: str = "c") -> Tree:
    """Return a pod that uses a claim."""
    return pod(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": name}}])


def info(name: str = "a", **labels: str) -> NodeInfo:
    """Return a node."""
    return cluster(node(name, labels=labels)).nodes[name]


def on_node(shelf: Shelf, of: Tree, where: NodeInfo) -> Refusal | None:
    """Return why a node cannot serve a pod's claims."""
    found = volumes.claims_of(of, shelf)
    assert isinstance(found, volumes.Claims)
    return volumes.Binding(found, shelf).refusal(where)


@pytest.mark.parametrize(
    "objects, text",
    [
        ([], 'persistentvolumeclaim "c" not found'),
        ([claim(of="now"), storage_class("now", mode="Immediate")], "pod has unbound immediate PersistentVolumeClaims"),
        ([claim(deletionTimestamp="x"), storage_class()], 'persistentvolumeclaim "c" is being deleted'),
    ],
)
def test_claims_that_stop_a_pod(objects: list[Tree], text: str) -> None:
    """A claim that is missing, going, or waits for a binding of its own stops the pod before any node is looked at."""
    found = volumes.claims_of(user(), Shelf(*objects))
    assert isinstance(found, Rejection)
    assert (found.message, found.suffix) == (text, "not found")


def test_bound_volumes_pull_the_pod() -> None:
    """A bound volume must exist and reach the node."""
    shelf = Shelf(claim(bound="v"), volume("v", on="b"))
    assert on_node(shelf, user(), info("a")) is volumes.FAR
    assert on_node(shelf, user(), info("b")) is None
    assert on_node(Shelf(claim(bound="v")), user(), info("a")) is volumes.GONE


def test_zones_of_bound_volumes() -> None:
    """A volume's zone label must hold the node's zone, where nodes have zones at all."""
    zonal = volume("v")
    zonal["metadata"]["labels"] = {volumes.ZONES[0]: "z1__z2"}
    shelf = Shelf(claim(bound="v"), zonal)
    assert on_node(shelf, user(), info("a", **{volumes.ZONES[0]: "z2"})) is None
    assert on_node(shelf, user(), info("a", **{volumes.ZONES[0]: "z3"})) is volumes.NO_ZONE
    assert on_node(shelf, user(), info("a")) is None


def test_the_smallest_volume_that_does() -> None:
    """A waiting claim takes the smallest volume of its class that reaches the node, and one made for it before all others."""
    shelf = Shelf(
        claim(),
        storage_class(),
        volume("big", size="20Gi"),
        volume("fit", size="6Gi"),
        volume("small", size="1Gi"),
        volume("far", size="5Gi", on="z"),
    )
    chosen = volumes.choose([claim()], info(), shelf)
    assert isinstance(chosen, volumes.Choice)
    assert [found["metadata"]["name"] for _, found in chosen.static] == ["fit"]
    made = Shelf(claim(), storage_class(), volume("fit", size="6Gi"), volume("mine", size="50Gi", claimRef={"namespace": "default", "name": "c"}))
    chosen = volumes.choose([claim()], info(), made)
    assert isinstance(chosen, volumes.Choice)
    assert [found["metadata"]["name"] for _, found in chosen.static] == ["mine"]


def test_two_claims_do_not_get_one_volume() -> None:
    """Each claim of a pod needs a volume of its own, and a volume that was promised to another claim is gone."""
    claims = [claim("c"), claim("d")]
    shelf = Shelf(*claims, storage_class(), volume("one"))
    assert volumes.choose(claims, info(), shelf) is volumes.UNFOUND
    shelf.promised["one"] = "u-other"
    assert volumes.choose([claim("c")], info(), shelf) is volumes.UNFOUND


def test_provisioning() -> None:
    """Without a volume a provisioner must be there, for a node in its topology with room enough; a selected node stays selected."""
    made = storage_class(provisioner="example.com/p", allowedTopologies=[{"matchLabelExpressions": [{"key": "zone", "values": ["z1"]}]}])
    shelf = Shelf(claim(), made)
    assert isinstance(volumes.choose([claim()], info(zone="z1"), shelf), volumes.Choice)
    assert volumes.choose([claim()], info(zone="z2"), shelf) is volumes.UNFOUND
    shelf.spaces = [{"capacity": "1Gi", "nodeTopology": {}}]
    assert volumes.choose([claim()], info(zone="z1"), shelf) is volumes.NO_SPACE
    selected = claim(annotations={volumes.SELECTED_NODE: "b"})
    assert volumes.choose([selected], info("a", zone="z1"), shelf) is volumes.UNFOUND
    assert isinstance(volumes.choose([selected], info("b", zone="z1"), shelf), volumes.Choice)


def test_one_pod_at_a_time() -> None:
    """A ReadWriteOncePod claim serves one pod in the whole cluster."""
    once = claim(bound="v")
    once["spec"]["accessModes"] = ["ReadWriteOncePod"]
    claims = volumes.Claims(bound=[once])
    assert volumes.used_once(user(), claims, [user()])
    assert not volumes.used_once(user(), claims, [user("other")])


def test_volume_limits() -> None:
    """A node takes as many volumes of a driver as its CSINode says, shared ones counted once."""

    def csi(name: str) -> Tree:
        return volume(name, csi={"driver": "d", "volumeHandle": name})

    limit: Tree = {"kind": "CSINode", "metadata": {"name": "a"}, "spec": {"drivers": [{"name": "d", "allocatable": {"count": 1}}]}}
    shelf = Shelf(claim("c", bound="v"), claim("e", bound="w"), csi("v"), csi("w"), limit)
    assert volumes.Limits(user("c"), shelf, lambda where: [user("e")]).refusal(info()) is volumes.FULL
    assert volumes.Limits(user("c"), shelf, lambda where: [user("c")]).refusal(info()) is None
    assert volumes.Limits(user("c"), shelf, lambda where: [user("e")]).refusal(info("b")) is None


def test_a_claim_that_was_bound_otherwise_ends_the_wait() -> None:
    """The volume that a plan chose is of no use once its claim has another one, as when the answer of an earlier try was lost."""
    chosen = {"metadata": {"name": "chosen"}, "spec": {}}
    theirs: Tree = {"metadata": {"name": "c", "namespace": "default", "uid": "u", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}}
    plan = VolumePlan("n", volumes.Choice(static=[(theirs, chosen)]))

    def progress(volume: str) -> bool | str:
        live = {**theirs, "spec": {"volumeName": volume}, "status": {"phase": "Bound"}}
        binder = VolumeBinder.__new__(VolumeBinder)
        binder.claims = cast("Any", SimpleNamespace(get=lambda name, namespace: live))
        return binder.progress(plan)

    assert progress("chosen") is True
    assert progress("other") == 'ClaimRef got reset for pv "chosen"'
