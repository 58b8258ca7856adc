"""Sets of completion indexes as Jobs write them: ``"0,2-5,7"``.

Mirrors the index rules of ``pkg/apis/batch/validation`` (1.36); the texts of `MalformedIndexes` are what the API answers.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubemini.machinery.errors import shown


class MalformedIndexes(ValueError):
    """An index string that breaks the format; the message is upstream's."""


def intervals(text: str, completions: int) -> Iterator[tuple[int, int]]:
    """Yield the closed intervals of an index string, in order; raise `MalformedIndexes` at the first fault.

    >>> list(intervals("0,2-4", 5))
    [(0, 0), (2, 4)]
    """
    previous: int | None = None
    for part in text.split(",") if text else ():
        low, high = interval(part, completions)
        if previous is not None and previous >= low:
            raise MalformedIndexes(f"non-increasing order, previous: {previous}, current: {low}")
        previous = high
        yield low, high


def count_indexes(text: str, completions: int) -> int:
    """Return how many indexes a string lists; raise `MalformedIndexes`."""
    return sum(high - low + 1 for low, high in intervals(text, completions))


def interval(part: str, completions: int) -> tuple[int, int]:
    """Return one ``a`` or ``a-b`` as a closed interval; raise `MalformedIndexes`."""
    limits = part.split("-")
    if len(limits) > 2:
        raise MalformedIndexes(
            f"the fragment {shown(part)} violates the requirement that an index interval can have at most two parts separated by '-'"
        )
    low = _index(limits[0], completions)
    if len(limits) == 1:
        return low, low
    high = _index(limits[1], completions)
    if low >= high:
        raise MalformedIndexes(f"non-increasing order, previous: {low}, current: {high}")
    return low, high


def _index(text: str, completions: int) -> int:
    if not (text.isascii() and text.removeprefix("+").isdecimal()):
        raise MalformedIndexes(f"cannot convert string to integer for index: {shown(text)}")
    value = int(text)
    if value >= completions:
        raise MalformedIndexes(f"too large index: {shown(text)}")
    return value


def overlap(completed: str, failed: str, completions: int) -> int | None:
    """Return the lowest index that is in both strings, or None; parts that cannot be read are passed over (their format is checked elsewhere)."""
    left, right = _readable(completed, completions), _readable(failed, completions)
    one, other = next(left, None), next(right, None)
    while one is not None and other is not None:
        if one[0] <= other[1] and other[0] <= one[1]:
            return max(one[0], other[0])
        if one[0] <= other[0]:
            one = next(left, None)
        else:
            other = next(right, None)
    return None


def _readable(text: str, completions: int) -> Iterator[tuple[int, int]]:
    for part in text.split(",") if text else ():
        try:
            yield interval(part, completions)
        except MalformedIndexes:
            continue
