"""The ownership graph as the caches show it: who exists by uid, and who names whom as owner."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from sys import intern

from kubemini.api.resources import Resource
from kubemini.api.trees import Tree


@dataclass(frozen=True, slots=True)
class Node:
    """One object of the graph: its resource and its key."""

    resource: Resource
    key: str


class Graph:
    """Kept by every change of every cache; each change costs its owner references."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        """uid → object."""
        self._dependents: dict[str, dict[str, None]] = {}
        """Owner uid → uids of its dependents, in the order in which they were seen."""

    def change(self, resource: Resource, key: str, old: Tree | None, new: Tree | None) -> None:
        """Follow one change."""
        before = old["metadata"].get("ownerReferences") if old is not None else None
        after = new["metadata"].get("ownerReferences") if new is not None else None
        if new is None and old is not None:
            self.nodes.pop(old["metadata"]["uid"], None)
        elif new is not None and (old is None or old["metadata"]["uid"] != new["metadata"]["uid"]):
            self.nodes[new["metadata"]["uid"]] = Node(resource, intern(key))
        if before is after:
            return
        uid = (new or old or {})["metadata"]["uid"]
        owners = {reference["uid"] for reference in after or ()}
        for reference in before or ():
            if reference["uid"] not in owners:
                found = self._dependents.get(reference["uid"])
                if found is not None:
                    found.pop(uid, None)
                    if not found:
                        del self._dependents[reference["uid"]]
        for reference in after or ():
            self._dependents.setdefault(reference["uid"], {})[uid] = None

    def dependents(self, uid: str) -> Iterator[Node]:
        """Iterate over the objects that name `uid` as an owner."""
        for each in list(self._dependents.get(uid, ())):
            node = self.nodes.get(each)
            if node is not None:
                yield node

    def has_dependents(self, uid: str) -> bool:
        """Tell whether any object names `uid` as an owner."""
        return uid in self._dependents
