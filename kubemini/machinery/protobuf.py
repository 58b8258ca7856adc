"""Request bodies in Kubernetes' protobuf form (``application/vnd.kubernetes.protobuf``), decoded to JSON trees.

``kubectl create``, helm and typed clients send them and do not fall back to JSON. A body is an envelope (four bytes, then type and raw
object); the object is read with the field numbers of the built-in types. What comes out is as JSON would have said it: inlined structs
flat, bytes in base64, times as text, values that JSON would omit left out. Decode it with the kind's codec like any other body.

Wire types are taken from the body, not from a schema. Mirrors apimachinery's ``runtime/serializer/protobuf`` and the hand-written
messages of ``Quantity``, ``Time``, ``IntOrString`` and JSON schemas (1.36).
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from struct import unpack_from
from typing import Any, Final
from weakref import WeakKeyDictionary

import orjson

from kubemini.api.trees import Tree
from kubemini.machinery.errors import BadRequest, UnsupportedMediaType
from kubemini.machinery.schema.types import FieldInfo, TypeInfo, Types

MAGIC: Final = b"k8s\x00"
"""The first bytes of every body."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_META_KINDS: Final = frozenset(
    {"CreateOptions", "DeleteOptions", "GetOptions", "ListOptions", "PatchOptions", "Status", "UpdateOptions", "WatchEvent"}
)
"""Kinds that every group has and that are all the same type."""

_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 — everything here is UTC

Value = int | bytes
"""What stands on the wire: an integer (varints and fixed numbers), or the bytes of a string, message or packed list."""
Decoder = Callable[[Value], Any]


def decode(body: bytes, schemas: Types) -> Tree:
    """Return the object of a body, with apiVersion and kind. An empty body is an empty object.

    Raise `BadRequest` for a body that is no protobuf or of no known kind, `UnsupportedMediaType` for a kind whose numbers are not known.
    """
    if not body:
        return {}
    if not body.startswith(MAGIC):
        raise BadRequest("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    messages = _MESSAGES.get(schemas)
    if messages is None:
        messages = _MESSAGES[schemas] = _Messages(schemas)
    try:
        return messages.unwrap(body[len(MAGIC) :])
    except (IndexError, RecursionError):
        raise BadRequest("unexpected EOF") from None
    except UnicodeDecodeError:
        raise BadRequest("proto: field contains invalid UTF-8") from None


class _Messages:
    """The message decoders of one set of types, each made on first use."""

    def __init__(self, types: Types) -> None:
        self._types = types
        self._plans: dict[str, _Plan] = {}

    def unwrap(self, envelope: bytes) -> Tree:
        """Return the object in an envelope: ``Unknown{1: TypeMeta{1: apiVersion, 2: kind}, 2: raw, 3: contentEncoding, 4: contentType}``."""
        outer = _fields(envelope)
        typed = _fields(_last(outer, 1))
        api_version, kind, raw = _last(typed, 1).decode(), _last(typed, 2).decode(), _last(outer, 2)
        if _last(outer, 4) == b"application/json":
            tree: Tree = orjson.loads(raw)
            return tree
        group, _, version = api_version.rpartition("/")
        info = self._types.type_of(group, version, kind)
        if info is None and kind in _META_KINDS:
            info = self._types.type(f"meta/v1.{kind}")
        if info is None:
            raise BadRequest(f'no kind "{kind}" is registered for version "{api_version}" in the scheme')
        plan = self.plan(info.name)
        if not plan.fields and info.fields:
            raise UnsupportedMediaType(
                "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml"
            )
        out: Tree = {"apiVersion": api_version, "kind": kind}
        plan.read(raw, out)
        return out

    def plan(self, name: str) -> _Plan:
        """Return how messages of a type are read."""
        plan = self._plans.get(name)
        if plan is None:
            plan = self._plans[name] = _Plan()
            plan.fill(self._types.type(name), self)
        return plan

    def element(self, field: FieldInfo) -> Decoder:
        """Return how one element of a field is read."""
        simple = _ELEMENTS.get(field.type)
        if simple is not None:
            return simple
        if field.type == "RawExtension":
            return self._raw
        if field.type.startswith("JSONSchemaPropsOr"):
            return self._schema_or(field.type)
        return self._message(field.type)

    def _message(self, name: str) -> Decoder:
        def read(value: Value) -> Tree:
            out: Tree = {}
            self.plan(name).read(_octets(value), out)
            return out

        return read

    def _raw(self, value: Value) -> Any:
        raw = _last(_fields(_octets(value)), 1)
        if raw.startswith(MAGIC):
            return self.unwrap(raw[len(MAGIC) :])
        return _json(raw)

    def _schema_or(self, kind: str) -> Decoder:
        """Return how a JSON schema is read that may also be a boolean (1), a list of schemas (2) or a list of strings (2)."""
        schema = self._message("apiextensions/v1.JSONSchemaProps")

        def read(value: Value) -> Any:
            fields = _fields(_octets(value))
            if kind == "JSONSchemaPropsOrBool":
                return schema(fields[2][-1]) if 2 in fields else bool(fields.get(1, [0])[-1])
            if 1 in fields:
                return schema(fields[1][-1])
            each = _text if kind == "JSONSchemaPropsOrStringArray" else schema
            return [each(one) for one in fields.get(2, ())]

        return read


class _Plan:
    """How the fields of one message are read, by number; a nested plan reads an inlined struct into the same object."""

    __slots__ = ("fields",)

    def __init__(self) -> None:
        self.fields: dict[int, Callable[[Value, Tree], None] | _Plan] = {}

    def fill(self, info: TypeInfo, messages: _Messages) -> None:
        """Take the fields of a type."""
        for field in info.fields.values():
            if not field.numbers:
                continue
            plan = self
            for number in field.numbers[:-1]:
                inner = plan.fields.setdefault(number, _Plan())
                assert isinstance(inner, _Plan)
                plan = inner
            plan.fields[field.numbers[-1]] = _setter(field, messages.element(field))

    def read(self, data: bytes, out: Tree) -> None:
        """Read a message into an object. Unknown fields are skipped."""
        fields = self.fields
        at, end = 0, len(data)
        while at < end:
            tag, at = _varint(data, at)
            value, at = _value(data, at, tag & 7)
            step = fields.get(tag >> 3)
            if step is None:
                continue
            if isinstance(step, _Plan):
                step.read(_octets(value), out)
            else:
                step(value, out)


def _setter(field: FieldInfo, read: Decoder) -> Callable[[Value, Tree], None]:
    """Return what puts a value of a field into an object, as JSON would have it."""
    name = field.name
    if field.go_whole == "v1.Verbs":
        read = _strings
    elif field.cardinality == "list":
        return _list_setter(field, read)
    elif field.cardinality == "map":
        return _map_setter(field, read)
    kept = field.pointer or field.req
    message = not field.is_leaf

    def put(value: Value, out: Tree) -> None:
        new = read(value)
        if message and name in out:
            # A message that comes in two parts is merged, as protobuf wants it.
            out[name] |= new
        elif new or kept or message:
            out[name] = new

    return put


def _list_setter(field: FieldInfo, read: Decoder) -> Callable[[Value, Tree], None]:
    name, packed = field.name, field.type in {"int32", "int64", "bool", "double"}

    def put(value: Value, out: Tree) -> None:
        items = out.setdefault(name, [])
        if packed and isinstance(value, bytes):
            items += [read(each) for each in _unpacked(value, field.type)]
        else:
            items.append(read(value))

    return put


def _map_setter(field: FieldInfo, read: Decoder) -> Callable[[Value, Tree], None]:
    name = field.name
    absent: Value = 0 if field.type in {"int32", "int64", "bool", "double"} else b""

    def put(value: Value, out: Tree) -> None:
        entry = _fields(_octets(value))
        values = entry.get(2)
        out.setdefault(name, {})[_last(entry, 1).decode()] = read(values[-1] if values else absent)

    return put


# ----------------------------------------------------------------------------------------------- elements


def _text(value: Value) -> str:
    return _octets(value).decode()


def _bool(value: Value) -> bool:
    return bool(_number(value))


def _integer(value: Value) -> int:
    """Return a signed integer: varints are two's complement of 64 bits, whatever the width of the field."""
    number = _number(value) & 0xFFFF_FFFF_FFFF_FFFF
    return number - (1 << 64) if number >> 63 else number


def _double(value: Value) -> float | int:
    found: float = unpack_from("<d", _number(value).to_bytes(8, "little"))[0]
    return int(found) if found.is_integer() else found


def _base64(value: Value) -> str:
    return b64encode(_octets(value)).decode()


def _quantity(value: Value) -> str:
    return _last(_fields(_octets(value)), 1).decode() or "0"


def _time(value: Value) -> str | None:
    moment = _moment(value)
    return None if moment is None else f"{moment.isoformat(timespec='seconds')}Z"


def _micro_time(value: Value) -> str | None:
    moment = _moment(value)
    return None if moment is None else f"{moment.isoformat(timespec='microseconds')}Z"


def _moment(value: Value) -> datetime | None:
    """Return the time of seconds and nanoseconds since 1970, in UTC; an empty message is no time."""
    data = _octets(value)
    if not data:
        return None
    fields = _fields(data)
    seconds, nanos = _integer(fields.get(1, [0])[-1]), _integer(fields.get(2, [0])[-1])
    try:
        return _EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)
    except OverflowError:
        raise BadRequest("Time.MarshalJSON: year outside of range [0,9999]") from None


def _int_or_string(value: Value) -> int | str:
    fields = _fields(_octets(value))
    return _last(fields, 3).decode() if fields.get(1, [0])[-1] else _integer(fields.get(2, [0])[-1])


def _strings(value: Value) -> list[str]:
    return [_text(each) for each in _fields(_octets(value)).get(1, ())]


def _json_message(value: Value) -> Any:
    return _json(_last(_fields(_octets(value)), 1))


def _json(raw: bytes) -> Any:
    if not raw:
        return None
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as problem:
        raise BadRequest(f"json: error calling MarshalJSON: {problem}") from None


_ELEMENTS: Final[Mapping[str, Decoder]] = {
    "string": _text,
    "bool": _bool,
    "int32": _integer,
    "int64": _integer,
    "double": _double,
    "bytes": _base64,
    "Quantity": _quantity,
    "Time": _time,
    "MicroTime": _micro_time,
    "IntOrString": _int_or_string,
    "FieldsV1": _json_message,
    "JSON": _json_message,
    "strings": _strings,
}


# ----------------------------------------------------------------------------------------------- the wire


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a varint and the position behind it. Raise IndexError at the end of the data."""
    byte = data[at]
    if byte < 0x80:
        return byte, at + 1
    number, shift = byte & 0x7F, 7
    while True:
        at += 1
        byte = data[at]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at + 1
        shift += 7
        if shift > 63:
            raise BadRequest("proto: integer overflow")


def _value(data: bytes, at: int, wire: int) -> tuple[Value, int]:
    """Return the value at a position, and the position behind it. Raise IndexError at the end of the data."""
    if wire == _VARINT:
        return _varint(data, at)
    if wire == _BYTES:
        length, at = _varint(data, at)
        end = at + length
    elif wire in {_FIXED64, _FIXED32}:
        end = at + (8 if wire == _FIXED64 else 4)
    else:
        raise BadRequest(f"proto: illegal wireType {wire}")
    if end > len(data):
        raise IndexError(end)
    return (data[at:end] if wire == _BYTES else int.from_bytes(data[at:end], "little")), end


def _fields(data: bytes) -> dict[int, list[Value]]:
    """Return all values of a message by number."""
    found: dict[int, list[Value]] = {}
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        value, at = _value(data, at, tag & 7)
        found.setdefault(tag >> 3, []).append(value)
    return found


def _unpacked(data: bytes, kind: str) -> list[Value]:
    """Return the elements of a packed list of numbers."""
    if kind == "double":
        return [int.from_bytes(data[at : at + 8], "little") for at in range(0, len(data), 8)]
    found: list[Value] = []
    at = 0
    while at < len(data):
        value, at = _varint(data, at)
        found.append(value)
    return found


def _last(fields: Mapping[int, list[Value]], number: int) -> bytes:
    values = fields.get(number)
    return _octets(values[-1]) if values else b""


def _octets(value: Value) -> bytes:
    if isinstance(value, int):
        raise BadRequest("proto: wrong wireType = 0 for a field of bytes")
    return value


def _number(value: Value) -> int:
    if isinstance(value, bytes):
        raise BadRequest("proto: wrong wireType = 2 for a number")
    return value


_MESSAGES: WeakKeyDictionary[Types, _Messages] = WeakKeyDictionary()
