"""From metrics to a number of pods. Pure functions; values are in thousandths. Mirrors the replica calculator of the autoscaler."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

from kubemini.api.trees import Tree
from kubemini.controllers.autoscaling.sources import MetricError
from kubemini.controllers.replica_set.pods import phase, ready_since
from kubemini.machinery import quantity
from kubemini.runtime.env import from_stamp

CPU_INITIALIZATION = 300.0
"""Seconds after a pod's start in which its CPU counts only while it is Ready (--horizontal-pod-autoscaler-cpu-initialization-period)."""
INITIAL_READINESS = 30.0
"""A pod that turned unready within so many seconds of its start was never ready (--horizontal-pod-autoscaler-initial-readiness-delay)."""
NO_PODS = "no pods returned by selector while calculating replica count"
NO_METRICS = "did not receive metrics for targeted pods (pods might be unready)"


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far from the target a ratio may be without a change."""

    down: float = 0.1
    up: float = 0.1

    def holds(self, ratio: float) -> bool:
        """Tell whether a ratio is near enough to 1."""
        return 1.0 - self.down <= ratio <= 1.0 + self.up


@dataclass(slots=True)
class Groups:
    """Pods by what their metrics are worth."""

    ready: int = 0
    unready: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)


def grouped(pods: Sequence[Tree], metrics: Mapping[str, int], resource: str, now: float) -> Groups:
    """Sort pods: going or failed ones are ignored, pending ones unready, and for CPU those that have not settled, too."""
    found = Groups()
    for pod in pods:
        name = pod["metadata"]["name"]
        if "deletionTimestamp" in pod["metadata"] or phase(pod) == "Failed":
            found.ignored.append(name)
        elif phase(pod) == "Pending":
            found.unready.append(name)
        elif name not in metrics:
            found.missing.append(name)
        elif resource == "cpu" and _unsettled(pod, now):
            found.unready.append(name)
        else:
            found.ready += 1
    return found


def _unsettled(pod: Tree, now: float) -> bool:
    status = pod.get("status") or {}
    condition = next((each for each in status.get("conditions") or () if each["type"] == "Ready"), None)
    start = status.get("startTime")
    if condition is None or not start:
        return True
    if condition["status"] != "False":
        return False
    if from_stamp(start) + CPU_INITIALIZATION > now:
        return True
    return from_stamp(start) + INITIAL_READINESS > from_stamp(condition["lastTransitionTime"])


def requests(pods: Sequence[Tree], container: str, resource: str) -> dict[str, int]:
    """Return what pods (or one container of each) ask for, by pod name. Raise `MetricError` where one does not say."""
    found: dict[str, int] = {}
    for pod in pods:
        spec, name = pod["spec"], pod["metadata"]["name"]
        whole = ((spec.get("resources") or {}).get("requests") or {}).get(resource)
        if whole is not None and not container:
            found[name] = quantity.milli(whole)
            continue
        sidecars = [each for each in spec.get("initContainers") or () if each.get("restartPolicy") == "Always"]
        total = 0
        for each in (*spec["containers"], *sidecars):
            if not container or each["name"] == container:
                size = ((each.get("resources") or {}).get("requests") or {}).get(resource)
                if size is None:
                    raise MetricError(f"missing request for {resource} in container {each['name']} of Pod {name}")
                total += quantity.milli(size)
        found[name] = total
    return found


@dataclass(frozen=True, slots=True)
class Outcome:
    """A size, and the usage that it follows from; `share` is a percentage of requests where the target is one."""

    replicas: int
    usage: int
    share: int | None = None


def by_utilization(
    pods: Sequence[Tree],
    metrics: dict[str, int],
    wanted: Mapping[str, int],
    target: int,
    current: int,
    tolerance: Tolerance,
    resource: str,
    now: float,
) -> Outcome:
    """Return the size at which pods use `target` percent of what they ask for (`wanted`). Raise `MetricError`."""

    def ratio(values: Mapping[str, int]) -> tuple[float, int, int | None]:
        known = [name for name in values if name in wanted]
        total, asked = sum(values[name] for name in known), sum(wanted[name] for name in known)
        if asked == 0:
            raise MetricError("no metrics returned matched known pods")
        share = total * 100 // asked
        return share / target, total // len(known), share

    def substitute(name: str) -> int:
        return wanted.get(name, 0) * max(100, target) // 100

    return _sized(pods, metrics, current, tolerance, resource, now, ratio, substitute)


def by_average(pods: Sequence[Tree], metrics: dict[str, int], target: int, current: int, tolerance: Tolerance, resource: str, now: float) -> Outcome:
    """Return the size at which pods have `target` on average. Raise `MetricError`."""

    def ratio(values: Mapping[str, int]) -> tuple[float, int, int | None]:
        average = sum(values.values()) // len(values)
        return average / target, average, None

    return _sized(pods, metrics, current, tolerance, resource, now, ratio, lambda _: target)


def _sized(
    pods: Sequence[Tree],
    metrics: dict[str, int],
    current: int,
    tolerance: Tolerance,
    resource: str,
    now: float,
    ratio_of: Callable[[Mapping[str, int]], tuple[float, int, int | None]],
    substitute: Callable[[str], int],
) -> Outcome:
    """Return the size for a ratio of usage to target; pods without a metric are taken for what makes the change smaller."""
    if not pods:
        raise MetricError(NO_PODS)
    groups = grouped(pods, metrics, resource, now)
    values = {name: value for name, value in metrics.items() if name not in groups.ignored and name not in groups.unready}
    if not values:
        raise MetricError(NO_METRICS)
    ratio, usage, share = ratio_of(values)
    unready_matter = bool(groups.unready) and ratio > 1.0
    if not unready_matter and not groups.missing:
        same = tolerance.holds(ratio)
        return Outcome(current if same else ceil(ratio * groups.ready), usage, share)
    if groups.missing and ratio != 1.0:
        values |= {name: substitute(name) if ratio < 1.0 else 0 for name in groups.missing}
    if unready_matter:
        values |= dict.fromkeys(groups.unready, 0)
    again, _, _ = ratio_of(values)
    if tolerance.holds(again) or (ratio < 1.0 < again) or (again < 1.0 < ratio):
        return Outcome(current, usage, share)
    size = ceil(again * len(values))
    if (again < 1.0 and size > current) or (again > 1.0 and size < current):
        return Outcome(current, usage, share)
    return Outcome(size, usage, share)


def by_value(pods: Sequence[Tree], value: int, target: int, current: int, tolerance: Tolerance) -> Outcome:
    """Return the size at which one value for all pods together meets its target. Raise `MetricError`."""
    ratio = value / target
    if current == 0:
        return Outcome(ceil(ratio), value)
    if tolerance.holds(ratio):
        return Outcome(current, value)
    if not pods:
        raise MetricError(NO_PODS)
    ready = sum(1 for pod in pods if phase(pod) == "Running" and ready_since(pod) is not None)
    return Outcome(ceil(ratio * ready), value)


def by_value_per_pod(value: int, target: int, reported: int, tolerance: Tolerance) -> Outcome:
    """Return the size at which each pod's share of one value meets its target; `reported` is how many pods there are."""
    size = reported
    ratio = value / (target * reported) if reported else float("inf")
    if not tolerance.holds(ratio):
        size = ceil(value / target)
    return Outcome(size, ceil(value / reported) if reported else value)
