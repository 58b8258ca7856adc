"""The deterministic event loop: order, errors, what it refuses, and whole runs."""

import asyncio
import gc
import itertools
import math
import socket
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, cast

import pytest

from kubemini.machinery.errors import DeterminismError
from kubemini.sim.loop import SimLoop, SimTask, run


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


# ----------------------------------------------------------------------------------------------- order


async def three() -> str:
    """Return the order in which three tasks ran."""
    order: list[str] = []

    async def note(name: str) -> None:
        order.append(name)

    async with asyncio.TaskGroup() as group:
        for name in "abc":
            group.create_task(note(name))
    return "".join(order)


def test_without_a_seed_order_is_first_in_first_out() -> None:
    """No seed means asyncio's own order."""
    assert run(three()) == asyncio.run(three()) == "abc"


def test_seeds_reach_every_interleaving_and_name_it() -> None:
    """Among few seeds each order of three tasks occurs, and a seed always gives the same one."""
    orders = {seed: run(three(), seed=seed) for seed in range(60)}
    assert sorted(set(orders.values())) == sorted("".join(order) for order in itertools.permutations("abc"))
    assert orders == {seed: run(three(), seed=seed) for seed in range(60)}


def test_a_chooser_decides_instead_of_a_seed() -> None:
    """With `choose` the caller picks among what is ready, oldest first; it is asked only where there is a choice."""
    asked: list[int] = []

    def last(ready: int) -> int:
        asked.append(ready)
        return ready - 1

    assert run(three(), choose=last) == "cba"
    assert min(asked) >= 2
    assert run(three(), choose=lambda _: 0) == "abc"


def test_every_one_of_many_ready_callbacks_runs_once() -> None:
    """However many callbacks are ready, a seeded run runs each exactly once."""
    loop = SimLoop(seed=3)
    seen: list[int] = []
    for number in range(5_000):
        loop.call_soon(seen.append, number)
    loop.run_until_quiescent()
    assert seen != sorted(seen)
    assert sorted(seen) == list(range(5_000))
    loop.close()


def test_a_cancelled_ready_callback_does_not_run(loop: SimLoop) -> None:
    """A callback that is cancelled while it is ready is skipped and counts as no step."""
    loop.call_soon(pytest.fail, "ran").cancel()
    assert loop.run_until_quiescent()
    assert loop.steps == 0


def test_a_failing_task_group_cancels_its_tasks_oldest_first() -> None:
    """asyncio keeps the tasks of a group in a set; here its order is their age, not their address."""

    async def main() -> list[int]:
        cancelled: list[int] = []

        async def wait(number: int) -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(number)
                raise

        async def fail() -> None:
            async with asyncio.TaskGroup() as group:
                for number in range(100):
                    group.create_task(wait(number))
                await asyncio.sleep(1)
                raise ValueError

        with pytest.raises(ExceptionGroup):
            await fail()
        return cancelled

    assert run(main()) == list(range(100))


def test_steps_count_callbacks_and_on_step_sees_each(loop: SimLoop) -> None:
    """`on_step` is called after every callback with its handle; `steps` is how many there were."""
    seen: list[asyncio.Handle] = []
    loop.on_step = seen.append
    handles = [loop.call_soon(lambda: None), loop.call_later(1, lambda: None)]
    loop.run_until_quiescent()
    assert seen == handles
    assert loop.steps == 2


def test_what_on_step_raises_ends_the_run() -> None:
    """A violated invariant stops the run at the very step, and is not swallowed."""
    loops: list[SimLoop] = []

    async def main() -> None:
        loops.append(here())
        await asyncio.sleep(10)
        await asyncio.sleep(10)
        pytest.fail("went on")

    def check(_: asyncio.Handle) -> None:
        if loops and loops[0].time() >= 10:
            raise AssertionError("violated")

    with pytest.raises(AssertionError, match="violated"):
        run(main(), on_step=check)
    assert loops[0].time() == 10


# ----------------------------------------------------------------------------------------------- errors


def test_an_exception_in_a_callback_ends_the_run() -> None:
    """A plain callback that raises is not just logged: `run` raises what it raised."""

    async def main() -> None:
        here().call_later(1, fails)
        await asyncio.sleep(2)

    with pytest.raises(KeyError, match="missing"):
        run(main())


def test_an_exception_handler_takes_over(loop: SimLoop) -> None:
    """With an exception handler set, it gets what callbacks raise and the run goes on."""
    contexts: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: contexts.append(context))
    loop.call_soon(fails)
    assert loop.run_until_quiescent()
    assert isinstance(contexts[0]["exception"], KeyError)


def test_run_raises_what_main_raises_and_notes_what_failed_after() -> None:
    """The error of the main coroutine comes out; an error while the rest is shut down is noted on it."""

    async def main() -> None:
        here().call_soon(here().call_soon, fails)
        raise ValueError("main")

    with pytest.raises(ValueError, match="main") as raised:
        run(main())
    assert raised.value.__notes__ == ["and while the run was shut down: KeyError('missing')"]


def test_run_inside_a_running_loop_is_refused() -> None:
    """`run` from a coroutine is a mistake and says what to do."""

    async def main() -> None:
        run(asyncio.sleep(0))

    with pytest.raises(RuntimeError, match="cannot be called from a running event loop"):
        run(main())


@pytest.mark.parametrize(
    "call",
    [
        lambda: asyncio.to_thread(print),
        lambda: asyncio.get_running_loop().getaddrinfo("localhost", 80),
        lambda: asyncio.open_connection("localhost", 80),
        lambda: asyncio.start_server(lambda *_: None, "localhost", 0),
        lambda: asyncio.start_unix_server(lambda *_: None, "/nowhere"),
        lambda: asyncio.create_subprocess_exec("true"),
        lambda: asyncio.create_subprocess_shell("true"),
        lambda: asyncio.get_running_loop().sock_recv(cast("socket.socket", None), 1),
        lambda: asyncio.get_running_loop().run_in_executor(None, print),
    ],
    ids=["thread", "name", "connection", "server", "unix server", "program", "shell", "socket", "executor"],
)
def test_the_outside_world_is_refused(call: Callable[[], Any]) -> None:
    """Threads, sockets and processes raise `DeterminismError` at once."""

    async def main() -> None:
        with pytest.raises(DeterminismError, match=r"on a loop in virtual time: a (thread|socket|process) would make"):
            await call()

    run(main())


def test_every_method_that_reaches_outside_is_refused() -> None:
    """What a selector loop has over the bare base, and what the base does with sockets and threads, raises `DeterminismError`."""
    outside = [name for name in dir(asyncio.SelectorEventLoop) if name.startswith(("sock_", "create_", "connect_", "subprocess_", "add_", "remove_"))]
    kept = {"create_future", "create_task"}
    loop = SimLoop()
    assert len(outside) > 20
    for name in sorted({*outside, "sendfile", "start_tls", "run_in_executor", "set_default_executor", "getnameinfo"} - kept):
        with pytest.raises(DeterminismError):
            cast("Callable[[], object]", getattr(loop, name))()
    loop.close()


def test_other_threads_are_refused_and_the_own_is_welcome() -> None:
    """`call_soon_threadsafe` works from the loop's thread and raises on any other while the loop runs."""
    raised: list[type[BaseException]] = []

    async def main() -> str:
        loop = here()

        def intrude() -> None:
            try:
                loop.call_soon_threadsafe(pytest.fail, "ran")
            except DeterminismError as error:
                raised.append(type(error))

        thread = threading.Thread(target=intrude)
        thread.start()
        thread.join()
        future: asyncio.Future[str] = loop.create_future()
        loop.call_soon_threadsafe(future.set_result, "own")
        return await future

    assert run(main()) == "own"
    assert raised == [DeterminismError]


def test_a_closed_loop_takes_nothing(loop: SimLoop) -> None:
    """Callbacks, timers and tasks on a closed loop are refused; closing twice is fine."""
    loop.close()
    loop.close()
    calls: list[Callable[[], object]] = [lambda: loop.call_soon(print), lambda: loop.call_later(1, print), lambda: loop.call_at(1, print)]
    for call in calls:
        with pytest.raises(RuntimeError, match="closed"):
            call()
    sleeping = asyncio.sleep(1)
    with pytest.raises(RuntimeError, match="closed"):
        _ = loop.create_task(sleeping)
    sleeping.close()


# ----------------------------------------------------------------------------------------------- tasks, and the end of a run


def test_tasks_are_numbered_per_loop() -> None:
    """Names of tasks start at 1 on every loop; a name of one's own is kept."""

    async def main() -> list[str]:
        tasks = [asyncio.create_task(asyncio.sleep(0)), asyncio.create_task(asyncio.sleep(0), name="mine")]
        return [each.get_name() for each in (asyncio.current_task(), *tasks) if each]

    assert run(main()) == run(main()) == ["Task-1", "Task-2", "mine"]


def test_a_task_factory_is_used() -> None:
    """A task factory makes the tasks, as in asyncio, and they are known to the loop."""
    made: list[str | None] = []

    def factory(loop: asyncio.AbstractEventLoop, coro: Any, **more: Any) -> asyncio.Task[Any]:
        made.append(more.get("name"))
        return SimTask(coro, age=1, loop=loop, **more)

    async def main() -> int:
        here().set_task_factory(factory)
        task = asyncio.create_task(asyncio.sleep(1))
        assert task in here().pending_tasks()
        await task
        return len(made)

    assert run(main()) == 1


def test_a_task_that_nobody_holds_is_kept_alive() -> None:
    """When a forgotten task ends is up to the program, never to the garbage collector."""

    async def main() -> list[str]:
        ends: list[str] = []

        async def forgotten() -> None:
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                ends.append("ended")

        asyncio.create_task(forgotten())  # type: ignore[unused-awaitable]  # noqa: RUF006
        await asyncio.sleep(1)
        gc.collect()
        return ends[:]

    assert run(main()) == []


def test_run_cancels_what_is_left_oldest_first() -> None:
    """Tasks that outlive the main coroutine are cancelled in the order of their age and may clean up in virtual time."""
    ends: list[tuple[int, float]] = []

    async def outlive(number: int) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(number)
            ends.append((number, here().time()))

    async def main() -> list[asyncio.Task[None]]:
        tasks = [asyncio.create_task(outlive(number)) for number in (3, 1, 2)]
        await asyncio.sleep(10)
        return tasks

    tasks = run(main())
    assert ends == [(1, 11), (2, 12), (3, 13)]
    assert all(task.cancelled() for task in tasks)


def test_run_closes_async_generators() -> None:
    """An asynchronous generator that was left half-way is closed before `run` returns."""
    ends: list[str] = []
    kept: list[AsyncIterator[int]] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            ends.append("closed")

    async def main() -> int:
        kept.append(numbers())
        return await anext(kept[0])

    assert run(main()) == 1
    assert ends == ["closed"]


def test_loops_leave_nothing_behind() -> None:
    """A loop is freed with its timers when its run ends, without the garbage collector; with tasks that had to be cancelled, by it."""

    async def main(*, leave_a_task: bool) -> tuple[weakref.ref[Any], weakref.ref[Any]]:
        here().call_later(99, lambda: None)
        queue: asyncio.Queue[int] = asyncio.Queue()
        task = asyncio.create_task(queue.get())
        await asyncio.sleep(1)
        if not leave_a_task:
            queue.put_nowait(1)
            await task
        return weakref.ref(here()), weakref.ref(task)

    gc.collect()
    gc.disable()
    try:
        for leave_a_task in (False, True):
            left = [reference for seed in range(100) for reference in run(main(leave_a_task=leave_a_task), seed=seed)]
            if leave_a_task:  # asyncio's cancelled futures and their tracebacks are cycles
                gc.collect()
            assert not any(reference() for reference in left)
    finally:
        gc.enable()


def test_asyncio_runner_drives_it() -> None:
    """The loop is a loop like any other to asyncio's own runner."""
    with asyncio.Runner(loop_factory=lambda: SimLoop(seed=1)) as runner:
        assert runner.run(asyncio.sleep(3_600, "slept")) == "slept"
        loop = runner.get_loop()
        assert loop.time() == 3_600


def test_what_is_pending_can_be_listed(loop: SimLoop) -> None:
    """Tasks, ready callbacks and timers are listed in words that hold no address, in the order in which they will run."""

    async def worker() -> None:
        await asyncio.sleep(5)

    task = loop.create_task(worker(), name="worker")
    assert loop.pending_callbacks() == ["worker: test_what_is_pending_can_be_listed.<locals>.worker"]
    loop.call_later(9, print)
    loop.call_later(7, print).cancel()
    loop.advance(1)
    assert loop.next_timer() == 5
    assert loop.pending_tasks() == [task]
    assert [timer.when for timer in loop.pending_timers()] == [5, 9]
    assert loop.pending_timers()[1].what == "print"
    assert repr(loop) == f"<SimLoop seed=None steps={loop.steps} time=1 ready=0 timers=2>"
    loop.run_until_quiescent()
    assert loop.next_timer() == math.inf
