"""Human durations as the columns of `kubectl get` show them (Age, Duration, Last Seen).

Mirrors apimachinery's ``pkg/util/duration`` (1.36).
"""

from __future__ import annotations


def human_duration(seconds: float) -> str:
    """Return a duration with two or three significant figures.

    >>> [human_duration(each) for each in (90, 330, 600, 3 * 3600 + 300, 20 * 3600, 76 * 3600, 800 * 86400)]
    ['90s', '5m30s', '10m', '3h5m', '20h', '3d4h', '2y70d']
    >>> human_duration(-0.5), human_duration(-5)
    ('0s', '<invalid>')
    """
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 0:
        return "0s"
    if whole < 120:
        return f"{whole}s"
    minutes = whole // 60
    if minutes < 10:
        return _two(minutes, "m", whole % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    hours = whole // 3600
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    days = hours // 24
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 2 * 365:
        return f"{days}d"
    years = days // 365
    return _two(years, "y", days % 365, "d") if years < 8 else f"{years}y"


def short_human_duration(seconds: float) -> str:
    """Return a duration with one unit only.

    >>> short_human_duration(59), short_human_duration(3599), short_human_duration(3600)
    ('59s', '59m', '1h')
    """
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    for limit, unit, letter in ((60, 1, "s"), (3600, 60, "m"), (86400, 3600, "h"), (365 * 86400, 86400, "d")):
        if whole < limit:
            return f"{max(whole, 0) // unit}{letter}"
    return f"{whole // (365 * 86400)}y"


def age(created: float | None, now: float) -> str:
    """Return the Age cell of an object created at a Unix time; ``<unknown>`` without one."""
    return "<unknown>" if created is None else human_duration(now - created)


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    """Return two units, the smaller one only when it counts."""
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"
