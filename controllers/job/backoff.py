"""The global back-off of a Job: how long to wait before a failed pod is replaced."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

BASE, LIMIT = 10.0, 600.0
"""Seconds: the first wait, and the longest."""


@dataclass(frozen=True, slots=True)
class Record:
    """Failures since the last success, and when the last of them ended (Unix seconds)."""

    failures: int = 0
    last: float = 0.0

    def after(self, succeeded: Iterable[float], failed: Iterable[float]) -> Record:
        """Return the record after pods that ended at these times; a success resets the count to the failures that ended after it."""
        wins, losses = list(succeeded), sorted(failed)
        if wins:
            latest = max(wins)
            later = [end for end in losses if end > latest]
            return Record(len(later), later[-1] if later else 0.0)
        if not losses:
            return self
        return Record(self.failures + len(losses), max(self.last, losses[-1]))

    def remaining(self, now: float) -> float:
        """Return how many seconds are left to wait, 0 when none."""
        return max(self.last + delay(self.failures) - now, 0.0) if self.failures else 0.0


def delay(failures: int) -> float:
    """Return the wait after so many failures in a row.

    >>> [delay(n) for n in (0, 1, 2, 3, 7)]
    [0.0, 10.0, 20.0, 40.0, 600.0]
    """
    return min(BASE * 2.0 ** min(failures - 1, 16), LIMIT) if failures > 0 else 0.0
