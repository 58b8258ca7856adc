"""Where metrics come from: the cluster's program first, then annotations. All values are in thousandths, as autoscalers calculate with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kubemini.api.trees import Tree
from kubemini.controllers.disruption.budget import selector_text
from kubemini.machinery import pod_usage, quantity
from kubemini.machinery.labels import from_label_selector
from kubemini.runtime.metrics import MetricProgram, MetricQuery, Value

_PER_MILLI = 10**6
NO_RESOURCE_METRICS = "unable to fetch metrics from resource metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)"
NO_CUSTOM_METRICS = "unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered"
NO_EXTERNAL_METRICS = "unable to fetch metrics from external metrics API: no external metrics API (external.metrics.k8s.io) registered"


class MetricError(Exception):
    """A metric cannot be had, or no size follows from it; the message is upstream's."""


def _milli(nano: int | None) -> int | None:
    return None if nano is None else -(-nano // _PER_MILLI)


def _number(value: Value) -> int:
    if isinstance(value, str):
        return quantity.milli(value)
    return -int(-value * 1000 // 1)


class Metrics:
    """Answers what an autoscaler asks."""

    def __init__(self, program: MetricProgram | None) -> None:
        self.program = program

    def _ask(self, query: MetricQuery) -> int | None:
        answer = self.program(query) if self.program is not None else None
        if answer is None:
            return None
        if isinstance(answer, Sequence) and not isinstance(answer, str):
            return sum(map(_number, answer))
        return _number(answer)

    def resource(self, pods: Sequence[Tree], name: str, container: str) -> dict[str, int]:
        """Return what pods (or one container of each) use of a resource, by pod name; pods that nothing is known of are left out. Raise `MetricError` when that is all."""
        kind = "ContainerResource" if container else "Resource"

        def annotated(pod: Tree) -> int | None:
            return pod_usage.container_usage(pod, container, name) if container else pod_usage.pod_usage(pod, name)

        found = self._of_each(pods, lambda pod: MetricQuery(kind, name, pod["metadata"]["namespace"], pod, container), annotated)
        if not found:
            raise MetricError(f"unable to get metrics for resource {name}: {self._why(NO_RESOURCE_METRICS, 'resource')}")
        return found

    def pods(self, pods: Sequence[Tree], metric: Tree) -> dict[str, int]:
        """Return a custom metric of pods by pod name. Raise `MetricError` when there is none."""
        name, selector = metric["name"], _selector(metric)
        found = self._of_each(
            pods,
            lambda pod: MetricQuery("Pods", name, pod["metadata"]["namespace"], pod, selector=selector),
            lambda pod: pod_usage.custom_metric(pod, name),
        )
        if not found:
            raise MetricError(f"unable to get metric {name}: {self._why(NO_CUSTOM_METRICS, 'custom')}")
        return found

    def _of_each(self, pods: Sequence[Tree], query: Callable[[Tree], MetricQuery], annotated: Callable[[Tree], int | None]) -> dict[str, int]:
        """Return a value of each pod by its name: what the program answers, else what its annotations say; pods that nothing is known of are left out."""
        found: dict[str, int] = {}
        for pod in pods:
            value = self._ask(query(pod))
            if value is None:
                value = _milli(annotated(pod))
            if value is not None:
                found[pod["metadata"]["name"]] = value
        return found

    def _why(self, without: str, api: str) -> str:
        """Return why there is no metric: nobody serves them, or who does has none."""
        return without if self.program is None else f"no metrics returned from {api} metrics API"

    def object(self, reference: Tree, described: Tree | None, namespace: str, metric: Tree) -> int:
        """Return a metric of an object. Raise `MetricError`."""
        value = self._ask(MetricQuery("Object", metric["name"], namespace, described=reference, selector=_selector(metric)))
        if value is None and described is not None:
            value = _milli(pod_usage.custom_metric(described, metric["name"]))
        if value is None:
            raise MetricError(
                f"unable to get metric {metric['name']}: {reference['kind']} on {namespace} {reference['name']}/{self._why(NO_CUSTOM_METRICS, 'custom')}"
            )
        return value

    def external(self, autoscaler: Tree, metric: Tree) -> int:
        """Return an external metric, the sum of its values. Raise `MetricError`."""
        namespace = autoscaler["metadata"]["namespace"]
        value = self._ask(MetricQuery("External", metric["name"], namespace, selector=_selector(metric)))
        if value is None:
            value = _milli(pod_usage.custom_metric(autoscaler, metric["name"]))
        if value is None:
            why = self._why(NO_EXTERNAL_METRICS, "external")
            raise MetricError(f"unable to get external metric {namespace}/{metric['name']}/{shown_selector(metric.get('selector'))}: {why}")
        return value


def _selector(metric: Mapping[str, Tree | None]) -> str:
    selector = metric.get("selector")
    return str(from_label_selector(selector)) if selector is not None else ""


def shown_selector(selector: Tree | None) -> str:
    """Return a metric's selector as Go prints the pointer to it."""
    return "nil" if selector is None else selector_text(selector)
