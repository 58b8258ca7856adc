"""The work queue: client-go's semantics, call by call."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from kubemini.runtime.workqueue import Backoff, QueueShutDown, WorkQueue
from kubemini.sim.loop import Quiescent, SimLoop, run


def drained(queue: WorkQueue[str]) -> list[str]:
    """Return the keys in line, in the order in which the queue gives them out."""
    keys: list[str] = []
    while (key := queue.try_get()) is not None:
        keys.append(key)
        queue.done(key)
    return keys


def filled(*keys: str) -> WorkQueue[str]:
    """Return a queue to which `keys` were added."""
    queue: WorkQueue[str] = WorkQueue()
    for key in keys:
        queue.add(key)
    return queue


def now() -> float:
    """Return the time of the running loop."""
    return asyncio.get_running_loop().time()


def test_first_in_first_out() -> None:
    """Keys come out in the order in which they went in."""
    assert drained(filled("b", "a", "c")) == ["b", "a", "c"]


def test_a_queued_key_is_queued_once() -> None:
    """Adding a key that stands in line neither repeats nor moves it."""
    queue = filled("a", "b", "a", "a")
    assert len(queue) == 2
    assert drained(queue) == ["a", "b"]


def test_an_empty_queue_gives_none() -> None:
    """`try_get` on an empty queue returns None and holds nothing."""
    queue = filled()
    assert queue.try_get() is None
    assert queue.idle


def test_a_key_added_while_held_comes_again_after_done() -> None:
    """A held key that is added waits for `done`, so that no two workers ever hold it, and no add is lost."""
    queue = filled("a")
    assert queue.try_get() == "a"
    queue.add("a")
    queue.add("a")
    assert queue.try_get() is None
    assert not queue.idle
    queue.done("a")
    assert drained(queue) == ["a"]
    assert queue.idle


def test_a_key_done_without_new_work_is_gone() -> None:
    """`done` alone puts nothing back in line."""
    queue = filled("a")
    queue.try_get()
    queue.done("a")
    assert queue.idle
    assert len(queue) == 0


def test_done_of_a_key_that_nobody_holds_is_refused() -> None:
    """`done` without `get`, or twice, is a mistake of the caller and says so."""
    queue = filled("a")
    with pytest.raises(ValueError, match=r"done\('a'\): no worker holds this key"):
        queue.done("a")
    assert drained(queue) == ["a"]


def test_highest_priority_first() -> None:
    """Keys of higher priority pass those of lower; among equals the order is that of adding."""
    queue = filled()
    for key, priority in (("low", -5), ("a", 0), ("top", 9), ("b", 0), ("next", 9)):
        queue.add(key, priority)
    assert drained(queue) == ["top", "next", "a", "b", "low"]
    queue.add("low again", -5)
    assert drained(queue) == ["low again"]


def test_priority_of_a_queued_key_only_rises() -> None:
    """A second add with more priority moves the key up, behind its new equals; one with less does nothing."""
    queue = filled("a", "b")
    queue.add("c", 5)
    queue.add("a", 5)
    queue.add("c", 1)
    assert len(queue) == 3
    assert drained(queue) == ["c", "a", "b"]


def test_priority_of_a_held_key_counts_at_done() -> None:
    """A key added with priority while it is held passes others when it is released."""
    queue = filled("a")
    queue.try_get()
    queue.add("b")
    queue.add("a", 3)
    queue.done("a")
    assert drained(queue) == ["a", "b"]


def test_adds_counts_what_changed_the_queue() -> None:
    """The counter of adds counts a key once while it is waiting to be picked up."""
    queue = filled("a", "a", "b")
    queue.add("a", 7)
    assert queue.adds == 2


def test_get_waits_for_a_key() -> None:
    """`get` on an empty queue returns when a key is added."""

    async def main() -> tuple[str, float]:
        queue = filled()
        asyncio.get_running_loop().call_later(5, queue.add, "a")
        return await queue.get(), now()

    assert run(main()) == ("a", 5)


def test_get_does_not_suspend_when_a_key_is_there() -> None:
    """`get` returns a key in line at once, before anything else that is ready."""

    async def main() -> list[str]:
        seen: list[str] = []
        asyncio.get_running_loop().call_soon(seen.append, "other")
        seen.append(await filled("a").get())
        return seen[:]

    assert run(main()) == ["a"]


def test_each_key_wakes_one_worker() -> None:
    """Workers that wait are served in the order in which they came, one key each."""

    async def main() -> list[tuple[int, str]]:
        queue = filled()
        seen: list[tuple[int, str]] = []

        async def worker(number: int) -> None:
            seen.append((number, await queue.get()))

        async with asyncio.TaskGroup() as group:
            for number in range(3):
                group.create_task(worker(number))
            await asyncio.sleep(1)
            for key in "abc":
                queue.add(key)
        return seen

    assert run(main()) == [(0, "a"), (1, "b"), (2, "c")]


def test_a_cancelled_worker_hands_its_wake_up_on() -> None:
    """A key is not left lying when the worker that it woke is cancelled before it runs."""

    async def main() -> str:
        queue = filled()
        first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
        await asyncio.sleep(1)
        queue.add("a")
        first.cancel()
        return await second

    assert run(main()) == "a"


def test_a_batch_worker_may_take_what_another_was_woken_for() -> None:
    """A worker that finds its key taken goes back to waiting."""

    async def main() -> list[str | None]:
        queue = filled()
        waiting = asyncio.create_task(queue.get())
        await asyncio.sleep(1)
        queue.add("a")
        taken = queue.try_get()
        await asyncio.sleep(1)
        queue.add("b")
        return [taken, await waiting]

    assert run(main()) == ["a", "b"]


Call = tuple[str, float | None]
"""A key and its delay; None is a plain add."""


def timed(*calls: Call) -> list[tuple[str, float]]:
    """Return when which key comes out of a queue to which all `calls` are made at time zero."""
    seen: list[tuple[str, float]] = []

    async def main() -> None:
        queue = filled()
        for key, seconds in calls:
            if seconds is None:
                queue.add(key)
            else:
                queue.add_after(key, seconds)
        while True:
            key = await queue.get()
            seen.append((key, now()))
            queue.done(key)

    with pytest.raises(Quiescent):
        run(main())
    return seen


def test_add_after_waits() -> None:
    """A delayed key joins the line when its time has come."""
    assert timed(("a", 30)) == [("a", 30)]


@pytest.mark.parametrize("seconds", [0, -1])
def test_add_after_no_time_is_an_add(seconds: float) -> None:
    """A delay that is not positive is none."""
    assert timed(("a", seconds)) == [("a", 0)]


@pytest.mark.parametrize("delays", [(30, 10), (10, 30), (10, 10)])
def test_the_earliest_delay_counts(delays: tuple[int, int]) -> None:
    """A key that is delayed twice comes once, at the earlier time."""
    assert timed(*(("a", seconds) for seconds in delays)) == [("a", 10)]


def test_an_add_does_not_revoke_a_delayed_add() -> None:
    """A key that is added while a delayed add waits comes twice, as in client-go."""
    assert timed(("a", 10), ("a", None)) == [("a", 0), ("a", 10)]


def test_a_delayed_add_keeps_its_highest_priority() -> None:
    """Of several delayed adds of a key the earliest time and the highest priority count."""

    async def main() -> list[str]:
        queue = filled()
        queue.add_after("b", 10, 3)
        queue.add_after("a", 20, 5)
        queue.add_after("a", 10, 1)
        await asyncio.sleep(15)
        return drained(queue)

    assert run(main()) == ["a", "b"]


def test_delayed_tells_what_waits_until_when() -> None:
    """`delayed` lists waiting keys with the time at which each is due."""

    async def main() -> dict[str, float]:
        queue = filled()
        queue.add_after("b", 7)
        queue.add_after("a", 3)
        await asyncio.sleep(1)
        queue.add_after("b", 1)
        return queue.delayed

    assert run(main()) == {"b": 2, "a": 3}


def test_back_off_doubles_up_to_its_limit() -> None:
    """Failure n waits 5 ms · 2ⁿ, at most 1,000 s, for any n."""
    backoff = Backoff()
    waits = [backoff.next("a") for _ in range(2_000)]
    assert waits[:4] == [0.005, 0.01, 0.02, 0.04]
    assert waits[17] == 0.005 * 2**17
    assert set(waits[18:]) == {1000.0}


def test_rate_limited_adds_back_off_per_key_until_forgotten() -> None:
    """Each key has its own back-off, which `forget` resets."""

    async def main() -> list[dict[str, float]]:
        queue: WorkQueue[str] = WorkQueue(backoff=Backoff(base=1, limit=100))
        seen: list[dict[str, float]] = []
        for _ in range(2):
            queue.add_rate_limited("a")
            queue.add_rate_limited("b")
            seen.append(queue.delayed)
            await asyncio.sleep(8)
            assert sorted(drained(queue)) == ["a", "b"]
            queue.forget("b")
        assert (queue.num_requeues("a"), queue.num_requeues("b"), queue.retries) == (2, 0, 4)
        return seen

    assert run(main()) == [{"a": 1, "b": 1}, {"a": 10, "b": 9}]


def test_shut_down_gives_out_what_is_in_line_and_then_ends_workers() -> None:
    """After `shut_down` keys in line are served, waiting workers end, and adds of all kinds are ignored."""

    async def main() -> list[str]:
        queue = filled("a")
        queue.add_after("later", 5)
        queue.shut_down()
        queue.add("b")
        queue.add_after("c", 1)
        queue.add_rate_limited("d")
        seen = [await queue.get()]
        with pytest.raises(QueueShutDown):
            await queue.get()
        await asyncio.sleep(10)
        assert queue.delayed == {}
        return [*seen, *drained(queue)]

    assert run(main()) == ["a"]


def test_many_delayed_adds_set_one_timer() -> None:
    """A burst of delayed adds costs the event loop one timer, and every key joins the line in time, equal times in the order of asking."""

    async def main() -> list[tuple[str, float]]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimLoop)
        loop.chooses = False
        queue: WorkQueue[str] = WorkQueue()
        for number in range(100):
            queue.add_after(f"k{number}", float(10 - number % 10))
        assert len(loop.pending_timers()) == 1
        seen = []
        for _ in range(100):
            key = await queue.get()
            seen.append((key, now()))
            queue.done(key)
        assert not loop.pending_timers()
        return seen

    seen = run(main())
    assert seen == [(f"k{number}", float(10 - number % 10)) for number in sorted(range(100), key=lambda number: (10 - number % 10, number))]


def test_shut_down_wakes_every_waiting_worker() -> None:
    """Workers that wait in `get` when the queue is shut down all end."""

    async def main() -> list[object]:
        queue = filled()
        workers: list[Coroutine[Any, Any, str]] = [queue.get() for _ in range(3)]
        asyncio.get_running_loop().call_later(1, queue.shut_down)
        return list(await asyncio.gather(*workers, return_exceptions=True))

    results = run(main())
    assert len(results) == 3
    assert all(isinstance(result, QueueShutDown) for result in results)


def test_a_held_key_added_before_shut_down_is_still_given_out() -> None:
    """Work that arrived before the shut-down is done, also for a key that was held then."""
    queue = filled("a")
    queue.try_get()
    queue.add("a")
    queue.shut_down()
    queue.done("a")
    assert queue.try_get() == "a"


def test_shut_down_leaves_no_timer_behind() -> None:
    """A queue that was shut down does not keep a virtual loop from coming to rest."""
    loop = SimLoop()
    queue = filled()
    loop.call_soon(queue.add_after, "a", 1_000)
    loop.call_soon(queue.shut_down)
    assert loop.run_until_quiescent()
    assert loop.time() == 0
    loop.close()


def test_nothing_is_left_of_keys_that_are_done() -> None:
    """The queue keeps no trace of keys that were added, delayed, served and forgotten."""

    async def main() -> None:
        queue: WorkQueue[int] = WorkQueue()
        for key in range(500):
            queue.add(key, key % 7)
            queue.add_after(key, key % 5)
            queue.add_rate_limited(key)
        await asyncio.sleep(10)
        while (served := queue.try_get()) is not None:
            queue.forget(served)
            queue.done(served)
        assert queue.idle
        assert not queue.delayed
        assert len(vars(queue)["_lines"]) == 1
        assert all(queue.num_requeues(key) == 0 for key in range(500))

    run(main())
