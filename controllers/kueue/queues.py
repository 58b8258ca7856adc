"""Who waits: the pending Workloads of every ClusterQueue, ordered, and those that were tried in vain.

Workloads of one shape (same requests, placement and priority) get the same answer, so they are kept together in a *line* and parked together when one of them
does not fit: a release of quota costs the number of shapes, not the number of Workloads. The cost of one more pending Workload is a heap push.
Under admission fair sharing (`FairPending`) the LocalQueue of the lowest usage comes first; a line is of one LocalQueue.
A head that waits for something (a StrictFIFO head, or a preemptor for its victims) blocks its queue until an event may have changed the answer; nothing polls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from kubemini.controllers.kueue.workloads import Info

Rank = tuple[int, int, float, str]


@dataclass(slots=True, eq=False)
class Line:
    """The waiting Workloads of one shape."""

    shape: str
    heap: list[tuple[Rank, str]] = field(default_factory=list)
    parked: bool = False
    why: str = ""
    """Why it is parked: the reason that the one that was tried got."""
    listed: tuple[Rank, str] | None = None
    """The head as the queue's heap of heads has it."""

    def head(self, waiting: dict[str, _Entry]) -> tuple[Rank, str] | None:
        """Return the rank and key of the first, dropping entries that were taken out meanwhile."""
        while self.heap:
            rank, key = self.heap[0]
            entry = waiting.get(key)
            if entry is not None and entry.line is self and entry.rank == rank:
                return rank, key
            heappop(self.heap)
        return None


@dataclass(slots=True, eq=False)
class _Entry:
    info: Info
    rank: Rank
    line: Line | None
    """None: put aside by itself, until a retry or a change."""


class Pending:
    """The queue of one ClusterQueue. A Workload is in a line, aside, or in flight; never in two places."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.entries: dict[str, _Entry] = {}
        self.lines: dict[str, Line] = {}
        self.in_flight: str | None = None
        self.sticky: str | None = None
        """The BestEffortFIFO Workload that has preempted and goes first until its victims are gone."""
        self.blocked: str | None = None
        """The head that waits; while it is the head, the queue rests."""
        self._aside: dict[str, None] = {}
        self._ready: list[tuple[Rank, str, str]] = []
        self.retries = 0
        """Grows with every retry, so that a try can tell that something happened since it began."""

    def _rank(self, info: Info) -> Rank:
        priority, timestamp, uid = info.order
        return (0 if info.key == self.sticky else 1, priority, timestamp, uid)

    # ------------------------------------------------------------------ in and out

    def push(self, info: Info, shape: str) -> bool:
        """Put a Workload in line (again). Tell whether its line is open, so that a cycle is due."""
        rank = self._rank(info)
        entry = self.entries.get(info.key)
        line = self.lines.get(shape)
        if entry is not None and entry.rank == rank and entry.line is line and line is not None:
            entry.info = info
            return not line.parked
        self.remove(info.key)
        if line is None:
            line = self.lines[shape] = Line(shape)
        self.entries[info.key] = _Entry(info, rank, line)
        heappush(line.heap, (rank, info.key))
        if line.parked:
            return False
        self._list(line)
        return True

    def _list(self, line: Line) -> None:
        """Keep the heap of heads true for an open line."""
        head = line.head(self.entries)
        if head is None:
            line.listed = None
        elif line.listed is None or head < line.listed:
            line.listed = head
            heappush(self._heads_for(head[1]), (*head, line.shape))

    def _heads_for(self, key: str) -> list[tuple[Rank, str, str]]:
        """Return the heap that lists a Workload when it is the head of its line."""
        return self._ready

    def put_aside(self, info: Info) -> None:
        """Keep a Workload out of line until a retry or a change."""
        self.remove(info.key)
        self.entries[info.key] = _Entry(info, self._rank(info), None)
        self._aside[info.key] = None

    def park(self, shape: str, why: str = "") -> None:
        """Close the line of a shape that does not fit, until a retry; `why` is what the one that was tried got to know."""
        line = self.lines.get(shape)
        if line is None:
            line = self.lines[shape] = Line(shape)
        line.parked = True
        line.why = why
        line.listed = None

    def remove(self, key: str) -> Info | None:
        """Take a Workload out."""
        if self.blocked == key:
            self.blocked = None
        if self.sticky == key:
            self.sticky = None
        if self.in_flight == key:
            self.in_flight = None
        entry = self.entries.pop(key, None)
        if entry is None:
            return None
        self._aside.pop(key, None)
        if entry.line is not None and len(entry.line.heap) > 64 and len(entry.line.heap) > 4 * len(self.entries):
            self._tidy(entry.line)
        return entry.info

    def _tidy(self, line: Line) -> None:
        line.heap = [
            (rank, key) for rank, key in line.heap if (entry := self.entries.get(key)) is not None and entry.line is line and entry.rank == rank
        ]
        heapify(line.heap)

    def head(self) -> Info | None:
        """Return the first Workload of the open lines, or None (also while it is the one that waits)."""
        first = self._first(self._ready)
        return None if first is None or self.blocked == first[1] else self.entries[first[1]].info

    def _first(self, ready: list[tuple[Rank, str, str]]) -> tuple[Rank, str] | None:
        """Return the first of a heap of heads, dropping what is not true any more."""
        while ready:
            rank, key, shape = ready[0]
            line = self.lines.get(shape)
            if line is None or line.parked or line.listed != (rank, key):
                heappop(ready)
                continue
            head = line.head(self.entries)
            if head != (rank, key):
                heappop(ready)
                line.listed = None
                self._list(line)
                continue
            return rank, key
        return None

    def pop(self) -> Info | None:
        """Take the head for a try: it is in flight until it is pushed, put aside or removed."""
        info = self.head()
        if info is not None:
            line = self.entries.pop(info.key).line
            if line is not None:
                heappop(line.heap)  # it is the line's first: left there, it would stand twice once it is pushed back
            self.in_flight = info.key
        return info

    def retry(self) -> bool:
        """Open every line. Tell whether anyone may be tried. O(shapes)."""
        self.retries += 1
        self.blocked = None
        for shape, line in list(self.lines.items()):
            if line.head(self.entries) is None:
                del self.lines[shape]
            elif line.parked:
                line.parked = False
                self._list(line)
        return self.head() is not None

    def prefer(self, key: str) -> None:
        """Let a Workload that has preempted go first from now on."""
        self.sticky = key

    def aside(self) -> list[Info]:
        """Return those put aside, in the order in which they were."""
        return [self.entries[key].info for key in self._aside]

    # ------------------------------------------------------------------ looking

    def __len__(self) -> int:
        return len(self.entries) + (1 if self.in_flight is not None and self.in_flight not in self.entries else 0)

    def get(self, key: str) -> Info | None:
        """Return a waiting Workload."""
        entry = self.entries.get(key)
        return entry.info if entry is not None else None

    def why_parked(self, key: str) -> str:
        """Return why the line of a waiting Workload is closed, or "" where it is not."""
        entry = self.entries.get(key)
        return entry.line.why if entry is not None and entry.line is not None and entry.line.parked else ""

    def active(self) -> Iterator[Info]:
        """Yield those in open lines."""
        for entry in self.entries.values():
            if entry.line is not None and not entry.line.parked:
                yield entry.info

    def parked(self) -> Iterator[Info]:
        """Yield those that are not tried before something happens."""
        for entry in self.entries.values():
            if entry.line is None or entry.line.parked:
                yield entry.info

    def in_order(self) -> list[Info]:
        """Return all that wait, first to last: O(n log n), for people who ask."""
        return [entry.info for entry in sorted(self.entries.values(), key=lambda entry: entry.rank)]

    def take_over(self, other: Pending) -> None:
        """Go on in place of another queue of the same ClusterQueue; what was blocked there is tried again."""
        self.entries, self.lines, self._aside = other.entries, other.lines, other._aside
        self.in_flight, self.sticky, self.retries = other.in_flight, other.sticky, other.retries
        for line in self.lines.values():
            line.listed = None
            if not line.parked:
                self._list(line)


class FairPending(Pending):
    """The queue of a ClusterQueue with admission fair sharing: `usage` of a LocalQueue (by its key) decides before all else, and may change at any time."""

    def __init__(self, name: str, usage: Callable[[str], float]) -> None:
        super().__init__(name)
        self._usage = usage
        self._ready_of: dict[str, list[tuple[Rank, str, str]]] = {}

    def _heads_for(self, key: str) -> list[tuple[Rank, str, str]]:
        return self._ready_of.setdefault(self.entries[key].info.local_queue, [])

    def head(self) -> Info | None:
        """Return the first Workload of the LocalQueue with the lowest usage that has an open line. O(LocalQueues)."""
        best: tuple[float, Rank, str] | None = None
        for local, ready in list(self._ready_of.items()):
            first = self._first(ready)
            if first is None:
                del self._ready_of[local]
            elif best is None or (self._usage(local), *first) < best:
                best = (self._usage(local), *first)
        return None if best is None or self.blocked == best[2] else self.entries[best[2]].info

    def in_order(self) -> list[Info]:
        """Return all that wait, first to last: O(n log n), for people who ask."""
        return [entry.info for entry in sorted(self.entries.values(), key=lambda entry: (self._usage(entry.info.local_queue), entry.rank))]
