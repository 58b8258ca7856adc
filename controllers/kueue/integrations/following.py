"""What the Workload of a job follows while the job changes: admission gates, priority class and queue; and what its job is told."""

from __future__ import annotations

from collections.abc import Callable

from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.controllers.kueue import conditions, reservation
from kubemini.controllers.kueue.integrations.ancestors import queue_name
from kubemini.controllers.kueue.integrations.priorities import label_of
from kubemini.controllers.kueue.workloads import gated
from kubemini.controllers.kueue.writing import update_workload
from kubemini.runtime.controller import Context
from kubemini.runtime.informer import Informer
from kubemini.runtime.keys import key_of

Say = Callable[[str], None]
"""Tells the job that its Workload was updated."""


async def follow_gates(ctx: Context, job: Tree, workload: Tree, say: Say) -> bool:
    """Copy the admission gates of a job. Tell whether something was written."""
    holders = (job["metadata"].get("annotations") or {}).get(names.ADMISSION_GATED_BY, "")
    if gated(workload) == holders:
        return False
    meta = workload["metadata"]
    annotations = {key: value for key, value in (meta.get("annotations") or {}).items() if key != names.ADMISSION_GATED_BY}
    if holders:
        annotations[names.ADMISSION_GATED_BY] = holders
    new = {key: value for key, value in meta.items() if key != "annotations"}
    if annotations:
        new["annotations"] = annotations
    await update_workload(ctx, {**workload, "metadata": new})
    say(f'Updated workload AdmissionGatedBy to "{holders}"')
    return True


async def follow_priority(ctx: Context, classes: Informer, job: Tree, workload: Tree, say: Say) -> bool:
    """Give a Workload the WorkloadPriorityClass that the job is labelled with now. Tell whether something was written."""
    label = label_of(job)
    reference = workload["spec"].get("priorityClassRef")
    if not label or (reference is not None and (reference.get("kind") != "WorkloadPriorityClass" or reference["name"] == label)):
        return False
    if reference is None and conditions.reserved(workload):
        return False
    found = classes.get(label)
    if found is None:
        return False
    new = {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": label}
    await update_workload(ctx, {**workload, "spec": {**workload["spec"], "priorityClassRef": new, "priority": found["value"]}})
    say(f"Updated workload priority class: {key_of(workload)}")
    return True


async def follow_queue(ctx: Context, job: Tree, workload: Tree) -> bool:
    """Move a Workload without quota to the queue of its job. Tell whether something was written."""
    name = queue_name(job)
    if not name or workload["spec"].get("queueName") == name:
        return False
    await update_workload(ctx, {**workload, "spec": {**workload["spec"], "queueName": name}})
    return True


def waiting_for(workload: Tree) -> str:
    """Return what the pending checks of a Workload say, or "" where they say nothing."""
    checks = (workload.get("status") or {}).get("admissionChecks") or ()
    return "; ".join(f"{check['name']}: {check['message']}" for check in checks if check["state"] == reservation.PENDING and check.get("message"))
