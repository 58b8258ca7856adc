"""What objects use of a quota, kept as sums: a change costs the change, not a count of all objects."""

from __future__ import annotations

from collections.abc import Iterable

from kubemini.api.trees import Tree
from kubemini.machinery import quota
from kubemini.machinery.pod_requests import Amounts


class Tally:
    """The usage of one quota by the objects of one resource in its namespace.

    Invariant: `used` equals ``quota.used`` over the objects that were put in and not taken out.
    """

    __slots__ = ("_leaving", "_limit", "_resource", "_sums", "spec")

    def __init__(self, limit: Tree, resource: str, objects: Iterable[Tree]) -> None:
        self.spec = limit.get("spec")
        """The very spec that is counted for; a quota with another one needs another tally."""
        self._limit = limit
        self._resource = resource
        self._sums: Amounts = dict.fromkeys((limit.get("spec") or {}).get("hard") or {}, 0)
        self._leaving: dict[str, Tree] = {}
        for each in objects:
            self.replace(None, each)

    def replace(self, old: Tree | None, new: Tree | None) -> None:
        """Take an object out and put its next state in. O(1)."""
        if old is not None:
            self._count(old, -1)
        if new is not None:
            self._count(new, 1)

    def used(self, now: float) -> Amounts:
        """Return what is used; `now` in Unix seconds, which matters for pods that are being deleted. O(pods being deleted)."""
        if not self._leaving:
            return self._sums
        late = quota.used(self._limit, ((self._resource, each) for each in self._leaving.values()), now)
        return {name: size + late[name] for name, size in self._sums.items()}

    def _count(self, obj: Tree, sign: int) -> None:
        metadata = obj["metadata"]
        if "deletionTimestamp" in metadata:
            # Until when it counts depends on the time.
            if sign > 0:
                self._leaving[metadata["name"]] = obj
            else:
                self._leaving.pop(metadata["name"], None)
        elif quota.matches(self._limit, self._resource, obj):
            sums = self._sums
            for name, size in quota.usage(self._resource, obj, 0.0).items():
                if name in sums:
                    sums[name] += sign * size
