"""Store and tables: commits, ordered lists, snapshots at past revisions, watches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from sys import intern
from typing import Any
from zlib import crc32

import orjson

from kubemini.store.errors import FutureRevision, KeyExists, KeyMissing, RevisionMismatch
from kubemini.store.index import Index, IndexFunction
from kubemini.store.log import Change, Log
from kubemini.store.ordered import Records
from kubemini.store.record import Record, Tree
from kubemini.store.watch import Predicate, Watch

FIRST_REVISION = 1000
"""The counter starts well above 1, so that revision 1 is always "too old", as on any real cluster."""
HISTORY = 32_768
"""Changes kept per table for watches and paged lists."""
RecordList = list[Record]


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list: `next_key` is where the next page starts ("" at the end), `remaining` how many records follow (None when filtered)."""

    records: list[Record]
    next_key: str
    remaining: int | None


class Store:
    """All tables under one revision counter. Single-threaded: every method is atomic between two awaits."""

    def __init__(self, *, history: int = HISTORY, debug: bool = False) -> None:
        self.revision = FIRST_REVISION
        self.history = history
        self.debug = debug
        """Fingerprint every tree at commit, and let `check` find those that were mutated since."""
        self.tables: dict[str, Table] = {}
        self.floor = FIRST_REVISION
        """The highest revision compacted by `compact`; new tables start with it."""
        self.observer: Callable[[str, Change], None] | None = None
        """Called with (table name, change) after every commit, before anyone else hears of it: invariants and traces."""
        self.awaited: list[tuple[int, asyncio.Future[None]]] = []
        """Who waits for which revision (`reached`)."""

    def table(self, name: str) -> Table:
        """Return a table by name, making it on first use."""
        table = self.tables.get(name)
        if table is None:
            table = self.tables[name] = Table(self, name)
        return table

    async def reached(self, revision: int) -> None:
        """Return once `revision` has happened (at once where it has)."""
        if revision > self.revision:
            future = asyncio.get_running_loop().create_future()
            entry = (revision, future)
            self.awaited.append(entry)
            try:
                await future
            finally:
                if entry in self.awaited:
                    self.awaited.remove(entry)

    def arrived(self) -> None:
        """Wake those who waited for the current revision (called by tables at a commit)."""
        waiting = [entry for entry in self.awaited if entry[0] > self.revision]
        for revision, future in self.awaited:
            if revision <= self.revision and not future.done():
                future.set_result(None)
        self.awaited = waiting

    def compact(self, revision: int) -> None:
        """Forget history up to and including `revision`: older watches and paged lists get `Compacted`. Raise `FutureRevision`."""
        if revision > self.revision:
            raise FutureRevision(revision, self.revision)
        self.floor = max(self.floor, revision)
        for table in self.tables.values():
            table.log.compact(revision)

    def check(self) -> None:
        """Verify every invariant, and in debug mode that no tree was mutated. Cost: the whole population."""
        for table in self.tables.values():
            table.check()


class Table:
    """The records of one resource in key order, with their history. Keys are ``namespace/name``, or the bare name of a cluster-scoped object."""

    def __init__(self, store: Store, name: str) -> None:
        self.store = store
        self.name = name
        self.records = Records()
        self.log = Log(store.history, store.floor)
        self.idle: list[Watch] = []
        self._indexes: dict[str, Index] = {}

    # ------------------------------------------------------------------ commits

    def create(self, key: str, obj: Tree) -> Record:
        """Commit a new object. Raise `KeyExists`. O(1)."""
        if key in self.records:
            raise KeyExists(key)
        # Whoever else keeps this key interns it too: one string for all of them
        return self._commit(intern(key), None, obj)

    def update(self, key: str, obj: Tree, expected: int | None = None) -> Record:
        """Commit a new state of a live object; `expected` is the revision that the writer saw. Raise `KeyMissing`, `RevisionMismatch`."""
        return self._commit(key, self._live(key, expected), obj)

    def delete(self, key: str, expected: int | None = None) -> Record:
        """Remove an object and return its last state at the deletion's revision. Raise `KeyMissing`, `RevisionMismatch`."""
        old = self._live(key, expected)
        store = self.store
        store.revision += 1
        self.records.remove(key)
        change = Change(store.revision, key, old, None)
        self._follow(change)
        return change.gone

    def _live(self, key: str, expected: int | None) -> Record:
        record = self.records.get(key)
        if record is None:
            raise KeyMissing(key)
        if expected is not None and record.revision != expected:
            raise RevisionMismatch(key, expected, record.revision)
        return record

    def _commit(self, key: str, old: Record | None, obj: Tree) -> Record:
        store = self.store
        store.revision = revision = store.revision + 1
        stamped = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(revision)}}
        record = Record(key, stamped, revision, revision if old is None else old.create_revision)
        if store.debug:
            record.fingerprint = _fingerprint(stamped)
        if old is None:
            self.records.insert(key, record)
        else:
            self.records[key] = record
        self._follow(Change(revision, key, old, record))
        return record

    def _follow(self, change: Change) -> None:
        for index in self._indexes.values():
            index.replace(change.key, change.old, change.new)
        self.log.append(change)
        if self.store.observer is not None:
            self.store.observer(self.name, change)
        if self.idle:
            idle, self.idle = self.idle, []
            for watch in idle:
                watch.wake()
        if self.store.awaited:
            self.store.arrived()

    # ------------------------------------------------------------------ reads

    def get(self, key: str) -> Record | None:
        """Return the live record under a key, or None. O(1)."""
        return self.records.get(key)

    def __len__(self) -> int:
        return len(self.records)

    def values(self, prefix: str = "") -> Iterator[Record]:
        """Iterate over live records in key order, of one key prefix (``namespace/``) if given."""
        records = self.records
        return records.between(prefix, _after(prefix)) if prefix else records.in_order()

    def list(
        self,
        prefix: str = "",
        *,
        start: str = "",
        limit: int = 0,
        predicate: Predicate | None = None,
        index: tuple[str, str] | None = None,
        at: int | None = None,
    ) -> Page:
        """Return records in key order.

        `start` is the first key wanted, `limit` the most records to return (0 = all), `index` a pair of index name and value that narrows the search, `at` a past
        revision to show. Cost: the records looked at; through an index, its matches; at a past revision also the changes since. Raise `Compacted`, `FutureRevision`.
        """
        if at is not None and at != self.store.revision:
            source: Iterable[Record] = self._past(at, prefix, start)
        elif index is not None:
            keys = self._indexes[index[0]].keys(index[1])
            source = [self.records[key] for key in keys if key >= start and key.startswith(prefix)]
        elif start or prefix:
            low = max(start, prefix)
            high = _after(prefix) if prefix else None
            source = self.records.between(low, high)
        else:
            source = self.records.in_order()
        if predicate is None and not limit:
            return Page(list(source), "", 0)
        found: list[Record] = []
        walk = iter(source)
        for record in walk:
            if predicate is not None and not predicate(record.obj):
                continue
            if limit and len(found) == limit:
                return Page(found, record.key, 1 + sum(1 for _ in walk) if predicate is None else None)
            found.append(record)
        return Page(found, "", 0 if predicate is None else None)

    def _past(self, revision: int, prefix: str, start: str) -> RecordList:
        """Return the state at a past revision by undoing the changes since, in key order."""
        if revision > self.store.revision:
            raise FutureRevision(revision, self.store.revision)
        undone: dict[str, Record | None] = {}
        for change in self.log.since(self.log.position(revision)):
            if change.key.startswith(prefix) and change.key >= start:
                undone.setdefault(change.key, change.old)
        records = self.list(prefix, start=start).records
        if not undone:
            return records
        kept = [record for record in records if record.key not in undone]
        kept += [record for record in undone.values() if record is not None]
        kept.sort(key=lambda record: record.key)
        return kept

    # ------------------------------------------------------------------ watches and indexes

    def watch(self, since: int | None = None, *, prefix: str = "", predicate: Predicate | None = None) -> Watch:
        """Return a cursor that delivers every change after revision `since` (None = from now on). A future revision is legal. Raise `Compacted`."""
        if since is None or since == self.store.revision:
            return Watch(self, self.log.end, self.store.revision, prefix, predicate)
        if since > self.store.revision:
            return _FutureWatch(self, since, prefix, predicate)
        return Watch(self, self.log.position(since), since, prefix, predicate)

    def add_index(self, name: str, function: IndexFunction) -> None:
        """Keep an index from now on; filled from the live records on first use of the name."""
        if name in self._indexes:
            return
        index = self._indexes[name] = Index(function)
        for key, record in self.records.items():
            index.replace(key, None, record)

    def has_index(self, name: str) -> bool:
        """Tell whether an index of that name is kept."""
        return name in self._indexes

    def by_index(self, name: str, value: str) -> RecordList:
        """Return the records under an index value, in key order. Cost: the matches."""
        records = self.records
        return [records[key] for key in self._indexes[name].keys(value)]

    def check(self) -> None:
        """Verify order, indexes, history, and (debug) fingerprints."""
        self.records.check()
        self.log.check()
        for index in self._indexes.values():
            index.check(self.records)
        for key, record in self.records.items():
            if record.key != key or record.obj["metadata"]["resourceVersion"] != str(record.revision):
                raise AssertionError(f"{self.name} {key}: record and key or revision differ")
            if record.revision > self.store.revision:
                raise AssertionError(f"{self.name} {key}: revision {record.revision} from the future")
        if self.store.debug:
            for record in self._remembered():
                if record.fingerprint and record.fingerprint != _fingerprint(record.obj):
                    raise AssertionError(f"{self.name} {record.key}: the tree of revision {record.revision} was mutated after its commit")

    def _remembered(self) -> Iterator[Record]:
        yield from self.records.values()
        for change in self.log.since(self.log.base):
            if change.old is not None:
                yield change.old


class _FutureWatch(Watch):
    """A watch from a revision that has not happened yet: silent until then, then an ordinary one."""

    __slots__ = ("_since",)

    def __init__(self, table: Table, since: int, prefix: str, predicate: Predicate | None) -> None:
        super().__init__(table, table.log.end, since, prefix, predicate)
        self._since = since

    def poll(self, limit: int = 0) -> list[Any]:
        return [event for event in super().poll(limit) if event.record.revision > self._since]


def _after(prefix: str) -> str:
    """Return the first string after every string with that prefix."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)


def _fingerprint(obj: Tree) -> int:
    data = orjson.dumps(obj, option=orjson.OPT_SORT_KEYS)
    return crc32(data) + (len(data) << 32)
