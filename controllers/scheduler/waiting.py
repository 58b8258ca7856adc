"""Pods that could not be scheduled: when they are tried again, and how long they back off.

A pod waits until something happened that may help it, and at least its back-off (1 s doubling to 10 s) since the last attempt.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

BACKOFF_BASE, BACKOFF_LIMIT = 1.0, 10.0


@dataclass(slots=True)
class Attempt:
    """The last failed attempt of a pod."""

    at: float
    count: int
    priority: int
    generation: int
    """The cache generation of the attempt: nothing that could help has happened while it is still the same."""

    def ready_in(self, now: float) -> float:
        """Return the seconds of back-off that are left."""
        return max(self.at + min(BACKOFF_BASE * 2.0 ** (self.count - 1), BACKOFF_LIMIT) - now, 0.0)


class Waiting:
    """The unschedulable pods, in the order in which they failed."""

    def __init__(self, retry: Callable[[str, float, int], None]) -> None:
        self._retry = retry
        self._attempts: dict[str, Attempt] = {}
        self._asleep: dict[str, None] = {}

    def failed(self, key: str, now: float, priority: int, generation: int) -> None:
        """Note a failed attempt: the pod sleeps until it is woken."""
        before = self._attempts.get(key)
        self._attempts[key] = Attempt(now, before.count + 1 if before is not None else 1, priority, generation)
        self._asleep[key] = None

    def done(self, key: str) -> None:
        """Forget a pod that was scheduled or is gone."""
        self._attempts.pop(key, None)
        self._asleep.pop(key, None)

    def asleep(self, key: str) -> bool:
        """Tell whether a pod waits to be woken."""
        return key in self._asleep

    def wake(self, key: str, now: float) -> None:
        """Let one pod be tried again once its back-off is over."""
        attempt = self._attempts.get(key)
        if attempt is not None and key in self._asleep:
            del self._asleep[key]
            self._retry(key, attempt.ready_in(now), attempt.priority)

    def wake_all(self, now: float) -> None:
        """Something that may help any pod has happened."""
        asleep, self._asleep = self._asleep, {}
        for key in asleep:
            attempt = self._attempts[key]
            self._retry(key, attempt.ready_in(now), attempt.priority)
