"""Operators, conversions, ``size`` and ``type``: CEL's standard library (cel-go ``common/stdlib``)."""

from __future__ import annotations

import math
from typing import Any

from kubemini.machinery.cel import times, values
from kubemini.machinery.cel.errors import CelEvaluationError
from kubemini.machinery.cel.overloads import declare_overload, function
from kubemini.machinery.cel.values import INT_MAX, INT_MIN, UINT_MAX, Duration, Timestamp, TypeValue, UInt


def _conditional(condition: Any, yes: Any, no: Any) -> Any:
    return yes if values.truth(condition) else no


def _both(a: Any, b: Any) -> bool:
    return values.truth(a) and values.truth(b)


def _either(a: Any, b: Any) -> bool:
    return values.truth(a) or values.truth(b)


def _not(a: Any) -> bool:
    return not values.truth(a)


def _differs(a: Any, b: Any) -> bool:
    return not values.equals(a, b)


def _not_greater(a: Any, b: Any) -> bool:
    return values.less(a, b) or bool(a == b)


def _greater(a: Any, b: Any) -> bool:
    return values.less(b, a)


def _not_less(a: Any, b: Any) -> bool:
    return values.less(b, a) or bool(a == b)


declare_overload("_?_:_(bool, A, A) -> A", "conditional", _conditional)
declare_overload("_&&_(bool, bool) -> bool", "logical_and", _both)
declare_overload("_||_(bool, bool) -> bool", "logical_or", _either)
declare_overload("!_(bool) -> bool", "logical_not", _not)
declare_overload("_==_(A, A) -> bool", "equals", values.equals)
declare_overload("_!=_(A, A) -> bool", "not_equals", _differs)

for _sign, _name, _answer in (
    ("<", "less", values.less),
    ("<=", "less_equals", _not_greater),
    (">", "greater", _greater),
    (">=", "greater_equals", _not_less),
):
    for _left, _right, _id in (
        ("bool", "bool", "bool"),
        ("int", "int", "int64"),
        ("int", "double", "int64_double"),
        ("int", "uint", "int64_uint64"),
        ("uint", "uint", "uint64"),
        ("uint", "double", "uint64_double"),
        ("uint", "int", "uint64_int64"),
        ("double", "double", "double"),
        ("double", "int", "double_int64"),
        ("double", "uint", "double_uint64"),
        ("string", "string", "string"),
        ("bytes", "bytes", "bytes"),
        ("timestamp", "timestamp", "timestamp"),
        ("duration", "duration", "duration"),
    ):
        declare_overload(f"_{_sign}_({_left}, {_right}) -> bool", f"{_name}_{_id}", _answer)

for _type, _id in (("bytes", "bytes"), ("double", "double"), ("int", "int64"), ("list(A)", "list"), ("string", "string"), ("uint", "uint64")):
    declare_overload(f"_+_({_type}, {_type}) -> {_type}", f"add_{_id}", values.add)
declare_overload("_+_(duration, duration) -> duration", "add_duration_duration", values.add)
declare_overload("_+_(duration, timestamp) -> timestamp", "add_duration_timestamp", values.add)
declare_overload("_+_(timestamp, duration) -> timestamp", "add_timestamp_duration", values.add)
for _type, _id in (("double", "double"), ("int", "int64"), ("uint", "uint64")):
    declare_overload(f"_-_({_type}, {_type}) -> {_type}", f"subtract_{_id}", values.subtract)
    declare_overload(f"_*_({_type}, {_type}) -> {_type}", f"multiply_{_id}", values.multiply)
    declare_overload(f"_/_({_type}, {_type}) -> {_type}", f"divide_{_id}", values.divide)
declare_overload("_-_(duration, duration) -> duration", "subtract_duration_duration", values.subtract)
declare_overload("_-_(timestamp, duration) -> timestamp", "subtract_timestamp_duration", values.subtract)
declare_overload("_-_(timestamp, timestamp) -> duration", "subtract_timestamp_timestamp", values.subtract)
declare_overload("_%_(int, int) -> int", "modulo_int64", values.modulo)
declare_overload("_%_(uint, uint) -> uint", "modulo_uint64", values.modulo)
declare_overload("-_(double) -> double", "negate_double", values.negate)
declare_overload("-_(int) -> int", "negate_int64", values.negate)
declare_overload("_[_](list(A), int) -> A", "index_list", values.index)
declare_overload("_[_](map(A, B), A) -> B", "index_map", values.index)
declare_overload("_[_](optional(list(V)), int) -> optional(V)", "optional_list_index_int", values.index)
declare_overload("_[_](optional(map(K, V)), K) -> optional(V)", "optional_map_index_value", values.index)
declare_overload("_[?_](list(V), int) -> optional(V)", "list_optindex_optional_int", values.optional_index)
declare_overload("_[?_](optional(list(V)), int) -> optional(V)", "optional_list_optindex_optional_int", values.optional_index)
declare_overload("_[?_](map(K, V), K) -> optional(V)", "map_optindex_optional_value", values.optional_index)
declare_overload("_[?_](optional(map(K, V)), K) -> optional(V)", "optional_map_optindex_optional_value", values.optional_index)
declare_overload("@in(A, list(A)) -> bool", "in_list", values.contains)
declare_overload("@in(A, map(A, B)) -> bool", "in_map", values.contains)

for _type in ("bytes", "list(A)", "map(A, B)", "string"):
    declare_overload(f"size({_type}) -> int", f"size_{_type.partition('(')[0]}", len)
    declare_overload(f"({_type}).size() -> int", f"{_type.partition('(')[0]}_size", len)


# ----------------------------------------------------------------------------------------------- conversions


@function("type(A) -> type(A)", "type")
def type_of(value: Any) -> TypeValue:
    """Return the type of a value."""
    return TypeValue(values.type_name(value))


@function("dyn(A) -> dyn", "to_dyn")
@function("bool(bool) -> bool", "bool_to_bool")
@function("bytes(bytes) -> bytes", "bytes_to_bytes")
@function("double(double) -> double", "double_to_double")
@function("duration(duration) -> duration", "duration_to_duration")
@function("int(int) -> int", "int64_to_int64")
@function("string(string) -> string", "string_to_string")
@function("timestamp(timestamp) -> timestamp", "timestamp_to_timestamp")
@function("uint(uint) -> uint", "uint64_to_uint64")
def unchanged(value: Any) -> Any:
    """Return a value that is of the type already."""
    return value


_BOOLEANS = {**dict.fromkeys(("1", "t", "true", "TRUE", "True"), True), **dict.fromkeys(("0", "f", "false", "FALSE", "False"), False)}


@function("bool(string) -> bool", "string_to_bool")
def bool_of_string(text: str) -> bool:
    """Convert a word."""
    if text not in _BOOLEANS:
        raise CelEvaluationError(f"type conversion error from 'string' to 'bool': {text}")
    return _BOOLEANS[text]


@function("bytes(string) -> bytes", "string_to_bytes")
def bytes_of_string(text: str) -> bytes:
    """Encode as UTF-8."""
    return text.encode()


@function("double(int) -> double", "int64_to_double")
@function("double(uint) -> double", "uint64_to_double")
def double_of_number(value: int) -> float:
    """Convert an integer."""
    return float(value)


@function("double(string) -> double", "string_to_double")
def double_of_string(text: str) -> float:
    """Parse a number."""
    try:
        return float("" if "_" in text or text != text.strip() else text)
    except ValueError:
        raise CelEvaluationError(f'strconv.ParseFloat: parsing "{text}": invalid syntax') from None


@function("duration(string) -> duration", "string_to_duration")
def duration_of_string(text: str) -> Duration:
    """Parse Go's form: ``1h30m``."""
    return times.duration(text)


@function("duration(int) -> duration", "int64_to_duration")
def duration_of_int(seconds: int) -> Duration:
    """Convert seconds."""
    return values.span(seconds * times.SECOND)


@function("int(double) -> int", "double_to_int64")
def int_of_double(value: float) -> int:
    """Truncate toward zero."""
    if not math.isfinite(value) or not INT_MIN < value < INT_MAX:
        raise CelEvaluationError("integer overflow")
    return int(value)


@function("int(duration) -> int", "duration_to_int64")
def int_of_duration(value: Duration) -> int:
    """Return nanoseconds."""
    return value.nanos


@function("int(timestamp) -> int", "timestamp_to_int64")
def int_of_timestamp(value: Timestamp) -> int:
    """Return Unix seconds."""
    return value.nanos // times.SECOND


@function("int(string) -> int", "string_to_int64")
def int_of_string(text: str) -> int:
    """Parse decimal digits."""
    value = _digits(text, "ParseInt")
    if not INT_MIN <= value <= INT_MAX:
        raise CelEvaluationError(f'strconv.ParseInt: parsing "{text}": value out of range')
    return value


@function("int(uint) -> int", "uint64_to_int64")
def int_of_uint(value: UInt) -> int:
    """Convert with a check of the range."""
    return values.checked(int(value))


@function("uint(int) -> uint", "int64_to_uint64")
def uint_of_int(value: int) -> UInt:
    """Convert with a check of the range."""
    return values.unsigned(value)


@function("uint(double) -> uint", "double_to_uint64")
def uint_of_double(value: float) -> UInt:
    """Truncate with a check of the range."""
    if not math.isfinite(value) or not 0 <= value < UINT_MAX:
        raise CelEvaluationError("unsigned integer overflow")
    return UInt(int(value))


@function("uint(string) -> uint", "string_to_uint64")
def uint_of_string(text: str) -> UInt:
    """Parse decimal digits."""
    if text[:1] in {"+", "-"}:
        raise CelEvaluationError(f'strconv.ParseUint: parsing "{text}": invalid syntax')
    return values.unsigned(_digits(text, "ParseUint"))


def _digits(text: str, who: str) -> int:
    if not text.isascii() or not text[text[:1] in {"+", "-"} :].isdigit():
        raise CelEvaluationError(f'strconv.{who}: parsing "{text}": invalid syntax')
    return int(text)


@function("string(bool) -> string", "bool_to_string")
@function("string(int) -> string", "int64_to_string")
@function("string(uint) -> string", "uint64_to_string")
def string_of_plain(value: Any) -> str:
    """Print a bool or an integer."""
    return values.shown(value)


@function("string(double) -> string", "double_to_string")
def string_of_double(value: float) -> str:
    """Print as Go's %g does."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    mantissa, _, exponent = repr(value).partition("e")
    if exponent:
        return f"{mantissa.removesuffix('.0')}e{int(exponent):+03d}"
    if value and not 1e-4 <= abs(value) < 1e21:
        short = f"{value:.17g}"
        return short if float(short) == value else repr(value)
    return mantissa.removesuffix(".0")


@function("string(bytes) -> string", "bytes_to_string")
def string_of_bytes(value: bytes) -> str:
    """Decode UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise CelEvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None


@function("string(duration) -> string", "duration_to_string")
def string_of_duration(value: Duration) -> str:
    """Print seconds: ``5400s``."""
    return times.duration_text(value)


@function("string(timestamp) -> string", "timestamp_to_string")
def string_of_timestamp(value: Timestamp) -> str:
    """Print RFC 3339."""
    return times.timestamp_text(value)


@function("timestamp(string) -> timestamp", "string_to_timestamp")
def timestamp_of_string(text: str) -> Timestamp:
    """Parse RFC 3339."""
    return times.timestamp(text)


@function("timestamp(int) -> timestamp", "int64_to_timestamp")
def timestamp_of_int(seconds: int) -> Timestamp:
    """Convert Unix seconds."""
    return values.instant(seconds * times.SECOND)
