"""The work queue beside a naive model, and its promises under every interleaving of workers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kubemini.runtime.workqueue import Backoff, QueueShutDown, WorkQueue
from kubemini.sim.loop import SimLoop, run

KEYS = st.sampled_from("abcd")
PRIORITIES = st.sampled_from([0, 0, 1, 5, -1])
SECONDS = st.sampled_from([-1, 0, 1, 2, 2, 5])


@dataclass
class Model:
    """What the queue should do, said as plainly as possible: lists that are searched and sorted."""

    now: float = 0.0
    ticket: int = 0
    down: bool = False
    line: list[tuple[int, int, str]] = field(default_factory=list)
    """(−priority, ticket, key): the smallest comes first."""
    held: list[str] = field(default_factory=list)
    again: dict[str, int] = field(default_factory=dict)
    timers: list[tuple[float, int, str, int]] = field(default_factory=list)
    failures: dict[str, int] = field(default_factory=dict)

    def next_ticket(self) -> int:
        """Return a number greater than all before."""
        self.ticket += 1
        return self.ticket

    def add(self, key: str, priority: int) -> None:
        """Put a key in line, or note that it is to come again."""
        if self.down:
            return
        if key in self.held:
            self.again[key] = max(priority, self.again.get(key, priority))
            return
        present = [entry for entry in self.line if entry[2] == key]
        if not present or priority > -present[0][0]:
            self.line = [entry for entry in self.line if entry[2] != key]
            self.line.append((-priority, self.next_ticket(), key))

    def add_after(self, key: str, seconds: float, priority: int) -> None:
        """Note a timer."""
        if self.down:
            return
        if seconds <= 0:
            self.add(key, priority)
            return
        mine = [timer for timer in self.timers if timer[2] == key]
        self.timers = [timer for timer in self.timers if timer[2] != key]
        best = (self.now + seconds, self.next_ticket(), key, priority)
        if mine:
            before = mine[0]
            highest = max(priority, before[3])
            best = (*(best[:2] if best[0] < before[0] else before[:2]), key, highest)
        self.timers.append(best)

    def take(self) -> str | None:
        """Hand out the next key."""
        if not self.line:
            return None
        self.line.sort()
        key = self.line.pop(0)[2]
        self.held.append(key)
        return key

    def done(self, key: str) -> None:
        """Take a key back."""
        self.held.remove(key)
        if key in self.again:
            self.line.append((-self.again.pop(key), self.next_ticket(), key))

    def pass_time(self, seconds: float) -> None:
        """Let timers fire."""
        self.now += seconds
        due = sorted(timer for timer in self.timers if timer[0] <= self.now)
        self.timers = [timer for timer in self.timers if timer[0] > self.now]
        for _, _, key, priority in due:
            self.add(key, priority)


class QueueMachine(RuleBasedStateMachine):
    """Any sequence of calls on queue and model gives the same answers."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = SimLoop()
        self.queue: WorkQueue[str] = WorkQueue(backoff=Backoff(base=1, limit=4))
        self.model = Model()

    def teardown(self) -> None:
        """Close the loop."""
        self.loop.close()

    def on_loop(self, call: Callable[[], object]) -> None:
        """Make a call from inside the loop, at the present time."""
        self.loop.call_soon(call)
        self.loop.advance(0)

    @rule(key=KEYS, priority=PRIORITIES)
    def add(self, key: str, priority: int) -> None:
        """Add a key."""
        self.queue.add(key, priority)
        self.model.add(key, priority)

    @rule(key=KEYS, seconds=SECONDS, priority=PRIORITIES)
    def add_after(self, key: str, seconds: float, priority: int) -> None:
        """Add a key later."""
        self.on_loop(lambda: self.queue.add_after(key, seconds, priority))
        self.model.add_after(key, seconds, priority)

    @rule(key=KEYS)
    def add_rate_limited(self, key: str) -> None:
        """Add a key after its back-off."""
        self.on_loop(lambda: self.queue.add_rate_limited(key))
        if not self.model.down:
            failures = self.model.failures.get(key, 0)
            self.model.failures[key] = failures + 1
            self.model.add_after(key, min(4, 2**failures), 0)

    @rule(key=KEYS)
    def forget(self, key: str) -> None:
        """Reset a back-off."""
        self.queue.forget(key)
        self.model.failures.pop(key, None)

    @rule()
    def take(self) -> None:
        """Take the next key."""
        assert self.queue.try_get() == self.model.take()

    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        """Release a held key."""
        if self.model.held:
            key = data.draw(st.sampled_from(sorted(self.model.held)))
            self.queue.done(key)
            self.model.done(key)

    @rule(seconds=st.sampled_from([1, 2, 7]))
    def pass_time(self, seconds: int) -> None:
        """Let time go by."""
        self.loop.advance(seconds)
        self.model.pass_time(seconds)

    @precondition(lambda self: self.model.ticket > 15)
    @rule()
    def shut_down(self) -> None:
        """Shut the queue down."""
        self.queue.shut_down()
        self.model.down = True
        self.model.timers.clear()

    @invariant()
    def same(self) -> None:
        """What can be seen of queue and model is the same."""
        vars(type(self.queue))["_check"](self.queue)
        assert len(self.queue) == len(self.model.line)
        assert self.queue.delayed == {key: when for when, _, key, _ in self.model.timers}
        assert self.queue.idle == (not self.model.line and not self.model.held)
        assert all(self.queue.num_requeues(key) == self.model.failures.get(key, 0) for key in "abcd")


class SharedTimerMachine(QueueMachine):
    """The same on a loop whose timers are nobody's to choose among, as asyncio's own: all delayed adds share one."""

    def __init__(self) -> None:
        super().__init__()
        self.loop.chooses = False


TestQueueBesideModel = QueueMachine.TestCase
TestQueueWithOneTimerBesideModel = SharedTimerMachine.TestCase

EVENTS = st.lists(st.tuples(KEYS, st.integers(0, 3)), max_size=30)
"""Changes of the world: which object, and how many seconds after the one before."""


@given(
    events=EVENTS, workers=st.integers(1, 4), seed=st.integers(0, 2**32), failing=st.integers(0, 5), crashes=st.lists(st.integers(1, 9), max_size=4)
)
def test_no_event_is_lost_and_no_key_is_handled_twice_at_once(
    events: list[tuple[str, int]], workers: int, seed: int, failing: int, crashes: list[int]
) -> None:
    """Whatever the interleaving, failures and restarts of workers: one worker per key, and each key's last change is seen."""
    version = dict.fromkeys("abcd", 0)
    seen = dict.fromkeys("abcd", 0)
    failures = [failing]

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimLoop)
        queue: WorkQueue[str] = WorkQueue()
        busy: dict[str, int] = {}

        async def worker(number: int) -> None:
            while True:
                key = await queue.get()
                assert busy.setdefault(key, number) == number
                try:
                    latest = version[key]
                    await asyncio.sleep(1)
                    if failures[0] > 0:
                        failures[0] -= 1
                        queue.add_rate_limited(key)
                    else:
                        seen[key] = latest
                        queue.forget(key)
                except asyncio.CancelledError:
                    queue.add(key)
                    raise
                finally:
                    del busy[key]
                    queue.done(key)

        pool = [asyncio.create_task(worker(number)) for number in range(workers)]

        async def crash() -> None:
            for pause in crashes:
                await asyncio.sleep(pause)
                number = len(pool) % workers
                pool[number].cancel()
                pool[number] = asyncio.create_task(worker(number))

        crashing = asyncio.create_task(crash())
        for key, pause in events:
            await asyncio.sleep(pause)
            version[key] += 1
            queue.add(key)
        await crashing
        await loop.quiescent()
        assert queue.idle
        assert not queue.delayed
        queue.shut_down()
        ends = await asyncio.gather(*pool, return_exceptions=True)
        assert all(isinstance(end, QueueShutDown) for end in ends)

    run(main(), seed=seed)
    assert seen == version


@given(keys=st.lists(KEYS, max_size=12), cancelled=st.lists(st.integers(0, 5), max_size=4), seed=st.integers(0, 2**32))
def test_a_key_in_line_never_waits_beside_an_idle_worker(keys: list[str], cancelled: list[int], seed: int) -> None:
    """However adds and cancellations of waiting workers interleave, keys remain in line only when all workers are gone."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimLoop)
        queue: WorkQueue[str] = WorkQueue()
        waiting = [asyncio.create_task(queue.get()) for _ in range(6)]
        await loop.settled()
        for key in keys:
            loop.call_soon(queue.add, key)
        for number in cancelled:
            loop.call_soon(waiting[number].cancel)
        await loop.settled()
        assert len(queue) == 0 or all(task.done() for task in waiting)
        got = [task.result() for task in waiting if task.done() and not task.cancelled()]
        assert sorted([*got, *_rest(queue)]) == sorted(dict.fromkeys(keys))

    run(main(), seed=seed)


def _rest(queue: WorkQueue[str]) -> list[str]:
    rest: list[str] = []
    while (key := queue.try_get()) is not None:
        rest.append(key)
    return rest
