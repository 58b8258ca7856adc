"""A deterministic event loop in virtual time: plain asyncio code runs on it, and the same seed gives the same run.

Nothing comes from outside: no sockets, no threads, no clock. While callbacks are ready they run and time stands still;
when none is ready, time jumps to the next timer; when there is no timer either, nothing will ever happen again: the
loop is *quiescent*, which is how a simulation ends, or a deadlock when someone still waits for a result.

Among callbacks that are ready at the same time a real scheduler promises little. With a seed, each choice between them is drawn
from it: one integer names an interleaving. Without one the order is asyncio's own, first in, first out. The order of timers
that are due at one instant is the order in which they were set.

Virtual time starts at zero and moves in ticks of 2⁻²⁰ s, about a microsecond. A deadline is rounded up to a tick, so no timer
fires early; sums of ticks with a Unix epoch are exact in a float, so ``now + 10 s`` is ten seconds later to the last bit and a
time stamp never reads one second short.

    async def main():
        await asyncio.sleep(3600)

    run(main(), seed=7)

Only plain asyncio is needed on top: tasks, events, queues, task groups, timeouts. Two things in asyncio stay undefined and are for
the caller to avoid: ``asyncio.as_completed`` and ``asyncio.wait`` go over *sets* of what they are given (tasks are fine, they hash
by age here; coroutines are not).
"""

# A loop is a friend of its handles: it runs them and asks whether they are cancelled, as asyncio's own loops do.
# ruff: noqa: SLF001

from __future__ import annotations

import asyncio
import heapq
import math
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context, copy_context
from random import Random
from typing import Any, NamedTuple, NoReturn, TypeVar, TypeVarTuple

from kubemini.machinery.collecting import collect_rarely
from kubemini.machinery.errors import DeterminismError, KubeminiError
from kubemini.sim.describing import describe_handle, describe_task, listed

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

TICKS = 1 << 20
"""Ticks of virtual time in a second."""
REACH = 128
"""How many of the oldest ready callbacks a choice is made among; keeps a choice cheap when 100,000 are ready."""
LIVELOCK = 10_000_000
"""After so many callbacks without time moving on, a run is taken to be stuck."""

Chooser = Callable[[int], int]
"""Given n ≥ 2 ready callbacks, oldest first, returns which one runs: 0 … n-1."""


class Quiescent(KubeminiError):
    """Nothing is ready and no timer is set, yet something is waited for: it will never come. `waiting` says who waits where."""

    def __init__(self, time: float, waiting: tuple[str, ...]) -> None:
        self.time = time
        self.waiting = waiting
        super().__init__(
            f"nothing will ever happen again (virtual time {time:g} s): no callback is ready and no timer is set; waiting:"
            f"{listed(waiting) if waiting else ' no task'}"
        )


class Livelock(KubeminiError):
    """Callbacks keep each other busy and virtual time stands still: typically a retry without a delay."""

    def __init__(self, time: float, steps: int, ready: tuple[str, ...]) -> None:
        self.time = time
        self.ready = ready
        super().__init__(
            f"{steps} callbacks ran at virtual time {time:g} s and still more are ready: something retries without a delay; ready:{listed(ready)}"
        )


class Timer(NamedTuple):
    """A timer that is set: the virtual time at which it is due, and what it does."""

    when: float
    what: str


class SimTask(asyncio.Task[T]):
    """A task that hashes by age, so that sets of tasks (a TaskGroup keeps one) are iterated in the same order in every process."""

    __slots__ = ("age",)

    def __init__(self, coro: Generator[Any, Any, T] | Coroutine[Any, Any, T], *, age: int, **more: Any) -> None:
        self.age = age
        super().__init__(coro, **more)

    def __hash__(self) -> int:
        """Return the number of the task on its loop."""
        return self.age

    def __eq__(self, other: object) -> bool:
        """Tell whether it is the same task."""
        return self is other


class _Handle(asyncio.Handle):
    """A handle that is made without asking the loop whether it debugs: there are thousands in each run."""

    __slots__ = ()

    def __init__(self, callback: Callable[..., object], args: tuple[Any, ...], loop: SimLoop, context: Context | None) -> None:
        self._callback = callback
        self._args = args
        self._loop = loop
        self._context = copy_context() if context is None else context
        self._cancelled = False
        self._repr = None
        self._source_traceback = None


class _Alarm(asyncio.TimerHandle):
    __slots__ = ("on_heap",)

    on_heap: bool


class SimLoop(asyncio.BaseEventLoop):
    """asyncio's loop with time, order and the outside world replaced; see the module's text.

    `seed` names an interleaving, None is first in, first out. `choose` replaces the seed by a function of one's own (an explicit plan,
    draws of hypothesis). `on_step` is called after every callback with its handle (`describe_handle` puts it in words); what
    it raises ends the run. An exception in a plain callback ends the run too, unless an exception handler is set.
    """

    chooses = True
    """Tells work queues to set a timer for each key: the order of what is due at one instant is this loop's to choose."""

    # kept by BaseEventLoop, unknown to its published types
    _closed: bool
    _debug: bool
    _stopping: bool
    _thread_id: int | None

    def __init__(
        self,
        seed: int | None = None,
        *,
        choose: Chooser | None = None,
        on_step: Callable[[asyncio.Handle], object] | None = None,
        livelock_after: int = LIVELOCK,
    ) -> None:
        super().__init__()
        self.seed = seed
        self.on_step = on_step
        self.steps = 0
        """How many callbacks have run: with the seed it names a point of a run."""
        self.livelock_after = livelock_after
        self._choose = choose if choose is not None else None if seed is None else _seeded(seed)
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, int, _Alarm]] = []
        self._timers_set = 0
        self._timers_cancelled = 0
        self._now = 0.0
        self._steps_before_now = 0
        self._horizon = math.inf
        self._returns_when_quiescent = False
        self._settling: list[asyncio.Future[None]] = []
        self._ending: list[asyncio.Future[None]] = []
        self._created = 0
        self._tasks: list[asyncio.Task[Any]] = []
        self._tasks_swept = 64
        self._failure: BaseException | None = None

    # ------------------------------------------------------------------------------------------- running

    def run_until(self, time: float) -> None:
        """Run everything that is due up to and at virtual `time`, which it is afterwards."""
        if time < self._now:
            raise ValueError(f"run_until({time!r}): virtual time is {self._now!r} already and never goes back")
        self._horizon = _tick_up(time)
        try:
            self.run_forever()
        finally:
            self._horizon = math.inf

    def advance(self, seconds: float) -> None:
        """Let `seconds` of virtual time go by and run everything that is due in them."""
        self.run_until(self._now + seconds)

    def run_until_quiescent(self, *, before: float = math.inf) -> bool:
        """Run until nothing is ready and no timer is set and return True; return False where virtual time `before` came first."""
        self._returns_when_quiescent = True
        try:
            if before < math.inf:
                self.run_until(before)
            else:
                self.run_forever()
        finally:
            self._returns_when_quiescent = False
        return not self._ready and not self._next_timer_is_set()

    async def settled(self) -> None:
        """Wait until every other callback that is due at this instant has run: the moment before time would move on."""
        await self._until(self._settling)

    async def quiescent(self) -> None:
        """Wait until no other callback is ready and no timer is set: all there is to do is done, however long it takes."""
        await self._until(self._ending)

    def time(self) -> float:
        """Return the virtual time in seconds since the loop was made, a multiple of 2⁻²⁰."""
        return self._now

    # ------------------------------------------------------------------------------------------- looking at it

    def next_timer(self) -> float:
        """Return the virtual time at which the next timer is due, infinity when none is set."""
        return float(self._timers[0][0]) if self._next_timer_is_set() else math.inf

    def pending_tasks(self) -> list[asyncio.Task[Any]]:
        """Return the tasks that are not done, oldest first."""
        return [task for task in self._tasks if not task.done()]

    def pending_timers(self) -> list[Timer]:
        """Return the timers that are set, in the order in which they will fire."""
        return [Timer(when, describe_handle(timer)) for when, _, timer in sorted(self._timers) if not timer.cancelled()]

    def pending_callbacks(self) -> list[str]:
        """Return what is ready to run, oldest first."""
        return [describe_handle(handle) for handle in self._ready if not handle.cancelled()]

    def __repr__(self) -> str:
        """Show what names this point of the run."""
        return f"<SimLoop seed={self.seed} steps={self.steps} time={self._now:g} ready={len(self._ready)} timers={len(self._timers) - self._timers_cancelled}>"

    # ------------------------------------------------------------------------------------------- what asyncio asks of a loop

    def call_soon(self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None) -> asyncio.Handle:
        """Have a callback run at this instant."""
        if self._debug or self._closed:
            return super().call_soon(callback, *args, context=context)
        handle = _Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(self, delay: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None) -> asyncio.TimerHandle:
        """Set a timer `delay` seconds from now."""
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None) -> asyncio.TimerHandle:
        """Set a timer at a virtual time, rounded up to a tick. One in the past is due now; one at infinity never fires."""
        if self.is_closed():
            raise RuntimeError("Event loop is closed")
        if when > self._now:
            when = _tick_up(when)
        elif when <= self._now:
            when = self._now
        else:
            raise ValueError("a timer cannot be set at NaN")
        timer = _Alarm(when, callback, args, self, context)
        timer.on_heap = True
        self._timers_set += 1
        heapq.heappush(self._timers, (when, self._timers_set, timer))
        return timer

    def call_soon_threadsafe(self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None) -> asyncio.Handle:
        """Do as `call_soon`: there are no other threads. Raise `DeterminismError` on one."""
        running = self._thread_id
        if running is not None and running != threading.get_ident():
            raise DeterminismError("call_soon_threadsafe from another thread: when it arrives would be up to the operating system")
        return self.call_soon(callback, *args, context=context)

    def create_task(self, coro: Generator[Any, Any, T] | Coroutine[Any, Any, T], *, name: object = None, **more: Any) -> asyncio.Task[T]:
        """Start a task. The loop numbers its tasks from 1 and keeps them alive until they are done."""
        if self.is_closed():
            raise RuntimeError("Event loop is closed")
        self._created += 1
        factory = self.get_task_factory()
        task: asyncio.Task[T]
        if factory is None:
            task = SimTask(coro, age=self._created, loop=self, name=name or f"Task-{self._created}", **more)
        else:
            task = super().create_task(coro, name=name, **more)
        self._tasks.append(task)
        if len(self._tasks) > self._tasks_swept:
            self._tasks = self.pending_tasks()
            self._tasks_swept = max(64, 2 * len(self._tasks))
        return task

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        """End the run where a callback raised, for nobody else would notice; log the rest as asyncio does."""
        error = context.get("exception")
        if "handle" in context and isinstance(error, BaseException) and self._failure is None:
            self._failure = error
        else:
            super().default_exception_handler(context)

    def close(self) -> None:
        """Forget what is ready and set. Idempotent."""
        super().close()
        self._timers.clear()
        self._tasks.clear()
        self._settling.clear()
        self._ending.clear()

    # ------------------------------------------------------------------------------------------- one turn

    def _run_once(self) -> None:
        """Run the callbacks that are ready, or move time on to the next timer. Called by `run_forever` until `stop`."""
        ready: deque[Any] = self._ready
        if self._timers and self._timers[0][0] <= self._now:
            self._fire_due()
        if not ready and not self._stopping:
            self._move_on()
        elif self.steps - self._steps_before_now > self.livelock_after:
            self._steps_before_now, steps = self.steps, self.steps - self._steps_before_now
            raise Livelock(self._now, steps, tuple(self.pending_callbacks()))
        choose, on_step = self._choose, self.on_step
        # as in asyncio, a turn is as many callbacks as were ready when it began: only then is `stop` looked at
        for _ in range(len(ready)):
            chosen = 0 if choose is None or len(ready) == 1 else choose(min(len(ready), REACH))
            if chosen:
                handle = ready[chosen]
                del ready[chosen]
            else:
                handle = ready.popleft()
            if handle._cancelled:
                continue
            self.steps += 1
            try:
                handle._context.run(handle._callback, *handle._args)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:  # noqa: BLE001  as asyncio's handles do
                self._report(handle, error)
            if on_step is not None:
                on_step(handle)

    def _report(self, handle: asyncio.Handle, error: BaseException) -> None:
        self.call_exception_handler({"message": f"Exception in callback {describe_handle(handle)}", "exception": error, "handle": handle})
        if self._failure is not None:
            error, self._failure = self._failure, None
            raise error

    def _move_on(self) -> None:
        if self._settling:
            self._wake(self._settling)
        elif self._next_timer_is_set():
            self._jump()
        elif self._ending:
            self._wake(self._ending)
        elif self._returns_when_quiescent:
            self.stop()
        elif self._horizon < math.inf:
            self._reach_horizon()
        else:
            raise Quiescent(self._now, tuple(describe_task(task) for task in self.pending_tasks()))

    def _next_timer_is_set(self) -> bool:
        timers = self._timers
        while timers and timers[0][2]._cancelled:
            heapq.heappop(timers)[2].on_heap = False
            self._timers_cancelled -= 1
        return bool(timers) and timers[0][0] < math.inf

    def _jump(self) -> None:
        when = self._timers[0][0]
        if when > self._horizon:
            self._reach_horizon()
            return
        self._now = when
        self._steps_before_now = self.steps
        self._fire_due()

    def _reach_horizon(self) -> None:
        self._now = max(self._now, self._horizon)
        self._steps_before_now = self.steps
        self.stop()

    def _fire_due(self) -> None:
        timers, now, ready = self._timers, self._now, self._ready
        while timers and timers[0][0] <= now:
            timer = heapq.heappop(timers)[2]
            timer.on_heap = False
            if timer._cancelled:
                self._timers_cancelled -= 1
            else:
                ready.append(timer)

    def _timer_handle_cancelled(self, handle: _Alarm) -> None:
        if not handle.on_heap:
            return
        self._timers_cancelled += 1
        if self._timers_cancelled > 100 and 2 * self._timers_cancelled > len(self._timers):
            self._timers = [each for each in self._timers if not each[2]._cancelled and each[2] is not handle]
            heapq.heapify(self._timers)
            self._timers_cancelled = 0

    async def _until(self, waiting: list[asyncio.Future[None]]) -> None:
        waiter: asyncio.Future[None] = self.create_future()
        waiting.append(waiter)
        await waiter

    def _wake(self, waiting: list[asyncio.Future[None]]) -> None:
        waiters = waiting[:]
        waiting.clear()
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _write_to_self(self) -> None:
        """Do nothing: no other thread could wait to be woken."""

    def _process_events(self, event_list: object) -> None:
        """Do nothing: there are no sockets."""


def _refusing(name: str, what: str) -> Callable[..., NoReturn]:
    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise DeterminismError(f"{name} on a loop in virtual time: {what} would make the run depend on the outside; use a real loop, or a fake")

    refuse.__name__ = name
    refuse.__qualname__ = f"SimLoop.{name}"
    refuse.__doc__ = f"Raise `DeterminismError`: no {what} here."
    return refuse


_REFUSED = {
    "a thread": ("run_in_executor", "set_default_executor", "getaddrinfo", "getnameinfo"),
    "a socket": (
        *("create_connection", "create_server", "create_unix_connection", "create_unix_server", "create_datagram_endpoint"),
        *("connect_accepted_socket", "start_tls", "sendfile", "add_reader", "remove_reader", "add_writer", "remove_writer"),
        *("sock_recv", "sock_recv_into", "sock_recvfrom", "sock_recvfrom_into", "sock_sendall", "sock_sendto", "sock_connect"),
        *("sock_accept", "sock_sendfile", "connect_read_pipe", "connect_write_pipe"),
    ),
    "a process": ("subprocess_exec", "subprocess_shell"),
    "a signal": ("add_signal_handler", "remove_signal_handler"),
}

for _what, _names in _REFUSED.items():
    for _name in _names:
        setattr(SimLoop, _name, _refusing(_name, _what))


def _seeded(seed: int) -> Chooser:
    # a stream of its own: ids and jitter are drawn from the plain seed and must not shift when the interleaving does
    draw = Random(f"interleaving {seed}").random

    def choose(count: int) -> int:
        return int(draw() * count)

    return choose


def _tick_up(seconds: float) -> float:
    if seconds == math.inf:
        return seconds
    return math.ceil(seconds * TICKS) / TICKS


# ----------------------------------------------------------------------------------------------- a whole run


def run(
    main: Coroutine[Any, Any, T],
    *,
    seed: int | None = None,
    choose: Chooser | None = None,
    on_step: Callable[[asyncio.Handle], object] | None = None,
    livelock_after: int = LIVELOCK,
) -> T:
    """Run a coroutine on a loop of its own and return its result, as `asyncio.run` does in real time.

    What is still pending at the end is cancelled, oldest first, without `on_step`. Raise `Quiescent` where `main` waits for what will never
    come, `Livelock` where time stands still for ever, and whatever `main`, a callback or `on_step` raises.
    """
    if _loop_runs_here():
        main.close()
        raise RuntimeError("run() cannot be called from a running event loop: await the coroutine there, or call run() from plain code")
    loop = SimLoop(seed, choose=choose, on_step=on_step, livelock_after=livelock_after)
    collect_rarely()
    try:
        return _completed(loop, main)
    finally:
        loop.close()


def _completed(loop: SimLoop, main: Coroutine[Any, Any, T]) -> T:
    try:
        result = loop.run_until_complete(main)
    except BaseException as error:
        try:
            _wind_up(loop)
        except Exception as another:  # noqa: BLE001
            error.add_note(f"and while the run was shut down: {another!r}")
        raise
    _wind_up(loop)
    return result


def _loop_runs_here() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _wind_up(loop: SimLoop) -> None:
    # one failure must not keep the rest from being shut down: the first is raised at the end
    failures: list[BaseException] = []
    loop.on_step = None
    if loop.get_exception_handler() is None:
        loop.set_exception_handler(lambda loop, context: _collect(failures, loop, context))
    pending = loop.pending_tasks()
    for task in pending:
        task.cancel()
    if pending:
        loop.run_until_complete(_all_done(pending))
    for task in pending:
        if not task.cancelled() and (error := task.exception()) is not None:
            loop.call_exception_handler({"message": "a task failed while the run was shut down", "exception": error, "task": task})
    loop.run_until_complete(loop.shutdown_asyncgens())
    if failures:
        raise failures[0]


def _collect(failures: list[BaseException], loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    error = context.get("exception")
    if isinstance(error, BaseException):
        failures.append(error)
    else:
        loop.default_exception_handler(context)


async def _all_done(tasks: list[asyncio.Task[Any]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)
