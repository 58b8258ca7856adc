"""Pending Workloads: order, lines of one shape, and heads that wait."""

from __future__ import annotations

from kubemini.controllers.kueue.queues import Pending
from kubemini.controllers.kueue.workloads import Info


def info(key: str, priority: int = 0, at: float = 0.0) -> Info:
    """Return the reading of a Workload."""
    return Info({}, key, key, priority, at)


def drained(pending: Pending) -> list[str]:
    """Pop everything that may be tried."""
    found = []
    while (head := pending.pop()) is not None:
        found.append(head.key)
    return found


def test_priority_then_age_then_uid_decide() -> None:
    """Higher priority goes first, then the older one, then the smaller uid."""
    pending = Pending("q")
    for each in (info("c", at=1), info("b", at=1), info("a", at=2), info("z", priority=1, at=9)):
        pending.push(each, each.key)
    assert drained(pending) == ["z", "b", "c", "a"]


def test_a_parked_shape_costs_one_try_for_all_its_workloads() -> None:
    """Once one of a shape does not fit, none of them is tried until a retry; others are."""
    pending = Pending("q")
    for number in range(5):
        pending.push(info(f"big-{number}", at=number), "big")
    pending.push(info("small", at=9), "small")
    tried = pending.pop()
    assert tried is not None
    assert tried.key == "big-0"
    pending.park("big")
    pending.push(tried, "big")
    assert drained(pending) == ["small"]
    assert pending.retry()
    assert drained(pending) == [f"big-{number}" for number in range(5)]


def test_a_waiting_head_blocks_until_a_retry_or_a_better_head() -> None:
    """A blocked head keeps the queue at rest; a Workload that sorts before it is tried."""
    pending = Pending("q")
    pending.push(info("head", at=1), "a")
    pending.push(info("next", at=2), "b")
    pending.blocked = "head"
    assert pending.head() is None
    pending.push(info("urgent", priority=5, at=3), "c")
    head = pending.pop()
    assert head is not None
    assert head.key == "urgent"
    assert pending.head() is None
    assert pending.retry()


def test_what_is_taken_out_is_never_tried() -> None:
    """A Workload removed from the middle of a line does not come up, and frees a queue that it blocked."""
    pending = Pending("q")
    for number in range(3):
        pending.push(info(f"w-{number}", at=number), "s")
    pending.blocked = "w-0"
    pending.remove("w-0")
    assert drained(pending) == ["w-1", "w-2"]


def test_pushing_again_changes_place_with_priority() -> None:
    """A Workload whose priority was raised moves up."""
    pending = Pending("q")
    pending.push(info("a", at=1), "s0")
    pending.push(info("b", at=2), "s0")
    pending.push(info("b", priority=3, at=2), "s3")
    assert drained(pending) == ["b", "a"]
    assert len(pending.entries) == 0
