"""``ttlSecondsAfterFinished``: finished JobSets go, with all that belongs to them."""

from __future__ import annotations

from kubemini.controllers.jobset.view import JobSetView
from kubemini.runtime.env import from_stamp


def left(js: JobSetView, now: float) -> float | None:
    """Return how many seconds a finished JobSet has left, not positive when its time is over; None where it may stay for ever."""
    seconds = js.spec.get("ttlSecondsAfterFinished")
    if seconds is None or js.end is None or js.deleting:
        return None
    return from_stamp(js.end["lastTransitionTime"]) + float(seconds) - now
