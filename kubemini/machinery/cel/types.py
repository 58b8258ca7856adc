"""Types of expressions, and how they fit: what the checker computes with.

A type that comes from a schema carries its `Declared`: fields, sizes and how lists compare; see `kubemini.machinery.cel.declared`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubemini.machinery.cel.declared import Declared


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
