"""Swagger 2.0 documents in protobuf: the form in which kubectl and client-go fetch ``/openapi/v2``.

Field numbers are those of ``openapi.v2`` (gnostic-models, ``openapiv2/OpenAPIv2.proto``). Only what our documents hold is encoded; vendor extensions travel
as YAML texts, of which JSON is a part.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import orjson

from kubemini.api.trees import Tree

Encode = Callable[[int, Any], bytes]
Fields = Mapping[str, tuple[int, Encode]]

_VARINT, _FIXED64, _LENGTH = 0, 1, 2


def encode(document: Tree) -> bytes:
    """Return a Swagger document as an ``openapi.v2.Document``."""
    return _fields(_DOCUMENT, document)


# ------------------------------------------------------------------------------------------------ the wire


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _raw(number: int, body: bytes) -> bytes:
    return _varint(number << 3 | _LENGTH) + _varint(len(body)) + body


def _text(number: int, value: str) -> bytes:
    return _raw(number, value.encode())


def _texts(number: int, values: Sequence[str]) -> bytes:
    return b"".join(_text(number, value) for value in values)


def _flag(number: int, value: bool) -> bytes:
    return _varint(number << 3 | _VARINT) + b"\x01" if value else b""


def _integer(number: int, value: int) -> bytes:
    return _varint(number << 3 | _VARINT) + _varint(int(value)) if value else b""


def _double(number: int, value: float) -> bytes:
    return _varint(number << 3 | _FIXED64) + struct.pack("<d", value) if value else b""


def _any(number: int, value: Any) -> bytes:
    return _raw(number, _raw(2, orjson.dumps(value)))


def _anys(number: int, values: Sequence[Any]) -> bytes:
    return b"".join(_any(number, value) for value in values)


def _fields(known: Fields, tree: Tree, extensions: int = 0) -> bytes:
    """Return the fields of a message; `extensions` is the number under which it keeps what starts with ``x-``."""
    parts = []
    for name, value in tree.items():
        field = known.get(name)
        if field is not None:
            parts.append(field[1](field[0], value))
        elif extensions and name.startswith("x-"):
            parts.append(_raw(extensions, _text(1, name) + _any(2, value)))
    return b"".join(parts)


def _message(known: Callable[[], Fields], extensions: int = 0) -> Encode:
    """Return the encoder of a nested message; `known` is asked late, for messages that hold themselves."""
    return lambda number, value: _raw(number, _fields(known(), value, extensions))


def _named(entry: int, encode_value: Encode) -> Encode:
    """Return the encoder of a message that is a map: entries of name and value under `entry`."""
    return lambda number, value: _raw(number, b"".join(_raw(entry, _text(1, name) + encode_value(2, each)) for name, each in value.items()))


# ------------------------------------------------------------------------------------------------ the messages


def _schema(number: int, value: Tree) -> bytes:
    return _raw(number, _fields(_SCHEMA, value, 31))


def _type_item(number: int, value: str | list[str]) -> bytes:
    return _raw(number, _texts(1, [value] if isinstance(value, str) else value))


def _additional(number: int, value: Tree | bool) -> bytes:
    return _raw(number, _flag(2, value) if isinstance(value, bool) else _schema(1, value))


_SCHEMA: Final[Fields] = {
    "$ref": (1, _text),
    "format": (2, _text),
    "title": (3, _text),
    "description": (4, _text),
    "default": (5, _any),
    "multipleOf": (6, _double),
    "maximum": (7, _double),
    "exclusiveMaximum": (8, _flag),
    "minimum": (9, _double),
    "exclusiveMinimum": (10, _flag),
    "maxLength": (11, _integer),
    "minLength": (12, _integer),
    "pattern": (13, _text),
    "maxItems": (14, _integer),
    "minItems": (15, _integer),
    "uniqueItems": (16, _flag),
    "maxProperties": (17, _integer),
    "minProperties": (18, _integer),
    "required": (19, _texts),
    "enum": (20, _anys),
    "additionalProperties": (21, _additional),
    "type": (22, _type_item),
    "items": (23, lambda number, value: _raw(number, _schema(1, value))),
    "allOf": (24, lambda number, values: b"".join(_schema(number, value) for value in values)),
    "properties": (25, _named(1, _schema)),
    "example": (30, _any),
}

_BODY_PARAMETER: Final[Fields] = {"description": (1, _text), "name": (2, _text), "in": (3, _text), "required": (4, _flag), "schema": (5, _schema)}

_QUERY_PARAMETER: Final[Fields] = {
    "required": (1, _flag),
    "in": (2, _text),
    "description": (3, _text),
    "name": (4, _text),
    "type": (6, _text),
    "format": (7, _text),
    "uniqueItems": (20, _flag),
}

_PATH_PARAMETER: Final[Fields] = {
    "required": (1, _flag),
    "in": (2, _text),
    "description": (3, _text),
    "name": (4, _text),
    "type": (5, _text),
    "format": (6, _text),
    "uniqueItems": (19, _flag),
}


def _parameter(number: int, value: Tree) -> bytes:
    """Encode one parameter inside the messages that tell the kinds of parameters apart."""
    if "$ref" in value:
        return _raw(number, _raw(2, _text(1, value["$ref"])))
    place = value["in"]
    if place == "body":
        return _raw(number, _raw(1, _raw(1, _fields(_BODY_PARAMETER, value, 6))))
    inner = _raw(4, _fields(_PATH_PARAMETER, value, 22)) if place == "path" else _raw(3, _fields(_QUERY_PARAMETER, value, 23))
    return _raw(number, _raw(1, _raw(2, inner)))


def _parameters(number: int, values: Sequence[Tree]) -> bytes:
    return b"".join(_parameter(number, value) for value in values)


def _response(number: int, value: Tree) -> bytes:
    body = _text(1, value.get("description", ""))
    if "schema" in value:
        body += _raw(2, _schema(1, value["schema"]))
    return _raw(number, _raw(1, body))


_OPERATION: Final[Fields] = {
    "tags": (1, _texts),
    "summary": (2, _text),
    "description": (3, _text),
    "operationId": (5, _text),
    "produces": (6, _texts),
    "consumes": (7, _texts),
    "parameters": (8, _parameters),
    "responses": (9, _named(1, _response)),
    "schemes": (10, _texts),
    "deprecated": (11, _flag),
}
_operation = _message(lambda: _OPERATION, 13)

_PATH: Final[Fields] = {
    "get": (2, _operation),
    "put": (3, _operation),
    "post": (4, _operation),
    "delete": (5, _operation),
    "options": (6, _operation),
    "head": (7, _operation),
    "patch": (8, _operation),
    "parameters": (9, _parameters),
}

_API_KEY: Final[Fields] = {"type": (1, _text), "name": (2, _text), "in": (3, _text), "description": (4, _text)}


def _security_definition(number: int, value: Tree) -> bytes:
    return _raw(number, _raw(2, _fields(_API_KEY, value, 5)))


def _security(number: int, values: Sequence[Tree]) -> bytes:
    encode_one = _named(1, lambda inner, scopes: _raw(inner, _texts(1, scopes)))
    return b"".join(encode_one(number, value) for value in values)


_DOCUMENT: Final[Fields] = {
    "swagger": (1, _text),
    "info": (2, _message(lambda: {"title": (1, _text), "version": (2, _text), "description": (3, _text)}, 7)),
    "paths": (8, _named(2, _message(lambda: _PATH, 10))),
    "definitions": (9, _named(1, _schema)),
    "security": (12, _security),
    "securityDefinitions": (13, _named(1, _security_definition)),
}
