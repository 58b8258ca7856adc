"""Autoscalers of StatefulSets and groups under loads that come and go: limits, tolerance, windows and rates hold at every change of size."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from kubemini.sim.faults import PERFECT
from tests.quality.autoscaled import Life, lives, played

GONE_BEFORE_IT_WAS_MET = Life(
    loads=((20.0, 60), (20.0, 0)), limits=(1, 8), behavior=None, groups=False, pods=False, replicas=1, seed=0, faults=PERFECT
)
"""A load goes before there are enough replicas for it: what was recommended for it counts for five minutes, so the target still grows."""


@given(life=lives(st.just(False)))
@example(GONE_BEFORE_IT_WAS_MET)
def test_sizes_keep_to_their_rules(life: Life) -> None:
    """Every size is one that the values of the metric, the windows and the policies allow, groups keep their size, and a load that stays gets what it needs."""
    played(life)


@given(life=lives(st.just(True)))
def test_sizes_follow_what_leaders_tell(life: Life) -> None:
    """The same where the pods of the target tell the metric: of groups these are the leaders alone."""
    played(life)
