"""The scheduling loop: one pod (or one pod group) per cycle, highest priority first, against a view with assumed pods.

A cycle finds a place and holds it (`placing`), writes what must be written before the binding (`volume_binding`, `claims`), binds, or says why it
cannot (`reporting`) and puts the pod to sleep until something happens that may help it (`waiting`). Every decision can be asked for (`why`).
"""

from __future__ import annotations

from kubemini.api.resources import NODES, PODS, Resource
from kubemini.api.trees import Tree
from kubemini.controllers.scheduler import gangs
from kubemini.controllers.scheduler.cache import TERMINAL, priority_of
from kubemini.controllers.scheduler.deciding import Decision
from kubemini.controllers.scheduler.gangs import DEFAULT_SCHEDULER, Gang, Gangs
from kubemini.controllers.scheduler.placing import Assumed, Placer
from kubemini.controllers.scheduler.placing_groups import GroupPlacer, Trial, turn
from kubemini.controllers.scheduler.preemption import Candidate
from kubemini.controllers.scheduler.reporting import Reporter
from kubemini.controllers.scheduler.volume_binding import TIMEOUT_SECONDS
from kubemini.controllers.scheduler.waiting import DEVICES, GROUP, NODE, POD_CAME, POD_GONE, STORAGE, Waiting, events_of
from kubemini.machinery.errors import ApiStatus, Conflict, NotFound
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.keys import key_of


class SchedulerController(Controller):
    """Keys are pods."""

    name = "scheduler"
    component = DEFAULT_SCHEDULER

    def setup(self, ctx: Context) -> None:
        """Follow pods, nodes and everything that a placement may depend on."""
        self._ctx = ctx
        self._pods = ctx.informer(PODS)
        self._nodes = ctx.informer(NODES)
        self._placer = Placer(ctx)
        self.cache = self._placer.cache
        self._groups = GroupPlacer(self._placer)
        self._reporter = Reporter(ctx)
        self._waiting = Waiting(self._retry, lambda: len(self.queue) > 0)
        self._binding: dict[str, Assumed] = {}
        """Pods that have a place and wait for their volumes, by key."""
        self._gangs = Gangs(ctx, self._pods, lambda: self._happened(GROUP))
        self._pods.on_change(self._on_pod)
        self._nodes.on_change(self._on_node)
        for informer in self._placer.volumes.informers:
            informer.on_change(self._on_storage)
        for informer in (self._placer.claims.claims, self._placer.claims.classes, self._placer.claims.slices):
            informer.on_change(self._on_devices)

    async def started(self) -> None:
        """Group kinds that are served later are followed from now on."""
        self._gangs.started()

    def why(self, key: str) -> Decision | None:
        """Return the last decision about a pod (``namespace/name``): its node, or each node's refusal."""
        return self._placer.why(key)

    def decision_about(self, resource: Resource, key: str) -> Tree | None:
        """Return `why` as JSON."""
        decision = self.why(key) if resource.storage == PODS.storage else None
        return decision.tree() if decision is not None else None

    def _retry(self, key: str, seconds: float, priority: int) -> None:
        if seconds > 0:
            self.queue.add_after(key, seconds, priority)
        else:
            self.queue.add(key, priority)

    def _happened(self, event: str) -> None:
        self._waiting.happened(event, self._ctx.env.now())

    # ------------------------------------------------------------------ events

    def _on_pod(self, old: Tree | None, new: Tree | None) -> None:
        pod = new if new is not None else old
        if pod is None:
            return
        uid, key = pod["metadata"]["uid"], key_of(pod)
        if new is None or (new.get("status") or {}).get("phase") in TERMINAL:
            self._left(uid, key)
            if old is None or new is None or (old.get("status") or {}).get("phase") not in TERMINAL:
                self._group_changed(pod)
            return
        node = new["spec"].get("nodeName")
        if node:
            self._bound(old, new, node)
            return
        if uid in self.cache.placed:
            # Assumed; its binding is on the way
            return
        if new["spec"].get("schedulerName", DEFAULT_SCHEDULER) not in self._gangs.schedulers or "deletionTimestamp" in new["metadata"]:
            self._left(uid, key)
            return
        nominated = (new.get("status") or {}).get("nominatedNodeName")
        if nominated and uid not in self.cache.nominated.get(nominated, ()):
            self.cache.nominate(new, nominated)
        if old is None:
            self._group_changed(new)
        if new["spec"].get("schedulingGates"):
            return
        if not self._waiting.asleep(key):
            if old is None or _differs(old, new) or not self.queue.waits(key):
                self.queue.add(key, priority_of(new))
        elif old is not None and _differs(old, new):
            self._waiting.wake(key, self._ctx.env.now())

    def _left(self, uid: str, key: str) -> None:
        """Forget a pod that ended, went, or is none of ours."""
        freed = self.cache.remove(uid)
        assumed = self._binding.get(key)
        if assumed is not None and assumed.pod["metadata"]["uid"] == uid:
            del self._binding[key]
            self._placer.settle(assumed)
        freed = self.cache.denominate(uid) or freed
        now = self._ctx.env.now()
        self._waiting.done(key, now)
        if freed:
            self._waiting.happened(POD_GONE, now)

    def _bound(self, old: Tree | None, new: Tree, node: str) -> None:
        meta = new["metadata"]
        uid = meta["uid"]
        known = self.cache.placed.get(uid)
        if known is not None and known[0] == node and old is not None and old["metadata"]["uid"] == uid and old["spec"] is new["spec"]:
            self.cache.place(new, node)
            if old["metadata"].get("labels") is meta.get("labels") or old["metadata"].get("labels") == meta.get("labels"):
                return
        else:
            self.cache.place(new, node)
            freed = self.cache.denominate(uid) if self.cache.nominated else False
            now = self._ctx.env.now()
            self._waiting.done(key_of(new), now)
            if freed:
                self._waiting.happened(POD_GONE, now)
        self._happened(POD_CAME)

    def _group_changed(self, pod: Tree) -> None:
        if self._gangs.of(pod) is not None:
            self._happened(GROUP)

    def _on_node(self, old: Tree | None, new: Tree | None) -> None:
        if new is None:
            if old is not None:
                self.cache.remove_node(old["metadata"]["name"])
            return
        if old is not None and not _matters(old, new):
            return
        self.cache.set_node(new)
        self._happened(NODE)

    def _on_storage(self, old: Tree | None, new: Tree | None) -> None:
        for key in self._binding:
            self.queue.add(key)
        self._happened(STORAGE)

    def _on_devices(self, old: Tree | None, new: Tree | None) -> None:
        self._happened(DEVICES)

    # ------------------------------------------------------------------ one cycle

    async def reconcile(self, key: str) -> float | None:
        """Try to place one pod, or go on with one that waits for its volumes."""
        waiting = self._binding.get(key)
        if waiting is not None:
            return await self._go_on(key, waiting)
        pod = self._pods.get_key(key)
        if pod is None or not self._wants_node(pod):
            return None
        reference = self._gangs.of(pod)
        if reference is not None:
            await self._place_group(reference, pod["metadata"]["namespace"])
            return None
        if pod["spec"].get("resourceClaims") and self._placer.claims.live(pod) is None:
            # Upstream does not even let it into the queue: no condition, no event
            self._sleep(pod, (DEVICES,))
            return None
        found = self._placer.assume(pod)
        if isinstance(found, Assumed):
            await self._commit(found)
        else:
            await self._fail(pod, found)
        return None

    def _wants_node(self, pod: Tree) -> bool:
        spec = pod["spec"]
        return (
            not spec.get("nodeName")
            and "deletionTimestamp" not in pod["metadata"]
            and not spec.get("schedulingGates")
            and spec.get("schedulerName", DEFAULT_SCHEDULER) in self._gangs.schedulers
            and (pod.get("status") or {}).get("phase") not in TERMINAL
            and pod["metadata"]["uid"] not in self.cache.placed
        )

    def _sleep(self, pod: Tree, events: tuple[str, ...]) -> None:
        self._waiting.failed(key_of(pod), self._ctx.env.now(), priority_of(pod), self._placer.group(pod), events)

    # ------------------------------------------------------------------ binding

    async def _commit(self, assumed: Assumed) -> None:
        """Write what a place needs, and bind, or wait for the volumes."""
        pod = assumed.pod
        try:
            if assumed.claims is not None:
                await self._placer.claims.write(pod, assumed.claims)
            if assumed.volumes is not None:
                await self._placer.volumes.write(assumed.volumes)
                if self._placer.volumes.progress(assumed.volumes) is not True:
                    key = key_of(pod)
                    assumed.deadline = self._ctx.env.now() + TIMEOUT_SECONDS
                    self._binding[key] = assumed
                    await self._reporter.nominated(pod, assumed.node)
                    self.queue.add_after(key, TIMEOUT_SECONDS)
                    return
            await self._bind(assumed)
        except ApiStatus as refused:
            self._refused(assumed, refused)

    async def _go_on(self, key: str, assumed: Assumed) -> float | None:
        plan = assumed.volumes
        progress = self._placer.volumes.progress(plan) if plan is not None else True
        left = assumed.deadline - self._ctx.env.now()
        if progress is False and left > 1e-6:
            return None
        del self._binding[key]
        if progress is not True:
            self._placer.forget(assumed)
            pod = self._pods.get_key(key)
            text = progress or "binding volumes: context deadline exceeded"
            if pod is not None and self._wants_node(pod):
                self._sleep(pod, events_of(("VolumeBinding",)))
                await self._reporter.failed(pod, f'running PreBind plugin "VolumeBinding": {text}', "")
                self._waiting.wake(key, self._ctx.env.now(), busy=True)
            self._happened(POD_GONE)
            return None
        try:
            await self._bind(assumed)
        except ApiStatus as refused:
            self._refused(assumed, refused)
        return None

    async def _bind(self, assumed: Assumed) -> None:
        pod, node = assumed.pod, assumed.node
        meta = pod["metadata"]
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": meta["name"], "namespace": meta["namespace"], "uid": meta["uid"]},
            "target": {"kind": "Node", "name": node},
        }
        try:
            await self._ctx.client.act(PODS, meta["name"], "binding", body, namespace=meta["namespace"])
        except ApiStatus as refused:
            # A lost answer leaves open whether the pod is bound: its place must be kept until the API itself has said so
            if refused.code < 500 or not await self._is_bound(meta, node):
                raise
        if assumed.volumes is not None or assumed.claims is not None:
            self._placer.settle(assumed)
        self._waiting.done(key_of(pod), self._ctx.env.now())
        self._reporter.scheduled(pod, node)

    async def _is_bound(self, meta: Tree, node: str) -> bool:
        try:
            live = await self._ctx.client.get(PODS, meta["name"], meta["namespace"])
        except NotFound:
            return False
        return bool(live["metadata"]["uid"] == meta["uid"] and live["spec"].get("nodeName") == node)

    def _refused(self, assumed: Assumed, refused: ApiStatus) -> None:
        """Give the place up after a write was refused. Raise the refusal again where it is nobody's race."""
        pod = assumed.pod
        meta, key = pod["metadata"], key_of(pod)
        live = self._pods.get_key(key)
        if live is None or live["metadata"]["uid"] != meta["uid"] or not live["spec"].get("nodeName"):
            self._placer.forget(assumed)
            self._happened(POD_GONE)
        else:
            self._placer.settle(assumed)
        if not isinstance(refused, Conflict | NotFound):
            raise refused
        # Bound by somebody else, or going: its own event settles it; else it tries again
        if live is not None and self._wants_node(live):
            self._sleep(live, (NODE,))
            # Not before its back-off: what refused it may be newer than this cache
            self._waiting.wake(key, self._ctx.env.now(), busy=True)

    # ------------------------------------------------------------------ failing

    async def _fail(self, pod: Tree, decision: Decision, prefix: str = "") -> None:
        """Say why a pod has no node, make room for it if it may, and let it sleep."""
        if pod["spec"].get("resourceClaims") and decision.node is None and decision.rejection is None:
            claims = self._placer.claims.live(pod) or []
            if any(refusal.plugin == "DynamicResources" for refusal in decision.refusals.values()) and await self._placer.claims.deallocate(claims):
                decision.message = f"{decision.message} deallocation of ResourceClaim completed"
                self._sleep(pod, (DEVICES,))
                await self._reporter.failed(pod, decision.message, None)
                return
        outcome = self._placer.preempt(pod, decision)
        candidate = outcome.candidate
        self._sleep(pod, events_of(decision.plugins()))
        if candidate is None:
            if not outcome.keep and self.cache.denominate(pod["metadata"]["uid"]):
                self._happened(POD_GONE)
            await self._reporter.failed(pod, prefix + decision.message, None if outcome.keep else "")
            return
        self.cache.nominate(pod, candidate.node)
        await self._reporter.failed(pod, prefix + decision.message, candidate.node)
        await self._make_room(pod, candidate)
        if not candidate.victims:
            self._waiting.wake(key_of(pod), self._ctx.env.now())

    async def _make_room(self, pod: Tree, candidate: Candidate) -> None:
        """Evict the victims; pods of lower priority lose their nomination to the node."""
        node, mine = candidate.node, priority_of(pod)
        for other in [each for each in self.cache.nominated.get(node, {}).values() if priority_of(each) < mine]:
            self.cache.denominate(other["metadata"]["uid"])
            await self._reporter.nominated(self._pods.get_key(key_of(other)) or other, None)
            self._waiting.wake(key_of(other), self._ctx.env.now())
        for victim in candidate.victims:
            held = self._binding.pop(key_of(victim), None)
            if held is not None:
                # It is not bound yet: its place is taken back, and it tries again
                self._placer.forget(held)
                self.queue.add(key_of(victim), priority_of(victim))
                continue
            await self._reporter.evict(pod, victim, node)

    # ------------------------------------------------------------------ pod groups

    async def _place_group(self, reference: tuple[Resource, str], namespace: str) -> None:
        """Place all pods of a group that have no node, against one state of the cluster: enough of them, or none."""
        gang = self._gangs.gang(reference, namespace)
        members = self._gangs.members(reference, namespace)
        todo = sorted((pod for pod in members if self._wants_node(pod)), key=turn)
        text = gangs.short(gang, reference[1], members)
        if gang is None or text:
            for pod in todo:
                self._sleep(pod, (GROUP,))
                await self._reporter.failed(pod, text, None, quiet=True)
            return
        there = gangs.started(members) + sum(
            1 for pod in gangs.counted(members) if not pod["spec"].get("nodeName") and pod["metadata"]["uid"] in self.cache.placed
        )
        trial = self._groups.assume(gang, todo, members)
        if there + len(trial.placed) >= gang.minimum:
            for assumed in trial.placed:
                await self._commit(assumed)
            for pod, decision in trial.failed:
                await self._fail(pod, decision)
            if gang.tree is not None:
                await self._reporter.group(gang.tree, scheduled=True)
            return
        await self._fail_group(gang, reference[1], trial, gang.minimum - there)

    async def _fail_group(self, gang: Gang, name: str, trial: Trial, wanted: int) -> None:
        """Nothing of a group is bound: its places are given up, unless preemption makes room for enough of the rest."""
        rescue = self._groups.rescue(trial, wanted)
        events = tuple(dict.fromkeys([GROUP, *(event for _, decision in trial.failed for event in events_of(decision.plugins()))]))
        for pod in trial.pods():
            uid = pod["metadata"]["uid"]
            node = rescue.nodes.get(uid, "")
            if node:
                self.cache.nominate(pod, node)
            self._sleep(pod, events)
            await self._reporter.failed(pod, gangs.WAITING_FOR_PREEMPTION if node else rescue.texts.get(uid, gangs.UNSCHEDULABLE), node)
        for pod, candidate in rescue.candidates:
            await self._make_room(pod, candidate)
        if gang.tree is not None:
            message = (
                gangs.WAITING_FOR_PREEMPTION
                if rescue.candidates
                else f'{len(trial.placed)} of the {wanted} pods that pod group "{name}" still needs have a place'
            )
            await self._reporter.group(gang.tree, scheduled=False, message=message)


def _differs(old: Tree, new: Tree) -> bool:
    """Tell whether a pending pod changed in what scheduling looks at."""
    return (
        old["metadata"]["uid"] != new["metadata"]["uid"]
        or (old["spec"] is not new["spec"] and old["spec"] != new["spec"])
        or old["metadata"].get("labels") != new["metadata"].get("labels")
        or (old.get("status") or {}).get("resourceClaimStatuses") != (new.get("status") or {}).get("resourceClaimStatuses")
    )


def _matters(old: Tree, new: Tree) -> bool:
    """Tell whether a node changed in what scheduling looks at."""
    return (
        old["spec"] != new["spec"]
        or old["metadata"].get("labels") != new["metadata"].get("labels")
        or (old.get("status") or {}).get("allocatable") != (new.get("status") or {}).get("allocatable")
    )
