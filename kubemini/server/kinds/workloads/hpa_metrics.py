"""The metrics of a HorizontalPodAutoscaler: one source each, with a target that fits. Mirrors ``pkg/apis/autoscaling/validation`` (1.36)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kubemini.api.trees import Tree
from kubemini.machinery import names, quantity
from kubemini.machinery.errors import forbidden, invalid, not_supported, required
from kubemini.server.kinds.core.formats import Errors, wrong
from kubemini.server.kinds.core.pod_resources import container_resource_name

SOURCES: Final = {"ContainerResource": "containerResource", "External": "external", "Object": "object", "Pods": "pods", "Resource": "resource"}
"""The field that each type of metric fills in."""
TARGET_TYPES: Final = ("Utilization", "Value", "AverageValue")


def validate_metrics(metrics: list[Tree], path: str) -> Errors:
    """Check the list of metrics."""
    for index, metric in enumerate(metrics):
        yield from _metric(metric, f"{path}[{index}]")


def object_reference(reference: Tree, path: str) -> Errors:
    """Check a reference to an object of any version."""
    for field in ("kind", "name"):
        if reference.get(field):
            yield from wrong(names.path_segment, reference[field], f"{path}.{field}")
        else:
            yield required(f"{path}.{field}")


def _metric(metric: Tree, path: str) -> Errors:
    kind = metric.get("type") or ""
    if not kind:
        yield required(f"{path}.type", "must specify a metric source type")
    if kind not in SOURCES:
        yield not_supported(f"{path}.type", kind, tuple(SOURCES))
    present = [field for field in _CHECKS if metric.get(field) is not None]
    if present:
        # Only the first source is looked into: more than one is refused as such below.
        yield from _CHECKS[present[0]](metric[present[0]], f"{path}.{present[0]}")
    expected = SOURCES.get(kind)
    if expected is not None and metric.get(expected) is None:
        yield required(f"{path}.{expected}", "must populate information for the given metric source")
    if expected is None:
        # Upstream says it once for the type and once for its source
        yield not_supported(f"{path}.type", kind, tuple(SOURCES))
    if len(present) != 1:
        for field in sorted(present):
            if field != expected:
                yield forbidden(f"{path}.{field}", "must populate the given metric source only")


def _object(source: Tree, path: str) -> Errors:
    yield from object_reference(source.get("describedObject") or {}, f"{path}.describedObject")
    yield from _identifier(source, path)
    target = source.get("target") or {}
    yield from _target(target, path)
    if target.get("value") is None and target.get("averageValue") is None:
        yield required(f"{path}.target.averageValue", "must set either a target value or averageValue")


def _external(source: Tree, path: str) -> Errors:
    yield from _identifier(source, path)
    target = source.get("target") or {}
    yield from _target(target, path)
    value, average = target.get("value"), target.get("averageValue")
    if value is None and average is None:
        yield required(f"{path}.target.averageValue", "must set either a target value for metric or a per-pod target")
    if value is not None and average is not None:
        yield forbidden(f"{path}.target.value", "may not set both a target value for metric and a per-pod target")


def _pods(source: Tree, path: str) -> Errors:
    yield from _identifier(source, path)
    target = source.get("target") or {}
    yield from _target(target, path)
    if target.get("averageValue") is None:
        yield required(f"{path}.target.averageValue", "must specify a positive target averageValue")


def _resource(source: Tree, path: str) -> Errors:
    if not source.get("name"):
        yield required(f"{path}.name", "must specify a resource name")
    yield from _resource_target(source.get("target") or {}, path)


def _container_resource(source: Tree, path: str) -> Errors:
    if not source.get("name"):
        yield required(f"{path}.name", "must specify a resource name")
    else:
        yield from container_resource_name(source["name"], f"{path}.name")
    if not source.get("container"):
        yield required(f"{path}.container", "must specify a container")
    else:
        yield from wrong(names.dns1123_label, source["container"], f"{path}.container")
    yield from _resource_target(source.get("target") or {}, path)


_CHECKS: Mapping[str, Callable[[Tree, str], Errors]] = {
    "object": _object,
    "external": _external,
    "pods": _pods,
    "resource": _resource,
    "containerResource": _container_resource,
}


def _resource_target(target: Tree, path: str) -> Errors:
    yield from _target(target, path)
    share, value = target.get("averageUtilization"), target.get("averageValue")
    if share is None and value is None:
        yield required(f"{path}.target.averageUtilization", "must set either a target raw value or a target utilization")
    if share is not None and value is not None:
        yield forbidden(f"{path}.target.averageValue", "may not set both a target raw value and a target utilization")


def _identifier(source: Tree, path: str) -> Errors:
    name = (source.get("metric") or {}).get("name")
    if not name:
        yield required(f"{path}.metric.name", "must specify a metric name")
    else:
        yield from wrong(names.path_segment, name, f"{path}.metric.name")


def _target(target: Tree, path: str) -> Errors:
    kind = target.get("type") or ""
    if not kind:
        yield required(f"{path}.target.type", "must specify a metric target type")
    if kind not in TARGET_TYPES:
        yield invalid(f"{path}.target.type", kind, "must be either Utilization, Value, or AverageValue")
    for field in ("value", "averageValue"):
        if target.get(field) is not None and quantity.nano(target[field]) <= 0:
            yield invalid(f"{path}.target.{field}", target[field], "must be positive")
    share = target.get("averageUtilization")
    if share is not None and share < 1:
        yield invalid(f"{path}.target.averageUtilization", share, "must be greater than 0")
