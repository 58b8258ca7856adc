"""The arithmetic of a rollout: how many pods more and how many fewer than wished may there be, and how a change is shared out. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor

from kubemini.api.trees import Tree
from kubemini.api.wellknown import kubernetes as names


def scaled(value: int | str | None, total: int, *, up: bool) -> int:
    """Return an IntOrString as a number: a percentage of `total`, rounded up or down; None is 0.

    >>> scaled("25%", 10, up=True), scaled("25%", 10, up=False), scaled(3, 10, up=True)
    (3, 2, 3)
    """
    if value is None:
        return 0
    if isinstance(value, str):
        share = int(value.rstrip("%")) * total / 100
        return ceil(share) if up else floor(share)
    return value


def replicas(obj: Tree) -> int:
    """Return spec.replicas of a Deployment or ReplicaSet."""
    found: int = obj["spec"].get("replicas", 1)
    return found


def is_rolling(deployment: Tree) -> bool:
    """Tell whether pods are replaced step by step."""
    return bool((deployment["spec"].get("strategy") or {}).get("type", "RollingUpdate") == "RollingUpdate")


def fenceposts(deployment: Tree) -> tuple[int, int]:
    """Return (maxSurge, maxUnavailable) of a rolling Deployment in pods: surge rounds up, unavailability down, and both are never 0."""
    rolling = (deployment["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    total = replicas(deployment)
    surge = scaled(rolling.get("maxSurge"), total, up=True)
    unavailable = scaled(rolling.get("maxUnavailable"), total, up=False)
    return surge, (unavailable if surge or unavailable else 1)


def max_surge(deployment: Tree) -> int:
    """Return how many pods more than wished there may be."""
    return fenceposts(deployment)[0] if is_rolling(deployment) else 0


def max_unavailable(deployment: Tree) -> int:
    """Return how many pods may be unavailable."""
    if not is_rolling(deployment) or replicas(deployment) == 0:
        return 0
    return min(fenceposts(deployment)[1], replicas(deployment))


def count(sets: Sequence[Tree]) -> int:
    """Return how many pods ReplicaSets are told to have."""
    return sum(replicas(each) for each in sets)


def reported(sets: Sequence[Tree], name: str) -> int:
    """Return the sum of a count in the status of ReplicaSets."""
    return sum((each.get("status") or {}).get(name, 0) for each in sets)


def new_replicas(deployment: Tree, all_sets: Sequence[Tree], new_set: int) -> int:
    """Return how many pods the new ReplicaSet should have now, which has `new_set` of all."""
    wanted = replicas(deployment)
    if not is_rolling(deployment):
        return wanted
    rolling = (deployment["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    room = wanted + scaled(rolling.get("maxSurge"), wanted, up=True) - count(all_sets)
    return new_set if room <= 0 else new_set + min(room, wanted - new_set)


def number_annotation(obj: Tree, name: str) -> int | None:
    """Return an annotation that is a number, None where it is absent or unreadable."""
    text = (obj["metadata"].get("annotations") or {}).get(name)
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None


def is_saturated(deployment: Tree, new_set: Tree | None) -> bool:
    """Tell whether the new ReplicaSet has all pods, and all are available."""
    if new_set is None or number_annotation(new_set, names.DESIRED_REPLICAS) is None:
        return False
    wanted = replicas(deployment)
    available = (new_set.get("status") or {}).get("availableReplicas", 0)
    return replicas(new_set) == wanted and number_annotation(new_set, names.DESIRED_REPLICAS) == wanted and available == wanted


def proportions(deployment: Tree, active: Sequence[Tree]) -> list[tuple[Tree, int]]:
    """Return the new sizes of active ReplicaSets when a Deployment is scaled in the middle of a rollout: each in proportion to what it has, the largest takes the rest."""
    wanted = replicas(deployment)
    allowed = wanted + max_surge(deployment) if wanted > 0 else 0
    change = allowed - count(active)
    # Growing favours the new, shrinking takes from the old, among sets of one size
    ordered = sorted(active, key=lambda each: each["metadata"]["name"])
    ordered.sort(key=lambda each: each["metadata"]["creationTimestamp"], reverse=change > 0)
    if change:
        ordered.sort(key=replicas, reverse=True)
    sizes: list[int] = []
    shared = 0
    for each in ordered:
        share = _share(each, deployment, change, shared)
        shared += share
        sizes.append(replicas(each) + share)
    if change and sizes:
        sizes[0] = max(sizes[0] + change - shared, 0)
    return list(zip(ordered, sizes, strict=True))


def _share(each: Tree, deployment: Tree, change: int, shared: int) -> int:
    if replicas(each) == 0 or change in (0, shared):
        return 0
    fraction, left = _fraction(each, deployment), change - shared
    return min(fraction, left) if change > 0 else max(fraction, left)


def _fraction(each: Tree, deployment: Tree) -> int:
    if replicas(deployment) == 0:
        return -replicas(each)
    before = number_annotation(each, names.MAX_REPLICAS)
    if not before:
        # Not annotated: the status of the Deployment tells what there was
        before = (deployment.get("status") or {}).get("replicas", 0)
        if not before:
            return 0
    size = replicas(each) * (replicas(deployment) + max_surge(deployment)) / before
    return _round(size) - replicas(each)


def _round(value: float) -> int:
    """Round half away from zero, as upstream does."""
    return int(value - 0.5) if value < 0 else int(value + 0.5)
