"""A table whose records live for a while after their last write, as etcd's keys under a lease.

Nothing waits for the end of a record: what is over goes when somebody next looks at the table or adds to it, at the cost of its deletion. Who wants watchers to hear of
it in time calls `expire` at `due`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from kubemini.store.record import Record, Tree
from kubemini.store.store import Page, Store, Table
from kubemini.store.watch import Watch


class ExpiringTable(Table):
    """A table whose records go `seconds` after their last write by `clock` (in seconds)."""

    def __init__(self, store: Store, name: str, seconds: float, clock: Callable[[], float]) -> None:
        super().__init__(store, name)
        self.seconds = seconds
        self._clock = clock
        self._ends: deque[tuple[float, str, int]] = deque()
        """When each write is over: time, key and revision. A later one of the same key counts instead."""

    @property
    def due(self) -> float | None:
        """When the next record may end, None when there is none."""
        return self._ends[0][0] if self._ends else None

    def expire(self) -> None:
        """Remove what is over."""
        ends = self._ends
        if not ends or ends[0][0] > (now := self._clock()):
            return
        while ends and ends[0][0] <= now:
            _, key, revision = ends.popleft()
            record = self.records.get(key)
            if record is not None and record.revision == revision:
                self.delete(key)

    def _commit(self, key: str, old: Record | None, obj: Tree) -> Record:
        record = super()._commit(key, old, obj)
        self._ends.append((self._clock() + self.seconds, key, record.revision))
        return record

    def create(self, key: str, obj: Tree) -> Record:
        """Commit a new object. Raise `KeyExists`. O(1)."""
        self.expire()
        return super().create(key, obj)

    def get(self, key: str) -> Record | None:
        """Return the live record under a key, or None. O(1)."""
        self.expire()
        return super().get(key)

    def __len__(self) -> int:
        self.expire()
        return super().__len__()

    def values(self, prefix: str = "") -> Iterator[Record]:
        """Iterate over live records in key order, of one key prefix (``namespace/``) if given."""
        self.expire()
        return super().values(prefix)

    def list(self, prefix: str = "", **which: Any) -> Page:
        """Return records in key order, as `Table.list` does."""
        self.expire()
        return super().list(prefix, **which)

    def watch(self, since: int | None = None, **which: Any) -> Watch:
        """Return a cursor, as `Table.watch` does."""
        self.expire()
        return super().watch(since, **which)
