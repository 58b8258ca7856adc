"""What a controller wrote last, laid over a cache that may not show it yet.

Slices have generated names, so a controller that trusts a stale cache would make them twice. Until the cache catches up with a write, the
written object (or its absence) stands in for what the cache says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kubemini.api.trees import Tree
from kubemini.runtime.informer import Informer
from kubemini.runtime.keys import key_of


class Written:
    """An overlay of one informer. `group` says in whose list an object belongs. Create it before the handlers that ask it."""

    def __init__(self, informer: Informer, group: Callable[[Tree], str]) -> None:
        self._informer = informer
        self._group = group
        self._newer: dict[str, dict[str, Tree]] = {}
        """Group → key → what was written and not seen yet."""
        self._gone: dict[str, str] = {}
        """Key → uid of what was deleted and still shows."""
        self._last: dict[str, str] = {}
        """Key → resourceVersion of our last write."""
        informer.on_change(self._seen)

    def put(self, obj: Tree) -> None:
        """Note a created or updated object."""
        key = key_of(obj)
        version = obj["metadata"]["resourceVersion"]
        self._last[key] = version
        self._gone.pop(key, None)
        cached = self._informer.get_key(key)
        if cached is None or _version(cached) < int(version):
            self._newer.setdefault(self._group(obj), {})[key] = obj

    def drop(self, obj: Tree) -> None:
        """Note a deleted object."""
        key = key_of(obj)
        self._forget(self._group(obj), key)
        self._last.pop(key, None)
        cached = self._informer.get_key(key)
        if cached is not None and cached["metadata"]["uid"] == obj["metadata"]["uid"]:
            self._gone[key] = obj["metadata"]["uid"]

    def merged(self, group: str, cached: Iterable[Tree]) -> list[Tree]:
        """Return the newest known state of what the cache shows for a group. Objects being deleted are left out."""
        newer = self._newer.get(group)
        if not newer and not self._gone:
            return [each for each in cached if "deletionTimestamp" not in each["metadata"]]
        found = {key_of(each): each for each in cached}
        found |= newer or {}
        return [each for key, each in found.items() if self._gone.get(key) != each["metadata"]["uid"] and "deletionTimestamp" not in each["metadata"]]

    def newest(self, key: str, group: str) -> Tree | None:
        """Return the newest known state of one object."""
        found = self._newer.get(group, {}).get(key)
        if found is None:
            found = self._informer.get_key(key)
        return None if found is None or self._gone.get(key) == found["metadata"]["uid"] else found

    def own(self, obj: Tree) -> bool:
        """Tell whether a state that the cache shows is one that we wrote."""
        return bool(self._last.get(key_of(obj)) == obj["metadata"]["resourceVersion"])

    def _seen(self, old: Tree | None, new: Tree | None) -> None:
        obj = new if new is not None else old
        if obj is None:
            return
        key = key_of(obj)
        if key in self._gone and (new is None or new["metadata"]["uid"] != self._gone[key]):
            del self._gone[key]
        if self._newer:
            group = self._group(obj)
            newer = self._newer.get(group, {}).get(key)
            if newer is not None and _version(obj) >= _version(newer):
                self._forget(group, key)
        if new is None and key in self._last and int(self._last[key]) <= _version(obj):
            del self._last[key]

    def _forget(self, group: str, key: str) -> None:
        newer = self._newer.get(group)
        if newer is not None and newer.pop(key, None) is not None and not newer:
            del self._newer[group]


def _version(obj: Tree) -> int:
    return int(obj["metadata"]["resourceVersion"])
