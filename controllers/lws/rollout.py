"""How far an update goes, and how many groups there are meanwhile: the partition and replicas of the leaders' StatefulSet. Pure.

An update opens a window from the top: groups above the partition are replaced. The window moves down as they become ready, and is never wider than the budget
(maxUnavailable, and the surge groups that exist). Surge groups are given back as soon as the groups that are still to come fit into maxUnavailable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kubemini.controllers.lws.groups import Group
from kubemini.controllers.lws.view import LwsView


@dataclass(frozen=True, slots=True)
class Leaders:
    """What the leaders' StatefulSet says."""

    replicas: int
    partition: int
    wanted_then: int
    """R at the last apply."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """What to apply. `reclaimed` are the indexes of surge groups that this gives back, for an event."""

    partition: int
    replicas: int
    reclaimed: range = range(0)


def plan(owner: LwsView, leaders: Leaders | None, states: Callable[[int], Sequence[Group]], *, updated: bool) -> Rollout:
    """Return the next partition and replicas.

    `leaders` is None before the first apply. `states(count)` returns the groups by index. `updated`: the spec differs from the revision that is being rolled out.
    """
    found = _plan(owner, leaders, states, updated=updated)
    return found if found.partition >= owner.partition else Rollout(owner.partition, found.replicas, found.reclaimed)


def _plan(owner: LwsView, leaders: Leaders | None, states: Callable[[int], Sequence[Group]], *, updated: bool) -> Rollout:
    wanted = owner.replicas
    if leaders is None:
        return Rollout(0, wanted)
    if updated:
        # Scaling comes before the update
        partition = min(wanted, leaders.replicas)
        return Rollout(partition, wanted) if leaders.replicas < wanted else _with_replicas(owner, leaders, partition, wanted)
    if leaders.partition == 0 and leaders.replicas == wanted:
        return Rollout(0, wanted)
    if leaders.replicas < wanted:
        return Rollout(leaders.partition, wanted)
    found = states(leaders.replicas)
    unready = sum(1 for group in found[:wanted] if not (group.ready and group.updated))
    burst = wanted + owner.surge
    if leaders.wanted_then != wanted:
        return _with_replicas(owner, leaders, min(leaders.partition, burst), unready)
    step = owner.unavailable + owner.surge - (burst - leaders.replicas)
    return _with_replicas(owner, leaders, next_partition(found, step, leaders.partition), unready)


def _with_replicas(owner: LwsView, leaders: Leaders, partition: int, unready: int) -> Rollout:
    replicas = with_surge(owner.replicas, owner.surge, owner.unavailable, unready)
    return Rollout(partition, replicas, range(replicas, leaders.replicas))


def with_surge(wanted: int, surge: int, unavailable: int, unready: int) -> int:
    """Return how many groups there should be while `unready` of the wanted ones are not updated and ready.

    >>> with_surge(4, 2, 0, 3), with_surge(4, 2, 0, 2), with_surge(4, 2, 1, 2), with_surge(1, 1, 1, 1)
    (6, 6, 5, 1)
    """
    return wanted + max(0, unready - unavailable) if unready <= surge else wanted + surge


def next_partition(states: Sequence[Group], step: int, current: int) -> int:
    """Return the next partition of a running update; it never grows.

    Groups below the window that are down count against the budget, but where they are at its edge they are taken in for free: nothing is lost by replacing them.
    """
    count = len(states)
    done = 0
    while done < count and states[count - 1 - done].ready and states[count - 1 - done].updated:
        done += 1
    lowest = max(0, count - done - step)
    partition = lowest + sum(1 for group in states[:lowest] if not group.ready)
    for index in range(min(partition, count - 1), lowest - 1, -1):
        if states[index].ready and not states[index].updated:
            break
        partition = index
    return min(partition, current)
