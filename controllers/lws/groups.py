"""Groups as they are: a leader pod and the StatefulSet of its workers, ready and updated or not. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kubemini.api.trees import Tree
from kubemini.api.wellknown import lws as names
from kubemini.controllers.lws.revisions import key_of
from kubemini.machinery.errors import InternalError
from kubemini.machinery.memo import by_identity


@dataclass(slots=True)
class Group:
    """One group, never changed (but not frozen: passes make thousands). `ready`: leader and workers are ready. `updated`: both are of the wanted revision."""

    index: int
    ready: bool
    updated: bool


MISSING = Group(-1, ready=False, updated=False)


def pod_ready(pod: Tree) -> bool:
    """Tell whether condition Ready is True."""
    return any(each["type"] == "Ready" and each["status"] == "True" for each in (pod.get("status") or {}).get("conditions") or ())


def running_and_ready(pod: Tree) -> bool:
    """Tell whether a pod runs and is ready."""
    return (pod.get("status") or {}).get("phase") == "Running" and pod_ready(pod)


def workers_ready(workers: Tree) -> bool:
    """Tell whether all of a group's workers are available and of one revision."""
    status = workers.get("status") or {}
    return bool(
        workers["spec"].get("replicas", 1) == status.get("availableReplicas", 0) and status.get("currentRevision") == status.get("updateRevision")
    )


def index_of(pod: Tree) -> int:
    """Return the index of a pod's group. Raise `InternalError` where its label is none."""
    text = (pod["metadata"].get("labels") or {}).get(names.GROUP_INDEX, "")
    try:
        return int(text)
    except ValueError:
        raise InternalError(f"pod {pod['metadata']['name']} has no group index: {text!r}") from None


def groups(leaders: Sequence[Tree], workers: Mapping[str, Tree], key: str, *, alone: bool) -> list[Group]:
    """Return the groups that exist: those whose leader does, and whose workers' StatefulSet does unless leaders are `alone` (size 1).

    `workers` is by name, which is the leader's.
    """
    found = []
    for leader in leaders:
        index, ready, its = _leading(leader)
        updated = its == key
        if not alone:
            own = workers.get(leader["metadata"]["name"])
            if own is None:
                continue
            following, its = _following(own)
            ready, updated = ready and following, updated and its == key
        found.append(Group(index, ready, updated))
    return found


@by_identity(16384)
def _leading(leader: Tree) -> tuple[int, bool, str]:
    """Return (index, ready, revision key) of a leader: passes ask for all of them, and few have changed."""
    return index_of(leader), running_and_ready(leader), key_of(leader)


@by_identity(16384)
def _following(workers: Tree) -> tuple[bool, str]:
    return workers_ready(workers), key_of(workers)


def by_index(found: Sequence[Group], count: int) -> list[Group]:
    """Return the groups of the indexes below `count`; one that is not there is neither ready nor updated."""
    states = [MISSING] * count
    for group in found:
        if 0 <= group.index < count:
            states[group.index] = group
    return states
