"""A DisaggregatedSet and its LeaderWorkerSets, read once for a pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kubemini.api.trees import Tree
from kubemini.api.wellknown import lws as names
from kubemini.controllers.disaggregated_set.naming import label, revision_of
from kubemini.controllers.disaggregated_set.planner import Limits
from kubemini.controllers.lws.view import scaled

Scalers = Mapping[str, Tree]
"""Role → its scaler."""


def replicas_of(lws: Tree) -> int:
    """Return a LeaderWorkerSet's wanted groups."""
    found: int = lws["spec"].get("replicas", 1)
    return found


def ready_of(lws: Tree) -> int:
    """Return a LeaderWorkerSet's ready groups."""
    found: int = (lws.get("status") or {}).get("readyReplicas", 0)
    return found


def initial_of(lws: Tree) -> int:
    """Return the groups that a LeaderWorkerSet had when the update began: as annotated, else as now."""
    text = (lws["metadata"].get("annotations") or {}).get(names.DS_INITIAL_REPLICAS, "")
    return int(text) if text.isdecimal() else replicas_of(lws)


@dataclass(slots=True)
class Revision:
    """The LeaderWorkerSets of one revision in one slice, by role."""

    name: str
    roles: dict[str, Tree] = field(default_factory=dict)

    @property
    def born(self) -> str:
        """When the newest of them was made."""
        stamp: str = max(each["metadata"]["creationTimestamp"] for each in self.roles.values())
        return stamp

    def ready(self, roles: Iterable[str]) -> bool:
        """Tell whether every role has a ready group."""
        return all(role in self.roles and ready_of(self.roles[role]) >= 1 for role in roles)

    def stable(self, roles: Iterable[str]) -> bool:
        """Tell whether every role has all of its groups ready."""
        return all(role in self.roles and ready_of(self.roles[role]) == replicas_of(self.roles[role]) for role in roles)


def by_revision(found: Iterable[Tree]) -> dict[str, Revision]:
    """Sort LeaderWorkerSets into revisions."""
    revisions: dict[str, Revision] = {}
    for each in found:
        name = label(each, names.DS_REVISION)
        revisions.setdefault(name, Revision(name)).roles[label(each, names.DS_ROLE)] = each
    return revisions


class DsView:
    """A DisaggregatedSet in the words of this package."""

    __slots__ = ("key", "meta", "name", "namespace", "revision", "roles", "slices", "spec", "status", "tree", "uid")

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.meta: Tree = tree["metadata"]
        self.spec: Tree = tree["spec"]
        self.status: Tree = tree.get("status") or {}
        self.name: str = self.meta["name"]
        self.namespace: str = self.meta["namespace"]
        self.key = f"{self.namespace}/{self.name}"
        self.uid: str = self.meta["uid"]
        self.roles: dict[str, Tree] = {role["name"]: role for role in self.spec["roles"]}
        self.slices: int = self.spec.get("slices") or 1
        self.revision = revision_of(self.spec["roles"])

    def external(self, role: str) -> bool:
        """Tell whether a role is scaled from outside."""
        return role in self.roles and ((self.roles[role].get("scaling") or {}).get("mode") == "External")

    def target(self, role: str, scalers: Scalers, current: int) -> int:
        """Return the groups wanted of a role in each slice; `current` for one whose scaler is missing."""
        if self.external(role):
            found = scalers.get(role)
            return current if found is None else found["spec"].get("replicas", 0)
        replicas: int = (self.roles[role].get("spec") or {}).get("replicas", 1) if role in self.roles else 1
        return replicas

    def limits(self, role: str, scalers: Scalers) -> Limits:
        """Return what a role allows while it is updated: one surge group and no loss unless it says otherwise."""
        about = (self.roles[role].get("spec") or {}) if role in self.roles else {}
        rolling = (about.get("rolloutStrategy") or {}).get("rollingUpdateConfiguration")
        if rolling is None:
            return Limits()
        total = self.target(role, scalers, 0)
        surge = scaled(rolling.get("maxSurge", 0), total, up=True)
        unavailable = scaled(rolling.get("maxUnavailable", 1), total, up=False)
        if unavailable > 0:
            return Limits(surge, unavailable)
        return Limits(surge) if surge > 0 else Limits()
