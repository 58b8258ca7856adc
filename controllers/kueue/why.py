"""The record of one scheduling attempt: what was tried, and what each flavor was rejected by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubemini.controllers.kueue.cycle import Entry


@dataclass(frozen=True, slots=True)
class FlavorAttempt:
    """One flavor tried for one pod set: `mode` is NO_FIT, NO_CANDIDATES, PREEMPT, RECLAIM or FIT; `borrow` the levels of cohorts that it borrows over."""

    pod_set: str
    flavor: str
    mode: str
    borrow: int
    reason: str
    messages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of one Workload."""

    workload: str
    cluster_queue: str
    time: str
    outcome: str
    reason: str
    message: str
    flavors: tuple[FlavorAttempt, ...]
    targets: tuple[tuple[str, str], ...]
    """(Workload, reason) of those to be evicted for it."""

    @classmethod
    def of(cls, entry: Entry, time: str) -> Attempt:
        """Return the record of an entry of a cycle."""
        flavors = tuple(
            FlavorAttempt(each.name, verdict.flavor, verdict.mode.name, verdict.borrow, verdict.reason, verdict.messages)
            for each in entry.assignment.pod_sets
            for verdict in each.verdicts
        )
        targets = tuple((target.info.key, target.reason) for target in entry.targets)
        return cls(entry.info.key, entry.queue.name, time, entry.outcome.value, entry.reason, entry.message, flavors, targets)

    def tree(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "workload": self.workload,
            "clusterQueue": self.cluster_queue,
            "time": self.time,
            "outcome": self.outcome,
            "reason": self.reason,
            "message": self.message,
            "flavors": [
                {
                    "podSet": each.pod_set,
                    "flavor": each.flavor,
                    "mode": each.mode,
                    "borrow": each.borrow,
                    "reason": each.reason,
                    "messages": list(each.messages),
                }
                for each in self.flavors
            ],
            "targets": [{"workload": key, "reason": reason} for key, reason in self.targets],
        }
