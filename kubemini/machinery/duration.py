"""Go durations (``1h30m``, ``250ms``), as ``metav1.Duration`` fields and flags hold them.

Values are integers of nanoseconds. Mirrors ``time.ParseDuration`` and ``Duration.String`` of Go's standard library.
"""

from __future__ import annotations

import re
from fractions import Fraction

NANOSECOND = 1
MICROSECOND = 1000
MILLISECOND = 10**6
SECOND = 10**9
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE

_UNITS = {"ns": 1, "us": MICROSECOND, "µs": MICROSECOND, "μs": MICROSECOND, "ms": MILLISECOND, "s": SECOND, "m": MINUTE, "h": HOUR}
_MAX = 2**63 - 1
_part = re.compile(r"([0-9]*)(\.?)([0-9]*)([^0-9.]*)").match


class DurationError(ValueError):
    """A text is no Go duration; the message is Go's."""


def parse(text: str) -> int:
    """Return a duration in nanoseconds. Raise `DurationError`.

    >>> parse("1h15m30.918s") / SECOND
    4530.918
    >>> parse("-1.5m") // SECOND, parse("0")
    (-90, 0)
    """
    rest = text[1:] if text[:1] in {"-", "+"} else text
    if rest == "0":
        return 0
    if not rest:
        raise DurationError(f"time: invalid duration {_quoted(text)}")
    total = 0
    while rest:
        found = _part(rest)
        assert found is not None
        whole, point, fraction, unit = found.groups()
        if not whole and not fraction:
            raise DurationError(f"time: invalid duration {_quoted(text)}")
        if not unit:
            raise DurationError(f"time: missing unit in duration {_quoted(text)}")
        if unit not in _UNITS:
            raise DurationError(f"time: unknown unit {_quoted(unit)} in duration {_quoted(text)}")
        total += int((int(whole or 0) + (Fraction(int(fraction), 10 ** len(fraction)) if point and fraction else 0)) * _UNITS[unit])
        rest = rest[found.end() :]
    if total > _MAX + text.startswith("-"):
        raise DurationError(f"time: invalid duration {_quoted(text)}")
    return -total if text.startswith("-") else total


def seconds(text: str) -> float:
    """Return a duration in seconds.

    >>> seconds("2m30s"), seconds("100ms")
    (150.0, 0.1)
    """
    return parse(text) / SECOND


def asked(key: str, text: str) -> float:
    """Return the seconds that an annotation asks for: a duration, or a bare number of seconds. Raise ValueError, which names the key and the mend.

    >>> asked("example.com/after", "1.5"), asked("example.com/after", "1m")
    (1.5, 60.0)
    """
    try:
        found = float(text) if text.replace(".", "", 1).isdigit() else seconds(text)
    except ValueError:
        raise ValueError(f'{key}: "{text}" must be a duration such as 30s, 1m30s or 500ms') from None
    if found < 0:
        raise ValueError(f'{key}: "{text}" must not be negative')
    return found


def shown(nanoseconds: int) -> str:
    """Return a duration as Go and metav1.Duration print it.

    >>> shown(90 * SECOND), shown(0), shown(1500 * MICROSECOND), shown(3 * HOUR), shown(-SECOND // 4)
    ('1m30s', '0s', '1.5ms', '3h0m0s', '-250ms')
    """
    sign, size = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if size < SECOND:
        for unit, name in ((MILLISECOND, "ms"), (MICROSECOND, "µs"), (1, "ns")):
            if size >= unit:
                return f"{sign}{_decimal(size, unit)}{name}"
        return "0s"
    minutes, rest = divmod(size, MINUTE)
    text = f"{_decimal(rest, SECOND)}s"
    if minutes:
        hours, minutes = divmod(minutes, 60)
        text = f"{hours}h{minutes}m{text}" if hours else f"{minutes}m{text}"
    return sign + text


def canonical(text: str) -> str:
    """Return a duration as metav1.Duration writes it back.

    >>> canonical("90m")
    '1h30m0s'
    """
    return shown(parse(text))


def _decimal(value: int, unit: int) -> str:
    """Return value/unit without trailing zeros; `unit` is a power of ten."""
    whole, rest = divmod(value, unit)
    return f"{whole}.{str(rest).zfill(len(str(unit)) - 1).rstrip('0')}" if rest else str(whole)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
