"""What scheduling knows of one Workload: a frozen reading of its object, made once per revision that matters."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha1
from typing import Any

from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.controllers.kueue import conditions
from kubemini.controllers.kueue.amounts import Usage, add_to
from kubemini.controllers.kueue.requests import PodSetRequest, usage_of
from kubemini.machinery.memo import by_identity
from kubemini.runtime.env import from_stamp
from kubemini.runtime.keys import key_of

NAME_LIMIT, HASH_LENGTH = 253, 5


def workload_name(kind: str, group: str, owner: str, uid: str, extra: str = "") -> str:
    """Return the name of the Workload of a job.

    >>> workload_name("Job", "batch", "a", "u")
    'job-a-3a4f6'
    """
    text = "\n".join([kind, group, owner, uid, *([extra] if extra else [])])
    prefix = f"{kind.lower()}-{owner}"[: NAME_LIMIT - HASH_LENGTH - 1]
    return f"{prefix}-{sha1(text.encode(), usedforsecurity=False).hexdigest()[:HASH_LENGTH]}"


def reclaimable_pods(workload: Tree) -> dict[str, int]:
    """Return how many pods of each pod set are done."""
    return {each["name"]: each["count"] for each in (workload.get("status") or {}).get("reclaimablePods") or ()}


def assignments(workload: Tree) -> Sequence[Tree]:
    """Return the admitted pod sets, or nothing."""
    found: Sequence[Tree] = ((workload.get("status") or {}).get("admission") or {}).get("podSetAssignments") or ()
    return found


def pod_sets_of(workload: Tree) -> list[Tree]:
    """Return what a Workload asks for; nothing where its spec is hollow, as one may be that somebody wrote by hand."""
    found: list[Tree] = workload["spec"].get("podSets") or []
    return found


def cluster_queue(workload: Tree) -> str:
    """Return the ClusterQueue that holds quota for a Workload, or ""."""
    admission = (workload.get("status") or {}).get("admission")
    return admission["clusterQueue"] if admission else ""


def reserved_usage(workload: Tree) -> Usage:
    """Return what a Workload with quota uses now."""
    usage: Usage = {}
    reclaimable = reclaimable_pods(workload)
    # A Workload that is admitted with some pods done already is given less from the start: what is left is counted from its spec
    left: dict[str, int] = {each["name"]: each["count"] - reclaimable.get(each["name"], 0) for each in workload["spec"]["podSets"]}
    for assignment in assignments(workload):
        for fr, value in usage_of(assignment, left[assignment["name"]]).items():
            usage[fr] = usage.get(fr, 0) + value
    return usage


def queue_timestamp(workload: Tree, *, by_eviction: bool = True) -> float:
    """Return since when a Workload counts as waiting, in Unix seconds: its creation, or its eviction by a timeout or a check."""
    evicted = conditions.find(workload, names.EVICTED)
    if evicted is not None and evicted["status"] == "True":
        reason = evicted["reason"]
        if reason == names.EVICTED_BY_ADMISSION_CHECK or (reason == names.EVICTED_BY_PODS_READY_TIMEOUT and by_eviction):
            return from_stamp(evicted["lastTransitionTime"])
    return from_stamp(workload["metadata"]["creationTimestamp"])


def gated(workload: Tree) -> str:
    """Return who holds admission back, or ""."""
    found: str = (workload["metadata"].get("annotations") or {}).get(names.ADMISSION_GATED_BY, "")
    return found


def backing_off(workload: Tree, now: float) -> bool:
    """Tell whether a Workload may not be queued yet, or not before something happens to it."""
    requeued = conditions.find(workload, names.REQUEUED)
    if requeued is not None and requeued["status"] == "False":
        return True
    at = ((workload.get("status") or {}).get("requeueState") or {}).get("requeueAt")
    return at is not None and from_stamp(at) > now


def on_hold(workload: Tree) -> bool:
    """Tell whether a Workload has been put aside on purpose."""
    condition = conditions.find(workload, names.QUOTA_RESERVED)
    return condition is not None and condition["status"] == "False" and condition["reason"] == names.ON_HOLD


def admissible(workload: Tree) -> bool:
    """Tell whether a Workload may wait in a queue at all."""
    return (
        conditions.active(workload)
        and not conditions.finished(workload)
        and not conditions.reserved(workload)
        and not gated(workload)
        and not on_hold(workload)
        and not conditions.is_true(workload, names.WAITING_FOR_REPLACEMENT_PODS)
        and "deletionTimestamp" not in workload["metadata"]
    )


@by_identity()
def shape(pod_sets: Sequence[Tree]) -> str:
    """Return a hash of what decides whether pod sets fit: counts, requests, placement."""
    parts = []
    for pod_set in pod_sets:
        spec = pod_set["template"]["spec"]
        chosen = {key: spec[key] for key in ("nodeSelector", "affinity", "tolerations", "overhead", "resources", "runtimeClassName") if spec.get(key)}
        chosen["r"] = [[c.get("resources"), c.get("restartPolicy")] for field_ in ("initContainers", "containers") for c in spec.get(field_) or ()]
        annotations = {
            k: v for k, v in ((pod_set["template"].get("metadata") or {}).get("annotations") or {}).items() if k.startswith("kueue.x-k8s.io/")
        }
        parts.append([pod_set["name"], pod_set["count"], pod_set.get("minCount"), pod_set.get("topologyRequest"), annotations, chosen])
    return sha1(json.dumps(parts, sort_keys=True).encode(), usedforsecurity=False).hexdigest()


@dataclass(slots=True)
class Flavored:
    """Where the last attempt of a Workload stopped looking, per pod set and resource; -1 = it saw them all."""

    tried: list[dict[str, int]]
    generation: int

    def untried(self) -> bool:
        """Tell whether some pod set has flavors left."""
        return any(index != -1 for each in self.tried for index in each.values())


@dataclass(slots=True, eq=False)
class Info:
    """One Workload in a queue or a cache."""

    tree: Tree
    key: str
    uid: str
    priority: int
    timestamp: float
    requests: list[PodSetRequest] = field(default_factory=list)
    pod_sets: Sequence[Tree] = ()
    """As adjusted by LimitRanges and RuntimeClasses."""
    queue: str = ""
    """The ClusterQueue it waits in or holds quota of."""
    usage: Usage = field(default_factory=dict)
    """What it holds."""
    reserved_at: float = 0.0
    admitted: bool = False
    evicted: bool = False
    last: Flavored | None = None
    replaces: str = ""
    """Key of the slice that this one replaces."""
    places: list[Any] | None = None
    """Where in the topology it is (see `topology.places.Use`); None = as its object says."""

    @property
    def local_queue(self) -> str:
        """Key of the LocalQueue."""
        return f"{self.tree['metadata']['namespace']}/{self.tree['spec'].get('queueName', '')}"

    @property
    def order(self) -> tuple[int, float, str]:
        """Where it stands in line: higher priority, then earlier, then by uid."""
        return (-self.priority, self.timestamp, self.uid)

    def placed(self) -> Mapping[str, int]:
        """Return the resources that it holds, over all flavors."""
        total: dict[str, int] = {}
        for (_, resource), value in self.usage.items():
            add_to(total, {resource: value})
        return total


def priority_of(workload: Tree, *, boost: bool = False) -> int:
    """Return the effective priority."""
    value: int = workload["spec"].get("priority") or 0
    if boost:
        text = (workload["metadata"].get("annotations") or {}).get(names.PRIORITY_BOOST, "0")
        value += int(text) if text.lstrip("-").isdigit() else 0
    return value


def holding(workload: Tree, *, boost: bool = False) -> Info:
    """Return the reading of a Workload that holds quota."""
    condition = conditions.find(workload, names.QUOTA_RESERVED)
    meta = workload["metadata"]
    return Info(
        workload,
        key_of(workload),
        meta["uid"],
        priority_of(workload, boost=boost),
        queue_timestamp(workload),
        queue=cluster_queue(workload),
        pod_sets=workload["spec"]["podSets"],
        usage=reserved_usage(workload),
        reserved_at=from_stamp(condition["lastTransitionTime"]) if condition is not None else 0.0,
        admitted=conditions.admitted(workload),
        evicted=conditions.evicted(workload),
    )


def shrunk_pod_sets(workload: Tree) -> frozenset[str]:
    """Return the pod sets that have fewer pods now than were admitted."""
    sizes = {each["name"]: each.get("count", 0) for each in pod_sets_of(workload)}
    return frozenset(each["name"] for each in assignments(workload) if (each.get("count") or 0) > sizes.get(each["name"], 0))
