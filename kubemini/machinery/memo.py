"""Memoisation by identity of immutable trees.

Pods of one template share their containers, volumes and so on as the very same Python objects. Work that depends
on such a subtree alone (decoding, defaulting, validation, field sets, resource sums) is done once per subtree. Sound
because trees are never mutated; each entry keeps its subtree alive, so an id is never reused while it is a key.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Generic, TypeVar

V = TypeVar("V")


class IdentityMemo(Generic[V]):
    """A bounded map keyed by the identity of a dict or list. When full, the older half is dropped. O(1) per call."""

    __slots__ = ("kept", "limit")

    def __init__(self, limit: int = 8192) -> None:
        self.kept: dict[int, tuple[Any, V]] = {}
        """Identity → the tree, held so that its identity stays its own, and the value."""
        self.limit = limit

    def get(self, tree: Any) -> V | None:
        """Return what was kept for this very object, or None."""
        entry = self.kept.get(id(tree))
        return entry[1] if entry is not None else None

    def put(self, tree: Any, value: V) -> V:
        """Keep `value` for this very object, and return it."""
        entries = self.kept
        if len(entries) >= self.limit:
            for key in list(entries)[: self.limit // 2]:
                del entries[key]
        entries[id(tree)] = (tree, value)
        return value


def by_identity(limit: int = 8192) -> Callable[[Callable[[Any], V]], Callable[[Any], V]]:
    """Decorate a pure function of one immutable tree: computed once per tree object. The function must not return None."""

    def decorate(function: Callable[[Any], V]) -> Callable[[Any], V]:
        memo: IdentityMemo[V] = IdentityMemo(limit)

        kept = memo.kept

        @wraps(function)
        def cached(tree: Any) -> V:
            entry = kept.get(id(tree))
            return entry[1] if entry is not None else memo.put(tree, function(tree))

        return cached

    return decorate
