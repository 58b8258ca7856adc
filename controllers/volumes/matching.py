"""Which existing volume a claim gets, and whether one that was asked for by name does. Pure functions over claims and volumes."""

from __future__ import annotations

from collections.abc import Iterable

from kubemini.api.trees import Tree
from kubemini.machinery.labels import from_label_selector
from kubemini.machinery.quantity import compare, nano


def phase(obj: Tree) -> str:
    """Return ``status.phase``."""
    found: str = (obj.get("status") or {}).get("phase", "")
    return found


def reserved_for(volume: Tree, claim: Tree) -> bool:
    """Tell whether a volume's claimRef means this claim: by name, and by uid where it has one."""
    reference = volume["spec"].get("claimRef")
    if reference is None:
        return False
    meta = claim["metadata"]
    same = reference.get("name") == meta["name"] and reference.get("namespace") == meta["namespace"]
    return bool(same and reference.get("uid") in (None, "", meta["uid"]))


def requested(claim: Tree) -> str:
    """Return the size that a claim asks for."""
    found: str = ((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage", "0")
    return found


def capacity(volume: Tree) -> str:
    """Return the size of a volume."""
    found: str = (volume["spec"].get("capacity") or {}).get("storage", "0")
    return found


def storage_class(obj: Tree) -> str:
    """Return the class of a claim or volume, "" for none."""
    return obj["spec"].get("storageClassName") or ""


def mismatch(volume: Tree, claim: Tree) -> str:
    """Return why a volume that a claim names cannot serve it, "" when it can."""
    spec, wanted = volume["spec"], claim["spec"]
    if compare(capacity(volume), requested(claim)) < 0:
        return "requested PV is too small"
    if storage_class(volume) != storage_class(claim):
        return "storageClassName does not match"
    if (spec.get("volumeAttributesClassName") or "") != (wanted.get("volumeAttributesClassName") or ""):
        return "volumeAttributesClassName does not match"
    if spec.get("volumeMode", "Filesystem") != wanted.get("volumeMode", "Filesystem"):
        return "incompatible volumeMode"
    if not _has_modes(volume, claim):
        return "incompatible accessMode"
    return ""


def _has_modes(volume: Tree, claim: Tree) -> bool:
    offered = volume["spec"].get("accessModes") or ()
    return all(mode in offered for mode in claim["spec"].get("accessModes") or ())


def best(claim: Tree, volumes: Iterable[Tree], *, delayed: bool) -> Tree | None:
    """Return the volume that a claim gets, None where none does.

    A volume reserved for the claim comes first; with `delayed` (the class waits for the first consumer, so the scheduler chooses) nothing else does. Else it is the one with the fewest further
    access modes, then the smallest.
    """
    spec = claim["spec"]
    selector = from_label_selector(spec["selector"]) if spec.get("selector") is not None else None
    found: tuple[int, int, str] | None = None
    chosen: Tree | None = None
    for volume in volumes:
        if spec.get("volumeMode", "Filesystem") != volume["spec"].get("volumeMode", "Filesystem") or "deletionTimestamp" in volume["metadata"]:
            continue
        if not _has_modes(volume, claim) or compare(capacity(volume), requested(claim)) < 0:
            continue
        if volume["spec"].get("claimRef") is not None:
            if reserved_for(volume, claim):
                return volume
            continue
        if delayed or phase(volume) != "Available" or storage_class(volume) != storage_class(claim):
            continue
        if (volume["spec"].get("volumeAttributesClassName") or "") != (spec.get("volumeAttributesClassName") or ""):
            continue
        if selector is not None and not selector.matches(volume["metadata"].get("labels")):
            continue
        rank = (len(volume["spec"].get("accessModes") or ()), nano(capacity(volume)), volume["metadata"]["name"])
        if found is None or rank < found:
            found, chosen = rank, volume
    return chosen
