"""Who manages a job: its topmost owner that is queued. Jobs below it are started and stopped through it, never queued themselves."""

from __future__ import annotations

from collections.abc import Callable

from kubemini.api.resources import DEPLOYMENTS, JOB_SETS, JOBS, LEADER_WORKER_SETS, PODS, REPLICA_SETS, STATEFUL_SETS, Resource
from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.runtime.keys import controller_of

KNOWN: dict[tuple[str, str], Resource] = {
    (each.api_version, each.kind): each for each in (JOBS, JOB_SETS, PODS, STATEFUL_SETS, DEPLOYMENTS, REPLICA_SETS, LEADER_WORKER_SETS)
}
"""Kinds of owners that Kueue knows, by (apiVersion, kind)."""
MANAGED_KINDS = ("Job", "JobSet", "Pod", "StatefulSet", "Deployment", "LeaderWorkerSet")
DEEPEST = 10

Lookup = Callable[[Resource, str, str], Tree | None]
"""Finds an object by (resource, namespace, name)."""


class TooDeep(Exception):
    """Owners go up further than Kueue follows."""


def queue_name(obj: Tree) -> str:
    """Return the LocalQueue that an object names, or ""."""
    found: str = (obj["metadata"].get("labels") or {}).get(names.QUEUE_NAME, "")
    return found


def ancestor(obj: Tree, lookup: Lookup, *, any_queue: bool = False) -> Tree | None:
    """Return the topmost owner with a queue name (any owner that is known, with `any_queue`), or None. Raise `TooDeep`."""
    found: Tree | None = None
    here = obj
    for _ in range(DEEPEST + 1):
        reference = controller_of(here)
        if reference is None:
            return found
        resource = KNOWN.get((reference["apiVersion"], reference["kind"]))
        if resource is None:
            return found
        owner = lookup(resource, obj["metadata"].get("namespace", ""), reference["name"])
        if owner is None or owner["metadata"]["uid"] != reference["uid"]:
            return found
        if queue_name(owner) or (any_queue and resource.kind in MANAGED_KINDS):
            found = owner
        here = owner
    raise TooDeep


def owned_by_known(obj: Tree) -> bool:
    """Tell whether the controlling owner is of a kind that Kueue knows."""
    reference = controller_of(obj)
    return reference is not None and (reference["apiVersion"], reference["kind"]) in KNOWN
