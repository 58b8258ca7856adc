"""Laws of field sets: the algebra on FieldsV1 trees is the algebra of sets of paths, and comparisons see exactly what differs."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kubemini.machinery.apply.owning import compare, fields_of, whole
from kubemini.machinery.apply.paths import read
from kubemini.machinery.apply.sets import EMPTY, MEMBER, Fields, difference, interned, intersection, union, without
from kubemini.machinery.apply.shapes import DEDUCED

Paths = frozenset[tuple[str, ...]]

ELEMENTS = st.sampled_from(["f:a", "f:b", "f:c", 'k:{"n":"x"}', 'v:"y"'])
PATHS: st.SearchStrategy[Paths] = st.frozensets(st.lists(ELEMENTS, min_size=1, max_size=4).map(tuple), max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "x"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=4)


def tree(paths: Paths) -> Fields:
    """Return the set of some paths."""
    nested: Any = {}
    for path in paths:
        here = nested
        for each in path:
            here = here.setdefault(each, {})
        here[MEMBER] = {}
    return _normal(nested)


def _normal(nested: Any) -> Fields:
    # A path whose tree holds nothing but itself is a bare leaf.
    return interned({key: {} if each == {MEMBER: {}} else _normal(each) for key, each in nested.items()})


def paths_of(fields: Fields, prefix: tuple[str, ...] = ()) -> Paths:
    """Return the members of a set."""
    found: set[tuple[str, ...]] = set()
    for element, below in fields.items():
        if element == MEMBER:
            found.add(prefix)
        elif not below:
            found.add((*prefix, element))
        else:
            found |= paths_of(below, (*prefix, element))
    return frozenset(found)


@given(PATHS)
def test_trees_say_what_their_paths_say(paths: Paths) -> None:
    """A set of paths survives being made a tree, being read from plain JSON, and being compared by identity."""
    assert paths_of(tree(paths)) == paths
    assert read(_copy(tree(paths))) is read(_copy(tree(paths)))
    assert paths_of(read(_copy(tree(paths)))) == paths


def _copy(fields: Any) -> Any:
    return {key: _copy(each) for key, each in fields.items()}


@given(PATHS, PATHS)
def test_algebra(left: Paths, right: Paths) -> None:
    """Union, intersection and difference of trees are those of the sets of their paths."""
    assert paths_of(union(tree(left), tree(right))) == left | right
    assert paths_of(intersection(tree(left), tree(right))) == left & right
    assert paths_of(difference(tree(left), tree(right))) == left - right


@given(PATHS, PATHS)
def test_recursive_difference(left: Paths, right: Paths) -> None:
    """The recursive difference also takes everything below a member of the right side."""
    kept = frozenset(path for path in left if not any(path[: len(each)] == each for each in right))
    assert paths_of(without(tree(left), tree(right))) == kept


@given(PATHS, PATHS)
def test_nothing_changes_without_need(left: Paths, right: Paths) -> None:
    """An operation that changes nothing returns its operand itself, and operands never change."""
    a, b = tree(left), tree(right)
    before = _copy(a), _copy(b)
    assert union(a, tree(left & right)) is a
    assert difference(a, tree(right - left)) is a
    assert difference(a, a) == EMPTY
    for operation in (union, intersection, difference, without):
        operation(a, b)
    assert (a, b) == before


@given(OBJECTS, OBJECTS)
def test_a_comparison_explains_the_difference(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Equal objects have no change; each leaf is told exactly when it is gone or differs. An object that was emptied only loses what was in it."""
    change = compare(old, new, DEDUCED)
    assert (not change.removed and not change.changed) == _same(old, new)
    gone = {path for path in _leaves(old) if _at(new, path) is _MISSING and _granular_to(new, path)}
    emptied = {path for path in _leaves(new) if _at(new, path) in ({}, None) and isinstance(_at(old, path), dict) and _at(old, path)}
    fresh = {path for path in _leaves(new) if not _same(_at(old, path), _at(new, path))} - emptied
    assert gone <= paths_of(change.removed)
    assert fresh <= paths_of(change.changed)
    for path in paths_of(change.changed):
        assert not _same(_at(old, path), _at(new, path))
    for path in paths_of(change.removed):
        assert _at(old, path) is not _MISSING
        assert _at(new, path) is _MISSING


@given(OBJECTS)
def test_what_appears_is_everything(value: dict[str, Any]) -> None:
    """The set of a whole value holds every path of it, containers included; that of a configuration all of its leaves."""
    everything = paths_of(whole(value, DEDUCED)) - {()}
    assert everything == (frozenset(_paths(value)))
    assert set(_leaves(value)) <= paths_of(fields_of(value, DEDUCED)) <= everything


_MISSING = object()


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for element in path:
        if not isinstance(value, dict) or element[2:] not in value:
            return _MISSING
        value = value[element[2:]]
    return value


def _granular_to(value: Any, path: tuple[str, ...]) -> bool:
    """Tell whether all containers on the way to a path are objects (or absent or null) in a value."""
    return all(isinstance(_at(value, path[:depth]), dict) or _at(value, path[:depth]) in (None, _MISSING) for depth in range(len(path)))


def _paths(value: Any, prefix: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if not isinstance(value, dict):
        return []
    found: list[tuple[str, ...]] = []
    for key, each in value.items():
        found += [(*prefix, f"f:{key}"), *_paths(each, (*prefix, f"f:{key}"))]
    return found


def _leaves(value: Any) -> list[tuple[str, ...]]:
    return [path for path in _paths(value) if not (isinstance(_at(value, path), dict) and _at(value, path))]


def _same(left: Any, right: Any) -> bool:
    if left is _MISSING or right is _MISSING:
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return type(left) is type(right) and bool(left == right)
