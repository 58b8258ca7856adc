"""One function for each element type without declared fields: a JSON value in, the canonical value out, `Mismatch` for what does not fit.

Null is the zero value of the type, as in Go. A value that is canonical already is returned as the very same object.
"""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final

from kubemini.machinery import quantity
from kubemini.machinery.schema.mismatch import Mismatch, found
from kubemini.machinery.schema.times import canonical_time

Reader = Callable[[Any], Any]

_INT32 = 2**31
_INT64 = 2**63


def string(value: Any) -> Any:
    """Return a string."""
    if type(value) is str:
        return value
    if value is None:
        return ""
    if isinstance(value, str):
        return str.__str__(value)
    raise Mismatch(found(value), "string")


def named_string(go_type: str) -> Reader:
    """Return the reader of strings of a named Go type."""

    def read(value: Any) -> Any:
        if type(value) is str:
            return value
        if value is None or isinstance(value, str):
            return string(value)
        raise Mismatch(found(value), go_type)

    return read


def boolean(value: Any) -> Any:
    """Return a boolean."""
    if value is True or value is False:
        return value
    if value is None:
        return False
    raise Mismatch(found(value), "bool")


def int32(value: Any) -> Any:
    """Return an integer of 32 bits."""
    if type(value) is int and -_INT32 <= value < _INT32:
        return value
    return _integer(value, "int32", _INT32)


def int64(value: Any) -> Any:
    """Return an integer of 64 bits."""
    if type(value) is int and -_INT64 <= value < _INT64:
        return value
    return _integer(value, "int64", _INT64)


def _integer(value: Any, go_type: str, limit: int) -> int:
    if value is None:
        return 0
    if isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit:
        return int(value)
    raise Mismatch(found(value, literal=True), go_type)


def double(value: Any) -> Any:
    """Return a number."""
    if type(value) is float or type(value) is int:
        return value
    if value is None:
        return 0
    raise Mismatch(found(value), "float64")


def octets(value: Any) -> Any:
    """Return base64 text, with padding and without line breaks."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Mismatch(found(value), "[]uint8")
    try:
        if b64encode(b64decode(value, validate=True)).decode() == value:
            return value
    except (binascii.Error, ValueError):
        pass
    compact = value.replace("\r", "").replace("\n", "")
    illegal = _illegal_base64(value)
    if illegal is not None:
        raise Mismatch.plain(f"illegal base64 data at input byte {illegal}")
    return b64encode(b64decode(compact)).decode()


_ALPHABET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


def _illegal_base64(text: str) -> int | None:
    """Return the input position that Go's decoder complains of, or None for good text. Line breaks are skipped."""
    quantum: list[int] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char in "\r\n":
            at += 1
            continue
        if char in _ALPHABET:
            quantum = [] if len(quantum) == 3 else [*quantum, at]
            at += 1
            continue
        if char != "=" or len(quantum) < 2:
            return at
        return _illegal_padding(text, at, len(quantum))
    return len(text) - len(quantum) if quantum else None


def _illegal_padding(text: str, at: int, held: int) -> int | None:
    """Return the position of what is wrong from the first ``=`` on, after `held` characters of a group."""
    rest = [(index, char) for index, char in enumerate(text[at + 1 :], at + 1) if char not in "\r\n"]
    if held == 2:
        if not rest:
            return len(text)
        index, char = rest.pop(0)
        if char != "=":
            return index - 1
    return rest[0][0] if rest else None


def a_quantity(value: Any) -> Any:
    """Return a canonical quantity."""
    if value is None:
        return "0"
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise Mismatch.plain(quantity.WRONG_FORMAT)
    try:
        text = quantity.canonical(value)
    except quantity.QuantityError as problem:
        raise Mismatch.plain(str(problem)) from None
    return value if text == value else text


def milli_quantity(value: Any) -> Any:
    """Return a canonical quantity of a resource list: nothing smaller than a thousandth, rounded up."""
    text = a_quantity(value)
    parsed = quantity.parse(text)
    return text if parsed.nano % quantity.MILLI == 0 else quantity.from_milli(parsed.milli, parsed.family)


def time(value: Any) -> Any:
    """Return a time of whole seconds, or None for none."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise Mismatch(found(value), "string")
    return canonical_time(value)


def micro_time(value: Any) -> Any:
    """Return a time of six decimals, or None for none."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise Mismatch(found(value), "string")
    return canonical_time(value, micro=True)


def int_or_string(value: Any) -> Any:
    """Return an integer of 32 bits or a string."""
    return value if type(value) is str else int32(value)


def named_strings(go_type: str) -> Reader:
    """Return the reader of lists of strings that are elements themselves (``ExtraValue``)."""

    def read(value: Any) -> Any:
        if not isinstance(value, list | tuple):
            if value is None:
                return []
            raise Mismatch(found(value), go_type)
        new = [string(each) for each in value]
        return value if type(value) is list and all(a is b for a, b in zip(value, new, strict=True)) else new

    return read


def anything(value: Any) -> Any:
    """Return any JSON as it is."""
    return value


READERS: Final[Mapping[str, Reader]] = {
    "string": string,
    "bool": boolean,
    "int32": int32,
    "int64": int64,
    "double": double,
    "bytes": octets,
    "Quantity": a_quantity,
    "Time": time,
    "MicroTime": micro_time,
    "IntOrString": int_or_string,
    "strings": named_strings("[]string"),
    "RawExtension": anything,
    "FieldsV1": anything,
    "JSON": anything,
}

ZEROS: Final[Mapping[str, Any]] = {
    "string": "",
    "bool": False,
    "int32": 0,
    "int64": 0,
    "double": 0,
    "bytes": "",
    "Quantity": "0",
    "Time": None,
    "MicroTime": None,
    "IntOrString": 0,
    "RawExtension": None,
    "FieldsV1": None,
    "JSON": None,
}
"""The value that Go serialises for an unset field of a type (when it serialises it)."""
