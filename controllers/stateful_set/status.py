"""The status of a StatefulSet: counts over its pods, and when an update is complete."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kubemini.api.trees import Tree
from kubemini.controllers.stateful_set import pods
from kubemini.controllers.stateful_set.view import SetView


@dataclass(slots=True)
class StatusDraft:
    """What a pass will write."""

    observed_generation: int
    current_revision: str
    update_revision: str
    collisions: int
    replicas: int = 0
    ready: int = 0
    available: int = 0
    current: int = 0
    updated: int = 0

    def count(self, found: Iterable[Tree | None], min_ready: int, now: float) -> None:
        """Count pods anew; a planned pod (None) counts nowhere. Pods being deleted exist, and are ready while they are, but are of no revision."""
        self.replicas = self.ready = self.available = self.current = self.updated = 0
        for pod in found:
            if pod is None:
                continue
            known = pods.facts(pod)
            if known.phase:
                self.replicas += 1
                if not known.terminating:
                    self.current += known.revision == self.current_revision
                    self.updated += known.revision == self.update_revision
            since = known.ready_since
            if since is not None:
                self.ready += 1
                self.available += min_ready == 0 or since + min_ready <= now

    def complete(self, owner: SetView) -> None:
        """Make the update revision current when every pod is of it and ready. Never under OnDelete."""
        if not owner.on_delete and self.updated == self.ready == self.replicas == owner.replicas:
            self.current, self.current_revision = self.updated, self.update_revision

    def differs(self, status: Tree) -> bool:
        """Tell whether it is worth a write."""
        return (
            self.observed_generation > status.get("observedGeneration", 0)
            or self.current_revision != status.get("currentRevision", "")
            or self.update_revision != status.get("updateRevision", "")
            or self.replicas != status.get("replicas", 0)
            or self.ready != status.get("readyReplicas", 0)
            or self.available != status.get("availableReplicas", 0)
            or self.current != status.get("currentReplicas", 0)
            or bool(self.updated != status.get("updatedReplicas", 0))
        )

    def render(self) -> Tree:
        """Return the tree, zeroes left out as Go leaves them out."""
        tree: Tree = {"observedGeneration": self.observed_generation, "replicas": self.replicas}
        for name, value in (("readyReplicas", self.ready), ("currentReplicas", self.current), ("updatedReplicas", self.updated)):
            if value:
                tree[name] = value
        tree |= {
            "currentRevision": self.current_revision,
            "updateRevision": self.update_revision,
            "collisionCount": self.collisions,
            "availableReplicas": self.available,
        }
        return tree
