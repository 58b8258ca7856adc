"""The line of watches that have something to send: first come, first served, and others in between."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from kubemini.server.http import watching
from kubemini.server.http.watching import Line, Push


class Told:
    """Stands for a push: notes its turn, and may fail in it."""

    def __init__(self, log: list[str], name: str, problem: Exception | None = None) -> None:
        self._log = log
        self._name = name
        self._problem = problem

    def flush(self) -> None:
        """Take a turn."""
        self._log.append(self._name)
        if self._problem is not None:
            raise self._problem


def stand(line: Line, *pushes: Told) -> None:
    """Put pushes in line."""
    for each in pushes:
        line.add(cast(Push, each))


async def test_requests_have_their_turn_between_watchers(monkeypatch: pytest.MonkeyPatch) -> None:
    """When a slice is over, what else is ready runs before the rest of the line, which keeps its order."""
    monkeypatch.setattr(watching, "SLICE", 0.0)
    log: list[str] = []
    line = Line()
    stand(line, Told(log, "a"), Told(log, "b"), Told(log, "c"))
    asyncio.get_running_loop().call_soon(log.append, "request")
    for _ in range(6):
        await asyncio.sleep(0)
    assert log == ["a", "request", "b", "c"]


async def test_one_that_fails_holds_up_nobody() -> None:
    """An error of one watcher is reported, and those behind it are told all the same."""
    loop = asyncio.get_running_loop()
    reported: list[Any] = []
    loop.set_exception_handler(lambda _, context: reported.append(context["exception"]))
    log: list[str] = []
    line = Line()
    problem = RuntimeError("broken")
    stand(line, Told(log, "a", problem), Told(log, "b"))
    for _ in range(4):
        await asyncio.sleep(0)
    stand(line, Told(log, "c"))
    for _ in range(4):
        await asyncio.sleep(0)
    assert log == ["a", "b", "c"]
    assert reported == [problem]
