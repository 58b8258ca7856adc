"""The rules of volumes and claims."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.machinery import names, quantity
from kubemini.machinery.errors import FieldError, forbidden, invalid, not_supported, required
from kubemini.server.kinds.core.claims import ACCESS_MODES, VOLUME_MODES, claim_spec, claim_warnings
from kubemini.server.kinds.core.formats import IMMUTABLE, POSITIVE, Errors, difference, same, wrong
from kubemini.server.kinds.core.internal_pod import CLAIM_SPEC
from kubemini.server.kinds.core.pod_scheduling import node_selector
from kubemini.server.kinds.core.pod_volumes import SOURCES, csi_driver_name
from kubemini.server.kinds.core.volume_warnings import volume_warnings
from kubemini.server.kinds.tables import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from kubemini.server.strategy import Strategy, WriteContext

_CLAIM_IMMUTABLE = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n"


class PersistentVolumeClaimStrategy(Strategy):
    """PersistentVolumeClaims."""

    metadata_again = "before"
    has_status = True
    returns_deleted = True
    table = PERSISTENT_VOLUME_CLAIM

    def initial_status(self, obj: Tree) -> Tree:
        """New claims wait for a volume."""
        return {"phase": "Pending"}

    def prepare_for_create(self, obj: Tree, ctx: WriteContext) -> Tree:
        """Keep the two forms of a data source in step."""
        spec = obj.get("spec") or {}
        source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
        if source is not None and reference is None:
            return {**obj, "spec": {**spec, "dataSourceRef": source}}
        if reference is not None and source is None and not reference.get("namespace"):
            return {**obj, "spec": {**spec, "dataSource": {key: value for key, value in reference.items() if key != "namespace"}}}
        return obj

    def validate_create(self, obj: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check the spec."""
        return list(claim_spec(obj.get("spec") or {}))

    def validate_update(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check the spec and what may change of it."""
        spec, before = new.get("spec") or {}, old.get("spec") or {}
        if spec is before:
            return []
        return [*claim_spec(spec), *_claim_update(spec, before, old.get("status") or {})]

    def warnings(self, new: Tree, old: Tree | None, ctx: WriteContext) -> list[str]:
        """Advise on sizes and on an annotation that goes out of use."""
        return list(claim_warnings(new))


def _storage(spec: Tree) -> str:
    return str(((spec.get("resources") or {}).get("requests") or {}).get("storage", "0"))


def _claim_update(spec: Tree, before: Tree, status: Tree) -> Errors:
    munged = dict(spec)
    if not before.get("volumeName"):
        munged["volumeName"] = before.get("volumeName")
    if before.get("storageClassName") is None and spec.get("storageClassName") is not None:
        munged["storageClassName"] = None
    if status.get("phase") == "Bound":
        munged["resources"] = {
            **(spec.get("resources") or {}),
            "requests": {**((spec.get("resources") or {}).get("requests") or {}), "storage": _storage(before)},
        }
        if spec.get("volumeAttributesClassName") is not None:
            munged["volumeAttributesClassName"] = before.get("volumeAttributesClassName")
    if not same(munged, before):
        yield forbidden("spec", _CLAIM_IMMUTABLE + CLAIM_SPEC.difference(before, munged))
    if quantity.nano(_storage(spec)) < quantity.nano(_storage(before)):
        capacity = (status.get("capacity") or {}).get("storage", "0")
        if quantity.nano(_storage(spec)) <= quantity.nano(capacity):
            yield forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")
    if spec.get("volumeMode") != before.get("volumeMode"):
        yield invalid("volumeMode", spec.get("volumeMode"), IMMUTABLE)
    if before.get("volumeAttributesClassName") is not None and not spec.get("volumeAttributesClassName"):
        word = "nil" if spec.get("volumeAttributesClassName") is None else "an empty string"
        yield forbidden("spec.volumeAttributesClassName", f"update from non-nil value to {word} is forbidden")


# ------------------------------------------------------------------------------------------------------ volumes

_VOLUME_SOURCES = (*(key for key in SOURCES if key not in ("emptyDir", "gitRepo", "secret", "persistentVolumeClaim", "downwardAPI")), "local")
_NOT_SOURCES = ("configMap", "projected", "ephemeral", "image")


class PersistentVolumeStrategy(Strategy):
    """PersistentVolumes."""

    metadata_again = "before"
    has_status = True
    returns_deleted = True
    table = PERSISTENT_VOLUME

    def initial_status(self, obj: Tree) -> Tree:
        """New volumes are looked at first."""
        return {"phase": "Pending"}

    def validate_create(self, obj: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check the spec."""
        return list(_volume(obj.get("spec") or {}))

    def validate_update(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check the spec and what may change of it."""
        spec, before = new.get("spec") or {}, old.get("spec") or {}
        return [] if spec is before else [*_volume(spec), *_volume_update(spec, before)]

    def warnings(self, new: Tree, old: Tree | None, ctx: WriteContext) -> list[str]:
        """Advise on what goes out of use."""
        return list(volume_warnings(new))


def _volume(spec: Tree) -> Errors:
    modes = spec.get("accessModes") or []
    if not modes:
        yield required("spec.accessModes")
    for mode in modes:
        if mode not in ACCESS_MODES:
            yield not_supported("spec.accessModes", mode, ACCESS_MODES)
    if "ReadWriteOncePod" in modes and len(set(modes)) > 1:
        yield forbidden("spec.accessModes", "may not use ReadWriteOncePod with other access modes")
    capacity = spec.get("capacity") or {}
    if not capacity:
        yield required("spec.capacity")
    if list(capacity) != ["storage"]:
        yield not_supported("spec.capacity", capacity or None, ("storage",))
    for name, value in capacity.items():
        if quantity.nano(value) <= 0:
            yield invalid(f"spec.capacity[{name}]", value, POSITIVE)
    if spec.get("persistentVolumeReclaimPolicy") not in (None, "Delete", "Recycle", "Retain"):
        yield not_supported("spec.persistentVolumeReclaimPolicy", spec["persistentVolumeReclaimPolicy"], ("Delete", "Recycle", "Retain"))
    affinity = spec.get("nodeAffinity")
    if affinity is not None:
        if affinity.get("required") is None:
            yield required("spec.nodeAffinity.required", "must specify required node constraints")
        else:
            yield from node_selector(affinity["required"], "spec.nodeAffinity.required")
    yield from _source(spec)
    if spec.get("storageClassName"):
        yield from wrong(names.dns1123_subdomain, spec["storageClassName"], "spec.storageClassName")
    if spec.get("volumeMode") not in (None, *VOLUME_MODES):
        yield not_supported("spec.volumeMode", spec["volumeMode"], VOLUME_MODES)


def _source(spec: Tree) -> Errors:
    found = [key for key in _VOLUME_SOURCES if key not in _NOT_SOURCES and spec.get(key) is not None]
    if not found:
        yield required("spec", "must specify a volume type")
        return
    first, source = found[0], spec[found[0]]
    if first == "local":
        if not source.get("path"):
            yield required("spec.local.path")
        if spec.get("nodeAffinity") is None:
            yield required("spec.nodeAffinity", "Local volume requires node affinity")
    elif first == "csi":
        yield from csi_driver_name(source.get("driver", ""), "spec.csi.driver")
        if not source.get("volumeHandle"):
            yield required("spec.csi.volumeHandle")
    else:
        yield from SOURCES[first](source, f"spec.{first}")
    for key in found[1:]:
        yield forbidden(f"spec.{key}", "may not specify more than 1 volume type")


def _volume_update(spec: Tree, before: Tree) -> Errors:
    changed = any(not same(spec.get(key), before.get(key)) for key in _VOLUME_SOURCES if key not in _NOT_SOURCES)
    if changed:
        keys = sorted({*(key for key in _VOLUME_SOURCES if key in spec or key in before)})
        diff = difference({key: before.get(key) for key in keys}, {key: spec.get(key) for key in keys}, "spec")
        yield forbidden("spec.persistentvolumesource", f"spec.persistentvolumesource is immutable after creation\n{diff}")
    if spec.get("volumeMode") != before.get("volumeMode"):
        yield invalid("volumeMode", spec.get("volumeMode"), IMMUTABLE)
    if before.get("nodeAffinity") is not None and not same(spec.get("nodeAffinity"), before["nodeAffinity"]):
        yield invalid("nodeAffinity", spec.get("nodeAffinity"), f"{IMMUTABLE}, except for updating from beta label to GA")
