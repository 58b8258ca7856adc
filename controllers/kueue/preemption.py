"""Whom to evict so that a Workload fits: classic preemption, by priority within a ClusterQueue and by reclaiming lent quota in its cohort tree.

Mirrors Kueue's ``pkg/scheduler/preemption`` with hierarchical cohorts. Pure but for the tree, which is changed and put back: every function
leaves it as it found it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from typing import Any

from kubemini.api.wellknown import kueue as names
from kubemini.controllers.kueue.amounts import FlavorResource, Usage
from kubemini.controllers.kueue.cache import NEVER, Cache, QueueState
from kubemini.controllers.kueue.flavors import Mode
from kubemini.controllers.kueue.quota import Node, Undo
from kubemini.controllers.kueue.workloads import Info

WORDS = {
    names.IN_CLUSTER_QUEUE: "prioritization in the ClusterQueue",
    names.IN_COHORT_RECLAMATION: "reclamation within the cohort",
    names.IN_COHORT_FAIR_SHARING: "Fair Sharing within the cohort",
    names.IN_COHORT_RECLAIM_WHILE_BORROWING: "reclamation within the cohort while borrowing",
}

OWN, RECLAIM_ONLY, WHILE_BORROWING, HIERARCHICAL = range(4)
"""Kinds of candidates; RECLAIM_ONLY ones may go only while the preemptor does not borrow."""


@dataclass(frozen=True, slots=True)
class Target:
    """A Workload to evict, and why it may be."""

    info: Info
    reason: str


@dataclass(slots=True)
class Wish:
    """Who wants what: `usage` is all that is requested, `needing` the pairs that are short. `fits` may ask for more than quota (topology)."""

    queue: QueueState
    info: Info
    usage: Usage
    needing: Sequence[FlavorResource]
    fits: Callable[[Mapping[str, Info]], bool] | None = None


@dataclass(slots=True)
class _Candidate:
    info: Info
    kind: int

    def reason(self, borrowing: bool) -> str:
        if self.kind == OWN:
            return names.IN_CLUSTER_QUEUE
        if self.kind == WHILE_BORROWING and borrowing:
            return names.IN_COHORT_RECLAIM_WHILE_BORROWING
        return names.IN_COHORT_RECLAMATION


def allowed(policy: str, preemptor: Info, candidate: Info) -> bool:
    """Tell whether a policy lets one Workload preempt another."""
    if policy == "Any":
        return True
    if policy == NEVER:
        return False
    if candidate.priority < preemptor.priority:
        return True
    return policy == "LowerOrNewerEqualPriority" and candidate.priority == preemptor.priority and preemptor.timestamp < candidate.timestamp


def uses(info: Info, needing: Iterable[FlavorResource]) -> bool:
    """Tell whether a Workload holds any of what is short."""
    return any(info.usage.get(fr, 0) > 0 for fr in needing)


def order(info: Info, own: str) -> tuple[bool, bool, int, float, str]:
    """Return where a candidate stands in the line of those to go: the evicted, other queues, lower priority, the latest."""
    return (not info.evicted, info.queue == own, info.priority, -info.reserved_at, info.uid)


def placing(cache: Cache, own: str) -> Callable[[Info], Any]:
    """Return the key by which candidates are sorted: `order`, where admission fair sharing says nothing.

    With it, of two Workloads of one ClusterQueue the one goes first whose LocalQueue has used more. As upstream has it, LocalQueues are told apart by their
    bare names here, so those of equal name in two namespaces are not compared.
    """
    usage_of = cache.local_share
    if usage_of is None:
        return lambda info: order(info, own)

    def compare(a: Info, b: Info) -> int:
        here, there = order(a, own), order(b, own)
        if here[:2] == there[:2] and a.queue == b.queue and a.tree["spec"].get("queueName") != b.tree["spec"].get("queueName"):
            holder = cache.queues.get(a.queue)
            if holder is not None and holder.admission_fair:
                less, more = usage_of(b.local_queue), usage_of(a.local_queue)
                if less != more:
                    return -1 if more > less else 1
        return (here > there) - (here < there)

    return cmp_to_key(compare)


class Preemption:
    """Finds targets in a cache."""

    def __init__(self, cache: Cache) -> None:
        self.cache = cache

    # ------------------------------------------------------------------ the oracle of flavor assignment

    def oracle(self, queue: QueueState, info: Info) -> Callable[[FlavorResource, int], tuple[Mode, int]]:
        """Return what flavor assignment asks about one Workload: would preemption make room for so much of one (flavor, resource)?"""

        def ask(fr: FlavorResource, value: int) -> tuple[Mode, int]:
            targets = self.targets(Wish(queue, info, {fr: value}, (fr,)))
            if not targets:
                return Mode.NO_CANDIDATES, queue.node.borrow_height(fr, value)[0]
            undo = Undo()
            for target in targets:
                undo.add(self.cache.queues[target.info.queue].node, target.info.usage, -1)
            height = queue.node.borrow_height(fr, value)[0]
            undo.back()
            own = any(target.info.queue == queue.name for target in targets)
            return (Mode.PREEMPT if own else Mode.RECLAIM), height

        return ask

    # ------------------------------------------------------------------ targets

    def targets(self, wish: Wish) -> list[Target]:
        """Return whom to evict so that the wish fits; nobody where that cannot be had."""
        candidates = self._candidates(wish)
        if not candidates:
            return []
        elsewhere = any(each.kind != OWN for each in candidates)
        hierarchical = any(each.kind == HIERARCHICAL for each in candidates)
        borrow = wish.queue.policy.borrow
        node = wish.queue.node
        full = any(node.usage.get(fr, 0) >= node.nominal(fr) for fr in wish.needing)
        if not elsewhere or (not borrow and full):
            attempts = [True]
        elif not borrow and not hierarchical:
            attempts = [False, True]
        else:
            attempts = [True, False]
        for borrowing in attempts:
            found = self._attempt(wish, candidates, borrowing)
            if found:
                return found
        return []

    def _candidates(self, wish: Wish) -> list[_Candidate]:
        queue, info = wish.queue, wish.info
        own = [
            _Candidate(each, OWN)
            for each in queue.holding.values()
            if queue.policy.within != NEVER and each.key != info.key and allowed(queue.policy.within, info, each) and uses(each, wish.needing)
        ]
        hierarchical: list[_Candidate] = []
        prioritised: list[_Candidate] = []
        for each in self._elsewhere(wish):
            (hierarchical if each.kind == HIERARCHICAL else prioritised).append(each)

        place = placing(self.cache, queue.name)

        def key(each: _Candidate) -> tuple[bool, int, Any]:
            rank = 0 if each.kind == HIERARCHICAL else 2 if each.kind == OWN else 1
            return (not each.info.evicted, rank, place(each.info))

        return sorted([*hierarchical, *prioritised, *own], key=key)

    def _elsewhere(self, wish: Wish) -> Iterator[_Candidate]:
        queue, info, policy = wish.queue, wish.info, wish.queue.policy
        if policy.reclaim == NEVER or queue.node.parent is None:
            return
        rest = dict(wish.usage)
        advantage = _within(queue.node, rest)
        below: Node = queue.node
        for ancestor in queue.node.ancestors():
            for name in _borrowers(ancestor, below, wish.needing):
                for each in self.cache.queues[name].holding.values():
                    if not uses(each, wish.needing) or not allowed(policy.reclaim, info, each):
                        continue
                    if advantage:
                        yield _Candidate(each, HIERARCHICAL)
                    elif not policy.borrow or each.priority >= info.priority or (policy.threshold is not None and each.priority > policy.threshold):
                        yield _Candidate(each, RECLAIM_ONLY)
                    else:
                        yield _Candidate(each, WHILE_BORROWING)
            advantage = _within(ancestor, rest) or advantage
            below = ancestor

    def _attempt(self, wish: Wish, candidates: Sequence[_Candidate], borrowing: bool) -> list[Target]:
        undo = Undo()
        chosen: list[Target] = []
        gone: dict[str, Info] = {}
        own = wish.queue
        fits = False
        try:
            for each in candidates:
                if borrowing and each.kind == RECLAIM_ONLY:
                    continue
                holder = self.cache.queues[each.info.queue]
                if each.kind != OWN and not _above_nominal(holder.node, own.node, wish.needing):
                    continue
                undo.add(holder.node, each.info.usage, -1)
                gone[each.info.key] = each.info
                chosen.append(Target(each.info, each.reason(borrowing)))
                if self._fits(wish, gone, borrowing):
                    fits = True
                    break
            if not fits:
                return []
            return self._filled_back(wish, chosen, gone, undo, borrowing)
        finally:
            undo.back()

    def _filled_back(self, wish: Wish, chosen: list[Target], gone: dict[str, Info], undo: Undo, borrowing: bool) -> list[Target]:
        """Drop the targets that are not needed after all, from the second-last to the first."""
        kept = list(chosen)
        for position in range(len(chosen) - 2, -1, -1):
            info = chosen[position].info
            node = self.cache.queues[info.queue].node
            node.add_all(info.usage)
            del gone[info.key]
            if self._fits(wish, gone, borrowing):
                kept.remove(chosen[position])
                undo.note(node, info.usage)
            else:
                node.add_all(info.usage, -1)
                gone[info.key] = info
        return kept

    @staticmethod
    def _fits(wish: Wish, gone: Mapping[str, Info], borrowing: bool) -> bool:
        node = wish.queue.node
        for fr, value in wish.usage.items():
            if value > node.available(fr) or (not borrowing and node.parent is not None and node.borrowing_with(fr, value)):
                return False
        return wish.fits is None or wish.fits(gone)


def _within(node: Node, rest: dict[FlavorResource, int]) -> bool:
    """Tell whether a node has quota of its own for what is left to place, and take off what it places."""
    fits = all(not node.borrowing_with(fr, value) for fr, value in rest.items())
    for fr, value in rest.items():
        rest[fr] = value - node.local_available(fr)
    return fits


def _borrowers(ancestor: Node, below: Node, needing: Sequence[FlavorResource]) -> Iterator[str]:
    """Yield the ClusterQueues under an ancestor, but not under `below`, that take more than their quota; subtrees within theirs are passed over."""
    for child in ancestor.children:
        if child is below or not any(child.borrowing_with(fr) for fr in needing):
            continue
        if child.queue:
            yield child.name
        else:
            yield from _borrowers(child, below, needing)


def _above_nominal(node: Node, own: Node, needing: Sequence[FlavorResource]) -> bool:
    """Tell whether a node, and every node above it that is not above `own`, still takes more than its quota."""
    shared = {id(each) for each in own.ancestors()}
    here: Node | None = node
    while here is not None and id(here) not in shared:
        if not any(here.borrowing_with(fr) for fr in needing):
            return False
        here = here.parent
    return True
