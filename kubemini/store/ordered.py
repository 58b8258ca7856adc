"""The live records of a table by key, in key order for those who ask for it.

Most commits are followed by watchers and by lookups, not by lists: so a new key only goes into a dict, and the order is brought up to date when
somebody wants it.
"""

from __future__ import annotations

from collections.abc import Iterator

from sortedcontainers import SortedList

from kubemini.store.record import Record


class Records(dict[str, Record]):
    """Records by key. Reading and replacing one is a dict's; keys come by `insert` (O(1)) and go by `remove` (O(log n))."""

    __slots__ = ("_fresh", "_keys")

    def __init__(self) -> None:
        super().__init__()
        self._keys: SortedList[str] | None = None
        self._fresh: dict[str, None] = {}
        """Keys that came since the order was last asked for."""

    def insert(self, key: str, record: Record) -> None:
        """Add a record under a new key."""
        self[key] = record
        self._fresh[key] = None

    def remove(self, key: str) -> None:
        """Take a record out. Raise KeyError."""
        del self[key]
        if key in self._fresh:
            del self._fresh[key]
        elif self._keys is not None:
            self._keys.remove(key)

    def ordered(self) -> SortedList[str]:
        """Return the keys in order; to be read only. O(1) beside the keys that are new."""
        keys = self._keys
        if keys is None:
            keys = self._keys = SortedList(self._fresh)
            self._fresh.clear()
        elif self._fresh:
            keys.update(self._fresh)
            self._fresh.clear()
        return keys

    def in_order(self) -> Iterator[Record]:
        """Iterate over all records in key order."""
        return map(self.__getitem__, self.ordered()) if self else iter(())

    def between(self, low: str, high: str | None) -> Iterator[Record]:
        """Iterate over the records from key `low` on and before key `high` (None = to the end)."""
        return map(self.__getitem__, self.ordered().irange(low, high, inclusive=(True, False))) if self else iter(())

    def check(self) -> None:
        """Verify that the order is that of the records."""
        keys = self.ordered()
        keys._check()  # type: ignore[attr-defined]  # noqa: SLF001  sortedcontainers' own self-check
        if list(keys) != sorted(self):
            raise AssertionError("the order of keys differs from the records")
