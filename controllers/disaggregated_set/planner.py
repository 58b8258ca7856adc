"""The next step of a rolling update over several roles. Pure.

All roles move together: a step either adds to the new revision or takes from the old ones, by batches that are in proportion to each role's size, within each role's surge
and unavailability. No role of an old revision is left alone: where one would be drained while another is not, either all are, or the one keeps its last group. Without state:
where the update stands is read from the replicas.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Counts = Sequence[int]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a role allows while it is updated."""

    surge: int = 1
    unavailable: int = 0

    @property
    def batch(self) -> int:
        """How many groups a step moves at most."""
        return self.surge if self.surge > 0 else max(1, self.unavailable)


@dataclass(frozen=True, slots=True)
class Roles:
    """Replicas by role, in one order everywhere."""

    initial: Counts
    """Of the old revisions when the update began."""
    old: Counts
    """Of the old revisions now."""
    new: Counts
    """Of the new revision now."""
    target: Counts
    """Wanted of the new revision."""
    limits: Sequence[Limits]

    def __len__(self) -> int:
        """Return how many roles there are."""
        return len(self.initial)


@dataclass(frozen=True, slots=True)
class Step:
    """What to scale to: the old revisions together, and the new one."""

    old: list[int]
    new: list[int]


def next_step(roles: Roles) -> Step | None:
    """Return the next step, None where the update is complete or cannot go on."""
    every = range(len(roles))
    arrived = all(roles.new[i] >= roles.target[i] for i in every)
    if arrived and not any(roles.old):
        return None
    total = max((-(-max(roles.initial[i], roles.target[i], 0) // roles.limits[i].batch) for i in every), default=0)
    if total == 0:
        return None
    if any(roles.old[i] > roles.initial[i] for i in every):
        # Someone scaled an old revision up meanwhile
        return Step([min(roles.initial[i], roles.old[i]) for i in every], list(roles.new))
    if arrived:
        return Step([0 for _ in every], list(roles.new))
    wanted = _next_new(roles, total)
    return _scale_up(roles, wanted) or _drain(roles, total) or _drain_for(roles, wanted)


def _next_new(roles: Roles, total: int) -> list[int]:
    done = min([total, *(roles.new[i] * total // roles.target[i] for i in range(len(roles)) if roles.target[i])])
    return [max(roles.new[i], min(roles.target[i], -(-(done + 1) * roles.target[i] // total))) for i in range(len(roles))]


def _scale_up(roles: Roles, wanted: list[int]) -> Step | None:
    every = range(len(roles))
    if all(wanted[i] <= roles.new[i] for i in every):
        return None
    if any(roles.target[i] and roles.old[i] + wanted[i] > roles.target[i] + roles.limits[i].surge for i in every):
        return None
    return Step(list(roles.old), wanted)


def _kept(roles: Roles, i: int, new: int) -> int:
    """Return how many old groups of a role must stay while there are `new` new ones."""
    return max(0, roles.target[i] - roles.limits[i].unavailable - new) if roles.initial[i] >= roles.target[i] else 0


def _drain(roles: Roles, total: int) -> Step | None:
    every = range(len(roles))
    done = max([0, *((roles.initial[i] - roles.old[i]) * total // roles.initial[i] for i in every if roles.initial[i])])
    left = [min(roles.old[i], max(0, roles.initial[i] - (done + 1) * roles.initial[i] // total)) for i in every]
    left = [max(left[i], _kept(roles, i, roles.new[i])) for i in every]
    left = _together(roles, left, roles.new)
    return Step(left, list(roles.new)) if any(left[i] < roles.old[i] for i in every) else None


def _drain_for(roles: Roles, wanted: list[int]) -> Step | None:
    """Make room for the new groups that a step wants."""
    every = range(len(roles))
    left = [max(0, min(roles.old[i], roles.target[i] + roles.limits[i].surge - wanted[i])) for i in every]
    left = [max(left[i], _kept(roles, i, wanted[i])) for i in every]
    return Step(_together(roles, left, wanted), wanted) if any(left[i] < roles.old[i] for i in every) else None


def _together(roles: Roles, left: list[int], new: Counts) -> list[int]:
    """Return what is left of the old revisions, so that no role is drained alone."""
    had = [i for i in range(len(roles)) if roles.initial[i]]
    drained = [i for i in had if left[i] == 0]
    if not drained or len(drained) == len(had):
        return left
    enough = all(new[i] >= roles.target[i] - roles.limits[i].unavailable for i in range(len(roles)) if roles.initial[i] >= roles.target[i])
    return [0] * len(left) if enough else [max(1, each) if i in drained else each for i, each in enumerate(left)]
