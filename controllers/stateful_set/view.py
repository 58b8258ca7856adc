"""What a StatefulSet says, read once for a pass."""

from __future__ import annotations

from collections.abc import Sequence

from kubemini.api.trees import Tree
from kubemini.machinery.labels import Selector, from_label_selector
from kubemini.machinery.memo import by_identity

RETAIN, DELETE = "Retain", "Delete"
HISTORY_LIMIT = 10

selector_of = by_identity()(from_label_selector)
"""Return the compiled selector of a tree."""


class SetView:
    """A StatefulSet in the words of this package. Wishes are ordinals in ``range(start, start + replicas)``."""

    __slots__ = (
        "claims",
        "history_limit",
        "key",
        "max_unavailable",
        "meta",
        "min_ready",
        "name",
        "namespace",
        "on_delete",
        "ordered",
        "partition",
        "replicas",
        "spec",
        "start",
        "status",
        "tree",
        "uid",
        "when_deleted",
        "when_scaled",
    )

    def __init__(self, tree: Tree) -> None:
        self.tree = {**tree, "apiVersion": "apps/v1", "kind": "StatefulSet"} if "kind" not in tree else tree
        self.meta: Tree = tree["metadata"]
        self.spec: Tree = tree["spec"]
        self.status: Tree = tree.get("status") or {}
        self.name: str = self.meta["name"]
        self.namespace: str = self.meta["namespace"]
        self.key = f"{self.namespace}/{self.name}"
        self.uid: str = self.meta["uid"]
        spec = self.spec
        replicas = spec.get("replicas")
        self.replicas: int = 1 if replicas is None else replicas
        self.start: int = (spec.get("ordinals") or {}).get("start") or 0
        self.ordered = spec.get("podManagementPolicy") != "Parallel"
        self.min_ready: int = spec.get("minReadySeconds") or 0
        limit = spec.get("revisionHistoryLimit")
        self.history_limit: int = HISTORY_LIMIT if limit is None else limit
        strategy = spec.get("updateStrategy") or {}
        self.on_delete = strategy.get("type") == "OnDelete"
        rolling: Tree | None = strategy.get("rollingUpdate")
        self.partition: int | None = None if rolling is None else rolling.get("partition") or 0
        """Lowest index that an update touches; None where the strategy says nothing about it."""
        self.max_unavailable: int | str | None = (rolling or {}).get("maxUnavailable")
        self.claims: Sequence[Tree] = spec.get("volumeClaimTemplates") or ()
        retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
        self.when_deleted: str = retention.get("whenDeleted") or RETAIN
        self.when_scaled: str = retention.get("whenScaled") or RETAIN

    @property
    def deleting(self) -> bool:
        """Whether the set itself is being deleted."""
        return "deletionTimestamp" in self.meta

    @property
    def selector(self) -> Selector:
        """The compiled selector."""
        return selector_of(self.spec.get("selector") or {})

    def wanted(self, ordinal: int) -> bool:
        """Tell whether an ordinal is in range."""
        return self.start <= ordinal < self.start + self.replicas

    def from_current(self, ordinal: int) -> bool:
        """Tell whether a pod made now for an ordinal is of the current revision, not the update's: an update has not come to it yet."""
        if self.on_delete:
            return False
        held: int = self.status.get("currentReplicas", 0) if self.partition is None else self.partition
        return ordinal < self.start + held
