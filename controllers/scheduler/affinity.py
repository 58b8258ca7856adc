"""Inter-pod affinity and anti-affinity of one pod, required and preferred, both ways. Mirrors the InterPodAffinity plugin.

One `Affinity` is computed for one pod against all placed pods and then asked per node; domains are values of a term's topologyKey.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kubemini.api.trees import Tree
from kubemini.controllers.scheduler.cache import Cache, NodeInfo
from kubemini.controllers.scheduler.filters import Refusal
from kubemini.controllers.scheduler.terms import HARD_WEIGHT, NamespaceLabels, Stated, Term, terms_of

NO_AFFINITY = Refusal("InterPodAffinity", ("node(s) didn't match pod affinity rules",), unresolvable=True)
NO_ANTI = Refusal("InterPodAffinity", ("node(s) didn't match pod anti-affinity rules",))
EXISTING = Refusal("InterPodAffinity", ("node(s) didn't satisfy existing pods anti-affinity rules",))

Domains = dict[str, dict[str, int]]
"""topologyKey → value of that label → a count or weight."""


def _note(into: Domains, key: str, domain: str, amount: int) -> None:
    domains = into.setdefault(key, {})
    domains[domain] = domains.get(domain, 0) + amount


@dataclass(slots=True)
class Affinity:
    """What placed pods mean for one pod, by domain."""

    affinity: list[tuple[str, dict[str, int]]] = field(default_factory=list)
    """Per required affinity term: topologyKey, pods that meet all terms by domain."""
    anti: list[tuple[str, dict[str, int]]] = field(default_factory=list)
    """Per required anti-affinity term: topologyKey, matching pods by domain."""
    existing: Domains = field(default_factory=dict)
    """Placed pods whose required anti-affinity speaks of this pod."""
    scores: Domains = field(default_factory=dict)
    first: bool = False
    """Whether no pod meets the terms yet and the pod meets them itself: then any domain does."""

    def refusal(self, info: NodeInfo) -> Refusal | None:
        """Return why a node does not do, or None."""
        labels = info.labels
        for key, counts in self.affinity:
            domain = labels.get(key)
            if domain is None or (not counts.get(domain) and not self.first):
                return NO_AFFINITY
        for key, counts in self.anti:
            if key in labels and counts.get(labels[key]):
                return NO_ANTI
        for key, domains in self.existing.items():
            if labels.get(key) in domains:
                return EXISTING
        return None

    def score(self, info: NodeInfo) -> float:
        """Return the raw preference for a node."""
        labels = info.labels
        return float(sum(domains.get(labels.get(key, ""), 0) for key, domains in self.scores.items()))


def stated_effects(stated: Stated, pod: Tree, labels_of: NamespaceLabels) -> Iterator[tuple[bool, str, int]]:
    """Yield what the terms of a placed pod mean for a pod to come: (forbids, topologyKey, weight)."""
    own, terms = stated.namespace, stated.terms
    for term in terms.anti:
        if term.matches(pod, own, labels_of):
            yield True, term.key, 1
    for term in terms.affinity:
        if term.matches(pod, own, labels_of):
            yield False, term.key, HARD_WEIGHT
    for weight, term in terms.likes:
        if term.matches(pod, own, labels_of):
            yield False, term.key, weight


def compute(pod: Tree, cache: Cache, labels_of: NamespaceLabels, *, without: Iterable[str] = ()) -> Affinity:
    """Weigh all placed pods, except those of the uids `without` (preemption victims). O(profiles + nodes that hold matching pods + pods with terms)."""
    terms, namespace = terms_of(pod["spec"]), pod["metadata"]["namespace"]
    gone = dict.fromkeys(without)
    found = Affinity(affinity=[(term.key, {}) for term in terms.affinity], anti=[(term.key, {}) for term in terms.anti])
    if terms:
        cache.census.track(terms.selectors())
        for crowd in cache.census.crowds():
            _weigh(found, terms.affinity, terms.anti, terms.likes, crowd.namespace, crowd.labels, crowd.nodes, 1, cache, namespace, labels_of)
        for uid in gone:
            node, other = cache.placed[uid]
            meta = other["metadata"]
            _weigh(
                found,
                terms.affinity,
                terms.anti,
                terms.likes,
                meta["namespace"],
                meta.get("labels") or {},
                {node: 1},
                -1,
                cache,
                namespace,
                labels_of,
            )
        if terms.affinity and not any(any(counts.values()) for _, counts in found.affinity):
            found.first = all(term.matches(pod, namespace, labels_of) for term in terms.affinity)
    for stated in cache.terms.stated.values():
        if stated.uid in gone:
            continue
        labels = cache.nodes[stated.node].labels
        for forbids, key, weight in stated_effects(stated, pod, labels_of):
            if key in labels:
                _note(found.existing if forbids else found.scores, key, labels[key], weight)
    return found


def _weigh(
    found: Affinity,
    wanted: tuple[Term, ...],
    unwanted: tuple[Term, ...],
    likes: tuple[tuple[int, Term], ...],
    namespace: str,
    labels: dict[str, str],
    nodes: dict[str, int],
    sign: int,
    cache: Cache,
    own: str,
    labels_of: NamespaceLabels,
) -> None:
    """Count the pods of one profile in (or out) where the terms speak of them."""

    def met(term: Term) -> bool:
        return term.selector.matches(labels) and term.reaches(namespace, own, labels_of)

    # The terms of required affinity are met together: by pods that match them all
    counted = list(zip(found.affinity, wanted, strict=True)) if wanted and all(met(term) for term in wanted) else []
    counted += [(entry, term) for entry, term in zip(found.anti, unwanted, strict=True) if met(term)]
    liked = [(weight, term.key) for weight, term in likes if met(term)]
    if not counted and not liked:
        return
    for name, count in nodes.items():
        there = cache.nodes[name].labels
        for (key, counts), _ in counted:
            if key in there:
                counts[there[key]] = counts.get(there[key], 0) + sign * count
        for weight, key in liked:
            if key in there:
                _note(found.scores, key, there[key], weight * sign * count)
