"""The status of a Job under construction: one pass collects its changes here and writes what differs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kubemini.api.trees import Tree
from kubemini.controllers.job.view import JobView


@dataclass(slots=True)
class StatusDraft:
    """The fields that a pass may change. `render` gives the tree; zero counts are left out as upstream does."""

    conditions: list[Tree]
    start_time: str | None
    completion_time: str | None
    active: int
    ready: int
    terminating: int
    succeeded: int
    failed: int
    completed_indexes: str
    failed_indexes: str | None
    uncounted_succeeded: list[str] = field(default_factory=list)
    uncounted_failed: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, job: JobView) -> StatusDraft:
        """Start from what is stored."""
        status = job.status
        succeeded, failed = job.uncounted
        return cls(
            list(status.get("conditions") or ()),
            status.get("startTime"),
            status.get("completionTime"),
            status.get("active", 0),
            status.get("ready", 0),
            status.get("terminating", 0),
            status.get("succeeded", 0),
            status.get("failed", 0),
            status.get("completedIndexes", ""),
            status.get("failedIndexes"),
            succeeded,
            failed,
        )

    def set(self, type_: str, status: str, reason: str, message: str, now: str) -> bool:
        """Set a condition; tell whether that changed anything."""
        condition = {"type": type_, "status": status, "lastProbeTime": now, "lastTransitionTime": now, "reason": reason, "message": message}
        for position, other in enumerate(self.conditions):
            if other["type"] == type_:
                if (other["status"], other.get("reason", ""), other.get("message", "")) == (status, reason, message):
                    return False
                self.conditions[position] = condition
                return True
        self.conditions.append(condition)
        return True

    def render(self) -> Tree:
        """Return the status tree."""
        tree: Tree = {}
        if self.conditions:
            # A copy: what was rendered may be stored by now, and more is set afterwards
            tree["conditions"] = list(self.conditions)
        optional: tuple[tuple[str, Any], ...] = (
            ("startTime", self.start_time),
            ("completionTime", self.completion_time),
            ("active", self.active),
            ("succeeded", self.succeeded),
            ("failed", self.failed),
            ("completedIndexes", self.completed_indexes),
        )
        tree |= {name: value for name, value in optional if value}
        tree["terminating"] = self.terminating
        if self.failed_indexes is not None:
            tree["failedIndexes"] = self.failed_indexes
        uncounted: Tree = {}
        if self.uncounted_succeeded:
            uncounted["succeeded"] = list(self.uncounted_succeeded)
        if self.uncounted_failed:
            uncounted["failed"] = list(self.uncounted_failed)
        tree["uncountedTerminatedPods"] = uncounted
        tree["ready"] = self.ready
        return tree
