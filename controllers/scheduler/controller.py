"""The scheduling loop: one pod per cycle, highest priority first, against a view with assumed pods.

A pod whose placement depends on node objects and resources alone takes the fast way (`feasible`); any other is decided over all nodes
(`deciding`). Every decision can be asked for (`why`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence

from kubemini.api.resources import NAMESPACES, NODES, POD_DISRUPTION_BUDGETS, PODS
from kubemini.api.trees import Tree
from kubemini.controllers.scheduler import affinity, preemption
from kubemini.controllers.scheduler.cache import TERMINAL, Cache, priority_of
from kubemini.controllers.scheduler.deciding import Decision, Filters, decide, filters_of
from kubemini.controllers.scheduler.feasible import Signatures
from kubemini.controllers.scheduler.filters import has_host_ports
from kubemini.controllers.scheduler.waiting import Waiting
from kubemini.machinery.errors import ApiStatus, Conflict, NotFound
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.keys import key_of

SCHEDULER = "default-scheduler"
REMEMBERED = 1024
"""Decisions kept for `why`."""


class SchedulerController(Controller):
    """Keys are pods."""

    name = "scheduler"
    component = SCHEDULER

    def setup(self, ctx: Context) -> None:
        """Follow pods, nodes, namespaces and budgets."""
        self._ctx = ctx
        self._pods = ctx.informer(PODS)
        self._nodes = ctx.informer(NODES)
        self._namespaces = ctx.informer(NAMESPACES)
        self._budgets = ctx.informer(POD_DISRUPTION_BUDGETS)
        self.cache = Cache()
        self._signatures = Signatures(self.cache)
        self._waiting = Waiting(self._retry)
        self._decisions: OrderedDict[str, Decision] = OrderedDict()
        self._pods.on_change(self._on_pod)
        self._nodes.on_change(self._on_node)

    def _retry(self, key: str, seconds: float, priority: int) -> None:
        if seconds > 0:
            self.queue.add_after(key, seconds, priority)
        else:
            self.queue.add(key, priority)

    # ------------------------------------------------------------------ events

    def _on_pod(self, old: Tree | None, new: Tree | None) -> None:
        pod = new if new is not None else old
        if pod is None:
            return
        uid, key = pod["metadata"]["uid"], key_of(pod)
        ended = new is None or (new.get("status") or {}).get("phase") in TERMINAL
        if ended:
            freed = self.cache.remove(uid)
            freed = self.cache.denominate(uid) or freed
            self._waiting.done(key)
            if freed:
                self._waiting.wake_all(self._ctx.env.now())
            return
        node = pod["spec"].get("nodeName")
        if node:
            known = uid in self.cache.placed
            self.cache.place(pod, node)
            self.cache.denominate(uid)
            self._waiting.done(key)
            if not known or (old is not None and old["metadata"].get("labels") != pod["metadata"].get("labels")):
                # A pod that affinity may have waited for
                self._waiting.wake_all(self._ctx.env.now())
            return
        if uid in self.cache.placed:
            # Assumed; its binding is on the way
            return
        if pod["spec"].get("schedulerName", SCHEDULER) != SCHEDULER or "deletionTimestamp" in pod["metadata"]:
            self._waiting.done(key)
            return
        nominated = (pod.get("status") or {}).get("nominatedNodeName")
        if nominated:
            self.cache.nominate(pod, nominated)
        if pod["spec"].get("schedulingGates"):
            return
        if not self._waiting.asleep(key):
            self.queue.add(key, priority_of(pod))
        elif old is not None and old["spec"] != pod["spec"]:
            self._waiting.wake(key, self._ctx.env.now())

    def _on_node(self, old: Tree | None, new: Tree | None) -> None:
        if new is None:
            if old is not None:
                self.cache.remove_node(old["metadata"]["name"])
            return
        if old is not None and not _matters(old, new):
            return
        self.cache.set_node(new)
        self._waiting.wake_all(self._ctx.env.now())

    def _labels_of(self, namespace: str) -> Mapping[str, str]:
        found = self._namespaces.get(namespace)
        labels: Mapping[str, str] = (found or {"metadata": {}})["metadata"].get("labels") or {}
        return labels

    # ------------------------------------------------------------------ one cycle

    async def reconcile(self, key: str) -> float | None:
        """Try to place one pod."""
        pod = self._pods.get_key(key)
        if pod is None or not _wants_node(pod) or pod["metadata"]["uid"] in self.cache.placed:
            return None
        node = self._fast(pod)
        if node is not None:
            await self._bind(pod, node)
            return None
        decision = decide(self._filters(pod), self.cache)
        self._remember(decision)
        if decision.node is not None:
            await self._bind(pod, decision.node)
        else:
            await self._fail(pod, decision)
        return None

    def _fast(self, pod: Tree) -> str | None:
        spec = pod["spec"]
        if self.cache.anti_affine or self.cache.nominated or spec.get("topologySpreadConstraints") or affinity.concerns(spec):
            return None
        if spec.get("resourceClaims") or has_host_ports(spec) or _has_claims(spec):
            return None
        node = self._signatures.of(pod).best()
        if node is not None:
            meta = pod["metadata"]
            self._remember(Decision(f"{meta['namespace']}/{meta['name']}", node, {}, len(self.cache.nodes)))
        return node

    def _filters(self, pod: Tree, without: Sequence[str] = ()) -> Filters:
        return filters_of(pod, self.cache, self._labels_of, without=without)

    def _remember(self, decision: Decision) -> None:
        self._decisions[decision.pod] = decision
        self._decisions.move_to_end(decision.pod)
        if len(self._decisions) > REMEMBERED:
            self._decisions.popitem(last=False)

    def why(self, key: str) -> Decision | None:
        """Return the last decision about a pod (``namespace/name``): its node, or each node's refusal."""
        return self._decisions.get(key)

    # ------------------------------------------------------------------ outcomes

    async def _bind(self, pod: Tree, node: str) -> None:
        meta = pod["metadata"]
        key = key_of(pod)
        self.cache.place(pod, node)
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": meta["name"], "namespace": meta["namespace"], "uid": meta["uid"]},
            "target": {"kind": "Node", "name": node},
        }
        try:
            await self._ctx.client.act(PODS, meta["name"], "binding", body, namespace=meta["namespace"])
        except ApiStatus as refused:
            live = self._pods.get_key(key)
            if live is None or live["metadata"]["uid"] != meta["uid"] or not live["spec"].get("nodeName"):
                self.cache.remove(meta["uid"])
            if isinstance(refused, Conflict | NotFound):
                # Bound by somebody else, or going: its own event settles it
                if live is not None and _wants_node(live):
                    self._waiting.failed(key, self._ctx.env.now(), priority_of(pod), self.cache.generation)
                    self._waiting.wake(key, self._ctx.env.now())
                return
            raise
        self._waiting.done(key)
        self._ctx.recorder.event(pod, "Normal", "Scheduled", f"Successfully assigned {key} to {node}")

    async def _fail(self, pod: Tree, decision: Decision) -> None:
        nominated: str | None = None
        text = decision.message
        victims: list[Tree] = []
        if decision.nodes:
            outcome = self._preempt(pod, decision)
            if outcome.candidate is not None:
                nominated, victims = outcome.candidate.node, outcome.candidate.victims
            elif outcome.text:
                text = f"{text} preemption: {outcome.text}"
        key = key_of(pod)
        self._waiting.failed(key, self._ctx.env.now(), priority_of(pod), self.cache.generation)
        decision.message = text
        await self._say_failed(pod, text, nominated)
        if nominated is not None:
            self.cache.nominate(pod, nominated)
            for victim in victims:
                await self._evict(pod, victim, nominated)
        if nominated is not None and not victims:
            self._waiting.wake(key, self._ctx.env.now())

    def _preempt(self, pod: Tree, decision: Decision) -> preemption.Outcome:
        barred = preemption.eligible(pod, self.cache)
        if barred:
            return preemption.Outcome(text=barred)
        budgets = self._budgets.list(pod["metadata"]["namespace"]) if self._budgets.objects else []
        return preemption.find(pod, decision, self.cache, self._budgets.list() if budgets else [], lambda without: self._filters(pod, without))

    async def _say_failed(self, pod: Tree, text: str, nominated: str | None) -> None:
        self._ctx.recorder.event(pod, "Warning", "FailedScheduling", text)
        status = pod.get("status") or {}
        meta = pod["metadata"]
        conditions = list(status.get("conditions") or ())
        before = next((each for each in conditions if each["type"] == "PodScheduled"), None)
        now = self._ctx.env.stamp()
        condition: Tree = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": text,
            "lastProbeTime": None,
            "lastTransitionTime": before["lastTransitionTime"] if before is not None and before["status"] == "False" else now,
        }
        if "generation" in meta:
            condition["observedGeneration"] = meta["generation"]
        changed = {**status, "conditions": [each for each in conditions if each["type"] != "PodScheduled"] + [condition]}
        if nominated is not None:
            changed["nominatedNodeName"] = nominated
        elif "nominatedNodeName" in changed and meta["uid"] not in self.cache.nominated.get(changed["nominatedNodeName"], {}):
            del changed["nominatedNodeName"]
        if changed == status:
            return
        try:
            await self._ctx.client.update_status(PODS, {**pod, "status": changed})
        except (NotFound, Conflict):
            return

    async def _evict(self, pod: Tree, victim: Tree, node: str) -> None:
        meta, status = victim["metadata"], victim.get("status") or {}
        condition: Tree = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": f"{SCHEDULER}: preempting to accommodate a higher priority pod",
            "lastProbeTime": None,
            "lastTransitionTime": self._ctx.env.stamp(),
        }
        if "generation" in meta:
            condition["observedGeneration"] = meta["generation"]
        others = [each for each in status.get("conditions") or () if each["type"] != "DisruptionTarget"]
        try:
            if "deletionTimestamp" not in meta:
                body = {"status": {"conditions": [*others, condition]}}
                await self._ctx.client.patch(PODS, meta["name"], body, namespace=meta["namespace"], subresource="status")
                await self._ctx.client.delete(PODS, meta["name"], namespace=meta["namespace"], uid=meta["uid"])
                self._ctx.recorder.event(victim, "Normal", "Preempted", f"Preempted by pod {pod['metadata']['uid']} on node {node}")
        except (NotFound, Conflict):
            return


def _wants_node(pod: Tree) -> bool:
    spec = pod["spec"]
    return (
        not spec.get("nodeName")
        and "deletionTimestamp" not in pod["metadata"]
        and not spec.get("schedulingGates")
        and spec.get("schedulerName", SCHEDULER) == SCHEDULER
        and (pod.get("status") or {}).get("phase") not in TERMINAL
    )


def _has_claims(spec: Tree) -> bool:
    return any("persistentVolumeClaim" in volume or "ephemeral" in volume for volume in spec.get("volumes") or ())


def _matters(old: Tree, new: Tree) -> bool:
    """Tell whether a node changed in what scheduling looks at."""
    return (
        old["spec"] != new["spec"]
        or old["metadata"].get("labels") != new["metadata"].get("labels")
        or (old.get("status") or {}).get("allocatable") != (new.get("status") or {}).get("allocatable")
    )
