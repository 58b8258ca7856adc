"""Matching in linear time: what a pattern of RE2's dialect finds, without the back-tracking that makes Python's `re` take for ever on ``^(a+)+$``.

A pattern becomes a nondeterministic automaton (Thompson's construction over the parse tree of `re`), which is walked as a deterministic one whose states
are made when they are first met: from then on a character costs one lookup. Only whether something matches is told, not where.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, Final

MOST_PLACES: Final = 20_000
MOST_STATES: Final = 2_000
"""How many states are remembered before they are forgotten and made anew."""
MANY: Final = 8
"""A repetition of so many rounds can be slow when what it repeats can be read in several ways."""

Accepts = Callable[[str], bool]
"""Tells whether a place takes a character."""


class Unsupported(Exception):
    """A pattern says something that the automaton does not know (word boundaries, flags, too many places)."""


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


class Automaton:
    """A pattern, ready to be looked for. Raise `Unsupported`."""

    def __init__(self, pattern: str) -> None:
        tree = parser.parse(pattern)
        if tree.state.flags & ~re.UNICODE:
            raise Unsupported
        self._free: list[list[int]] = []
        """Places that are reached from each place without a character, …"""
        self._at_start: list[list[int]] = []
        self._at_end: list[list[int]] = []
        """… at the start of a text only, at its end only, …"""
        self._takes: list[tuple[Accepts, int] | None] = []
        """… and with one."""
        self._first = self._place()
        self._last = self._sequence(tree, self._first)
        self._forget()

    def found(self, text: str) -> bool:
        """Tell whether the pattern matches anywhere in a text. Time grows with the text's length only."""
        state = self._begin
        steps = self._steps
        if state in self._won:
            return True
        for character in text:
            following = steps[state].get(character)
            if following is None:
                following = self._step(state, character)
                steps = self._steps
            state = following
            if state in self._won:
                return True
        return self._last in self._closed(self._sets[state], start=not text, end=True)

    # ------------------------------------------------------------------ the deterministic side

    def _forget(self) -> None:
        self._sets: list[frozenset[int]] = []
        self._numbers: dict[frozenset[int], int] = {}
        self._steps: list[dict[str, int]] = []
        self._won: dict[int, None] = {}
        self._begin = self._state(self._closed([self._first], start=True))

    def _state(self, places: frozenset[int]) -> int:
        number = self._numbers.get(places)
        if number is None:
            number = self._numbers[places] = len(self._sets)
            self._sets.append(places)
            self._steps.append({})
            if self._last in places:
                self._won[number] = None
        return number

    def _step(self, state: int, character: str) -> int:
        places = self._sets[state]
        reached = [self._first]  # a match may begin anywhere
        reached += [taken[1] for place in sorted(places) if (taken := self._takes[place]) is not None and taken[0](character)]
        following = self._closed(reached)
        if len(self._sets) > MOST_STATES:
            self._forget()
            return self._state(following)
        number = self._state(following)
        self._steps[state][character] = number
        return number

    def _closed(self, places: Iterable[int], *, start: bool = False, end: bool = False) -> frozenset[int]:
        found = dict.fromkeys(places)
        waiting = list(found)
        while waiting:
            place = waiting.pop()
            free = [*self._free[place], *(self._at_start[place] if start else ()), *(self._at_end[place] if end else ())]
            for each in free:
                if each not in found:
                    found[each] = None
                    waiting.append(each)
        return frozenset(found)

    # ------------------------------------------------------------------ the construction

    def _place(self) -> int:
        if len(self._free) >= MOST_PLACES:
            raise Unsupported
        self._free.append([])
        self._at_start.append([])
        self._at_end.append([])
        self._takes.append(None)
        return len(self._free) - 1

    def _sequence(self, items: Iterable[Any], at: int) -> int:
        for item in items:
            at = self._item(item, at)
        return at

    def _item(self, item: tuple[Any, Any], at: int) -> int:
        code, value = item
        if code in (op.MAX_REPEAT, op.MIN_REPEAT):
            return self._repeated(value[0], value[1], value[2], at)
        if code is op.SUBPATTERN:
            if value[1] or value[2]:
                raise Unsupported  # flags of a group
            return self._sequence(value[3], at)
        after = self._place()
        if code is op.BRANCH:
            for branch in value[1]:
                before = self._place()
                self._free[at].append(before)
                self._free[self._sequence(branch, before)].append(after)
        elif code is op.AT:
            if value in (op.AT_BEGINNING, op.AT_BEGINNING_STRING):
                self._at_start[at].append(after)
            elif value is op.AT_END_STRING:
                self._at_end[at].append(after)
            else:
                raise Unsupported
        else:
            self._takes[at] = (_accepts(code, value), after)
        return after

    def _repeated(self, least: int, most: Any, items: Any, at: int) -> int:
        for _ in range(least):
            at = self._fenced(items, at)
        after = self._place()
        if most is op.MAXREPEAT:
            again = self._place()
            self._free[at].append(again)
            self._free[self._fenced(items, again)].append(again)
            self._free[again].append(after)
            return after
        for _ in range(most - least):
            self._free[at].append(after)
            at = self._fenced(items, at)
        self._free[at].append(after)
        return after

    def _fenced(self, items: Any, at: int) -> int:
        """Add a sequence behind a place of its own: what leads out of `at` already must not lead into it."""
        before = self._place()
        self._free[at].append(before)
        return self._sequence(items, before)


def _accepts(code: Any, value: Any) -> Accepts:
    if code is op.LITERAL:
        wanted = chr(value)
        return lambda character: character == wanted
    if code is op.NOT_LITERAL:
        refused = chr(value)
        return lambda character: character != refused
    if code is op.ANY:
        return lambda character: character != "\n"
    if code is op.IN:
        negated = value[0][0] is op.NEGATE
        tests = [_accepts_one(*each) for each in (value[1:] if negated else value)]
        return lambda character: any(test(character) for test in tests) is not negated
    raise Unsupported


def _accepts_one(code: Any, value: Any) -> Accepts:
    if code is op.LITERAL:
        wanted = chr(value)
        return lambda character: character == wanted
    if code is op.RANGE:
        low, high = chr(value[0]), chr(value[1])
        return lambda character: low <= character <= high
    raise Unsupported
