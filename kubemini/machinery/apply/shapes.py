"""What server-side apply knows of a schema: per value whether it is owned as a whole or in parts, and by which keys.

A `Shape` says what a value may be (scalar, list, object) and how each of them merges. Built-in types and structural
schemas of custom resources compile to it (`builtin`, `structural`); `DEDUCED` is the shape of a value that no schema
describes: objects are granular, lists atomic. Mirrors structured-merge-diff's ``schema.Atom`` (v6).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol

from kubemini.api.trees import Tree
from kubemini.machinery.apply.paths import FieldsError, key_element, value_element

Scalar = Literal["", "string", "numeric", "boolean", "untyped"]

_TEXTS_LIMIT = 8192
_BELOW = ("fields", "element", "items", "defaults")


class Shape:
    """How a value is owned and merged. Filled once by its builder, constant afterwards; compared by identity.

    A value may be a scalar (`scalar` not ""), an object (`is_object`) and a list (`is_list`); several for values of any type.
    """

    __slots__ = (
        "_plan",
        "_texts",
        "atomic_list",
        "atomic_object",
        "defaults",
        "element",
        "fields",
        "flat",
        "is_list",
        "is_object",
        "items",
        "keys",
        "later",
        "leaf",
        "present",
        "scalar",
        "skip",
    )

    def __init__(self, scalar: Scalar = "") -> None:
        self.scalar: Scalar = scalar
        self.is_object = False
        self.atomic_object = False
        """Whether an object is owned and replaced as a whole."""
        self.fields: dict[str, Shape] = {}
        """The declared fields of an object."""
        self.element: Shape | None = None
        """The shape of other keys of an object; None = there may be none."""
        self.present: Mapping[str, Any] = {}
        """Fields that Go always holds, with their zero values: where they are absent in the tree, they count as zero."""
        self.skip: frozenset[str] = frozenset()
        """Fields that nobody ever owns."""
        self.is_list = False
        self.atomic_list = True
        """Whether a list is owned and replaced as a whole."""
        self.items: Shape | None = None
        self.keys: tuple[str, ...] = ()
        """The sorted keys of a keyed list's elements; none = a set of scalars."""
        self.defaults: Mapping[str, Any] = {}
        """Values of absent keys."""
        self.leaf = True
        """Whether every value is owned as a whole. Set by `sealed`."""
        self.flat: dict[tuple[str, ...], Any] | None = None
        """Known sets of objects whose fields are all owned as a whole, by their keys; None for other shapes. Set with the plan."""
        self._plan: dict[str, tuple[str, Shape, bool]] | None = None
        self._texts: dict[Any, str] = {}
        self.later: Callable[[], None] | None = None
        """What sets the parts that `postponed` took away."""

    def postponed(self, later: Callable[[], None]) -> Shape:
        """Leave what lies below for when somebody looks: of a deep schema most is never asked for. `later` then sets all of it."""
        for name in _BELOW:
            delattr(self, name)
        self.later = later
        return self

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Set what lies below: only asked for what is not there yet."""
            if name not in _BELOW or self.later is None:
                raise AttributeError(f"a shape has no {name}")
            later, self.later = self.later, None
            self.fields, self.element, self.items, self.defaults = {}, None, None, {}
            later()
            return getattr(self, name)

    @property
    def plan(self) -> dict[str, tuple[str, Shape, bool]]:
        """Path element, shape and leaf-ness of each declared field: one look-up instead of three in the loops over objects."""
        plan = self._plan
        if plan is None:
            plan = self._plan = {name: (f"f:{name}", below, below.leaf) for name, below in self.fields.items()}
            if self.is_object and all(below.leaf for below in self.fields.values()) and (self.element is None or self.element.leaf):
                self.flat = {}
        return plan

    def sealed(self) -> Shape:
        """Finish the construction."""
        self.leaf = not (self.is_object and not self.atomic_object) and not (self.is_list and not self.atomic_list)
        return self

    def copy(self) -> Shape:
        """Return a shape that can be changed before it is sealed."""
        new = Shape(self.scalar)
        for name in ("is_object", "atomic_object", "fields", "element", "present", "skip", "is_list", "atomic_list", "items", "keys", "defaults"):
            setattr(new, name, getattr(self, name))
        return new

    def of_field(self, name: str) -> Shape | None:
        """Return the shape of a field or key of an object, None where there may be no such field."""
        return self.fields.get(name) or self.element

    def of_element(self, element: str) -> Shape | None:
        """Return the shape behind a path element, None where the schema does not say."""
        return self.of_field(element[2:]) if element[0] == "f" else self.items

    def element_of(self, item: Any) -> str:
        """Return the path element of an item of a set or keyed list. Raise `FieldsError` where it has none."""
        keys = self.keys
        if not keys:
            return self._set_element(item)
        if not isinstance(item, dict):
            raise FieldsError("associative list with keys may not have " + ("a null element" if item is None else "non-map elements"))
        if len(keys) == 1:
            # The common case: one key that is present. Booleans share dictionary keys with numbers, so they go the long way.
            value = item.get(keys[0])
            found = self._texts.get(value) if type(value) is str or type(value) is int else None
            if found is not None:
                return found
        values = {key: item[key] if key in item else self.defaults[key] for key in keys if key in item or key in self.defaults}
        if not values:
            listed = " ".join(f'"{key}"' for key in keys)
            raise FieldsError(
                f"associative list with keys has an element that omits all key fields [{listed}] (and doesn't have default values for any key fields)"
            )
        text = key_element(values)
        if len(keys) == 1 and type(values[keys[0]]) in _HASHABLE and keys[0] in item:
            self._remember(values[keys[0]], text)
        return text

    def _set_element(self, item: Any) -> str:
        if type(item) is str:
            return self._texts.get(item) or self._remember(item, value_element(item))
        if isinstance(item, dict):
            raise FieldsError("associative list without keys has an element that's a map type")
        if isinstance(item, list):
            raise FieldsError("not supported: associative list with lists as elements")
        if item is None:
            raise FieldsError("associative list without keys has an element that's an explicit null")
        return value_element(item)

    def _remember(self, value: Any, text: str) -> str:
        if len(self._texts) >= _TEXTS_LIMIT:
            self._texts.clear()
        self._texts[value] = text
        return text


_HASHABLE = (str, int)


def scalar(kind: Scalar) -> Shape:
    """Return the shape of scalars of a kind."""
    return _SCALARS[kind]


_SCALARS: dict[Scalar, Shape] = {"string": Shape("string"), "numeric": Shape("numeric"), "boolean": Shape("boolean"), "untyped": Shape("untyped")}


def _any(*, atomic: bool) -> Shape:
    shape = Shape("untyped")
    shape.is_object, shape.atomic_object = True, atomic
    shape.is_list, shape.atomic_list = True, True
    return shape


UNTYPED = _any(atomic=True)
"""Any value, owned as a whole."""
UNTYPED.items = UNTYPED.element = UNTYPED
DEDUCED = _any(atomic=False)
"""Any value; objects are owned key by key, lists as a whole."""
DEDUCED.items, DEDUCED.element = UNTYPED, DEDUCED
UNTYPED.sealed()
DEDUCED.sealed()


def object_of(element: Shape, *, atomic: bool = False) -> Shape:
    """Return the shape of a map with values of one shape."""
    shape = Shape()
    shape.is_object, shape.atomic_object, shape.element = True, atomic, element
    return shape.sealed()


def list_of(items: Shape, *, kind: str = "atomic", keys: tuple[str, ...] = (), defaults: Mapping[str, Any] | None = None) -> Shape:
    """Return the shape of a list: atomic, set, or map with keys."""
    shape = Shape()
    shape.is_list, shape.items, shape.atomic_list = True, items, kind not in {"set", "map"}
    shape.keys = tuple(sorted(keys)) if kind == "map" else ()
    shape.defaults = {key: value for key, value in (defaults or {}).items() if key in shape.keys and value is not None}
    return shape.sealed()


class ApplySchema(Protocol):
    """The schemas of one kind in its versions, for field managers."""

    @property
    def stable(self) -> bool:
        """Whether the schemas never change, so that stored sets always fit them."""
        ...

    def root(self, api_version: str) -> Shape | None:
        """Return the shape of the object in a version, None for a version that is not served."""
        ...

    def convert(self, tree: Tree, api_version: str) -> Tree:
        """Return an object in another version; the same tree where it is in it already."""
        ...
