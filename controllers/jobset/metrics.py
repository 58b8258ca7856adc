"""The counters that the controller exports: how many JobSets failed and completed, by name and namespace."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Counter:
    """A monotonic counter with labels. `samples` holds a value per tuple of label values, in the order of first use."""

    name: str
    help: str
    labels: tuple[str, ...]
    samples: dict[tuple[str, ...], int] = field(default_factory=dict)

    def inc(self, *values: str) -> None:
        """Count one up."""
        self.samples[values] = self.samples.get(values, 0) + 1


class Metrics:
    """The counters of one controller process, by upstream's names. Counted once the status is written, so that a conflict does not count twice."""

    def __init__(self) -> None:
        labels = ("jobset_name", "namespace")
        self.failed = Counter("jobset_failed_total", "The total number of failed JobSets", labels)
        self.completed = Counter("jobset_completed_total", "The total number of completed JobSets", labels)

    def all(self) -> tuple[Counter, ...]:
        """Return every counter."""
        return (self.failed, self.completed)
