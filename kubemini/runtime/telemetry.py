"""What controllers count about themselves, for `/metrics`: counters, histograms and gauges as upstream names and labels them.

Counting costs two dictionary operations, and no library; whoever serves the page turns the families into its format. They belong to a controller object: a controller that
is started anew counts from zero, as a process does.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class Counter:
    """A monotonic counter with labels. `samples` holds a value per tuple of label values, in the order of first use."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    samples: dict[tuple[str, ...], int] = field(default_factory=dict)

    def inc(self, *values: str, by: int = 1) -> None:
        """Count up by a number that is not negative.

        >>> pods = Counter("pods_total", "Pods", ("phase",))
        >>> pods.inc("Failed"); pods.inc("Failed", by=2); pods.samples
        {('Failed',): 3}
        """
        self.samples[values] = self.samples.get(values, 0) + by


@dataclass(slots=True)
class Histogram:
    """Observed values by label values, in buckets. A sample holds how many values fell into each bucket, the last of which has no bound, and the sum of all values."""

    name: str
    help: str
    labels: tuple[str, ...]
    bounds: tuple[float, ...]
    samples: dict[tuple[str, ...], tuple[list[int], list[float]]] = field(default_factory=dict)

    def observe(self, value: float, *values: str) -> None:
        """Count a value.

        >>> seconds = Histogram("seconds", "Seconds", (), (1.0, 2.0))
        >>> seconds.observe(1.0); seconds.observe(1.5); seconds.observe(9.0); seconds.samples
        {(): ([1, 1, 1], [11.5])}
        """
        sample = self.samples.get(values)
        if sample is None:
            sample = self.samples[values] = ([0] * (len(self.bounds) + 1), [0.0])
        sample[0][bisect_left(self.bounds, value)] += 1
        sample[1][0] += value

    def add(self, sample: tuple[list[int], list[float]], *values: str) -> None:
        """Count what another histogram of these bounds has counted."""
        counts, (total,) = sample
        before, (sum_,) = self.samples.get(values, ([0] * len(counts), [0.0]))
        self.samples[values] = ([one + other for one, other in zip(before, counts, strict=True)], [sum_ + total])


@dataclass(frozen=True, slots=True)
class Gauge:
    """Values that are looked up when somebody asks: `read` returns one per tuple of label values."""

    name: str
    help: str
    labels: tuple[str, ...]
    read: Callable[[], Mapping[tuple[str, ...], float]]


Family = Counter | Histogram | Gauge
Families = Sequence[Family]


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Return bounds of buckets, each `factor` times the one before.

    >>> exponential(0.5, 2, 3)
    (0.5, 1.0, 2.0)
    """
    return tuple(start * factor**power for power in range(count))
