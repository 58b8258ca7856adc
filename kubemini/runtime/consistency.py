"""Whether a cache shows a controller's own writes yet.

A pass on a cache that is behind would take a pod that was just made for missing, and one that was just deleted for standing. So a set is looked at again only once the
cache has caught up with what was written for it. Mirrors the gate StaleControllerConsistencyStatefulSet (on since 1.36).
"""

from __future__ import annotations

from dataclasses import dataclass

from kubemini.api.trees import Tree
from kubemini.runtime.env import Env
from kubemini.runtime.informer import Informer
from kubemini.runtime.keys import key_of

LAPSE = 30.0
"""Seconds after which a write that never showed up is waited for no longer."""


@dataclass(slots=True)
class _Write:
    version: int
    """The resourceVersion that the cache must have reached, 0 for a deletion."""
    uid: str
    at: float


class OwnWrites:
    """Writes to one resource by owner uid. Every call is O(1) beside the writes outstanding for one owner."""

    def __init__(self, env: Env, cache: Informer) -> None:
        self._env = env
        self._cache = cache
        self._outstanding: dict[str, dict[str, _Write]] = {}
        cache.on_change(self._seen)
        self._gone: dict[str, list[str]] = {}

    def written(self, owner: str, obj: Tree) -> None:
        """Wait for an object as the API returned it."""
        self._note(owner, obj, int(obj["metadata"]["resourceVersion"]))

    def removed(self, owner: str, obj: Tree) -> None:
        """Wait for the deletion of an object to show, be it only by its deletionTimestamp."""
        self._note(owner, obj, 0)

    def _note(self, owner: str, obj: Tree, version: int) -> None:
        key = key_of(obj)
        self._outstanding.setdefault(owner, {})[key] = _Write(version, obj["metadata"]["uid"], self._env.now())
        self._gone.setdefault(key, []).append(owner)

    def _seen(self, old: Tree | None, new: Tree | None) -> None:
        if new is None and old is not None and self._gone:
            # What was deleted after it was made, unseen in between, will not be in the cache
            for owner in self._gone.pop(key_of(old), ()):
                writes = self._outstanding.get(owner)
                if writes is not None:
                    write = writes.get(key_of(old))
                    if write is not None and write.uid == old["metadata"]["uid"]:
                        del writes[key_of(old)]

    def shown(self, owner: str) -> bool:
        """Tell whether the cache shows everything that was written for an owner."""
        writes = self._outstanding.get(owner)
        if not writes:
            return True
        now = self._env.now()
        for key, write in list(writes.items()):
            cached = self._cache.get_key(key)
            if self._shows(cached, write) or now - write.at > LAPSE:
                del writes[key]
                self._gone.pop(key, None)
        if writes:
            return False
        del self._outstanding[owner]
        return True

    @staticmethod
    def _shows(cached: Tree | None, write: _Write) -> bool:
        if cached is None:
            return write.version == 0
        meta = cached["metadata"]
        if write.version:
            return int(meta["resourceVersion"]) >= write.version
        return bool(meta["uid"] != write.uid or "deletionTimestamp" in meta)

    def forget(self, owner: str) -> None:
        """Wait for nothing any more: the owner is gone."""
        for key in self._outstanding.pop(owner, ()):
            self._gone.pop(key, None)
