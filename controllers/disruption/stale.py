"""Takes back the condition DisruptionTarget of a pod that was to be disrupted two minutes ago and still stands."""

from __future__ import annotations

from kubemini.api.resources import PODS
from kubemini.api.trees import Tree
from kubemini.machinery.errors import Conflict, NotFound
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.env import from_stamp
from kubemini.runtime.keys import key_of

SECONDS = 120.0
TARGET = "DisruptionTarget"


class StaleDisruptions(Controller):
    """Keys are pods that carry the condition."""

    name = "stale-pod-disruption"
    measured_as = "stale_pod_disruption"
    component = "controllermanager"

    def setup(self, ctx: Context) -> None:
        """Follow pods."""
        self._ctx = ctx
        self._pods = ctx.informer(PODS)
        self._pods.on_change(self._on_pod, reads=("status",))

    def _on_pod(self, old: Tree | None, new: Tree | None) -> None:
        if new is not None and (old is None or old.get("status") is not new.get("status")) and _since(new) is not None:
            self.queue.add(key_of(new))

    async def reconcile(self, key: str) -> float | None:
        """Wait, then set the condition to False."""
        pod = self._pods.get_key(key)
        since = _since(pod) if pod is not None else None
        if pod is None or since is None:
            return None
        left = since + SECONDS - self._ctx.env.now()
        if left > 0:
            return left + 0.001
        condition: Tree = {"type": TARGET, "status": "False", "lastProbeTime": None, "lastTransitionTime": self._ctx.env.stamp()}
        if "generation" in pod["metadata"]:
            condition["observedGeneration"] = pod["metadata"]["generation"]
        conditions = [condition if each["type"] == TARGET else each for each in pod["status"]["conditions"]]
        try:
            await self._ctx.client.update_status(PODS, {**pod, "status": {**pod["status"], "conditions": conditions}})
        except (NotFound, Conflict):
            return None
        return None


def _since(pod: Tree) -> float | None:
    """Return since when a pod that lives on was to be disrupted."""
    status = pod.get("status") or {}
    if "deletionTimestamp" in pod["metadata"] or status.get("phase") in ("Succeeded", "Failed"):
        return None
    for condition in status.get("conditions") or ():
        if condition["type"] == TARGET and condition["status"] == "True":
            return from_stamp(condition["lastTransitionTime"]) if condition.get("lastTransitionTime") else 0.0
    return None
