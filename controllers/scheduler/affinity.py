"""Inter-pod affinity and anti-affinity, required and preferred, both ways.

One `Affinity` is computed for one pod against all placed pods and then asked per node; domains are values of a term's topologyKey.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from kubemini.api.trees import Tree
from kubemini.controllers.scheduler.cache import Cache, NodeInfo
from kubemini.controllers.scheduler.filters import Refusal
from kubemini.machinery.labels import Selector, from_label_selector
from kubemini.machinery.memo import by_identity

_NO_AFFINITY = Refusal("InterPodAffinity", ("node(s) didn't match pod affinity rules",), unresolvable=True)
_NO_ANTI = Refusal("InterPodAffinity", ("node(s) didn't match pod anti-affinity rules",))
_EXISTING = Refusal("InterPodAffinity", ("node(s) didn't satisfy existing pods anti-affinity rules",))

NamespaceLabels = Callable[[str], Mapping[str, str]]
"""Returns the labels of a namespace."""


@dataclass(frozen=True, slots=True)
class Term:
    """A parsed affinity term."""

    key: str
    selector: Selector
    namespaces: tuple[str, ...]
    namespace_selector: Selector | None
    weight: int = 0

    def matches(self, pod: Tree, own_namespace: str, labels_of: NamespaceLabels) -> bool:
        """Tell whether a pod is one that the term (of a pod in `own_namespace`) speaks of."""
        namespace = pod["metadata"]["namespace"]
        if self.namespaces or self.namespace_selector is not None:
            listed = namespace in self.namespaces
            if not listed and (self.namespace_selector is None or not self.namespace_selector.matches(labels_of(namespace))):
                return False
        elif namespace != own_namespace:
            return False
        return self.selector.matches(pod["metadata"].get("labels"))


@by_identity()
def _parsed(term: Tree) -> Term:
    selector = term.get("namespaceSelector")
    return Term(
        term["topologyKey"],
        from_label_selector(term.get("labelSelector")),
        tuple(term.get("namespaces") or ()),
        from_label_selector(selector) if selector is not None else None,
    )


def required(spec: Tree, kind: str) -> list[Term]:
    """Return a pod's required terms; `kind` is podAffinity or podAntiAffinity."""
    terms = ((spec.get("affinity") or {}).get(kind) or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or ()
    return [_parsed(term) for term in terms]


def preferred(spec: Tree, kind: str) -> list[tuple[int, Term]]:
    """Return a pod's preferred terms with their weights."""
    terms = ((spec.get("affinity") or {}).get(kind) or {}).get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    return [(term["weight"], _parsed(term["podAffinityTerm"])) for term in terms]


def concerns(spec: Tree) -> bool:
    """Tell whether a pod has any inter-pod terms."""
    affinity = spec.get("affinity")
    return bool(affinity and (affinity.get("podAffinity") or affinity.get("podAntiAffinity")))


@dataclass(slots=True)
class Affinity:
    """What placed pods mean for one pod, by domain."""

    affinity: list[tuple[str, dict[str, int]]] = field(default_factory=list)
    """Per required affinity term: topologyKey, matching pods by domain."""
    anti: list[tuple[str, dict[str, int]]] = field(default_factory=list)
    existing: dict[tuple[str, str], int] = field(default_factory=dict)
    """(topologyKey, domain) → placed pods whose required anti-affinity speaks of this pod."""
    scores: dict[tuple[str, str], int] = field(default_factory=dict)
    first: bool = False
    """Whether no pod matches any term yet and the pod matches them all itself: then any domain does."""

    def refusal(self, info: NodeInfo) -> Refusal | None:
        """Return why a node does not do, or None."""
        labels = (info.node or {"metadata": {}})["metadata"].get("labels") or {}
        for key, counts in self.affinity:
            domain = labels.get(key)
            if domain is None or (not counts.get(domain) and not self.first):
                return _NO_AFFINITY
        for key, counts in self.anti:
            if counts.get(labels.get(key, "")) and key in labels:
                return _NO_ANTI
        for key, domain in self.existing:
            if self.existing[key, domain] and labels.get(key) == domain:
                return _EXISTING
        return None

    def score(self, info: NodeInfo) -> float:
        """Return the raw preference for a node."""
        labels = (info.node or {"metadata": {}})["metadata"].get("labels") or {}
        return float(sum(weight for (key, domain), weight in self.scores.items() if labels.get(key) == domain))


def compute(pod: Tree, cache: Cache, labels_of: NamespaceLabels, *, without: Iterable[str] = ()) -> Affinity:
    """Look at every placed pod once. `without` names pods to leave out (preemption victims). Cost: the placed pods that a term may concern."""
    spec, namespace = pod["spec"], pod["metadata"]["namespace"]
    gone = frozenset(without)
    wanted, unwanted = required(spec, "podAffinity"), required(spec, "podAntiAffinity")
    likes = [*preferred(spec, "podAffinity"), *((-weight, term) for weight, term in preferred(spec, "podAntiAffinity"))]
    found = Affinity(affinity=[(term.key, {}) for term in wanted], anti=[(term.key, {}) for term in unwanted])
    any_match = False
    if wanted or unwanted or likes:
        for uid, (node_name, other) in cache.placed.items():
            if uid in gone:
                continue
            info = cache.nodes[node_name]
            if info.node is None:
                continue
            labels = info.node["metadata"].get("labels") or {}
            hits = [term.matches(other, namespace, labels_of) for term in wanted]
            # The terms of required affinity are met together: by pods that match them all
            if hits and all(hits):
                any_match = True
                for (key, counts), _ in zip(found.affinity, wanted, strict=True):
                    if key in labels:
                        counts[labels[key]] = counts.get(labels[key], 0) + 1
            for (key, counts), term in zip(found.anti, unwanted, strict=True):
                if key in labels and term.matches(other, namespace, labels_of):
                    counts[labels[key]] = counts.get(labels[key], 0) + 1
            for weight, term in likes:
                if term.key in labels and term.matches(other, namespace, labels_of):
                    mark = (term.key, labels[term.key])
                    found.scores[mark] = found.scores.get(mark, 0) + weight
    if wanted and not any_match:
        found.first = all(term.matches(pod, namespace, labels_of) for term in wanted)
    for uid in cache.anti_affine:
        if uid in gone:
            continue
        node_name, other = cache.placed[uid]
        node = cache.nodes[node_name].node
        if node is None:
            continue
        labels = node["metadata"].get("labels") or {}
        for term in required(other["spec"], "podAntiAffinity"):
            if term.key in labels and term.matches(pod, other["metadata"]["namespace"], labels_of):
                mark = (term.key, labels[term.key])
                found.existing[mark] = found.existing.get(mark, 0) + 1
    return found
