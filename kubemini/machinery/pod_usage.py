"""What a simulated pod uses, as its annotations say.

| annotation on a pod | meaning |
| --- | --- |
| ``kubemini.dev/cpu-usage``, ``kubemini.dev/memory-usage``, ``kubemini.dev/RESOURCE-usage`` | quantity that the whole pod uses |
| ``kubemini.dev/cpu-usage.CONTAINER`` | quantity that one container uses |
| ``kubemini.dev/metric.NAME`` | value of a custom metric; on other objects the same for metrics of those, on an autoscaler for external ones |
"""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.machinery import quantity

PREFIX = "kubemini.dev/"


def _read(obj: Tree, name: str) -> int | None:
    text = (obj["metadata"].get("annotations") or {}).get(PREFIX + name)
    return quantity.nano(text) if text is not None and quantity.is_quantity(text) else None


def container_usage(pod: Tree, container: str, resource: str) -> int | None:
    """Return what a container uses in billionths: its own annotation, else an equal share of what the pod's leaves for those without one; None where none speaks."""
    own = _read(pod, f"{resource}-usage.{container}")
    if own is not None:
        return own
    whole = _read(pod, f"{resource}-usage")
    if whole is None:
        return None
    told = [_read(pod, f"{resource}-usage.{each['name']}") for each in pod["spec"]["containers"]]
    return max(whole - sum(each for each in told if each is not None), 0) // max(told.count(None), 1)


def pod_usage(pod: Tree, resource: str) -> int | None:
    """Return what a pod uses in billionths: its annotation, else the sum of its containers' where each has one."""
    whole = _read(pod, f"{resource}-usage")
    if whole is not None:
        return whole
    parts = [_read(pod, f"{resource}-usage.{each['name']}") for each in pod["spec"]["containers"]]
    told = [each for each in parts if each is not None]
    return sum(told) if len(told) == len(parts) and parts else None


def custom_metric(obj: Tree, name: str) -> int | None:
    """Return a custom metric of an object in billionths, None where it has none."""
    return _read(obj, f"metric.{name}")
