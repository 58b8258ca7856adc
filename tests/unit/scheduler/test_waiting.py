"""Pods that wait: what wakes them, back-off, and one attempt for many equals."""

from __future__ import annotations

from kubemini.controllers.scheduler.waiting import DEVICES, NODE, POD_CAME, POD_GONE, Waiting, events_of


class Line:
    """Where woken pods are put."""

    def __init__(self) -> None:
        self.woken: list[tuple[str, float]] = []
        self.busy = False
        self.waiting = Waiting(lambda key, seconds, priority: self.woken.append((key, seconds)), lambda: self.busy)

    def failed(self, key: str, *, group: str = "", priority: int = 0, events: tuple[str, ...] = (NODE, POD_GONE), now: float = 0.0) -> None:
        """Let a pod fail."""
        self.waiting.failed(key, now, priority, group or key, events)

    def taken(self) -> list[str]:
        """Return who was woken since the last call."""
        keys = [key for key, _ in self.woken]
        self.woken.clear()
        return keys


def test_only_what_may_help_wakes() -> None:
    """An event wakes the pods that a plugin refused which it may cure."""
    line = Line()
    line.failed("fit", events=events_of(["NodeResourcesFit"]))
    line.failed("taint", events=events_of(["TaintToleration"]))
    line.failed("devices", events=events_of(["DynamicResources"]))
    line.waiting.happened(POD_CAME, 1.0)
    assert line.taken() == []
    line.waiting.happened(POD_GONE, 1.0)
    assert line.taken() == ["fit"]
    line.waiting.happened(DEVICES, 1.0)
    assert line.taken() == ["devices"]
    line.waiting.happened(NODE, 1.0)
    assert line.taken() == ["taint"]


def test_an_idle_scheduler_ends_the_back_off() -> None:
    """The back-off of 1 s doubling to 10 s holds only while others stand in line."""
    line = Line()
    delays = []
    for _ in range(6):
        line.failed("p")
        line.busy = True
        line.waiting.happened(NODE, 0.0)
        delays.append(line.woken.pop()[1])
    assert delays == [1, 2, 4, 8, 10, 10]
    line.busy = False
    line.failed("p")
    line.waiting.happened(NODE, 0.0)
    assert line.woken == [("p", 0.0)]


def test_more_may_wake_a_sleeper() -> None:
    """What is found out later adds to what wakes a pod that sleeps, and only such a pod."""
    line = Line()
    line.failed("p", events=(NODE,))
    line.waiting.also("p", ("NodeName", "DynamicResources"))
    line.waiting.also("other", ("DynamicResources",))
    line.waiting.happened(DEVICES, 1.0)
    assert line.taken() == ["p"]
    line.waiting.also("p", ("NodeResourcesFit",))
    line.waiting.happened(POD_GONE, 1.0)
    assert line.taken() == []


def test_one_tries_for_all() -> None:
    """When a pod leaves, the most important of equal pods is tried, and the next one only once that one is placed."""
    line = Line()
    for key, priority in (("a", 0), ("b", 5), ("c", 0)):
        line.failed(key, group="equal", priority=priority)
    line.waiting.happened(POD_GONE, 1.0)
    assert line.taken() == ["b"]
    line.waiting.happened(POD_GONE, 1.0)
    assert line.taken() == []
    line.waiting.done("b", 2.0)
    assert line.taken() == ["a"]
    line.failed("a", group="equal")
    assert line.taken() == []
    line.waiting.happened(POD_GONE, 3.0)
    assert line.taken() == ["c"]


def test_one_that_left_its_group_speaks_for_it_no_longer() -> None:
    """A pod that is nominated while it tries for its equals waits by itself from then on: the next of them tries."""
    line = Line()
    line.failed("a", group="g", priority=2)
    line.failed("b", group="g", priority=1)
    line.waiting.happened(POD_GONE, 1.0)
    assert line.taken() == ["a"]
    line.failed("a", priority=2, now=1.0)
    assert line.taken() == ["b"]
    line.failed("b", group="g", priority=1, now=1.0)
    assert line.taken() == []
    line.waiting.happened(POD_GONE, 2.0)
    assert sorted(line.taken()) == ["a", "b"]


def test_a_newcomer_does_not_lose_the_turn_of_another() -> None:
    """An equal pod that fails while one is being tried for all leaves that one's turn alone."""
    line = Line()
    for key in ("a", "b"):
        line.failed(key, group="equal")
    line.waiting.happened(POD_GONE, 1.0)
    assert line.taken() == ["a"]
    line.failed("new", group="equal")
    line.waiting.done("a", 2.0)
    assert line.taken() == ["b"]


def test_nodes_wake_everybody() -> None:
    """A node is rare enough to let all equal pods try, so that each says what is true now."""
    line = Line()
    for key in ("a", "b"):
        line.failed(key, group="equal")
    line.waiting.happened(NODE, 1.0)
    assert line.taken() == ["a", "b"]
    assert not line.waiting.asleep("a")


def test_the_gone_are_forgotten() -> None:
    """A pod that is gone is not woken, and starts over when it comes again."""
    line = Line()
    line.failed("p")
    line.waiting.done("p", 0.0)
    line.waiting.happened(NODE, 0.0)
    assert line.taken() == []
    line.failed("p")
    line.busy = True
    line.waiting.happened(NODE, 0.0)
    assert line.woken == [("p", 1.0)]


def test_what_happens_while_one_tries_is_kept_for_the_next() -> None:
    """Equal pods may have been refused for different reasons: whom a later event may help is tried once the first is placed."""
    line = Line()
    line.failed("a", group="equal", events=(POD_GONE, POD_CAME), priority=1)
    line.failed("b", group="equal", events=(POD_GONE,))
    line.waiting.happened(POD_CAME, 1.0)
    assert line.taken() == ["a"]
    line.waiting.happened(POD_GONE, 1.0)
    assert line.taken() == []
    line.waiting.done("a", 2.0)
    assert line.taken() == ["b"]
