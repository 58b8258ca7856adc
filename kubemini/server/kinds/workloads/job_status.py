"""What a write of a Job's ``/status`` must keep.

Since external controllers may manage Jobs (``managedBy``), the API server guards the status: terminal conditions stay,
counters do not go down, times and index lists are consistent. Most rules are checked only when what they are about changes,
so that an unrelated write passes while the spec has just moved under the status. Mirrors ``pkg/apis/batch/validation``
and the Job strategy (1.36).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from kubemini.api.trees import Tree
from kubemini.machinery.errors import duplicate, invalid, invalid_omitted, required
from kubemini.runtime.env import from_stamp
from kubemini.server.kinds.core.formats import IMMUTABLE, Errors
from kubemini.server.kinds.internal_types import Struct
from kubemini.server.kinds.workloads.indexes import MalformedIndexes, count_indexes, overlap
from kubemini.server.kinds.workloads.rules import counts, same

_CONDITIONS = "status.conditions"
_UNCOUNTED: Final = Struct(Succeeded=None, Failed=None)
_COUNTS = ("active", "succeeded", "failed", "ready", "terminating")


@dataclass(frozen=True, slots=True)
class _View:
    """What the rules look at, read once from a status."""

    status: Tree
    true: frozenset[str]
    """Types of the conditions that are True."""

    @classmethod
    def of(cls, job: Tree) -> _View:
        status: Tree = job.get("status") or {}
        return cls(status, frozenset(each.get("type", "") for each in status.get("conditions") or () if each.get("status") == "True"))

    @property
    def complete(self) -> bool:
        return "Complete" in self.true

    @property
    def failed(self) -> bool:
        return "Failed" in self.true

    @property
    def finished(self) -> bool:
        return self.complete or self.failed

    def number(self, field: str) -> int:
        return self.status.get(field) or 0


def validate_job_status(new: Tree, old: Tree) -> Errors:
    """Check the new status of a Job against its spec and the old status."""
    spec: Tree = new["spec"]
    now, before = _View.of(new), _View.of(old)
    changed = {field for field in (*now.status, *before.status) if not same(now.status.get(field), before.status.get(field))}
    yield from counts(now.status, _COUNTS, "status")
    yield from _uncounted(now.status.get("uncountedTerminatedPods") or {})
    yield from _contradictions(now, before)
    yield from _times(now, before, changed)
    yield from _ends(spec, now, before, changed)
    yield from _indexes(spec, now.status, changed)
    yield from _remaining_pods(now, before, changed)
    yield from _success_criteria(spec, now)
    yield from _transitions(spec, now, before, changed)


def _uncounted(lists: Tree) -> Errors:
    seen: set[str] = set()
    for field in ("succeeded", "failed"):
        for index, uid in enumerate(lists.get(field) or ()):
            path = f"status.uncountedTerminatedPods.{field}[{index}]"
            if not uid:
                yield invalid(path, uid, "must not be empty")
            elif uid in seen:
                yield duplicate(path, uid)
            seen.add(uid)


def _contradictions(now: _View, before: _View) -> Errors:
    complete_moved, failed_moved = now.complete != before.complete, now.failed != before.failed
    target, target_before = "FailureTarget" in now.true, "FailureTarget" in before.true
    if (complete_moved or failed_moved) and now.complete and now.failed:
        yield invalid_omitted(_CONDITIONS, "cannot set Complete=True and Failed=true conditions")
    if (complete_moved or target != target_before) and now.complete and target:
        yield invalid_omitted(_CONDITIONS, "cannot set Complete=True and FailureTarget=true conditions")


def _times(now: _View, before: _View, changed: set[str]) -> Errors:
    start, end = now.status.get("startTime"), now.status.get("completionTime")
    if now.complete != before.complete or "completionTime" in changed:
        if end is not None and not now.complete:
            yield invalid("status.completionTime", end, "cannot set completionTime when there is no Complete=True condition")
        if end is None and now.complete:
            yield required("status.completionTime", "completionTime is required for Complete jobs")
    if changed & {"startTime", "completionTime"} and start is not None and end is not None and from_stamp(end) < from_stamp(start):
        yield invalid("status.completionTime", end, "must be equal to or after `startTime`")


def _ends(spec: Tree, now: _View, before: _View, changed: set[str]) -> Errors:
    if (now.failed != before.failed or "failedIndexes" in changed) and now.failed and "FailureTarget" not in now.true:
        yield invalid_omitted(_CONDITIONS, "cannot set Failed=True condition without the FailureTarget=true condition")
    met_before = "SuccessCriteriaMet" in before.true
    if (now.complete != before.complete or met_before) and now.complete and "SuccessCriteriaMet" not in now.true:
        yield invalid_omitted(_CONDITIONS, "cannot set Complete=True condition without the SuccessCriteriaMet=true condition")
    if not now.finished:
        return
    just = now.finished != before.finished
    active = now.number("active")
    if (just or "active" in changed) and active > 0:
        yield invalid("status.active", active, "active>0 is invalid for finished job")
    # A suspended Job without completions ends without a start
    needs_start = not (spec.get("suspend") and spec.get("completions") == 0)
    if needs_start and (just or "startTime" in changed) and now.status.get("startTime") is None:
        yield required("status.startTime", "startTime is required for finished job")
    uncounted = now.status.get("uncountedTerminatedPods") or {}
    if (just or "uncountedTerminatedPods" in changed) and (uncounted.get("failed") or uncounted.get("succeeded")):
        yield invalid("status.uncountedTerminatedPods", _UNCOUNTED.shown(uncounted), "must be empty for finished job")


def _indexes(spec: Tree, status: Tree, changed: set[str]) -> Errors:
    completions, per_index = spec.get("completions"), spec.get("backoffLimitPerIndex") is not None
    completed: str = status.get("completedIndexes") or ""
    failed: str | None = status.get("failedIndexes")
    if completions is not None and "completedIndexes" in changed:
        yield from _format("completedIndexes", completed, completions)
    if completions is not None and "failedIndexes" in changed and per_index and failed is not None:
        yield from _format("failedIndexes", failed, completions)
    if "completedIndexes" in changed and completed and spec.get("completionMode") != "Indexed":
        yield invalid("status.completedIndexes", completed, "cannot set non-empty completedIndexes when non-indexed completion mode")
    if "failedIndexes" in changed and failed is not None and not per_index:
        yield invalid("status.failedIndexes", failed, "cannot set non-null failedIndexes when backoffLimitPerIndex is null")
    if changed & {"completedIndexes", "failedIndexes"} and completions is not None and failed is not None:
        both = overlap(completed, failed, completions)
        if both is not None:
            yield invalid("status.failedIndexes", failed, f"failedIndexes and completedIndexes overlap at index: {both}")


def _format(field: str, text: str, completions: int) -> Errors:
    try:
        count_indexes(text, completions)
    except MalformedIndexes as error:
        yield invalid(f"status.{field}", text, f"error parsing {field}: {error}")


def _remaining_pods(now: _View, before: _View, changed: set[str]) -> Errors:
    terminating, ready = now.number("terminating"), now.status.get("ready")
    if (now.finished != before.finished or "terminating" in changed) and now.finished and terminating > 0:
        yield invalid("status.terminating", terminating, "terminating>0 is invalid for finished job")
    if changed & {"ready", "active"} and ready is not None and ready > now.number("active"):
        yield invalid("status.ready", ready, "cannot set more ready pods than active")


def _success_criteria(spec: Tree, now: _View) -> Errors:
    if "SuccessCriteriaMet" in now.true:
        if now.failed:
            yield invalid_omitted(_CONDITIONS, "cannot set SuccessCriteriaMet=True and Failed=true conditions")
        if "FailureTarget" in now.true:
            yield invalid_omitted(_CONDITIONS, "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions")
    elif now.complete and spec.get("successPolicy") is not None:
        yield invalid_omitted(_CONDITIONS, "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True")


def _transitions(spec: Tree, now: _View, before: _View, changed: set[str]) -> Errors:
    for condition in ("Failed", "Complete", "FailureTarget"):
        if condition in before.true and condition not in now.true:
            yield invalid_omitted(_CONDITIONS, f"cannot disable the terminal {condition}=True condition")
    if now.number("failed") < before.number("failed"):
        yield invalid("status.failed", now.number("failed"), "cannot decrease the failed counter")
    # An elastic Indexed Job loses successes with the indexes that a scale-down takes away.
    elastic = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    if not elastic and now.number("succeeded") < before.number("succeeded"):
        yield invalid("status.succeeded", now.number("succeeded"), "cannot decrease the succeeded counter")
    end = now.status.get("completionTime")
    if end is not None and before.status.get("completionTime") is not None and "completionTime" in changed:
        yield invalid("status.completionTime", end, IMMUTABLE)
    if "startTime" in changed and _start_is_frozen(spec, now, before):
        yield invalid("status.startTime", now.status.get("startTime"), "field is immutable for unsuspended job once set")
    if "SuccessCriteriaMet" in before.true and "SuccessCriteriaMet" not in now.true:
        yield invalid_omitted(_CONDITIONS, "cannot disable the SuccessCriteriaMet=True condition")
    if before.complete and "SuccessCriteriaMet" not in before.true and "SuccessCriteriaMet" in now.true:
        yield invalid_omitted(_CONDITIONS, "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions")


def _start_is_frozen(spec: Tree, now: _View, before: _View) -> bool:
    """Tell whether a set startTime must stay: not while suspended, nor in the write that records the resumption."""
    if before.status.get("startTime") is None or spec.get("suspend"):
        return False
    resumed = _condition(before, "Suspended") == "True" and _condition(now, "Suspended") == "False"
    return not resumed


def _condition(view: _View, kind: str) -> Any:
    return next((each.get("status") for each in view.status.get("conditions") or () if each.get("type") == kind), None)
