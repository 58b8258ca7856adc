"""Volumes in scheduling: which claims a pod has, whether a node can serve them, and which volume a claim would get.

Mirrors the filters of VolumeRestrictions, NodeVolumeLimits, VolumeBinding and VolumeZone (1.36). Pure: the world is seen through `Storage`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from kubemini.api.trees import Tree
from kubemini.controllers.scheduler.cache import NodeInfo
from kubemini.controllers.scheduler.deciding import Plugin, Rejection
from kubemini.controllers.scheduler.filters import Refusal
from kubemini.machinery.labels import from_label_selector
from kubemini.machinery.node_matching import matches_term
from kubemini.machinery.quantity import compare

SELECTED_NODE = "volume.kubernetes.io/selected-node"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
ZONES = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)

IN_USE = Refusal("VolumeRestrictions", ("node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode",))
FULL = Refusal("NodeVolumeLimits", ("node(s) exceed max volume count",))
GONE = Refusal("VolumeBinding", ("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",), unresolvable=True)
FAR = Refusal("VolumeBinding", ("node(s) didn't match PersistentVolume's node affinity",), unresolvable=True)
UNFOUND = Refusal("VolumeBinding", ("node(s) didn't find available persistent volumes to bind",), unresolvable=True)
NO_SPACE = Refusal("VolumeBinding", ("node(s) did not have enough free storage",), unresolvable=True)
NO_ZONE = Refusal("VolumeZone", ("node(s) had no available volume zone",), unresolvable=True)
NOT_FOUND = "not found"


class Storage(Protocol):
    """What the filters may look at."""

    def claim(self, namespace: str, name: str) -> Tree | None:
        """Return a PersistentVolumeClaim."""

    def volume(self, name: str) -> Tree | None:
        """Return a PersistentVolume."""

    def volumes_of(self, storage_class: str) -> Iterable[Tree]:
        """Return the PersistentVolumes of a class."""
        ...

    def storage_class(self, name: str) -> Tree | None:
        """Return a StorageClass."""

    def csi_node(self, name: str) -> Tree | None:
        """Return a CSINode."""

    def capacities(self, storage_class: str) -> list[Tree] | None:
        """Return the CSIStorageCapacity objects of a class whose driver publishes them; None where it does not."""

    def taken(self, volume: str) -> str | None:
        """Return the uid of the claim that a volume was promised to in a decision that is not written yet."""


@dataclass(slots=True)
class Claims:
    """A pod's claims, sorted by what is to be done."""

    bound: list[Tree] = field(default_factory=list)
    waiting: list[Tree] = field(default_factory=list)
    """Unbound ones whose class waits for a first consumer."""


@dataclass(slots=True)
class Choice:
    """What a pod's waiting claims would get on one node: volumes for some, a provisioner's work for the others."""

    static: list[tuple[Tree, Tree]] = field(default_factory=list)
    """(claim, volume)."""
    provisioned: list[Tree] = field(default_factory=list)


def claim_names(pod: Tree) -> list[tuple[str, bool]]:
    """Return the names of the claims of a pod's volumes, and whether each belongs to an ephemeral volume."""
    found: list[tuple[str, bool]] = []
    for volume in pod["spec"].get("volumes") or ():
        claim = volume.get("persistentVolumeClaim")
        if claim is not None:
            found.append((claim["claimName"], False))
        elif "ephemeral" in volume:
            found.append((f"{pod['metadata']['name']}-{volume['name']}", True))
    return found


def is_bound(claim: Tree) -> bool:
    """Tell whether a claim is bound for good."""
    annotations = claim["metadata"].get("annotations") or {}
    return bool(claim["spec"].get("volumeName")) and (BIND_COMPLETED in annotations or (claim.get("status") or {}).get("phase") == "Bound")


def claims_of(pod: Tree, storage: Storage) -> Claims | Rejection:
    """Return a pod's claims, or why the pod cannot be looked at yet."""
    meta = pod["metadata"]
    found = Claims()
    immediate = False
    for name, ephemeral in claim_names(pod):
        claim = storage.claim(meta["namespace"], name)
        if claim is None:
            text = f'persistentvolumeclaim "{name}" not found'
            if ephemeral:
                text = f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
            return Rejection("VolumeBinding", text, NOT_FOUND)
        if ephemeral and not any(owner["uid"] == meta["uid"] for owner in claim["metadata"].get("ownerReferences") or ()):
            text = f"PVC {meta['namespace']}/{name} was not created for pod {meta['namespace']}/{meta['name']} (pod is not owner)"
            return Rejection("VolumeBinding", text, NOT_FOUND)
        if (claim.get("status") or {}).get("phase") == "Lost":
            text = f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim["spec"].get("volumeName", "")}"'
            return Rejection("VolumeBinding", text, NOT_FOUND)
        if "deletionTimestamp" in claim["metadata"]:
            return Rejection("VolumeBinding", f'persistentvolumeclaim "{name}" is being deleted', NOT_FOUND)
        if is_bound(claim):
            found.bound.append(claim)
        elif not claim["spec"].get("volumeName") and waits_for_consumer(claim, storage):
            found.waiting.append(claim)
        else:
            immediate = True
    return Rejection("VolumeBinding", "pod has unbound immediate PersistentVolumeClaims", NOT_FOUND) if immediate else found


def waits_for_consumer(claim: Tree, storage: Storage) -> bool:
    """Tell whether a claim's class binds only when a pod is there."""
    found = storage.storage_class(claim["spec"].get("storageClassName") or "")
    return found is not None and found.get("volumeBindingMode") == "WaitForFirstConsumer"


def reaches(volume: Tree, info: NodeInfo) -> bool:
    """Tell whether a volume can be used on a node."""
    required = ((volume["spec"].get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms")
    return not required or any(matches_term(term, info.labels, info.name) for term in required)


def suits(volume: Tree, claim: Tree, storage: Storage) -> bool:
    """Tell whether an unbound volume could serve a claim, wherever it is."""
    spec, wanted = volume["spec"], claim["spec"]
    uid = claim["metadata"]["uid"]
    reference = spec.get("claimRef")
    if reference is not None:
        same = reference.get("namespace") == claim["metadata"]["namespace"] and reference.get("name") == claim["metadata"]["name"]
        if not same or reference.get("uid", uid) not in ("", uid):
            return False
    elif (volume.get("status") or {}).get("phase") != "Available":
        return False
    if "deletionTimestamp" in volume["metadata"] or storage.taken(volume["metadata"]["name"]) not in (None, uid):
        return False
    if (spec.get("storageClassName") or "") != (wanted.get("storageClassName") or ""):
        return False
    if (spec.get("volumeMode") or "Filesystem") != (wanted.get("volumeMode") or "Filesystem"):
        return False
    if any(mode not in (spec.get("accessModes") or ()) for mode in wanted.get("accessModes") or ()):
        return False
    if wanted.get("selector") is not None and not from_label_selector(wanted["selector"]).matches(volume["metadata"].get("labels")):
        return False
    return compare(spec["capacity"]["storage"], wanted["resources"]["requests"]["storage"]) >= 0


def choose(claims: list[Tree], info: NodeInfo, storage: Storage) -> Choice | Refusal:
    """Return what the waiting claims would get on a node: the smallest volume that does, else a new one; or why the node does not do."""
    choice = Choice()
    used: dict[str, None] = {}
    for claim in claims:
        selected = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE)
        if selected is not None:
            # Its provisioner is at work for that node already
            if selected != info.name:
                return UNFOUND
            choice.provisioned.append(claim)
            continue
        best: Tree | None = None
        for volume in storage.volumes_of(claim["spec"].get("storageClassName") or ""):
            if volume["metadata"]["name"] in used or not suits(volume, claim, storage) or not reaches(volume, info):
                continue
            if volume["spec"].get("claimRef") is not None:
                best = volume
                break
            if best is None or compare(volume["spec"]["capacity"]["storage"], best["spec"]["capacity"]["storage"]) < 0:
                best = volume
        if best is not None:
            used[best["metadata"]["name"]] = None
            choice.static.append((claim, best))
            continue
        refused = _provisionable(claim, info, storage)
        if refused is not None:
            return refused
        choice.provisioned.append(claim)
    return choice


def _provisionable(claim: Tree, info: NodeInfo, storage: Storage) -> Refusal | None:
    name = claim["spec"].get("storageClassName") or ""
    found = storage.storage_class(name)
    if found is None or found.get("provisioner") in (None, "", NO_PROVISIONER):
        return UNFOUND
    topologies = found.get("allowedTopologies")
    if topologies and not any(
        all(info.labels.get(each["key"]) in each["values"] for each in term.get("matchLabelExpressions") or ()) for term in topologies
    ):
        return UNFOUND
    capacities = storage.capacities(name)
    if capacities is None:
        return None
    wanted = claim["spec"]["resources"]["requests"]["storage"]
    for capacity in capacities:
        size = capacity.get("maximumVolumeSize") or capacity.get("capacity")
        there = capacity.get("nodeTopology")
        if size is not None and there is not None and compare(size, wanted) >= 0 and from_label_selector(there).matches(info.labels):
            return None
    return NO_SPACE


# ----------------------------------------------------------------------------------------------- plugins


@dataclass(slots=True)
class Binding:
    """VolumeBinding and VolumeZone: bound volumes must reach the node, waiting claims must find something there."""

    claims: Claims
    storage: Storage

    def refusal(self, info: NodeInfo) -> Refusal | None:
        """Return why a node does not do, or None."""
        volumes = []
        for claim in self.claims.bound:
            volume = self.storage.volume(claim["spec"]["volumeName"])
            if volume is None:
                return GONE
            if not reaches(volume, info):
                return FAR
            volumes.append(volume)
        if self.claims.waiting:
            chosen = choose(self.claims.waiting, info, self.storage)
            if isinstance(chosen, Refusal):
                return chosen
        return NO_ZONE if any(not _in_zone(volume, info.labels) for volume in volumes) else None


def _in_zone(volume: Tree, labels: Mapping[str, str]) -> bool:
    if not any(key in labels for key in ZONES):
        return True
    wanted = volume["metadata"].get("labels") or {}
    return all(labels.get(key) in wanted[key].split("__") for key in ZONES if key in wanted)


@dataclass(frozen=True, slots=True)
class OncePod:
    """VolumeRestrictions: a ReadWriteOncePod claim that another pod uses."""

    def refusal(self, info: NodeInfo) -> Refusal | None:
        """Return why a node does not do: none does."""
        return IN_USE


def used_once(pod: Tree, claims: Claims, others: Iterable[Tree]) -> bool:
    """Tell whether a ReadWriteOncePod claim of the pod is used by one of the placed pods."""
    namespace = pod["metadata"]["namespace"]
    once = {
        each["metadata"]["name"]: None for each in (*claims.bound, *claims.waiting) if "ReadWriteOncePod" in (each["spec"].get("accessModes") or ())
    }
    if not once:
        return False
    return any(name in once for other in others if other["metadata"]["namespace"] == namespace for name, _ in claim_names(other))


@dataclass(slots=True)
class Limits:
    """NodeVolumeLimits: how many volumes of a CSI driver fit a node, as its CSINode says."""

    pod: Tree
    storage: Storage
    attached: Callable[[NodeInfo], Iterable[Tree]]
    """Returns the pods that count on a node."""

    def refusal(self, info: NodeInfo) -> Refusal | None:
        """Return why a node does not do, or None."""
        node = self.storage.csi_node(info.name)
        if node is None:
            return None
        limits = {
            each["name"]: each["allocatable"]["count"]
            for each in node["spec"].get("drivers") or ()
            if (each.get("allocatable") or {}).get("count") is not None
        }
        if not limits:
            return None
        there: dict[tuple[str, str], None] = {}
        for other in self.attached(info):
            there |= _handles(other, self.storage)
        fresh = [handle for handle in _handles(self.pod, self.storage) if handle not in there]
        for driver, limit in limits.items():
            added = sum(1 for each in fresh if each[0] == driver)
            if added and added + sum(1 for each in there if each[0] == driver) > limit:
                return FULL
        return None


def _handles(pod: Tree, storage: Storage) -> dict[tuple[str, str], None]:
    """Return the volumes of a pod as (driver, identity)."""
    found: dict[tuple[str, str], None] = {}
    namespace = pod["metadata"]["namespace"]
    for name, _ in claim_names(pod):
        claim = storage.claim(namespace, name)
        if claim is None:
            continue
        volume = storage.volume(claim["spec"].get("volumeName") or "")
        if volume is not None:
            csi = volume["spec"].get("csi")
            if csi:
                found[csi["driver"], csi["volumeHandle"]] = None
            continue
        made_by = storage.storage_class(claim["spec"].get("storageClassName") or "")
        if made_by is not None:
            found[made_by.get("provisioner", ""), f"{namespace}/{name}"] = None
    return found


def plugins_of(
    pod: Tree, storage: Storage, placed: Callable[[], Iterable[Tree]], attached: Callable[[NodeInfo], Iterable[Tree]]
) -> list[Plugin] | Rejection:
    """Return the volume filters of a pod with claims, or why it cannot be looked at yet. `placed` gives the pods that stand anywhere, `attached` those of a node."""
    claims = claims_of(pod, storage)
    if isinstance(claims, Rejection):
        return claims
    found: list[Plugin] = []
    if used_once(pod, claims, placed()):
        found.append(OncePod())
    return [*found, Limits(pod, storage, attached), Binding(claims, storage)]
