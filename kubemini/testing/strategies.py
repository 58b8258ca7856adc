"""Hypothesis strategies for lives: what may happen to a cluster. Draws are few and simple, so that counterexamples shrink to what matters."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import strategies as st

from kubemini.sim.faults import PERFECT, Faults
from kubemini.testing.disturbing import ACTIONS
from kubemini.testing.plans import Plan, Step

LATE = Faults(watch_delay=0.5, request_delay=0.05)
"""Caches are behind, answers take their time, nothing is lost."""
ROUGH = Faults(watch_delay=0.3, request_delay=0.03, lost_before=0.02, lost_after=0.02, conflict=0.03)
"""Requests are lost before and after they took effect too."""
PAUSES = (0, 1, 2, 5, 10, 30, 60, 400)
"""Virtual seconds between steps: within a start, between starts, longer than a node needs to be given up."""


def faults() -> st.SearchStrategy[Faults]:
    """Draw how bad the controllers' connections are."""
    return st.sampled_from((PERFECT, LATE, ROUGH))


def steps(actions: Iterable[str] = tuple(ACTIONS)) -> st.SearchStrategy[Step]:
    """Draw a disturbance."""
    return st.builds(Step, after=st.sampled_from(PAUSES), action=st.sampled_from(tuple(actions)), which=st.integers(0, 7))


def plans(actions: Iterable[str] = tuple(ACTIONS), *, most: int = 6) -> st.SearchStrategy[Plan]:
    """Draw a life of at most so many disturbances."""
    return st.builds(Plan, seed=st.integers(0, 2**16), faults=faults(), steps=st.lists(steps(actions), max_size=most).map(tuple))
