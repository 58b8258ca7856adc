"""Strings: CEL's own functions, cel-go's strings extension (version 2), and Kubernetes' regular expressions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from kubemini.machinery.cel import times, values
from kubemini.machinery.cel.errors import CelEvaluationError
from kubemini.machinery.cel.overloads import function
from kubemini.machinery.cel.values import Duration, Timestamp, TypeValue
from kubemini.machinery.gotext import is_decimal
from kubemini.machinery.regexes import RegexError, compiled


@function("(string).contains(string) -> bool", "contains_string")
def contains(text: str, part: str) -> bool:
    """Tell whether `part` occurs."""
    return part in text


@function("(string).startsWith(string) -> bool", "starts_with_string")
def starts_with(text: str, part: str) -> bool:
    """Tell whether the text begins so."""
    return text.startswith(part)


@function("(string).endsWith(string) -> bool", "ends_with_string")
def ends_with(text: str, part: str) -> bool:
    """Tell whether the text ends so."""
    return text.endswith(part)


@function("matches(string, string) -> bool", "matches")
@function("(string).matches(string) -> bool", "matches_string")
def matches(text: str, pattern: str) -> bool:
    """Tell whether an RE2 pattern occurs."""
    return _regex(pattern).search(text) is not None


@function("(string).find(string) -> string", "string_find_string")
def find(text: str, pattern: str) -> str:
    """Return the first match, "" without one."""
    found = _regex(pattern).search(text)
    return found.group() if found else ""


@function("(string).findAll(string) -> list(string)", "string_find_all_string")
@function("(string).findAll(string, int) -> list(string)", "string_find_all_string_int")
def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """Return the matches, at most `limit` of them when it is not negative."""
    found = [match.group() for match in _regex(pattern).finditer(text)]
    return found if limit < 0 else found[:limit]


def _regex(pattern: str) -> Any:
    try:
        return compiled(pattern)
    except RegexError as error:
        raise CelEvaluationError(str(error)) from None


@function("(string).charAt(int) -> string", "string_char_at_int")
def char_at(text: str, place: int) -> str:
    """Return one character, "" just past the end."""
    if not 0 <= place <= len(text):
        raise CelEvaluationError(f"index out of range: {place}")
    return text[place : place + 1]


@function("(string).indexOf(string) -> int", "string_index_of_string")
@function("(string).indexOf(string, int) -> int", "string_index_of_string_int")
def index_of(text: str, part: str, start: int = 0) -> int:
    """Return the place of the first occurrence at or after `start`, or -1."""
    if not 0 <= start <= len(text):
        raise CelEvaluationError(f"index out of range: {start}")
    return text.find(part, start)


@function("(string).lastIndexOf(string) -> int", "string_last_index_of_string")
@function("(string).lastIndexOf(string, int) -> int", "string_last_index_of_string_int")
def last_index_of(text: str, part: str, start: int | None = None) -> int:
    """Return the place of the last occurrence that begins at or before `start`, or -1."""
    if start is None:
        return text.rfind(part)
    if not 0 <= start <= len(text):
        raise CelEvaluationError(f"index out of range: {start}")
    return text.rfind(part, 0, start + len(part))


@function("(string).lowerAscii() -> string", "string_lower_ascii")
def lower_ascii(text: str) -> str:
    """Lower A-Z only."""
    return text.lower() if text.isascii() else text.translate(_LOWER)


@function("(string).upperAscii() -> string", "string_upper_ascii")
def upper_ascii(text: str) -> str:
    """Raise a-z only."""
    return text.upper() if text.isascii() else text.translate(_UPPER)


_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}


@function("(string).replace(string, string) -> string", "string_replace_string_string")
@function("(string).replace(string, string, int) -> string", "string_replace_string_string_int")
def replace(text: str, old: str, new: str, limit: int = -1) -> str:
    """Replace occurrences, at most `limit` of them when it is not negative."""
    return text.replace(old, new, limit)


@function("(string).split(string) -> list(string)", "string_split_string")
@function("(string).split(string, int) -> list(string)", "string_split_string_int")
def split(text: str, separator: str, limit: int = -1) -> list[str]:
    """Split, into at most `limit` parts when it is not negative."""
    if limit == 0:
        return []
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    if limit < 0 or limit >= len(text):
        return list(text)
    return [*text[: limit - 1], text[limit - 1 :]]


@function("(string).substring(int) -> string", "string_substring_int")
@function("(string).substring(int, int) -> string", "string_substring_int_int")
def substring(text: str, start: int, end: int | None = None) -> str:
    """Return the characters from `start` up to `end`."""
    if end is None:
        if not 0 <= start <= len(text):
            raise CelEvaluationError(f"index out of range: {start}")
        return text[start:]
    if start > end:
        raise CelEvaluationError(f"invalid substring range. start: {start}, end: {end}")
    for place in (start, end):
        if not 0 <= place <= len(text):
            raise CelEvaluationError(f"index out of range: {place}")
    return text[start:end]


@function("(string).trim() -> string", "string_trim")
def trim(text: str) -> str:
    """Strip white space."""
    return text.strip()


@function("(string).reverse() -> string", "string_reverse")
def reverse(text: str) -> str:
    """Return the characters in reverse order."""
    return text[::-1]


@function("(list(string)).join() -> string", "list_join")
@function("(list(string)).join(string) -> string", "list_join_string")
def join(parts: list[Any], separator: str = "") -> str:
    """Join strings."""
    if not all(isinstance(each, str) for each in parts):
        raise values.no_such_overload()
    return separator.join(parts)


@function("strings.quote(string) -> string", "strings_quote")
def quote(text: str) -> str:
    """Return the text as a string literal."""
    return '"' + "".join(_QUOTED.get(char, char) for char in text) + '"'


_QUOTED = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v", "\\": r"\\", '"': r"\""}


# ----------------------------------------------------------------------------------------------- format


@function("(string).format(list(dyn)) -> string", "string_format")
def format_(text: str, args: list[Any]) -> str:
    """Fill ``%s %d %f %e %b %x %X %o %%`` clauses."""
    out: list[str] = []
    used = at = 0
    while (percent := text.find("%", at)) >= 0:
        out.append(text[at:percent])
        at = percent + 1
        if text[at : at + 1] == "%":
            out.append("%")
            at += 1
            continue
        precision, at = _precision(text, at)
        verb = text[at : at + 1]
        at += 1
        clause = _CLAUSES.get(verb)
        if clause is None:
            raise CelEvaluationError(f'could not parse formatting clause: unrecognized formatting clause "{verb}"')
        if used >= len(args):
            raise CelEvaluationError(f"index {used} out of range")
        out.append(clause(args[used], precision))
        used += 1
    return "".join(out) + text[at:]


def _precision(text: str, at: int) -> tuple[int | None, int]:
    if text[at : at + 1] != ".":
        return None, at
    end = at + 1
    while is_decimal(text[end : end + 1]):
        end += 1
    if end == at + 1:
        raise CelEvaluationError("error while parsing precision: could not find precision after dot")
    return int(text[at + 1 : end]), end


def _as_string(value: Any, _: int | None) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "[" + ", ".join(_as_string(each, None) for each in value) + "]"
    if isinstance(value, dict):
        shown = sorted((_as_string(key, None), _as_string(each, None)) for key, each in value.items())
        return "{" + ", ".join(f"{key}: {each}" for key, each in shown) + "}"
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, Duration):
        return times.duration_text(value)
    if isinstance(value, Timestamp):
        return times.timestamp_text(value)
    if isinstance(value, TypeValue):
        return value.name
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value is None or isinstance(value, int | float):
        return values.shown(value)
    raise CelEvaluationError(
        f"error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given {values.type_name(value)}"
    )


def _as_decimal(value: Any, _: int | None) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float) and not math.isfinite(value):
        return _as_string(value, None)
    raise CelEvaluationError(f"error during formatting: decimal clause can only be used on integers, was given {values.type_name(value)}")


def _number(value: Any, clause: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise CelEvaluationError(f"error during formatting: {clause} clause can only be used on doubles, was given {values.type_name(value)}")


def _as_fixed(value: Any, precision: int | None) -> str:
    number = _number(value, "fixed-point")
    return f"{number:.{6 if precision is None else precision}f}" if math.isfinite(number) else _as_string(number, None)


def _as_scientific(value: Any, precision: int | None) -> str:
    number = _number(value, "scientific")
    return f"{number:.{6 if precision is None else precision}e}" if math.isfinite(number) else _as_string(number, None)


def _as_binary(value: Any, _: int | None) -> str:
    if isinstance(value, int):
        return f"{int(value):b}"
    raise CelEvaluationError(f"error during formatting: only integers and bools can be formatted as binary, was given {values.type_name(value)}")


def _as_hex(value: Any, _: int | None) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{int(value):x}"
    if isinstance(value, str | bytes):
        return (value.encode() if isinstance(value, str) else value).hex()
    raise CelEvaluationError(
        f"error during formatting: only integers, byte buffers, and strings can be formatted as hex, was given {values.type_name(value)}"
    )


def _as_octal(value: Any, _: int | None) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{int(value):o}"
    raise CelEvaluationError(f"error during formatting: octal clause can only be used on integers, was given {values.type_name(value)}")


_CLAUSES: dict[str, Callable[[Any, int | None], str]] = {
    "s": _as_string,
    "d": _as_decimal,
    "f": _as_fixed,
    "e": _as_scientific,
    "b": _as_binary,
    "x": _as_hex,
    "X": lambda value, precision: _as_hex(value, precision).upper(),
    "o": _as_octal,
}
