"""How Go prints JSON values in error texts: ``%v`` (``map[a:1 b:[x y]]``), ``%#v``, ``%T``, and the kinds of encoding/json."""

from __future__ import annotations

import re
from typing import Any


def json_kind(value: Any) -> str:
    """Return what encoding/json calls a value: object, array, string, number, bool, null.

    >>> json_kind({}), json_kind(1.5)
    ('object', 'number')
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, dict):
        return "object"
    return "array" if isinstance(value, list) else "number"


def is_decimal(text: str) -> bool:
    """Tell whether a text is a row of digits; other scripts have digits that Go knows nothing of.

    >>> is_decimal("10"), is_decimal("²"), is_decimal("")
    (True, False, False)
    """
    return text.isascii() and text.isdecimal()


def parse_uint(text: str) -> int:
    """Return an unsigned number of 64 bits. Raise `ValueError` with Go's words."""
    if not is_decimal(text):
        raise ValueError(f"strconv.ParseUint: parsing {quoted(text)}: invalid syntax")
    digits = text.lstrip("0")
    if len(digits) > 20 or (value := int(digits or "0")) >= 2**64:
        raise ValueError(f"strconv.ParseUint: parsing {quoted(text)}: value out of range")
    return value


def plain(value: Any) -> str:
    """Return a value as ``%v`` prints it: maps by sorted keys, texts bare.

    >>> plain({"b": [1, "x"], "a": None})
    'map[a:<nil> b:[1 x]]'
    """
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{plain(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(plain, value))}]"
    return number(value) if isinstance(value, float) else str(value)


def sharp(value: Any) -> str:
    """Return a value as ``%#v`` prints it.

    >>> sharp({"a": [1, "x"]})
    'map[string]interface {}{"a":[]interface {}{1, "x"}}'
    """
    if value is None:
        return "interface {}(nil)"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, dict):
        return f"map[string]interface {{}}{{{', '.join(f'{quoted(key)}:{sharp(value[key])}' for key in sorted(value))}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(sharp, value))}}}"
    return plain(value)


def go_type(value: Any) -> str:
    """Return the Go type of a decoded JSON value, as ``%T`` prints it."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, dict):
        return "map[string]interface {}"
    if isinstance(value, list):
        return "[]interface {}"
    return "float64" if isinstance(value, float) else "int64"


def number(value: float) -> str:
    """Return a float as ``%v`` prints it: shortest form, an exponent from 1e+21 on and below 1e-04.

    >>> number(1.0), number(0.25), number(1e21)
    ('1', '0.25', '1e+21')
    """
    if value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    text = repr(value)
    if 1e-4 <= abs(value) < 1e21 and "e" in text:
        return format(value, "f")
    return text


def go_escaped(text: str) -> str:
    r"""Return JSON as encoding/json writes it, which leaves nothing in it that HTML or JavaScript would take for its own.

    >>> print(go_escaped('"a<b"'))
    "a\u003cb"
    """
    return text.translate(_HTML)


def quoted(text: str) -> str:
    r"""Return a text as ``%q`` prints it.

    >>> print(quoted('say "x"\n'))
    "say \"x\"\n"
    """
    found: list[str] = []
    for each in text:
        if each in '"\\':
            found.append(f"\\{each}")
        elif each in _ESCAPES:
            found.append(_ESCAPES[each])
        elif each.isprintable():
            found.append(each)
        elif ord(each) < 0x80:
            found.append(f"\\x{ord(each):02x}")
        else:
            found.append(f"\\u{ord(each):04x}" if ord(each) < 0x10000 else f"\\U{ord(each):08x}")
    return f'"{"".join(found)}"'


_HTML = str.maketrans({each: f"\\u{ord(each):04x}" for each in "<>&\u2028\u2029"})
_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\a": "\\a", "\b": "\\b", "\f": "\\f", "\v": "\\v"}


_verb = re.compile(r"%[#0+\- ]*\d*(?:\.\d*)?(.)?", re.DOTALL)


def formatted(text: str) -> str:
    """Return a text that was handed to ``Sprintf`` as its format, without arguments.

    >>> formatted("50% off"), formatted("100%%"), formatted("100%"), formatted("plain")
    ('50%!o(MISSING)ff', '100%', '100%!(NOVERB)', 'plain')
    """
    return _verb.sub(_missing, text) if "%" in text else text


def _missing(found: re.Match[str]) -> str:
    verb: str | None = found[1]
    if verb is None:
        return "%!(NOVERB)"
    return verb if verb == "%" else f"%!{verb}(MISSING)"
