"""Counts and conditions of a LeaderWorkerSet. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kubemini.api.trees import Tree
from kubemini.api.wellknown import lws as names
from kubemini.controllers.lws.groups import Group
from kubemini.controllers.lws.view import LwsView

MESSAGES = {
    names.AVAILABLE: (names.ALL_GROUPS_READY, "All replicas are ready"),
    names.PROGRESSING: (names.GROUPS_PROGRESSING, "Replicas are progressing"),
    names.UPDATE_IN_PROGRESS: (names.GROUPS_UPDATING, "Rolling Upgrade is in progress"),
}


@dataclass(frozen=True, slots=True)
class Counts:
    """The groups of a LeaderWorkerSet, counted."""

    ready: int
    updated: int
    current: int
    """Those within the wanted number that an update may touch."""
    current_updated: int
    wanted_ready: int
    """Ready ones within the wanted number."""
    current_done: int
    """Of `current`, those that are updated and ready."""

    def update_done(self, owner: LwsView) -> bool:
        """Tell whether every group is of the wanted revision and ready."""
        return owner.partition == 0 and self.current_done == owner.replicas


def count(owner: LwsView, found: Sequence[Group]) -> Counts:
    """Count groups; those beyond the wanted number are surge."""
    wanted = [group for group in found if group.index < owner.replicas]
    current = [group for group in wanted if group.index >= owner.partition]
    return Counts(
        sum(group.ready for group in found),
        sum(group.updated for group in found),
        len(current),
        sum(group.updated for group in current),
        sum(group.ready for group in wanted),
        sum(group.ready and group.updated for group in current),
    )


@dataclass(frozen=True, slots=True)
class Written:
    """A new status. `said` is (reason, message) of an event where conditions changed."""

    status: Tree
    said: tuple[str, str] | None


def next_status(owner: LwsView, leaders: Tree, counts: Counts, now: str) -> Written | None:
    """Return the new status, None where nothing changed."""
    before = owner.status
    status = dict(before)
    for name, value in (
        ("replicas", (leaders.get("status") or {}).get("replicas", 0)),
        ("observedGeneration", owner.meta.get("generation", 0)),
        ("readyReplicas", counts.ready),
        ("updatedReplicas", counts.updated),
    ):
        if value:
            status[name] = value
        else:
            status.pop(name, None)
    if not status.get("hpaPodSelector"):
        status["hpaPodSelector"] = f"{names.NAME}={owner.name},{names.WORKER_INDEX}=0"
    wanted = _wanted(owner, counts)
    conditions = _set_all(before.get("conditions") or [], wanted, owner.meta.get("generation", 0), now)
    said: tuple[str, str] | None = None
    if conditions is not None:
        status["conditions"] = conditions
        reason, message = MESSAGES[wanted[0]]
        said = reason, f"{message}, with {counts.ready} groups ready of total {owner.replicas} groups"
    return None if status == before else Written(status, said)


def _wanted(owner: LwsView, counts: Counts) -> list[str]:
    if counts.current_updated < counts.current:
        return [names.UPDATE_IN_PROGRESS, names.PROGRESSING]
    if counts.wanted_ready == owner.replicas and counts.current_done == counts.current:
        return [names.AVAILABLE]
    return [names.PROGRESSING]


def _set_all(conditions: Sequence[Tree], wanted: Sequence[str], generation: int, now: str) -> list[Tree] | None:
    """Set conditions to True; None where nothing changed. A pass changes one: the next one follows in the next pass, which the write brings about."""
    found = list(conditions)
    changed = False
    for type_ in wanted:
        if _set(found, type_, generation, now):
            changed = True
            break
    for position, each in enumerate(found):
        if each.get("observedGeneration", 0) != generation:
            found[position] = {**each, "observedGeneration": generation}
            changed = True
    return found if changed else None


def _set(found: list[Tree], type_: str, generation: int, now: str) -> bool:
    reason, message = MESSAGES[type_]
    condition = {"type": type_, "status": "True", "observedGeneration": generation, "lastTransitionTime": now, "reason": reason, "message": message}
    changed = present = False
    for position, each in enumerate(found):
        if each["type"] == type_:
            present = True
            if each["status"] != "True" or each.get("observedGeneration", 0) != generation:
                found[position] = condition
                changed = True
        elif each["status"] == "True" and names.AVAILABLE in (each["type"], type_):
            # Available excludes the two others; what is flipped keeps its reason
            found[position] = {**each, "status": "False", "lastTransitionTime": now, "observedGeneration": generation}
            changed = True
    if not present:
        found.append(condition)
        changed = True
    return changed
