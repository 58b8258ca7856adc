"""Placed pods counted by what selectors ask about: who stands where, without looking at every pod.

Pods fall into *profiles*: namespace, whether they are being deleted, and the values of the label keys that some selector has named so far. A selector is
asked once per profile, not once per pod, so that inter-pod rules over 100,000 placed pods of a few hundred jobs cost what the jobs and nodes cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from kubemini.api.trees import Tree
from kubemini.machinery.labels import Selector

Profile = tuple[object, ...]
"""(namespace, deleting, value of each tracked key or None, …)."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """The pods of one profile: the labels that selectors look at, and how many stand on each node."""

    namespace: str
    deleting: bool
    labels: dict[str, str]
    nodes: dict[str, int]


class Census:
    """Counts of placed pods. `pods` gives all placed pods with their nodes, when a new label key makes a recount necessary."""

    def __init__(self, pods: Callable[[], Iterable[tuple[str, Tree]]]) -> None:
        self._pods = pods
        self._keys: tuple[str, ...] = ()
        self._crowds: dict[Profile, Crowd] = {}
        self._counting = False

    def change(self, pod: Tree, node: str, sign: int) -> None:
        """Count a pod in (+1) or out (-1) of a node. O(tracked keys); nothing until somebody asks."""
        if not self._counting:
            return
        meta = pod["metadata"]
        labels = meta.get("labels") or {}
        profile = (meta["namespace"], "deletionTimestamp" in meta, *[labels.get(key) for key in self._keys])
        crowd = self._crowds.get(profile)
        if crowd is None:
            known = {key: labels[key] for key in self._keys if key in labels}
            crowd = self._crowds[profile] = Crowd(meta["namespace"], "deletionTimestamp" in meta, known, {})
        count = crowd.nodes.get(node, 0) + sign
        if count:
            crowd.nodes[node] = count
        else:
            del crowd.nodes[node]
            if not crowd.nodes:
                del self._crowds[profile]

    def track(self, selectors: Iterable[Selector]) -> None:
        """Make ready for some selectors. A label key that was not tracked yet costs a recount."""
        known = frozenset(self._keys)
        fresh = dict.fromkeys(each.key for selector in selectors for each in selector.requirements if each.key not in known)
        if fresh or not self._counting:
            self._keys = (*self._keys, *fresh)
            self._counting = True
            self._crowds.clear()
            for node, pod in self._pods():
                self.change(pod, node, 1)

    def crowds(self) -> Iterator[Crowd]:
        """Iterate over the profiles. Only selectors that were tracked may be asked about their labels."""
        return iter(self._crowds.values())
