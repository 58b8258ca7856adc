"""One scheduling decision: nodes are filtered and scored, and the decision says why each node was refused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from kubemini.api.trees import Tree
from kubemini.controllers.scheduler import affinity, scoring, spreading
from kubemini.controllers.scheduler.cache import Cache, NodeInfo, priority_of
from kubemini.controllers.scheduler.filters import ELSEWHERE, Refusal, fits, node_properties, ports_free
from kubemini.controllers.scheduler.resources import Requests, requests_of
from kubemini.controllers.scheduler.terms import NamespaceLabels, terms_of
from kubemini.machinery.node_matching import named_nodes

LEAST_SCORED = 100
"""So many feasible nodes are looked for at least."""
_NO_NODE = Refusal("NodeName", ("node(s) didn't match the requested node name",), unresolvable=True)


class Plugin(Protocol):
    """A filter beyond the built-in ones (volumes, device claims, a gang's domain): made for one pod, asked per node."""

    def refusal(self, info: NodeInfo) -> Refusal | None:
        """Return why a node does not do, or None."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """A pod is refused before any node is looked at (upstream's PreFilter)."""

    plugin: str
    message: str
    suffix: str = ""
    """What stands in the message in the place of preemption's text. Upstream, a plugin before DynamicResources that rejects leaves that one
    without its state, and it says ``not found``."""


@dataclass(slots=True)
class Decision:
    """What came out: the chosen node (None = none does), and each refused node's `Refusal`.

    Where a node was found, nodes that needed no closer look are not listed: those beyond a nodeSelector, and in large clusters those that were not reached.
    """

    pod: str
    node: str | None = None
    refusals: dict[str, Refusal] = field(default_factory=dict)
    nodes: int = 0
    message: str = ""
    scores: dict[str, float] = field(default_factory=dict)
    rejection: Rejection | None = None

    def plugins(self) -> dict[str, None]:
        """Return the names of the plugins that refused."""
        return dict.fromkeys([self.rejection.plugin] if self.rejection is not None else [each.plugin for each in self.refusals.values()])

    def tree(self) -> Tree:
        """Return it as JSON."""
        refusals = {node: {"plugin": each.plugin, "reasons": list(each.reasons)} for node, each in self.refusals.items()}
        return {"pod": self.pod, "node": self.node, "message": self.message, "nodes": self.nodes, "refusals": refusals}


@dataclass(slots=True)
class Filters:
    """All filters of one pod against one state of the cache."""

    pod: Tree
    requests: Requests
    affinity: affinity.Affinity | None
    spread: spreading.Spread | None
    volumes: Sequence[Plugin] = ()
    last: Sequence[Plugin] = ()
    first: Sequence[Plugin] = ()
    rejection: Rejection | None = None

    def refusal(self, info: NodeInfo, *, occupied: NodeInfo | None = None) -> Refusal | None:
        """Return the first plugin's refusal in upstream's order; `occupied` is the node as it would be with nominated pods on it."""
        spec = self.pod["spec"]
        node = info.node
        if node is None:
            return _NO_NODE
        for plugin in self.first:
            if (refused := plugin.refusal(info)) is not None:
                return refused
        state = occupied or info
        refused = node_properties(spec, node) or ports_free(spec, state) or fits(self.requests, state)
        if refused is not None:
            return refused
        for plugin in self.volumes:
            if (refused := plugin.refusal(info)) is not None:
                return refused
        if self.spread is not None and (refused := self.spread.refusal(info)) is not None:
            return refused
        if self.affinity is not None and (refused := self.affinity.refusal(info)) is not None:
            return refused
        for plugin in self.last:
            if (refused := plugin.refusal(info)) is not None:
                return refused
        return None


def filters_of(pod: Tree, cache: Cache, labels_of: NamespaceLabels, *, without: Iterable[str] = ()) -> Filters:
    """Prepare the built-in filters of a pod. `without` names placed pods to leave out of inter-pod rules (preemption victims)."""
    spec = pod["spec"]
    gone = tuple(without)
    concerned = bool(cache.terms.stated) or bool(terms_of(spec))
    return Filters(
        pod,
        requests_of(spec),
        affinity.compute(pod, cache, labels_of, without=gone) if concerned else None,
        spreading.compute(pod, cache, without=gone) if spec.get("topologySpreadConstraints") else None,
    )


def decide(filters: Filters, cache: Cache) -> Decision:
    """Filter and score. Ties go to the node that was seen first.

    O(nodes that the pod's nodeSelector leaves, until enough do; all of them when none does).
    """
    pod = filters.pod
    spec, meta = pod["spec"], pod["metadata"]
    decision = Decision(f"{meta['namespace']}/{meta['name']}", nodes=cache.count(), rejection=filters.rejection)
    if filters.rejection is not None or not decision.nodes:
        decision.message = message(decision)
        return decision
    nominated = (pod.get("status") or {}).get("nominatedNodeName")
    if nominated and (info := cache.nodes.get(nominated)) is not None and _refusal(filters, info, cache) is None:
        # The room that was won is taken without looking further
        decision.node = nominated
        return decision
    named = named_nodes(spec)
    if named is not None:
        candidates = [info for name in named if (info := cache.nodes.get(name)) is not None and info.node is not None]
    else:
        candidates = cache.selected(spec.get("nodeSelector"))
    feasible = _sample(filters, candidates, cache, decision)
    if not feasible:
        if len(candidates) < decision.nodes:
            seen = {info.name: None for info in candidates}
            others = [info for info in cache.live() if info.name not in seen]
            if named is not None:
                decision.refusals |= {info.name: ELSEWHERE for info in others}
            else:
                _filter(filters, others, cache, decision)
        decision.message = message(decision)
        return decision
    totals = scoring.preferences(spec, feasible)
    totals = [total + scoring.resources(filters.requests, info) for total, info in zip(totals, feasible, strict=True)]
    if filters.affinity is not None and filters.affinity.scores:
        wishes = scoring.normalised([filters.affinity.score(info) for info in feasible])
        totals = [total + scoring.POD_AFFINITY * wish for total, wish in zip(totals, wishes, strict=True)]
    if filters.spread is not None and filters.spread.soft:
        totals = [total + scoring.SPREAD * room for total, room in zip(totals, filters.spread.scores(feasible), strict=True)]
    best = max(range(len(feasible)), key=lambda position: (totals[position], -feasible[position].index))
    decision.node = feasible[best].name
    decision.scores = {info.name: total for info, total in zip(feasible, totals, strict=True)}
    return decision


def enough(nodes: int) -> int:
    """Return how many feasible nodes are enough to choose from (upstream's adaptive percentageOfNodesToScore: at least 100, and 5 to 50 percent)."""
    return nodes if nodes < LEAST_SCORED else max(nodes * max(50 - nodes // 125, 5) // 100, LEAST_SCORED)


def _sample(filters: Filters, nodes: list[NodeInfo], cache: Cache, decision: Decision) -> list[NodeInfo]:
    """Return enough feasible nodes; where the search begins goes round, so that all nodes get their turn."""
    wanted = enough(len(nodes))
    if wanted >= len(nodes):
        return _filter(filters, nodes, cache, decision)
    start = cache.turn % len(nodes)
    feasible: list[NodeInfo] = []
    looked = 0
    barred = filters.affinity.refusal if filters.affinity is not None else None
    for info in (*nodes[start:], *nodes[:start]):
        looked += 1
        if barred is not None and barred(info) is not None:
            # Cheap to see first; which plugin is the first to refuse matters only when no node does
            continue
        refused = _refusal(filters, info, cache)
        if refused is not None:
            decision.refusals[info.name] = refused
            continue
        feasible.append(info)
        if len(feasible) >= wanted:
            break
    cache.turn = (start + looked) % len(nodes)
    return feasible or _filter(filters, nodes, cache, decision)


def _refusal(filters: Filters, info: NodeInfo, cache: Cache) -> Refusal | None:
    refused = filters.refusal(info)
    if refused is None and info.name in cache.nominated:
        refused = filters.refusal(info, occupied=with_nominated(filters.pod, info, cache))
    return refused


def _filter(filters: Filters, nodes: Iterable[NodeInfo], cache: Cache, decision: Decision) -> list[NodeInfo]:
    feasible: list[NodeInfo] = []
    for info in nodes:
        refused = _refusal(filters, info, cache)
        if refused is None:
            feasible.append(info)
        else:
            decision.refusals[info.name] = refused
    return feasible


def with_nominated(pod: Tree, info: NodeInfo, cache: Cache) -> NodeInfo:
    """Return a copy of a node as it would be with the nominated pods of equal or higher priority on it. Those that have a place already are there, or elsewhere."""
    copy = info.copy()
    for uid, other in cache.nominated.get(info.name, {}).items():
        if uid != pod["metadata"]["uid"] and uid not in cache.placed and priority_of(other) >= priority_of(pod):
            copy.change(other, requests_of(other["spec"]), 1)
    return copy


def message(decision: Decision) -> str:
    """Return upstream's text of a decision without a node: how many nodes gave which reason, sorted as text."""
    if not decision.nodes:
        return "no nodes available to schedule pods"
    if decision.rejection is not None:
        return f"0/{decision.nodes} nodes are available: {decision.rejection.message}."
    return f"0/{decision.nodes} nodes are available: {counted(decision.refusals.values())}."


def counted(refusals: Iterable[Refusal]) -> str:
    """Return how often each reason was given, the entries sorted as text."""
    counts: dict[str, int] = {}
    for refusal in refusals:
        for reason in refusal.reasons:
            counts[reason] = counts.get(reason, 0) + 1
    return ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
