"""What pods say about themselves to the controllers that count them, and which go first when there are too many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cmp_to_key
from math import log2

from kubemini.api.trees import Tree
from kubemini.api.wellknown import kubernetes as names
from kubemini.runtime.env import from_stamp

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
_COST_DIGITS = 11


def phase(pod: Tree) -> str:
    """Return status.phase."""
    found: str = (pod.get("status") or {}).get("phase", "")
    return found


def ended(pod: Tree) -> bool:
    """Tell whether a pod has ended for good."""
    return phase(pod) in ("Succeeded", "Failed")


def deleting(pod: Tree) -> bool:
    """Tell whether a pod is being deleted."""
    return "deletionTimestamp" in pod["metadata"]


def is_active(pod: Tree) -> bool:
    """Tell whether a pod counts as a replica: it has not ended and is not being deleted."""
    return "deletionTimestamp" not in pod["metadata"] and phase(pod) not in ("Succeeded", "Failed")


def ready_since(pod: Tree) -> float | None:
    """Return since when a pod is Ready, in Unix seconds; None when it is not. 0 when it does not say."""
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition["type"] == "Ready":
            if condition["status"] != "True":
                return None
            stamp = condition.get("lastTransitionTime")
            return from_stamp(stamp) if stamp else 0.0
    return None


def is_available(pod: Tree, min_ready: int, now: float) -> bool:
    """Tell whether a pod has been Ready for `min_ready` seconds."""
    since = ready_since(pod)
    return since is not None and (min_ready == 0 or (since > 0 and since + min_ready <= now))


def next_available(pods: Iterable[Tree], min_ready: int, now: float) -> float | None:
    """Return in how many seconds the first of the Ready pods that are not available yet will be; None when none waits."""
    if min_ready == 0:
        return None
    waits = [since + min_ready - now for pod in pods if (since := ready_since(pod)) is not None and since + min_ready > now]
    return min(waits, default=None)


def most_restarts(pod: Tree) -> tuple[int, int]:
    """Return how often the container that was restarted most often was, of the ordinary ones and of the sidecars."""
    status = pod.get("status") or {}
    ordinary = max((each.get("restartCount", 0) for each in status.get("containerStatuses") or ()), default=0)
    inits = status.get("initContainerStatuses")
    if not inits:
        return ordinary, 0
    sidecars = [each["name"] for each in pod["spec"].get("initContainers") or () if each.get("restartPolicy") == "Always"]
    return ordinary, max((each.get("restartCount", 0) for each in inits if each["name"] in sidecars), default=0)


def deletion_cost(pod: Tree) -> int:
    """Return a pod's deletion cost, 0 when it has none that can be read."""
    text = (pod["metadata"].get("annotations") or {}).get(names.POD_DELETION_COST, "0")
    digits = text[1:] if text[:1] == "-" else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > _COST_DIGITS or (len(digits) > 1 and digits[0] == "0"):
        return 0
    value = int(text)
    return value if -(2**31) <= value < 2**31 else 0


def victims(pods: Sequence[Tree], related: Sequence[Tree], count: int, now: float) -> list[Tree]:
    """Return which `count` of the pods go. `related` are the pods of the same workload: where many of them share a node, those go first."""
    if count >= len(pods):
        return list(pods)
    on_node: dict[str, int] = {}
    for pod in related:
        if is_active(pod):
            node = pod["spec"].get("nodeName", "")
            on_node[node] = on_node.get(node, 0) + 1

    def compare(left: _Rank, right: _Rank) -> int:
        return _compare(left, right, now)

    ranked = sorted((_Rank(pod, on_node.get(pod["spec"].get("nodeName", ""), 0)) for pod in pods), key=cmp_to_key(compare))
    return [each.pod for each in ranked[:count]]


class _Rank:
    __slots__ = ("cost", "created", "crowd", "plain", "pod", "ready", "restarts", "uid")

    def __init__(self, pod: Tree, crowd: int) -> None:
        self.pod = pod
        since = ready_since(pod)
        self.plain = (1 if pod["spec"].get("nodeName") else 0, _PHASES.get(phase(pod), 0), 0 if since is None else 1)
        self.cost = deletion_cost(pod)
        self.crowd = crowd
        self.ready = since
        self.restarts = most_restarts(pod)
        self.created = from_stamp(pod["metadata"]["creationTimestamp"])
        self.uid: str = pod["metadata"]["uid"]


def _compare(left: _Rank, right: _Rank, now: float) -> int:
    """Return a negative number when `left` goes before `right`: what is least of use first."""
    if left.plain != right.plain:
        return -1 if left.plain < right.plain else 1
    if left.cost != right.cost:
        return left.cost - right.cost
    if left.crowd != right.crowd:
        return right.crowd - left.crowd
    if left.ready is not None and right.ready is not None and left.ready != right.ready:
        return _by_age(left.ready, right.ready, left, right, now)
    if left.restarts != right.restarts:
        return -1 if left.restarts > right.restarts else 1
    if left.created != right.created:
        return _by_age(left.created, right.created, left, right, now)
    return 0


def _by_age(one: float, other: float, left: _Rank, right: _Rank, now: float) -> int:
    """Compare ages by their order of magnitude: the young go first, among about equals chance (the uid) decides."""
    if one == 0 or other == 0:
        return -1 if one == 0 else 1
    difference = _magnitude(now - one) - _magnitude(now - other)
    if difference:
        return difference
    return (left.uid > right.uid) - (left.uid < right.uid)


def _magnitude(age: float) -> int:
    return int(log2(age * 1e9)) if age > 0 else -1
