"""How often Python looks for cycles of garbage. Trees are acyclic and freed by their reference counts, so most looks find nothing."""

from __future__ import annotations

import gc

YOUNG = 50_000
"""New objects after which the youngest generation is looked at (Python's own number is 700)."""


OLDER = 40
"""Looks at the youngest after which the next generation is looked at as well (Python's own number is 10)."""


def collect_rarely(young: int = YOUNG, *older: int) -> None:
    """Let this process's collector look seldom from now on; leave it alone where it is off or looks more seldom already.

    Nobody sets it back: a look as a cluster ends would find all of it still in use, and would only keep it for a look that is dearer.
    """
    now = gc.get_threshold()
    if gc.isenabled() and 0 < now[0] < young:
        gc.set_threshold(young, *(older or (OLDER, now[2])))
