"""Pods nobody else takes away: of nodes that are gone or out of service, terminating ones that were never bound, and the oldest of very many that have ended.

Mirrors kube-controller-manager's pod GC.

Upstream looks every 20 seconds; here a change of a node or pod starts the same decision, with the same 40 seconds of quarantine for a node that
vanished.
"""

from __future__ import annotations

from kubemini.api.resources import NODES, PODS
from kubemini.api.trees import Tree
from kubemini.machinery.errors import NotFound
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.keys import key_of

QUARANTINE_SECONDS = 40.0
PERIOD_SECONDS = 20.0
"""How often pods that have ended are counted, once there are too many."""
ENDED_LIMIT = 12500
"""So many ended pods are kept (``terminated-pod-gc-threshold``)."""
EXCESS = "ended"
"""The key under which they are counted; no pod has such a one."""
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
TERMINAL = ("Succeeded", "Failed")


class PodGarbageCollector(Controller):
    """Keys are pods."""

    name = "pod-garbage-collector"
    component = "pod-garbage-collector-controller"

    def setup(self, ctx: Context) -> None:
        """Follow nodes and pods."""
        self._ctx = ctx
        self._nodes = ctx.informer(NODES)
        self._pods = ctx.informer(PODS)
        self._pods.add_index("node", lambda pod: (pod["spec"]["nodeName"],) if pod["spec"].get("nodeName") else (), reads=("spec.nodeName",))
        self._missing: dict[str, float] = {}
        """Node name → when it was first missed."""
        self._ended: dict[str, None] = {}
        """Keys of pods that have ended."""
        self._nodes.on_change(self._on_node)
        self._pods.on_change(self._on_pod, reads=("deletionTimestamp", "spec.nodeName", "status"))

    async def started(self) -> None:
        """Look at every pod once: what vanished while nobody watched is found too."""
        for pod in self._pods.list():
            self._on_pod(None, pod)

    def _on_node(self, old: Tree | None, new: Tree | None) -> None:
        node = new or old
        if node is None:
            return
        name = node["metadata"]["name"]
        if new is not None:
            self._missing.pop(name, None)
            if not any(taint["key"] == OUT_OF_SERVICE for taint in new["spec"].get("taints") or ()):
                return
        for pod in self._pods.by_index("node", name):
            self.queue.add(key_of(pod))

    def _on_pod(self, old: Tree | None, new: Tree | None) -> None:
        if new is None:
            if old is not None:
                self._ended.pop(key_of(old), None)
            return
        if (new.get("status") or {}).get("phase") in TERMINAL and "deletionTimestamp" not in new["metadata"]:
            self._ended[key_of(new)] = None
            if len(self._ended) > ENDED_LIMIT:
                self.queue.add_after(EXCESS, PERIOD_SECONDS)
        name = new["spec"].get("nodeName")
        if (not name and "deletionTimestamp" in new["metadata"]) or (name and self._nodes.synced.is_set() and self._nodes.get(name) is None):
            self.queue.add(key_of(new))

    async def reconcile(self, key: str) -> float | None:
        """Delete a pod that has no node any more, or the oldest of too many that have ended."""
        if key == EXCESS:
            await self._collect_ended()
            return None
        pod = self._pods.get_key(key)
        if pod is None:
            return None
        name = pod["spec"].get("nodeName")
        if not name:
            if "deletionTimestamp" in pod["metadata"]:
                await self._remove(pod, None)
            return None
        node = self._nodes.get(name)
        if node is not None:
            out = any(taint["key"] == OUT_OF_SERVICE for taint in node["spec"].get("taints") or ())
            ready = any(each["type"] == "Ready" and each["status"] == "True" for each in (node.get("status") or {}).get("conditions") or ())
            if out and not ready and "deletionTimestamp" in pod["metadata"]:
                await self._remove(pod, None)
            return None
        now = self._ctx.env.now()
        left = self._missing.setdefault(name, now) + QUARANTINE_SECONDS - now
        if left > 1e-6:
            return left
        await self._remove(pod, "PodGC: node no longer exists")
        return None

    async def _collect_ended(self) -> None:
        pods = [pod for each in self._ended if (pod := self._pods.get_key(each)) is not None and "deletionTimestamp" not in pod["metadata"]]
        # Evicted ones first, then by age
        pods.sort(
            key=lambda pod: ((pod.get("status") or {}).get("reason") != "Evicted", pod["metadata"]["creationTimestamp"], pod["metadata"]["name"])
        )
        for pod in pods[: max(len(pods) - ENDED_LIMIT, 0)]:
            await self._remove(pod, None)

    async def _remove(self, pod: Tree, why: str | None) -> None:
        meta, status = pod["metadata"], pod.get("status") or {}
        try:
            if status.get("phase") not in TERMINAL:
                failed = {**status, "phase": "Failed"}
                if why is not None:
                    condition = {
                        "type": "DisruptionTarget",
                        "status": "True",
                        "reason": "DeletionByPodGC",
                        "message": why,
                        "lastTransitionTime": self._ctx.env.stamp(),
                        "lastProbeTime": None,
                    }
                    failed["conditions"] = [*(each for each in status.get("conditions") or () if each["type"] != "DisruptionTarget"), condition]
                await self._ctx.client.update_status(PODS, {**pod, "status": failed})
            await self._ctx.client.delete(PODS, meta["name"], namespace=meta["namespace"], grace=0, uid=meta["uid"])
        except NotFound:
            return
