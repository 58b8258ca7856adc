"""Cron schedules: the five fields, the ``@`` descriptors, and when they are due next.

CronJob validation answers with the texts of this parser, and the CronJob controller asks it for the next run. Mirrors
the dialect of ``github.com/robfig/cron/v3`` (its ``ParseStandard``), which Kubernetes uses: ``?`` is ``*``, day of week is
0-6 from Sunday without a 7, and a schedule with both a day of month and a day of week is due on either.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from kubemini.machinery import duration
from kubemini.machinery.errors import shown

_MONTHS: Final = {name: index for index, name in enumerate(["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], 1)}
_DAYS: Final = {name: index for index, name in enumerate(["sun", "mon", "tue", "wed", "thu", "fri", "sat"])}
_DESCRIPTORS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_YEARS_TO_SEARCH: Final = 5


class CronError(ValueError):
    """A text is no schedule; the message is upstream's."""


@dataclass(frozen=True, slots=True)
class _Bounds:
    low: int
    high: int
    names: dict[str, int]


_FIELDS: Final = (_Bounds(0, 59, {}), _Bounds(0, 23, {}), _Bounds(1, 31, {}), _Bounds(1, 12, _MONTHS), _Bounds(0, 6, _DAYS))


@dataclass(frozen=True, slots=True)
class Schedule:
    """When something is due: on minutes of the calendar, or `every` so many seconds when that is not 0."""

    minutes: tuple[int, ...] = ()
    hours: tuple[int, ...] = ()
    days: frozenset[int] = frozenset()
    months: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()
    """0 is Sunday."""
    any_day: bool = True
    """Whether one of the two day fields is a star, so that a day must be in both; otherwise one of them is enough."""
    every: int = 0
    zone: str = ""
    """The time zone written in front of the schedule (``CRON_TZ=…``), which only old CronJobs may have; "" = none."""

    def next(self, after: float, zone: tzinfo = UTC) -> float | None:
        """Return the first moment after `after` (both in Unix seconds) that is due, or None when there is none in five years.

        Calendar fields are read in `zone`. A local time that a clock change skips is not due that day; one that it repeats is due twice.
        """
        if self.every:
            return float(int(after) + self.every)
        if self.zone:
            zone = ZoneInfo(self.zone)
        day = datetime.fromtimestamp(after, zone).date()
        last_year = day.year + _YEARS_TO_SEARCH
        while day.year <= last_year:
            if day.month not in self.months:
                day = date(day.year + day.month // 12, day.month % 12 + 1, 1)
                continue
            if self._falls_on(day):
                for moment in self._moments(day, zone):
                    if moment > after:
                        return moment
            day += timedelta(days=1)
        return None

    def _falls_on(self, day: date) -> bool:
        of_month, of_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return (of_month and of_week) if self.any_day else (of_month or of_week)

    def _moments(self, day: date, zone: tzinfo) -> Iterator[float]:
        """Yield the due moments of a local day in order."""
        start, end = _midnight(day, zone), _midnight(day + timedelta(days=1), zone)
        if end - start == 86_400:
            for hour in self.hours:
                for minute in self.minutes:
                    yield start + 3600.0 * hour + 60.0 * minute
            return
        moment = start
        while moment < end:
            local = datetime.fromtimestamp(moment, zone)
            if local.hour in self.hours and local.minute in self.minutes:
                yield moment
            moment += 60


def _midnight(day: date, zone: tzinfo) -> float:
    return datetime(day.year, day.month, day.day, tzinfo=zone).timestamp()


def parse(text: str) -> Schedule:
    """Return the schedule of a text. Raise `CronError`.

    >>> parse("*/15 9-10 * * MON").hours
    (9, 10)
    >>> parse("@every 90s").every
    90
    """
    if not text:
        raise CronError("empty spec string")
    zone = ""
    if text.startswith(("TZ=", "CRON_TZ=")):
        prefix, space, text = text.partition(" ")
        if not space:
            raise CronError("invalid schedule format: runtime error: slice bounds out of range [:-1]")
        zone, text = prefix.partition("=")[2], text.strip()
        if zone and load_zone(zone) is None:
            raise CronError(f"provided bad location {zone}: unknown time zone {zone}")
    if text.startswith("@"):
        if text.startswith("@every "):
            return Schedule(every=_every(text), zone=zone)
        if text not in _DESCRIPTORS:
            raise CronError(f"unrecognized descriptor: {text}")
        text = _DESCRIPTORS[text]
    fields = text.split()
    if len(fields) != len(_FIELDS):
        raise CronError(f"expected exactly {len(_FIELDS)} fields, found {len(fields)}: [{' '.join(fields)}]")
    parsed = [_field(field, bounds) for field, bounds in zip(fields, _FIELDS, strict=True)]
    (minutes, _), (hours, _), (days, any_day), (months, _), (weekdays, any_weekday) = parsed
    return Schedule(
        tuple(sorted(minutes)), tuple(sorted(hours)), frozenset(days), frozenset(months), frozenset(weekdays), any_day or any_weekday, zone=zone
    )


def load_zone(name: str) -> tzinfo | None:
    """Return an IANA time zone, or None for an unknown name; names are case-sensitive."""
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        return None


def _every(text: str) -> int:
    try:
        nanoseconds = duration.parse(text.removeprefix("@every "))
    except duration.DurationError as error:
        raise CronError(f"failed to parse duration {text}: {error}") from None
    return max(nanoseconds // duration.SECOND, 1)


def _field(text: str, bounds: _Bounds) -> tuple[set[int], bool]:
    """Return the values of one field, and whether it holds a star."""
    values: set[int] = set()
    star = False
    for part in filter(None, text.split(",")):
        low, high, step, is_star = _range(part, bounds)
        values.update(range(low, high + 1, step))
        star = star or is_star
    return values, star


def _range(part: str, bounds: _Bounds) -> tuple[int, int, int, bool]:
    """Return first, last and step of one ``*``, ``a``, ``a-b``, with ``/step`` or without, and whether it is a star."""
    limits_and_step = part.split("/")
    limits = limits_and_step[0].split("-")
    star = limits[0] in {"*", "?"}
    if star:
        low, high = bounds.low, bounds.high
    else:
        low = _number(limits[0], bounds.names)
        if len(limits) > 2:
            raise CronError(f"too many hyphens: {part}")
        high = _number(limits[1], bounds.names) if len(limits) == 2 else low
    if len(limits_and_step) > 2:
        raise CronError(f"too many slashes: {part}")
    step = 1
    if len(limits_and_step) == 2:
        step = _number(limits_and_step[1], {})
        if len(limits) == 1:
            high = bounds.high
        star = star and step <= 1
    if low < bounds.low:
        raise CronError(f"beginning of range ({low}) below minimum ({bounds.low}): {part}")
    if high > bounds.high:
        raise CronError(f"end of range ({high}) above maximum ({bounds.high}): {part}")
    if low > high:
        raise CronError(f"beginning of range ({low}) beyond end of range ({high}): {part}")
    if step == 0:
        raise CronError(f"step of range should be a positive number: {part}")
    return low, high, step, star


def _number(text: str, names: dict[str, int]) -> int:
    named = names.get(text.lower())
    if named is not None:
        return named
    digits = text[1:] if text[:1] in {"+", "-"} else text
    if not (digits.isascii() and digits.isdigit()):
        raise CronError(f"failed to parse int from {text}: strconv.Atoi: parsing {shown(text)}: invalid syntax")
    value = int(text)
    if not -(2**63) <= value < 2**63:
        raise CronError(f"failed to parse int from {text}: strconv.Atoi: parsing {shown(text)}: value out of range")
    if value < 0:
        raise CronError(f"negative number ({value}) not allowed: {text}")
    return value
