"""The status draft: conditions, events and what is written."""

from __future__ import annotations

from kubemini.controllers.jobset.children import RoleCounts
from kubemini.controllers.jobset.status import StatusDraft
from tests.unit.jobset.samples import NOW, role, view

BEFORE = "2026-01-01T00:00:00Z"


def condition(type_: str, status: str, reason: str = "R", message: str = "m", at: str = BEFORE) -> dict[str, str]:
    """Return a stored condition."""
    return {"type": type_, "status": status, "lastTransitionTime": at, "reason": reason, "message": message}


def test_nothing_changed() -> None:
    """A draft of what is stored has nothing to write."""
    entry = RoleCounts("w", ready=1).render()
    draft = StatusDraft(view(status={"restarts": 0, "replicatedJobsStatus": [entry]}), NOW)
    draft.count({"w": RoleCounts("w", ready=1)})
    draft.ready_again()
    draft.resume()
    assert not draft.changed
    assert draft.events == []


def test_the_order_of_stored_counts_does_not_matter() -> None:
    """Counts are compared by role, and stored in descending order of names."""
    stored = [RoleCounts("a").render(), RoleCounts("b").render()]
    draft = StatusDraft(view(role("a"), role("b"), status={"restarts": 0, "replicatedJobsStatus": stored}), NOW)
    draft.count({"a": RoleCounts("a"), "b": RoleCounts("b")})
    assert not draft.changed
    assert [entry["name"] for entry in draft.render()["replicatedJobsStatus"]] == ["b", "a"]


def test_false_is_not_added() -> None:
    """A condition that was never there does not appear as False."""
    draft = StatusDraft(view(), NOW)
    draft.resume()
    draft.ready_again()
    assert draft.render() == {"restarts": 0}


def test_transition_time_moves_with_the_status_only() -> None:
    """A new reason keeps the time, a new status takes the present one."""
    draft = StatusDraft(view(status={"conditions": [condition("Suspended", "True"), condition("RestartingJobSet", "True")]}), NOW)
    draft.suspend()
    first, second = draft.conditions
    assert (first["reason"], first["lastTransitionTime"]) == ("SuspendedJobs", BEFORE)
    assert (second["status"], second["reason"], second["lastTransitionTime"]) == ("False", "JobSetSuspended", NOW)
    assert [event.reason for event in draft.events] == ["SuspendedJobs", "JobSetSuspended"]


def test_startup_conditions_exclude_each_other() -> None:
    """One turning True flips the other's status alone."""
    draft = StatusDraft(view(status={"conditions": [condition("StartupPolicyCompleted", "True", "Old", "old")]}), NOW)
    draft.starting_in_order()
    assert draft.conditions[0] == {**condition("StartupPolicyCompleted", "True", "Old", "old"), "status": "False"}
    assert (draft.conditions[1]["type"], draft.conditions[1]["status"]) == ("StartupPolicyInProgress", "True")
    draft.started_in_order()
    assert [each["status"] for each in draft.conditions] == ["True", "False"]
    assert draft.conditions[0]["lastTransitionTime"] == NOW


def test_completion() -> None:
    """Completion sets condition, terminal state and event, and ends a restart."""
    draft = StatusDraft(view(status={"restarts": 1, "restartsCountTowardsMax": 1, "conditions": [condition("RestartingJobSet", "True")]}), NOW)
    draft.complete()
    status = draft.render()
    assert (status["terminalState"], status["restarts"], status["restartsCountTowardsMax"]) == ("Completed", 1, 1)
    assert [(each["type"], each["status"], each["reason"]) for each in status["conditions"]] == [
        ("RestartingJobSet", "False", "JobSetCompleted"),
        ("Completed", "True", "AllJobsCompleted"),
    ]
    assert [(event.type, event.reason) for event in draft.events] == [("Normal", "AllJobsCompleted"), ("Normal", "JobSetCompleted")]


def test_attempts_are_written_when_they_change() -> None:
    """Attempt 0 is a value of its own; the same value again is no change."""
    draft = StatusDraft(view(), NOW)
    draft.attempts(current=0)
    assert draft.changed
    assert draft.render()["currentInPlaceRestartAttempt"] == 0
    again = StatusDraft(view(status={"currentInPlaceRestartAttempt": 0, "previousInPlaceRestartAttempt": 2}), NOW)
    again.attempts(current=0, previous=2)
    assert not again.changed
