"""The work queue between events and reconciles: a key is queued at most once and handled by at most one worker at a time.

A key is in up to three places:

- *dirty*: it has work that no worker has picked up yet;
- *processing*: a worker holds it, from `get` until `done`;
- *waiting*: a timer will add it later (`add_after`, `add_rate_limited`).

A key that is dirty and not processing stands in line. A key that is added while a worker holds it becomes dirty and
joins the line at `done`: so no event is lost and no two workers ever reconcile the same object. The line is first in,
first out; with priorities, the highest first and first in, first out among equals.

Mirrors client-go's ``util/workqueue`` (type, delaying and rate-limiting queue) and, for priorities, controller-runtime's
priority queue. All delayed adds of a queue share one timer of the event loop, unless the loop has the attribute `chooses`: the simulation's orders what is
due at the same instant itself. Time is the event loop's, so on a virtual loop a back-off of 1,000 seconds costs nothing. Nothing here
iterates over a set: the order of keys is a function of the order of calls.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar

from kubemini.machinery.errors import KubeminiError

K = TypeVar("K", bound=Hashable)


class QueueShutDown(KubeminiError):
    """The queue is shut down and empty: the worker that asked has nothing left to do."""


class Backoff:
    """The per-item exponential back-off of client-go: `base` · 2ⁿ seconds after n earlier failures, at most `limit`."""

    __slots__ = ("_failures", "base", "limit")

    def __init__(self, base: float = 0.005, limit: float = 1000.0) -> None:
        self.base = base
        self.limit = limit
        self._failures: dict[Hashable, int] = {}

    def next(self, key: Hashable) -> float:
        """Count one more failure of `key` and return how many seconds to wait. O(1).

        >>> backoff = Backoff()
        >>> [backoff.next("a"), backoff.next("a"), backoff.next("a")]
        [0.005, 0.01, 0.02]
        """
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        # Python's floats overflow where Go's saturate: 2**1000 is far beyond any limit
        return min(self.base * 2.0 ** min(failures, 1000), self.limit)

    def failures(self, key: Hashable) -> int:
        """Return how many failures are counted for `key`."""
        return self._failures.get(key, 0)

    def forget(self, key: Hashable) -> None:
        """Start anew with `key`."""
        self._failures.pop(key, None)


class _Waiting(NamedTuple):
    due: float
    after: float
    """How many seconds were asked for: who asks later for no fewer is not earlier."""
    priority: int
    timer: asyncio.TimerHandle | None
    """Its own timer, on loops that choose among timers themselves."""


class WorkQueue(Generic[K]):
    """A deduplicating, delaying, rate-limiting queue of keys. Keys are hashable and never None. All calls are O(1) or O(log n).

    To be used from one event loop; `add`, `try_get` and `done` need no running loop.

    >>> queue = WorkQueue[str]()
    >>> queue.add("a"); queue.add("b"); queue.add("a")
    >>> len(queue), queue.try_get()
    (2, 'a')
    >>> queue.add("a"); len(queue)
    1
    >>> queue.done("a"); len(queue)
    2
    """

    def __init__(self, name: str = "", *, backoff: Backoff | None = None) -> None:
        self.name = name
        self.backoff = backoff or Backoff()
        self.adds = 0
        """How many adds changed the queue (metric ``workqueue_adds_total``)."""
        self.retries = 0
        """How many rate-limited adds were asked for (metric ``workqueue_retries_total``)."""
        self._dirty: dict[K, int] = {}
        self._processing: dict[K, None] = {}
        self._waiting: dict[K, _Waiting] = {}
        self._heap: list[tuple[float, int, K]] = []
        """(due, number, key): what the one timer of the queue is set by. An entry that differs from what waits is void."""
        self._asked = 0
        self._alarm: asyncio.Handle | None = None
        self._rings_at = 0.0
        self._lines: dict[int, OrderedDict[K, None]] = {}
        self._order: list[int] = []
        self._length = 0
        self._getters: deque[asyncio.Future[None]] = deque()
        self._shutting_down = False

    # ------------------------------------------------------------------------------------------- putting in

    def add(self, key: K, priority: int = 0) -> None:
        """Put `key` in line unless it is there. Asking for more priority than it has moves it; asking for less does nothing."""
        present = self._dirty.get(key)
        if present is None or present < priority:
            self._mark(key, priority, present)

    def add_after(self, key: K, seconds: float, priority: int = 0) -> None:
        """Add `key` in `seconds` of loop time, at once where that is not positive. Of several delays for a key the earliest counts.

        An immediate `add` does not revoke a delayed one, as in client-go.
        """
        if self._shutting_down:
            return
        if seconds <= 0:
            self.add(key, priority)
            return
        waiting = self._waiting.get(key)
        if waiting is not None and seconds >= waiting.after and priority <= waiting.priority:
            return
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        if waiting is not None:
            if due >= waiting.due:
                if priority > waiting.priority:
                    self._waiting[key] = waiting._replace(priority=priority)
                return
            if waiting.timer is not None:
                waiting.timer.cancel()
            priority = max(priority, waiting.priority)
        if getattr(loop, "chooses", False):
            timer = loop.call_at(due, self._ripen, key)
            self._waiting[key] = _Waiting(timer.when(), seconds, priority, timer)
        else:
            self._waiting[key] = _Waiting(due, seconds, priority, None)
            self._set_alarm(loop, due, key)

    def add_rate_limited(self, key: K, priority: int = 0) -> None:
        """Add `key` after its back-off, which doubles with every call until `forget`."""
        if self._shutting_down:
            return
        self.retries += 1
        self.add_after(key, self.backoff.next(key), priority)

    def forget(self, key: K) -> None:
        """Reset the back-off of `key`: its work went well. Does not revoke a delayed add."""
        self.backoff.forget(key)

    def num_requeues(self, key: K) -> int:
        """Return how many times `key` was added rate-limited since it was last forgotten."""
        return self.backoff.failures(key)

    # ------------------------------------------------------------------------------------------- taking out

    async def get(self) -> K:
        """Wait for the next key and hold it until `done`. Raise `QueueShutDown` once the queue is shut down and empty.

        Does not suspend when a key stands in line.
        """
        while True:
            key = self.try_get()
            if key is not None:
                return key
            if self._shutting_down:
                raise QueueShutDown(f"work queue {self.name!r} is shut down")
            await self._wait()

    def try_get(self) -> K | None:
        """Return the next key, to be held until `done`, or None when none stands in line."""
        if not self._length:
            return None
        self._length -= 1
        level = self._order[0]
        line = self._lines[level]
        key, _ = line.popitem(last=False)
        if not line:
            self._close_line(level)
        del self._dirty[key]
        self._processing[key] = None
        return key

    def done(self, key: K) -> None:
        """Release a key that `get` gave; it joins the line again where it was added meanwhile. Raise ValueError where nobody holds it."""
        try:
            del self._processing[key]
        except KeyError:
            raise ValueError(f"done({key!r}): no worker holds this key; call done once for each key that get returned") from None
        priority = self._dirty.get(key)
        if priority is not None:
            self._line_up(key, priority)

    # ------------------------------------------------------------------------------------------- the end

    def shut_down(self) -> None:
        """Drop all delayed adds and ignore every add from now on. Keys in line are still given out; then `get` raises. Idempotent."""
        self._shutting_down = True
        for waiting in self._waiting.values():
            if waiting.timer is not None:
                waiting.timer.cancel()
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        self._waiting.clear()
        self._heap.clear()
        while self._getters:
            self._wake_one()

    @property
    def shutting_down(self) -> bool:
        """Whether `shut_down` was called."""
        return self._shutting_down

    # ------------------------------------------------------------------------------------------- looking at it

    @property
    def busy(self) -> int:
        """How many keys workers hold."""
        return len(self._processing)

    def __len__(self) -> int:
        """Return how many keys stand in line (metric ``workqueue_depth``)."""
        return self._length

    @property
    def idle(self) -> bool:
        """Whether no key is in line or held by a worker; delayed adds may be waiting."""
        return not self._dirty and not self._processing

    @property
    def delayed(self) -> dict[K, float]:
        """The keys that wait for a timer, with the loop time at which each is due. A copy, in the order of first asking."""
        return {key: waiting.due for key, waiting in self._waiting.items()}

    def waits(self, key: K) -> bool:
        """Tell whether a delayed add of `key` is on its way."""
        return key in self._waiting

    def __repr__(self) -> str:
        """Show the counts that tell what the queue is up to."""
        return f"<WorkQueue {self.name!r} length={self._length} processing={len(self._processing)} delayed={len(self._waiting)}>"

    # ------------------------------------------------------------------------------------------- inside

    def _mark(self, key: K, priority: int, present: int | None) -> None:
        if self._shutting_down:
            return
        self._dirty[key] = priority
        if present is None:
            self.adds += 1
        if key in self._processing:
            return
        if present is not None:
            self._leave(key, present)
        self._line_up(key, priority)

    def _line_up(self, key: K, priority: int) -> None:
        line = self._lines.get(priority)
        if line is None:
            line = self._open_line(priority)
        line[key] = None
        self._length += 1
        if self._getters:
            self._wake_one()

    def _leave(self, key: K, level: int) -> None:
        line = self._lines[level]
        del line[key]
        self._length -= 1
        if not line:
            self._close_line(level)

    def _open_line(self, level: int) -> OrderedDict[K, None]:
        if not self._length:
            self._lines.clear()
        line = self._lines[level] = OrderedDict()
        self._order = sorted(self._lines, reverse=True)
        return line

    def _close_line(self, level: int) -> None:
        # the last line stays though empty: most queues know one priority only, and their line is emptied all the time
        if len(self._lines) > 1:
            del self._lines[level]
            self._order.remove(level)

    def _set_alarm(self, loop: asyncio.AbstractEventLoop, due: float, key: K) -> None:
        """Have `_ring` called no later than `due`. A burst of delayed adds sets one timer, not thousands."""
        self._asked += 1
        heapq.heappush(self._heap, (due, self._asked, key))
        if len(self._heap) > 2 * len(self._waiting) + 64:
            self._heap = [entry for entry in self._heap if self._stands(entry)]
            heapq.heapify(self._heap)
        if self._alarm is None or due < self._rings_at:
            if self._alarm is not None:
                self._alarm.cancel()
            # Some loops give a handle that cannot tell when it is due
            self._rings_at, self._alarm = due, loop.call_at(due, self._ring)

    def _stands(self, entry: tuple[float, int, K]) -> bool:
        waiting = self._waiting.get(entry[2])
        return waiting is not None and waiting.due == entry[0]

    def _ring(self) -> None:
        """Add all keys whose time has come, and wait for the next."""
        self._alarm = None
        loop, heap = asyncio.get_running_loop(), self._heap
        now = max(loop.time(), self._rings_at)
        while heap and (heap[0][0] <= now or not self._stands(heap[0])):
            entry = heapq.heappop(heap)
            if self._stands(entry):
                self._ripen(entry[2])
        if heap:
            self._rings_at = heap[0][0]
            self._alarm = loop.call_at(self._rings_at, self._ring)

    def _ripen(self, key: K) -> None:
        priority = self._waiting.pop(key).priority
        self.add(key, priority)

    async def _wait(self) -> None:
        getter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._getters.append(getter)
        try:
            await getter
        except BaseException:
            if getter in self._getters:
                self._getters.remove(getter)
            elif self._length:
                # cancelled after it was chosen: hand the wake-up on, or the key in line would lie there unseen
                self._wake_one()
            raise

    def _wake_one(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return

    def _check(self) -> None:
        """Assert what must hold between any two calls. O(n)."""
        lined = [key for level in self._order for key in self._lines[level]]
        assert self._order == sorted(self._lines, reverse=True)
        assert len(lined) == len(set(lined)) == self._length
        assert all(self._dirty[key] == level for level in self._order for key in self._lines[level])
        assert all((key in self._processing) != (key in self._lines.get(level, ())) for key, level in self._dirty.items())
        assert not any(waiting.timer is not None and waiting.timer.cancelled() for waiting in self._waiting.values())
        timed = {entry[2] for entry in self._heap if self._stands(entry)}
        assert all(waiting.timer is not None or key in timed for key, waiting in self._waiting.items())
        assert (self._alarm is None) == (not self._heap)
        assert not self._shutting_down or not self._waiting
