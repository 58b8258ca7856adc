"""Times as Go reads and writes them in JSON: RFC 3339 in, UTC out, whole seconds (`metav1.Time`) or six decimals (`metav1.MicroTime`).

What Go refuses is refused with Go's text, which tells the part of the layout that could not be read. Accepted texts are memoised: the same
second is read many times. Mirrors ``time.Parse`` and apimachinery's ``pkg/apis/meta/v1/time.go``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

from kubemini.machinery.schema.mismatch import Mismatch

_LAYOUTS = {False: "2006-01-02T15:04:05Z07:00", True: "2006-01-02T15:04:05.000000Z07:00"}
_LIMIT = 4096
_KNOWN: dict[bool, dict[str, str]] = {False: {}, True: {}}

_DATE = r"\d{4}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
_TIME = r"T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d"
_fast = re.compile(rf"{_DATE}{_TIME}(\.\d+)?Z", re.ASCII).fullmatch
_fast_micro = re.compile(rf"{_DATE}{_TIME}\.\d{{6}}Z", re.ASCII).fullmatch
"""Nearly every time: in UTC, on a day that is in every year."""


def canonical_time(text: str, *, micro: bool = False) -> str:
    """Return a time as Go writes it again, the same object where nothing changes. Raise `Mismatch` with Go's text.

    >>> canonical_time("2026-01-02T05:04:05.9+02:00")
    '2026-01-02T03:04:05Z'
    >>> canonical_time("2026-01-02T05:04:05.500000Z", micro=True)
    '2026-01-02T05:04:05.500000Z'
    """
    if micro and _fast_micro(text):
        return text
    known = _KNOWN[micro]
    found = known.get(text)
    if found is None:
        fast = _fast(text)
        found = _parse(text, micro=micro) if fast is None or micro else f"{text[:19]}Z"
        if len(known) >= _LIMIT:
            known.clear()
        known[text] = found
    return text if found == text else found


def _parse(text: str, *, micro: bool) -> str:
    layout = _LAYOUTS[micro]
    rest = text
    numbers: list[int] = []
    for prefix, element, width, low, high, name in _elements():
        if not rest.startswith(prefix):
            raise _unread(text, layout, rest, prefix)
        rest = rest[len(prefix) :]
        digits = _leading(rest, width, exact=element != "15")
        if digits is None:
            raise _unread(text, layout, rest, element)
        rest = rest[len(digits) :]
        numbers.append(int(digits))
        if not low <= numbers[-1] <= high:
            raise _out_of_range(text, name)
    year, month, day, hour, minute, second = numbers
    fraction = ""
    if micro:
        fraction = rest[:7]
        if re.fullmatch(r"[.,]\d{6}", fraction, re.ASCII) is None:
            raise _unread(text, layout, rest, ".000000")
        rest = rest[7:]
    elif (loose := re.match(r"[.,]\d+", rest, re.ASCII)) is not None:
        rest = rest[loose.end() :]
    offset, rest = _offset(text, layout, rest)
    if rest:
        raise Mismatch.plain(f"parsing time {_quoted(text)}: extra text: {_quoted(rest)}")
    if not 1 <= day <= _days(year, month):
        raise _out_of_range(text, "day")
    decimals = f".{fraction[1:]}" if micro else ""
    if not offset:
        return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{decimals}Z"
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=timezone(timedelta(minutes=offset))).astimezone(UTC)
    except (ValueError, OverflowError):
        raise Mismatch.plain("Time.MarshalJSON: year outside of range [0,9999]") from None
    return f"{moment.year:04}-{moment:%m-%dT%H:%M:%S}{decimals}Z"


def _elements() -> Iterator[tuple[str, str, int, int, int, str]]:
    """Yield what stands before an element of the layout, the element, its digits, its range and its name."""
    yield "", "2006", 4, 0, 9999, "year"
    yield "-", "01", 2, 1, 12, "month"
    yield "-", "02", 2, 0, 99, "day"
    yield "T", "15", 2, 0, 23, "hour"
    yield ":", "04", 2, 0, 59, "minute"
    yield ":", "05", 2, 0, 59, "second"


def _leading(rest: str, width: int, *, exact: bool) -> str | None:
    """Return the digits that an element takes; an hour may have one."""
    found = re.match(rf"\d{{{width if exact else 1},{width}}}", rest, re.ASCII)
    return found[0] if found is not None else None


def _offset(text: str, layout: str, rest: str) -> tuple[int, str]:
    """Return the offset from UTC in minutes, and what follows it."""
    if rest.startswith("Z"):
        return 0, rest[1:]
    parts = re.match(r"(.)(\d\d):(\d\d)", rest, re.ASCII)
    if parts is None:
        raise _unread(text, layout, rest, "Z07:00")
    hours, minutes = int(parts[2]), int(parts[3])
    if minutes > 60:
        raise _out_of_range(text, "time zone offset minute")
    if hours > 24:
        raise _out_of_range(text, "time zone offset hour")
    if parts[1] not in "+-":
        raise _unread(text, layout, rest, "Z07:00")
    total = hours * 60 + minutes
    return (total if parts[1] == "+" else -total), rest[parts.end() :]


def _days(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in {4, 6, 9, 11} else 31


def _unread(text: str, layout: str, rest: str, element: str) -> Mismatch:
    return Mismatch.plain(f"parsing time {_quoted(text)} as {_quoted(layout)}: cannot parse {_quoted(rest)} as {_quoted(element)}")


def _out_of_range(text: str, name: str) -> Mismatch:
    return Mismatch.plain(f"parsing time {_quoted(text)}: {name} out of range")


def _quoted(text: str) -> str:
    """Return a text as Go's time package quotes it: bytes outside printable ASCII by their hexadecimal numbers."""
    out = "".join(f"\\{chr(byte)}" if byte in b'"\\' else chr(byte) if 0x20 <= byte < 0x7F else f"\\x{byte:02x}" for byte in text.encode())
    return f'"{out}"'
