"""Path elements of FieldsV1: making, reading, ordering and printing them, and reading whole trees that a client sent.

``f:NAME`` is a field or map key, ``k:{"key":value}`` the element of a keyed list, ``v:VALUE`` that of a set, ``i:N`` an
index. Mirrors structured-merge-diff's ``fieldpath`` (v6).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from kubemini.machinery.apply.sets import LEAF, MEMBER, Fields, interned
from kubemini.machinery.gotext import number, quoted


class FieldsError(ValueError):
    """A FieldsV1 tree or a list that sets of fields are made of is malformed."""


def value_element(value: Any) -> str:
    """Return the path element of a value in a set.

    >>> value_element("example.com/f")
    'v:"example.com/f"'
    """
    return f"v:{_json(value)}"


def key_element(keys: Mapping[str, Any]) -> str:
    """Return the path element of a keyed list's element.

    >>> key_element({"protocol": "TCP", "containerPort": 80})
    'k:{"containerPort":80,"protocol":"TCP"}'
    """
    return f"k:{_json({key: keys[key] for key in sorted(keys)})}"


def _json(value: Any) -> str:
    text = orjson.dumps(value).decode()
    for raw, escaped in _HTML:
        if raw in text:
            text = text.replace(raw, escaped)
    return text


_HTML = (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029"))


def shown(element: str) -> str:
    """Return a path element as conflicts print it.

    >>> shown("f:data"), shown('k:{"name":"c"}'), shown('v:"x"'), shown("i:0")
    ('.data', '[name="c"]', '[="x"]', '[0]')
    """
    kind, rest = element[0], element[2:]
    if kind == "f":
        return f".{rest}"
    if kind == "k":
        return f"[{','.join(f'{key}={_shown_value(value)}' for key, value in orjson.loads(rest).items())}]"
    return f"[={_shown_value(orjson.loads(rest))}]" if kind == "v" else f"[{rest}]"


def _shown_value(value: Any) -> str:
    if isinstance(value, str):
        return quoted(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return number(value) if isinstance(value, float) else str(value)


def paths(fields: Fields, prefix: str = "") -> Iterator[str]:
    """Yield the members of a set as texts: those of a node before what stands below its children, both in order."""
    elements = sorted((each for each in fields if each != MEMBER), key=_order)
    for element in elements:
        if not fields[element] or MEMBER in fields[element]:
            yield prefix + shown(element)
    for element in elements:
        if fields[element]:
            yield from paths(fields[element], prefix + shown(element))


def _order(element: str) -> tuple[int, Any]:
    """Return the sort key of a path element: fields, keyed elements, values, indices."""
    kind, rest = element[0], element[2:]
    if kind == "f":
        return 0, rest
    if kind == "k":
        return 1, [(key, _value_order(value)) for key, value in orjson.loads(rest).items()]
    return (2, _value_order(orjson.loads(rest))) if kind == "v" else (3, int(rest))


def _value_order(value: Any) -> tuple[int, Any]:
    """Return the sort key of a value: numbers, texts, booleans, the rest."""
    if isinstance(value, bool):
        return 2, value
    if isinstance(value, int | float):
        return 0, value
    return (1, value) if isinstance(value, str) else (3, "")


# ----------------------------------------------------------------------------------------------- reading


def read(tree: Any) -> Fields:
    """Return the interned form of a FieldsV1 tree. Raise `FieldsError` for a malformed one."""
    if not isinstance(tree, dict):
        raise FieldsError(f"couldn't decode fields: {tree!r}")
    found: Fields = {}
    for element, below in tree.items():
        found[MEMBER if element == MEMBER else _checked(element)] = read(below) if below else LEAF
    return interned(found)


def _checked(element: str) -> str:
    """Return a path element in its canonical form."""
    if len(element) < 2:
        raise FieldsError("key must be 2 characters long:")
    if element[1] != ":":
        raise FieldsError(f"missing colon: {element}")
    kind, rest = element[0], element[2:]
    try:
        if kind == "f":
            return element
        if kind == "k":
            keys = orjson.loads(rest)
            if isinstance(keys, dict):
                return key_element(keys)
        elif kind == "v":
            return value_element(orjson.loads(rest))
        elif kind == "i":
            return f"i:{int(rest)}"
    except ValueError as error:
        raise FieldsError(str(error)) from None
    raise FieldsError("unknown path element type")
