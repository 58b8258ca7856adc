"""Preemption: which pods of strictly lower priority would have to go, and from which node. Mirrors the default preemption plugin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kubemini.api.trees import Tree
from kubemini.controllers.scheduler.cache import Cache, NodeInfo, priority_of
from kubemini.controllers.scheduler.deciding import Decision, Filters, with_nominated
from kubemini.controllers.scheduler.filters import Refusal
from kubemini.controllers.scheduler.resources import requests_of
from kubemini.machinery.labels import from_label_selector
from kubemini.machinery.memo import by_identity
from kubemini.runtime.env import from_stamp

_selector = by_identity()(lambda tree: from_label_selector(tree))

FiltersWithout = Callable[[Sequence[str]], Filters]
"""Prepares the pod's filters with some placed pods left out of inter-pod rules."""


@dataclass(slots=True)
class Candidate:
    """A node and the pods that would have to go, most important first."""

    node: str
    victims: list[Tree]
    violations: int


@dataclass(slots=True)
class Outcome:
    """The chosen candidate (None = none), and the text for the message of the failed pod."""

    candidate: Candidate | None = None
    text: str = ""
    refusals: dict[str, Refusal] = field(default_factory=dict)


NOT_HELPFUL = Refusal("DefaultPreemption", ("Preemption is not helpful for scheduling",))
NO_VICTIMS = Refusal("DefaultPreemption", ("No preemption victims found for incoming pod",))


def eligible(pod: Tree, cache: Cache) -> str:
    """Return why a pod may not preempt now, or ""."""
    if pod["spec"].get("preemptionPolicy") == "Never":
        return "not eligible due to preemptionPolicy=Never."
    node = (pod.get("status") or {}).get("nominatedNodeName")
    info = cache.nodes.get(node) if node else None
    if info is not None:
        mine = priority_of(pod)
        if any("deletionTimestamp" in other["metadata"] and priority_of(other) < mine for other in info.pods.values()):
            return "not eligible due to a terminating pod on the nominated node."
    return ""


def find(pod: Tree, decision: Decision, cache: Cache, budgets: Sequence[Tree], filters_without: FiltersWithout) -> Outcome:
    """Look for the best candidate among the nodes whose refusal preemption may cure. Cost: those nodes and their lower-priority pods."""
    outcome = Outcome()
    candidates: list[Candidate] = []
    for name, refusal in decision.refusals.items():
        if refusal.unresolvable:
            outcome.refusals[name] = NOT_HELPFUL
            continue
        found = _victims(pod, cache.nodes[name], cache, budgets, filters_without)
        if isinstance(found, Candidate):
            candidates.append(found)
        else:
            outcome.refusals[name] = found
    if candidates:
        outcome.candidate = min(candidates, key=_rank)
        return outcome
    counts: dict[str, int] = {}
    for refusal in outcome.refusals.values():
        for reason in refusal.reasons:
            counts[reason] = counts.get(reason, 0) + 1
    listed = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    outcome.text = f"0/{decision.nodes} nodes are available: {listed}."
    return outcome


def _victims(pod: Tree, info: NodeInfo, cache: Cache, budgets: Sequence[Tree], filters_without: FiltersWithout) -> Candidate | Refusal:
    mine = priority_of(pod)
    lower = [other for other in info.pods.values() if priority_of(other) < mine]
    if not lower:
        return NO_VICTIMS
    trial = with_nominated(pod, info, cache)
    trial.pods = dict(info.pods)
    for other in lower:
        _take(trial, other)
    gone = {other["metadata"]["uid"]: other for other in lower}
    refused = filters_without(list(gone)).refusal(trial)
    if refused is not None:
        return refused
    lower.sort(key=_importance)
    violating, others = _by_budget(lower, budgets)
    victims: list[Tree] = []
    violations = 0
    for group, counted in ((violating, True), (others, False)):
        for other in group:
            # Reprieve: put it back, and keep it there where the pod still fits
            trial.change(other, requests_of(other["spec"]), 1)
            trial.pods[other["metadata"]["uid"]] = other
            del gone[other["metadata"]["uid"]]
            if filters_without(list(gone)).refusal(trial) is not None:
                _take(trial, other)
                gone[other["metadata"]["uid"]] = other
                victims.append(other)
                violations += counted
    victims.sort(key=_importance)
    return Candidate(info.name, victims, violations)


def _take(info: NodeInfo, pod: Tree) -> None:
    info.change(pod, requests_of(pod["spec"]), -1)
    del info.pods[pod["metadata"]["uid"]]


def _started(pod: Tree) -> float:
    text = (pod.get("status") or {}).get("startTime") or pod["metadata"]["creationTimestamp"]
    return from_stamp(text)


def _importance(pod: Tree) -> tuple[int, float, str]:
    """Sort key: higher priority first, then the earlier start."""
    return (-priority_of(pod), _started(pod), pod["metadata"]["uid"])


def _by_budget(pods: Sequence[Tree], budgets: Sequence[Tree]) -> tuple[list[Tree], list[Tree]]:
    """Split pods into those whose eviction would break a disruption budget, and the others."""
    allowed = [(budget.get("status") or {}).get("disruptionsAllowed", 0) for budget in budgets]
    violating, others = [], []
    for pod in pods:
        broken = False
        labels = pod["metadata"].get("labels")
        for position, budget in enumerate(budgets):
            selector = budget["spec"].get("selector")
            if budget["metadata"]["namespace"] != pod["metadata"]["namespace"] or not labels or selector is None:
                continue
            if not _selector(selector).matches(labels) or pod["metadata"]["name"] in ((budget.get("status") or {}).get("disruptedPods") or {}):
                continue
            allowed[position] -= 1
            broken = broken or allowed[position] < 0
        (violating if broken else others).append(pod)
    return violating, others


def _rank(candidate: Candidate) -> tuple[int, int, int, int, float]:
    """Sort key of candidates: fewest violations, lowest highest priority, lowest sum, fewest victims, latest start of the most important."""
    victims = candidate.victims
    highest = priority_of(victims[0]) if victims else -(2**31)
    total = sum(priority_of(victim) + 2**31 for victim in victims)
    earliest = min((_started(victim) for victim in victims if priority_of(victim) == highest), default=0.0)
    return (candidate.violations, highest, total, len(victims), -earliest)
