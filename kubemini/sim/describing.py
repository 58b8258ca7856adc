"""Saying in words what a task waits for and what a callback is, the same words in every process.

Python's own reprs show addresses and process-wide counters; these show names, qualified names, file names and lines.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Iterable
from pathlib import PurePath
from types import CodeType, FrameType
from typing import Any


def describe_task(task: asyncio.Task[Any]) -> str:
    """Return ``NAME: outer > inner (file.py:LINE)``: the chain of awaits from the task's coroutine to where it is suspended."""
    chain: list[str] = []
    place = ""
    here: Any = task.get_coro()
    while here is not None:
        code, frame = _code_and_frame(here)
        if code is None:
            break
        chain.append(code.co_qualname)
        if frame is not None:
            place = f" ({PurePath(code.co_filename).name}:{frame.f_lineno})"
        here = _awaited_by(here)
    return f"{task.get_name()}: {' > '.join(chain) or type(here).__name__}{place}"


def describe_handle(handle: asyncio.Handle) -> str:
    """Return what a callback of the loop does: the task it steps, by name, or the function it calls."""
    callback = _callback(handle)
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        coroutine: Any = owner.get_coro()
        return f"{owner.get_name()}: {getattr(coroutine, '__qualname__', type(coroutine).__name__)}"
    while isinstance(callback, functools.partial):
        callback = callback.func
    return getattr(callback, "__qualname__", type(callback).__qualname__)


def listed(lines: Iterable[str], *, most: int = 20) -> str:
    """Return lines as an indented list, equal ones counted once, cut after `most`."""
    counts: dict[str, int] = {}
    for line in lines:
        counts[line] = counts.get(line, 0) + 1
    shown = [f"\n  {line}" if count == 1 else f"\n  {count} × {line}" for line, count in counts.items()]
    rest = len(shown) - most
    return "".join(shown[:most]) + (f"\n  … and {rest} more" if rest > 0 else "")


def _callback(handle: asyncio.Handle) -> Any:
    return getattr(handle, "_callback", None)


def _code_and_frame(awaitable: Any) -> tuple[CodeType | None, FrameType | None]:
    for prefix in ("cr", "gi", "ag"):
        code = getattr(awaitable, f"{prefix}_code", None)
        if code is not None:
            return code, getattr(awaitable, f"{prefix}_frame", None)
    return None, None


def _awaited_by(awaitable: Any) -> Any:
    for name in ("cr_await", "gi_yieldfrom", "ag_await"):
        if hasattr(awaitable, name):
            return getattr(awaitable, name)
    return None
