"""Which roles' Jobs may exist and run by now: startup in order, and dependencies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kubemini.controllers.jobset import depends_on
from kubemini.controllers.jobset.children import RoleCounts
from kubemini.controllers.jobset.view import JobSetView, Role


@dataclass(slots=True)
class Turn:
    """The roles whose Jobs are made and resumed in this pass; `waiting` where the last of them is to start before the next one's turn comes."""

    roles: list[Role] = field(default_factory=list)
    waiting: bool = False
    started: list[Role] = field(default_factory=list)
    """Roles whose turn is over. Should one of their Jobs be suspended it is resumed all the same: one that was suspended when all its pods had succeeded, and
    not yet finished, counts as ready for ever."""


def turn(js: JobSetView, counts: Mapping[str, RoleCounts]) -> Turn:
    """Return whose turn it is. Dependencies hold while suspended too, the order does not: then all Jobs are made, suspended."""
    found = Turn()
    one_by_one = js.in_order and not js.suspended
    replicas: dict[str, int] = {}
    for role in js.roles:
        replicas[role.name] = role.replicas
        if not depends_on.reached(role, replicas, counts):
            continue
        if one_by_one and counts[role.name].started == role.replicas:
            found.started.append(role)
            continue
        found.roles.append(role)
        if one_by_one:
            found.waiting = True
            break
    return found
