"""One scheduling decision: every node is filtered and scored, and the decision says why each node was refused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from kubemini.api.trees import Tree
from kubemini.controllers.scheduler import affinity, scoring, spreading
from kubemini.controllers.scheduler.cache import Cache, NodeInfo, priority_of
from kubemini.controllers.scheduler.filters import Refusal, fits, node_properties, ports_free
from kubemini.controllers.scheduler.resources import Requests, requests_of


class Plugin(Protocol):
    """A filter beyond the built-in ones (volumes, device claims, gangs): made for one pod, asked per node."""

    def refusal(self, info: NodeInfo) -> Refusal | None:
        """Return why a node does not do, or None."""


@dataclass(slots=True)
class Decision:
    """What came out: the chosen node (None = none does), and each refused node's `Refusal`."""

    pod: str
    node: str | None = None
    refusals: dict[str, Refusal] = field(default_factory=dict)
    nodes: int = 0
    message: str = ""
    scores: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class Filters:
    """All filters of one pod against one state of the cache."""

    pod: Tree
    requests: Requests
    affinity: affinity.Affinity | None
    spread: spreading.Spread | None
    volumes: Sequence[Plugin]
    last: Sequence[Plugin]

    def refusal(self, info: NodeInfo, *, occupied: NodeInfo | None = None) -> Refusal | None:
        """Return the first plugin's refusal in upstream's order; `occupied` is the node as it would be with nominated pods on it."""
        spec = self.pod["spec"]
        node = info.node
        if node is None:
            return Refusal("NodeName", ("node(s) didn't match the requested node name",), unresolvable=True)
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


def filters_of(
    pod: Tree,
    cache: Cache,
    labels_of: affinity.NamespaceLabels,
    *,
    volumes: Sequence[Plugin] = (),
    last: Sequence[Plugin] = (),
    without: Iterable[str] = (),
) -> Filters:
    """Prepare the filters of a pod. `without` names placed pods to leave out of inter-pod rules (preemption victims)."""
    spec = pod["spec"]
    gone = tuple(without)
    concerned = affinity.concerns(spec) or bool(cache.anti_affine)
    return Filters(
        pod,
        requests_of(spec),
        affinity.compute(pod, cache, labels_of, without=gone) if concerned else None,
        spreading.compute(pod, cache, without=gone) if spec.get("topologySpreadConstraints") else None,
        volumes,
        last,
    )


def decide(filters: Filters, cache: Cache) -> Decision:
    """Filter and score all nodes. Ties go to the node that was seen first. O(nodes)."""
    pod = filters.pod
    meta = pod["metadata"]
    decision = Decision(f"{meta['namespace']}/{meta['name']}")
    feasible: list[NodeInfo] = []
    for info in cache.live():
        decision.nodes += 1
        refused = filters.refusal(info)
        if refused is None and info.name in cache.nominated:
            refused = filters.refusal(info, occupied=with_nominated(pod, info, cache))
        if refused is None:
            feasible.append(info)
        else:
            decision.refusals[info.name] = refused
    if not feasible:
        decision.message = message(decision)
        return decision
    totals = scoring.preferences(pod["spec"], feasible)
    totals = [total + scoring.resources(filters.requests, info) for total, info in zip(totals, feasible, strict=True)]
    if filters.affinity is not None and filters.affinity.scores:
        wishes = scoring.normalised([filters.affinity.score(info) for info in feasible])
        totals = [total + scoring.POD_AFFINITY * wish for total, wish in zip(totals, wishes, strict=True)]
    if filters.spread is not None and filters.spread.soft:
        crowds = scoring.normalised([-filters.spread.crowding(info) for info in feasible])
        totals = [total + scoring.SPREAD * crowd for total, crowd in zip(totals, crowds, strict=True)]
    best = max(range(len(feasible)), key=lambda position: (totals[position], -feasible[position].index))
    decision.node = feasible[best].name
    decision.scores = {info.name: total for info, total in zip(feasible, totals, strict=True)}
    return decision


def with_nominated(pod: Tree, info: NodeInfo, cache: Cache) -> NodeInfo:
    """Return a node as it would be with the nominated pods of equal or higher priority on it."""
    copy = NodeInfo(info.name, info.index)
    copy.node, copy.allocatable, copy.cpu, copy.memory = info.node, info.allocatable, info.cpu, info.memory
    copy.used, copy.used_cpu, copy.used_memory = dict(info.used), info.used_cpu, info.used_memory
    copy.ports = {key: dict(users) for key, users in info.ports.items()}
    for uid, other in cache.nominated.get(info.name, {}).items():
        if uid != pod["metadata"]["uid"] and priority_of(other) >= priority_of(pod):
            copy.change(other, requests_of(other["spec"]), 1)
    return copy


def message(decision: Decision) -> str:
    """Return upstream's text of a decision without a node: how many nodes gave which reason, sorted as text."""
    if not decision.nodes:
        return "no nodes available to schedule pods"
    counts: dict[str, int] = {}
    for refusal in decision.refusals.values():
        for reason in refusal.reasons:
            counts[reason] = counts.get(reason, 0) + 1
    listed = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return f"0/{decision.nodes} nodes are available: {listed}."
