"""Sets of completion indexes and their text form (``1,3-5,7``)."""

from __future__ import annotations

from collections.abc import Iterable


def parse(text: str | None, limit: int | None = None) -> list[int]:
    """Return the indexes of a text, ascending; those at or above `limit` are left out.

    >>> parse("0,1,3-5"), parse("0-9", 3), parse(None)
    ([0, 1, 3, 4, 5], [0, 1, 2], [])
    """
    found: list[int] = []
    for part in (text or "").split(","):
        if not part:
            continue
        first, dash, last = part.partition("-")
        low = int(first)
        high = int(last) if dash else low
        if limit is not None:
            high = min(high, limit - 1)
        found.extend(range(low, high + 1))
    return found


def size(text: str | None, limit: int | None = None) -> int:
    """Return how many indexes a text names, without listing them; those at or above `limit` do not count.

    >>> size("0,1,3-5"), size("0-99999"), size(""), size("0,2-5,7", 4)
    (5, 100000, 0, 3)
    """
    count = 0
    for part in (text or "").split(","):
        if part:
            first, dash, last = part.partition("-")
            low, high = int(first), int(last) if dash else int(first)
            count += max((high if limit is None else min(high, limit - 1)) - low + 1, 0)
    return count


def text(indexes: Iterable[int]) -> str:
    """Return the canonical text of ascending, distinct indexes: runs of three and more as ``a-b``, runs of two as ``a,b``.

    >>> text([0, 1, 3, 4, 5, 7])
    '0,1,3-5,7'
    """
    parts: list[str] = []
    start = last = None
    for index in indexes:
        if last is not None and index == last + 1:
            last = index
            continue
        if start is not None and last is not None:
            parts.append(_run(start, last))
        start = last = index
    if start is not None and last is not None:
        parts.append(_run(start, last))
    return ",".join(parts)


def _run(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"
