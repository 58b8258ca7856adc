"""What the end of an admission looks like on a Workload: PodsReady while it lasts, the quota released after an eviction."""

from __future__ import annotations

from collections.abc import Mapping

from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.controllers.kueue import conditions, reservation
from kubemini.controllers.kueue.conditions import Draft
from kubemini.controllers.kueue.hub import Hub
from kubemini.controllers.kueue.workloads import pod_sets_of, reclaimable_pods, shrunk_pod_sets
from kubemini.controllers.kueue.writing import write_status
from kubemini.runtime.controller import Context
from kubemini.runtime.env import from_stamp

REQUEUED_REASONS = (names.PREEMPTED, names.EVICTED_BY_NODE_FAILURES)


def pods_ready_condition(workload: Tree, *, ready: bool) -> tuple[bool, str, str]:
    """Return (status, reason, message) of PodsReady."""
    if not conditions.admitted(workload):
        return False, names.WAIT_FOR_START, "Not all pods are ready or succeeded"
    old = conditions.find(workload, names.PODS_READY)
    if ready:
        again = old is not None and old["reason"] in (names.WAIT_FOR_RECOVERY, names.RECOVERED)
        return True, names.RECOVERED if again else names.STARTED, "All pods reached readiness and the workload is running"
    if old is None or old["reason"] == names.WAIT_FOR_START:
        return False, names.WAIT_FOR_START, "Not all pods are ready or succeeded"
    return False, names.WAIT_FOR_RECOVERY, "At least one pod has failed, waiting for recovery"


async def release_quota(ctx: Context, hub: Hub, workload: Tree, *, single_pod: bool) -> Tree | None:
    """Take the quota of an evicted Workload whose job has stopped, and say whether it is queued again."""
    condition = conditions.find(workload, names.EVICTED)
    if condition is None:
        return None
    reason, message = condition["reason"], condition["message"]

    def change(draft: Draft) -> bool:
        if not conditions.reserved(draft.obj) or not conditions.evicted(draft.obj):
            return False
        draft.mark(names.REQUEUED, reason in REQUEUED_REASONS and not single_pod, reason, message)
        inactive = not conditions.active(draft.obj) and hub.config.reasons
        reservation.refuse(draft, names.DEACTIVATED if inactive else reservation.pending_reason(hub.config), message)
        reservation.sync_admitted(draft, hub.config, (), ctx.env.now())
        return True

    return await write_status(ctx, workload, change)


def kept_for(workload: Tree, keep: float | None, now: float) -> float | None:
    """Return for how many seconds more the job of a Workload that Kueue has deactivated is kept; None where it is kept for good."""
    condition = conditions.find(workload, names.EVICTED)
    if keep is None or condition is None or conditions.active(workload) or not condition["reason"].startswith(f"{names.DEACTIVATED}DueTo"):
        return None
    return max(0.0, from_stamp(condition["lastTransitionTime"]) + keep - now)


async def report_pods_ready(ctx: Context, workload: Tree, *, ready: bool) -> bool:
    """Write PodsReady where it changes. Tell whether something was written."""
    wanted = pods_ready_condition(workload, ready=ready)
    old = conditions.find(workload, names.PODS_READY)
    if old is not None and (old["status"] == "True", old["reason"]) == wanted[:2]:
        return False

    def change(draft: Draft) -> bool:
        if conditions.admitted(draft.obj) != conditions.admitted(workload):
            return False
        draft.mark(names.PODS_READY, *wanted)
        return True

    await write_status(ctx, workload, change)
    return True


async def give_back(ctx: Context, workload: Tree, done: Mapping[str, int]) -> bool:
    """Write down, by pod set, whose pods are done and need their quota no longer. Tell whether something was written.

    Never fewer than before, but of pod sets that an elastic job has shrunk since.
    """
    counts = {each["name"]: each["count"] for each in pod_sets_of(workload)}
    known = reclaimable_pods(workload)
    shrunk = shrunk_pod_sets(workload) if (workload["metadata"].get("annotations") or {}).get(names.ELASTIC_JOB) == "true" else ()
    wanted = {name: count for name, count in known.items() if name not in shrunk} if conditions.reserved(workload) else {}
    for name, count in done.items():
        if name in counts:
            wanted[name] = min(counts[name], max(count, wanted.get(name, 0)))
    if wanted == known:
        return False

    def change(draft: Draft) -> bool:
        draft.set("reclaimablePods", [{"name": name, "count": count} for name, count in wanted.items()] or None)
        return True

    await write_status(ctx, workload, change)
    return True
