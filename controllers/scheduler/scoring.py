"""Scores of feasible nodes, as upstream's default profile weighs them."""

from __future__ import annotations

from collections.abc import Sequence

from kubemini.api.trees import Tree
from kubemini.controllers.scheduler.cache import NodeInfo
from kubemini.controllers.scheduler.filters import matches_term, tolerates
from kubemini.controllers.scheduler.resources import Requests

TAINTS, NODE_AFFINITY, SPREAD, POD_AFFINITY = 3, 2, 2, 2
"""Weights of TaintToleration, NodeAffinity, PodTopologySpread and InterPodAffinity; the resource scores weigh 1."""


def resources(requests: Requests, info: NodeInfo) -> float:
    """Return LeastAllocated plus BalancedAllocation of cpu and memory with the pod on the node, 0 to 200."""
    cpu, memory = info.cpu, info.memory
    used_cpu, used_memory = info.used_cpu + requests.score_cpu, info.used_memory + requests.score_memory
    cpu_share = min(used_cpu / cpu, 1.0) if cpu else 1.0
    memory_share = min(used_memory / memory, 1.0) if memory else 1.0
    least = ((1.0 - cpu_share) + (1.0 - memory_share)) * 50.0
    if not requests.fit.get("cpu") and not requests.fit.get("memory"):
        return least
    return least + (1.0 - abs(cpu_share - memory_share) / 2.0) * 100.0


def preferences(spec: Tree, nodes: Sequence[NodeInfo]) -> list[float]:
    """Return the part of the scores that depends on node objects alone: preferred node affinity and tolerated soft taints, normalised over `nodes`."""
    preferred = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    affinity = [0.0] * len(nodes)
    if preferred:
        for position, info in enumerate(nodes):
            node = info.node or {"metadata": {}}
            labels, name = node["metadata"].get("labels") or {}, info.name
            affinity[position] = float(sum(term["weight"] for term in preferred if matches_term(term["preference"], labels, name) or _empty(term["preference"])))
    soft = [float(_untolerated(spec, info)) for info in nodes]
    highest, worst = max(affinity, default=0.0), max(soft, default=0.0)
    return [
        NODE_AFFINITY * (wish * 100.0 / highest if highest else 0.0) + TAINTS * (100.0 - bad * 100.0 / worst if worst else 100.0)
        for wish, bad in zip(affinity, soft, strict=True)
    ]


def _empty(term: Tree) -> bool:
    return not term.get("matchExpressions") and not term.get("matchFields")


def _untolerated(spec: Tree, info: NodeInfo) -> int:
    tolerations = [each for each in spec.get("tolerations") or () if (each.get("effect") or "PreferNoSchedule") == "PreferNoSchedule"]
    taints = (info.node or {"spec": {}})["spec"].get("taints") or ()
    return sum(1 for taint in taints if taint["effect"] == "PreferNoSchedule" and not any(tolerates(each, taint) for each in tolerations))


def normalised(raw: Sequence[float]) -> list[float]:
    """Scale to 0..100 between the lowest and the highest; all 0 when they are equal."""
    low, high = min(raw, default=0.0), max(raw, default=0.0)
    return [(value - low) * 100.0 / (high - low) if high > low else 0.0 for value in raw]
