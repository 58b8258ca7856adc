"""The fast way to a node: for pods that ask for the same, feasible nodes stand in a heap by score.

A pod whose placement depends on node objects, resources and the terms of placed pods only has a *signature*: the values of what it asks for, and those of its
labels that placed pods look at. All pods of one signature share a heap; placing one changes one node, and only changed nodes are scored
anew. So a pod costs O(log nodes), not O(nodes), and 100,000 pods on 10,000 nodes are ordinary. The node is the one that a full decision chooses.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from dataclasses import dataclass, field

import orjson

from kubemini.api.trees import Tree
from kubemini.controllers.scheduler import scoring
from kubemini.controllers.scheduler.affinity import stated_effects
from kubemini.controllers.scheduler.cache import Cache, NodeInfo
from kubemini.controllers.scheduler.deciding import Decision
from kubemini.controllers.scheduler.filters import fits, node_properties
from kubemini.controllers.scheduler.resources import Requests, requests_of
from kubemini.controllers.scheduler.scoring import INDIFFERENT, Wish
from kubemini.controllers.scheduler.terms import NamespaceLabels, Stated
from kubemini.machinery.memo import by_identity

REMEMBERED = 512
"""Signatures whose heaps are kept."""

Key = tuple[object, ...]


@by_identity()
def _text(tree: object) -> str:
    return orjson.dumps(tree, option=orjson.OPT_SORT_KEYS).decode()


def _shown(tree: object) -> str:
    return _text(tree) if tree else ""


class _Shadows:
    """What the terms of placed pods mean for the pods of one signature, followed by what comes and goes."""

    __slots__ = ("_cache", "_labels_of", "_pinned", "_pod", "_position", "drawn", "forbidden")

    def __init__(self, cache: Cache, labels_of: NamespaceLabels, pod: Tree) -> None:
        self._cache = cache
        self._labels_of = labels_of
        self._pod = pod
        self._pinned: tuple[str, ...] = tuple(pod["spec"].get("nodeSelector") or ())
        self._position = -1
        self.forbidden: dict[str, dict[str, int]] = {}
        """topologyKey → domain → placed pods whose anti-affinity keeps these pods out."""
        self.drawn = 0
        """Terms that make some domains score higher than others: then a heap of nodes does not do."""

    def follow(self) -> tuple[bool, bool]:
        """Come up to date; tell whether a domain was freed (or all was looked at anew), and whether anything changed."""
        terms = self._cache.terms
        if self._position == terms.end:
            return False, False
        freed = False
        if self._position < terms.base:
            self.forbidden.clear()
            self.drawn = 0
            for stated in terms.stated.values():
                self._take(stated, 1)
            freed = True
        else:
            for sign, stated in terms.log[self._position - terms.base :]:
                freed = self._take(stated, sign) or freed
        self._position = terms.end
        return freed, True

    def _take(self, stated: Stated, sign: int) -> bool:
        info = self._cache.nodes.get(stated.node)
        freed = False
        for forbids, key, _ in stated_effects(stated, self._pod, self._labels_of):
            if not forbids:
                # Where the pods' own nodeSelector fixes the domain, all nodes that are left score the same
                self.drawn += sign if key not in self._pinned else 0
                continue
            domain = info.labels.get(key) if info is not None else None
            if domain is None:
                continue
            domains = self.forbidden.setdefault(key, {})
            count = domains.get(domain, 0) + sign
            if count > 0:
                domains[domain] = count
            else:
                domains.pop(domain, None)
                freed = True
        return freed

    def on(self, info: NodeInfo) -> bool:
        """Tell whether a node lies in a forbidden domain."""
        if not self.forbidden:
            return False
        labels = info.labels
        return any(domains and labels.get(key) in domains for key, domains in self.forbidden.items())


@dataclass(slots=True)
class Failure:
    """Why no node does for a signature, as long as the cache stays as it is: a backlog of equal pods is refused once."""

    state: tuple[int, int]
    decision: Decision
    texts: dict[tuple[int, str], tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    """(priority, preemption policy) → what preemption had to say where it found no victims, and the plugins that would refuse without them."""


class Signature:
    """The heap of one signature. Entries are (-score, node index, node name, version); stale ones are dropped when met."""

    __slots__ = ("_best", "_cache", "_heap", "_position", "_shadows", "_versions", "_wishes", "_worst", "failure", "requests", "spec")

    def __init__(self, cache: Cache, labels_of: NamespaceLabels, pod: Tree) -> None:
        self._cache = cache
        self.spec: Tree = pod["spec"]
        self.requests: Requests = requests_of(self.spec)
        self._heap: list[tuple[float, int, str, int]] = []
        self._versions: dict[str, int] = {}
        self._wishes: dict[str, Wish] = {}
        """The wishes of feasible nodes that have any."""
        self._best = self._worst = 0.0
        self._position = -1
        self._shadows = _Shadows(cache, labels_of, pod)
        self.failure: Failure | None = None

    @property
    def state(self) -> tuple[int, int]:
        """Names the state of the cache that a decision was made in."""
        return (self._cache.base + len(self._cache.log), self._cache.terms.end)

    def _refresh(self) -> None:
        cache = self._cache
        freed, moved = self._shadows.follow()
        end = cache.base + len(cache.log)
        changed = end - self._position
        if freed or (moved and self._wishes) or self._position < cache.base or changed > 2 * len(cache.nodes) + 64:
            self._rebuild()
        elif changed:
            names = dict.fromkeys(cache.log[self._position - cache.base :]) if changed > 1 else (cache.log[-1],)
            for name in names:
                self._look(name)
            if self._wishes and (self._best, self._worst) != self._extremes():
                self._rebuild()
        self._position = end

    def _rebuild(self) -> None:
        self._heap.clear()
        self._wishes.clear()
        spec = self.spec
        nodes = [info for info in self._cache.selected(spec.get("nodeSelector")) if self._takes(info)]
        for info in nodes:
            wish = scoring.wish(spec, info)
            if wish != INDIFFERENT:
                self._wishes[info.name] = wish
        self._best, self._worst = self._extremes()
        for info in nodes:
            self._push(info)

    def _extremes(self) -> tuple[float, float]:
        wishes = self._wishes.values()
        return max((each[0] for each in wishes), default=0.0), max((each[1] for each in wishes), default=0.0)

    def _takes(self, info: NodeInfo) -> bool:
        node = info.node
        return node is not None and fits(self.requests, info) is None and node_properties(self.spec, node) is None and not self._shadows.on(info)

    def _look(self, name: str) -> None:
        info = self._cache.nodes.get(name)
        self._versions[name] = self._versions.get(name, 0) + 1
        if info is None or not self._takes(info):
            self._wishes.pop(name, None)
            return
        wish = scoring.wish(self.spec, info)
        if wish != INDIFFERENT:
            self._wishes[name] = wish
        else:
            self._wishes.pop(name, None)
        self._push(info)

    def _push(self, info: NodeInfo) -> None:
        name = info.name
        version = self._versions.get(name, 0)
        score = scoring.welcome(self._wishes.get(name, INDIFFERENT), self._best, self._worst) + scoring.resources(self.requests, info)
        heapq.heappush(self._heap, (-score, info.index, name, version))

    def best(self) -> str | None:
        """Return the best node, or None when none does or the heap cannot tell. The node stays in the heap; it is scored anew when it changes."""
        self._refresh()
        if self._shadows.drawn:
            return None
        heap, versions, nodes = self._heap, self._versions, self._cache.nodes
        while heap:
            _, _, name, version = heap[0]
            if versions.get(name, 0) == version and not self._shadows.on(nodes[name]):
                if name in self._cache.nominated or (self._wishes and self._cache.nominated):
                    # Nominated pods may close nodes, and with them the range that wishes are measured by
                    return None
                return name
            heapq.heappop(heap)
        return None


class Signatures:
    """The signatures in use, the least recently used dropped first."""

    def __init__(self, cache: Cache, labels_of: NamespaceLabels) -> None:
        self._cache = cache
        self._labels_of = labels_of
        self._known: OrderedDict[Key, Signature] = OrderedDict()

    def of(self, pod: Tree) -> Signature:
        """Return the signature of a pod."""
        spec, meta = pod["spec"], pod["metadata"]
        requests = requests_of(spec)
        key: Key = (requests, _shown(spec.get("nodeSelector")), _shown(spec.get("affinity")), _shown(spec.get("tolerations")))
        watched = self._cache.terms.keys
        if watched:
            labels = meta.get("labels") or {}
            key = (*key, meta["namespace"], *[labels.get(each) for each in watched])
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Signature(self._cache, self._labels_of, pod)
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(key)
        return found
