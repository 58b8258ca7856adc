"""The deterministic event loop: virtual time, running by hand, and the end of everything."""

import asyncio
import gc
import itertools
import math
from collections.abc import Iterator

import pytest

from kubemini.runtime.env import EPOCH, Env
from kubemini.sim.loop import TICKS, Livelock, Quiescent, SimLoop, run


@pytest.fixture
def loop() -> Iterator[SimLoop]:
    """Return a loop in first-in-first-out order."""
    loop = SimLoop()
    yield loop
    loop.close()


def fails() -> None:
    """Raise KeyError."""
    raise KeyError("missing")


def here() -> SimLoop:
    """Return the running loop."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimLoop)
    return loop


# ----------------------------------------------------------------------------------------------- time


def test_time_starts_at_zero_and_jumps_to_the_next_timer() -> None:
    """An hour of sleep costs nothing and ends after exactly an hour."""

    async def main() -> list[float]:
        times = [here().time()]
        for seconds in (3600, 0, 0.5):
            await asyncio.sleep(seconds)
            times.append(here().time())
        return times

    assert run(main()) == [0, 3600, 3600, 3600.5]


def test_time_stands_still_while_callbacks_are_ready(loop: SimLoop) -> None:
    """Nothing that runs takes time; a due timer waits for the callbacks that were ready before it."""
    seen: list[tuple[str, float]] = []

    def note(what: str, again: int = 0) -> None:
        seen.append((what, loop.time()))
        if again:
            loop.call_soon(note, what, again - 1)

    loop.call_later(1, note, "timer")
    loop.call_soon(note, "soon", 3)
    loop.run_until_quiescent()
    assert seen == [("soon", 0)] * 4 + [("timer", 1)]


def test_timers_of_one_instant_fire_in_the_order_in_which_they_were_set(loop: SimLoop) -> None:
    """Equal deadlines are no tie: the first that was set fires first."""
    seen: list[int] = []
    for number in range(50):
        loop.call_at(7, seen.append, number)
    loop.run_until_quiescent()
    assert seen == list(range(50))


def test_a_timer_in_the_past_is_due_now(loop: SimLoop) -> None:
    """A deadline that has passed fires at the present time, which does not go back."""
    loop.advance(10)
    times: list[float] = []
    timer = loop.call_at(3, lambda: times.append(loop.time()))
    loop.call_later(-5, lambda: times.append(loop.time()))
    assert timer.when() == 10
    loop.advance(0)
    assert times == [10, 10]


@pytest.mark.parametrize("seconds", [0.1, 1 / 3, 0.005, 1e-9, 123_456.789])
def test_no_timer_fires_early_and_time_is_a_whole_number_of_ticks(loop: SimLoop, seconds: float) -> None:
    """A deadline is rounded up to the next tick, by less than a microsecond."""
    timer = loop.call_later(seconds, lambda: None)
    loop.run_until_quiescent()
    assert loop.time() == timer.when()
    assert 0 <= loop.time() - seconds < 1 / TICKS
    assert (loop.time() * TICKS).is_integer()


def test_a_wait_of_seconds_is_exact_on_the_epoch() -> None:
    """A time stamp taken after a wait for a whole second of the environment's clock reads that second, not the one before."""

    async def main() -> None:
        env = Env.virtual(here(), seed=0)
        await asyncio.sleep(0.1)
        for second in range(1, 200):
            await asyncio.sleep(0.0123)
            await asyncio.sleep(EPOCH + second - env.now())
            assert env.now() == EPOCH + second

    run(main())


def test_a_timer_at_infinity_never_fires(loop: SimLoop) -> None:
    """Waiting for ever is waiting for nothing: the loop is quiescent."""
    timer = loop.call_later(math.inf, pytest.fail)
    assert loop.run_until_quiescent()
    assert loop.time() == 0
    assert timer.when() == math.inf


def test_a_deadline_that_is_no_number_is_refused(loop: SimLoop) -> None:
    """A deadline of NaN is an error at once."""
    with pytest.raises(ValueError, match="NaN"):
        loop.call_at(math.nan, lambda: None)


def test_cancelled_timers_neither_fire_nor_move_time_nor_pile_up(loop: SimLoop) -> None:
    """A cancelled timer is as if it was never set, and thousands of them take no room."""
    loop.call_at(5_000, lambda: None)
    for number in range(10_000):
        loop.call_later(number, pytest.fail, "fired").cancel()
        assert len(vars(loop)["_timers"]) <= 202
    assert loop.run_until_quiescent()
    assert loop.time() == 5_000
    loop.call_later(1, pytest.fail, "fired").cancel()
    assert loop.run_until_quiescent()
    assert loop.time() == 5_000


def test_cancelling_a_fired_timer_does_nothing(loop: SimLoop) -> None:
    """A timer may be cancelled after it fired, as in asyncio."""
    timers = [loop.call_later(1, lambda: None) for _ in range(500)]
    loop.advance(1)
    loop.call_later(1, lambda: None)
    for timer in timers:
        timer.cancel()
    assert loop.run_until_quiescent()
    assert loop.time() == 2


# ----------------------------------------------------------------------------------------------- running by hand


def test_run_until_stops_at_a_time_and_runs_what_is_due_then(loop: SimLoop) -> None:
    """`run_until` runs timers up to and at the time, leaves later ones, and leaves the clock there."""
    seen: list[int] = []
    for second in (1, 2, 3):
        loop.call_at(second, seen.append, second)
    loop.run_until(2)
    assert (seen, loop.time()) == ([1, 2], 2)
    loop.advance(0.5)
    assert (seen, loop.time()) == ([1, 2], 2.5)
    loop.advance(10)
    assert (seen, loop.time()) == ([1, 2, 3], 12.5)


def test_run_until_an_earlier_time_is_refused(loop: SimLoop) -> None:
    """Time never goes back."""
    loop.advance(5)
    with pytest.raises(ValueError, match="never goes back"):
        loop.run_until(4)


def test_run_until_quiescent_tells_which_came_first(loop: SimLoop) -> None:
    """It returns True at the end of all work, without time passing beyond it, and False at the time limit."""
    loop.call_at(5, lambda: None)
    assert not loop.run_until_quiescent(before=3)
    assert loop.time() == 3
    assert loop.run_until_quiescent(before=1_000)
    assert loop.time() == 5


def test_settled_is_the_moment_before_time_moves_on() -> None:
    """`settled` returns when all that is due now has run, chains included, and no later."""

    async def main() -> tuple[int, float]:
        done = 0

        async def chain(length: int) -> None:
            nonlocal done
            for _ in range(length):
                await asyncio.sleep(0)
            done += 1
            await asyncio.sleep(60)
            done += 100

        tasks = [asyncio.create_task(chain(length)) for length in (1, 10, 100)]
        await here().settled()
        assert len(tasks) == 3
        return done, here().time()

    assert run(main()) == (3, 0)
    assert run(main(), seed=5) == (3, 0)


def test_quiescent_is_the_end_of_all_work() -> None:
    """`quiescent` returns when nothing is ready and no timer is set, at the time of the last event."""

    async def main() -> float:
        asyncio.get_running_loop().call_later(100, lambda: here().call_later(11, lambda: None))
        await here().quiescent()
        return here().time()

    assert run(main()) == 111


def test_settled_and_quiescent_can_be_given_up() -> None:
    """A cancelled wait for rest leaves nothing behind that would wake."""

    async def main() -> float:
        for wait in (here().settled, here().quiescent):
            waiting = asyncio.create_task(wait())
            await asyncio.sleep(0)
            waiting.cancel()
        await asyncio.sleep(5)
        await here().settled()
        await here().quiescent()
        return here().time()

    assert run(main()) == 5


# ----------------------------------------------------------------------------------------------- the end of everything


async def waits_for_ever() -> None:
    """Wait for an event that nobody sets."""
    await asyncio.Event().wait()


def test_a_deadlock_is_told_and_says_who_waits_where() -> None:
    """`run` raises when its main task waits and nothing will ever happen, naming every task and where it is suspended."""

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(waits_for_ever(), name="waiter")
            await asyncio.sleep(42)

    with pytest.raises(Quiescent) as raised:
        run(main())
    assert raised.value.time == 42
    first, second = raised.value.waiting
    assert first.startswith("Task-1: test_a_deadlock_is_told_and_says_who_waits_where.<locals>.main > TaskGroup.__aexit__ (taskgroups.py:")
    assert second.startswith("waiter: waits_for_ever > Event.wait (locks.py:")
    assert "nothing will ever happen again (virtual time 42 s)" in str(raised.value)
    assert second in str(raised.value)


def test_equal_waiters_are_counted() -> None:
    """A thousand tasks that wait in the same place are one line of the message."""

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(1_000):
                group.create_task(waits_for_ever(), name="waiter")

    with pytest.raises(Quiescent, match=r"1000 × waiter: waits_for_ever") as raised:
        run(main())
    assert len(str(raised.value)) < 1_000


def test_a_livelock_is_told_and_says_who_is_busy() -> None:
    """Callbacks that keep each other busy without time moving on end the run and are named."""

    async def main() -> None:
        await asyncio.sleep(5)
        for _ in itertools.count():
            await asyncio.sleep(0)

    with pytest.raises(Livelock, match=r"(?s)1\d\d\d callbacks ran at virtual time 5 s.*Task-1: .*main") as raised:
        run(main(), livelock_after=1_000)
    assert raised.value.ready


def test_a_long_run_is_no_livelock() -> None:
    """The limit is on callbacks at one instant, not in all."""

    async def main() -> None:
        for _ in range(500):
            await asyncio.sleep(1)

    run(main(), livelock_after=100)


# ----------------------------------------------------------------------------------------------- plain asyncio on top


@pytest.mark.parametrize("seed", [None, 0, 1, 2])
def test_asyncio_primitives_work(seed: int | None) -> None:
    """Events, conditions, semaphores, queues, barriers, time-outs, gathering and shielding work in virtual time in any order."""

    async def main() -> list[object]:
        results: list[object] = []
        event, lock, condition, gate = asyncio.Event(), asyncio.Lock(), asyncio.Condition(), asyncio.Semaphore(2)
        queue: asyncio.Queue[int] = asyncio.Queue(maxsize=1)
        inside = 0

        async def producer() -> None:
            for number in range(5):
                await queue.put(number)

        async def limited() -> int:
            nonlocal inside
            async with gate:
                inside += 1
                assert inside <= 2
                await asyncio.sleep(1)
                inside -= 1
            return 1

        async def notified() -> str:
            async with condition:
                await condition.wait()
                return "notified"

        async with asyncio.TaskGroup() as group:
            group.create_task(producer())
            results.append([await queue.get() for _ in range(5)])
        results.append(sum(await asyncio.gather(*(limited() for _ in range(6)))))
        results.append(here().time())
        waiting = asyncio.create_task(notified())
        await here().settled()
        async with condition, lock:
            condition.notify_all()
        results.append(await waiting)
        here().call_later(10, event.set)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await event.wait()
        results.append(await asyncio.wait_for(event.wait(), 5.5))
        done, pending = await asyncio.wait([asyncio.create_task(asyncio.sleep(n)) for n in (1, 3)], timeout=2)
        results.append((len(done), len(pending)))
        results.append(here().time())
        return results

    assert run(main(), seed=seed) == [[0, 1, 2, 3, 4], 6, 3, "notified", True, (1, 1), 15]


# ----------------------------------------------------------------------------------------------- what a run does to its process


def test_a_run_lets_the_collector_look_seldom() -> None:
    """From the first simulation on garbage is looked for seldom; a collector that is off stays off, one that looks more seldom is left alone."""

    async def main() -> tuple[int, int, int]:
        return gc.get_threshold()

    before = gc.get_threshold()
    try:
        gc.set_threshold(700, 10, 10)
        assert run(main()) == (50_000, 40, 10)
        assert gc.get_threshold() == (50_000, 40, 10)
        gc.set_threshold(0)
        assert run(main())[0] == 0
        gc.set_threshold(300_000, 10, 10)
        assert run(main())[0] == 300_000
    finally:
        gc.set_threshold(*before)


def test_a_closed_loop_takes_no_callbacks() -> None:
    """A callback for a loop that is closed would never run: RuntimeError."""
    loop = SimLoop()
    loop.close()
    with pytest.raises(RuntimeError, match="closed"):
        loop.call_soon(fails)
