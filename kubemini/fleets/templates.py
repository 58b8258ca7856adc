"""Texts with the number of a node in them: ``{i}``, ``{i//4}`` (which four) and ``{i%4}`` (which of the four)."""

from __future__ import annotations

import re
from collections.abc import Callable

_places = re.compile(r"\{i\s*(?:(//|%)\s*(\d+))?\s*\}")


def has_place(text: str) -> bool:
    """Tell whether the text depends on the node's number."""
    return _places.search(text) is not None


def stem(text: str) -> str:
    """Return the text without its places, as a name for the whole group.

    >>> stem("h100-r{i//4}-n{i%4}")
    'h100-r-n'
    """
    return re.sub(r"[-.]{2,}", "-", _places.sub("", text)).strip("-.")


def filler(text: str) -> Callable[[int], str]:
    """Return a function from a node's number to the text. Raise ValueError where it divides by zero.

    >>> [filler("rack-{i//2}-{i % 2}")(i) for i in range(4)]
    ['rack-0-0', 'rack-0-1', 'rack-1-0', 'rack-1-1']
    """
    pieces: list[Callable[[int], str]] = []
    end = 0
    for place in _places.finditer(text):
        pieces.append(_constant(text[end : place.start()]))
        pieces.append(_place(place[1], place[2], place[0]))
        end = place.end()
    if not pieces:
        return _constant(text)
    pieces.append(_constant(text[end:]))
    return lambda number: "".join([piece(number) for piece in pieces])


def _constant(text: str) -> Callable[[int], str]:
    return lambda _: text


def _place(operator: str | None, operand: str | None, shown: str) -> Callable[[int], str]:
    if operand is None:
        return str
    by = int(operand)
    if not by:
        raise ValueError(f"{shown} divides by zero")
    if operator == "//":
        return lambda number: str(number // by)
    return lambda number: str(number % by)
