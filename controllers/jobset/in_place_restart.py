"""Restart in place: agents in the pods report their attempt, the JobSet tells which attempt is left behind and which one may run.

Pods that report different attempts are brought together by ``previousInPlaceRestartAttempt``: an agent at or below it exits, so that its container
starts again one attempt later. Once all report the same one, ``currentInPlaceRestartAttempt`` lifts the barrier.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kubemini.api.trees import Tree
from kubemini.api.wellknown import jobset as names
from kubemini.controllers.jobset.errors import Stalled
from kubemini.controllers.jobset.view import JobSetView


@dataclass(frozen=True, slots=True)
class Attempts:
    """What the pods' reports lead to: failure, or new values (None: as it is)."""

    failed: bool = False
    current: int | None = None
    previous: int | None = None


def judge(js: JobSetView, pods: Iterable[Tree]) -> Attempts:
    """Return what the pods of a JobSet report. Raise `Stalled` for an attempt that is no number, or a role without a fixed number of pods."""
    pods = list(pods)
    limit = js.max_restarts
    if max(map(_restarts, pods), default=0) > limit:
        return Attempts(failed=True)
    reported = [attempt for pod in pods if (attempt := _attempt(pod)) is not None]
    highest = max(reported, default=0)
    uncounted = js.restarts - js.status.get("restartsCountTowardsMax", 0)
    if highest - uncounted > limit:
        return Attempts(failed=True)
    total = _pods(js)
    if reported and len(reported) == total and min(reported) == highest:
        return Attempts(current=highest)
    if not highest:
        return Attempts()
    before = js.status.get("previousInPlaceRestartAttempt")
    return Attempts(previous=highest - 1 if before is None else max(before, highest - 1))


def _restarts(pod: Tree) -> int:
    """Return the highest restart count of a pod's containers."""
    status = pod.get("status") or {}
    return max(
        (each.get("restartCount", 0) for group in ("initContainerStatuses", "containerStatuses") for each in status.get(group) or ()), default=0
    )


def _attempt(pod: Tree) -> int | None:
    """Return what a pod reports, None before its agent has; a failed pod stays beside its successor and does not count."""
    text = (pod["metadata"].get("annotations") or {}).get(names.IN_PLACE_RESTART_ATTEMPT)
    if text is None or (pod.get("status") or {}).get("phase") == "Failed":
        return None
    if not (text.isascii() and text.removeprefix("+").isdigit()):
        raise Stalled(f"invalid value for annotation {names.IN_PLACE_RESTART_ATTEMPT}, must be non-negative integer")
    return int(text)


def _pods(js: JobSetView) -> int:
    """Return how many pods the JobSet has."""
    total = 0
    for role in js.roles:
        completions, parallelism = role.job_spec.get("completions"), role.job_spec.get("parallelism")
        if completions is None or completions != parallelism:
            raise Stalled(f"{role.name}: in-place restart requires jobTemplate.spec.completions == jobTemplate.spec.parallelism != nil")
        total += role.replicas * completions
    return total
