"""How often Python looks for cycles of garbage. Trees are acyclic and freed by their reference counts, so most looks find nothing."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

YOUNG = 50_000
"""New objects after which the youngest generation is looked at (Python's own number is 700)."""


@contextmanager
def rare_collections() -> Generator[None]:
    """Let the collector look seldom while a simulation or a benchmark runs; leave it alone where it is off or looks more seldom already."""
    before = gc.get_threshold()
    if not gc.isenabled() or before[0] == 0 or before[0] >= YOUNG:
        yield
        return
    gc.set_threshold(YOUNG, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
