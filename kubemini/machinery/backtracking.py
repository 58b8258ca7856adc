"""Which patterns can keep Python's `re` busy for longer than anybody lives: ``^(a+)+$`` on a long text that does not match."""

from __future__ import annotations

from collections.abc import Iterable
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, Final

MANY: Final = 8
"""A repetition of so many rounds can be slow when what it repeats can be read in several ways."""


def suspicious(pattern: str) -> bool:
    """Tell whether `re` might back-track without end: something that can be read in several ways is repeated."""
    return any(_repeats_choices(item) for item in parser.parse(pattern))


def _parts(item: tuple[Any, Any]) -> Iterable[Any]:
    code, value = item
    if code in (op.MAX_REPEAT, op.MIN_REPEAT):
        return tuple(value[2])
    if code is op.SUBPATTERN:
        return tuple(value[3])
    if code is op.BRANCH:
        return tuple(each for branch in value[1] for each in branch)
    return ()


def _repeats_choices(item: tuple[Any, Any]) -> bool:
    if item[0] in (op.MAX_REPEAT, op.MIN_REPEAT) and item[1][1] > MANY and any(_chooses(each) for each in item[1][2]):
        return True
    return any(_repeats_choices(each) for each in _parts(item))


def _chooses(item: tuple[Any, Any]) -> bool:
    code, value = item
    return code is op.BRANCH or (code in (op.MAX_REPEAT, op.MIN_REPEAT) and value[0] != value[1]) or any(_chooses(each) for each in _parts(item))
