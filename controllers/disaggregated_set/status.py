"""The status of a DisaggregatedSet and of its scalers. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from kubemini.api.trees import Tree
from kubemini.api.wellknown import lws as names
from kubemini.controllers.disaggregated_set.naming import label
from kubemini.controllers.disaggregated_set.view import DsView, Scalers

READY_TEXT = "All roles have reached their desired replica count, ready and updated to the current revision"
PROGRESSING_TEXT = "Not all roles have reached their desired replica count, ready and updated to the current revision"
EXCLUSIVE = (names.AVAILABLE, names.PROGRESSING)


def next_status(owner: DsView, owned: Sequence[Tree], scalers: Scalers, now: str) -> Tree:
    """Return the new status, which equals the old one where nothing changed. `owned` are its LeaderWorkerSets, of all slices and revisions."""
    available = True
    roles: list[Tree] = []
    for role in owner.roles:
        counts = _count(owner, role, owned)
        roles.append({"name": role, **{key: value for key, value in counts.items() if value}})
        if owner.external(role) and role not in scalers:
            available = False
            continue
        wanted = owner.target(role, scalers, 0) * owner.slices
        available = available and all(value == wanted for value in counts.values())
    generation = owner.meta.get("generation", 0)
    conditions = _with_condition(owner.status.get("conditions") or [], generation, now, available=available)
    return {**owner.status, "observedGeneration": generation, "roleStatuses": roles, "conditions": conditions}


def _count(owner: DsView, role: str, owned: Sequence[Tree]) -> dict[str, int]:
    counts = {"replicas": 0, "readyReplicas": 0, "updatedReplicas": 0}
    for each in owned:
        if label(each, names.DS_ROLE) != role:
            continue
        status = each.get("status") or {}
        for key in counts:
            if key != "updatedReplicas" or label(each, names.DS_REVISION) == owner.revision:
                counts[key] += status.get(key, 0)
    return counts


def _with_condition(conditions: Sequence[Tree], generation: int, now: str, *, available: bool) -> list[Tree]:
    type_ = names.AVAILABLE if available else names.PROGRESSING
    reason, message = (names.ALL_ROLES_READY, READY_TEXT) if available else (names.ROLLOUT_IN_PROGRESS, PROGRESSING_TEXT)
    told: Tree = {"observedGeneration": generation, "reason": reason, "message": message}
    found: list[Tree] = []
    for each in conditions:
        if each["type"] == type_:
            since = each["lastTransitionTime"] if each["status"] == "True" else now
            found.append({**each, "status": "True", "lastTransitionTime": since, **told})
        elif each["type"] in EXCLUSIVE and each["status"] == "True":
            # What makes the one true is why the other is false
            found.append({**each, "status": "False", "lastTransitionTime": now, **told})
        elif each["type"] in EXCLUSIVE:
            found.append({**each, "observedGeneration": generation})
        else:
            found.append(each)
    if all(each["type"] != type_ for each in found):
        found.append({"type": type_, "status": "True", "lastTransitionTime": now, **told})
    return found


def scaler_status(owner: DsView, role: str, scaler: Tree, owned: Sequence[Tree], now: str) -> Tree:
    """Return the new status of a scaler: what its role has, and who its leaders are."""
    generation = scaler["metadata"].get("generation", 0)
    before = scaler.get("status") or {}
    since = next(
        (each["lastTransitionTime"] for each in before.get("conditions") or () if each["type"] == names.SCALER_READY and each["status"] == "True"),
        now,
    )
    ready = {
        "type": names.SCALER_READY,
        "status": "True",
        "observedGeneration": generation,
        "lastTransitionTime": since,
        "reason": "Bound",
        "message": "Scaler bound to a live DisaggregatedSet role",
    }
    others = [each for each in before.get("conditions") or () if each["type"] != names.SCALER_READY]
    status: Tree = {
        "selector": f"{names.DS_NAME}={owner.name},{names.DS_ROLE}={role},{names.WORKER_INDEX}=0",
        "observedGeneration": generation,
        "conditions": [*others, ready],
    }
    replicas = _count(owner, role, owned)["replicas"]
    return {"replicas": replicas, **status} if replicas else status
