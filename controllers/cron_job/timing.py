"""When a CronJob is due: which missed run to make up for, and when to look again. Pure functions of one CronJob and the time (Unix seconds)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from kubemini.api.trees import Tree
from kubemini.machinery.cron import Schedule, load_zone, parse
from kubemini.runtime.env import from_stamp

MANY = 100
"""More missed runs than these are worth a warning."""
LATE = 0.1
"""Seconds after a scheduled time at which it is looked at."""


class TimingError(ValueError):
    """A schedule or zone that nothing can be started by; the message is upstream's."""


@dataclass(frozen=True, slots=True)
class Missed:
    """What was missed since `earliest`: the `latest` run (None: none), and whether there were none, a few or many."""

    earliest: float
    latest: float | None = None
    count: int = 0


@dataclass(frozen=True, slots=True)
class Timetable:
    """A schedule in its zone."""

    schedule: Schedule
    zone: tzinfo = UTC

    @classmethod
    def of(cls, spec: Tree) -> Timetable:
        """Read a CronJob's schedule and time zone. Raise `CronError`."""
        zone = load_zone(spec["timeZone"]) if spec.get("timeZone") else None
        return cls(parse(spec["schedule"]), zone or UTC)

    def next(self, after: float) -> float:
        """Return the first run after a time. Raise `TimingError` when there is none."""
        found = self.schedule.next(after, self.zone)
        if found is None:
            raise TimingError("time difference between two schedules is less than 1 second")
        return found

    def stamp(self, moment: float) -> str:
        """Return a time as RFC 3339 in the zone of the schedule."""
        text = datetime.fromtimestamp(moment, self.zone).isoformat(timespec="seconds")
        return text.replace("+00:00", "Z")


def missed(cron_job: Tree, table: Timetable, now: float, *, deadline: bool) -> Missed:
    """Return what was missed until now, since the last run or the creation; with `deadline` only what may still be started. Raise `TimingError`."""
    earliest = from_stamp((cron_job.get("status") or {}).get("lastScheduleTime") or cron_job["metadata"]["creationTimestamp"])
    limit = cron_job["spec"].get("startingDeadlineSeconds")
    if deadline and limit is not None:
        earliest = max(earliest, now - limit)
    first = table.next(earliest)
    if now < first:
        return Missed(earliest)
    second = table.next(first)
    if now < second:
        return Missed(earliest, first, 1)
    gap = round(second - first)
    if gap < 1:
        raise TimingError("time difference between two schedules is less than 1 second")
    # The gap of the first two runs tells about how many were missed, and where to begin the search for the latest: where runs lie so far apart that the search
    # begins after all of them, none is made up for, as upstream
    count = int((now - first) // gap) + 1
    latest = None
    moment = table.next(first + (count - 2) * gap)
    while moment <= now:
        latest = moment
        moment = table.next(moment)
    return Missed(earliest, latest, count)


def wait(cron_job: Tree, table: Timetable, now: float) -> float:
    """Return in how many seconds the next run is due to be looked at; not positive when it is due."""
    try:
        found = missed(cron_job, table, now, deadline=False)
        base = found.latest if found.latest is not None else now if found.count else found.earliest
    except TimingError:
        base = now
    try:
        return table.next(base) + LATE - now
    except TimingError:
        # The pass says what is wrong
        return 0.0


def zone_problem(spec: Tree) -> str | None:
    """Return what is wrong with the time zone."""
    name = spec.get("timeZone")
    return f"unknown time zone {name}" if name and load_zone(name) is None else None


def rfc1123(moment: float) -> str:
    """Return a time as Go's RFC1123Z prints it, in UTC."""
    at = datetime.fromtimestamp(moment, UTC)
    day, month = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[at.weekday()], _MONTHS[at.month - 1]
    return f"{day}, {at.day:02} {month} {at.year} {at:%H:%M:%S} +0000"


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
