"""Partition and replicas of the leaders during an update: the worked values of the specification, and laws."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubemini.controllers.lws.groups import Group
from kubemini.controllers.lws.rollout import Leaders, Rollout, next_partition, plan
from kubemini.controllers.lws.view import LwsView


def lws(replicas: int, unavailable: Any = 1, surge: Any = 0, partition: int = 0) -> LwsView:
    """Return a LeaderWorkerSet with a budget."""
    rolling = {"maxUnavailable": unavailable, "maxSurge": surge, "partition": partition}
    spec = {"replicas": replicas, "leaderWorkerTemplate": {"workerTemplate": {}}, "rolloutStrategy": {"rollingUpdateConfiguration": rolling}}
    return LwsView({"metadata": {"name": "llm", "namespace": "default", "uid": "u"}, "spec": spec})


def groups(text: str) -> list[Group]:
    """Return groups from a letter each: O old and ready, o old and down, N new and ready, n new and down."""
    return [Group(index, ready=letter.isupper(), updated=letter in "Nn") for index, letter in enumerate(text)]


def step(owner: LwsView, text: str, partition: int, *, then: int | None = None) -> tuple[int, int]:
    """Return (partition, replicas) after groups that look like `text`."""
    leaders = Leaders(len(text), partition, owner.replicas if then is None else then)
    found = plan(owner, leaders, lambda number: groups(text)[:number], updated=False)
    return found.partition, found.replicas


def begin(owner: LwsView, leaders: int) -> Rollout:
    """Return the first step of an update."""
    return plan(owner, Leaders(leaders, 0, owner.replicas), lambda _: [], updated=True)


def test_the_first_apply() -> None:
    """Nothing is held back, but for what the user's partition holds."""
    assert plan(lws(3), None, lambda _: [], updated=False) == Rollout(0, 3)
    assert plan(lws(3, partition=2), None, lambda _: [], updated=False) == Rollout(2, 3)


def test_one_at_a_time() -> None:
    """R=4, U=1, M=0: 4, then 3, 2, 1, 0 as each group is updated and ready."""
    owner = lws(4)
    assert begin(owner, 4) == Rollout(4, 4)
    seen = [step(owner, text, before)[0] for text, before in (("OOOO", 4), ("OOOn", 3), ("OOON", 3), ("OONN", 2), ("ONNN", 1), ("NNNN", 0))]
    assert seen == [3, 3, 2, 1, 0, 0]


def test_surge_without_unavailability() -> None:
    """R=4, U=0, M=1: the surge group comes first, then one by one, and it is given back when group 0 is ready."""
    owner = lws(4, 0, 1)
    assert begin(owner, 4) == Rollout(4, 5)
    assert step(owner, "OOOOn", 4) == (4, 5)
    assert step(owner, "OOOON", 4) == (3, 5)
    assert step(owner, "OOONN", 3) == (2, 5)
    assert step(owner, "ONNNN", 1) == (0, 5)
    assert step(owner, "nNNNN", 0) == (0, 5)
    assert step(owner, "NNNNN", 0) == (0, 4)


def test_surge_and_unavailability() -> None:
    """R=4, U=1, M=1: surge is given back when what is unready fits into maxUnavailable."""
    owner = lws(4, 1, 1)
    assert begin(owner, 4) == Rollout(4, 5)
    assert step(owner, "OOOOn", 4) == (3, 5)
    assert step(owner, "OOOON", 3) == (2, 5)
    assert step(owner, "nNNNN", 0) == (0, 4)


def test_one_group_with_surge() -> None:
    """R=1: with U=1 no surge group is made, with U=0 one is."""
    assert begin(lws(1, 1, 1), 1) == Rollout(1, 1)
    assert begin(lws(1, 0, 1), 1) == Rollout(1, 2)


def test_the_users_partition_rests() -> None:
    """R=6, LP=4: the partition goes to 5, then 4, and no lower."""
    owner = lws(6, partition=4)
    assert step(owner, "OOOOOO", 6)[0] == 5
    assert step(owner, "OOOOON", 5)[0] == 4
    assert step(owner, "OOOONN", 4)[0] == 4


def test_scaling_comes_first() -> None:
    """Scaled up and updated at once: the old groups keep their revision until the new ones exist."""
    assert begin(lws(5), 3) == Rollout(3, 5)
    assert begin(lws(2), 5) == Rollout(2, 2, range(2, 5))


def test_replicas_edited_during_an_update() -> None:
    """The partition stays until it is beyond what there is."""
    assert step(lws(3), "OOONN", 4, then=5) == (3, 3)


def test_down_groups_are_replaced_for_free() -> None:
    """Where all old groups are down an update without unavailability goes on all the same."""
    assert step(lws(2, 0, 1), "ooN", 2) == (1, 3)
    assert step(lws(2, 0, 1), "oNN", 1) == (0, 3)
    assert step(lws(3), "ooo", 3)[0] == 2


def test_a_down_group_below_the_window_costs_budget() -> None:
    """A lower group that is down counts: the ready one above is not touched."""
    assert step(lws(2), "oO", 2)[0] == 2


def test_at_rest() -> None:
    """Nothing moves at rest, whatever the groups look like."""
    assert plan(lws(3), Leaders(3, 0, 3), lambda _: pytest.fail("states are not asked for"), updated=False) == Rollout(0, 3)


LETTERS = st.text("OoNn", max_size=12)


@given(text=LETTERS, step=st.integers(0, 6), current=st.integers(0, 12))
def test_the_partition_never_grows(text: str, step: int, current: int) -> None:
    """Whatever the groups look like, the partition goes one way."""
    assert 0 <= next_partition(groups(text), step, current) <= current


@given(old=st.text("Oo", min_size=1, max_size=10), new=st.integers(0, 4), step=st.integers(1, 4))
def test_the_window_keeps_the_budget(old: str, new: int, step: int) -> None:
    """Opening the window takes down at most as many ready groups as the budget allows, less those that are down far below it."""
    states = groups(old + "N" * new)
    partition = next_partition(states, step, len(states))
    taken = sum(1 for group in states[partition:] if group.ready and not group.updated)
    down = sum(1 for group in states[: max(0, len(old) - step)] if not group.ready)
    assert taken <= max(0, step - down)


@given(old=st.text("o", min_size=1, max_size=10), step=st.integers(1, 4))
def test_an_update_of_down_groups_is_never_stuck(old: str, step: int) -> None:
    """However many groups are down, the window opens as far as the budget goes."""
    states = groups(old)
    assert next_partition(states, step, len(states)) == max(0, len(states) - step)
