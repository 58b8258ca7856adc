"""Topology spread constraints, hard (DoNotSchedule) and soft (ScheduleAnyway)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kubemini.api.trees import Tree
from kubemini.controllers.scheduler.cache import Cache, NodeInfo
from kubemini.controllers.scheduler.filters import Refusal, matches_node, tolerates
from kubemini.machinery.labels import Selector, from_label_selector
from kubemini.machinery.memo import by_identity

_SKEWED = Refusal("PodTopologySpread", ("node(s) didn't match pod topology spread constraints",))
_UNLABELLED = Refusal("PodTopologySpread", ("node(s) didn't match pod topology spread constraints (missing required label)",), unresolvable=True)

_selector = by_identity()(lambda tree: from_label_selector(tree))


@dataclass(slots=True)
class _Constraint:
    key: str
    max_skew: int
    min_domains: int
    selector: Selector
    honor_affinity: bool
    honor_taints: bool
    own: int
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def lowest(self) -> int:
        if len(self.counts) < self.min_domains:
            return 0
        return min(self.counts.values(), default=0)


@dataclass(slots=True)
class Spread:
    """The constraints of one pod with the matching pods of every domain."""

    hard: list[_Constraint] = field(default_factory=list)
    soft: list[_Constraint] = field(default_factory=list)

    def refusal(self, info: NodeInfo) -> Refusal | None:
        """Return why a node does not do, or None."""
        labels = (info.node or {"metadata": {}})["metadata"].get("labels") or {}
        for constraint in self.hard:
            if constraint.key not in labels:
                return _UNLABELLED
            if constraint.counts.get(labels[constraint.key], 0) + constraint.own - constraint.lowest > constraint.max_skew:
                return _SKEWED
        return None

    def crowding(self, info: NodeInfo) -> float:
        """Return how crowded a node's domains are by the soft constraints (lower is better)."""
        labels = (info.node or {"metadata": {}})["metadata"].get("labels") or {}
        return float(sum(constraint.counts.get(labels.get(constraint.key, ""), 0) for constraint in self.soft))


def compute(pod: Tree, cache: Cache, *, without: Iterable[str] = ()) -> Spread:
    """Count matching pods by domain. Cost: nodes plus the pods on them."""
    spec, meta = pod["spec"], pod["metadata"]
    found = Spread()
    for tree in spec.get("topologySpreadConstraints") or ():
        selector = _selected(tree, meta.get("labels") or {})
        constraint = _Constraint(
            tree["topologyKey"],
            tree["maxSkew"],
            tree.get("minDomains") or 1,
            selector,
            tree.get("nodeAffinityPolicy", "Honor") == "Honor",
            tree.get("nodeTaintsPolicy", "Ignore") == "Honor",
            1 if selector.matches(meta.get("labels")) else 0,
        )
        (found.hard if tree["whenUnsatisfiable"] == "DoNotSchedule" else found.soft).append(constraint)
    gone = frozenset(without)
    for group in (found.hard, found.soft):
        keys = [constraint.key for constraint in group]
        for info in cache.live():
            node = info.node or {"metadata": {}, "spec": {}}
            labels = node["metadata"].get("labels") or {}
            if any(key not in labels for key in keys):
                continue
            for constraint in group:
                if constraint.honor_affinity and not matches_node(spec, node):
                    continue
                if constraint.honor_taints and not _tolerated(spec, node):
                    continue
                domain = labels[constraint.key]
                matching = sum(
                    1
                    for uid, other in info.pods.items()
                    if uid not in gone
                    and other["metadata"]["namespace"] == meta["namespace"]
                    and "deletionTimestamp" not in other["metadata"]
                    and constraint.selector.matches(other["metadata"].get("labels"))
                )
                constraint.counts[domain] = constraint.counts.get(domain, 0) + matching
    return found


def _selected(tree: Tree, labels: Tree) -> Selector:
    # matchLabelKeys are merged into the selector by the API server at creation (1.34 and later)
    selector: Selector = _selector(tree["labelSelector"]) if tree.get("labelSelector") is not None else from_label_selector(None)
    return selector


def _tolerated(spec: Tree, node: Tree) -> bool:
    tolerations = spec.get("tolerations") or ()
    taints = [taint for taint in node["spec"].get("taints") or () if taint["effect"] in ("NoSchedule", "NoExecute")]
    return all(any(tolerates(toleration, taint) for toleration in tolerations) for taint in taints)
