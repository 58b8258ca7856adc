"""One pass of a rolling update of one slice: what to scale where. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kubemini.api.trees import Tree
from kubemini.controllers.disaggregated_set.planner import Roles, Step
from kubemini.controllers.disaggregated_set.view import DsView, Revision, Scalers, initial_of, replicas_of


@dataclass(frozen=True, slots=True)
class Scaling:
    """One LeaderWorkerSet to scale."""

    lws: Tree
    role: str
    before: int
    after: int


def all_roles(owner: DsView, old: Sequence[Revision]) -> list[str]:
    """Return the roles of the spec, then those that only old revisions have."""
    gone = {role: None for revision in old for role in revision.roles if role not in owner.roles}
    return [*owner.roles, *sorted(gone)]


def state(owner: DsView, names: Sequence[str], old: Sequence[Revision], new: Revision, scalers: Scalers) -> Roles:
    """Return where the update stands."""
    initial: list[int] = []
    before: list[int] = []
    current: list[int] = []
    target: list[int] = []
    for name in names:
        sets = [revision.roles[name] for revision in old if name in revision.roles]
        initial.append(sum(initial_of(each) for each in sets))
        before.append(sum(replicas_of(each) for each in sets))
        has = replicas_of(new.roles[name]) if name in owner.roles and name in new.roles else 0
        wants = owner.target(name, scalers, has) if name in owner.roles else 0
        if owner.external(name):
            # An autoscaler does not take groups from the new revision while the old ones still drain
            wants = max(wants, has)
        current.append(has)
        target.append(wants)
    return Roles(initial, before, current, target, [owner.limits(name, scalers) for name in names])


def ups(names: Sequence[str], roles: Roles, step: Step, new: Revision) -> Iterator[Scaling]:
    """Yield what of the new revision grows."""
    for name, before, after in zip(names, roles.new, step.new, strict=True):
        if after > before and name in new.roles:
            yield Scaling(new.roles[name], name, before, after)


def downs(names: Sequence[str], roles: Roles, step: Step, old: Sequence[Revision]) -> Iterator[Scaling]:
    """Yield what of the old revisions shrinks: the newest one first, and a revision that loses one role altogether loses all of them."""
    budget = {name: before - after for name, before, after in zip(names, roles.old, step.old, strict=True)}
    for revision in sorted(old, key=lambda each: (each.born, each.name), reverse=True):
        if all(left <= 0 for left in budget.values()):
            return
        sets = {name: revision.roles[name] for name in names if name in revision.roles}
        taken = {name: min(budget[name], replicas_of(each)) for name, each in sets.items()}
        drained = {name for name, each in sets.items() if replicas_of(each) == taken[name]}
        for name, each in sets.items():
            before = replicas_of(each)
            after = 0 if drained else before - taken[name]
            if before <= after:
                continue
            yield Scaling(each, name, before, after)
            if name in drained or not drained:
                budget[name] -= taken[name]
