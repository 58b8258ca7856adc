"""What the autoscaler counts, by upstream's names, labels and buckets (Kubernetes 1.36)."""

from __future__ import annotations

from collections.abc import Callable

from kubemini.runtime.telemetry import Counter, Families, Gauge, Histogram, exponential

NONE, INTERNAL, SPEC = "none", "internal", "spec"
"""What went wrong: nothing, something outside, or what the autoscaler itself says."""


def action(before: int, after: int) -> str:
    """Return what a size does to the one before.

    >>> action(1, 2), action(2, 1), action(1, 1)
    ('scale_up', 'scale_down', 'none')
    """
    return "scale_up" if after > before else "scale_down" if after < before else NONE


class Monitor:
    """The numbers of one controller process. `number` returns how many autoscalers there are."""

    def __init__(self, number: Callable[[], int]) -> None:
        name = "horizontal_pod_autoscaler_controller_{}".format
        of_look, of_metric, bounds = ("action", "error"), ("action", "error", "metric_type"), exponential(0.001, 2, 15)
        self.looks = Counter(name("reconciliations_total"), "The number of reconciliations, by what they did and what went wrong first", of_look)
        self.look_seconds = Histogram(name("reconciliation_duration_seconds"), "The time (seconds) that one reconciliation took", of_look, bounds)
        self.computations = Counter(name("metric_computation_total"), "The number of metric computations, by what they proposed", of_metric)
        self.computation_seconds = Histogram(
            name("metric_computation_duration_seconds"), "The time (seconds) that the computation of one metric took", of_metric, bounds
        )
        self.desired: dict[tuple[str, ...], float] = {}
        """The last wanted size by namespace and name."""
        self._desired = Gauge(
            name("desired_replicas"), "The replica count that was wanted last for an autoscaler", ("namespace", "hpa_name"), lambda: self.desired
        )
        self._number = Gauge(name("num_horizontal_pod_autoscalers"), "The number of autoscalers that are looked after", (), lambda: {(): number()})

    def looked(self, did: str, error: str, seconds: float) -> None:
        """Count a reconciliation."""
        self.looks.inc(did, error)
        self.look_seconds.observe(seconds, did, error)

    def computed(self, did: str, error: str, kind: str, seconds: float) -> None:
        """Count the computation of a metric."""
        self.computations.inc(did, error, kind)
        self.computation_seconds.observe(seconds, did, error, kind)

    def all(self) -> Families:
        """Return every family."""
        return (self.looks, self.look_seconds, self.computations, self.computation_seconds, self._desired, self._number)
