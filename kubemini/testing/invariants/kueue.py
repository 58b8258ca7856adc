"""What Kueue promises, commit by commit and at rest: quota is never overdrawn, admission is all or nothing, and evicted jobs give their quota back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kubemini.api.kueue.assignments import decode
from kubemini.api.resources import CLUSTER_QUEUES, COHORTS, JOB_SETS, JOBS, NODES, PODS, WORKLOADS
from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.api.wellknown.kubernetes import HOSTNAME
from kubemini.machinery.quantity import nano
from kubemini.store import Change
from kubemini.testing.invariants.base import Invariant, View, tree_of

Found = Iterator[str]
FlavorResource = tuple[str, str]


def kueue_invariants() -> list[Invariant]:
    """Return all invariants of Kueue, fresh: they keep state."""
    return [Quota(), Reservation(), Monotone(), Gates(), Hosts(), Settled()]


# ----------------------------------------------------------------------------------------------- reading


def condition(obj: Tree, type_: str) -> str:
    """Return the status of a condition, or ""."""
    for each in (obj.get("status") or {}).get("conditions") or ():
        if each["type"] == type_:
            found: str = each["status"]
            return found
    return ""


def holds(workload: Tree) -> bool:
    """Tell whether a Workload counts against quota."""
    return (
        condition(workload, names.QUOTA_RESERVED) == "True"
        and condition(workload, names.FINISHED) != "True"
        and workload["spec"].get("active") is not False
    )


def usage(workload: Tree) -> dict[FlavorResource, int]:
    """Return what a Workload uses, in billionths, without its reclaimable pods."""
    status = workload.get("status") or {}
    done = {each["name"]: each["count"] for each in status.get("reclaimablePods") or ()}
    left = {each["name"]: each["count"] - done.get(each["name"], 0) for each in workload["spec"]["podSets"]}
    total: dict[FlavorResource, int] = {}
    for each in (status.get("admission") or {}).get("podSetAssignments") or ():
        count = each.get("count", 0)
        for resource, text in (each.get("resourceUsage") or {}).items():
            flavor = (each.get("flavors") or {}).get(resource)
            if flavor is not None:
                value = nano(text) // count * max(0, min(count, left[each["name"]])) if count else nano(text)
                total[flavor, resource] = total.get((flavor, resource), 0) + value
    return total


def nominal(spec: Mapping[str, object]) -> dict[FlavorResource, int]:
    """Return the nominal quotas of a spec, in billionths."""
    groups: list[Tree] = spec.get("resourceGroups") or []  # type: ignore[assignment]
    return {
        (flavor["name"], resource["name"]): nano(resource["nominalQuota"])
        for group in groups
        for flavor in group.get("flavors") or ()
        for resource in flavor.get("resources") or ()
    }


def key(obj: Tree) -> str:
    """Return ``namespace/name``."""
    meta = obj["metadata"]
    return f"{meta['namespace']}/{meta['name']}"


# ----------------------------------------------------------------------------------------------- commit by commit


class Quota:
    """No reservation takes the usage of a tree of ClusterQueues and cohorts beyond its quota.

    Quota that was there before counts too: a reservation may have been decided before a quota was lowered.
    """

    name = "kueue-quota"

    def __init__(self) -> None:
        self._best: dict[str, dict[FlavorResource, int]] = {}

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Look at reservations as they are made."""
        new, old = tree_of(change.new), tree_of(change.old)
        if new is not None and table in (CLUSTER_QUEUES.storage, COHORTS.storage):
            best = self._best.setdefault(f"{table}/{new['metadata']['name']}", {})
            for fr, value in nominal(new.get("spec") or {}).items():
                best[fr] = max(best.get(fr, 0), value)
            return ()
        if table != WORKLOADS.storage or new is None or not holds(new) or (old is not None and holds(old)):
            return ()
        return list(self._overdrawn(new, view))

    def at_rest(self, view: View) -> Iterable[str]:
        """Nothing beyond the commits."""
        return ()

    def _overdrawn(self, workload: Tree, view: View) -> Found:
        queue = workload["status"]["admission"]["clusterQueue"]
        queues = {each["metadata"]["name"]: each for each in view.list(CLUSTER_QUEUES)}
        if queue not in queues:
            return
        parents = {each["metadata"]["name"]: (each.get("spec") or {}).get("parentName", "") for each in view.list(COHORTS)}
        root = _root(queues[queue], parents)
        members = [name for name, tree in queues.items() if name == queue or (root and _root(tree, parents) == root)]
        cohorts = [name for name in parents if root and _climb(name, parents) == root]
        quota: dict[FlavorResource, int] = {}
        for owner in [*(f"{CLUSTER_QUEUES.storage}/{name}" for name in members), *(f"{COHORTS.storage}/{name}" for name in cohorts)]:
            for fr, value in self._best.get(owner, {}).items():
                quota[fr] = quota.get(fr, 0) + value
        everyone = [each for each in view.list(WORKLOADS) if holds(each) and each["status"]["admission"]["clusterQueue"] in members]
        replaced = {(each["metadata"].get("annotations") or {}).get(names.WORKLOAD_SLICE_REPLACEMENT_FOR) for each in everyone}
        used: dict[FlavorResource, int] = {}
        for each in everyone:
            if key(each) not in replaced:
                for fr, value in usage(each).items():
                    used[fr] = used.get(fr, 0) + value
        for fr, value in usage(workload).items():
            if value and used.get(fr, 0) > quota.get(fr, 0):
                yield f"{key(workload)} takes {fr[1]} of {fr[0]} in {queue} to {used[fr]}n of {quota.get(fr, 0)}n"


def _climb(cohort: str, parents: Mapping[str, str]) -> str:
    seen: list[str] = []
    while parents.get(cohort) and cohort not in seen:
        seen.append(cohort)
        cohort = parents[cohort]
    return cohort


def _root(queue: Tree, parents: Mapping[str, str]) -> str:
    cohort = queue["spec"].get("cohortName", "")
    return _climb(cohort, parents) if cohort else ""


class Reservation:
    """QuotaReserved and the admission go together, Admitted needs both and all checks, and an admission never turns into another."""

    name = "kueue-reservation"

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Look at Workloads."""
        new, old = tree_of(change.new), tree_of(change.old)
        return list(self._look(new, old)) if table == WORKLOADS.storage and new is not None else ()

    def at_rest(self, view: View) -> Iterable[str]:
        """Nothing beyond the commits."""
        return ()

    def _look(self, new: Tree, old: Tree | None) -> Found:
        status = new.get("status") or {}
        admission = status.get("admission")
        reserved = condition(new, names.QUOTA_RESERVED) == "True"
        if reserved != (admission is not None):
            yield f"{key(new)}: QuotaReserved is {reserved} and its admission is {'set' if admission is not None else 'not set'}"
        if reserved and admission is not None and len(admission["podSetAssignments"]) != len(new["spec"]["podSets"]):
            yield f"{key(new)}: {len(admission['podSetAssignments'])} assignments for {len(new['spec']['podSets'])} pod sets"
        if condition(new, names.ADMITTED) == "True":
            if not reserved:
                yield f"{key(new)} is admitted without quota"
            if old is None or condition(old, names.ADMITTED) != "True":
                late = [check["name"] for check in status.get("admissionChecks") or () if check["state"] != "Ready"]
                if late:
                    yield f"{key(new)} is admitted before its checks {', '.join(late)} are ready"
        if old is None:
            return
        before = (old.get("status") or {}).get("admission")
        if before is not None and admission is not None and _fixed(before) != _fixed(admission):
            yield f"{key(new)}: the admission changed from one to another"
        gained = reserved and condition(old, names.QUOTA_RESERVED) != "True"
        if gained and new["spec"].get("active") is False:
            yield f"{key(new)} is inactive and gains quota"
        if gained and condition(new, names.FINISHED) == "True":
            yield f"{key(new)} is finished and gains quota"
        if reserved and not gained and new["spec"].get("queueName") != old["spec"].get("queueName"):
            yield f"{key(new)} changes its queue while it holds quota"


def _fixed(admission: Tree) -> Tree:
    parts = ("topologyAssignment", "delayedTopologyRequest")
    return {**admission, "podSetAssignments": [{k: v for k, v in each.items() if k not in parts} for each in admission["podSetAssignments"]]}


class Monotone:
    """Finished is for good; reclaimable pods and eviction counts only grow."""

    name = "kueue-monotone"

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Look at Workloads."""
        new, old = tree_of(change.new), tree_of(change.old)
        return list(self._look(new, old)) if table == WORKLOADS.storage and new is not None and old is not None else ()

    def at_rest(self, view: View) -> Iterable[str]:
        """Nothing beyond the commits."""
        return ()

    def _look(self, new: Tree, old: Tree) -> Found:
        if new["metadata"]["uid"] != old["metadata"]["uid"]:
            return
        if condition(old, names.FINISHED) == "True" and condition(new, names.FINISHED) != "True":
            yield f"{key(new)} is not finished any more"
        if condition(old, names.QUOTA_RESERVED) == condition(new, names.QUOTA_RESERVED) == "True":
            now = {each["name"]: each["count"] for each in (new.get("status") or {}).get("reclaimablePods") or ()}
            for each in (old.get("status") or {}).get("reclaimablePods") or ():
                if now.get(each["name"], 0) < each["count"]:
                    yield f"{key(new)}: reclaimable pods of {each['name']} shrink from {each['count']} to {now.get(each['name'], 0)}"
        before, after = _evictions(old), _evictions(new)
        for cause, count in before.items():
            if after.get(cause, 0) < count:
                yield f"{key(new)}: evictions by {cause[0]} shrink from {count} to {after.get(cause, 0)}"
        fresh = condition(new, names.EVICTED) == "True" and condition(old, names.EVICTED) != "True"
        if sum(after.values()) - sum(before.values()) != (1 if fresh else 0):
            yield f"{key(new)}: evictions go from {sum(before.values())} to {sum(after.values())} where it was evicted {1 if fresh else 0} times"


def _evictions(workload: Tree) -> dict[tuple[str, str], int]:
    stats = (workload.get("status") or {}).get("schedulingStats") or {}
    return {(each["reason"], each.get("underlyingCause", "")): each["count"] for each in stats.get("evictions") or ()}


class Gates:
    """A pod that waits for admission or for its place is never bound."""

    name = "kueue-gates"

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Look at pods."""
        new = tree_of(change.new)
        if table != PODS.storage or new is None or not new["spec"].get("nodeName"):
            return ()
        gates = [each["name"] for each in new["spec"].get("schedulingGates") or () if each["name"].startswith("kueue.x-k8s.io/")]
        return [f"{key(new)} is bound to {new['spec']['nodeName']} behind the gates {', '.join(gates)}"] if gates else ()

    def at_rest(self, view: View) -> Iterable[str]:
        """Nothing beyond the commits."""
        return ()


class Hosts:
    """Places given on hosts never add up to more than a host has, at the moment of an admission."""

    name = "kueue-hosts"

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Look at reservations as they are made."""
        new, old = tree_of(change.new), tree_of(change.old)
        if table != WORKLOADS.storage or new is None or not holds(new) or (old is not None and holds(old)):
            return ()
        mine = placed_pods(new)
        if not mine:
            return ()
        return list(self._look(new, mine, view))

    def at_rest(self, view: View) -> Iterable[str]:
        """Nothing beyond the commits."""
        return ()

    def _look(self, workload: Tree, mine: Mapping[str, int], view: View) -> Found:
        totals: dict[str, int] = {}
        for each in view.list(WORKLOADS):
            if holds(each):
                for host, value in placed_pods(each).items():
                    totals[host] = totals.get(host, 0) + value
        for node in view.list(NODES):
            host = (node["metadata"].get("labels") or {}).get(HOSTNAME, node["metadata"]["name"])
            room = nano(((node.get("status") or {}).get("allocatable") or {}).get("cpu", "0"))
            if host in mine and totals.get(host, 0) > room:
                yield f"{key(workload)} takes the cpu of {host} to {totals[host]}n of {room}n"


def placed_pods(workload: Tree) -> dict[str, int]:
    """Return the cpu, in billionths, that a Workload's places take on each host."""
    specs = {each["name"]: each["template"]["spec"] for each in workload["spec"]["podSets"]}
    found: dict[str, int] = {}
    for each in ((workload.get("status") or {}).get("admission") or {}).get("podSetAssignments") or ():
        placed = each.get("topologyAssignment")
        if placed is None or placed["levels"][-1] != HOSTNAME:
            continue
        cpu = sum(nano(((container.get("resources") or {}).get("requests") or {}).get("cpu", "0")) for container in specs[each["name"]]["containers"])
        for domain in decode(placed):
            found[domain.values[-1]] = found.get(domain.values[-1], 0) + cpu * domain.pods
    return found


# ----------------------------------------------------------------------------------------------- at rest


class Settled:
    """Once nothing moves: a queued job runs only admitted, evicted Workloads of stopped jobs hold nothing, and no finished or orphaned Workload is held back."""

    name = "kueue-settled"

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Nothing before the end."""
        return ()

    def at_rest(self, view: View) -> Iterable[str]:
        """Look at jobs and their Workloads."""
        return list(self._look(view))

    def _look(self, view: View) -> Found:
        by_owner: dict[str, list[Tree]] = {}
        for workload in view.list(WORKLOADS):
            for reference in workload["metadata"].get("ownerReferences") or ():
                by_owner.setdefault(reference["uid"], []).append(workload)
            if condition(workload, names.FINISHED) == "True" and "deletionTimestamp" in workload["metadata"]:
                yield f"Workload {key(workload)} is finished and deleted, and still there"
        for resource in (JOBS, JOB_SETS):
            for job in view.list(resource):
                if not (job["metadata"].get("labels") or {}).get(names.QUEUE_NAME):
                    continue
                live = [each for each in by_owner.get(job["metadata"]["uid"], ()) if condition(each, names.FINISHED) != "True"]
                yield from self._job(resource.kind, job, live)

    def _job(self, kind: str, job: Tree, live: list[Tree]) -> Found:
        ended = any(condition(job, type_) == "True" for type_ in ("Complete", "Failed", "Completed"))
        elastic = (job["metadata"].get("annotations") or {}).get(names.ELASTIC_JOB) == "true"
        if not elastic and len(live) > 1:
            yield f"{kind} {key(job)} has {len(live)} unfinished Workloads"
        if ended and live:
            yield f"{kind} {key(job)} has ended, and Workload {key(live[0])} has not"
        if not ended and not job["spec"].get("suspend") and not any(condition(each, names.ADMITTED) == "True" for each in live):
            yield f"{kind} {key(job)} runs without being admitted"
        if not ended and job["spec"].get("suspend") and any(condition(each, names.ADMITTED) == "True" for each in live):
            yield f"{kind} {key(job)} is admitted and does not run"
        for workload in live:
            if condition(workload, names.EVICTED) == "True" and condition(workload, names.QUOTA_RESERVED) == "True":
                yield f"Workload {key(workload)} was evicted and holds its quota"
