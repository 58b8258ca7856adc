"""Sets of fields, in the very form in which managedFields store them, and their algebra.

A set is a FieldsV1 tree: its keys are path elements (``f:name``, ``k:{"name":"c"}``, ``v:"x"``, ``i:0``), a value is the
tree below. A path is a member of the set when its tree is empty or holds the key ``.``; `LEAF` (the empty tree) is a
member with nothing below. So one form serves storage, algebra and the wire.

Trees are immutable and interned: equal trees that are made here are mostly the same object, so that 10,000 pods of one
template share one, and every operation takes a short cut where its operands are the same. Nothing depends on it.
"""

from __future__ import annotations

from typing import Final

Fields = dict[str, "Fields"]
"""A set of fields; never mutated."""

MEMBER: Final = "."
LEAF: Final[Fields] = {}
"""A member without anything below it. As a whole set it is the empty set."""
EMPTY: Final = LEAF

_LIMIT = 32768
_NODES: dict[tuple[object, ...], Fields] = {}


def interned(entries: Fields) -> Fields:
    """Return the shared tree with these entries, its keys in order. The children must be trees of this module; `entries` is not kept if it can be helped."""
    if not entries:
        return LEAF
    # The children of a known tree live as long as the tree does, so their ids name them.
    key = (*entries, *map(id, entries.values()))
    found = _NODES.get(key)
    if found is None:
        found = dict(sorted(entries.items())) if len(entries) > 1 else entries
        if len(found) == 1 and MEMBER in found:
            return LEAF
        if len(_NODES) >= _LIMIT:
            for each in list(_NODES)[: _LIMIT // 2]:
                del _NODES[each]
        _NODES[key] = found
    return found


def is_member(tree: Fields) -> bool:
    """Tell whether the path that leads to a tree is a member."""
    return not tree or MEMBER in tree


def union(left: Fields, right: Fields) -> Fields:
    """Return the paths of either set; `left` itself where it has them all. O(size of right)."""
    if left is right or not right:
        return left
    if not left:
        return right
    new: Fields | None = None
    for key, other in right.items():
        mine = left.get(key)
        if mine is None:
            joined = other
        else:
            joined = _joined(mine, other)
            if joined is mine:
                continue
        if new is None:
            new = dict(left)
        new[key] = joined
    return left if new is None else interned(new)


def _joined(mine: Fields, other: Fields) -> Fields:
    """Return the union of two trees below one path, where an empty tree means the path itself."""
    if mine is other:
        return mine
    if not mine:
        return mine if not other else with_member(other)
    if not other:
        return with_member(mine)
    return union(mine, other)


def with_member(tree: Fields) -> Fields:
    """Return the tree below a path with the path itself as a member."""
    return tree if not tree or MEMBER in tree else interned({MEMBER: LEAF, **tree})


def without_member(tree: Fields) -> Fields | None:
    """Return the tree below a path without the path itself, None where nothing is left."""
    if not tree:
        return None
    return interned({key: each for key, each in tree.items() if key != MEMBER}) if MEMBER in tree else tree


def difference(left: Fields, right: Fields) -> Fields:
    """Return the paths of `left` that are not in `right`; `left` itself where there are none in common. O(size of right)."""
    if left is right:
        return EMPTY
    new: Fields | None = None
    for key, other in right.items():
        mine = left.get(key)
        if mine is None:
            continue
        rest = _rest(mine, other)
        if rest is mine:
            continue
        if new is None:
            new = dict(left)
        if rest is None:
            del new[key]
        else:
            new[key] = rest
    return left if new is None else interned(new)


def _rest(mine: Fields, other: Fields) -> Fields | None:
    """Return what is left of a tree below one path, None for nothing."""
    if mine is other:
        return None
    if not mine:
        return None if is_member(other) else mine
    if not other:
        return without_member(mine) if MEMBER in mine else mine
    # A single "." is left as a bare member, and interned() makes the empty tree of it: which is what a leaf is.
    rest = difference(mine, other)
    return rest if rest or (MEMBER in mine and MEMBER not in other) else None


def intersection(left: Fields, right: Fields) -> Fields:
    """Return the paths that both sets have. O(size of right)."""
    if left is right:
        return left
    new: Fields = {}
    for key, other in right.items():
        mine = left.get(key)
        if mine is None:
            continue
        both = _both(mine, other)
        if both is not None:
            new[key] = both
    return interned(new)


def _both(mine: Fields, other: Fields) -> Fields | None:
    if mine is other:
        return mine
    if not mine:
        return LEAF if is_member(other) else None
    if not other:
        return LEAF if MEMBER in mine else None
    common = intersection(mine, other)
    return common if common or (MEMBER in mine and MEMBER in other) else None


def without(left: Fields, right: Fields) -> Fields:
    """Return `left` without the members of `right` and everything below them (recursive difference). O(size of right)."""
    new: Fields | None = None
    for key, other in right.items():
        mine = left.get(key)
        if mine is None:
            continue
        rest: Fields | None
        if is_member(other):
            rest = None
        elif not mine:
            continue
        else:
            smaller = without(mine, other)
            if smaller is mine:
                continue
            rest = smaller if smaller or MEMBER in mine else None
        if new is None:
            new = dict(left)
        if rest is None:
            del new[key]
        else:
            new[key] = rest
    return left if new is None else interned(new)


def of_paths(*paths: tuple[str, ...]) -> Fields:
    """Return the set of some paths of field names.

    >>> of_paths(("status",), ("metadata", "labels"))
    {'f:metadata': {'f:labels': {}}, 'f:status': {}}
    """
    found = EMPTY
    for path in paths:
        tree = LEAF
        for name in reversed(path):
            tree = interned({f"f:{name}": tree})
        found = union(found, tree)
    return found
