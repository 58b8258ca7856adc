"""Secondary indexes of a table: value → keys, kept with each commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kubemini.store.record import Record

IndexFunction = Callable[[dict[str, Any]], Iterable[str]]


class Index:
    """An inverted index over a function of the tree. A commit costs the values it changes; a lookup its matches."""

    __slots__ = ("_entries", "function")

    def __init__(self, function: IndexFunction) -> None:
        self.function = function
        self._entries: dict[str, dict[str, None]] = {}

    def replace(self, key: str, old: Record | None, new: Record | None) -> None:
        """Follow one commit."""
        before = tuple(self.function(old.obj)) if old is not None else ()
        after = tuple(self.function(new.obj)) if new is not None else ()
        if before == after:
            return
        for value in before:
            if value not in after:
                entry = self._entries[value]
                del entry[key]
                if not entry:
                    del self._entries[value]
        for value in after:
            if value not in before:
                self._entries.setdefault(value, {})[key] = None

    def keys(self, value: str) -> list[str]:
        """Return the keys under a value, in key order."""
        return sorted(self._entries.get(value, ()))

    def count(self, value: str) -> int:
        """Return how many keys are under a value."""
        return len(self._entries.get(value, ()))

    def check(self, records: dict[str, Record]) -> None:
        """Verify against a recomputation (debug mode and tests)."""
        fresh: dict[str, set[str]] = {}
        for key, record in records.items():
            for value in self.function(record.obj):
                fresh.setdefault(value, set()).add(key)
        if fresh != {value: set(keys) for value, keys in self._entries.items()}:
            raise AssertionError("index differs from a recomputation")
