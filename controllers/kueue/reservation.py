"""Changes of a Workload's status that several controllers make: reserve, refuse, evict, release, admit. Pure, on a `Draft`."""

from __future__ import annotations

from collections.abc import Sequence

from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.controllers.kueue.conditions import Draft
from kubemini.controllers.kueue.config import KueueConfig
from kubemini.runtime.env import from_stamp

READY, PENDING, RETRY, REJECTED = "Ready", "Pending", "Retry", "Rejected"
OWNER_GONE = "The workload's owner no longer exists"


def reserve(draft: Draft, admission: Tree, queue: str) -> None:
    """Give a Workload its quota; what was said of earlier evictions becomes history."""
    draft.set("admission", admission)
    draft.mark(names.QUOTA_RESERVED, True, names.QUOTA_RESERVED, f"Quota reserved in ClusterQueue {queue}")
    for type_ in (names.EVICTED, names.PREEMPTED, names.BLOCKED_ON_PREEMPTION_GATES):
        old = draft.condition(type_)
        if old is not None and old["status"] == "True":
            draft.mark(type_, False, names.QUOTA_RESERVED, f"Previously: {old['message']}")
    draft.set("resourceRequests", None)


def all_ready(draft: Draft, required: Sequence[str]) -> bool:
    """Tell whether the checks that are required are listed and every listed one is Ready."""
    states = {check["name"]: check["state"] for check in draft.get("admissionChecks") or ()}
    return all(name in states for name in required) and all(state == READY for state in states.values())


def delayed_topology(draft: Draft) -> bool:
    """Tell whether some pod set still waits for its place in the topology."""
    admission = draft.get("admission") or {}
    return any(each.get("delayedTopologyRequest") == PENDING for each in admission.get("podSetAssignments") or ())


def sync_admitted(draft: Draft, config: KueueConfig, required: Sequence[str], now: float) -> bool:
    """Bring Admitted in line with the reservation and the checks. Tell whether it turned True."""
    was = draft.is_true(names.ADMITTED)
    reserved = draft.is_true(names.QUOTA_RESERVED)
    ready = all_ready(draft, required)
    delayed = delayed_topology(draft)
    if reserved and ready and not delayed:
        return draft.mark(names.ADMITTED, True, names.ADMITTED, "The workload is admitted") and not was
    if not was and draft.condition(names.ADMITTED) is None and not config.reasons:
        return False
    if not reserved:
        if not ready and not config.reasons:
            reason, message = names.NO_RESERVATION_UNSATISFIED_CHECKS, "The workload has no reservation and not all checks ready"
        else:
            reason, message = names.NO_RESERVATION, "The workload has no reservation"
    elif not ready:
        reason, message = names.UNSATISFIED_CHECKS if config.reasons else "UnsatisfiedChecks", "The workload has not all checks ready"
    else:
        reason, message = names.PENDING_DELAYED_TOPOLOGY, "There are pending delayed topology requests"
    old = draft.condition(names.ADMITTED)
    if draft.mark(names.ADMITTED, False, reason, message) and was and old is not None:
        spent = int(now - from_stamp(old["lastTransitionTime"]))
        draft.set("accumulatedPastExecutionTimeSeconds", (draft.get("accumulatedPastExecutionTimeSeconds") or 0) + spent)
    return False


def refuse(draft: Draft, reason: str, message: str) -> bool:
    """Say why a Workload has no quota (any more). Tell whether that is news."""
    changed = draft.mark(names.QUOTA_RESERVED, False, reason, message)
    if draft.get("admission") is not None:
        draft.set("admission", None)
        changed = True
    return changed


def evict(draft: Draft, reason: str, message: str, cause: str, now: str) -> bool:
    """Tell a Workload to give its quota back; it holds it until its job has stopped. Tell whether an event is due (it was admitted to quota)."""
    draft.mark(names.EVICTED, True, eviction_reason(reason, cause), message)
    checks = draft.get("admissionChecks")
    if checks:
        draft.set("admissionChecks", [_reset(check, now) for check in checks])
    for field in ("clusterName", "nominatedClusterNames", "unhealthyNodes"):
        if draft.get(field) is not None:
            draft.set(field, None)
    stats = draft.get("schedulingStats") or {}
    evictions: list[Tree] = list(stats.get("evictions") or ())
    for position, each in enumerate(evictions):
        if each["reason"] == reason and each.get("underlyingCause", "") == cause:
            evictions[position] = {**each, "count": each["count"] + 1}
            break
    else:
        evictions.append({"reason": reason, "underlyingCause": cause, "count": 1})
    draft.set("schedulingStats", {**stats, "evictions": evictions})
    return draft.get("admission") is not None


def _reset(check: Tree, now: str) -> Tree:
    if check["state"] == PENDING:
        return check
    new = {key: value for key, value in check.items() if key not in ("podSetUpdates", "retryCount")}
    new |= {"state": PENDING, "message": f"Reset to Pending after eviction. Previously: {check['state']}", "lastTransitionTime": now}
    if check["state"] == RETRY:
        new["retryCount"] = check.get("retryCount", 0) + 1
    return new


def eviction_reason(reason: str, cause: str) -> str:
    """Return the reason that stands in the condition: that of a deactivation says what brought it."""
    return f"{reason}DueTo{cause}" if reason == names.DEACTIVATED and cause else reason


def eviction_event(reason: str) -> str:
    """Return the reason of the event about an eviction."""
    return f"EvictedDueTo{reason}"


def pending_reason(config: KueueConfig) -> str:
    """Return the reason of QuotaReserved=False of a Workload that waits for its turn."""
    return names.PENDING_EVALUATION if config.reasons else names.PENDING


def coarse(config: KueueConfig, reason: str) -> str:
    """Return a scheduler's reason as it is written: the finer ones only where the gate is on."""
    if config.reasons or reason == names.WAITING:
        return reason
    return names.PENDING
