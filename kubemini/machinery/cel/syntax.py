"""The syntax tree of an expression. Macros (``all``, ``map``, …) stay what they are: the checker, the estimator and the compiler know them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from typing import Literal as Choice

Macro = Choice["all", "exists", "existsOne", "map", "filter", "transformList", "transformMap", "transformMapEntry", "sortBy", "optMap", "optFlatMap"]


@dataclass(frozen=True, slots=True, eq=False)
class Expr:
    """A node; `position` is where an error about it is shown. Nodes are compared and hashed by identity."""

    position: int


@dataclass(frozen=True, slots=True, eq=False)
class Literal(Expr):
    """A constant: bool, int, `UInt`, float, str, bytes or None."""

    value: Any


@dataclass(frozen=True, slots=True, eq=False)
class Ident(Expr):
    """A variable or type name."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Select(Expr):
    """``operand.field``, ``has(operand.field)`` (test), or ``operand.?field`` (optional)."""

    operand: Expr
    field: str
    test: bool = False
    optional: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Call(Expr):
    """A function, method or operator (named as in cel-go: ``_+_``, ``!_``, ``_[_]``, ``_[?_]``, ``_?_:_``, ``@in``)."""

    function: str
    args: tuple[Expr, ...]
    target: Expr | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ListExpr(Expr):
    """``[a, ?b]``; `optional` holds the indices of elements that may be absent."""

    items: tuple[Expr, ...]
    optional: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class MapExpr(Expr):
    """``{k: v, ?k: v}``."""

    entries: tuple[tuple[Expr, Expr, bool], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Struct(Expr):
    """``Type{field: value, ?field: value}``. Only patches are made of such objects."""

    name: str
    fields: tuple[tuple[str, Expr, bool], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Comprehension(Expr):
    """A macro over a range: one or two variables, a body, and for map and transform macros perhaps a filter."""

    macro: Macro
    range: Expr
    variables: tuple[str, ...]
    body: Expr
    filter: Expr | None = None
