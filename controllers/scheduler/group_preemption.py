"""Preemption by a group as a whole (feature gate WorkloadAwarePreemption): who in the cluster would have to go so that enough of it starts.

Mirrors Kubernetes 1.36: one search over all nodes with the group's own priority. Everybody below goes in thought, and comes back one unit after the other, the
most important first and those before all others whose eviction breaks a budget, as long as the group still fits. Pods of a group never preempt one by one then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kubemini.api.trees import Tree
from kubemini.controllers.scheduler.gangs import UNSCHEDULABLE, Gang
from kubemini.controllers.scheduler.placing import Placer
from kubemini.controllers.scheduler.placing_groups import GroupPlacer, Trial
from kubemini.controllers.scheduler.preemption import going
from kubemini.controllers.scheduler.victims import GroupOf, Unit, by_budget, effective_priority, group_priority, importance, units_below

NEVER = "not eligible due to preemptionPolicy=Never."
ONGOING = "not eligible due to a terminating pod on the nominated node."
NOBODY = "No preemption victims found for incoming preemptor"
CONSTRAINED = "workload aware preemption is not supported for pod groups with scheduling constraints"


@dataclass(slots=True)
class Relief:
    """What preemption can do for a group: who has to go, or why nothing is done."""

    victims: list[Tree] = field(default_factory=list)
    """Pods, those of one unit together, the most important first."""
    text: str = ""
    """Why nothing is done; "" where the group fits without the victims."""
    ongoing: bool = False
    """Whether the group waits for earlier victims: what is kept for its pods stays kept."""
    plugins: dict[str, None] = field(default_factory=dict)
    """Which plugins would refuse its pods even without all others: what cures them may make preemption possible."""


class GroupPreemption:
    """Looks for victims of groups. Nothing is written here."""

    def __init__(self, placer: Placer, groups: GroupPlacer, group_of: GroupOf) -> None:
        self._placer = placer
        self._groups = groups
        self._group_of = group_of

    def find(self, gang: Gang, group: Tree, todo: Sequence[Tree], wanted: int) -> Relief:
        """Look for the units that must go so that at least `wanted` of the pods `todo` (one at least) have a place. Those must have none yet.

        Cost: for every unit of lower priority in the cluster, one attempt to place the group.
        """
        barred = self._barred(group, todo)
        if barred is not None:
            return barred
        cache = self._placer.cache
        units = units_below(group_priority(group), cache, self._group_of)
        if not units:
            return Relief(text=NOBODY)
        pods = list(todo)
        decisions = [self._placer.why(f"{pod['metadata']['namespace']}/{pod['metadata']['name']}") for pod in pods]
        gone = {id(unit): unit for unit in units}
        for unit in units:
            self._take(unit)
        try:
            trial = self._try(gang, pods)
            if not enough(trial, wanted):
                return Relief(text=UNSCHEDULABLE, plugins={name: None for _, decision in trial.failed for name in decision.plugins()})
            for some in by_budget(units, self._placer.budgets()):
                for unit in some:
                    self._give_back(unit)
                    if enough(self._try(gang, pods), wanted):
                        del gone[id(unit)]
                    else:
                        self._take(unit)
            return Relief([pod for unit in sorted(gone.values(), key=importance) for pod, _ in unit.pods])
        finally:
            for unit in gone.values():
                self._give_back(unit)
            for decision in decisions:
                # What was tried in thought is no answer to why a pod waits
                if decision is not None:
                    self._placer.remember(decision)

    def _barred(self, group: Tree, todo: Sequence[Tree]) -> Relief | None:
        """Return why a group may not preempt now, or None."""
        if ((group.get("spec") or {}).get("schedulingConstraints") or {}).get("topology"):
            return Relief(text=CONSTRAINED)
        if any(pod["spec"].get("preemptionPolicy") == "Never" for pod in todo):
            return Relief(text=NEVER)
        priority = group_priority(group)
        for node in dict.fromkeys((pod.get("status") or {}).get("nominatedNodeName") for pod in todo):
            info = self._placer.cache.nodes.get(node) if node else None
            if info is not None and any(going(pod) and effective_priority(pod, self._group_of(pod)) < priority for pod in info.pods.values()):
                return Relief(text=ONGOING, ongoing=True)
        return None

    def _try(self, gang: Gang, pods: list[Tree]) -> Trial:
        trial = self._groups.assume(gang, pods, [])
        self._groups.forget(trial)
        return trial

    def _take(self, unit: Unit) -> None:
        for pod, _ in unit.pods:
            self._placer.cache.remove(pod["metadata"]["uid"])

    def _give_back(self, unit: Unit) -> None:
        for pod, node in unit.pods:
            self._placer.cache.place(pod, node)


def enough(trial: Trial, wanted: int) -> bool:
    """Tell whether a group can start: one pod at least has a place, and as many as it still needs do."""
    return bool(trial.placed) and len(trial.placed) >= wanted
