"""Topology spread constraints, hard (DoNotSchedule) and soft (ScheduleAnyway). Mirrors the PodTopologySpread plugin."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import log

from kubemini.api.trees import Tree
from kubemini.controllers.scheduler.cache import Cache, NodeInfo
from kubemini.controllers.scheduler.filters import Refusal
from kubemini.machinery.labels import Selector, from_label_selector
from kubemini.machinery.node_matching import matches_node, tolerates_hard

SKEWED = Refusal("PodTopologySpread", ("node(s) didn't match pod topology spread constraints",))
UNLABELLED = Refusal("PodTopologySpread", ("node(s) didn't match pod topology spread constraints (missing required label)",), unresolvable=True)

HOSTNAME = "kubernetes.io/hostname"


@dataclass(slots=True)
class Constraint:
    """One constraint of a pod, with the matching pods of each domain."""

    key: str
    max_skew: int
    min_domains: int
    selector: Selector
    honor_affinity: bool
    honor_taints: bool
    own: int
    """1 if the pod matches its own selector."""
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def lowest(self) -> int:
        """The smallest domain's count; 0 while there are fewer domains than minDomains."""
        return 0 if len(self.counts) < self.min_domains else min(self.counts.values(), default=0)


@dataclass(slots=True)
class Spread:
    """The constraints of one pod."""

    hard: list[Constraint] = field(default_factory=list)
    soft: list[Constraint] = field(default_factory=list)

    def refusal(self, info: NodeInfo) -> Refusal | None:
        """Return why a node does not do, or None."""
        labels = info.labels
        for constraint in self.hard:
            if constraint.key not in labels:
                return UNLABELLED
            if constraint.counts.get(labels[constraint.key], 0) + constraint.own - constraint.lowest > constraint.max_skew:
                return SKEWED
        return None

    def scores(self, nodes: Sequence[NodeInfo]) -> list[float]:
        """Return how roomy the nodes' domains are by the soft constraints, 0 to 100. Nodes without one of the labels get 0."""
        ranked = [info for info in nodes if all(constraint.key in info.labels for constraint in self.soft)]
        weights = [
            log((len(ranked) if constraint.key == HOSTNAME else len({info.labels[constraint.key]: None for info in ranked})) + 2)
            for constraint in self.soft
        ]
        raw: dict[str, int] = {}
        for info in ranked:
            total = 0.0
            for constraint, weight in zip(self.soft, weights, strict=True):
                total += constraint.counts.get(info.labels[constraint.key], 0) * weight + constraint.max_skew - 1
            raw[info.name] = int(total + 0.5)
        low, high = min(raw.values(), default=0), max(raw.values(), default=0)
        return [(100.0 if not high else 100.0 * (high + low - raw[info.name]) / high) if info.name in raw else 0.0 for info in nodes]


def compute(pod: Tree, cache: Cache, *, without: Iterable[str] = ()) -> Spread:
    """Count matching pods by domain, except those of the uids `without` (preemption victims). O(nodes + profiles)."""
    spec, meta = pod["spec"], pod["metadata"]
    found = Spread()
    for tree in spec.get("topologySpreadConstraints") or ():
        # matchLabelKeys are merged into the selector by the API server at creation (1.34 and later)
        selector = from_label_selector(tree.get("labelSelector"))
        constraint = Constraint(
            tree["topologyKey"],
            tree["maxSkew"],
            tree.get("minDomains") or 1,
            selector,
            tree.get("nodeAffinityPolicy", "Honor") == "Honor",
            tree.get("nodeTaintsPolicy", "Ignore") == "Honor",
            1 if selector.matches(meta.get("labels")) else 0,
        )
        (found.hard if tree["whenUnsatisfiable"] == "DoNotSchedule" else found.soft).append(constraint)
    constraints = [*found.hard, *found.soft]
    if not constraints:
        return found
    namespace = meta["namespace"]
    cache.census.track(constraint.selector for constraint in constraints)
    for group in (found.hard, found.soft):
        keys = [constraint.key for constraint in group]
        matching = [_matching(constraint, namespace, cache, without) for constraint in group]
        for info in cache.live() if group else ():
            if any(key not in info.labels for key in keys):
                continue
            eligible = _eligibility(spec, info)
            for constraint, counts in zip(group, matching, strict=True):
                if eligible(constraint):
                    domain = info.labels[constraint.key]
                    constraint.counts[domain] = constraint.counts.get(domain, 0) + counts.get(info.name, 0)
    return found


def _matching(constraint: Constraint, namespace: str, cache: Cache, without: Iterable[str]) -> dict[str, int]:
    """Return how many pods on each node the constraint speaks of: of its namespace, selected, and not being deleted."""
    counts: dict[str, int] = {}
    for crowd in cache.census.crowds():
        if crowd.namespace == namespace and not crowd.deleting and constraint.selector.matches(crowd.labels):
            for name, count in crowd.nodes.items():
                counts[name] = counts.get(name, 0) + count
    for uid in without:
        node, other = cache.placed[uid]
        meta = other["metadata"]
        if meta["namespace"] == namespace and "deletionTimestamp" not in meta and constraint.selector.matches(meta.get("labels")):
            counts[node] -= 1
    return counts


def _eligibility(spec: Tree, info: NodeInfo) -> Callable[[Constraint], bool]:
    """Return whether a node's domain counts, as the constraint's policies say."""
    node = info.node
    if node is None:
        return lambda constraint: False
    matches, tolerated = matches_node(spec, node), tolerates_hard(spec, node)
    return lambda constraint: (matches or not constraint.honor_affinity) and (tolerated or not constraint.honor_taints)
