"""Parts of timestamps and durations (cel-go ``common/stdlib``)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from kubemini.machinery.cel import times
from kubemini.machinery.cel.overloads import declare_overload, function
from kubemini.machinery.cel.values import Duration, Timestamp


def _part(read: Callable[[datetime], int]) -> Callable[..., int]:
    def part(when: Timestamp, zone: str = "") -> int:
        return read(times.calendar(when, zone))

    return part


for _name, _id, _read in (
    ("getFullYear", "year", lambda when: when.year),
    ("getMonth", "month", lambda when: when.month - 1),
    ("getDayOfYear", "day_of_year", lambda when: when.timetuple().tm_yday - 1),
    ("getDayOfMonth", "day_of_month", lambda when: when.day - 1),
    ("getDate", "day_of_month_1_based", lambda when: when.day),
    ("getDayOfWeek", "day_of_week", lambda when: when.isoweekday() % 7),
    ("getHours", "hours", lambda when: when.hour),
    ("getMinutes", "minutes", lambda when: when.minute),
    ("getSeconds", "seconds", lambda when: when.second),
):
    declare_overload(f"(timestamp).{_name}() -> int", f"timestamp_to_{_id}", _part(_read))
    declare_overload(f"(timestamp).{_name}(string) -> int", f"timestamp_to_{_id}_with_tz", _part(_read))


@function("(timestamp).getMilliseconds() -> int", "timestamp_to_milliseconds")
@function("(timestamp).getMilliseconds(string) -> int", "timestamp_to_milliseconds_with_tz")
def milliseconds(when: Timestamp, zone: str = "") -> int:
    """Return the thousandths of the second."""
    times.calendar(when, zone)
    return when.nanos % times.SECOND // 10**6


@function("(duration).getHours() -> int", "duration_to_hours")
def duration_hours(span: Duration) -> int:
    """Return whole hours."""
    return _whole(span, 3600 * times.SECOND)


@function("(duration).getMinutes() -> int", "duration_to_minutes")
def duration_minutes(span: Duration) -> int:
    """Return whole minutes."""
    return _whole(span, 60 * times.SECOND)


@function("(duration).getSeconds() -> int", "duration_to_seconds")
def duration_seconds(span: Duration) -> int:
    """Return whole seconds."""
    return _whole(span, times.SECOND)


@function("(duration).getMilliseconds() -> int", "duration_to_milliseconds")
def duration_milliseconds(span: Duration) -> int:
    """Return whole milliseconds."""
    return _whole(span, 10**6)


def _whole(span: Duration, unit: int) -> int:
    whole = abs(span.nanos) // unit
    return -whole if span.nanos < 0 else whole
