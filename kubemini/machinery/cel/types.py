"""Types of expressions, and how they fit: what the checker computes with.

A type that comes from a schema carries its `Declared`: fields, sizes and how lists compare; `kubemini.machinery.cel.declared` makes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from kubemini.machinery.cel.values import equals, same_by_key, same_set

Convert = Callable[[Any], Any]
Same = Callable[[Any, Any], bool]


@dataclass(frozen=True, slots=True, eq=False)
class Type:
    """A type: `kind` is its family, `name` tells objects, opaque types and type parameters apart, `params` are its arguments."""

    kind: str
    name: str = ""
    params: tuple[Type, ...] = ()
    declared: Declared | None = None

    def __str__(self) -> str:
        if self.kind in {"object", "param"}:
            return self.name
        if self.kind == "opaque":
            return f"{self.name}({', '.join(map(str, self.params))})" if self.params else self.name
        shown = _SHOWN.get(self.kind, self.kind)
        return f"{shown}({', '.join(map(str, self.params))})" if self.params else shown


_SHOWN = {"null_type": "null", "error": "!error!", "list": "list", "map": "map"}

BOOL = Type("bool")
INT = Type("int")
UINT = Type("uint")
DOUBLE = Type("double")
STRING = Type("string")
BYTES = Type("bytes")
NULL = Type("null_type")
DURATION = Type("duration")
TIMESTAMP = Type("timestamp")
DYN = Type("dyn")
ERROR = Type("error")
TYPE = Type("type")

SCALARS: Mapping[str, Type] = {each.kind: each for each in (BOOL, INT, UINT, DOUBLE, STRING, BYTES, NULL, DURATION, TIMESTAMP, DYN, ERROR)}


def list_of(item: Type, declared: Declared | None = None) -> Type:
    """Return ``list(item)``."""
    return Type("list", "list", (item,), declared)


def map_of(key: Type, value: Type, declared: Declared | None = None) -> Type:
    """Return ``map(key, value)``."""
    return Type("map", "map", (key, value), declared)


def optional_of(value: Type) -> Type:
    """Return ``optional_type(value)``."""
    return Type("opaque", "optional_type", (value,))


def type_of(value: Type) -> Type:
    """Return ``type(value)``."""
    return Type("type", "type", (value,))


def is_dyn(each: Type) -> bool:
    """Tell whether a type is only known at run time (or was an error already reported)."""
    return each.kind in {"dyn", "error"}


def unwrap_optional(each: Type) -> tuple[Type, bool]:
    """Return what an optional type holds, and whether it was one."""
    if each.kind == "opaque" and each.name == "optional_type":
        return each.params[0], True
    return each, False


def same(a: Type, b: Type) -> bool:
    """Tell whether two types are exactly the same."""
    return a is b or (a.kind == b.kind and a.name == b.name and len(a.params) == len(b.params) and all(map(same, a.params, b.params)))


class Bindings:
    """What is known of type parameters. `fits` tries and keeps what it learnt only where types fit."""

    def __init__(self) -> None:
        self._known: dict[str, Type] = {}
        self._fresh = 0

    def fresh(self) -> Type:
        """Return a new unknown type."""
        self._fresh += 1
        return Type("param", f"_var{self._fresh - 1}")

    def instantiated(self, types: tuple[Type, ...]) -> tuple[Type, ...]:
        """Return types with their parameters (A, B, …) replaced by fresh unknowns, the same for the same name."""
        names: dict[str, Type] = {}
        return tuple(self._renamed(each, names) for each in types)

    def _renamed(self, each: Type, names: dict[str, Type]) -> Type:
        if each.kind == "param":
            if each.name not in names:
                names[each.name] = self.fresh()
            return names[each.name]
        if not each.params:
            return each
        return Type(each.kind, each.name, tuple(self._renamed(param, names) for param in each.params), each.declared)

    def resolved(self, each: Type, *, final: bool = False) -> Type:
        """Return a type with what is known of its parameters; what stays unknown becomes dyn when `final`."""
        while each.kind == "param" and each.name in self._known:
            each = self._known[each.name]
        if each.kind == "param":
            return DYN if final else each
        if not each.params:
            return each
        params = tuple(self.resolved(param, final=final) for param in each.params)
        if all(new is old for new, old in zip(params, each.params, strict=True)):
            return each
        return Type(each.kind, each.name, params, each.declared)

    def fits(self, wanted: tuple[Type, ...], given: tuple[Type, ...]) -> bool:
        """Tell whether values of the types `given` may stand where `wanted` are expected, and remember what that implies."""
        if len(wanted) != len(given):
            return False
        before = dict(self._known)
        if all(self._assignable(a, b) for a, b in zip(wanted, given, strict=True)):
            return True
        self._known = before
        return False

    def _assignable(self, a: Type, b: Type) -> bool:
        a, b = self.resolved(a), self.resolved(b)
        if b.kind == "param":
            return self._bound(b, a)
        if a.kind == "param":
            return self._bound(a, b)
        if is_dyn(a) or is_dyn(b):
            return True
        if a.kind == "null_type" or b.kind == "null_type":
            other = b if a.kind == "null_type" else a
            return other.kind in {"null_type", "object", "opaque", "timestamp", "duration"}
        if a.kind != b.kind:
            return False
        if a.kind == "type":
            return True
        return a.name == b.name and len(a.params) == len(b.params) and all(map(self._assignable, a.params, b.params))

    def _bound(self, param: Type, to: Type) -> bool:
        if to.kind == "param" and to.name == param.name:
            return True
        if self._occurs(param.name, to):
            return False
        self._known[param.name] = to
        return True

    def _occurs(self, name: str, within: Type) -> bool:
        return any((each.kind == "param" and each.name == name) or self._occurs(name, each) for each in map(self.resolved, within.params))


def general(a: Type, b: Type) -> Type:
    """Return the more general of two types that fit each other."""
    return a if is_dyn(a) else b if is_dyn(b) else a


# ----------------------------------------------------------------------------------------------- what a schema says


class Field(NamedTuple):
    """A field of an object type: its key in JSON and what stands there."""

    key: str
    value: Declared


class Declared:
    """One node of a schema as CEL sees it."""

    __slots__ = ("_same", "convert", "element", "fields", "key", "keys", "list_type", "max_elements", "min_size", "type")

    def __init__(
        self,
        type_: Type,
        *,
        min_size: int,
        max_elements: int = 0,
        fields: Mapping[str, Field] | None = None,
        key: Declared | None = None,
        element: Declared | None = None,
        convert: Convert | None = None,
        list_type: str = "",
        keys: tuple[str, ...] = (),
    ) -> None:
        self.type = Type(type_.kind, type_.name, type_.params, self) if type_.kind in {"object", "list", "map"} else type_
        self.fields: Mapping[str, Field] = fields or {}
        """Fields of an object by their CEL name (``__namespace__`` for ``namespace``)."""
        self.key = key
        self.element = element
        self.min_size = min_size
        """The shortest JSON text of a value, in bytes."""
        self.max_elements = max_elements
        """The greatest number of elements, entries or bytes of a value."""
        self.convert = convert
        """Makes a value of raw JSON; None where raw JSON is the value."""
        self.list_type = list_type
        self.keys = keys
        self._same: Same | None = None

    @property
    def plain(self) -> bool:
        """Whether Python's ``==`` on raw JSON is equality here: no sets, no keyed lists, nothing dynamic, nothing converted."""
        return self.same is _plain_equality

    @property
    def same(self) -> Same:
        """How two values of this node compare."""
        if self._same is None:
            self._same = self._comparison()
        return self._same

    def _comparison(self) -> Same:
        if self.type.kind == "object":
            odd = [(field.key, field.value) for field in self.fields.values() if not field.value.plain]
            return _same_object(odd, [field.key for field in self.fields.values() if field.value.plain]) if odd else _plain_equality
        if self.type.kind == "map":
            assert self.element is not None
            return _plain_equality if self.element.plain else _same_map(self.element.same)
        if self.type.kind == "list":
            return self._list_comparison()
        return equals if self.type is DYN or self.convert is not None else _plain_equality

    def _list_comparison(self) -> Same:
        assert self.element is not None
        item, keys = self.element.same, self.keys
        if self.list_type == "set":
            return lambda a, b: same_set(a, b, item)
        if self.list_type == "map":
            return lambda a, b: same_by_key(a, b, keys, item)
        return _plain_equality if self.element.plain else _same_list(item)


def _plain_equality(a: Any, b: Any) -> bool:
    return a is b or bool(a == b)


def _same_list(item: Same) -> Same:
    return lambda a, b: a is b or (len(a) == len(b) and all(map(item, a, b)))


def _same_map(item: Same) -> Same:
    return lambda a, b: a is b or (len(a) == len(b) and all(key in b and item(value, b[key]) for key, value in a.items()))


def _same_object(odd: list[tuple[str, Declared]], plain: list[str]) -> Same:
    """Compare two objects: the odd fields each in their way, the others as raw JSON. Fields without a type compare as raw JSON too."""
    known = {key for key, _ in odd} | set(plain)

    def compare(a: Any, b: Any) -> bool:
        if a is b:
            return True
        if len(a) != len(b):
            return False
        for key, declared in odd:
            if (key in a) != (key in b) or (key in a and not _same_raw(declared, a[key], b[key])):
                return False
        return all(key in b and a[key] == b[key] for key in a if key not in known or key in plain)

    return compare


def _same_raw(declared: Declared, a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    if declared.convert is not None:
        return declared.same(declared.convert(a), declared.convert(b))
    return declared.same(a, b)
