"""Text to tokens."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from kubemini.machinery.cel.errors import CelCompileError, Issue
from kubemini.machinery.cel.values import INT_MAX, INT_MIN, UINT_MAX, UInt

RESERVED = frozenset(
    {"as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in"}
    | {"let", "loop", "namespace", "null", "package", "return", "true", "var", "void", "while"}
)

_TOKEN = re.compile(
    r"""
    (?P<space>(?:[\t\r\n\f\ ]|//[^\n]*)+)
  | (?P<text>[rR]?(?:\"{3}|'{3}|"|') | [bB][rR]?(?:\"{3}|'{3}|"|') | [rR][bB](?:\"{3}|'{3}|"|'))
  | (?P<float>(?:\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?))
  | (?P<int>(?:0x[0-9a-fA-F]+|\d+)[uU]?)
  | (?P<name>[_a-zA-Z][_a-zA-Z0-9]*)
  | (?P<op>==|!=|<=|>=|&&|\|\||\.\?|\[\?|[-+*/%<>!?:.,()\[\]{}])
    """,
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(?:([abfnrtv\\?\"'`])|([xX])([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2}))|(\\)", re.DOTALL)
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class Token(NamedTuple):
    """A token: `kind` is ``name``, ``literal``, ``end``, or the operator itself; `position` its offset."""

    kind: str
    text: str
    position: int
    value: Any = None


def tokens(text: str) -> list[Token]:
    """Return the tokens of an expression, with one of kind ``end`` last. Raise `CelCompileError`."""
    out: list[Token] = []
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise _error(text, at, f"Syntax error: token recognition error at: '{text[at]}'")
        kind, raw, start = found.lastgroup or "", found.group(), at
        at = found.end()
        if kind == "space":
            continue
        if kind == "text":
            value, at = _quoted(text, start, raw)
            out.append(Token("literal", text[start:at], start, value))
        elif kind == "float":
            out.append(Token("literal", raw, start, float(raw)))
        elif kind == "int":
            out.append(Token("literal", raw, start, _integer(text, start, raw)))
        elif kind == "name":
            out.append(_word(raw, start))
        else:
            out.append(Token(raw, raw, start))
    out.append(Token("end", "<EOF>", len(text)))
    return out


def negated(text: str, token: Token) -> Token:
    """Return a number token with a minus sign in front (``-9223372036854775808`` has no positive form)."""
    value = token.value
    return token._replace(value=-value if isinstance(value, float) else _checked(text, token.position, -int(value)))


def _word(raw: str, start: int) -> Token:
    if raw in {"true", "false", "null"}:
        return Token("literal", raw, start, {"true": True, "false": False, "null": None}[raw])
    return Token("in" if raw == "in" else "name", raw, start)


def _integer(text: str, start: int, raw: str) -> int:
    unsigned = raw[-1] in "uU"
    value = int(raw.rstrip("uU"), 0) if raw[:2] == "0x" else int(raw.rstrip("uU"))
    if unsigned:
        if value > UINT_MAX:
            raise _error(text, start, f"Syntax error: invalid uint literal: {raw}")
        return UInt(value)
    return value


def _checked(text: str, position: int, value: int) -> int:
    if not INT_MIN <= value <= INT_MAX:
        raise _error(text, position, "Syntax error: invalid int literal")
    return value


def _quoted(text: str, start: int, opening: str) -> tuple[str | bytes, int]:
    """Return the value of a string or bytes literal that starts at `start`, and where it ends."""
    quote = opening.lstrip("rRbB")
    prefix = opening[: -len(quote)].lower()
    body = start + len(opening)
    at = body
    while True:
        if at >= len(text) or (len(quote) == 1 and text[at] in "\r\n"):
            raise _error(text, start, f"Syntax error: token recognition error at: '{text[start:at]}'")
        if text.startswith(quote, at):
            break
        at += 2 if text[at] == "\\" and "r" not in prefix else 1
    raw = text[body:at].replace("\r\n", "\n").replace("\r", "\n")
    end = at + len(quote)
    if "b" in prefix:
        return _bytes(text, start, raw, plain="r" in prefix), end
    if "r" in prefix or "\\" not in raw:
        return raw, end
    return _ESCAPE.sub(lambda match: _unescaped(text, start, match), raw), end


def _unescaped(text: str, start: int, match: re.Match[str]) -> str:
    simple, _, byte, short, long, octal, wrong = match.groups()
    if wrong:
        raise _error(text, start, "Syntax error: unable to unescape string")
    if simple:
        return _SIMPLE.get(simple, simple)
    code = int(octal, 8) if octal else int(byte or short or long, 16)
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise _error(text, start, "Syntax error: invalid unicode code point")
    return chr(code)


def _bytes(text: str, start: int, raw: str, *, plain: bool) -> bytes:
    if plain or "\\" not in raw:
        return raw.encode()
    out = bytearray()
    at = 0
    for match in _ESCAPE.finditer(raw):
        out += raw[at : match.start()].encode()
        _, _, byte, _, _, octal, _ = match.groups()
        value = _unescaped(text, start, match)
        out += bytes([ord(value)]) if byte or octal else value.encode()
        at = match.end()
    return bytes(out + raw[at:].encode())


def _error(text: str, position: int, message: str) -> CelCompileError:
    return CelCompileError(text, [Issue(position, message)])
