"""Fair sharing: the dominant resource share of a node of the quota tree, and preemption by it.

A node that borrows has a share: the largest, over resources, of what it takes beyond its quota against what its parent could lend, divided by its weight. Mirrors Kueue's
``pkg/cache/scheduler/fair_sharing.go`` and ``pkg/scheduler/preemption/fairsharing``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kubemini.api.wellknown import kueue as names
from kubemini.controllers.kueue.cache import NEVER, Cache
from kubemini.controllers.kueue.preemption import Target, Wish, allowed, placing, uses
from kubemini.controllers.kueue.quota import Node, Undo
from kubemini.controllers.kueue.workloads import Info

LARGEST = 2**63 - 1

Share = tuple[float, float]
"""(weighted share, unweighted ratio): infinite shares compare by the ratio."""


def share(node: Node) -> Share:
    """Return the share of a node; (0, 0) for a root or one that does not borrow."""
    parent = node.parent
    if parent is None:
        return (0.0, 0.0)
    borrowed: dict[str, int] = {}
    for fr, used in node.usage.items():
        over = used - node.subtree.get(fr, 0)
        if over > 0:
            borrowed[fr[1]] = borrowed.get(fr[1], 0) + over
    if not borrowed:
        return (0.0, 0.0)
    lendable: dict[str, int] = {}
    for fr in parent.root().subtree:
        if fr[1] in borrowed:
            lendable[fr[1]] = lendable.get(fr[1], 0) + parent.potential(fr)
    ratio = max(over * 1000 / lendable[resource] if lendable.get(resource) else 0.0 for resource, over in borrowed.items())
    if node.weight == 0:
        return (math.inf, ratio)
    return (ratio * 1000 / node.weight, ratio)


def weighted_share(node: Node) -> int:
    """Return the share as it is written into status.

    >>> weighted_share(Node("root", queue=False))
    0
    """
    value = share(node)[0]
    return LARGEST if math.isinf(value) else math.ceil(value)


@dataclass(slots=True)
class _Round:
    """The candidates of one ClusterQueue, best first, and how far they have been looked at."""

    infos: list[Info]
    position: int = 0

    def left(self) -> bool:
        return self.position < len(self.infos)


class FairPreemption:
    """Finds targets by shares."""

    def __init__(self, cache: Cache, strategies: Sequence[str]) -> None:
        self.cache = cache
        self.strategies = strategies
        self.within_nominal = cache.config.on("FairSharingPreemptWithinNominal")

    def targets(self, wish: Wish) -> list[Target]:
        """Return whom to evict so that the wish fits."""
        rounds = self._candidates(wish)
        if not any(each.left() for each in rounds.values()):
            return []
        undo = Undo()
        undo.add(wish.queue.node, wish.usage)
        gone: dict[str, Info] = {}
        try:
            chosen, retry = self._first(wish, rounds, undo, gone)
            if not self._fits(wish, gone) and len(self.strategies) > 1:
                self._second(wish, retry, undo, gone, chosen)
            if not chosen or not self._fits(wish, gone):
                return []
            return self._filled_back(wish, chosen, undo, gone)
        finally:
            undo.back()

    def _candidates(self, wish: Wish) -> dict[str, _Round]:
        queue, info = wish.queue, wish.info
        own = queue.name
        found = {
            own: [
                each
                for each in queue.holding.values()
                if each.key != info.key and queue.policy.within != NEVER and allowed(queue.policy.within, info, each)
            ]
        }
        if queue.policy.reclaim != NEVER and queue.node.parent is not None:
            for name in self.cache.tree_of(queue):
                other = self.cache.queues.get(name)
                if other is None or name == own or not any(other.node.borrowing_with(fr) for fr in wish.needing):
                    continue
                found[name] = [each for each in other.holding.values() if allowed(queue.policy.reclaim, info, each)]
        place = placing(self.cache, own)
        return {name: _Round(sorted((each for each in infos if uses(each, wish.needing)), key=place)) for name, infos in found.items()}

    def _first(self, wish: Wish, rounds: dict[str, _Round], undo: Undo, gone: dict[str, Info]) -> tuple[list[Target], dict[str, _Round]]:
        chosen: list[Target] = []
        retry: dict[str, _Round] = {}
        own = wish.queue.name
        while not self._fits(wish, gone):
            name = self._richest(wish, rounds)
            if name is None:
                break
            here = rounds[name]
            if name == own:
                self._take(wish, here.infos[here.position], names.IN_CLUSTER_QUEUE, undo, gone, chosen)
                here.position += 1
                continue
            if self.within_nominal and not any(wish.queue.node.borrowing_with(fr) for fr in wish.needing):
                self._take(wish, here.infos[here.position], names.IN_COHORT_RECLAMATION, undo, gone, chosen)
                here.position += 1
                continue
            while here.left():
                info = here.infos[here.position]
                here.position += 1
                if self._passes(self.strategies[0], wish, info):
                    self._take(wish, info, names.IN_COHORT_FAIR_SHARING, undo, gone, chosen)
                    break
                retry.setdefault(name, _Round([])).infos.append(info)
        return chosen, retry

    def _second(self, wish: Wish, rounds: dict[str, _Round], undo: Undo, gone: dict[str, Info], chosen: list[Target]) -> None:
        while not self._fits(wish, gone):
            name = self._richest(wish, rounds)
            if name is None:
                return
            here = rounds[name]
            info = here.infos[here.position]
            if self._passes(self.strategies[1], wish, info):
                self._take(wish, info, names.IN_COHORT_FAIR_SHARING, undo, gone, chosen)
            here.position = len(here.infos)

    def _take(self, wish: Wish, info: Info, reason: str, undo: Undo, gone: dict[str, Info], chosen: list[Target]) -> None:
        undo.add(self.cache.queues[info.queue].node, info.usage, -1)
        gone[info.key] = info
        chosen.append(Target(info, reason))

    def _passes(self, strategy: str, wish: Wish, info: Info) -> bool:
        mine, theirs = self._branches(wish, info)
        if strategy == "LessThanInitialShare":
            return share(mine) < share(theirs)
        node = self.cache.queues[info.queue].node
        node.add_all(info.usage, -1)
        passes = share(mine) <= share(theirs)
        node.add_all(info.usage)
        return passes

    def _branches(self, wish: Wish, info: Info) -> tuple[Node, Node]:
        """Return the two nodes just below the lowest common ancestor of preemptor and target."""
        mine = [wish.queue.node, *wish.queue.node.ancestors()]
        known = {id(node): position for position, node in enumerate(mine)}
        below = self.cache.queues[info.queue].node
        for ancestor in below.ancestors():
            if id(ancestor) in known:
                return mine[known[id(ancestor)] - 1], below
            below = ancestor
        return wish.queue.node, below

    def _richest(self, wish: Wish, rounds: Mapping[str, _Round]) -> str | None:
        """Return the ClusterQueue with candidates left under the branches of highest share, walking down from the root."""
        node = wish.queue.node.root()
        if node.queue:
            return node.name if rounds[node.name].left() else None
        way = {id(each) for each in (wish.queue.node, *wish.queue.node.ancestors())}
        while True:
            options = [child for child in node.children if self._open(child, rounds, way, wish)]
            if not options:
                return None
            node = max(options, key=lambda child: (share(child), child.queue and child is wish.queue.node))
            if node.queue:
                return node.name

    def _open(self, node: Node, rounds: Mapping[str, _Round], way: set[int], wish: Wish) -> bool:
        if id(node) not in way and not any(node.borrowing_with(fr) for fr in wish.needing):
            return False
        if node.queue:
            here = rounds.get(node.name)
            return here is not None and here.left()
        return any(self._open(child, rounds, way, wish) for child in node.children)

    @staticmethod
    def _fits(wish: Wish, gone: Mapping[str, Info]) -> bool:
        """Tell whether nothing is overdrawn with the preemptor's usage counted."""
        node = wish.queue.node
        node.add_all(wish.usage, -1)
        fits = node.fits(wish.usage)
        node.add_all(wish.usage)
        return fits and (wish.fits is None or wish.fits(gone))

    def _filled_back(self, wish: Wish, chosen: list[Target], undo: Undo, gone: dict[str, Info]) -> list[Target]:
        kept = list(chosen)
        for position in range(len(chosen) - 2, -1, -1):
            info = chosen[position].info
            node = self.cache.queues[info.queue].node
            node.add_all(info.usage)
            del gone[info.key]
            if self._fits(wish, gone):
                kept.remove(chosen[position])
                undo.note(node, info.usage)
            else:
                node.add_all(info.usage, -1)
                gone[info.key] = info
        return kept


def shares(cache: Cache) -> Iterator[tuple[str, int]]:
    """Yield the weighted share of every ClusterQueue."""
    for name, state in cache.linked().queues.items():
        yield name, weighted_share(state.node)
