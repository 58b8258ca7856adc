"""What each metric of an autoscaler proposes, and what the status says of it. Mirrors ``computeReplicasForMetric`` and its kin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kubemini.api.trees import Tree
from kubemini.controllers.autoscaling import replicas as calculating
from kubemini.controllers.autoscaling.metrics import INTERNAL, SPEC
from kubemini.controllers.autoscaling.replicas import Outcome, Tolerance
from kubemini.controllers.autoscaling.sources import MetricError, Metrics, shown_selector
from kubemini.machinery import quantity


@dataclass(frozen=True, slots=True)
class Situation:
    """What proposals are made from: the autoscaler, the pods of its target, what the Scale says, and the time."""

    autoscaler: Tree
    pods: Sequence[Tree]
    wanted: int
    """spec.replicas of the Scale."""
    reported: int
    """status.replicas of the Scale."""
    tolerance: Tolerance
    now: float
    described: Tree | None = None
    """The object that a metric of type Object describes."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A size, the words for the metric behind it, and the metric's status."""

    replicas: int
    name: str
    status: Tree


class Unavailable(Exception):
    """A metric proposes nothing. `reason` and `event` are those of the condition and its event, the message is that of the error as a whole.

    `error` is its kind for the metrics.
    """

    def __init__(self, reason: str, event: str, message: str, error: str = INTERNAL) -> None:
        super().__init__(message)
        self.reason, self.event, self.error = reason, event, error


def propose(metric: Tree, situation: Situation, metrics: Metrics) -> Proposal:
    """Return what one metric proposes. Raise `Unavailable`."""
    match metric["type"]:
        case "Resource":
            return _resource("Resource", "resource", metric["resource"], "", situation, metrics)
        case "ContainerResource":
            source = metric["containerResource"]
            return _resource("ContainerResource", "containerResource", source, source["container"], situation, metrics)
        case "Pods":
            return _pods(metric["pods"], situation, metrics)
        case "Object":
            return _object(metric["object"], situation, metrics)
        case "External":
            return _external(metric["external"], situation, metrics)
        case other:
            text = f'unknown metric source type "{other}"'
            raise Unavailable("InvalidMetricSourceType", text, text, SPEC)


def _amount(milli: int) -> str:
    return quantity.from_milli(milli)


def _resource(kind: str, field: str, source: Tree, container: str, situation: Situation, metrics: Metrics) -> Proposal:
    name, target = source["name"], source["target"]
    raw, share = target.get("averageValue"), target.get("averageUtilization")

    def failed(text: str) -> Unavailable:
        what = f"{container} container" if container else f"{name} resource"
        return Unavailable(f"FailedGet{kind}Metric", text, f"failed to get {what} metric value: {text}")

    if raw is None and share is None:
        raise failed("invalid resource metric source: neither an average utilization target nor an average value (usage) target was set")
    pods, now, current = situation.pods, situation.now, situation.wanted
    try:
        values = metrics.resource(pods, name, container)
        if raw is not None:
            found = calculating.by_average(pods, values, quantity.milli(raw), current, situation.tolerance, name, now)
        else:
            wanted = calculating.requests(pods, container, name)
            found = calculating.by_utilization(pods, values, wanted, share, current, situation.tolerance, name, now)
    except MetricError as problem:
        raise failed(f"failed to get {name} {'utilization' if raw is None else 'usage'}: {problem}") from problem
    value: Tree = {"averageValue": _amount(found.usage)}
    if raw is None:
        value["averageUtilization"] = found.share
    words = f"{name} resource" if raw is not None else f"{name} {'container ' if container else ''}resource utilization (percentage of request)"
    about: Tree = {"name": name, **({"container": container} if container else {})}
    return Proposal(found.replicas, words, {"type": kind, field: {**about, "current": value}})


def _pods(source: Tree, situation: Situation, metrics: Metrics) -> Proposal:
    metric = source["metric"]
    try:
        values = metrics.pods(situation.pods, metric)
        target = quantity.milli(source["target"]["averageValue"])
        found = calculating.by_average(situation.pods, values, target, situation.wanted, situation.tolerance, "", situation.now)
    except MetricError as problem:
        raise Unavailable("FailedGetPodsMetric", str(problem), f"failed to get pods metric value: {problem}") from problem
    status = {"type": "Pods", "pods": {"metric": metric, "current": {"averageValue": _amount(found.usage)}}}
    return Proposal(found.replicas, f"pods metric {metric['name']}", status)


def _of_one_value(value: int, target: Tree, situation: Situation) -> tuple[Outcome, Tree]:
    """Return the size for a value that all pods share, and the ``current`` of its status. Raise `MetricError`."""
    if target.get("averageValue") is not None and target["type"] == "AverageValue":
        found = calculating.by_value_per_pod(value, quantity.milli(target["averageValue"]), situation.reported, situation.tolerance)
        return found, {"averageValue": _amount(found.usage)}
    found = calculating.by_value(situation.pods, value, quantity.milli(target["value"]), situation.wanted, situation.tolerance)
    return found, {"value": _amount(found.usage)}


def _has_target(target: Tree) -> bool:
    return (target["type"] == "Value" and target.get("value") is not None) or (
        target["type"] == "AverageValue" and target.get("averageValue") is not None
    )


def _object(source: Tree, situation: Situation, metrics: Metrics) -> Proposal:
    metric, target, reference = source["metric"], source["target"], source["describedObject"]
    if not _has_target(target):
        text = "invalid object metric source: neither a value target nor an average value target was set"
        raise Unavailable("FailedGetObjectMetric", text, f"failed to get object metric value: {text}")
    try:
        value = metrics.object(reference, situation.described, situation.autoscaler["metadata"]["namespace"], metric)
        found, current = _of_one_value(value, target, situation)
    except MetricError as problem:
        raise Unavailable("FailedGetObjectMetric", str(problem), f"failed to get object metric value: {problem}") from problem
    if "value" in current:
        words = f"{reference['kind']} metric {metric['name']}"
    else:
        words = f"external metric {metric['name']}({shown_selector(metric.get('selector'))})"
    return Proposal(found.replicas, words, {"type": "Object", "object": {"metric": metric, "current": current, "describedObject": reference}})


def _external(source: Tree, situation: Situation, metrics: Metrics) -> Proposal:
    metric, target = source["metric"], source["target"]
    if not _has_target(target):
        text = "invalid external metric source: neither a value target nor an average value target was set"
        raise Unavailable("FailedGetExternalMetric", text, f"failed to get {metric['name']} external metric value: {text}")
    try:
        value = metrics.external(situation.autoscaler, metric)
        found, current = _of_one_value(value, target, situation)
    except MetricError as problem:
        inner = (
            f"failed to get external metric {metric['name']}: {problem}"
            if target["type"] == "Value"
            else f"failed to get {metric['name']} external metric: {problem}"
        )
        raise Unavailable("FailedGetExternalMetric", str(problem), f"failed to get {metric['name']} external metric value: {inner}") from problem
    words = f"external metric {metric['name']}({shown_selector(metric.get('selector'))})"
    return Proposal(found.replicas, words, {"type": "External", "external": {"metric": metric, "current": current}})
