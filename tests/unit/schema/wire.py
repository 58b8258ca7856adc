"""An encoder of protobuf bodies, written for the tests alone: JSON trees of built-in kinds to the bytes that a typed client sends."""

from __future__ import annotations

from base64 import b64decode
from datetime import UTC, datetime, timedelta
from struct import pack
from typing import Any, NamedTuple

import orjson

from kubemini.api.trees import Tree
from kubemini.machinery.schema.types import FieldInfo, TypeInfo, Types


def varint(number: int) -> bytes:
    """Return a number as a varint; negative ones as 64 bits of two's complement."""
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def number_field(number: int, value: int) -> bytes:
    """Return a varint field."""
    return varint(number << 3) + varint(value)


def bytes_field(number: int, value: bytes | str) -> bytes:
    """Return a field of bytes, a string or a message."""
    raw = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def envelope(api_version: str, kind: str, raw: bytes, content_type: str = "") -> bytes:
    """Return a body: the magic bytes, the type and the raw object."""
    typed = bytes_field(1, api_version) + bytes_field(2, kind)
    return b"k8s\x00" + bytes_field(1, typed) + bytes_field(2, raw) + bytes_field(3, "") + bytes_field(4, content_type)


def body(tree: Tree, types: Types) -> bytes:
    """Return the body of an object as a Go client encodes it."""
    group, _, version = tree["apiVersion"].rpartition("/")
    info = types.type_of(group, version, tree["kind"])
    assert info is not None
    return envelope(tree["apiVersion"], tree["kind"], message(tree, info, types))


def message(tree: Tree, info: TypeInfo, types: Types) -> bytes:
    """Return an object as a message. Fields that Go inlines go into messages of their own."""
    given = [field for field in info.fields.values() if field.numbers and field.name in tree]
    return _grouped([Entry(field.numbers, _values(field, tree[field.name], types)) for field in given])


class Entry(NamedTuple):
    """The values of one field, each with its wire type, and the numbers on the way to it."""

    numbers: tuple[int, ...]
    values: list[tuple[int, Any]]


def _grouped(entries: list[Entry]) -> bytes:
    out = b""
    inlined: dict[int, list[Entry]] = {}
    for entry in entries:
        number = entry.numbers[0]
        if len(entry.numbers) > 1:
            inlined.setdefault(number, []).append(Entry(entry.numbers[1:], entry.values))
        else:
            out += b"".join(_field(number, wire, value) for wire, value in entry.values)
    return out + b"".join(bytes_field(number, _grouped(each)) for number, each in inlined.items())


def _field(number: int, wire: int, value: Any) -> bytes:
    if wire == 0:
        return number_field(number, value)
    return bytes_field(number, value) if wire == 2 else varint(number << 3 | 1) + value


def _values(field: FieldInfo, value: Any, types: Types) -> list[tuple[int, Any]]:
    if value is None:
        return []
    if field.cardinality == "one":
        return [_one(field.type, value, types)]
    if field.cardinality == "list":
        return [_one(field.type, each, types) for each in value]
    return [(2, bytes_field(1, key) + _field(2, *_one(field.type, each, types))) for key, each in value.items()]


def _one(kind: str, value: Any, types: Types) -> tuple[int, Any]:
    """Return the wire type and value of one element."""
    match kind:
        case "string":
            return 2, value
        case "bool" | "int32" | "int64":
            return 0, int(value)
        case "double":
            return 1, pack("<d", value)
        case "bytes":
            return 2, b64decode(value)
        case "Quantity":
            return 2, bytes_field(1, value)
        case "Time" | "MicroTime":
            return 2, _timestamp(value)
        case "IntOrString":
            text = isinstance(value, str)
            return 2, number_field(1, int(text)) + number_field(2, 0 if text else value) + bytes_field(3, value if text else "")
        case "RawExtension" | "FieldsV1" | "JSON":
            return 2, bytes_field(1, orjson.dumps(value))
        case "strings":
            return 2, b"".join(bytes_field(1, each) for each in value)
        case "JSONSchemaPropsOrBool":
            return 2, number_field(1, int(value)) if isinstance(value, bool) else number_field(1, 1) + bytes_field(2, _schema(value, types))
        case "JSONSchemaPropsOrArray":
            many = isinstance(value, list)
            return 2, b"".join(bytes_field(2, _schema(each, types)) for each in value) if many else bytes_field(1, _schema(value, types))
        case "JSONSchemaPropsOrStringArray":
            many = isinstance(value, list)
            return 2, b"".join(bytes_field(2, each) for each in value) if many else bytes_field(1, _schema(value, types))
        case _:
            return 2, message(value, types.type(kind), types)


def _schema(value: Tree, types: Types) -> bytes:
    return message(value, types.type("apiextensions/v1.JSONSchemaProps"), types)


def _timestamp(value: str | None) -> bytes:
    if value is None:
        return b""
    moment = datetime.fromisoformat(value)
    return number_field(1, (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)) + number_field(2, moment.microsecond * 1000)
