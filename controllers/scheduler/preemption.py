"""Preemption: which pods of strictly lower priority would have to go, and from which node. Mirrors the default preemption plugin."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from kubemini.api.trees import Tree
from kubemini.controllers.scheduler.cache import Cache, NodeInfo, priority_of
from kubemini.controllers.scheduler.deciding import Decision, Filters, counted, with_nominated
from kubemini.controllers.scheduler.filters import Refusal
from kubemini.controllers.scheduler.resources import requests_of
from kubemini.machinery.labels import from_label_selector
from kubemini.runtime.env import from_stamp

FiltersWithout = Callable[[Sequence[str]], Filters]
"""Prepares the pod's filters with some placed pods left out of rules between pods."""

CANDIDATES_SHARE, CANDIDATES_LEAST = 10, 100
"""How many candidates are enough: this share of the nodes in percent, and at least so many."""


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
    keep: bool = False
    """Whether an earlier nomination stays: nothing was looked at."""
    plugins: tuple[str, ...] = ()
    """Which plugins would refuse nodes even without the victims: what cures them may make preemption possible."""


NOT_HELPFUL = Refusal("DefaultPreemption", ("Preemption is not helpful for scheduling",))
NO_VICTIMS = Refusal("DefaultPreemption", ("No preemption victims found for incoming pod",))


def going(pod: Tree) -> bool:
    """Tell whether a pod is on its way out because the scheduler preempted it."""
    if "deletionTimestamp" not in pod["metadata"]:
        return False
    target = next((each for each in (pod.get("status") or {}).get("conditions") or () if each["type"] == "DisruptionTarget"), None)
    return target is not None and (target["status"], target.get("reason")) == ("True", "PreemptionByScheduler")


def eligible(pod: Tree, decision: Decision, cache: Cache) -> str:
    """Return why a pod may not preempt now, or "": it waits for its victims as long as their node may still take it."""
    if pod["spec"].get("preemptionPolicy") == "Never":
        return "not eligible due to preemptionPolicy=Never."
    node = (pod.get("status") or {}).get("nominatedNodeName")
    info = cache.nodes.get(node) if node else None
    refusal = decision.refusals.get(node) if node else None
    if info is not None and not (refusal is not None and refusal.unresolvable):
        mine = priority_of(pod)
        if any(going(other) and priority_of(other) < mine for other in info.pods.values()):
            return "not eligible due to a terminating pod on the nominated node."
    return ""


def find(
    pod: Tree,
    decision: Decision,
    cache: Cache,
    budgets: Sequence[Tree],
    filters_without: FiltersWithout,
    *,
    offset: int = 0,
    spared: Collection[str] = (),
) -> Outcome:
    """Look for the best candidate among the nodes whose refusal preemption may cure, from the `offset`-th of them on. Pods with a uid in `spared` stay.

    Cost: those nodes, until enough candidates are found, and their lower-priority pods.
    """
    outcome = Outcome()
    barred = eligible(pod, decision, cache)
    if barred:
        outcome.text, outcome.keep = barred, True
        return outcome
    if decision.rejection is not None:
        outcome.text = f"0/{decision.nodes} nodes are available: {decision.nodes} {NOT_HELPFUL.reasons[0]}."
        return outcome
    curable = [name for name, refusal in decision.refusals.items() if not refusal.unresolvable]
    enough = max(len(curable) * CANDIDATES_SHARE // 100, CANDIDATES_LEAST)
    outcome.refusals = {name: NOT_HELPFUL for name, refusal in decision.refusals.items() if refusal.unresolvable}
    candidates: list[Candidate] = []
    start = offset % len(curable) if curable else 0
    for name in (*curable[start:], *curable[:start]):
        found = _victims(pod, cache.nodes[name], cache, budgets, filters_without, spared)
        if isinstance(found, Candidate):
            candidates.append(found)
            if len(candidates) >= enough:
                break
        else:
            outcome.refusals[name] = found
    outcome.plugins = tuple(dict.fromkeys(each.plugin for each in outcome.refusals.values() if each.plugin != NOT_HELPFUL.plugin))
    if candidates:
        outcome.candidate = min(candidates, key=rank)
    else:
        outcome.text = f"0/{decision.nodes} nodes are available: {counted(outcome.refusals.values())}."
    return outcome


def _victims(
    pod: Tree, info: NodeInfo, cache: Cache, budgets: Sequence[Tree], filters_without: FiltersWithout, spared: Collection[str]
) -> Candidate | Refusal:
    mine = priority_of(pod)
    lower = [other for uid, other in info.pods.items() if priority_of(other) < mine and uid not in spared]
    if not lower:
        return NO_VICTIMS
    trial = with_nominated(pod, info, cache)
    for other in lower:
        trial.change(other, requests_of(other["spec"]), -1)
    gone = dict.fromkeys(other["metadata"]["uid"] for other in lower)
    refused = filters_without(list(gone)).refusal(trial)
    if refused is not None:
        return refused
    lower.sort(key=importance)
    violating, others = by_budget(lower, budgets)
    victims: list[Tree] = []
    violations = 0
    for group, violation in ((violating, 1), (others, 0)):
        for other in group:
            # Reprieve: put it back, and keep it there where the pod still fits
            requests = requests_of(other["spec"])
            trial.change(other, requests, 1)
            del gone[other["metadata"]["uid"]]
            if filters_without(list(gone)).refusal(trial) is not None:
                trial.change(other, requests, -1)
                gone[other["metadata"]["uid"]] = None
                victims.append(other)
                violations += violation
    victims.sort(key=importance)
    return Candidate(info.name, victims, violations)


def started_at(pod: Tree) -> float:
    """Return when a pod started, as seconds; of one that has not, when it was made."""
    text = (pod.get("status") or {}).get("startTime") or pod["metadata"]["creationTimestamp"]
    return from_stamp(text)


def importance(pod: Tree) -> tuple[int, float, str]:
    """Sort key: higher priority first, then the earlier start."""
    return (-priority_of(pod), started_at(pod), pod["metadata"]["uid"])


def by_budget(pods: Sequence[Tree], budgets: Sequence[Tree]) -> tuple[list[Tree], list[Tree]]:
    """Split pods into those whose eviction would break a disruption budget, and the others. Budgets are spent in the order of `pods`."""
    allowed = [(budget.get("status") or {}).get("disruptionsAllowed", 0) for budget in budgets]
    violating: list[Tree] = []
    others: list[Tree] = []
    for pod in pods:
        broken = overdrawn(pod, budgets, allowed)
        (violating if broken else others).append(pod)
    return violating, others


def overdrawn(pod: Tree, budgets: Sequence[Tree], allowed: list[int], *, stop: bool = False) -> bool:
    """Spend the budgets that a pod is under, and tell whether that was too much for one of them; with `stop`, no further one is spent then."""
    meta = pod["metadata"]
    labels = meta.get("labels")
    broken = False
    for position, budget in enumerate(budgets):
        selector = budget["spec"].get("selector")
        if budget["metadata"]["namespace"] != meta["namespace"] or not labels or not selector:
            # A budget with an empty selector selects nothing here
            continue
        if not from_label_selector(selector).matches(labels) or meta["name"] in ((budget.get("status") or {}).get("disruptedPods") or {}):
            continue
        allowed[position] -= 1
        broken = broken or allowed[position] < 0
        if broken and stop:
            break
    return broken


def rank(candidate: Candidate) -> tuple[int, int, int, int, float]:
    """Sort key of candidates: fewest violations, lowest highest priority, lowest sum, fewest victims, latest start of the most important."""
    victims = candidate.victims
    highest = priority_of(victims[0]) if victims else -(2**31)
    total = sum(priority_of(victim) + 2**31 for victim in victims)
    earliest = min((started_at(victim) for victim in victims if priority_of(victim) == highest), default=0.0)
    return (candidate.violations, highest, total, len(victims), -earliest)
