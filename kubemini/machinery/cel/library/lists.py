"""Lists and sets: Kubernetes' list library, cel-go's lists (version 3) and sets extensions."""

from __future__ import annotations

from functools import cmp_to_key
from itertools import pairwise
from typing import Any

from kubemini.machinery.cel import values
from kubemini.machinery.cel.errors import CelEvaluationError
from kubemini.machinery.cel.overloads import declare_overload, function
from kubemini.machinery.cel.values import NONE, Duration, Optional, UInt, equals, some

_NUMERIC = (("int", 0), ("uint", UInt(0)), ("double", 0.0), ("duration", Duration(0)))
_COMPARABLE = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")


def _sum(zero: Any) -> Any:
    def total(items: list[Any]) -> Any:
        result = zero
        for each in items:
            result = values.add(result, each)
        return result

    return total


def is_sorted(items: list[Any]) -> bool:
    """Tell whether no element is less than the one before."""
    return not any(values.less(b, a) for a, b in pairwise(items))


def least(items: list[Any]) -> Any:
    """Return the smallest element."""
    return _extreme(items, "min", lowest=True)


def greatest(items: list[Any]) -> Any:
    """Return the greatest element."""
    return _extreme(items, "max", lowest=False)


def _extreme(items: list[Any], name: str, *, lowest: bool) -> Any:
    if not items:
        raise CelEvaluationError(f"{name} called on empty list")
    best = items[0]
    for each in items[1:]:
        if values.less(each, best) if lowest else values.less(best, each):
            best = each
    return best


for _type, _zero in _NUMERIC:
    declare_overload(f"(list({_type})).sum() -> {_type}", f"list_{_type}_sum_{_type}", _sum(_zero))
for _type in _COMPARABLE:
    declare_overload(f"(list({_type})).isSorted() -> bool", f"list_{_type}_is_sorted_bool", is_sorted)
    declare_overload(f"(list({_type})).max() -> {_type}", f"list_{_type}_max_{_type}", greatest)
    declare_overload(f"(list({_type})).min() -> {_type}", f"list_{_type}_min_{_type}", least)


@function("(list(A)).indexOf(A) -> int", "list_a_index_of_int")
def index_of(items: list[Any], item: Any) -> int:
    """Return the first place of an element, or -1."""
    return next((place for place, each in enumerate(items) if equals(each, item)), -1)


@function("(list(A)).lastIndexOf(A) -> int", "list_a_last_index_of_int")
def last_index_of(items: list[Any], item: Any) -> int:
    """Return the last place of an element, or -1."""
    return next((place for place in range(len(items) - 1, -1, -1) if equals(items[place], item)), -1)


@function("(list(T)).slice(int, int) -> list(T)", "list_slice")
def slice_(items: list[Any], start: int, end: int) -> list[Any]:
    """Return the elements from `start` up to `end`."""
    if start < 0 or end < 0:
        raise CelEvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise CelEvaluationError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if end > len(items):
        raise CelEvaluationError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


@function("(list(list(T))).flatten() -> list(T)", "list_flatten")
@function("(list(dyn)).flatten(int) -> list(dyn)", "list_flatten_int")
def flatten(items: list[Any], depth: int = 1) -> list[Any]:
    """Return the elements of nested lists, `depth` levels down."""
    if depth < 0:
        raise CelEvaluationError("level must be non-negative")
    out: list[Any] = []
    for each in items:
        if not isinstance(each, list):
            out.append(each)
        else:
            out.extend(flatten(each, depth - 1) if depth > 1 else each)
    return out if depth else items


@function("lists.range(int) -> list(int)", "lists_range")
def range_(count: int) -> list[int]:
    """Return 0, 1, … below `count`."""
    if count > 1_000_000:
        raise CelEvaluationError("operation cancelled: actual cost limit exceeded")
    return list(range(count))


@function("(list(T)).reverse() -> list(T)", "list_reverse")
def reverse(items: list[Any]) -> list[Any]:
    """Return the elements in reverse order."""
    return items[::-1]


@function("(list(T)).distinct() -> list(T)", "list_distinct")
def distinct(items: list[Any]) -> list[Any]:
    """Return the elements without later repetitions."""
    out: list[Any] = []
    for each in items:
        if not any(equals(each, seen) for seen in out):
            out.append(each)
    return out


def _order(a: Any, b: Any) -> int:
    return -1 if values.less(a, b) else 1 if values.less(b, a) else 0


def sort(items: list[Any]) -> list[Any]:
    """Return the elements in order."""
    return sorted(items, key=cmp_to_key(_order))


for _type in _COMPARABLE:
    declare_overload(f"(list({_type})).sort() -> list({_type})", f"list_{_type}_sort", sort)


def sorted_by(items: list[Any], keys: list[Any]) -> list[Any]:
    """Return the elements in the order of their keys (the macro ``sortBy``)."""
    pairs: list[tuple[Any, Any]] = sorted(zip(keys, items, strict=True), key=cmp_to_key(_order_of_pairs))
    return [item for _, item in pairs]


def _order_of_pairs(a: tuple[Any, Any], b: tuple[Any, Any]) -> int:
    return _order(a[0], b[0])


@function("(list(V)).first() -> optional(V)", "list_first")
def first(items: list[Any]) -> Optional:
    """Return the first element, if any."""
    return some(items[0]) if items else NONE


@function("(list(V)).last() -> optional(V)", "list_last")
def last(items: list[Any]) -> Optional:
    """Return the last element, if any."""
    return some(items[-1]) if items else NONE


@function("sets.contains(list(T), list(T)) -> bool", "list_sets_contains_list")
def set_contains(items: list[Any], part: list[Any]) -> bool:
    """Tell whether every element of `part` is in `items`."""
    return all(values.contains(each, items) for each in part)


@function("sets.equivalent(list(T), list(T)) -> bool", "list_sets_equivalent_list")
def set_equivalent(a: list[Any], b: list[Any]) -> bool:
    """Tell whether both have the same elements."""
    return set_contains(a, b) and set_contains(b, a)


@function("sets.intersects(list(T), list(T)) -> bool", "list_sets_intersects_list")
def set_intersects(a: list[Any], b: list[Any]) -> bool:
    """Tell whether both have an element in common."""
    return any(values.contains(each, b) for each in a)
