"""Schemas as CEL sees them: types of fields, bounds of sizes, how raw JSON becomes a value, and how lists compare.

Mirrors apiserver's ``pkg/cel/common`` SchemaDeclType and UnstructuredToVal. Trees stay raw JSON; only what has another form in CEL is
converted, when it is read: date-times, durations, base64 and whole numbers of ``type: number``.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable
from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery.cel import times
from kubemini.machinery.cel.errors import CelEvaluationError
from kubemini.machinery.cel.lexing import RESERVED
from kubemini.machinery.cel.types import BOOL, BYTES, DOUBLE, DURATION, DYN, INT, STRING, TIMESTAMP, Convert, Declared, Field, Type, list_of, map_of

MAX_REQUEST = 3 * 1024 * 1024
"""The largest request in bytes, from which upstream bounds what a schema leaves open."""

Resolve = Callable[[Tree], Tree]

_STRING_SCHEMA: Tree = {"type": "string"}
_META_SCHEMA: Tree = {"type": "object", "properties": {"name": _STRING_SCHEMA, "generateName": _STRING_SCHEMA}}


def declared(schema: Tree, *, root: bool = False, name: str = "selfType", resolve: Resolve | None = None) -> Declared | None:
    """Return what CEL sees of a structural schema; None where it sees nothing (no type, or preserved unknown fields).

    `root` adds apiVersion, kind, metadata.name and metadata.generateName; `name` is what error texts call an object type; `resolve`
    follows ``$ref``, and ``allOf`` where that is how a reference is written.
    """
    if resolve is not None and ("$ref" in schema or "allOf" in schema):
        schema = resolve(schema)
    if schema.get("x-kubernetes-int-or-string"):
        length = schema.get("maxLength")
        return Declared(DYN, min_size=1, max_elements=4 * max(0, length) if length is not None else MAX_REQUEST - 2)
    kind = schema.get("type")
    if kind == "array":
        return _array(schema, name, resolve)
    if kind == "object":
        return _object(with_type_meta(schema) if root else schema, name, resolve)
    if kind == "string":
        return _string(schema)
    return {"boolean": _BOOLEAN, "integer": _INTEGER, "number": _NUMBER}.get(kind or "")


def _child(schema: Tree, name: str, resolve: Resolve | None) -> Declared | None:
    return declared(schema, root=bool(schema.get("x-kubernetes-embedded-resource")), name=name, resolve=resolve)


def _array(schema: Tree, name: str, resolve: Resolve | None) -> Declared | None:
    items = schema.get("items")
    element = _child(items, f"{name}.@idx", resolve) if isinstance(items, dict) else None
    if element is None:
        return None
    limit = schema.get("maxItems")
    most = max(0, limit) if limit is not None else (MAX_REQUEST - 2) // (element.min_size + 1)
    return Declared(
        list_of(element.type),
        min_size=2,
        max_elements=most,
        element=element,
        convert=_each(element.convert),
        list_type=schema.get("x-kubernetes-list-type", ""),
        keys=tuple(schema.get("x-kubernetes-list-map-keys") or ()),
    )


def _object(schema: Tree, name: str, resolve: Resolve | None) -> Declared | None:
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        element = _child(additional, f"{name}.@elem", resolve)
        if element is None:
            return None
        limit = schema.get("maxProperties")
        most = max(0, limit) if limit is not None else (MAX_REQUEST - 2) // (element.min_size + 6)
        return Declared(map_of(STRING, element.type), min_size=2, max_elements=most, key=_KEY, element=element, convert=_each_value(element.convert))
    fields: dict[str, Field] = {}
    required = schema.get("required") or ()
    size = 2
    for key, child in (schema.get("properties") or {}).items():
        value = _child(child, f"{name}.{key}", resolve)
        if value is None:
            continue
        escaped = escape(key)
        if escaped is not None:
            fields[escaped] = Field(key, value)
        if key in required and child.get("default") is None:
            size += len(key.encode()) + value.min_size + 4
    return Declared(Type("object", name), min_size=size, fields=fields)


def with_type_meta(schema: Tree) -> Tree:
    """Return the schema of a whole resource with apiVersion, kind and metadata as rules see them."""
    properties = schema.get("properties") or {}
    return {**schema, "properties": {**properties, "kind": _STRING_SCHEMA, "apiVersion": _STRING_SCHEMA, "metadata": _META_SCHEMA}}


def _string(schema: Tree) -> Declared:
    form = schema.get("format", "")
    length = schema.get("maxLength")
    if form == "byte":
        return Declared(BYTES, min_size=2, max_elements=max(0, length) if length is not None else MAX_REQUEST - 2, convert=_bytes)
    if form == "duration":
        return Declared(DURATION, min_size=3, max_elements=32, convert=times.schema_duration)
    if form == "date":
        return Declared(TIMESTAMP, min_size=12, max_elements=12, convert=times.date)
    if form == "date-time":
        return Declared(TIMESTAMP, min_size=21, max_elements=32, convert=times.date_time)
    if length is not None:
        most = 4 * max(0, length)
    elif schema.get("enum"):
        most = max((len(each.encode()) for each in schema["enum"] if isinstance(each, str)), default=0)
    else:
        most = MAX_REQUEST - 2
    return Declared(STRING, min_size=2, max_elements=most)


def _bytes(raw: Any) -> bytes:
    try:
        return b64decode(raw, validate=True)
    except (Base64Error, TypeError, ValueError) as error:
        raise CelEvaluationError(f"Invalid byte formatted string {raw}: {error}") from None


def _double(raw: Any) -> float:
    if type(raw) not in {int, float}:
        raise CelEvaluationError(f"invalid data, expected float, got {type(raw).__name__}")
    return float(raw)


def _each(convert: Convert | None) -> Convert | None:
    return None if convert is None else lambda raw: [None if each is None else convert(each) for each in raw]


def _each_value(convert: Convert | None) -> Convert | None:
    return None if convert is None else lambda raw: {key: None if each is None else convert(each) for key, each in raw.items()}


_KEY = Declared(STRING, min_size=2)
_BOOLEAN = Declared(BOOL, min_size=4)
_INTEGER = Declared(INT, min_size=1)
_NUMBER = Declared(DOUBLE, min_size=1, convert=_double)

# ----------------------------------------------------------------------------------------------- names

_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_escapable = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*").fullmatch
_escaped = re.compile(r"__|[.\-/]")


def escape(key: str) -> str | None:
    """Return the CEL name of a property, or None where it cannot be named.

    >>> escape("namespace"), escape("a-b"), escape("my__x"), escape("$ref")
    ('__namespace__', 'a__dash__b', 'my__underscores__x', None)
    """
    if key in RESERVED:
        return f"__{key}__"
    if not _escapable(key):
        return None
    return _escaped.sub(lambda match: _ESCAPES[match.group()], key)
