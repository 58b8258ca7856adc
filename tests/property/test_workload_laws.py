"""Laws of the parsers that workload kinds stand on: cron schedules and completion indexes."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from kubemini.machinery import cron
from kubemini.runtime.env import EPOCH
from kubemini.server.kinds.workloads.indexes import MalformedIndexes, count_indexes, intervals, overlap

ZONES = ("UTC", "Europe/Berlin", "America/Sao_Paulo", "Asia/Kolkata", "Australia/Lord_Howe")
DAY = 86_400


def field(low: int, high: int) -> st.SearchStrategy[str]:
    """Return texts of one field of a schedule."""
    number = st.integers(low, high)
    ranged = st.tuples(number, number).map(lambda pair: f"{min(pair)}-{max(pair)}")
    stepped = st.tuples(ranged | st.just("*"), st.integers(1, 9)).map(lambda pair: f"{pair[0]}/{pair[1]}")
    part = number.map(str) | ranged | stepped
    return st.just("*") | st.lists(part, min_size=1, max_size=3).map(",".join)


SCHEDULES = st.tuples(field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 6)).map(" ".join)


def is_due(schedule: cron.Schedule, moment: float, zone: ZoneInfo) -> bool:
    """Tell by the calendar alone whether a minute is due."""
    local = datetime.fromtimestamp(moment, zone)
    of_month, of_week = local.day in schedule.days, local.isoweekday() % 7 in schedule.weekdays
    day = (of_month and of_week) if schedule.any_day else (of_month or of_week)
    return day and local.month in schedule.months and local.hour in schedule.hours and local.minute in schedule.minutes


@given(SCHEDULES, st.integers(0, 365 * DAY), st.sampled_from(ZONES))
def test_the_next_run_is_the_first_minute_that_is_due(text: str, offset: int, name: str) -> None:
    """`next` answers with the first due minute after the time asked, in any zone, clock changes included."""
    schedule, zone, after = cron.parse(text), ZoneInfo(name), EPOCH + offset
    found = schedule.next(after, zone)
    minute = after - after % 60 + 60
    horizon = min(found if found is not None else minute + 2 * DAY, minute + 2 * DAY)
    while minute < horizon:
        assert not is_due(schedule, minute, zone)
        minute += 60
    if found is not None:
        assert found > after
        assert is_due(schedule, found, zone)


@given(st.text(max_size=12))
def test_texts_parse_or_are_refused(text: str) -> None:
    """Any text is a schedule or is refused as none; nothing else happens."""
    with suppress(cron.CronError):
        assert cron.parse(text) is not None


def written(indexes: set[int]) -> str:
    """Return the canonical text of some indexes: runs of three and more are ranges."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][-1] + 1 == index:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs)


INDEXES = st.sets(st.integers(0, 40))


@given(INDEXES)
def test_index_lists_read_back(indexes: set[int]) -> None:
    """The text of a set of indexes reads back as that set, and its size is counted."""
    text = written(indexes)
    read = {index for low, high in intervals(text, 41) for index in range(low, high + 1)}
    assert read == indexes
    assert count_indexes(text, 41) == len(indexes)


@given(INDEXES, INDEXES)
def test_overlap_is_the_lowest_common_index(one: set[int], other: set[int]) -> None:
    """Two lists overlap at their lowest common index, or nowhere."""
    assert overlap(written(one), written(other), 41) == min(one & other, default=None)


@given(st.text(alphabet="0123456789,-+ x", max_size=10), st.integers(0, 20))
def test_malformed_index_lists_are_refused(text: str, completions: int) -> None:
    """A list that is accepted rises strictly and stays below completions; any other is refused as such."""
    try:
        found = list(intervals(text, completions))
    except MalformedIndexes:
        return
    flat = [index for low, high in found for index in range(low, high + 1)]
    assert flat == sorted(set(flat))
    assert all(0 <= index < completions for index in flat)
