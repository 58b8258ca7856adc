"""The event log of one table: an append-only sequence of changes, trimmed at the old end.

Positions are absolute sequence numbers, so a cursor stays valid while the log is trimmed in front of it, and notices when it is
trimmed past it.
"""

from __future__ import annotations

from bisect import bisect_right

from kubemini.store.errors import Compacted
from kubemini.store.record import Record


class Change:
    """One commit: `old` is None for a create, `new` is None for a delete. `gone` is the last state of a deleted object at the deletion's revision."""

    __slots__ = ("_gone", "frames", "key", "new", "old", "revision")

    def __init__(self, revision: int, key: str, old: Record | None, new: Record | None) -> None:
        self.revision = revision
        self.key = key
        self.old = old
        self.new = new
        self._gone: Record | None = None
        self.frames: dict[str, bytes] | None = None
        """Encoded watch frames by event type, shared by all watchers (filled by whoever encodes first)."""

    @property
    def gone(self) -> Record:
        """The previous state, carrying this change's revision: what DELETED events show."""
        if self._gone is None:
            old = self.old
            if old is None:
                raise ValueError(f"{self.key} was created at {self.revision}: there is no previous state")
            self._gone = Record(self.key, old.stamped(self.revision), self.revision, old.create_revision)
        return self._gone


class Log:
    """Changes in revision order. Append O(1), lookup of a revision O(log n), trimming amortised O(1)."""

    __slots__ = ("_changes", "base", "compacted", "limit")

    def __init__(self, limit: int, compacted: int) -> None:
        self._changes: list[Change] = []
        self.base = 0
        """Sequence number of the first change kept."""
        self.compacted = compacted
        """Every change up to and including this revision may be gone."""
        self.limit = limit

    @property
    def end(self) -> int:
        """The sequence number that the next change gets."""
        return self.base + len(self._changes)

    def append(self, change: Change) -> None:
        """Add a change; once the log is half over its limit, trim it back to the limit."""
        changes = self._changes
        changes.append(change)
        if len(changes) > self.limit + (self.limit >> 1) + 16:
            self._drop(len(changes) - self.limit)

    def compact(self, revision: int) -> None:
        """Forget the changes up to and including `revision`."""
        if revision > self.compacted:
            self._drop(bisect_right(self._changes, revision, key=_revision))
            self.compacted = max(self.compacted, revision)

    def _drop(self, count: int) -> None:
        if count:
            self.compacted = max(self.compacted, self._changes[count - 1].revision)
            del self._changes[:count]
            self.base += count

    def position(self, revision: int) -> int:
        """Return the sequence number of the first change after `revision`. Raise `Compacted`."""
        if revision < self.compacted:
            raise Compacted(revision, self.compacted + 1)
        return self.base + bisect_right(self._changes, revision, key=_revision)

    def since(self, position: int) -> list[Change]:
        """Return the changes from a sequence number on. Raise `Compacted` when some of them are gone."""
        if position < self.base:
            raise Compacted(0, self.compacted + 1)
        return self._changes[position - self.base :] if position > self.base else self._changes[:]

    def check(self) -> None:
        """Verify the log's own invariants (debug mode and tests)."""
        last = self.compacted
        for change in self._changes:
            if change.revision <= last:
                raise AssertionError(f"log out of order: {change.revision} after {last}")
            last = change.revision


def _revision(change: Change) -> int:
    return change.revision
