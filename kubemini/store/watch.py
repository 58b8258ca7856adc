"""A watch is a cursor on a table's log plus a filter.

The cursor never buffers: what it has not read is still in the log. A reader that falls behind the kept history gets
`Compacted` (the API's 410) and never slows a writer. Filters turn updates that enter or leave the selection into ADDED
and DELETED, as the API server does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from kubemini.store.log import Change, Log
from kubemini.store.record import Record

Predicate = Callable[[dict[str, Any]], bool]


class WatchEvent:
    """One delivery: `type` is ADDED, MODIFIED or DELETED; `record` the object; `change` the commit it comes from (None for an initial ADDED)."""

    __slots__ = ("change", "record", "type")

    def __init__(self, type_: str, record: Record, change: Change | None) -> None:
        self.type = type_
        self.record = record
        self.change = change

    def __repr__(self) -> str:
        return f"WatchEvent({self.type}, {self.record!r})"


class Revised(Protocol):
    """What counts revisions: the store."""

    revision: int


class Watched(Protocol):
    """What a cursor reads: a table of the store."""

    log: Log
    idle: list[Watch]
    """Cursors that want to hear of the next commit."""

    @property
    def store(self) -> Revised:
        """The store that the table is in."""
        ...


class Watch:
    """A cursor. Read with `poll`, wait with `wait` or be called back with `on_ready`; close it when done."""

    __slots__ = ("_callback", "_closed", "_future", "_idle", "_position", "_predicate", "_prefix", "_table", "revision")

    def __init__(self, table: Watched, position: int, revision: int, prefix: str, predicate: Predicate | None) -> None:
        self._table = table
        self._position = position
        self._prefix = prefix
        self._predicate = predicate
        self._callback: Callable[[], None] | None = None
        self._future: asyncio.Future[None] | None = None
        self._idle = False
        self._closed = False
        self.revision = revision
        """Everything up to this revision was delivered (for bookmarks)."""

    def changes(self, limit: int = 0) -> list[Change]:
        """Return the commits since the last call, unfiltered, at most `limit` (0 = all). Raise `Compacted` when the cursor fell behind."""
        table = self._table
        log = table.log
        end = log.end
        if self._position >= end:
            self.revision = table.store.revision
            return []
        changes = log.since(self._position)
        if limit and len(changes) > limit:
            changes = changes[:limit]
        self._position += len(changes)
        self.revision = table.store.revision if self._position >= end else changes[-1].revision
        return changes

    def poll(self, limit: int = 0) -> list[WatchEvent]:
        """Return the events since the last call, of at most `limit` commits (0 = all). Raise `Compacted` when the cursor fell behind."""
        changes = self.changes(limit)
        if self._predicate is None and not self._prefix:
            return [
                WatchEvent("ADDED", change.new, change)
                if change.old is None and change.new is not None
                else WatchEvent("MODIFIED", change.new, change)
                if change.new is not None
                else WatchEvent("DELETED", change.gone, change)
                for change in changes
            ]
        return [event for change in changes if (event := self._filtered(change)) is not None]

    def _filtered(self, change: Change) -> WatchEvent | None:
        if self._prefix and not change.key.startswith(self._prefix):
            return None
        test = self._predicate
        before = change.old is not None and (test is None or test(change.old.obj))
        new = change.new
        if new is not None and (test is None or test(new.obj)):
            return WatchEvent("MODIFIED" if before else "ADDED", new, change)
        return WatchEvent("DELETED", change.gone, change) if before else None

    @property
    def ready(self) -> bool:
        """Whether `poll` has commits to look at (the filter may still drop them all)."""
        return self._position < self._table.log.end

    def on_ready(self, callback: Callable[[], None]) -> None:
        """Have `callback` called synchronously at the next commit to the table (at once if there are unread ones). One shot: call again after polling."""
        self._callback = callback
        if self.ready:
            self._callback = None
            callback()
        else:
            self._park()

    async def wait(self) -> None:
        """Return when there are commits to look at."""
        if self.ready or self._closed:
            return
        self._future = asyncio.get_running_loop().create_future()
        self._park()
        await self._future

    def _park(self) -> None:
        if not self._idle:
            self._idle = True
            self._table.idle.append(self)

    def wake(self) -> None:
        """Called by the table at a commit."""
        self._idle = False
        if self._closed:
            return
        callback, self._callback = self._callback, None
        if callback is not None:
            callback()
        future, self._future = self._future, None
        if future is not None and not future.done():
            future.set_result(None)

    def close(self) -> None:
        """Stop: nothing is called back any more, and a waiter returns."""
        self._closed = True
        self._callback = None
        future, self._future = self._future, None
        if future is not None and not future.done():
            future.set_result(None)
