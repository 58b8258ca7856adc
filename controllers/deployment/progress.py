"""The status of a Deployment: counts, and the conditions Available, Progressing and ReplicaFailure. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kubemini.api.trees import Tree
from kubemini.controllers.deployment.amounts import count, max_unavailable, replicas, reported
from kubemini.runtime.env import from_stamp

NEVER = 2**31 - 1
"""progressDeadlineSeconds that means no deadline."""
PROGRESSING, AVAILABLE, FAILURE = "Progressing", "Available", "ReplicaFailure"
NEW_AVAILABLE, TIMED_OUT, PAUSED, RESUMED = "NewReplicaSetAvailable", "ProgressDeadlineExceeded", "DeploymentPaused", "DeploymentResumed"


@dataclass(frozen=True, slots=True)
class Clock:
    """The time of one pass."""

    now: float
    stamp: str


def has_deadline(deployment: Tree) -> bool:
    """Tell whether a rollout is watched for progress."""
    return deployment["spec"].get("progressDeadlineSeconds") not in (None, NEVER)


def find(conditions: Sequence[Tree], type_: str) -> Tree | None:
    """Return a condition by type."""
    return next((each for each in conditions if each["type"] == type_), None)


def condition(type_: str, status: str, reason: str, message: str, stamp: str) -> Tree:
    """Return a condition of this moment."""
    return {"type": type_, "status": status, "lastUpdateTime": stamp, "lastTransitionTime": stamp, "reason": reason, "message": message}


def with_condition(conditions: Sequence[Tree], new: Tree) -> list[Tree]:
    """Return conditions with one set; nothing changes where its status and reason stay, and the time of transition only with the status."""
    current = find(conditions, new["type"])
    if current is not None and current["status"] == new["status"] and current.get("reason") == new["reason"]:
        return list(conditions)
    if current is not None and current["status"] == new["status"]:
        new = {**new, "lastTransitionTime": current["lastTransitionTime"]}
    return [*without(conditions, new["type"]), new]


def without(conditions: Sequence[Tree], type_: str) -> list[Tree]:
    """Return conditions without one."""
    return [each for each in conditions if each["type"] != type_]


def calculated(
    deployment: Tree, all_sets: Sequence[Tree], new_set: Tree | None, conditions: Sequence[Tree], clock: Clock, *, terminating: bool
) -> Tree:
    """Return the counts and whether the Deployment is available."""
    available = reported(all_sets, "availableReplicas")
    counts = (
        ("replicas", reported(all_sets, "replicas")),
        ("updatedReplicas", reported([new_set], "replicas") if new_set is not None else 0),
        ("readyReplicas", reported(all_sets, "readyReplicas")),
        ("availableReplicas", available),
        ("unavailableReplicas", max(count(all_sets) - available, 0)),
    )
    status: Tree = {"observedGeneration": deployment["metadata"].get("generation", 0)}
    status |= {name: value for name, value in counts if value}
    if terminating:
        status["terminatingReplicas"] = reported(all_sets, "terminatingReplicas")
    if available >= replicas(deployment) - max_unavailable(deployment):
        new = condition(AVAILABLE, "True", "MinimumReplicasAvailable", "Deployment has minimum availability.", clock.stamp)
    else:
        new = condition(AVAILABLE, "False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.", clock.stamp)
    status["conditions"] = with_condition(conditions, new)
    collisions = (deployment.get("status") or {}).get("collisionCount")
    if collisions is not None:
        status["collisionCount"] = collisions
    return status


def is_complete(deployment: Tree, status: Tree) -> bool:
    """Tell whether all pods are of the new template, and available, and no old ones are left."""
    wanted = replicas(deployment)
    counts = (status.get("updatedReplicas", 0), status.get("replicas", 0), status.get("availableReplicas", 0))
    return bool(counts == (wanted, wanted, wanted) and status.get("observedGeneration", 0) >= deployment["metadata"].get("generation", 0))


def has_progressed(before: Tree, after: Tree) -> bool:
    """Tell whether a rollout came nearer to its end."""

    def old(status: Tree) -> int:
        left: int = status.get("replicas", 0) - status.get("updatedReplicas", 0)
        return left

    more = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return bool(old(after) < old(before) or any(after.get(name, 0) > before.get(name, 0) for name in more))


def has_timed_out(deployment: Tree, conditions: Sequence[Tree], now: float) -> bool:
    """Tell whether a rollout has made no progress for too long."""
    current = find(conditions, PROGRESSING)
    if current is None or current.get("reason") == NEW_AVAILABLE:
        return False
    if current.get("reason") == TIMED_OUT:
        return True
    return bool(from_stamp(current["lastUpdateTime"]) + deployment["spec"]["progressDeadlineSeconds"] < now)


def judged(deployment: Tree, status: Tree, before: Tree, new_set: Tree | None, clock: Clock) -> list[Tree]:
    """Return the conditions with what there is to say of the rollout. `before` is the status that was read, `status` the new one."""
    conditions: list[Tree] = status["conditions"]
    if not has_deadline(deployment):
        return without(conditions, PROGRESSING)
    current = find(before.get("conditions") or (), PROGRESSING)
    done = status.get("replicas", 0) == status.get("updatedReplicas", 0) and current is not None and current.get("reason") == NEW_AVAILABLE
    if done:
        return conditions
    what = f'ReplicaSet "{new_set["metadata"]["name"]}"' if new_set is not None else f'Deployment "{deployment["metadata"]["name"]}"'
    if is_complete(deployment, status):
        return with_condition(conditions, condition(PROGRESSING, "True", NEW_AVAILABLE, f"{what} has successfully progressed.", clock.stamp))
    if has_progressed(before, status):
        new = condition(PROGRESSING, "True", "ReplicaSetUpdated", f"{what} is progressing.", clock.stamp)
        if current is not None:
            # The time of the update moves on with each step, that of the transition does not
            if current["status"] == "True":
                new = {**new, "lastTransitionTime": current["lastTransitionTime"]}
            conditions = without(conditions, PROGRESSING)
        return with_condition(conditions, new)
    if has_timed_out(deployment, conditions, clock.now):
        return with_condition(conditions, condition(PROGRESSING, "False", TIMED_OUT, f"{what} has timed out progressing.", clock.stamp))
    return conditions


def with_failures(conditions: Sequence[Tree], all_sets: Sequence[Tree], new_set: Tree | None) -> list[Tree]:
    """Return conditions with the failure of a ReplicaSet handed on: the new one's before an old one's."""
    for each in ([new_set] if new_set is not None else []) + list(all_sets):
        failure = find((each.get("status") or {}).get("conditions") or (), FAILURE)
        if failure is not None:
            stamp = failure["lastTransitionTime"]
            new = condition(FAILURE, failure["status"], failure.get("reason", ""), failure.get("message", ""), stamp)
            return with_condition(conditions, new)
    return without(conditions, FAILURE)


def next_check(deployment: Tree, status: Tree, now: float) -> float | None:
    """Return in how many seconds a rollout without news has to be looked at for its deadline."""
    current = find(status.get("conditions") or (), PROGRESSING)
    if not has_deadline(deployment) or current is None or is_complete(deployment, status):
        return None
    if current.get("reason") in (TIMED_OUT, NEW_AVAILABLE, PAUSED):
        # Its time is over, or does not run
        return None
    left: float = from_stamp(current["lastUpdateTime"]) + deployment["spec"]["progressDeadlineSeconds"] - now
    return max(left, 0.0) + 1.0
