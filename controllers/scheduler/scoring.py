"""Scores of feasible nodes, as upstream's default profile weighs them. Exact fractions, not whole points: fewer ties, so that pods spread."""

from __future__ import annotations

from collections.abc import Sequence

from kubemini.api.trees import Tree
from kubemini.controllers.scheduler.cache import NodeInfo
from kubemini.controllers.scheduler.resources import Requests
from kubemini.machinery.node_matching import matches_term, tolerates

TAINTS, NODE_AFFINITY, SPREAD, POD_AFFINITY = 3, 2, 2, 2
"""Weights of TaintToleration, NodeAffinity, PodTopologySpread and InterPodAffinity; the resource scores weigh 1."""

Wish = tuple[float, float]
"""What a node object alone says: the weight of preferred node affinity, the number of untolerated soft taints."""
INDIFFERENT: Wish = (0.0, 0.0)


def resources(requests: Requests, info: NodeInfo) -> float:
    """Return LeastAllocated plus BalancedAllocation of cpu and memory with the pod on the node, 0 to 200."""
    cpu, memory = info.cpu, info.memory
    used_cpu, used_memory = info.used_cpu + requests.score_cpu, info.used_memory + requests.score_memory
    cpu_share = min(used_cpu / cpu, 1.0) if cpu else 1.0
    memory_share = min(used_memory / memory, 1.0) if memory else 1.0
    least = ((1.0 - cpu_share) + (1.0 - memory_share)) * 50.0
    if not requests.fit.get("cpu") and not requests.fit.get("memory"):
        # BalancedAllocation leaves best-effort pods alone: it would send them all to one node
        return least
    return least + (1.0 - abs(cpu_share - memory_share) / 2.0) * 100.0


def wish(spec: Tree, info: NodeInfo) -> Wish:
    """Return what a node object alone says about how welcome a pod is."""
    affinity, node = spec.get("affinity"), info.node
    if node is None:
        return INDIFFERENT
    weight = 0.0
    if affinity:
        for term in (affinity.get("nodeAffinity") or {}).get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            preference = term["preference"]
            if not (preference.get("matchExpressions") or preference.get("matchFields")) or matches_term(preference, info.labels, info.name):
                weight += term["weight"]
    taints = node["spec"].get("taints")
    if not taints:
        return (weight, 0.0)
    tolerations = [each for each in spec.get("tolerations") or () if (each.get("effect") or "PreferNoSchedule") == "PreferNoSchedule"]
    bad = sum(1.0 for taint in taints if taint["effect"] == "PreferNoSchedule" and not any(tolerates(each, taint) for each in tolerations))
    return (weight, bad)


def welcome(wish: Wish, best: float, worst: float) -> float:
    """Return the weighted score of a wish; `best` and `worst` are the highest weight and taint count among the feasible nodes."""
    return NODE_AFFINITY * (wish[0] * 100.0 / best if best else 0.0) + TAINTS * (100.0 - wish[1] * 100.0 / worst if worst else 100.0)


def preferences(spec: Tree, nodes: Sequence[NodeInfo]) -> list[float]:
    """Return the part of the scores that depends on node objects alone, normalised over `nodes`."""
    wishes = [wish(spec, info) for info in nodes]
    best, worst = max((each[0] for each in wishes), default=0.0), max((each[1] for each in wishes), default=0.0)
    return [welcome(each, best, worst) for each in wishes]


def normalised(raw: Sequence[float]) -> list[float]:
    """Scale to 0..100 between the lowest and the highest; all 0 when they are equal."""
    low, high = min(raw, default=0.0), max(raw, default=0.0)
    return [(value - low) * 100.0 / (high - low) if high > low else 0.0 for value in raw]
