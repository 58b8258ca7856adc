"""The quota tree: what is free follows from nominal quotas, limits and usage at every node."""

from __future__ import annotations

from kubemini.controllers.kueue.quota import Node, Quota, Undo, build

CPU = ("f", "cpu")


def leaf(name: str, nominal: int, borrowing: int | None = None, lending: int | None = None) -> Node:
    """Return a ClusterQueue's node."""
    node = Node(name, queue=True)
    node.quotas = {CPU: Quota(nominal, borrowing, lending)}
    return node


def test_unused_quota_is_lent_up_to_its_limits() -> None:
    """A queue borrows what others lend, but no more than its borrowing limit and their lending limits allow."""
    a, b = leaf("a", 4, borrowing=3), leaf("b", 6, lending=2)
    build({}, {}, [(a, "co"), (b, "co")])
    assert a.available(CPU) == 6
    assert a.potential(CPU) == 6
    assert b.available(CPU) == 10
    b.add(CPU, 5)
    assert a.available(CPU) == 5
    a.add(CPU, 5)
    assert b.available(CPU) == 0


def test_a_lender_always_gets_what_it_does_not_lend() -> None:
    """What is beyond the lending limit stays free for its owner, however much others take."""
    a, b = leaf("a", 0), leaf("b", 6, lending=2)
    build({}, {}, [(a, "co"), (b, "co")])
    a.add(CPU, 2)
    assert a.available(CPU) == 0
    assert b.available(CPU) == 4


def test_usage_above_lowered_quota_leaves_less_than_nothing() -> None:
    """Nothing is evicted when quota is lowered: what is available turns negative."""
    a = leaf("a", 4)
    a.add(CPU, 4)
    a.quotas = {CPU: Quota(1)}
    build({}, {}, [(a, "")])
    assert a.available(CPU) == -3


def test_simulated_usage_is_taken_back_exactly() -> None:
    """After an undo every node counts as before, whatever order the changes came in."""
    a, b = leaf("a", 4, lending=1), leaf("b", 6)
    nodes = build({}, {}, [(a, "co"), (b, "co")])
    a.add(CPU, 5)
    before = (dict(a.usage), dict(b.usage), dict(nodes["co"].usage))
    undo = Undo()
    undo.add(b, {CPU: 7})
    undo.add(a, {CPU: 5}, -1)
    undo.add(b, {CPU: 3}, -1)
    undo.back()
    assert {k: v for k, v in a.usage.items() if v} == before[0]
    assert not any(b.usage.values())
    assert nodes["co"].usage[CPU] == before[2][CPU]


def test_borrow_height_counts_the_levels_that_must_lend() -> None:
    """A queue that fits its own quota has height 0; one that needs the cohort above its own has the height of that cohort."""
    a, b, c = leaf("a", 2), leaf("b", 2), leaf("c", 4)
    build({"left": "root"}, {}, [(a, "left"), (b, "left"), (c, "root")])
    assert a.borrow_height(CPU, 2) == (0, True)
    assert a.borrow_height(CPU, 3) == (1, True)
    assert a.borrow_height(CPU, 6) == (2, False)


def test_a_cycle_of_cohorts_disables_its_queues_and_no_others() -> None:
    """Queues under a cycle are broken; a tree beside it works."""
    a, b = leaf("a", 2), leaf("b", 2)
    build({"x": "y", "y": "x"}, {}, [(a, "x"), (b, "z")])
    assert a.broken
    assert not b.broken
    assert b.available(CPU) == 2
