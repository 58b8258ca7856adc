"""What a pass does with each pod. Pure: a look at one pod at a time, in the order in which the pass comes to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from kubemini.api.trees import Tree
from kubemini.controllers.stateful_set import pods
from kubemini.controllers.stateful_set.view import SetView


@dataclass(slots=True)
class Slots:
    """The pods of a set by what they are wanted for."""

    replicas: list[Tree | None]
    """By index; None where there is no pod yet."""
    condemned: list[Tree]
    """Out of range, from the highest ordinal to the lowest."""

    def all(self) -> list[Tree | None]:
        """Return every slot."""
        return [*self.replicas, *self.condemned]


def split(owner: SetView, found: Iterable[Tree]) -> Slots:
    """Sort pods into slots; names without an ordinal belong nowhere."""
    slots = Slots([None] * owner.replicas, [])
    start = owner.start
    for pod in found:
        ordinal = pods.ordinal_of(pod)
        if owner.wanted(ordinal):
            slots.replicas[ordinal - start] = pod
        elif ordinal >= 0:
            slots.condemned.append(pod)
    slots.condemned.sort(key=pods.ordinal_of, reverse=True)
    return slots


def first_unavailable(slots: Slots, min_ready: int, now: float) -> Tree | None:
    """Return the first pod that is not available: replicas from the lowest ordinal, then the condemned from theirs. None also where that one is not made yet."""
    for pod in (*slots.replicas, *reversed(slots.condemned)):
        if pods.is_unavailable(pod, min_ready, now):
            return pod
    return None


def is_left_alone(owner: SetView, pod: Tree | None) -> bool:
    """Tell whether a pod in range of a parallel set without claims is as it should be: a pass has nothing to do with it."""
    if pod is None or owner.ordered or owner.claims:
        return False
    known = pods.facts(pod)
    return known.labelled and not known.ended and known.parent == owner.name


class Step(Enum):
    """What to do with a pod."""

    WAIT = "wait"
    """Nothing, and an ordered set goes no further."""
    SKIP = "skip"
    """Nothing; go on."""
    DELETE = "delete"
    CREATE = "create"
    KEEP = "keep"
    """See that it is as it should be, then go on."""


def replica_step(owner: SetView, pod: Tree | None, now: float) -> Step:
    """Return the step for a pod in range."""
    if pod is None:
        return Step.CREATE
    if pods.has_ended(pod):
        return Step.WAIT if pods.is_terminating(pod) else Step.DELETE
    if owner.ordered and pods.is_unavailable(pod, owner.min_ready, now):
        return Step.WAIT
    return Step.KEEP


def condemned_step(owner: SetView, pod: Tree, first: Tree | None, now: float) -> Step:
    """Return the step for a pod out of range. `first` is the first unavailable pod: of the unready ones only that may go in an ordered set."""
    if pods.is_terminating(pod):
        return Step.WAIT if owner.ordered else Step.SKIP
    if owner.ordered and pod is not first and not pods.is_available(pod, owner.min_ready, now):
        return Step.WAIT
    return Step.DELETE


def outdated(owner: SetView, replicas: Sequence[Tree | None], revision: str, now: float, *, budgeted: bool = False) -> list[Tree]:
    """Return the pods that a rolling update deletes now, from the highest ordinal down, none below the partition.

    One at a time, and none while a pod above is unavailable. `budgeted` (gate MaxUnavailableStatefulSet): as many as maxUnavailable allows.
    """
    lowest = owner.partition or 0
    if budgeted and owner.max_unavailable is not None:
        return _within_budget(owner, replicas, revision, now, lowest)
    for index in range(len(replicas) - 1, lowest - 1, -1):
        pod = replicas[index]
        if pod is None:
            return []
        known = pods.facts(pod)
        if known.terminating:
            return []
        if known.revision != revision:
            return [pod]
        if known.ready_since is None or (owner.min_ready and known.ready_since + owner.min_ready > now):
            return []
    return []


def _within_budget(owner: SetView, replicas: Sequence[Tree | None], revision: str, now: float, lowest: int) -> list[Tree]:
    def old(pod: Tree | None) -> bool:
        return pod is not None and pods.revision_of(pod) != revision

    unavailable = 0
    for index, pod in enumerate(replicas):
        # Broken pods that the update will replace anyway do not hold it up in a parallel set
        if pods.is_unavailable(pod, owner.min_ready, now) and (
            owner.ordered or index < lowest or not old(pod) or (pod is not None and pods.is_terminating(pod))
        ):
            unavailable += 1
    budget = max_unavailable(owner) - unavailable
    chosen: list[Tree] = []
    for index in range(len(replicas) - 1, lowest - 1, -1):
        if len(chosen) >= budget:
            break
        pod = replicas[index]
        if pod is not None and old(pod) and not pods.is_terminating(pod):
            chosen.append(pod)
    return chosen


def max_unavailable(owner: SetView) -> int:
    """Return how many pods an update may take down: percentages round down, but to no less than one."""
    most = owner.max_unavailable
    if isinstance(most, str):
        most = owner.replicas * int(most.removesuffix("%")) // 100
    return max(1, most or 1)
