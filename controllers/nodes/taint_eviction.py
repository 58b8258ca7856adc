"""Evictions by NoExecute taints. Mirrors kube-controller-manager's taint-eviction-controller.

A pod on a node with a NoExecute taint that it does not tolerate is deleted at once; one that tolerates it for a time, after the shortest of those
times, unless the taint goes first.
"""

from __future__ import annotations

from kubemini.api.resources import NODES, PODS
from kubemini.api.trees import Tree
from kubemini.machinery.errors import NotFound
from kubemini.machinery.node_matching import tolerates
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.keys import key_of


class TaintEviction(Controller):
    """Keys are pods."""

    name = "taint-eviction"
    component = "taint-eviction-controller"

    def setup(self, ctx: Context) -> None:
        """Follow nodes and their pods."""
        self._ctx = ctx
        self._nodes = ctx.informer(NODES)
        self._pods = ctx.informer(PODS)
        self._pods.add_index("node", lambda pod: (pod["spec"]["nodeName"],) if pod["spec"].get("nodeName") else (), reads=("spec.nodeName",))
        self._since: dict[str, float] = {}
        """Pod uid → when its node's taints were first seen not tolerated for ever."""
        self._nodes.on_change(self._on_node)
        self._pods.on_change(self._on_pod, reads=("spec",))

    def _on_node(self, old: Tree | None, new: Tree | None) -> None:
        if new is None or _no_execute(old) == (taints := _no_execute(new)):
            return
        if taints or _no_execute(old):
            for pod in self._pods.by_index("node", new["metadata"]["name"]):
                self.queue.add(key_of(pod))

    def _on_pod(self, old: Tree | None, new: Tree | None) -> None:
        if new is None:
            if old is not None:
                self._since.pop(old["metadata"]["uid"], None)
            return
        node_name = new["spec"].get("nodeName")
        if not node_name or (old is not None and old["spec"] is new["spec"]):
            return
        node = self._nodes.get(node_name)
        if node is not None and _no_execute(node):
            self.queue.add(key_of(new))

    async def reconcile(self, key: str) -> float | None:
        """Evict a pod whose time on its node is over."""
        pod = self._pods.get_key(key)
        if pod is None or "deletionTimestamp" in pod["metadata"] or not pod["spec"].get("nodeName"):
            return None
        uid = pod["metadata"]["uid"]
        node = self._nodes.get(pod["spec"]["nodeName"])
        taints = _no_execute(node)
        if not taints:
            if self._since.pop(uid, None) is not None:
                self._ctx.recorder.event(pod, "Normal", "TaintManagerEviction", f"Cancelling deletion of Pod {key}")
            return None
        seconds = stay(taints, pod["spec"].get("tolerations") or [])
        if seconds is None:
            self._since.pop(uid, None)
            return None
        now = self._ctx.env.now()
        left = self._since.setdefault(uid, now) + seconds - now
        if left > 1e-6:
            return left
        await self._evict(pod)
        return None

    async def _evict(self, pod: Tree) -> None:
        meta = pod["metadata"]
        self._ctx.recorder.event(pod, "Normal", "TaintManagerEviction", f"Marking for deletion Pod {key_of(pod)}")
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint",
            "lastTransitionTime": self._ctx.env.stamp(),
            "lastProbeTime": None,
        }
        if "generation" in meta:
            condition["observedGeneration"] = meta["generation"]
        others = [each for each in pod["status"].get("conditions") or () if each["type"] != "DisruptionTarget"]
        try:
            await self._ctx.client.update_status(PODS, {**pod, "status": {**pod["status"], "conditions": [*others, condition]}})
            await self._ctx.client.delete(PODS, meta["name"], namespace=meta["namespace"], uid=meta["uid"])
        except NotFound:
            return


def _no_execute(node: Tree | None) -> list[Tree]:
    if node is None:
        return []
    return [taint for taint in node["spec"].get("taints") or () if taint["effect"] == "NoExecute"]


def stay(taints: list[Tree], tolerations: list[Tree]) -> float | None:
    """Return for how many seconds a pod may stay: 0 = not at all, None = for ever."""
    times: list[float] = []
    for taint in taints:
        matching = [toleration for toleration in tolerations if tolerates(toleration, taint)]
        if not matching:
            return 0.0
        times += [max(float(toleration["tolerationSeconds"]), 0.0) for toleration in matching if toleration.get("tolerationSeconds") is not None]
    return min(times) if times else None
