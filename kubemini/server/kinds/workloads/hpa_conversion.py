"""HorizontalPodAutoscaler between autoscaling/v1 and v2, as trees.

v1 knows a CPU target only. What else v2 holds travels in annotations, so that an object that is read and written back
through v1 loses nothing. Mirrors ``pkg/apis/autoscaling/v1/conversion`` (1.36).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import orjson

from kubemini.api.trees import Tree

METRICS: Final = "autoscaling.alpha.kubernetes.io/metrics"
CURRENT_METRICS: Final = "autoscaling.alpha.kubernetes.io/current-metrics"
CONDITIONS: Final = "autoscaling.alpha.kubernetes.io/conditions"
BEHAVIOR: Final = "autoscaling.alpha.kubernetes.io/behavior"
_ROUND_TRIP: Final = frozenset({METRICS, CURRENT_METRICS, CONDITIONS, BEHAVIOR})

DEFAULT_METRICS: Final[list[Tree]] = [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]
"""What is meant where neither version names a metric."""

_SHARED_SPEC = ("scaleTargetRef", "minReplicas", "maxReplicas")
_SHARED_STATUS = ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas")
_V1, _V2 = "autoscaling/v1", "autoscaling/v2"


# ------------------------------------------------------------------------------------------------ v2 to v1


def to_v1(obj: Tree) -> Tree:
    """Return a v2 autoscaler as v1 shows it."""
    spec: Tree = obj.get("spec") or {}
    status: Tree = obj.get("status") or {}
    annotations = {key: value for key, value in (obj["metadata"].get("annotations") or {}).items() if key not in _ROUND_TRIP}
    metrics = spec.get("metrics") or []
    others = [_old_metric(metric, target=True) for metric in metrics if _cpu_share(metric, "target") is None]
    if others:
        annotations[METRICS] = _json(others)
    current = status.get("currentMetrics") or []
    if current:
        annotations[CURRENT_METRICS] = _json([_old_metric(metric, target=False) for metric in current])
    if spec.get("behavior") is not None:
        annotations[BEHAVIOR] = _json(_recased(spec["behavior"], str.capitalize))
    if status.get("conditions"):
        annotations[CONDITIONS] = _json(status["conditions"])
    old_spec = _kept(spec, _SHARED_SPEC)
    share = next((found for metric in metrics if (found := _cpu_share(metric, "target")) is not None), None)
    if share is not None:
        old_spec["targetCPUUtilizationPercentage"] = share
    old_status: Tree = {"currentReplicas": 0, "desiredReplicas": 0, **_kept(status, _SHARED_STATUS)}
    used = next((found for metric in current if (found := _cpu_share(metric, "current")) is not None), None)
    if used is not None:
        old_status["currentCPUUtilizationPercentage"] = used
    return {**obj, "apiVersion": _V1, "metadata": _annotated(obj["metadata"], annotations), "spec": old_spec, "status": old_status}


def _cpu_share(metric: Tree, side: str) -> int | None:
    resource = metric.get("resource")
    if metric.get("type") != "Resource" or resource is None or resource.get("name") != "cpu":
        return None
    share: int | None = (resource.get(side) or {}).get("averageUtilization")
    return share


def _old_metric(metric: Tree, *, target: bool) -> Tree:
    """Return a metric of v2 in the flat form of v1's annotations; `target` for a spec's, otherwise a status's."""
    side, word = ("target", "target") if target else ("current", "current")
    found: Tree = {"type": metric.get("type") or ""}
    for field in ("object", "pods", "resource", "containerResource", "external"):
        source = metric.get(field)
        if source is not None:
            found[field] = _FLATTEN[field](source, source.get(side) or {}, word)
    return found


def _flat_object(source: Tree, numbers: Tree, word: str) -> Tree:
    flat = {"target": source.get("describedObject") or {}, "metricName": _metric_name(source), f"{word}Value": numbers.get("value") or "0"}
    return _with_given(flat, {"selector": _metric_selector(source), "averageValue": numbers.get("averageValue")})


def _flat_pods(source: Tree, numbers: Tree, word: str) -> Tree:
    flat = {"metricName": _metric_name(source), f"{word}AverageValue": numbers.get("averageValue") or "0"}
    return _with_given(flat, {"selector": _metric_selector(source)})


def _flat_resource(source: Tree, numbers: Tree, word: str) -> Tree:
    share, value = f"{word}AverageUtilization", f"{word}AverageValue"
    flat = _with_given({"name": source.get("name") or ""}, {share: numbers.get("averageUtilization"), value: numbers.get("averageValue")})
    if word == "current":
        flat.setdefault(value, "0")
    return _with_given(flat, {"container": source.get("container")})


def _flat_external(source: Tree, numbers: Tree, word: str) -> Tree:
    flat = _with_given({"metricName": _metric_name(source)}, {"metricSelector": _metric_selector(source)})
    if word == "current":
        flat["currentValue"] = numbers.get("value") or "0"
        return _with_given(flat, {"currentAverageValue": numbers.get("averageValue")})
    return _with_given(flat, {"targetValue": numbers.get("value"), "targetAverageValue": numbers.get("averageValue")})


_FLATTEN: dict[str, Callable[[Tree, Tree, str], Tree]] = {
    "object": _flat_object,
    "pods": _flat_pods,
    "resource": _flat_resource,
    "containerResource": _flat_resource,
    "external": _flat_external,
}


# ------------------------------------------------------------------------------------------------ v1 to v2


def to_v2(obj: Tree) -> Tree:
    """Return a v1 autoscaler as it is stored."""
    spec: Tree = obj.get("spec") or {}
    status: Tree = obj.get("status") or {}
    annotations: Tree = obj["metadata"].get("annotations") or {}
    metrics = [_new_metric(metric, target=True) for metric in _parsed(annotations, METRICS, list)]
    share = spec.get("targetCPUUtilizationPercentage")
    if share is not None:
        metrics.append({"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": share}}})
    new_spec: Tree = {**_kept(spec, _SHARED_SPEC), "metrics": metrics or DEFAULT_METRICS}
    behavior = _parsed(annotations, BEHAVIOR, dict)
    if behavior:
        new_spec["behavior"] = _without_nulls(_recased(behavior, str.lower))
    current = [_new_metric(metric, target=False) for metric in _parsed(annotations, CURRENT_METRICS, list)]
    used = status.get("currentCPUUtilizationPercentage")
    if not current and used is not None:
        current = [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": used}}}]
    new_status: Tree = {"desiredReplicas": 0, **_kept(status, _SHARED_STATUS), "currentMetrics": current or None}
    if not new_status.get("currentReplicas"):
        new_status.pop("currentReplicas", None)
    conditions = _parsed(annotations, CONDITIONS, list)
    if conditions:
        new_status["conditions"] = conditions
    kept = {key: value for key, value in annotations.items() if key not in _ROUND_TRIP}
    return {**obj, "apiVersion": _V2, "metadata": _annotated(obj["metadata"], kept), "spec": new_spec, "status": new_status}


def _new_metric(flat: Tree, *, target: bool) -> Tree:
    side = "target" if target else "current"
    metric: Tree = {"type": flat.get("type") or ""}
    for field in ("object", "pods", "resource", "containerResource", "external"):
        source = flat.get(field)
        if source is None:
            continue
        numbers = _numbers(field, source, side)
        if target:
            numbers["type"] = _target_type(numbers)
        built: Tree = {side: numbers}
        if field in {"resource", "containerResource"}:
            built["name"] = source.get("name") or ""
            if field == "containerResource":
                built["container"] = source.get("container") or ""
        else:
            selector = source.get("metricSelector") if field == "external" else source.get("selector")
            built["metric"] = _with_given({"name": source.get("metricName") or ""}, {"selector": selector})
            if field == "object":
                built["describedObject"] = source.get("target") or {}
        metric[field] = built
    return metric


def _numbers(field: str, source: Tree, side: str) -> Tree:
    share, average, value = source.get(f"{side}AverageUtilization"), source.get(f"{side}AverageValue"), source.get(f"{side}Value")
    if field == "object":
        average = source.get("averageValue")
        # The flat form always has a value; it means something only without an average.
        value = None if average is not None and value == "0" else value
    return _with_given({}, {"averageUtilization": share, "averageValue": average, "value": value})


def _target_type(numbers: Tree) -> str:
    if numbers.get("averageUtilization") is not None:
        return "Utilization"
    return "AverageValue" if numbers.get("averageValue") is not None else "Value"


# ------------------------------------------------------------------------------------------------ parts


def _metric_name(source: Tree) -> str:
    name: str = (source.get("metric") or {}).get("name") or ""
    return name


def _metric_selector(source: Tree) -> Any:
    return (source.get("metric") or {}).get("selector")


def _kept(tree: Tree, fields: tuple[str, ...]) -> Tree:
    return {field: tree[field] for field in fields if tree.get(field) is not None}


def _with_given(tree: Tree, more: Tree) -> Tree:
    return {**tree, **{key: value for key, value in more.items() if value is not None}}


def _annotated(metadata: Tree, annotations: Tree) -> Tree:
    if annotations:
        return {**metadata, "annotations": annotations}
    return {key: value for key, value in metadata.items() if key != "annotations"}


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()


def _parsed(annotations: Tree, key: str, kind: type[Any]) -> Any:
    """Return what an annotation holds; upstream passes over one that cannot be read."""
    try:
        value = orjson.loads(annotations.get(key) or "null")
    except orjson.JSONDecodeError:
        return kind()
    return value if isinstance(value, kind) else kind()


def _recased(value: Any, case: Callable[[str], str]) -> Any:
    """Return a tree with the first letter of every key in another case: the annotation holds upstream's internal names (``ScaleUp``)."""
    if isinstance(value, dict):
        return {case(key[:1]) + key[1:]: _recased(each, case) for key, each in value.items()}
    return [_recased(each, case) for each in value] if isinstance(value, list) else value


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value
