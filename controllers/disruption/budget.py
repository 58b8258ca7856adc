"""The status of one budget, from its pods and what is expected of them. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kubemini.api.trees import Tree
from kubemini.controllers.deployment.amounts import scaled
from kubemini.controllers.replica_set.pods import ready_since
from kubemini.runtime.env import from_stamp

DELETION_SECONDS = 120.0
"""How long a pod whose eviction was granted is counted as gone before it is."""
CONDITION = "DisruptionAllowed"


@dataclass(frozen=True, slots=True)
class Disrupted:
    """Pods that were granted to go and are still there: since when by name, which of them outstayed, and in how many seconds the next one does."""

    since: dict[str, str]
    overdue: list[Tree]
    again: float | None


def disrupted(budget: Tree, pods: Sequence[Tree], now: float) -> Disrupted:
    """Look at the granted disruptions of a budget."""
    granted: dict[str, str] = (budget.get("status") or {}).get("disruptedPods") or {}
    since: dict[str, str] = {}
    overdue: list[Tree] = []
    again: float | None = None
    if granted:
        for pod in pods:
            stamp = granted.get(pod["metadata"]["name"])
            if stamp is None or "deletionTimestamp" in pod["metadata"]:
                continue
            left = from_stamp(stamp) + DELETION_SECONDS - now
            if left < 0:
                overdue.append(pod)
            else:
                since[pod["metadata"]["name"]] = stamp
                again = left if again is None else min(again, left)
    return Disrupted(since, overdue, again)


def healthy(pods: Sequence[Tree], gone: dict[str, str]) -> int:
    """Return how many pods are Ready and neither going nor granted to go."""
    return sum(
        1 for pod in pods if "deletionTimestamp" not in pod["metadata"] and pod["metadata"]["name"] not in gone and ready_since(pod) is not None
    )


def needs_scale(budget: Tree) -> bool:
    """Tell whether the budget is a share or a maximum, so that the wished number of pods has to be known."""
    spec = budget["spec"]
    return spec.get("maxUnavailable") is not None or isinstance(spec.get("minAvailable"), str)


def is_empty(budget: Tree) -> bool:
    """Tell whether the budget asks for nothing; it then allows nothing."""
    return budget["spec"].get("maxUnavailable") is None and budget["spec"].get("minAvailable") is None


def desired(budget: Tree, expected: int) -> int:
    """Return how many healthy pods the budget wants of those expected."""
    spec = budget["spec"]
    if spec.get("maxUnavailable") is not None:
        return max(expected - scaled(spec["maxUnavailable"], expected, up=True), 0)
    return scaled(spec.get("minAvailable"), expected, up=True)


def status(budget: Tree, *, expected: int, wanted: int, current: int, since: dict[str, str], stamp: str) -> Tree:
    """Return the status of a budget whose numbers are known."""
    allowed = max(current - wanted, 0) if expected > 0 else 0
    generation = budget["metadata"].get("generation", 0)
    found: Tree = {"observedGeneration": generation}
    if since:
        found["disruptedPods"] = since
    found |= {"disruptionsAllowed": allowed, "currentHealthy": current, "desiredHealthy": wanted, "expectedPods": expected}
    found["conditions"] = _conditions(
        budget, generation, "True" if allowed else "False", "SufficientPods" if allowed else "InsufficientPods", "", stamp
    )
    return found


def failed(budget: Tree, message: str, stamp: str) -> Tree:
    """Return the status of a budget whose numbers cannot be known: nothing is allowed, and its spec does not count as seen."""
    before = budget.get("status") or {}
    found = {"currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0, **before, "disruptionsAllowed": 0}
    found["conditions"] = _conditions(budget, before.get("observedGeneration", 0), "False", "SyncFailed", message, stamp)
    return found


def _conditions(budget: Tree, generation: int, state: str, reason: str, message: str, stamp: str) -> list[Tree]:
    before: list[Tree] = (budget.get("status") or {}).get("conditions") or []
    current = next((each for each in before if each["type"] == CONDITION), None)
    since = current["lastTransitionTime"] if current is not None and current["status"] == state else stamp
    new = {"type": CONDITION, "status": state, "lastTransitionTime": since, "reason": reason, "message": message}
    if generation:
        new["observedGeneration"] = generation
    if current is None:
        return [*before, new]
    return [new if each is current else each for each in before]


def selector_text(selector: Tree | None) -> str:
    """Return a selector as Go prints the object."""
    if selector is None:
        return "nil"
    labels = selector.get("matchLabels") or {}
    pairs = "".join(f"{key}: {labels[key]}," for key in sorted(labels))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{each['key']},Operator:{each['operator']},Values:[{' '.join(each.get('values') or ())}],}},"
        for each in selector.get("matchExpressions") or ()
    )
    return f"&LabelSelector{{MatchLabels:map[string]string{{{pairs}}},MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
