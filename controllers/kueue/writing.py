"""Status writes of Workloads that take a conflict as news: the change is made again on what is there now."""

from __future__ import annotations

from collections.abc import Callable

from kubemini.api.resources import WORKLOADS
from kubemini.api.trees import Tree
from kubemini.controllers.kueue.conditions import Draft
from kubemini.controllers.kueue.workloads import pod_sets_of
from kubemini.machinery.errors import Conflict, NotFound
from kubemini.runtime.controller import Context

ATTEMPTS = 6

Change = Callable[[Draft], bool]
"""Makes a change; returns False where it must not be made any more."""


def round_tripped(workload: Tree) -> Tree:
    """Return a Workload as a typed client writes it: the metadata of pod templates is there even when it is empty."""
    pod_sets = pod_sets_of(workload)
    if all("metadata" in each["template"] for each in pod_sets):
        return workload
    filled = [each if "metadata" in each["template"] else {**each, "template": {"metadata": {}, **each["template"]}} for each in pod_sets]
    return {**workload, "spec": {**workload["spec"], "podSets": filled}}


async def update_workload(ctx: Context, workload: Tree) -> Tree:
    """Write a Workload's spec or metadata; its resourceVersion is the precondition."""
    return await ctx.client.update(WORKLOADS, round_tripped(workload))


async def write_status(ctx: Context, workload: Tree, change: Change) -> Tree | None:
    """Write a change of a Workload's status; on a conflict make it again on the newest object of the same uid.

    Returns what is stored then (also where nothing was to be written), or None where the Workload is gone or the change is off. Raises what the API answers otherwise.
    """
    current = workload
    meta = workload["metadata"]
    for _ in range(ATTEMPTS):
        draft = Draft(current, ctx.env.stamp())
        if not change(draft):
            return None
        if not draft.changed:
            return current
        try:
            return await ctx.client.update_status(WORKLOADS, draft.tree())
        except NotFound:
            return None
        except Conflict:
            try:
                current = await ctx.client.get(WORKLOADS, meta["name"], meta["namespace"])
            except NotFound:
                return None
            if current["metadata"]["uid"] != meta["uid"]:
                return None
    raise Conflict.modified(WORKLOADS.plural, WORKLOADS.group, meta["name"])
