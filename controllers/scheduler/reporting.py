"""What the scheduler says about pods: conditions, nominations, events, evictions. Every write is a patch of what it means to change, as upstream's are."""

from __future__ import annotations

from kubemini.api.resources import POD_GROUPS, PODS
from kubemini.api.trees import Tree
from kubemini.controllers.scheduler.gangs import DEFAULT_SCHEDULER
from kubemini.machinery.errors import Conflict, Invalid, NotFound
from kubemini.runtime.controller import Context
from kubemini.runtime.recorder import shortened

GONE = (NotFound, Conflict, Invalid)
"""What a patch answers when the object it is about is gone, or another one has its name."""


class Reporter:
    """Writes for the scheduler. A pod that is gone meanwhile is left alone."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx

    async def _patch_status(self, pod: Tree, status: Tree) -> None:
        meta = pod["metadata"]
        body = {"metadata": {"uid": meta["uid"]}, "status": status}
        try:
            await self._ctx.client.patch(PODS, meta["name"], body, namespace=meta["namespace"], type="strategic", subresource="status")
        except GONE:
            return

    def scheduled(self, pod: Tree, node: str) -> None:
        """Say that a pod was bound."""
        meta = pod["metadata"]
        self._ctx.recorder.acted(pod, "Normal", "Scheduled", f"Successfully assigned {meta['namespace']}/{meta['name']} to {node}", action="Binding")

    async def broken(self, pod: Tree, text: str, *, sure: bool) -> None:
        """Say that a place was found and could not be taken. Where it is not `sure` that nothing was written, the pod itself is left alone."""
        if sure:
            await self.failed(pod, text, "", reason="SchedulerError")
        else:
            self._ctx.recorder.acted(pod, "Warning", "FailedScheduling", shortened(text), action="Scheduling")

    async def failed(self, pod: Tree, text: str, nominated: str | None, *, quiet: bool = False, reason: str = "Unschedulable") -> None:
        """Say why a pod has no node. `nominated` is the node that is kept for it, "" takes a nomination back, None leaves it. `quiet`: no event."""
        if not quiet:
            self._ctx.recorder.acted(pod, "Warning", "FailedScheduling", shortened(text), action="Scheduling")
        status = pod.get("status") or {}
        before = next((each for each in status.get("conditions") or () if each["type"] == "PodScheduled"), None)
        change: Tree = {}
        if before is None or (before["status"], before.get("reason"), before.get("message")) != ("False", reason, text):
            now = self._ctx.env.stamp()
            condition: Tree = {
                "type": "PodScheduled",
                "status": "False",
                "reason": reason,
                "message": text,
                "lastProbeTime": None,
                # None where the API server wrote the condition (SchedulingGated)
                "lastTransitionTime": before.get("lastTransitionTime") if before is not None and before["status"] == "False" else now,
            }
            if "generation" in pod["metadata"]:
                condition["observedGeneration"] = pod["metadata"]["generation"]
            change["conditions"] = [condition]
        # A node that victims are about to leave is written whatever the cache shows: it may be behind
        if nominated is not None and (nominated or status.get("nominatedNodeName")):
            change["nominatedNodeName"] = nominated or None
        if change:
            await self._patch_status(pod, change)

    async def nominated(self, pod: Tree, node: str | None) -> None:
        """Write (or take back) the node that is kept for a pod."""
        if (pod.get("status") or {}).get("nominatedNodeName") != node:
            await self._patch_status(pod, {"nominatedNodeName": node})

    async def evict(self, preemptor: Tree, victim: Tree, node: str, *, kind: str = "pod", scheduler: str = "") -> None:
        """Let a victim go: the reason as a condition first, then a graceful deletion. `kind` is what preempts, and `scheduler` the name of whose pods it is."""
        meta = victim["metadata"]
        if "deletionTimestamp" in meta:
            return
        condition: Tree = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": f"{scheduler or preemptor['spec'].get('schedulerName', DEFAULT_SCHEDULER)}: preempting to accommodate a higher priority {kind}",
            "lastProbeTime": None,
            "lastTransitionTime": self._ctx.env.stamp(),
        }
        if "generation" in meta:
            condition["observedGeneration"] = meta["generation"]
        try:
            body = {"metadata": {"uid": meta["uid"]}, "status": {"conditions": [condition]}}
            await self._ctx.client.patch(PODS, meta["name"], body, namespace=meta["namespace"], type="strategic", subresource="status")
            await self._ctx.client.delete(PODS, meta["name"], namespace=meta["namespace"], uid=meta["uid"])
        except GONE:
            return
        text = f"Preempted by {kind} {preemptor['metadata']['uid']} on node {node}"
        self._ctx.recorder.acted(victim, "Normal", "Preempted", text, action="Preempting", related=preemptor)

    async def group(self, group: Tree, *, scheduled: bool, message: str = "", fresh: bool = False) -> None:
        """Write a PodGroup's condition. Once it was scheduled it stays so; with `fresh`, also where the cache has not seen that yet."""
        meta = group["metadata"]
        conditions = (group.get("status") or {}).get("conditions") or []
        before = next((each for each in conditions if each["type"] == "PodGroupScheduled"), None)
        status, reason = ("True", "Scheduled") if scheduled else ("False", "Unschedulable")
        if before is not None and (
            before["status"] == "True" or (before["status"], before["reason"], before["message"]) == (status, reason, message)
        ):
            return
        moved = before is None or before["status"] != status
        condition: Tree = {
            "type": "PodGroupScheduled",
            "status": status,
            "reason": reason,
            "message": message,
            "lastTransitionTime": self._ctx.env.stamp() if moved or before is None else before["lastTransitionTime"],
        }
        if "generation" in meta:
            condition["observedGeneration"] = meta["generation"]
        others = [each for each in conditions if each["type"] != "PodGroupScheduled"]
        version = {"resourceVersion": meta["resourceVersion"]} if fresh else {}
        body = {"metadata": {"uid": meta["uid"], **version}, "status": {"conditions": [*others, condition]}}
        try:
            await self._ctx.client.patch(POD_GROUPS, meta["name"], body, namespace=meta["namespace"], subresource="status")
        except GONE:
            return
