"""Who waits: the pending Workloads of every ClusterQueue, ordered, and those that were tried in vain.

Workloads of one shape (same requests, placement and priority) get the same answer, so they are kept together in a *line* and parked together when one of them
does not fit: a release of quota costs the number of shapes, not the number of Workloads. The cost of one more pending Workload is a heap push.
A head that waits for something (a StrictFIFO head, or a preemptor for its victims) blocks its queue until an event may have changed the answer; nothing polls.
"""

from __future__ import annotations

from collections.abc import Iterator
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
            heappush(self._ready, (*head, line.shape))

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
        while self._ready:
            rank, key, shape = self._ready[0]
            line = self.lines.get(shape)
            if line is None or line.parked or line.listed != (rank, key):
                heappop(self._ready)
                continue
            head = line.head(self.entries)
            if head != (rank, key):
                heappop(self._ready)
                line.listed = None
                self._list(line)
                continue
            return None if self.blocked == key else self.entries[key].info
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
