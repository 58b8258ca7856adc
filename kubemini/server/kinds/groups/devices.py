"""resource.k8s.io: device classes, claims, slices (dynamic resource allocation)."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.machinery import names
from kubemini.machinery.errors import duplicate, invalid, not_supported, required, too_many
from kubemini.server.kinds.core.formats import IMMUTABLE, Errors, same, wrong
from kubemini.server.kinds.groups.plain import PlainStrategy
from kubemini.server.strategy import WriteContext

_MODES = ("All", "ExactCount")
_MAX_REQUESTS, _MAX_DEVICES = 32, 128


def device_class(obj: Tree) -> Errors:
    """Check a DeviceClass."""
    yield from _selectors((obj.get("spec") or {}).get("selectors") or [], "spec.selectors")


def resource_claim(obj: Tree) -> Errors:
    """Check a ResourceClaim."""
    yield from _claim(obj.get("spec") or {}, "spec")


def resource_claim_template(obj: Tree) -> Errors:
    """Check a ResourceClaimTemplate."""
    yield from _claim((obj.get("spec") or {}).get("spec") or {}, "spec.spec")


def spec_stays(new: Tree, old: Tree) -> Errors:
    """Refuse every change of the spec."""
    if not same(new.get("spec"), old.get("spec")):
        yield invalid("spec", new.get("spec"), IMMUTABLE)


def _claim(spec: Tree, path: str) -> Errors:
    requests = (spec.get("devices") or {}).get("requests") or []
    if len(requests) > _MAX_REQUESTS:
        yield too_many(f"{path}.devices.requests", len(requests), _MAX_REQUESTS)
    seen: set[str] = set()
    for index, request in enumerate(requests):
        here, name = f"{path}.devices.requests[{index}]", request.get("name", "")
        if name:
            yield from wrong(names.dns1123_label, name, f"{here}.name")
        else:
            yield required(f"{here}.name")
        if name in seen:
            yield duplicate(f"{here}.name", name)
        seen.add(name)
        exactly, alternatives = request.get("exactly"), request.get("firstAvailable")
        if (exactly is None) == (not alternatives):
            if exactly is None:
                yield required(here, "exactly one of `exactly` or `firstAvailable` is required")
            else:
                yield invalid(here, None, "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set")
        if exactly is not None:
            yield from _request(exactly, f"{here}.exactly")
        for at, each in enumerate(alternatives or ()):
            yield from _request(each, f"{here}.firstAvailable[{at}]")


def _request(request: Tree, path: str) -> Errors:
    if request.get("deviceClassName"):
        yield from wrong(names.dns1123_subdomain, request["deviceClassName"], f"{path}.deviceClassName")
    else:
        yield required(f"{path}.deviceClassName")
    yield from _selectors(request.get("selectors") or [], f"{path}.selectors")
    mode, count = request.get("allocationMode", "ExactCount"), request.get("count", 0)
    if mode not in _MODES:
        yield not_supported(f"{path}.allocationMode", mode, _MODES)
    elif mode == "All" and count:
        yield invalid(f"{path}.count", count, "must not be specified when allocationMode is 'All'")
    elif mode == "ExactCount" and count <= 0:
        yield invalid(f"{path}.count", count, "must be greater than zero")


def _selectors(selectors: list[Tree], path: str) -> Errors:
    for index, each in enumerate(selectors):
        if each.get("cel") is None:
            yield required(f"{path}[{index}].cel")
        elif not each["cel"].get("expression"):
            yield required(f"{path}[{index}].cel.expression")


def resource_slice(obj: Tree) -> Errors:
    """Check a ResourceSlice."""
    spec = obj.get("spec") or {}
    if spec.get("driver"):
        yield from wrong(names.dns1123_subdomain, spec["driver"], "spec.driver")
    else:
        yield required("spec.driver")
    pool = spec.get("pool") or {}
    if not pool.get("name"):
        yield required("spec.pool.name")
    if pool.get("resourceSliceCount", 0) <= 0:
        yield invalid("spec.pool.resourceSliceCount", pool.get("resourceSliceCount", 0), "must be greater than zero")
    if pool.get("generation", 0) < 0:
        yield invalid("spec.pool.generation", pool["generation"], "must be greater than or equal to zero")
    placed = [key for key in ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection") if spec.get(key)]
    if len(placed) != 1:
        shown = f"{{{', '.join(f'`{each}`' for each in placed)}}}" if placed else None
        text = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
        yield invalid("spec", shown, f"{text}, but multiple fields are set") if placed else required("spec", text)
    devices = spec.get("devices") or []
    if len(devices) > _MAX_DEVICES:
        yield too_many("spec.devices", len(devices), _MAX_DEVICES)
    seen: set[str] = set()
    for index, device in enumerate(devices):
        name = device.get("name", "")
        if name:
            yield from wrong(names.dns1123_label, name, f"spec.devices[{index}].name")
        else:
            yield required(f"spec.devices[{index}].name")
        if name in seen:
            yield duplicate(f"spec.devices[{index}].name", name)
        seen.add(name)


class ResourceSliceStrategy(PlainStrategy):
    """Slices: a device taint without a time gets the time at which it was written."""

    def prepare_for_create(self, obj: Tree, ctx: WriteContext) -> Tree:
        """Stamp the taints."""
        return _stamped(obj, ctx)

    def prepare_for_update(self, new: Tree, old: Tree, ctx: WriteContext) -> Tree:
        """Stamp the taints that are new."""
        return _stamped(new, ctx)


def _stamped(obj: Tree, ctx: WriteContext) -> Tree:
    devices = obj["spec"].get("devices") or ()
    if not any("timeAdded" not in taint for device in devices for taint in device.get("taints") or ()):
        return obj
    now = ctx.env.stamp()
    stamped = [
        {**device, "taints": [{"timeAdded": now, **taint} for taint in device["taints"]]} if device.get("taints") else device for device in devices
    ]
    return {**obj, "spec": {**obj["spec"], "devices": stamped}}


def resource_slice_change(new: Tree, old: Tree) -> Errors:
    """Driver, pool and node of a slice stay."""
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    for key in ("driver", "nodeName"):
        if spec.get(key) != before.get(key):
            yield invalid(f"spec.{key}", spec.get(key), IMMUTABLE)
    if (spec.get("pool") or {}).get("name") != (before.get("pool") or {}).get("name"):
        yield invalid("spec.pool.name", (spec.get("pool") or {}).get("name"), IMMUTABLE)


def slice_node(obj: Tree) -> str:
    """Return the node of a slice, for field selectors."""
    return str((obj.get("spec") or {}).get("nodeName") or "")


def slice_driver(obj: Tree) -> str:
    """Return the driver of a slice, for field selectors."""
    return str((obj.get("spec") or {}).get("driver") or "")
