"""The fast way to a node: for pods that ask for the same, feasible nodes stand in a heap by score.

A pod whose placement depends only on the node object and on resources has a *signature*: the values of what it asks for. All pods of one signature share a heap;
placing one changes one node, and only changed nodes are scored anew. So a pod costs O(log nodes), not O(nodes), and 100,000 pods on 10,000
nodes are ordinary.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict

import orjson

from kubemini.api.trees import Tree
from kubemini.controllers.scheduler import scoring
from kubemini.controllers.scheduler.cache import Cache, NodeInfo
from kubemini.controllers.scheduler.filters import fits, node_properties
from kubemini.controllers.scheduler.resources import Requests, requests_of
from kubemini.machinery.memo import by_identity

REMEMBERED = 128
"""Signatures whose heaps are kept."""

Key = tuple[object, ...]


@by_identity()
def _text(tree: object) -> str:
    return orjson.dumps(tree, option=orjson.OPT_SORT_KEYS).decode()


def _shown(tree: object) -> str:
    return _text(tree) if tree else ""


class Signature:
    """The heap of one signature. Entries are (-score, node index, node name, version); stale ones are dropped when met."""

    __slots__ = ("_cache", "_heap", "_position", "_preferences", "_versions", "requests", "spec")

    def __init__(self, cache: Cache, spec: Tree, requests: Requests) -> None:
        self._cache = cache
        self.spec = spec
        self.requests = requests
        self._heap: list[tuple[float, int, str, int]] = []
        self._versions: dict[str, int] = {}
        self._preferences: dict[str, float] = {}
        self._position = -1

    def _refresh(self) -> None:
        cache = self._cache
        end = cache.base + len(cache.log)
        changed = end - self._position
        if self._position < cache.base or changed > 2 * len(cache.nodes) + 64:
            self._rebuild()
        elif changed:
            for name in dict.fromkeys(cache.log[self._position - cache.base :]):
                self._push(name)
        self._position = end

    def _rebuild(self) -> None:
        self._heap.clear()
        self._versions.clear()
        nodes = list(self._cache.live())
        self._preferences = {info.name: value for info, value in zip(nodes, scoring.preferences(self.spec, nodes), strict=True)} if self._prefers(nodes) else {}
        for info in nodes:
            self._push(info.name)

    def _prefers(self, nodes: list[NodeInfo]) -> bool:
        affinity = (self.spec.get("affinity") or {}).get("nodeAffinity") or {}
        soft = any(taint["effect"] == "PreferNoSchedule" for info in nodes for taint in ((info.node or {}).get("spec") or {}).get("taints") or ())
        return bool(affinity.get("preferredDuringSchedulingIgnoredDuringExecution")) or soft

    def _push(self, name: str) -> None:
        version = self._versions[name] = self._versions.get(name, 0) + 1
        info = self._cache.nodes.get(name)
        if info is None or info.node is None:
            return
        if fits(self.requests, info) is not None or node_properties(self.spec, info.node) is not None:
            return
        score = scoring.resources(self.requests, info) + self._preferences.get(name, 0.0)
        heapq.heappush(self._heap, (-score, info.index, name, version))

    def best(self) -> str | None:
        """Return the best node, or None when none does. The node stays in the heap; it is scored anew when it changes."""
        self._refresh()
        heap, versions = self._heap, self._versions
        while heap:
            _, _, name, version = heap[0]
            if versions.get(name) == version:
                return name
            heapq.heappop(heap)
        return None


class Signatures:
    """The signatures in use, the least recently used dropped first."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._known: OrderedDict[Key, Signature] = OrderedDict()

    def of(self, pod: Tree) -> Signature:
        """Return the signature of a pod."""
        spec = pod["spec"]
        requests = requests_of(spec)
        affinity = spec.get("affinity")
        key: Key = (requests.items, requests.score_cpu, requests.score_memory, _shown(spec.get("nodeSelector")), _shown(affinity), _shown(spec.get("tolerations")))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Signature(self._cache, spec, requests)
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(key)
        return found
