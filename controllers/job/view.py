"""A typed read-only view of a Job tree."""

from __future__ import annotations

from functools import cached_property

from kubemini.api.trees import Tree
from kubemini.runtime.env import from_stamp
from kubemini.runtime.keys import owner_reference

CONTROLLER = "kubernetes.io/job-controller"
"""The value of spec.managedBy that names this controller."""


def as_owner(job: Tree) -> Tree:
    """Return the owner reference of what belongs to a Job."""
    return owner_reference({**job, "apiVersion": "batch/v1", "kind": "Job"})


class JobView:
    """Properties over one revision of a Job; nothing is copied."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.meta: Tree = tree["metadata"]
        self.spec: Tree = tree["spec"]
        self.status: Tree = tree.get("status") or {}
        self.uid: str = self.meta["uid"]
        self.name: str = self.meta["name"]
        self.namespace: str = self.meta["namespace"]
        self.indexed: bool = self.spec.get("completionMode") == "Indexed"
        self.parallelism: int = self.spec.get("parallelism", 1)
        self.completions: int | None = self.spec.get("completions")
        self.completions_or_zero: int = self.completions or 0
        self.suspended: bool = bool(self.spec.get("suspend"))
        self.deleting: bool = "deletionTimestamp" in self.meta
        self.backoff_limit: int = self.spec.get("backoffLimit", 6)
        self.per_index: int | None = self.spec.get("backoffLimitPerIndex")

    @cached_property
    def conditions(self) -> dict[str, Tree]:
        """Conditions by type."""
        return {condition["type"]: condition for condition in self.status.get("conditions") or ()}

    def true(self, type_: str) -> Tree | None:
        """Return a condition that is True, or None."""
        condition = self.conditions.get(type_)
        return condition if condition is not None and condition["status"] == "True" else None

    @property
    def finished(self) -> bool:
        """Whether the Job is Complete or Failed."""
        return self.true("Complete") is not None or self.true("Failed") is not None

    @property
    def foreign(self) -> bool:
        """Whether another controller manages the Job (spec.managedBy)."""
        return self.spec.get("managedBy") not in (None, CONTROLLER)

    @cached_property
    def waits_for_end(self) -> bool:
        """Whether a terminating pod is replaced, and counted, only when it has ended."""
        return self.spec.get("podReplacementPolicy") == "Failed" or self.spec.get("podFailurePolicy") is not None

    def counts(self, index: int | None) -> bool:
        """Tell whether a pod of this index counts: of an Indexed Job only those in range do."""
        return not self.indexed or (index is not None and index < self.completions_or_zero)

    @cached_property
    def uncounted(self) -> tuple[list[str], list[str]]:
        """The uids in uncountedTerminatedPods: (succeeded, failed)."""
        lists = self.status.get("uncountedTerminatedPods") or {}
        return list(lists.get("succeeded") or ()), list(lists.get("failed") or ())

    @cached_property
    def uncounted_uids(self) -> frozenset[str]:
        """All uids in uncountedTerminatedPods."""
        succeeded, failed = self.uncounted
        return frozenset((*succeeded, *failed))

    @property
    def start_time(self) -> float | None:
        """status.startTime in Unix seconds."""
        text = self.status.get("startTime")
        return from_stamp(text) if text else None
