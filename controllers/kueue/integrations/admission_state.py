"""What the end of an admission looks like on a Workload: PodsReady while it lasts, the quota released after an eviction."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.controllers.kueue import conditions, reservation
from kubemini.controllers.kueue.conditions import Draft
from kubemini.controllers.kueue.hub import Hub
from kubemini.controllers.kueue.writing import write_status
from kubemini.runtime.controller import Context

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
