"""In which order the entries of one scheduling cycle are processed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

from kubemini.controllers.kueue.amounts import Usage
from kubemini.controllers.kueue.cache import QueueState
from kubemini.controllers.kueue.fairness import Share, share
from kubemini.controllers.kueue.quota import Node
from kubemini.controllers.kueue.workloads import Info


class Contender(Protocol):
    """What ordering looks at."""

    @property
    def info(self) -> Info:
        """The Workload."""
        ...

    @property
    def queue(self) -> QueueState:
        """Its ClusterQueue."""
        ...

    @property
    def borrow(self) -> int:
        """How high up it borrows."""
        ...

    @property
    def usage(self) -> Usage:
        """What it would take."""
        ...


C = TypeVar("C", bound=Contender)


def classic_key(entry: Contender) -> tuple[int, int, float, str]:
    """Return the place of an entry: fewer levels of borrowing first, then priority, then time."""
    return (entry.borrow, *entry.info.order)


def tournament(entries: Sequence[C]) -> Iterator[C]:
    """Yield entries by fair sharing: in each cohort, from the root down, the candidate whose branch has the lowest share with it goes first.

    Shares are taken anew for each round, as the usage of those that went before counts by then.
    """
    alone = [entry for entry in entries if entry.queue.node.parent is None]
    left = {entry.queue.name: entry for entry in entries if entry.queue.node.parent is not None}
    yield from alone
    while left:
        first = next(iter(left.values()))
        winner = _winner(first.queue.node.root(), left)
        if winner is None:
            return
        del left[winner.queue.name]
        yield winner


def _winner(cohort: Node, left: dict[str, C]) -> C | None:
    best: C | None = None
    best_key: tuple[bool, Share, tuple[int, float, str]] | None = None
    for child in cohort.children:
        candidate = left.get(child.name) if child.queue else _winner(child, left)
        if candidate is None:
            continue
        candidate_key = _fair_key(child, candidate)
        if best_key is None or candidate_key < best_key:
            best, best_key = candidate, candidate_key
    return best


def _fair_key(child: Node, entry: Contender) -> tuple[bool, Share, tuple[int, float, str]]:
    node = entry.queue.node
    node.add_all(entry.usage)
    borrows = any(child.borrowing_with(fr) for fr in entry.usage)
    found = share(child)
    node.add_all(entry.usage, -1)
    return (borrows, found, entry.info.order)
