"""JSON merge patch (RFC 7386) on immutable trees, with the habits of the API server's library.

A null deletes, objects merge, everything else replaces. Nulls inside values that are new to the document vanish, inside
of lists too: that is what evanphx/json-patch does, and clients see it.
"""

from __future__ import annotations

from typing import Any

from kubemini.api.trees import Tree


def merge_patch(live: Any, patch: Any) -> Any:
    """Return `live` changed by a merge patch; what does not change is shared, a patch that changes nothing returns `live` itself.

    >>> merge_patch({"a": 1, "b": {"x": 1, "y": 2}}, {"a": None, "b": {"x": 3}, "c": {"d": None}})
    {'b': {'x': 3, 'y': 2}, 'c': {}}
    """
    if not isinstance(patch, dict):
        return patch
    if not isinstance(live, dict):
        return without_nulls(patch)
    return _merged(live, patch)


def _merged(live: Tree, patch: Tree) -> Tree:
    new: Tree | None = None
    for key, value in patch.items():
        if value is None:
            if key in live:
                new = dict(live) if new is None else new
                del new[key]
            continue
        before = live.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            after: Any = _merged(before, value)
            if after is before:
                continue
        else:
            after = without_nulls(value)
            if key in live and same(before, after):
                continue
        new = dict(live) if new is None else new
        new[key] = after
    return live if new is None else new


def without_nulls(value: Any) -> Any:
    """Return a value without the nulls in its objects and lists; the same value where it has none."""
    if isinstance(value, dict):
        changed = {key: kept for key, each in value.items() if each is not None and (kept := without_nulls(each)) is not each}
        if changed or None in value.values():
            return {key: changed.get(key, each) for key, each in value.items() if each is not None}
    elif isinstance(value, list):
        kept_items = [without_nulls(each) for each in value if each is not None]
        if len(kept_items) != len(value) or any(new is not old for new, old in zip(kept_items, value, strict=True)):
            return kept_items
    return value


def same(left: Any, right: Any) -> bool:
    """Tell whether two JSON values are equal; true is not 1.

    >>> same({"a": [1, True]}, {"a": [1.0, True]}), same(1, True)
    (True, False)
    """
    if isinstance(left, dict):
        return isinstance(right, dict) and left.keys() == right.keys() and all(same(each, right[key]) for key, each in left.items())
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(same, left, right))
    return bool(left == right) and isinstance(left, bool) is isinstance(right, bool)
