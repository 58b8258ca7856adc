"""What a gang is promised across controllers: admitted as a whole or not at all, within quota, within what nodes hold, restarted as a whole, nothing left behind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kubemini.api.resources import CLUSTER_QUEUES, JOB_SETS, JOBS, NODES, PODS, SERVICES, WORKLOADS
from kubemini.api.trees import Tree, get_in
from kubemini.controllers.scheduler.resources import amounts, requests_of
from kubemini.machinery.quantity import nano
from kubemini.store import Change
from kubemini.testing.invariants.base import Invariant, View, tree_of
from kubemini.testing.invariants.kueue import nominal

QUEUE = "kueue.x-k8s.io/queue-name"
ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"
SET = "jobset.sigs.k8s.io/jobset-name"
TERMINAL = ("Succeeded", "Failed")
MILLI = 10**6
"""Billionths in a thousandth."""
JUST_NOW = 100
"""Commits by which a scheduler's caches may be behind."""


def gang_invariants() -> list[Invariant]:
    """Return all invariants of gangs, fresh: they keep state."""
    return [NodeCapacity(), QuotaHolds(), AllOrNothing(), OneAttempt(), NothingLeft()]


class NodeCapacity:
    """The requests of the pods on a node never exceed what it can hold."""

    name = "node capacity"

    def __init__(self) -> None:
        self._used: dict[str, dict[str, int]] = {}
        self._placed: dict[str, tuple[str, Tree]] = {}

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Follow pods on and off nodes."""
        if table != "pods":
            return
        new, old = tree_of(change.new), tree_of(change.old)
        uid = (new or old or {})["metadata"]["uid"]
        node = new["spec"].get("nodeName") if new is not None and (new.get("status") or {}).get("phase") not in TERMINAL else None
        before = self._placed.get(uid)
        if before is not None and before[0] != node:
            self._add(before[0], before[1], -1)
            del self._placed[uid]
            before = None
        if node and before is None and new is not None:
            self._placed[uid] = (node, new)
            self._add(node, new, 1)
            yield from self._over(node, view)

    def _add(self, node: str, pod: Tree, sign: int) -> None:
        used = self._used.setdefault(node, {})
        for name, value in requests_of(pod["spec"]).items:
            used[name] = used.get(name, 0) + sign * value

    def _over(self, name: str, view: View) -> Iterator[str]:
        node = view.get(NODES, "", name)
        if node is None:
            return
        allocatable = amounts((node.get("status") or {}).get("allocatable"))
        for resource, used in self._used[name].items():
            if used > allocatable.get(resource, 0):
                yield f"node {name} holds {used} of {allocatable.get(resource, 0)} {resource}"

    def at_rest(self, view: View) -> Iterable[str]:
        """Nothing more at rest."""
        return ()


def has(obj: Tree, type_: str) -> bool:
    """Tell whether a condition is True."""
    return any(each["type"] == type_ and each["status"] == "True" for each in (obj.get("status") or {}).get("conditions") or ())


class QuotaHolds:
    """A ClusterQueue without a cohort never reserves more than its nominal quota by a new reservation.

    Shrinking a quota does not take back at once, and a reservation may have been decided just before: see `JUST_NOW`.
    """

    name = "quota"

    def __init__(self) -> None:
        self._were: dict[tuple[str, str, str], tuple[int, int]] = {}
        """(queue, flavor, resource) → a nominal quota that was lowered, and by which revision."""

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Look at new reservations, and at quotas that are lowered."""
        new, old = tree_of(change.new), tree_of(change.old)
        if new is None:
            return
        if table == CLUSTER_QUEUES.storage and old is not None and old["spec"] is not new["spec"]:
            now = nominal(new["spec"])
            for mark, before in nominal(old["spec"]).items():
                if before > now.get(mark, 0):
                    self._were[new["metadata"]["name"], *mark] = before, change.revision
        if table != WORKLOADS.storage:
            return
        if not has(new, "QuotaReserved") or (old is not None and has(old, "QuotaReserved")):
            return
        queue = view.get(CLUSTER_QUEUES, "", get_in(new, "status", "admission", "clusterQueue", default=""))
        if queue is None or queue["spec"].get("cohortName"):
            return
        name = queue["metadata"]["name"]
        used: dict[tuple[str, str], int] = {}
        for workload in view.list(WORKLOADS):
            if has(workload, "QuotaReserved") and not has(workload, "Finished") and get_in(workload, "status", "admission", "clusterQueue") == name:
                done = {each["name"]: each["count"] for each in get_in(workload, "status", "reclaimablePods", default=[])}
                for pod_set in get_in(workload, "status", "admission", "podSetAssignments", default=[]):
                    # Pods that have ended give their share back before the rest does
                    count = pod_set.get("count") or 1
                    share = max(count - done.get(pod_set["name"], 0), 0)
                    for resource, flavor in (pod_set.get("flavors") or {}).items():
                        mark = (flavor, resource)
                        used[mark] = used.get(mark, 0) + nano((pod_set.get("resourceUsage") or {}).get(resource, "0")) * share // count
        for mark, quota in nominal(queue["spec"]).items():
            wanted = used.get(mark, 0)
            was, lowered = self._were.get((name, *mark), (0, 0))
            if wanted > (max(quota, was) if change.revision - lowered <= JUST_NOW else quota):
                yield f"ClusterQueue {name} reserves {wanted // MILLI}m of {quota // MILLI}m {mark[1]} in {mark[0]}"

    def at_rest(self, view: View) -> Iterable[str]:
        """Nothing more at rest."""
        return ()


class AllOrNothing:
    """A queued JobSet whose Workload is not admitted gets no pod; an admitted one holds quota for every pod of every replicated job."""

    name = "all or nothing"

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Look at new pods, and at admissions."""
        if table == "pods" and change.old is None and change.new is not None:
            yield from self._pod(change.new.obj, view)
        elif table == "workloads.kueue.x-k8s.io" and change.new is not None:
            yield from self._admission(change.new.obj)

    def _pod(self, pod: Tree, view: View) -> Iterator[str]:
        name = (pod["metadata"].get("labels") or {}).get(SET)
        js = view.get(JOB_SETS, pod["metadata"]["namespace"], name) if name else None
        if js is None or QUEUE not in (js["metadata"].get("labels") or {}):
            return
        if js["spec"].get("suspend"):
            # The Job controller may not have seen the suspension yet; the Job itself decides
            owner = next((each for each in pod["metadata"].get("ownerReferences") or () if each.get("controller")), None)
            job = view.get(JOBS, pod["metadata"]["namespace"], owner["name"]) if owner is not None else None
            if job is not None and job["spec"].get("suspend"):
                yield f"pod {pod['metadata']['name']} was created for the suspended jobset {name}"
        uid = js["metadata"]["uid"]
        owned = [
            workload
            for workload in view.list(WORKLOADS, pod["metadata"]["namespace"])
            if any(each["uid"] == uid for each in workload["metadata"].get("ownerReferences") or ())
        ]
        if not any(has(workload, "QuotaReserved") or has(workload, "Evicted") or has(workload, "Finished") for workload in owned):
            yield f"pod {pod['metadata']['name']} was created before jobset {name} was admitted"

    def _admission(self, workload: Tree) -> Iterator[str]:
        if not has(workload, "Admitted") or has(workload, "Finished"):
            return
        wanted = {each["name"]: each["count"] for each in workload["spec"].get("podSets") or ()}
        given = {each["name"]: each.get("count", 0) for each in get_in(workload, "status", "admission", "podSetAssignments", default=[])}
        if given.keys() != wanted.keys():
            yield f"workload {workload['metadata']['name']} is admitted with pod sets {sorted(given)} of {sorted(wanted)}"

    def at_rest(self, view: View) -> Iterable[str]:
        """Nothing more at rest."""
        return ()


class OneAttempt:
    """With BlockingRecreate no pod of a later attempt is created while one of an earlier attempt has not ended."""

    name = "one attempt"

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Look at new pods."""
        if table != "pods" or change.old is not None or change.new is None:
            return
        pod = change.new.obj
        labels = pod["metadata"].get("labels") or {}
        if SET not in labels or ATTEMPT not in labels:
            return
        js = view.get(JOB_SETS, pod["metadata"]["namespace"], labels[SET])
        if js is None or get_in(js, "spec", "failurePolicy", "restartStrategy") != "BlockingRecreate":
            return
        for other in view.list(PODS, pod["metadata"]["namespace"]):
            theirs = other["metadata"].get("labels") or {}
            if (
                theirs.get(SET) == labels[SET]
                and int(theirs.get(ATTEMPT, "0")) < int(labels[ATTEMPT])
                and (other.get("status") or {}).get("phase") == "Running"
            ):
                yield f"pod {pod['metadata']['name']} of attempt {labels[ATTEMPT]} while {other['metadata']['name']} of attempt {theirs[ATTEMPT]} runs"

    def at_rest(self, view: View) -> Iterable[str]:
        """Nothing more at rest."""
        return ()


class NothingLeft:
    """At rest, nothing of a JobSet outlives it."""

    name = "nothing left"

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Nothing in between."""
        return ()

    def at_rest(self, view: View) -> Iterator[str]:
        """Look for owners that are gone."""
        live = {obj["metadata"]["uid"] for resource in (JOB_SETS, JOBS) for obj in view.list(resource)}
        for resource in (JOBS, PODS, WORKLOADS, SERVICES):
            for obj in view.list(resource):
                for reference in obj["metadata"].get("ownerReferences") or ():
                    if reference["kind"] in ("JobSet", "Job") and reference["uid"] not in live:
                        yield f"{resource.kind} {obj['metadata']['name']} outlived {reference['kind']} {reference['name']}"
