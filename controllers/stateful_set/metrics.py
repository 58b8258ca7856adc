"""What the StatefulSet controller counts, by upstream's names and labels (Kubernetes 1.36)."""

from __future__ import annotations

from kubemini.runtime.consistency import StaleSkips
from kubemini.runtime.telemetry import Counter, Families


class Metrics:
    """The counters of one controller process."""

    def __init__(self) -> None:
        self.stale = StaleSkips("statefulset", "StatefulSet")
        self.violations = Counter(
            "statefulset_controller_statefulset_unavailability_violation",
            "The number of times that more replicas were unavailable than maxUnavailable allows (with the gate MaxUnavailableStatefulSet)",
            ("statefulset_namespace", "statefulset_name", "pod_management_policy"),
        )

    def all(self) -> Families:
        """Return every family."""
        return (self.stale, self.violations)
