"""Rules of resource requirements: names, amounts, requests against limits, huge pages, pod-level resources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery import names, quantity
from kubemini.machinery.errors import FieldError, duplicate, forbidden, invalid, not_supported, required
from kubemini.machinery.pod_requests import aggregate
from kubemini.server.kinds.core.formats import INTEGER, NOT_NEGATIVE, Errors, wrong

HUGE = "hugepages-"
_OBJECTS = (
    "pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps", "persistentvolumeclaims",
    "services.nodeports", "services.loadbalancers",
)  # fmt: skip
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_STANDARD = frozenset(
    (*_COMPUTE, *(f"requests.{each}" for each in _COMPUTE), *(f"limits.{each}" for each in _COMPUTE), *_OBJECTS, "storage", "requests.storage")
)
QUOTA_RESOURCES = frozenset(
    (*_COMPUTE, *(f"requests.{each}" for each in _COMPUTE), *(f"limits.{each}" for each in _COMPUTE), *_OBJECTS, "requests.storage")
)
POD_LEVEL = ("cpu", "hugepages-*", "memory")


def is_native(name: str) -> bool:
    """Tell whether a resource is Kubernetes' own: no domain, or one of kubernetes.io."""
    return "/" not in name or "kubernetes.io/" in name


def is_extended(name: str) -> bool:
    """Tell whether a resource is an extended one (``nvidia.com/gpu``)."""
    return not is_native(name) and not name.startswith("requests.") and names.qualified_name(f"requests.{name}") is None


def is_huge(name: str) -> bool:
    """Tell whether a resource is huge pages of some size."""
    return name.startswith(HUGE)


def may_overcommit(name: str) -> bool:
    """Tell whether requests of a resource may stay below its limit."""
    return is_native(name) and not is_huge(name)


def is_whole(name: str) -> bool:
    """Tell whether a resource is counted in whole numbers."""
    return name in _OBJECTS or is_extended(name)


def amount(name: str, value: str, path: str) -> Errors:
    """Check an amount of a resource: not negative, and whole where the resource is."""
    if quantity.nano(value) < 0:
        yield invalid(path, value, NOT_NEGATIVE)
    if is_whole(name) and quantity.milli(value) % 1000:
        yield invalid(path, value, INTEGER)


def resource_name(name: str, path: str) -> Errors:
    """Check the name of any resource."""
    if names.qualified_name(name) is not None:
        yield from wrong(names.qualified_name, name, path)
    elif "/" not in name and name not in _STANDARD and not is_huge(name) and not name.startswith(f"requests.{HUGE}"):
        yield invalid(path, name, "must be a standard resource type or fully qualified")


def container_resource_name(name: str, path: str) -> Errors:
    """Check the name of a resource that a container asks for."""
    yield from resource_name(name, path)
    if "/" not in name:
        if name not in _COMPUTE and not is_huge(name):
            yield invalid(path, name, "must be a standard resource for containers")
    elif not is_native(name) and not is_extended(name):
        yield invalid(path, name, "doesn't follow extended resource name standard")


def pod_resource_name(name: str, path: str) -> Errors:
    """Check the name of a resource that a pod asks for as a whole."""
    found = list(resource_name(name, path))
    if not found and name not in ("cpu", "memory") and not is_huge(name):
        found.append(not_supported(path, name, POD_LEVEL))
    yield from found


def quota_resource_name(name: str, path: str) -> Errors:
    """Check the name of a resource in a quota."""
    yield from resource_name(name, path)
    if "/" not in name and name not in QUOTA_RESOURCES and not name.startswith((HUGE, f"requests.{HUGE}")):
        yield invalid(path, name, "must be a standard resource for quota")


def _huge_pages(name: str, value: str, path: str) -> Errors:
    if is_huge(name):
        size = name[len(HUGE) :]
        whole = quantity.units(size) if quantity.is_quantity(size) else 0
        if whole <= 0 or quantity.units(value) % whole:
            yield invalid(path, value, f"{value} is not positive integer multiple of {name}")


def requirements(tree: Tree, path: str, claims: tuple[str, ...], *, pod: bool = False) -> Errors:
    """Check the resources of a container, or of a pod as a whole."""
    check_name = pod_resource_name if pod else container_resource_name
    limits: Mapping[str, str] = tree.get("limits") or {}
    requests: Mapping[str, str] = tree.get("requests") or {}
    for name, value in limits.items():
        here = f"{path}.limits[{name}]"
        yield from check_name(name, here)
        yield from amount(name, value, here)
        yield from _huge_pages(name, value, here)
    for name, value in requests.items():
        here = f"{path}.requests[{name}]"
        yield from check_name(name, here)
        yield from amount(name, value, here)
        limit = limits.get(name)
        if limit is None:
            if not may_overcommit(name):
                yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        elif quantity.nano(value) != quantity.nano(limit) and not may_overcommit(name):
            yield invalid(f"{path}.requests", value, f"must be equal to {name} limit of {limit}")
        elif quantity.nano(value) > quantity.nano(limit):
            yield invalid(f"{path}.requests", value, f"must be less than or equal to {name} limit of {limit}")
        yield from _huge_pages(name, value, here)
    named = [*limits, *requests]
    if any(map(is_huge, named)) and "cpu" not in named and "memory" not in named:
        yield forbidden(path, "HugePages require cpu or memory")
    yield from _claims(tree.get("claims") or [], f"{path}.claims", claims)


def _claims(entries: list[Tree], path: str, known: tuple[str, ...]) -> Errors:
    """Check that each claim is one of the pod's, and used once."""
    seen: dict[str, None] = {}
    for index, entry in enumerate(entries):
        here, name, request = f"{path}[{index}]", entry.get("name", ""), entry.get("request", "")
        if not name:
            yield required(here)
            continue
        if name in seen:
            yield duplicate(here, name)
        else:
            key = name
            if request:
                yield from wrong(names.dns1123_label, request, f"{here}.request")
                key = f"{name}/{request}"
            if key in seen:
                yield duplicate(here, key)
            elif not request and any(each.startswith(f"{name}/") for each in seen):
                yield duplicate(here, name)
            seen[key] = None
        if name not in known:
            listed = ": " + ", ".join(sorted(known)) if known else " which is empty"
            yield FieldError("FieldValueNotFound", here, f'Not found: "{name}": must be one of the names in pod.spec.resourceClaims{listed}')


# ------------------------------------------------------------------------------------------------------ pod level


def pod_level(spec: Tree, path: str) -> Errors:
    """Check the resources of the pod as a whole, and that its containers fit into them."""
    tree = spec.get("resources")
    if not tree:
        return
    if tree.get("claims"):
        yield forbidden(f"{path}.claims", "claims cannot be set for Resources at pod-level")
    yield from requirements(tree, path, (), pod=True)
    requests: Mapping[str, str] = tree.get("requests") or {}
    limits: Mapping[str, str] = tree.get("limits") or {}
    for name, total in aggregate(spec, "requests").items():
        own = requests.get(name, "0")
        if (name in ("cpu", "memory") or is_huge(name)) and total > quantity.nano(own):
            asked = quantity.shown(total, quantity.parse(own).family)
            yield invalid(f"{path}.requests[{name}]", own, f"must be greater than or equal to aggregate container requests of {asked}")
    for index, container in enumerate(spec.get("containers") or ()):
        bounds: Any = (container.get("resources") or {}).get("limits")
        for name, value in (bounds or {}).items():
            if name in limits and quantity.nano(value) > quantity.nano(limits[name]):
                yield invalid(f"{path}.containers[{index}][{name}].limits", value, f"must be less than or equal to pod limits of {limits[name]}")
