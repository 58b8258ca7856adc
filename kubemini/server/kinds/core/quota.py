"""The rules of ResourceQuotas and LimitRanges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery import names, quantity
from kubemini.machinery.errors import FieldError, duplicate, forbidden, invalid, required
from kubemini.server.kinds.core.formats import IMMUTABLE, Errors, wrong
from kubemini.server.kinds.core.pod_resources import (
    QUOTA_RESOURCES,
    amount,
    container_resource_name,
    may_overcommit,
    quota_resource_name,
    resource_name,
)
from kubemini.server.kinds.tables import RESOURCE_QUOTA
from kubemini.server.strategy import Strategy, WriteContext

SCOPES = (
    "Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass", "CrossNamespacePodAffinity", "VolumeAttributesClass",
)  # fmt: skip
_EXISTS_ONLY = SCOPES[:4] + SCOPES[5:6]
_EXISTS_TEXT = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
    "ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)
_POD_RESOURCES = (
    "pods", "cpu", "memory", "ephemeral-storage", "requests.cpu", "requests.memory", "requests.ephemeral-storage",
    "limits.cpu", "limits.memory", "limits.ephemeral-storage",
)  # fmt: skip


class ResourceQuotaStrategy(Strategy):
    """ResourceQuotas."""

    has_status = True
    table = RESOURCE_QUOTA

    def initial_status(self, obj: Tree) -> Tree:
        """Nothing is counted yet."""
        return {}

    def validate_create(self, obj: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check resources and scopes."""
        return list(_quota(obj.get("spec") or {}))

    def validate_update(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check the same, and that the scopes stay."""
        spec, before = new.get("spec") or {}, old.get("spec") or {}
        errors = list(_quota(spec))
        if set(spec.get("scopes") or ()) != set(before.get("scopes") or ()):
            errors.append(invalid("spec.scopes", spec.get("scopes"), IMMUTABLE))
        return errors

    def validate_status(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check names and amounts."""
        status = new.get("status") or {}
        return [error for key in ("hard", "used") for error in _resources(status.get(key) or {}, f"status.{key}")]


def _resources(amounts: Mapping[str, str], path: str) -> Errors:
    for name, value in amounts.items():
        yield from quota_resource_name(name, f"{path}[{name}]")
        yield from amount(name, value, f"{path}[{name}]")


def _quota(spec: Tree) -> Errors:
    hard: Mapping[str, str] = spec.get("hard") or {}
    yield from _resources(hard, "spec.hard")
    scopes: list[str] = spec.get("scopes") or []
    for scope in scopes:
        if scope not in SCOPES:
            yield invalid("spec.scopes", scopes, "unsupported scope")
        yield from (invalid("spec.scopes", scopes, "unsupported scope applied to resource") for _ in _unfit(scope, hard))
    yield from _conflicts(scopes, scopes)
    if spec.get("scopeSelector") is not None:
        yield from _selector(spec["scopeSelector"], hard, scopes)


def _unfit(scope: str, hard: Mapping[str, str]) -> list[str]:
    """Return the limited resources to which a scope does not apply."""
    return [name for name in sorted(hard) if name in QUOTA_RESOURCES and not _fits(scope, name)]


def _fits(scope: str, name: str) -> bool:
    match scope:
        case "BestEffort":
            return name == "pods"
        case "VolumeAttributesClass":
            return name in ("persistentvolumeclaims", "requests.storage")
        case "Terminating" | "NotTerminating" | "NotBestEffort" | "PriorityClass" | "CrossNamespacePodAffinity":
            return name in _POD_RESOURCES
        case _:
            return True


def _conflicts(scopes: list[str], shown: Any) -> Errors:
    for pair in (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating")):
        if all(each in scopes for each in pair):
            yield invalid("spec.scopes", shown, "conflicting scopes")


def _selector(selector: Tree, hard: Mapping[str, str], shown: list[str]) -> Errors:
    path = "spec.scopeSelector.matchExpressions"
    used: list[str] = []
    for each in selector.get("matchExpressions") or ():
        scope, operator, values = each.get("scopeName", ""), each.get("operator", ""), each.get("values") or []
        if scope not in SCOPES:
            yield invalid(f"{path}.scopeName", scope, "unsupported scope")
        yield from (invalid(path, selector, "unsupported scope applied to resource") for _ in _unfit(scope, hard))
        if scope in _EXISTS_ONLY and operator != "Exists":
            yield invalid(f"{path}.operator", operator, _EXISTS_TEXT)
        if operator in ("In", "NotIn"):
            if not values:
                yield required(f"{path}.values", "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector")
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                yield invalid(f"{path}.values", values, "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector")
        else:
            yield invalid(f"{path}.operator", operator, "not a valid selector operator")
        used.append(scope)
    yield from _conflicts(used, shown)


# ------------------------------------------------------------------------------------------------------ limit ranges


class LimitRangeStrategy(Strategy):
    """LimitRanges."""

    create_on_update = True

    def default(self, obj: Tree, ctx: WriteContext) -> Tree:
        """Fill default limits from maxima, and default requests from default limits, then from minima."""
        spec = obj.get("spec") or {}
        old = spec.get("limits") or []
        new = [_with_defaults(each) for each in old]
        return obj if new == old else {**obj, "spec": {**spec, "limits": new}}

    def validate_create(self, obj: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check that the limits fit together."""
        return list(_limits((obj.get("spec") or {}).get("limits") or []))


def _with_defaults(item: Tree) -> Tree:
    if item.get("type") != "Container":
        return item
    default = {**(item.get("max") or {}), **(item.get("default") or {})}
    request = {**(item.get("min") or {}), **default, **(item.get("defaultRequest") or {})}
    changes = {key: value for key, value in (("default", default), ("defaultRequest", request)) if value and value != item.get(key)}
    return {**item, **changes} if changes else item


def _limits(items: list[Tree]) -> Errors:
    seen: set[str] = set()
    for index, item in enumerate(items):
        here, kind = f"spec.limits[{index}]", item.get("type", "")
        if names.qualified_name(kind) is not None:
            yield from wrong(names.qualified_name, kind, f"{here}.type")
        elif "/" not in kind and kind not in ("Container", "PersistentVolumeClaim", "Pod"):
            yield invalid(f"{here}.type", kind, "must be a standard limit type or fully qualified")
        if kind in seen:
            yield duplicate(f"{here}.type", kind)
        seen.add(kind)
        yield from _names(item, kind, here)
        keys = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
        for name in sorted({name for key in keys for name in item.get(key) or ()}):
            yield from _one(item, kind, name, here)


def _names(item: Tree, kind: str, path: str) -> Errors:
    check = container_resource_name if kind in ("Pod", "Container") else resource_name
    for key in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio"):
        if kind == "Pod" and key in ("default", "defaultRequest"):
            if item.get(key):
                yield forbidden(f"{path}.{key}", "may not be specified when `type` is 'Pod'")
            continue
        for name in item.get(key) or ():
            yield from check(name, f"{path}.{key}[{name}]")
    if kind == "PersistentVolumeClaim" and not any("storage" in (item.get(key) or ()) for key in ("min", "max")):
        yield required(f"{path}.limits", "either minimum or maximum storage value is required, but neither was provided")


def _one(item: Tree, kind: str, name: str, path: str) -> Errors:
    """Check the limits of one resource against each other."""

    def get(key: str) -> str | None:
        found: str | None = (item.get(key) or {}).get(name)
        return found if kind != "Pod" or key not in ("default", "defaultRequest") else None

    least, most, default, request, ratio = (get(key) for key in ("min", "max", "default", "defaultRequest", "maxLimitRequestRatio"))

    def above(one: str | None, other: str | None) -> bool:
        return one is not None and other is not None and quantity.nano(one) > quantity.nano(other)

    if above(least, most):
        yield invalid(f"{path}.min[{name}]", least, f"min value {least} is greater than max value {most}")
    if above(least, request):
        yield invalid(f"{path}.defaultRequest[{name}]", request, f"min value {least} is greater than default request value {request}")
    if above(request, most):
        yield invalid(f"{path}.defaultRequest[{name}]", request, f"default request value {request} is greater than max value {most}")
    if above(request, default):
        yield invalid(f"{path}.defaultRequest[{name}]", request, f"default request value {request} is greater than default limit value {default}")
    if above(least, default):
        yield invalid(f"{path}.default[{name}]", least, f"min value {least} is greater than default value {default}")
    if above(default, most):
        yield invalid(f"{path}.default[{name}]", most, f"default value {default} is greater than max value {most}")
    if ratio is not None:
        if quantity.nano(ratio) < quantity.NANO:
            yield invalid(f"{path}.maxLimitRequestRatio[{name}]", ratio, f"ratio {ratio} is less than 1")
        if least is not None and most is not None and quantity.nano(least):
            widest = quantity.nano(most) / quantity.nano(least)
            if quantity.nano(ratio) / quantity.NANO > widest:
                yield invalid(f"{path}.maxLimitRequestRatio[{name}]", ratio, f"ratio {ratio} is greater than max/min = {widest:f}")
    if not may_overcommit(name) and default is not None and request is not None and quantity.nano(default) != quantity.nano(request):
        yield invalid(f"{path}.defaultRequest[{name}]", request, f"default value {default} must equal to defaultRequest value {request} in {name}")
