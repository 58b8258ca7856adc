"""Cron schedules: what parses, what is refused with which text, and when the next run is due."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

import pytest

from kubemini.machinery.cron import CronError, parse


def at(text: str, zone: tzinfo = UTC) -> float:
    """Return the Unix time of a local time."""
    return datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()


def runs(schedule: str, after: str, count: int, zone: tzinfo = UTC) -> list[str]:
    """Return the next local run times."""
    parsed, moment, found = parse(schedule), at(after, zone), []
    for _ in range(count):
        following = parsed.next(moment, zone)
        assert following is not None
        moment = following
        found.append(datetime.fromtimestamp(moment, zone).isoformat(sep=" ", timespec="minutes"))
    return found


@pytest.mark.parametrize(
    "text,message",
    [
        ("", "empty spec string"),
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("* * * * * *", "expected exactly 5 fields, found 6: [* * * * * *]"),
        ("61 * * * *", "end of range (61) above maximum (59): 61"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
        ("5-3 * * * *", "beginning of range (5) beyond end of range (3): 5-3"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("x * * * *", 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'),
        ("-1 * * * *", 'failed to parse int from : strconv.Atoi: parsing "": invalid syntax'),
        (
            "9223372036854775808 * * * *",
            'failed to parse int from 9223372036854775808: strconv.Atoi: parsing "9223372036854775808": value out of range',
        ),
        ("@sometimes", "unrecognized descriptor: @sometimes"),
        ("@every x", 'failed to parse duration @every x: time: invalid duration "x"'),
        ("CRON_TZ=Mars/Base * * * * *", "provided bad location Mars/Base: unknown time zone Mars/Base"),
    ],
)
def test_refusals(text: str, message: str) -> None:
    """A text that is no schedule is refused with the text of the parser that Kubernetes uses."""
    with pytest.raises(CronError) as error:
        parse(text)
    assert str(error.value) == message


@pytest.mark.parametrize(
    "schedule,expected",
    [
        ("*/20 * * * *", ["2026-01-01 10:20", "2026-01-01 10:40", "2026-01-01 11:00"]),
        ("5/30 10 * * *", ["2026-01-01 10:05", "2026-01-01 10:35", "2026-01-02 10:05"]),
        ("0 0 29 2 *", ["2028-02-29 00:00"]),
        ("0 12 1,15 JAN-feb *", ["2026-01-01 12:00", "2026-01-15 12:00", "2026-02-01 12:00", "2026-02-15 12:00", "2027-01-01 12:00"]),
        ("30 8 * * mon", ["2026-01-05 08:30", "2026-01-12 08:30"]),
        ("0 0 13 * 5", ["2026-01-02 00:00", "2026-01-09 00:00", "2026-01-13 00:00", "2026-01-16 00:00"]),
        ("0 0 ? * 5", ["2026-01-02 00:00", "2026-01-09 00:00"]),
        ("0 0 */2 * 5", ["2026-01-02 00:00", "2026-01-03 00:00", "2026-01-05 00:00", "2026-01-07 00:00"]),
        ("@daily", ["2026-01-02 00:00", "2026-01-03 00:00"]),
        ("@weekly", ["2026-01-04 00:00"]),
    ],
)
def test_runs(schedule: str, expected: list[str]) -> None:
    """Days of month and of week are both asked when one is a star (a step is none), and either is enough otherwise."""
    assert [each.removesuffix("+00:00") for each in runs(schedule, "2026-01-01 10:00", len(expected))] == expected


def test_a_schedule_that_never_comes() -> None:
    """The 30th of February is not due in five years, so never."""
    assert parse("0 0 30 2 *").next(at("2026-01-01")) is None


def test_every() -> None:
    """`@every` counts whole seconds from the time asked, at least one."""
    assert parse("@every 1m30s").next(100.7) == 190.0
    assert parse("@every 10ms").next(5.0) == 6.0


def test_a_skipped_hour_is_not_due() -> None:
    """02:30 does not exist on the day when the clock goes forward."""
    berlin = ZoneInfo("Europe/Berlin")
    assert runs("30 2 * * *", "2026-03-28 12:00", 2, berlin) == ["2026-03-30 02:30+02:00", "2026-03-31 02:30+02:00"]
    assert runs("0 * * * *", "2026-03-29 00:30", 3, berlin) == ["2026-03-29 01:00+01:00", "2026-03-29 03:00+02:00", "2026-03-29 04:00+02:00"]


def test_a_repeated_hour_is_due_twice() -> None:
    """02:30 comes twice on the day when the clock goes back."""
    found = runs("30 2 * * *", "2026-10-24 12:00", 3, ZoneInfo("Europe/Berlin"))
    assert found == ["2026-10-25 02:30+02:00", "2026-10-25 02:30+01:00", "2026-10-26 02:30+01:00"]


def test_a_zone_in_front_of_the_schedule() -> None:
    """A zone in the text counts instead of the one asked with."""
    parsed = parse("TZ=Asia/Tokyo 0 9 * * *")
    assert parsed.zone == "Asia/Tokyo"
    assert parsed.next(at("2026-01-01 01:00"), ZoneInfo("Europe/Berlin")) == at("2026-01-02 00:00")
