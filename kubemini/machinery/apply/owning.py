"""From values to sets of fields: what an applied configuration owns, what an object consists of, what a write changed.

`fields_of` is the set of an applied configuration. `Change` and `compare` say what a write took away and what it added
or changed; both walk only what is not the very same object on both sides, and work on shared subtrees is done once.
Mirrors structured-merge-diff's ``typed.ToFieldSet`` and ``typed.Compare`` (v6).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from kubemini.machinery.apply.sets import EMPTY, LEAF, MEMBER, Fields, interned, with_member, without_member
from kubemini.machinery.apply.shapes import DEDUCED, Shape
from kubemini.machinery.merge import same

_ABSENT: Final = object()
_MEMO_LIMIT = 8192
_FLAT_LIMIT = 1024


class Change(NamedTuple):
    """What a write did: fields that are gone, and fields that were added or have another value."""

    removed: Fields
    changed: Fields


UNCHANGED: Final = Change(EMPTY, EMPTY)


# ----------------------------------------------------------------------------------------------- sets of configurations


def fields_of(value: Any, shape: Shape) -> Fields:
    """Return the fields of a configuration: its leaves, its empty objects and nulls, the elements of its sets and keyed lists, the keys of its maps.

    Raise `FieldsError` for a list element without a key.
    """
    if not granular(value, shape):
        return EMPTY
    return _fields_of_object(value, shape) if isinstance(value, dict) else _fields_of_list(value, shape)


def granular(value: Any, shape: Shape) -> bool:
    """Tell whether a value is owned in parts."""
    if isinstance(value, dict):
        return shape.is_object and not shape.atomic_object
    return isinstance(value, list) and shape.is_list and not shape.atomic_list


def _fields_of_object(value: dict[str, Any], shape: Shape) -> Fields:
    found: Fields = {}
    for key, each in value.items():
        below = shape.of_field(key) or DEDUCED
        if each == {} or not granular(each, below):
            found[f"f:{key}"] = LEAF
            continue
        fields = fields_of(each, below)
        if key not in shape.fields:
            found[f"f:{key}"] = with_member(fields)
        elif fields:
            found[f"f:{key}"] = fields
    return interned(found)


def _fields_of_list(items: list[Any], shape: Shape) -> Fields:
    found: Fields = {}
    assert shape.items is not None
    for element, each in _by_element(items, shape).items():
        # A doubled element is owned as one, nothing below it.
        found[element] = with_member(fields_of(each[0], shape.items)) if len(each) == 1 else LEAF
    return interned(found)


# ----------------------------------------------------------------------------------------------- whole values

_WHOLE: dict[int, tuple[Any, Shape, Fields]] = {}


def whole(value: Any, shape: Shape) -> Fields:
    """Return the set below the path of a value that appears or vanishes: everything in it, containers included. Once per subtree."""
    if shape.leaf or not value or not granular(value, shape):
        return LEAF
    if shape.flat is not None and isinstance(value, dict):
        # The keys alone decide.
        keys = tuple(value)
        return shape.flat.get(keys) or _flat(keys, shape)
    known = _WHOLE.get(id(value))
    if known is not None and known[1] is shape:
        return known[2]
    found = _whole_object(value, shape) if isinstance(value, dict) else _whole_list(value, shape)
    if len(_WHOLE) >= _MEMO_LIMIT:
        for key in list(_WHOLE)[: _MEMO_LIMIT // 2]:
            del _WHOLE[key]
    _WHOLE[id(value)] = (value, shape, found)
    return found


def _flat(keys: tuple[str, ...], shape: Shape) -> Fields:
    known = shape.flat
    assert known is not None
    if len(known) >= _FLAT_LIMIT:
        known.clear()
    found: Fields = {MEMBER: LEAF}
    for key in keys:
        found[f"f:{key}"] = LEAF
    known[keys] = found = interned(found)
    return found


def _whole_object(value: dict[str, Any], shape: Shape) -> Fields:
    found: Fields = {MEMBER: LEAF}
    plan = shape.plan
    for key, each in value.items():
        element, below, leaf = plan.get(key) or _unplanned(key, shape)
        found[element] = LEAF if leaf else whole(each, below)
    return interned(found)


def _whole_list(items: list[Any], shape: Shape) -> Fields:
    found: Fields = {MEMBER: LEAF}
    below = shape.items
    assert below is not None
    for each in items:
        element = shape.element_of(each)
        found[element] = LEAF if element in found else whole(each, below)
    return interned(found)


def _unplanned(key: str, shape: Shape) -> tuple[str, Shape, bool]:
    """Return path element, shape and leaf-ness of a key that is no declared field."""
    below = shape.element or DEDUCED
    return f"f:{key}", below, below.leaf


# ----------------------------------------------------------------------------------------------- comparison


def compare(old: Any, new: Any, shape: Shape, skip: frozenset[str] = frozenset()) -> Change:
    """Return what changed between two objects of a shape; `skip` names fields that do not matter. Raise `FieldsError`.

    O(what is not identical on both sides).
    """
    if old is new:
        return UNCHANGED
    removed, changed = _objects(old, new, shape, skip)
    return Change(removed or EMPTY, changed or EMPTY)


_Pair = tuple[Fields | None, Fields | None]
"""What was removed and what was changed below a path; None = nothing, not even the path."""
_SAME: Final[_Pair] = (None, None)
_LEAF_CHANGED: Final[_Pair] = (None, LEAF)


def _objects(old: dict[str, Any], new: dict[str, Any], shape: Shape, skip: frozenset[str]) -> _Pair:
    removed: Fields | None = None
    changed: Fields | None = None
    plan, present = shape.plan, shape.present
    unseen = len(old)
    for key, after in new.items():
        before = old.get(key, _ABSENT)
        if before is not _ABSENT:
            unseen -= 1
            if before is after:
                continue
        elif key in present:
            before = present[key]
        if key in skip:
            continue
        element, below, leaf = plan.get(key) or _unplanned(key, shape)
        gone: Fields | None = None
        if before is _ABSENT:
            fresh: Fields | None = LEAF if leaf else whole(after, below)
        elif leaf:
            if before == after and (type(before) is type(after) or same(before, after)):
                continue
            fresh = LEAF
        else:
            gone, fresh = _values(before, after, below)
        if gone is not None:
            if removed is None:
                removed = {}
            removed[element] = gone
        if fresh is not None:
            if changed is None:
                changed = {}
            changed[element] = fresh
    if unseen:
        for key, before in old.items():
            if key in new or key in skip:
                continue
            element, below, leaf = plan.get(key) or _unplanned(key, shape)
            fresh = None
            if key in present:
                gone, fresh = _values(before, present[key], below)
            else:
                gone = LEAF if leaf else whole(before, below)
            if gone is not None:
                if removed is None:
                    removed = {}
                removed[element] = gone
            if fresh is not None:
                if changed is None:
                    changed = {}
                changed[element] = fresh
    return (None if removed is None else interned(removed), None if changed is None else interned(changed))


def _values(old: Any, new: Any, shape: Shape) -> _Pair:
    """Compare two values that are both there."""
    if shape.leaf:
        return _SAME if old == new and (type(old) is type(new) or same(old, new)) else _LEAF_CHANGED
    mine, theirs = granular(new, shape), granular(old, shape)
    # Null goes with whatever stands on the other side; two empty values are leaves, which keeps {} and null apart.
    if (mine or new is None) and (theirs or old is None) and (old or new):
        if isinstance(new, dict) or isinstance(old, dict):
            return _objects(old or {}, new or {}, shape, shape.skip)
        return _lists(old or [], new or [], shape)
    if same(old, new):
        return _SAME
    # Values of two types: the place itself changed, and with it what is in it.
    return (without_member(whole(old, shape)) if theirs else None), whole(new, shape)


def _lists(old: list[Any], new: list[Any], shape: Shape) -> _Pair:
    """Compare two sets or keyed lists, element by element; their order does not matter."""
    below = shape.items
    assert below is not None
    element_of = shape.element_of
    before = {element_of(each): each for each in old}
    after = {element_of(each): each for each in new}
    if len(before) != len(old) or len(after) != len(new):
        return _doubled_lists(_by_element(old, shape), _by_element(new, shape), below)
    removed: Fields = {}
    changed: Fields = {}
    for element, mine in after.items():
        theirs = before.get(element, _ABSENT)
        if theirs is mine:
            continue
        if theirs is _ABSENT:
            changed[element] = whole(mine, below)
            continue
        gone, fresh = _values(theirs, mine, below)
        if gone is not None:
            removed[element] = gone
        if fresh is not None:
            changed[element] = fresh
    for element, theirs in before.items():
        if element not in after:
            removed[element] = whole(theirs, below)
    return (interned(removed) if removed else None, interned(changed) if changed else None)


def _doubled_lists(before: dict[str, list[Any]], after: dict[str, list[Any]], below: Shape) -> _Pair:
    """Compare lists with doubled elements: those are owned as one, and changed when any of them is."""
    removed: Fields = {}
    changed: Fields = {}
    for element in dict.fromkeys([*before, *after]):
        theirs, mine = before.get(element, []), after.get(element, [])
        if len(theirs) > 1 and len(mine) > 1:
            if not same(theirs, mine):
                changed[element] = LEAF
        elif len(theirs) == 1 and len(mine) == 1:
            gone, fresh = _values(theirs[0], mine[0], below)
            if gone is not None:
                removed[element] = gone
            if fresh is not None:
                changed[element] = fresh
        else:
            if theirs:
                removed[element] = LEAF if len(theirs) > 1 else whole(theirs[0], below)
            if mine:
                changed[element] = LEAF if len(mine) > 1 else whole(mine[0], below)
    return (interned(removed) if removed else None, interned(changed) if changed else None)


def _by_element(items: list[Any], shape: Shape) -> dict[str, list[Any]]:
    """Return list items by path element; an element with several items is doubled."""
    found: dict[str, list[Any]] = {}
    for each in items:
        found.setdefault(shape.element_of(each), []).append(each)
    return found
