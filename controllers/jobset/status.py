"""The status of a JobSet under construction: a pass collects its changes and events here, and writes them at once or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kubemini.api.trees import Tree
from kubemini.api.wellknown import jobset as names
from kubemini.controllers.jobset.children import RoleCounts
from kubemini.controllers.jobset.view import JobSetView

_OPPOSITE = {names.STARTUP_IN_PROGRESS: names.STARTUP_COMPLETED, names.STARTUP_COMPLETED: names.STARTUP_IN_PROGRESS}
"""Conditions that are never True together: setting one turns the other False."""

COMPLETED_MESSAGE = "jobset completed successfully"
SUSPENDED_MESSAGE = "jobset is suspended"


class Event(NamedTuple):
    """What is said once the status is written."""

    type: str
    reason: str
    message: str


class StatusDraft:
    """Starts from what is stored; `changed` tells whether there is anything to write, `stamp` is the time of this pass."""

    def __init__(self, js: JobSetView, stamp: str) -> None:
        status = js.status
        self._before = status
        self._stamp = stamp
        self.conditions: list[Tree] = list(status.get("conditions") or ())
        self.restarts: int = js.restarts
        self.restarts_counted: int = status.get("restartsCountTowardsMax", 0)
        self.terminal_state: str = status.get("terminalState", "")
        self.current_attempt: int | None = status.get("currentInPlaceRestartAttempt")
        self.previous_attempt: int | None = status.get("previousInPlaceRestartAttempt")
        self.counts: Mapping[str, RoleCounts] = {}
        self.events: list[Event] = []
        self.ended = ""
        """Completed or Failed where this pass ends the JobSet."""
        self.changed = False

    # ------------------------------------------------------------------ counts

    def count(self, counts: Mapping[str, RoleCounts]) -> None:
        """Take the counts of all roles."""
        self.counts = counts
        if _by_name(self._before.get("replicatedJobsStatus")) != {name: each.render() for name, each in counts.items()}:
            self.changed = True

    # ------------------------------------------------------------------ conditions

    def set(self, type_: str, status: str, reason: str, message: str, *, event: str = "Normal") -> None:
        """Set a condition; a change is told as an event. A condition that was never there is not added as False.

        The transition time moves with the status only.
        """
        condition: Tree = {"type": type_, "status": status, "lastTransitionTime": self._stamp, "reason": reason, "message": message}
        changed = found = False
        for position, other in enumerate(self.conditions):
            if other["type"] == type_:
                found = True
                if other["status"] == status:
                    if other["reason"] == reason and other["message"] == message:
                        continue
                    condition["lastTransitionTime"] = other["lastTransitionTime"]
                self.conditions[position] = condition
                changed = True
            elif status == "True" and other["status"] == "True" and _OPPOSITE.get(type_) == other["type"]:
                # the status alone: reason, message and time of the other stay as they were
                self.conditions[position] = {**other, "status": "False"}
                changed = True
        if not found and status == "True":
            self.conditions.append(condition)
            changed = True
        if changed:
            self.changed = True
            self.events.append(Event(event, reason, message))

    def _no_longer_restarting(self, reason: str, message: str) -> None:
        self.set(names.RESTARTING, "False", reason, message)

    def ready_again(self) -> None:
        """All Jobs are ready: a restart, if there was one, is over."""
        self._no_longer_restarting(names.JOBS_READY, "all jobs are ready")

    def complete(self) -> None:
        """The success policy is met."""
        self.set(names.COMPLETED, "True", names.ALL_JOBS_COMPLETED, COMPLETED_MESSAGE)
        self._no_longer_restarting(names.JOB_SET_COMPLETED, COMPLETED_MESSAGE)
        self.terminal_state = self.ended = names.COMPLETED

    def fail(self, reason: str, message: str) -> None:
        """The JobSet fails."""
        self.set(names.FAILED, "True", reason, message, event="Warning")
        self._no_longer_restarting(names.JOB_SET_FAILED, "jobset failed")
        self.terminal_state = self.ended = names.FAILED

    def restart(self, reason: str, event: str, message: str, *, counted: bool) -> None:
        """All Jobs start anew: those of lower attempts are previous from now on."""
        self.restarts += 1
        if counted:
            self.restarts_counted += 1
        self.changed = True
        self.set(names.RESTARTING, "True", reason, message, event="Warning")
        self.events.append(Event("Warning", event, message))

    def restart_job(self, role: str, index: int, event: str, message: str, *, replicas: int, counted: bool) -> None:
        """One Job starts anew."""
        counts = self.counts[role]
        counts.job_restarts = _raised(counts.job_restarts, index, replicas)
        if counted:
            counts.job_restarts_counted = _raised(counts.job_restarts_counted, index, replicas)
        self.changed = True
        self.events.append(Event("Warning", event, message))

    def suspend(self) -> None:
        """All Jobs are suspended."""
        self.set(names.SUSPENDED, "True", names.SUSPENDED_JOBS, SUSPENDED_MESSAGE)
        self._no_longer_restarting(names.JOB_SET_SUSPENDED, SUSPENDED_MESSAGE)

    def resume(self) -> None:
        """No Job is suspended any more."""
        self.set(names.SUSPENDED, "False", names.RESUME_JOBS, "jobset is resumed")

    def starting_in_order(self) -> None:
        """Roles are started in order, and one is awaited."""
        self.set(names.STARTUP_IN_PROGRESS, "True", names.IN_ORDER_IN_PROGRESS, "in order startup policy is in progress")

    def started_in_order(self) -> None:
        """Every role has started."""
        self.set(names.STARTUP_COMPLETED, "True", names.IN_ORDER_COMPLETED, "in order startup policy has completed")

    def attempts(self, *, current: int | None = None, previous: int | None = None) -> None:
        """Take in-place restart attempts; None leaves one as it is."""
        if current is not None and current != self.current_attempt:
            self.current_attempt, self.changed = current, True
        if previous is not None and previous != self.previous_attempt:
            self.previous_attempt, self.changed = previous, True

    # ------------------------------------------------------------------ the result

    def render(self) -> Tree:
        """Return the status tree. ``restarts`` always stands, other zeros never; roles stand in descending order of names, as upstream stores them."""
        tree: Tree = {}
        if self.conditions:
            tree["conditions"] = self.conditions
        tree["restarts"] = self.restarts
        optional: tuple[tuple[str, Any], ...] = (("restartsCountTowardsMax", self.restarts_counted), ("terminalState", self.terminal_state))
        tree |= {name: value for name, value in optional if value}
        if self.counts:
            tree["replicatedJobsStatus"] = [self.counts[name].render() for name in sorted(self.counts, reverse=True)]
        attempts = (("previousInPlaceRestartAttempt", self.previous_attempt), ("currentInPlaceRestartAttempt", self.current_attempt))
        tree |= {name: value for name, value in attempts if value is not None}
        return tree


def _by_name(entries: list[Tree] | None) -> dict[str, Tree]:
    return {entry["name"]: entry for entry in entries or ()}


def _raised(numbers: Any, index: int, length: int) -> list[int]:
    raised = list(numbers) or [0] * length
    raised[index] += 1
    return raised
