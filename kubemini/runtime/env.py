"""The one place to ask for time, chance and ids.

In a served cluster the clock is the wall clock and the seed is drawn once from the operating system. In the simulation
the clock is the virtual loop's, offset by an epoch, and everything random follows from the seed: same seed, same
trace.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache

SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
EPOCH = 1_767_225_600.0
"""Where virtual time starts: 2026-01-01T00:00:00Z, in Unix seconds."""
_LETTERS = float(len(SUFFIX_ALPHABET))
_VARIANT = {f"{digit:x}": "89ab"[digit & 3] for digit in range(16)}
"""The digit of a UUID two bits of which name the variant of RFC 4122; the one of the version is always 4."""


class Env:
    """Clock, random source and ids of one cluster."""

    def __init__(self, *, seed: int = 0, clock: Callable[[], float] | None = None) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self._clock = clock or time.time
        self._stamped = (-1, "")
        self._nanos = 0

    @classmethod
    def fresh(cls) -> Env:
        """Return a real-time environment whose seed the operating system draws."""
        return cls(seed=int.from_bytes(os.urandom(8), "big"))

    @classmethod
    def virtual(cls, loop: asyncio.AbstractEventLoop, seed: int) -> Env:
        """Return the environment of a simulation on a virtual-time loop."""
        return cls(seed=seed, clock=lambda: EPOCH + loop.time())

    def now(self) -> float:
        """Return the time in Unix seconds."""
        return self._clock()

    def stamp(self) -> str:
        """Return the time as metav1.Time prints it: RFC 3339, UTC, whole seconds (truncated)."""
        second = int(self._clock())
        if self._stamped[0] != second:
            self._stamped = (second, to_stamp(second))
        return self._stamped[1]

    def stamp_micro(self) -> str:
        """Return the time as metav1.MicroTime prints it: always six decimals."""
        now = self._clock()
        second = int(now)
        micros = round((now - second) * 1e6)
        if micros == 1_000_000:
            second, micros = second + 1, 0
        if self._stamped[0] != second:
            self._stamped = (second, to_stamp(second))
        return f"{self._stamped[1][:-1]}.{micros:06d}Z"

    def nanos(self) -> int:
        """Return the time in Unix nanoseconds, later than at every call before: what is named after it has a name of its own, in order."""
        self._nanos = max(int(self._clock() * 1e9), self._nanos + 1)
        return self._nanos

    def uid(self) -> str:
        """Return a random UUIDv4."""
        text = f"{self.random.getrandbits(128):032x}"
        return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{_VARIANT[text[16]]}{text[17:20]}-{text[20:]}"

    def suffix(self, length: int = 5) -> str:
        """Return a random suffix of the alphabet that the API server uses for generateName."""
        draw = self.random.random
        return "".join([SUFFIX_ALPHABET[int(draw() * _LETTERS)] for _ in range(length)])

    async def sleep(self, seconds: float) -> None:
        """Wait on the event loop, in virtual time where the loop is virtual."""
        await asyncio.sleep(seconds)


def to_stamp(unix: float) -> str:
    """Return a Unix time as metav1.Time prints it.

    >>> to_stamp(0)
    '1970-01-01T00:00:00Z'
    """
    return _to_stamp(int(unix))


@lru_cache(maxsize=256)
def _to_stamp(unix: int) -> str:
    return datetime.fromtimestamp(int(unix), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


_PARSED: dict[str, float] = {}


def from_stamp(stamp: str) -> float:
    """Return the Unix seconds of an RFC 3339 text, with or without decimals and offset. Raise ValueError otherwise.

    >>> from_stamp("1970-01-01T00:01:00Z")
    60.0
    """
    found = _PARSED.get(stamp)
    if found is None:
        found = datetime.fromisoformat(stamp).timestamp()
        if len(_PARSED) > 4096:
            _PARSED.clear()
        _PARSED[stamp] = found
    return found
