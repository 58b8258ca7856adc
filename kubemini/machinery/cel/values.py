"""Values at run time: JSON trees as they are, plus what JSON lacks (unsigned integers, durations, timestamps, optionals, types).

Integers are Python's with overflow checked where they grow; `bool` is never a number here although Python says so. Equality, order and
arithmetic of values whose type is not known before evaluation are in this module; where the checker knows the types the compiler
uses Python's own operators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from kubemini.machinery.cel.errors import CelEvaluationError

INT_MAX = 2**63 - 1
INT_MIN = -(2**63)
UINT_MAX = 2**64 - 1


class UInt(int):
    """An unsigned 64-bit integer; only literals and conversions make them."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A span of time in nanoseconds (google.protobuf.Duration)."""

    nanos: int


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """A point in time in nanoseconds since 1970 (google.protobuf.Timestamp), shown in UTC."""

    nanos: int


@dataclass(frozen=True, slots=True)
class Optional:
    """A value that may be absent."""

    present: bool
    value: Any = None


NONE = Optional(present=False)


def some(value: Any) -> Optional:
    """Return an optional that holds `value`."""
    return Optional(present=True, value=value)


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type as a value: what ``type(x)`` answers and ``int`` means where a value is wanted."""

    name: str


class Opaque:
    """Base of the library's own types (quantities, URLs, …): `type_name` is their CEL name, equality is theirs."""

    __slots__ = ()
    type_name = ""


def no_such_overload() -> CelEvaluationError:
    """Return the error of an operation that does not fit its operands."""
    return CelEvaluationError("no such overload")


_NAMES: dict[type, str] = {
    bool: "bool",
    int: "int",
    UInt: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: "list",
    dict: "map",
    Duration: "google.protobuf.Duration",
    Timestamp: "google.protobuf.Timestamp",
    Optional: "optional_type",
    TypeValue: "type",
}


def type_name(value: Any) -> str:
    """Return the CEL name of a value's type."""
    return _NAMES.get(type(value)) or value.type_name


_NUMBERS = frozenset({int, UInt, float})


def equals(a: Any, b: Any) -> bool:
    """Compare two values of any type: numbers across types, lists and maps element by element, other types never equal."""
    kind, other = type(a), type(b)
    if kind is not other:
        return kind in _NUMBERS and other in _NUMBERS and a == b
    if kind is list:
        return a is b or (len(a) == len(b) and all(equals(x, y) for x, y in zip(a, b, strict=True)))
    if kind is dict:
        if a is b:
            return True
        return len(a) == len(b) and all(key in b and equals(value, b[key]) for key, value in a.items())
    if kind is Optional:
        return a.present == b.present and equals(a.value, b.value)
    return bool(a == b)


def contains(item: Any, container: Any) -> bool:
    """Tell ``item in container`` for a list or the keys of a map."""
    if isinstance(container, list):
        return any(equals(item, each) for each in container)
    if isinstance(container, dict):
        return _key(item) in container if isinstance(item, str | int | float) else False
    raise no_such_overload()


_ORDERED = frozenset({bool, str, bytes, Duration, Timestamp})


def less(a: Any, b: Any) -> bool:
    """Compare two values of an ordered type, or two numbers."""
    kind, other = type(a), type(b)
    if (kind is other and kind in _ORDERED) or (kind in _NUMBERS and other in _NUMBERS):
        return bool(a < b)
    raise no_such_overload()


def _key(value: Any) -> Any:
    """Return a map key as it stands in a dict: whole doubles find integer keys."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def truth(value: Any) -> bool:
    """Return a value that must be a bool."""
    if value is True or value is False:
        return value
    raise no_such_overload()


# ----------------------------------------------------------------------------------------------- containers


def select(value: Any, field: str) -> Any:
    """Return ``value.field`` of a map."""
    if type(value) is dict:
        try:
            return value[field]
        except KeyError:
            raise CelEvaluationError(f"no such key: {field}") from None
    if isinstance(value, Optional):
        return optional_select(value, field)
    raise no_such_overload()


def has(value: Any, field: str) -> bool:
    """Tell ``has(value.field)``."""
    if type(value) is dict:
        return field in value
    if isinstance(value, Optional):
        return value.present and has(value.value, field)
    raise no_such_overload()


def optional_select(value: Any, field: str) -> Optional:
    """Return ``value.?field``."""
    if isinstance(value, Optional):
        return optional_select(value.value, field) if value.present else NONE
    if type(value) is not dict:
        raise no_such_overload()
    return some(value[field]) if field in value else NONE


def index(value: Any, position: Any) -> Any:
    """Return ``value[position]`` of a list or map."""
    if isinstance(value, list):
        place = _place(position)
        if 0 <= place < len(value):
            return value[place]
        raise CelEvaluationError(f"index out of bounds: {place}")
    if isinstance(value, dict):
        key = _key(position)
        if isinstance(key, str | int | float) and key in value:
            return value[key]
        raise CelEvaluationError(f"no such key: {shown(position)}")
    if isinstance(value, Optional):
        return optional_index(value, position)
    raise no_such_overload()


def optional_index(value: Any, position: Any) -> Optional:
    """Return ``value[?position]``."""
    if isinstance(value, Optional):
        return optional_index(value.value, position) if value.present else NONE
    if isinstance(value, list):
        place = _place(position)
        return some(value[place]) if 0 <= place < len(value) else NONE
    if isinstance(value, dict):
        key = _key(position)
        return some(value[key]) if key in value else NONE
    raise no_such_overload()


def _place(position: Any) -> int:
    if type(position) in _NUMBERS and position == int(position):
        return int(position)
    raise no_such_overload()


def elements(value: Any) -> list[Any]:
    """Return what a one-variable macro runs over: the elements of a list, the keys of a map."""
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        return list(value)
    raise no_such_overload()


def pairs(value: Any) -> Iterable[tuple[Any, Any]]:
    """Return what a two-variable macro runs over: index and element, or key and value."""
    if isinstance(value, list):
        return enumerate(value)
    if isinstance(value, dict):
        return value.items()
    raise no_such_overload()


def new_list(items: Iterable[tuple[Any, bool]]) -> list[Any]:
    """Return a list of values, of which those marked are optionals that may be absent."""
    out: list[Any] = []
    for item, maybe in items:
        if not maybe:
            out.append(item)
        elif not isinstance(item, Optional):
            raise no_such_overload()
        elif item.present:
            out.append(item.value)
    return out


def new_map(entries: Iterable[tuple[Any, Any, bool]]) -> dict[Any, Any]:
    """Return a map of entries, of which those marked have optional values."""
    out: dict[Any, Any] = {}
    for key, value, maybe in entries:
        place = _key(key)
        if not isinstance(place, str | int | float):
            raise CelEvaluationError("unsupported key type")
        if place in out:
            raise CelEvaluationError(f"Failed with repeated key: {shown(key)}")
        if not maybe:
            out[place] = value
        elif not isinstance(value, Optional):
            raise no_such_overload()
        elif value.present:
            out[place] = value.value
    return out


def merged(parts: Iterable[Any]) -> dict[Any, Any]:
    """Return the union of maps; a repeated key is an error (transformMapEntry)."""
    out: dict[Any, Any] = {}
    for part in parts:
        if not isinstance(part, dict):
            raise no_such_overload()
        for key, value in part.items():
            if key in out:
                raise CelEvaluationError(f"insert failed: key {shown(key)} already exists")
            out[key] = value
    return out


# ----------------------------------------------------------------------------------------------- logic with errors

Thunk = Callable[[], Any]
Predicate = Callable[[Any], Any]


def either(left: Thunk, right: Thunk) -> bool:
    """Return ``left || right``: true beats an error on the other side."""
    return _logic(left, right, winner=True)


def both(left: Thunk, right: Thunk) -> bool:
    """Return ``left && right``: false beats an error on the other side."""
    return _logic(left, right, winner=False)


def _logic(left: Thunk, right: Thunk, *, winner: bool) -> bool:
    failed: CelEvaluationError | None = None
    try:
        if truth(left()) is winner:
            return winner
    except CelEvaluationError as error:
        failed = error
    if truth(right()) is winner:
        return winner
    if failed is not None:
        raise failed
    return not winner


def every(items: Iterable[Any], predicate: Predicate) -> bool:
    """Return ``items.all(x, predicate)``: false beats errors."""
    return not _quantified(items, predicate, winner=False)


def any_of(items: Iterable[Any], predicate: Predicate) -> bool:
    """Return ``items.exists(x, predicate)``: true beats errors."""
    return _quantified(items, predicate, winner=True)


def _quantified(items: Iterable[Any], predicate: Predicate, *, winner: bool) -> bool:
    failed: CelEvaluationError | None = None
    for item in items:
        try:
            if truth(predicate(item)) is winner:
                return True
        except CelEvaluationError as error:
            failed = error
    if failed is not None:
        raise failed
    return False


def one_of(items: Iterable[bool]) -> bool:
    """Tell whether exactly one predicate holds."""
    return sum(1 for held in items if truth(held)) == 1


# ----------------------------------------------------------------------------------------------- arithmetic


def checked(value: int) -> int:
    """Return an int result, or the overflow error."""
    if INT_MIN <= value <= INT_MAX:
        return value
    raise CelEvaluationError("integer overflow")


def unsigned(value: int) -> UInt:
    """Return a uint result, or the overflow error."""
    if 0 <= value <= UINT_MAX:
        return UInt(value)
    raise CelEvaluationError("unsigned integer overflow")


def span(nanos: int) -> Duration:
    """Return a duration, or the overflow error."""
    if INT_MIN <= nanos <= INT_MAX:
        return Duration(nanos)
    raise CelEvaluationError("duration overflow")


_FIRST_INSTANT = -62_135_596_800 * 10**9
_LAST_INSTANT = 253_402_300_800 * 10**9


def instant(nanos: int) -> Timestamp:
    """Return a timestamp between the years 1 and 9999, or the overflow error."""
    if _FIRST_INSTANT <= nanos < _LAST_INSTANT:
        return Timestamp(nanos)
    raise CelEvaluationError("timestamp overflow")


def add(a: Any, b: Any) -> Any:
    """Return ``a + b``."""
    kind, other = type(a), type(b)
    if kind is other:
        if kind is int:
            return checked(a + b)
        if kind in {float, str, bytes, list}:
            return a + b
        if kind is UInt:
            return unsigned(int(a) + int(b))
        if kind is Duration:
            return span(a.nanos + b.nanos)
    elif (kind is Timestamp and other is Duration) or (kind is Duration and other is Timestamp):
        return instant(a.nanos + b.nanos)
    raise no_such_overload()


def subtract(a: Any, b: Any) -> Any:
    """Return ``a - b``."""
    kind, other = type(a), type(b)
    if kind is other:
        if kind is int:
            return checked(a - b)
        if kind is float:
            return a - b
        if kind is UInt:
            return unsigned(int(a) - int(b))
        if kind in {Duration, Timestamp}:
            return span(a.nanos - b.nanos)
    elif kind is Timestamp and other is Duration:
        return instant(a.nanos - b.nanos)
    raise no_such_overload()


def multiply(a: Any, b: Any) -> Any:
    """Return ``a * b``."""
    kind = type(a)
    if kind is type(b):
        if kind is int:
            return checked(a * b)
        if kind is float:
            return a * b
        if kind is UInt:
            return unsigned(int(a) * int(b))
    raise no_such_overload()


def divide(a: Any, b: Any) -> Any:
    """Return ``a / b``; integers are truncated toward zero."""
    kind = type(a)
    if kind is type(b):
        if kind is float:
            return _float_quotient(a, b)
        if kind in {int, UInt}:
            if b == 0:
                raise CelEvaluationError("division by zero")
            quotient = abs(a) // abs(b)
            return UInt(quotient) if kind is UInt else checked(quotient if (a < 0) == (b < 0) else -quotient)
    raise no_such_overload()


def _float_quotient(a: float, b: float) -> float:
    if b:
        return a / b
    if a == 0 or a != a:  # noqa: PLR0124 - the test for NaN
        return float("nan")
    return float("inf") if (a > 0) == (str(b)[0] != "-") else float("-inf")


def modulo(a: Any, b: Any) -> Any:
    """Return ``a % b``, with the sign of `a`."""
    kind = type(a)
    if kind is type(b) and kind in {int, UInt}:
        if b == 0:
            raise CelEvaluationError("modulus by zero")
        rest = abs(a) % abs(b)
        return kind(-rest if a < 0 else rest)
    raise no_such_overload()


def negate(a: Any) -> Any:
    """Return ``-a``."""
    if type(a) is int:
        return checked(-a)
    if type(a) is float:
        return -a
    raise no_such_overload()


# ----------------------------------------------------------------------------------------------- lists that are sets or maps


def union(a: list[Any], b: list[Any], same: Callable[[Any, Any], bool]) -> list[Any]:
    """Return ``a + b`` of two set lists: elements of `b` that `a` has are left out."""
    return [*a, *(each for each in b if not any(same(each, old) for old in a))]


def merged_by_key(a: list[Any], b: list[Any], keys: tuple[str, ...]) -> list[Any]:
    """Return ``a + b`` of two map lists: elements of `b` replace those of `a` with the same keys, the rest is appended."""
    places = {_identity(each, keys): place for place, each in enumerate(a)}
    out = list(a)
    for each in b:
        place = places.get(_identity(each, keys))
        if place is None:
            out.append(each)
        else:
            out[place] = each
    return out


def _identity(item: Any, keys: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple((type(item.get(key)), item.get(key)) for key in keys) if isinstance(item, dict) else (item,)


def same_set(a: list[Any], b: list[Any], same: Callable[[Any, Any], bool]) -> bool:
    """Compare two set lists: order does not matter."""
    return a is b or (len(a) == len(b) and all(any(same(x, y) for y in b) for x in a))


def same_by_key(a: list[Any], b: list[Any], keys: tuple[str, ...], same: Callable[[Any, Any], bool]) -> bool:
    """Compare two map lists: order does not matter."""
    if a is b:
        return True
    if len(a) != len(b):
        return False
    found = {_identity(each, keys): each for each in b}
    return len(found) == len(b) and all(_identity(each, keys) in found and same(each, found[_identity(each, keys)]) for each in a)


def shown(value: Any) -> str:
    """Return a value as Go's %v prints it in error texts."""
    if value is True or value is False:
        return str(value).lower()
    if value is None:
        return "null"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return str(value)


def iterate(value: Any) -> Iterator[Any]:
    """Iterate over a list or the keys of a map."""
    return iter(elements(value))
