"""What a controller expects to see in its cache before it trusts the cache again.

A controller that creates pods and then counts the pods in its cache would create them twice: the cache is behind its own
writes. So it notes, before it writes, how many creations and which deletions it is about to cause for an owner; the informer's
handlers tick them off as they show up; and the owner is not acted on while anything is outstanding. Should an event never
come, the expectation lapses after five minutes, so that nothing waits for ever.

Mirrors ``ControllerExpectations`` and ``UIDTrackingControllerExpectations`` of kube-controller-manager. Deletions are known by
uid: the update that sets a deletionTimestamp and the final removal both report the same deletion, and it counts once.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from typing import Generic, TypeVar

from kubemini.runtime.env import Env

K = TypeVar("K", bound=Hashable)

LAPSE = 300.0
"""Seconds after which what was expected is expected no longer (upstream's ``ExpectationsTimeout``)."""


class _Outstanding:
    __slots__ = ("creations", "deletions", "since")

    def __init__(self, since: float, creations: int, deletions: dict[str, None]) -> None:
        self.since = since
        self.creations = creations
        self.deletions = deletions


class Expectations(Generic[K]):
    """Outstanding creations and deletions per owner key. All calls are O(1) beside the uids passed in; what is met is not kept."""

    __slots__ = ("_env", "_outstanding", "lapse")

    def __init__(self, env: Env, *, lapse: float = LAPSE) -> None:
        self._env = env
        self._outstanding: dict[K, _Outstanding] = {}
        self.lapse = lapse

    def expect(self, key: K, *, creations: int = 0, deletions: Iterable[str] = ()) -> None:
        """Expect so many creations and the deletions of these uids, from now on and instead of what was expected before.

        Call it before the writes: their events may arrive while the writes are awaited.
        """
        self._outstanding.pop(key, None)
        self.expect_more(key, creations=creations, deletions=deletions)

    def expect_more(self, key: K, *, creations: int = 0, deletions: Iterable[str] = ()) -> None:
        """Expect these as well. What is outstanding already keeps its age; where it has lapsed it is replaced."""
        uids = dict.fromkeys(deletions)
        outstanding = self._outstanding.get(key)
        if outstanding is None or self._lapsed(outstanding):
            self._outstanding.pop(key, None)
            if creations > 0 or uids:
                self._outstanding[key] = _Outstanding(self._env.now(), max(0, creations), uids)
            return
        outstanding.creations += max(0, creations)
        outstanding.deletions.update(uids)

    def creation_observed(self, key: K) -> None:
        """Tick off one creation: it showed up, or the write failed and it never will."""
        outstanding = self._outstanding.get(key)
        if outstanding is not None and outstanding.creations:
            outstanding.creations -= 1
            self._drop_if_met(key, outstanding)

    def deletion_observed(self, key: K, uid: str) -> None:
        """Tick off the deletion of a uid. Uids that nobody expects to go, or that went before, are ignored."""
        outstanding = self._outstanding.get(key)
        if outstanding is not None and outstanding.deletions.pop(uid, self) is None:
            self._drop_if_met(key, outstanding)

    def satisfied(self, key: K) -> bool:
        """Tell whether nothing is outstanding for `key`, or it has been for so long that it has lapsed."""
        outstanding = self._outstanding.get(key)
        return outstanding is None or self._lapsed(outstanding)

    def lapses_in(self, key: K) -> float | None:
        """Return in how many seconds what is outstanding lapses (not positive: it has), None where nothing is."""
        outstanding = self._outstanding.get(key)
        return None if outstanding is None else outstanding.since + self.lapse - self._env.now()

    def outstanding(self, key: K) -> tuple[int, tuple[str, ...]]:
        """Return how many creations and the deletions of which uids are outstanding, lapsed or not."""
        found = self._outstanding.get(key)
        return (found.creations, tuple(found.deletions)) if found is not None else (0, ())

    def forget(self, key: K) -> None:
        """Expect nothing for `key` any more: the owner is gone."""
        self._outstanding.pop(key, None)

    def __len__(self) -> int:
        """Return for how many keys something is outstanding."""
        return len(self._outstanding)

    def _lapsed(self, outstanding: _Outstanding) -> bool:
        return self._env.now() - outstanding.since > self.lapse

    def _drop_if_met(self, key: K, outstanding: _Outstanding) -> None:
        if not outstanding.creations and not outstanding.deletions:
            del self._outstanding[key]


class ExpectedUids(Generic[K]):
    """Uids per owner key of which one more event is expected, without lapse.

    The Job controller keeps one for pods whose finalizer it has removed: until the cache shows that, they count as done. Mirrors
    ``uidTrackingExpectations`` of its ``tracking_utils``. All calls are O(1) beside the uids passed in.
    """

    __slots__ = ("_uids",)

    def __init__(self) -> None:
        self._uids: dict[K, dict[str, None]] = {}

    def expect(self, key: K, uids: Iterable[str]) -> None:
        """Expect these uids beside those expected already."""
        fresh = dict.fromkeys(uids)
        if fresh:
            self._uids.setdefault(key, {}).update(fresh)

    def observed(self, key: K, uid: str) -> None:
        """Tick off a uid; one that is not expected is ignored."""
        uids = self._uids.get(key)
        if uids is not None:
            uids.pop(uid, None)
            if not uids:
                del self._uids[key]

    def outstanding(self, key: K) -> Collection[str]:
        """Return the uids still expected, as a live view in the order in which they came."""
        return self._uids.get(key, {}).keys()

    def forget(self, key: K) -> None:
        """Expect nothing for `key` any more."""
        self._uids.pop(key, None)

    def __len__(self) -> int:
        """Return for how many keys something is outstanding."""
        return len(self._uids)
