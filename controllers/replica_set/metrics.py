"""What the ReplicaSet controller counts, by upstream's names, labels and buckets (Kubernetes 1.36)."""

from __future__ import annotations

from collections.abc import Sequence

from kubemini.api.trees import Tree
from kubemini.controllers.replica_set.pods import ready_since
from kubemini.runtime.consistency import StaleSkips
from kubemini.runtime.env import from_stamp
from kubemini.runtime.telemetry import Families, Histogram, exponential


class Metrics:
    """The numbers of one controller process."""

    def __init__(self) -> None:
        self.ratios = Histogram(
            "replicaset_controller_sorting_deletion_age_ratio",
            "The age of a Ready pod that a scale down takes, over that of the youngest Ready pod. Should be below 2",
            (),
            exponential(0.25, 2, 6),
        )
        self.stale = StaleSkips("replicaset", "ReplicaSet")

    def chose(self, victims: Sequence[Tree], pods: Sequence[Tree], now: float) -> None:
        """Observe which of the pods a scale down takes. Ratios are whole numbers, as upstream divides them."""
        youngest = max((from_stamp(pod["metadata"]["creationTimestamp"]) for pod in pods if ready_since(pod) is not None), default=None)
        if youngest is None:
            return
        least = max(1, int((now - youngest) * 1000))
        for pod in victims:
            if ready_since(pod) is not None:
                self.ratios.observe(float(int((now - from_stamp(pod["metadata"]["creationTimestamp"])) * 1000) // least))

    def all(self) -> Families:
        """Return every family."""
        return (self.ratios, self.stale)
