"""Decoders compiled from the types of built-in kinds: one pass over a tree that does what Go's decoder, defaulting and encoder do together.

A node turns a JSON value into its canonical form: fields that are unknown, null or zero without meaning are dropped, fields that Go always
serialises are added, texts become canonical, defaults are filled. **A value that is canonical already is returned as the very same object**,
and what was returned for the fields of a spec is remembered: pods of one template share containers and volumes, which are then recognised by
identity. Trees are never mutated; a change copies the dict it is in.

The loop of `ObjectNode.value` runs for every write: what looks repetitive or unrolled there is so for speed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from kubemini.api.schemas.defaults import ABSENT, PLAIN, PRESENT, RULES, Rule
from kubemini.api.trees import Tree
from kubemini.machinery.schema.mismatch import Mismatch, found
from kubemini.machinery.schema.scalars import READERS, ZEROS, Reader, anything, milli_quantity, named_string, named_strings, string
from kubemini.machinery.schema.types import UNSET, FieldInfo, TypeInfo, Types

_MEMO_LIMIT: Final = 2048
"""How many objects one node remembers; then it forgets all. What is remembered is kept alive, so that its identity stays its own."""
_NOTHING: Final[dict[int, Any]] = {}
_UNSTORED: Final[Mapping[str, Any]] = {}
_SHARED: Final = ("spec", "template", "conditions", "containerStatuses", "state", "lastState", "hostIPs")
_SHARING: Final = ("Spec", "ObjectMeta")
"""What is remembered: fields of these names (of a status what kubelets share between pods), and the fields of types whose name ends so. The rest changes
with every write, or lies within."""
_TEXTS: Final = frozenset({str})
"""The types in a list or map of strings that is canonical."""
_OMIT: Final = object()
"""The answer of a field that is to be left out."""
_NEVER: Final = type(_OMIT)
_GLANCED: Final[Mapping[str, type]] = {"string": str, "bool": bool, "Time": str}
_TRUE: Final = (str, bool)
"""The types all of whose values are canonical unless they are empty or False."""


class ListNode:
    """A list of objects."""

    __slots__ = ("_element", "_go_type", "known")

    def __init__(self, element: ObjectNode, go_type: str) -> None:
        self._element = element
        self._go_type = go_type
        self.known: dict[int, Any] = {}
        """Canonical lists, by identity."""

    def value(self, value: Any) -> Any:
        """Return the canonical list, the same object where nothing changed."""
        if type(value) is not list:
            if value is None:
                return []
            if not isinstance(value, list | tuple):
                raise Mismatch(found(value), self._go_type)
            value = list(value)
        read = self._element.value
        changed: list[Any] | None = None
        for index, each in enumerate(value):
            new = read(each)
            if new is not each:
                if changed is None:
                    changed = list(value)
                changed[index] = new
        return value if changed is None else changed

    def unknown_fields(self, value: Any, path: str) -> Iterator[str]:
        """Yield the paths of unknown fields."""
        if isinstance(value, list | tuple):
            for index, each in enumerate(value):
                yield from self._element.unknown_fields(each, f"{path}[{index}]")


class MapNode:
    """A map of objects."""

    __slots__ = ("_element", "_go_type", "known")

    def __init__(self, element: ObjectNode, go_type: str) -> None:
        self._element = element
        self._go_type = go_type
        self.known: dict[int, Any] = {}

    def value(self, value: Any) -> Any:
        """Return the canonical map, the same object where nothing changed."""
        return _mapped(value, self._element.value, self._go_type)

    def unknown_fields(self, value: Any, path: str) -> Iterator[str]:
        """Yield the paths of unknown fields."""
        if isinstance(value, dict):
            for key, each in value.items():
                yield from self._element.unknown_fields(each, f"{path}.{key}")


class ObjectNode:
    """An object with declared fields, as it decodes at one place (`via`, see `kubemini.api.schemas.defaults`)."""

    __slots__ = ("_compiler", "_fill", "_info", "_required", "_rules", "_steps", "_via", "known")

    def __init__(self, compiler: Compiler, info: TypeInfo, via: str) -> None:
        self._compiler = compiler
        self._info = info
        self._via = via
        self.known: dict[int, Any] = {}
        """Canonical objects, by identity."""
        self._steps: dict[str, Step] | None = None
        self._required: frozenset[str] = frozenset()
        self._fill: Mapping[str, Any] = {}
        self._rules: tuple[Rule, ...] = ()

    def value(self, value: Any, stored: Mapping[str, Any] = _UNSTORED) -> Any:
        """Return the canonical object, the same one where nothing changed. Fields that are the very same in `stored`, or below, are canonical already."""
        steps = self._steps
        if steps is None:
            steps = self._compile()
        if type(value) is not dict:
            if value is None:
                value = {}
            elif isinstance(value, dict):
                value = dict(value)
            else:
                raise Mismatch(found(value), _go_name(self._info))
        changes: dict[str, Any] | None = None
        key = ""
        items: Iterable[tuple[str, Any]] = value.items()
        if stored is not _UNSTORED:
            # Most of a patched object is what it was
            items = [item for item in items if stored.get(item[0], _OMIT) is not item[1]]
        try:
            for key, each in items:
                step = steps.get(key)
                if step is None:
                    self._compiler.unknown.append(key)
                    new = _OMIT
                else:
                    kind, known, read, child = step
                    if type(each) is kind:
                        if known is None:
                            if each:
                                continue
                        elif known.get(id(each)) is each:
                            continue
                    before = stored.get(key, _OMIT)
                    new = child.value(each, before) if type(before) is dict and type(each) is dict and type(child) is ObjectNode else read(each)
                    if known is not None and known is not _NOTHING and new is not _OMIT:
                        if len(known) >= _MEMO_LIMIT:
                            known.clear()
                        known[id(new)] = new
                    if new is each:
                        continue
                if changes is None:
                    changes = {}
                changes[key] = new
        except Mismatch as mismatch:
            inlined = self._info.fields[key].go_inlined
            mismatch.within(self._info.go_name, f"{inlined}.{key}" if inlined else key)
            raise
        out = value
        if changes is not None:
            out = dict(value)
            for key, new in changes.items():
                if new is _OMIT:
                    del out[key]
                else:
                    out[key] = new
        if self._rules:
            out = self._ruled(out)
        if not out.keys() >= self._required:
            fill = self._fill
            if out is value:
                out = dict(out)
            for key in fill:
                if key not in out:
                    out[key] = fill[key]
        return out

    def _ruled(self, tree: Tree) -> Tree:
        """Return the object with the defaults that follow from its other fields."""
        for rule in self._rules:
            if all(name in tree for name in rule.fields):
                continue
            if rule.alone and any(name not in rule.alone for name in tree):
                continue
            if all(_holds(tree, name, wanted) for name, wanted in rule.when.items()):
                tree = {**tree, **{name: self._constant(name, default) for name, default in rule.fields.items() if name not in tree}}
        return tree

    def _constant(self, name: str, default: Any) -> Any:
        """Return a default in its canonical form."""
        assert self._steps is not None
        return self._steps[name][2](default)

    def unknown_fields(self, value: Any, path: str = "") -> Iterator[str]:
        """Yield the paths of unknown fields, in the order of the body."""
        steps = self._steps if self._steps is not None else self._compile()
        if isinstance(value, dict):
            for key, each in value.items():
                here = f"{path}.{key}" if path else str(key)
                step = steps.get(key)
                if step is None:
                    yield here
                elif step[3] is not None:
                    yield from step[3].unknown_fields(each, here)

    def _compile(self) -> dict[str, Step]:
        steps: dict[str, Step] = {}
        self._steps = steps
        shares = self._info.name.endswith(_SHARING)
        defaulting = self._compiler.defaulting
        plain = PLAIN.get(self._via, {}) if self._via and defaulting else {}
        fill: dict[str, Any] = {}
        for name, field in self._info.fields.items():
            default = plain.get(name, field.default) if defaulting else UNSET
            child, read = self._compiler.reader(self._info.name, field)
            exact = _exact(field, child)
            known: dict[int, Any] | None = _NOTHING
            if child is not None:
                known = child.known if shares or name in _SHARED else _NOTHING
            elif exact in _TRUE:
                known = {} if field.type == "Time" else None
            steps[name] = (
                exact,
                known,
                _of_field(field, read, defaulted=default is not UNSET),
                child,
            )
            if default is not UNSET:
                fill[name] = read(default)
            elif field.req:
                fill[name] = _zero(field, read)
        self._fill = fill
        self._required = frozenset(fill)
        self._rules = (*RULES.get(self._info.name, ()), *RULES.get(self._via, ())) if defaulting else ()
        return steps


Child = ListNode | MapNode | ObjectNode
Step = tuple[type, dict[int, Any] | None, Reader, Child | None]
"""How a field is read: the type of values that a glance may do for, those known by identity (None: any value that is true is canonical), the reader of
the others, and their node."""


class Compiler:
    """The nodes of one set of types, each made once. Without `defaulting` they are canonical in Go's sense only, as clients write objects."""

    def __init__(self, types: Types, *, defaulting: bool = True) -> None:
        self._types = types
        self.defaulting = defaulting
        self._objects: dict[tuple[str, str], ObjectNode] = {}
        self._lists: dict[tuple[str, str, str], ListNode] = {}
        self._maps: dict[tuple[str, str, str], MapNode] = {}
        self.unknown: list[str] = []
        """Names of unknown fields met since it was cleared; their paths are only worked out when someone wants to know."""

    def object(self, name: str, via: str = "") -> ObjectNode:
        """Return the node of a type; `via` is the field it stands in where that has defaults of its own."""
        node = self._objects.get((name, via))
        if node is None:
            node = self._objects[name, via] = ObjectNode(self, self._types.type(name), via)
        return node

    def reader(self, owner: str, field: FieldInfo) -> tuple[Child | None, Reader]:
        """Return the node of a field (None for scalars), and the function that reads a value of it; null reads as zero."""
        place = f"{owner}.{field.name}"
        via = place if place in PLAIN or place in RULES else ""
        if field.type.startswith("JSONSchemaPropsOr"):
            read = self._schema_or(field.type)
        elif field.is_leaf:
            read = _leaf(owner, field)
        else:
            return self._node(field, via)
        if field.cardinality == "list":
            return None, _listing(read, field.go_type)
        if field.cardinality == "map":
            return None, _mapping(read, field.go_type)
        return None, read

    def _node(self, field: FieldInfo, via: str) -> tuple[Child, Reader]:
        element = self.object(field.type, via)
        key = (field.type, via, field.go_type)
        if field.cardinality == "one":
            return element, element.value
        if field.cardinality == "list":
            listed = self._lists.get(key)
            if listed is None:
                listed = self._lists[key] = ListNode(element, field.go_type)
            return listed, listed.value
        mapped = self._maps.get(key)
        if mapped is None:
            mapped = self._maps[key] = MapNode(element, field.go_type)
        return mapped, mapped.value

    def _schema_or(self, kind: str) -> Reader:
        """Return the reader of a JSON schema that may also be a boolean, a list of schemas or a list of strings."""
        schema = self.object("apiextensions/v1.JSONSchemaProps")

        def read(value: Any) -> Any:
            if isinstance(value, dict):
                return schema.value(value)
            if kind == "JSONSchemaPropsOrArray" and isinstance(value, list):
                return _listed(value, schema.value, kind)
            if kind == "JSONSchemaPropsOrStringArray" and isinstance(value, list):
                return _listed(value, string, kind)
            if kind == "JSONSchemaPropsOrBool":
                if isinstance(value, bool) or value is None:
                    return value
                raise Mismatch.plain("boolean or JSON schema expected")
            return None

        return read


# ----------------------------------------------------------------------------------------------- parts


def _leaf(owner: str, field: FieldInfo) -> Reader:
    """Return the reader of one element without declared fields."""
    if field.go_whole == "v1.ResourceList" and owner.startswith("core/"):
        return milli_quantity
    if field.go_name and field.type in {"string", "strings"}:
        return (named_string if field.type == "string" else named_strings)(field.go_name)
    return READERS[field.type]


def _exact(field: FieldInfo, child: Child | None) -> type:
    """Return the Python type whose values may be known to be canonical by a glance: non-empty strings, remembered lists and dicts."""
    if child is not None:
        return list if isinstance(child, ListNode) else dict
    return _GLANCED.get(field.type, _NEVER) if field.cardinality == "one" else _NEVER


def _of_field(field: FieldInfo, read: Reader, *, defaulted: bool) -> Reader:
    """Return the reader of a value in its field: what Go would not serialise is left out."""
    if field.cardinality != "one":
        # An empty list or map is nil once it was stored.
        absent = None if field.req and not defaulted else _OMIT
        return lambda value: read(value) or absent
    if field.pointer or field.type in {"JSON", "FieldsV1"}:
        if field.req and not defaulted:
            return lambda value: None if value is None else read(value)
        return lambda value: _OMIT if value is None else read(value)
    if field.req and not defaulted:
        return read
    if field.is_leaf:
        zero = ZEROS.get(field.type)
        if field.type == "IntOrString":
            return lambda value: _OMIT if value is None else read(value)

        def kept(value: Any) -> Any:
            new = read(value)
            return _OMIT if new is None or new == zero else new

        return kept
    return read


def _zero(field: FieldInfo, read: Reader) -> Any:
    """Return what Go serialises for an unset field."""
    return None if field.cardinality != "one" or field.pointer or field.type.startswith("JSON") else read(None)


def _listing(read: Reader, go_type: str) -> Reader:
    if read is anything:
        return lambda value: _listed(value, read, go_type) if not isinstance(value, list) else value
    if read is string:
        return lambda value: value if type(value) is list and _TEXTS.issuperset(map(type, value)) else _listed(value, read, go_type)
    return lambda value: _listed(value, read, go_type)


def _listed(value: Any, read: Callable[[Any], Any], go_type: str) -> Any:
    if type(value) is not list:
        if value is None:
            return []
        if not isinstance(value, list | tuple):
            raise Mismatch(found(value), go_type)
        value = list(value)
    changed: list[Any] | None = None
    for index, each in enumerate(value):
        new = read(each)
        if new is not each:
            if changed is None:
                changed = list(value)
            changed[index] = new
    return value if changed is None else changed


def _mapping(read: Reader, go_type: str) -> Reader:
    if read is string:
        return lambda value: value if type(value) is dict and _TEXTS.issuperset(map(type, value.values())) else _mapped(value, read, go_type)
    return lambda value: _mapped(value, read, go_type)


def _mapped(value: Any, read: Callable[[Any], Any], go_type: str) -> Any:
    if type(value) is not dict:
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise Mismatch(found(value), go_type)
        value = dict(value)
    changed: dict[str, Any] | None = None
    for key, each in value.items():
        new = read(each)
        if new is not each:
            if changed is None:
                changed = dict(value)
            changed[key] = new
    return value if changed is None else changed


def _holds(tree: Tree, name: str, wanted: Any) -> bool:
    if wanted == PRESENT:
        return name in tree
    if wanted == ABSENT:
        return name not in tree
    return bool(tree.get(name) == wanted)


def _go_name(info: TypeInfo) -> str:
    return info.name.rpartition("/")[2]
