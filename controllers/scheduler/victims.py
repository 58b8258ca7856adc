"""Whom a group may drive out: units that go or stay as a whole, from the most important to the least. Mirrors workload-aware preemption of Kubernetes 1.36."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kubemini.api.trees import Tree
from kubemini.controllers.scheduler.cache import Cache, priority_of
from kubemini.controllers.scheduler.preemption import going, overdrawn, started_at

GroupOf = Callable[[Tree], Tree | None]
"""Returns the PodGroup of scheduling.k8s.io that a pod names, or None where there is none."""

WHOLE = "PodGroup"
"""The disruption mode of groups that are disrupted as a whole."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A pod, or all placed pods of a group that is disrupted as a whole."""

    pods: tuple[tuple[Tree, str], ...]
    """Each with its node."""
    priority: int
    grouped: bool
    """Whether they are of a group, of whichever mode."""

    def begun(self) -> bool:
        """Tell whether some of it had to go already, and others had not: what was begun is brought to its end."""
        return 0 < sum(1 for pod, _ in self.pods if going(pod)) < len(self.pods)


def group_priority(group: Tree) -> int:
    """Return a group's priority."""
    return (group.get("spec") or {}).get("priority") or 0


def effective_priority(pod: Tree, group: Tree | None) -> int:
    """Return the priority that counts when groups preempt: that of a pod's group, whatever its own is."""
    return priority_of(pod) if group is None else group_priority(group)


def units_below(priority: int, cache: Cache, group_of: GroupOf) -> list[Unit]:
    """Return the units of lower priority on all nodes, the most important first. O(placed pods)."""
    singles: list[Unit] = []
    wholes: dict[str, list[tuple[Tree, str]]] = {}
    priorities: dict[str, int] = {}
    for info in cache.live():
        for pod in info.pods.values():
            group = group_of(pod)
            level = effective_priority(pod, group)
            if level >= priority:
                continue
            if group is not None and (group.get("spec") or {}).get("disruptionMode") == WHOLE:
                uid = group["metadata"]["uid"]
                priorities[uid] = level
                wholes.setdefault(uid, []).append((pod, info.name))
            else:
                singles.append(Unit(((pod, info.name),), level, bool(pod["spec"].get("schedulingGroup"))))
    return sorted([*singles, *(Unit(tuple(pods), priorities[uid], True) for uid, pods in wholes.items())], key=importance)


def importance(unit: Unit) -> tuple[bool, int, bool, int, float, str]:
    """Sort key: higher priority first, then groups before pods, larger groups before smaller ones, and the earlier start; last what has begun to go."""
    size = len(unit.pods) if unit.grouped else 1
    return (
        unit.begun(),
        -unit.priority,
        not unit.grouped,
        -size,
        min(started_at(pod) for pod, _ in unit.pods),
        min(pod["metadata"]["uid"] for pod, _ in unit.pods),
    )


def by_budget(units: Sequence[Unit], budgets: Sequence[Tree]) -> tuple[list[Unit], list[Unit]]:
    """Split units into those one of whose pods breaks a disruption budget, and the others. Budgets are spent in the order of `units`."""
    allowed = [(budget.get("status") or {}).get("disruptionsAllowed", 0) for budget in budgets]
    violating: list[Unit] = []
    others: list[Unit] = []
    for unit in units:
        broken = [pod for pod, _ in unit.pods if overdrawn(pod, budgets, allowed, stop=True)]
        (violating if broken else others).append(unit)
    return violating, others
