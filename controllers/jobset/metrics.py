"""The counters that the controller exports: how many JobSets failed and completed, by name and namespace."""

from __future__ import annotations

from kubemini.runtime.telemetry import Counter


class Metrics:
    """The counters of one controller process, by upstream's names. Counted once the status is written, so that a conflict does not count twice."""

    def __init__(self) -> None:
        labels = ("jobset_name", "namespace")
        self.failed = Counter("jobset_failed_total", "The total number of failed JobSets", labels)
        self.completed = Counter("jobset_completed_total", "The total number of completed JobSets", labels)

    def all(self) -> tuple[Counter, ...]:
        """Return every counter."""
        return (self.failed, self.completed)
