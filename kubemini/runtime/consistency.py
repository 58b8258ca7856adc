"""Whether a cache shows a controller's own writes yet.

A pass on a cache that is behind would take a pod that was just made for missing, and one that was just deleted for standing. So an object is looked at again only
once the cache has caught up with what was written for it. Mirrors the gate StaleControllerConsistencyStatefulSet (on since 1.36).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kubemini.api.resources import Resource
from kubemini.api.trees import Tree
from kubemini.runtime.env import Env
from kubemini.runtime.informer import Informer
from kubemini.runtime.keys import key_of
from kubemini.runtime.telemetry import Counter

LAPSE = 30.0
"""Seconds after which a write that never showed up is waited for no longer."""


@dataclass(slots=True)
class _Write:
    version: int
    """The resourceVersion that the cache must have reached, 0 for a deletion."""
    uid: str
    at: float


class OwnWrites:
    """Writes to one resource, by the queue key of what they were made for. Every call is O(1) beside the writes outstanding for one key.

    `wake` is called with a key that was asked about too early, as soon as its writes have shown up.
    """

    def __init__(self, env: Env, cache: Informer, wake: Callable[[str], None]) -> None:
        self._env = env
        self._cache = cache
        self._wake = wake
        self._outstanding: dict[str, dict[str, _Write]] = {}
        self._expecting: dict[str, dict[str, None]] = {}
        """Key of a written object → the keys that it was written for."""
        self._asked: dict[str, None] = {}
        cache.on_change(self._seen)

    def written(self, owner: str, obj: Tree) -> None:
        """Wait for an object as the API returned it."""
        self._note(owner, obj, int(obj["metadata"]["resourceVersion"]))

    def removed(self, owner: str, obj: Tree) -> None:
        """Wait for the deletion of an object to show, be it only by its deletionTimestamp."""
        self._note(owner, obj, 0)

    def shown(self, owner: str) -> bool:
        """Tell whether the cache shows everything that was written for a key."""
        writes = self._outstanding.get(owner)
        if not writes:
            return True
        now = self._env.now()
        for key, write in list(writes.items()):
            if _shows(self._cache.get_key(key), write) or now - write.at > LAPSE:
                self._met(owner, key)
        if owner in self._outstanding:
            self._asked[owner] = None
            return False
        return True

    def forget(self, owner: str) -> None:
        """Wait for nothing any more: what was written for is gone."""
        for key in list(self._outstanding.get(owner, ())):
            self._met(owner, key)
        self._asked.pop(owner, None)

    def _note(self, owner: str, obj: Tree, version: int) -> None:
        key = key_of(obj)
        write = _Write(version, obj["metadata"]["uid"], self._env.now())
        if _shows(self._cache.get_key(key), write):
            return
        self._outstanding.setdefault(owner, {})[key] = write
        self._expecting.setdefault(key, {})[owner] = None

    def _met(self, owner: str, key: str) -> None:
        writes = self._outstanding[owner]
        del writes[key]
        if not writes:
            del self._outstanding[owner]
        owners = self._expecting[key]
        del owners[owner]
        if not owners:
            del self._expecting[key]

    def _seen(self, old: Tree | None, new: Tree | None) -> None:
        if not self._expecting:
            return
        changed = new if new is not None else old
        if changed is None:
            return
        key = key_of(changed)
        for owner in list(self._expecting.get(key, ())):
            write = self._outstanding[owner][key]
            # What was deleted after it was made will not be in the cache
            gone = new is None and (old is None or old["metadata"]["uid"] == write.uid)
            if gone or _shows(new, write):
                self._met(owner, key)
                if owner in self._asked and owner not in self._outstanding:
                    del self._asked[owner]
                    self._wake(owner)


class StatusWrites:
    """The versions of the last statuses that a controller wrote of its objects, by key: a pass on an older state is skipped, the cache will show the newer one."""

    def __init__(self) -> None:
        self._versions: dict[str, int] = {}

    def note(self, key: str, written: Tree) -> None:
        """Remember an object as the API returned it."""
        self._versions[key] = int(written["metadata"]["resourceVersion"])

    def behind(self, key: str, meta: Tree) -> bool:
        """Tell whether a cached object, by its metadata, is older than its last status."""
        return int(meta["resourceVersion"]) < self._versions.get(key, 0)

    def forget(self, key: str) -> None:
        """Its object is gone."""
        self._versions.pop(key, None)


class StaleSkips(Counter):
    """The passes that a controller skipped, by the resource whose own writes the cache did not show yet."""

    def __init__(self, controller: str, kind: str) -> None:
        super().__init__(
            f"{controller}_controller_stale_sync_skips_total",
            f"Total number of {kind} syncs skipped due to a stale watch cache.",
            ("group", "resource"),
        )

    def count(self, resource: Resource) -> None:
        """Count a skipped pass."""
        self.inc(resource.group, resource.plural)


def _shows(cached: Tree | None, write: _Write) -> bool:
    if cached is None:
        return write.version == 0
    meta = cached["metadata"]
    if write.version:
        return int(meta["resourceVersion"]) >= write.version
    return bool(meta["uid"] != write.uid or "deletionTimestamp" in meta)
