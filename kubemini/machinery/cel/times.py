"""Times and durations: Go's texts to nanoseconds and back, calendar parts, time zones."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kubemini.machinery.cel.errors import CelEvaluationError
from kubemini.machinery.cel.values import Duration, Timestamp, instant, span

SECOND = 10**9
_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": SECOND, "m": 60 * SECOND, "h": 3600 * SECOND}
_WORDS = {
    **_UNITS,
    "d": 24 * 3600 * SECOND,
    "w": 7 * 24 * 3600 * SECOND,
    **dict.fromkeys(("nano", "nanos", "nanosecond", "nanoseconds"), 1),
    **dict.fromkeys(("micro", "micros", "microsecond", "microseconds"), 10**3),
    **dict.fromkeys(("milli", "millis", "millisecond", "milliseconds"), 10**6),
    **dict.fromkeys(("sec", "secs", "second", "seconds"), SECOND),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), 60 * SECOND),
    **dict.fromkeys(("hr", "hrs", "hour", "hours"), 3600 * SECOND),
    **dict.fromkeys(("day", "days"), 24 * 3600 * SECOND),
    **dict.fromkeys(("wk", "wks", "week", "weeks"), 7 * 24 * 3600 * SECOND),
}
_go_duration = re.compile(r"([+-]?)((?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+|0)", re.ASCII).fullmatch
_go_part = re.compile(r"(\d*)(?:\.(\d*))?(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_word_part = re.compile(r"\s*(\d+)\s*([a-zµμ]+)", re.ASCII)
_rfc3339 = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)", re.ASCII).fullmatch
_loose = re.compile(r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:[.,](\d+))?([Zz]|[+-]\d\d:?\d\d)?", re.ASCII).fullmatch
_offset = re.compile(r"([+-]?)(\d\d):(\d\d)", re.ASCII).fullmatch
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def duration(text: str) -> Duration:
    """Return the duration of a Go text such as ``1h30m``. Raise `CelEvaluationError`."""
    found = _go_nanos(text)
    if found is None:
        raise CelEvaluationError(f"time: invalid duration {_quoted(text)}")
    return span(found)


def schema_duration(text: str) -> Duration:
    """Return the duration of a string with ``format: duration``: Go's form, or words (``2 weeks``)."""
    found = _go_nanos(text)
    if found is None:
        found = word_nanos(text)
    if found is None:
        raise CelEvaluationError(f"Invalid duration {text}: unable to parse {text} as duration")
    return span(found)


def word_nanos(text: str) -> int | None:
    """Return the nanoseconds of a duration in words, or None."""
    at = total = 0
    while at < len(text.rstrip()):
        found = _word_part.match(text, at)
        if found is None or found.group(2) not in _WORDS:
            return None
        total += int(found.group(1)) * _WORDS[found.group(2)]
        at = found.end()
    return total if at else None


def _go_nanos(text: str) -> int | None:
    found = _go_duration(text)
    if found is None:
        return None
    total = 0
    for whole, fraction, unit in _go_part.findall(found.group(2)):
        size = _UNITS[unit]
        total += int(whole or 0) * size + (int(fraction) * size // 10 ** len(fraction) if fraction else 0)
    return -total if found.group(1) == "-" else total


def is_duration(text: str) -> bool:
    """Tell whether a text is a duration in the sense of ``format: duration``."""
    return _go_nanos(text) is not None or word_nanos(text) is not None


def timestamp(text: str) -> Timestamp:
    """Return the timestamp of an RFC 3339 text. Raise `CelEvaluationError`."""
    found = _parsed(_rfc3339(text))
    if found is None:
        raise CelEvaluationError(f'parsing time {_quoted(text)} as "2006-01-02T15:04:05Z07:00": cannot parse {_quoted(text)}')
    return instant(found)


def date_time(text: str) -> Timestamp:
    """Return the timestamp of a string with ``format: date-time``."""
    found = _parsed(_loose(text))
    if found is None:
        raise CelEvaluationError(f"Invalid date-time formatted string {text}: cannot parse")
    return instant(found)


@lru_cache(maxsize=8192)
def is_date_time(text: str) -> bool:
    """Tell whether a text is a date-time in the sense of ``format: date-time``."""
    return _parsed(_loose(text)) is not None


def date(text: str) -> Timestamp:
    """Return the timestamp of a string with ``format: date`` (midnight UTC)."""
    found = _parsed(_loose(f"{text}T00:00:00Z")) if len(text) == 10 else None
    if found is None:
        raise CelEvaluationError(f"Invalid date formatted string {text}: cannot parse")
    return instant(found)


def _parsed(found: re.Match[str] | None) -> int | None:
    if found is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    try:
        when = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second), tzinfo=_zone_of(zone))
    except ValueError:
        return None
    elapsed = when - _EPOCH
    return (elapsed.days * 86400 + elapsed.seconds) * SECOND + int((fraction or "0").ljust(9, "0")[:9])


def _zone_of(zone: str | None) -> timezone:
    if zone is None or zone in "Zz":
        return UTC
    minutes = int(zone[1:3]) * 60 + int(zone[-2:])
    return timezone(timedelta(minutes=-minutes if zone[0] == "-" else minutes))


def duration_text(value: Duration) -> str:
    """Return a duration as CEL's string() prints it: seconds."""
    nanos = abs(value.nanos)
    sign = "-" if value.nanos < 0 else ""
    whole, rest = divmod(nanos, SECOND)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{sign}{whole}{fraction}s"


def timestamp_text(value: Timestamp) -> str:
    """Return a timestamp as CEL's string() prints it: RFC 3339 in UTC, decimals as needed."""
    seconds, rest = divmod(value.nanos, SECOND)
    when = _EPOCH + timedelta(seconds=seconds)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{when.year:04d}-{when:%m-%dT%H:%M:%S}{fraction}Z"


def calendar(value: Timestamp, zone: str = "") -> datetime:
    """Return a timestamp as a calendar sees it, in UTC or in a time zone (``Europe/Berlin``, ``+01:00``)."""
    when = _EPOCH + timedelta(seconds=value.nanos // SECOND)
    return when.astimezone(_zone(zone)) if zone and zone != "UTC" else when


def _zone(name: str) -> tzinfo:
    found = _offset(name)
    if found:
        minutes = int(found.group(2)) * 60 + int(found.group(3))
        return timezone(timedelta(minutes=-minutes if found.group(1) == "-" else minutes))
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise CelEvaluationError(f"unknown time zone {name}") from None


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
