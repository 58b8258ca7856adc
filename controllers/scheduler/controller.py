"""The scheduling loop: one pod (or one pod group) per cycle, highest priority first, against a view with assumed pods.

A cycle finds a place and holds it (`placing`), writes what must be written before the binding (`volume_binding`, `claims`), binds, or says why it
cannot (`reporting`) and puts the pod to sleep until something happens that may help it (`waiting`). Every decision can be asked for (`why`).
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from contextlib import suppress

from kubemini.api.resources import NAMESPACES, NODES, PODS, Resource
from kubemini.api.trees import Tree
from kubemini.controllers.scheduler import gangs
from kubemini.controllers.scheduler.cache import TERMINAL, priority_of
from kubemini.controllers.scheduler.deciding import Decision
from kubemini.controllers.scheduler.gangs import DEFAULT_SCHEDULER, Gang, Gangs
from kubemini.controllers.scheduler.group_preemption import GroupPreemption, enough
from kubemini.controllers.scheduler.hints import may_help
from kubemini.controllers.scheduler.placing import Assumed, Placer
from kubemini.controllers.scheduler.placing_groups import GroupPlacer, Rescue, Trial, turn
from kubemini.controllers.scheduler.preemption import Candidate
from kubemini.controllers.scheduler.reporting import Reporter
from kubemini.controllers.scheduler.resources import requests_of
from kubemini.controllers.scheduler.volume_binding import TIMEOUT_SECONDS
from kubemini.controllers.scheduler.waiting import DEVICES, GROUP, NODE, NODE_GONE, POD_CAME, POD_GONE, STORAGE, Waiting, events_of
from kubemini.machinery.errors import ApiStatus, Conflict, NotFound
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.keys import key_of

BIND = 'Bind plugin "DefaultBinder"'
LOST = 500
"""From this code on an answer leaves open what was done."""


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
        self._wholes = GroupPreemption(self._placer, self._groups, self._gangs.native)
        self._pods.on_change(self._on_pod, reads=("labels", "annotations", "deletionTimestamp", "spec", "status"))
        self._nodes.on_change(self._on_node)
        ctx.informer(NAMESPACES).on_change(self._on_namespace)
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

    def _freed(self, assumed: Assumed) -> None:
        """A place was given up, and with it the volumes and devices that were promised there."""
        self._happened(POD_GONE)
        if assumed.volumes is not None:
            self._happened(STORAGE)
        if assumed.claims is not None:
            self._happened(DEVICES)

    # ------------------------------------------------------------------ events

    def _on_pod(self, old: Tree | None, new: Tree | None) -> None:
        pod = new if new is not None else old
        if pod is None:
            return
        uid, key = pod["metadata"]["uid"], key_of(pod)
        if old is not None and old["metadata"]["uid"] != uid:
            # A cache that was filled anew shows another pod of the same name
            self._on_pod(old, None)
            old = None
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
        if nominated:
            if uid not in self.cache.nominated.get(nominated, ()) and self.cache.nominate(new, nominated):
                self._happened(POD_GONE)
        elif self.cache.nominated and ((old or new).get("status") or {}).get("nominatedNodeName") and self.cache.denominate(uid):
            self._happened(POD_GONE)
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
            self._freed(assumed)
        freed = self.cache.denominate(uid) or freed
        now = self._ctx.env.now()
        self._waiting.done(key, now)
        if freed:
            self._waiting.happened(POD_GONE, now)

    def _bound(self, old: Tree | None, new: Tree, node: str) -> None:
        meta = new["metadata"]
        uid = meta["uid"]
        known = self.cache.placed.get(uid)
        if known is not None and known[0] == node and old is not None and old["spec"] is new["spec"]:
            self.cache.place(new, node)
            before = old["metadata"]
            if (before.get("labels") is meta.get("labels") or before.get("labels") == meta.get("labels")) and (
                "deletionTimestamp" not in meta or "deletionTimestamp" in before
            ):
                return
        else:
            self.cache.place(new, node)
            freed = self.cache.denominate(uid) if self.cache.nominated else False
            if known is not None and (known[0] != node or requests_of(known[1]["spec"]) is not requests_of(new["spec"])):
                # It is elsewhere than was thought, or was resized
                freed = True
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
                self._happened(NODE_GONE)
            return
        if old is not None and not _matters(old, new):
            return
        self.cache.set_node(new)
        before = old if old is not None and old["metadata"]["uid"] == new["metadata"]["uid"] else None

        def helps(key: str, plugins: tuple[str, ...]) -> bool:
            pod = self._pods.get_key(key)
            return pod is None or before is None or may_help(plugins, pod["spec"], before, new)

        self._waiting.happened(NODE, self._ctx.env.now(), helps)

    def _on_namespace(self, old: Tree | None, new: Tree | None) -> None:
        # Terms between pods may select namespaces by their labels. Upstream looks again within five minutes
        if old is not None and new is not None and old["metadata"].get("labels") != new["metadata"].get("labels"):
            self._happened(POD_CAME)

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
        if self._lacks_claims(pod):
            # Upstream does not even let it into the queue: no condition, no event
            self._sleep(pod, (DEVICES,))
            return None
        if reference is not None:
            await self._place_group(reference, pod["metadata"]["namespace"])
            return None
        found = self._placer.assume(pod)
        if isinstance(found, Assumed):
            await self._commit(found)
        else:
            await self._fail(pod, found)
        return None

    def _lacks_claims(self, pod: Tree) -> bool:
        """Tell whether claims of a pod are not there yet."""
        return bool(pod["spec"].get("resourceClaims")) and self._placer.claims.live(pod) is None

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

    def _sleep(self, pod: Tree, events: tuple[str, ...], *, alone: bool = False, plugins: Iterable[str] = ()) -> None:
        """Let a pod sleep until something happens that may help it, `alone` where it shares its fate with no other."""
        key = key_of(pod)
        self._waiting.failed(key, self._ctx.env.now(), priority_of(pod), key if alone else self._fate(pod), events, tuple(plugins))

    def _refused_by(self, pod: Tree, plugins: Iterable[str], *, alone: bool = False) -> None:
        """Let a pod sleep until something happens that may turn what some plugins said."""
        self._sleep(pod, events_of(plugins), alone=alone, plugins=plugins)

    def _fate(self, pod: Tree) -> Hashable:
        """Return what pods have in common one of which may try for all: equal ones that may preempt, equal ones that may not, and the pods of a group."""
        reference = self._gangs.of(pod)
        if reference is not None:
            return (*reference, pod["metadata"]["namespace"])
        group = self._placer.group(pod)
        return (group, "Never") if pod["spec"].get("preemptionPolicy") == "Never" else group

    # ------------------------------------------------------------------ binding

    async def _commit(self, assumed: Assumed) -> None:
        """Write what a place needs, and bind, or wait for the volumes. What is refused is tried again later."""
        pod = assumed.pod
        step = 'PreBind plugin "DynamicResources"'
        try:
            if assumed.claims is not None:
                await self._placer.claims.write(pod, assumed.claims)
            if assumed.volumes is not None:
                step = 'PreBind plugin "VolumeBinding"'
                await self._placer.volumes.write(assumed.volumes)
                if self._placer.volumes.progress(assumed.volumes) is not True:
                    key = key_of(pod)
                    assumed.deadline = self._ctx.env.now() + TIMEOUT_SECONDS
                    self._binding[key] = assumed
                    self.queue.add_after(key, TIMEOUT_SECONDS)
                    with suppress(ApiStatus):
                        await self._reporter.nominated(pod, assumed.node)
                    return
            step = BIND
            await self._bind(assumed)
        except ApiStatus as refused:
            await self._refused(assumed, refused, step)

    async def _go_on(self, key: str, assumed: Assumed) -> float | None:
        plan = assumed.volumes
        progress = self._placer.volumes.progress(plan) if plan is not None else True
        left = assumed.deadline - self._ctx.env.now()
        if progress is False and left > 1e-6:
            return None
        del self._binding[key]
        if progress is not True:
            self._placer.forget(assumed)
            self._freed(assumed)
            pod = self._pods.get_key(key)
            text = progress or "binding volumes: context deadline exceeded"
            if pod is not None and self._wants_node(pod):
                self._again(pod)
                await self._reporter.failed(pod, f'running PreBind plugin "VolumeBinding": {text}', "")
            return None
        try:
            await self._bind(assumed)
        except ApiStatus as refused:
            await self._refused(assumed, refused, BIND)
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

    async def _refused(self, assumed: Assumed, refused: ApiStatus, step: str) -> None:
        """Give the place up after a write was refused or lost; the pod tries again. Where it is nobody's race, say so."""
        pod = assumed.pod
        meta, key = pod["metadata"], key_of(pod)
        live = self._pods.get_key(key)
        if live is not None and live["metadata"]["uid"] == meta["uid"] and live["spec"].get("nodeName"):
            self._placer.settle(assumed)
            return
        self._placer.forget(assumed)
        self._freed(assumed)
        # Bound by somebody else, or going: its own event settles it; else it tries again
        if live is not None and self._wants_node(live):
            self._again(live)
            if not isinstance(refused, Conflict | NotFound):
                with suppress(ApiStatus):
                    await self._reporter.broken(live, f"running {step}: {refused.message}", sure=refused.code < LOST)

    def _again(self, pod: Tree) -> None:
        """Try a pod again whose binding failed, but not before its back-off: what refused it may be newer than this cache."""
        self._sleep(pod, (NODE,), alone=True)
        self._waiting.wake(key_of(pod), self._ctx.env.now(), busy=True)

    # ------------------------------------------------------------------ failing

    async def _fail(self, pod: Tree, decision: Decision, *, asleep: bool = False, siblings: Collection[str] = (), barred: str = "") -> None:
        """Say why a pod has no node, make room for it if it may, but not at the cost of its `siblings`, and let it sleep, unless it is `asleep` already.

        `barred` says why it must not preempt.
        """
        if (
            pod["spec"].get("resourceClaims")
            and decision.rejection is None
            and any(each.plugin == "DynamicResources" for each in decision.refusals.values())
        ):
            if not asleep:
                # Before anything is written: what comes of it may be seen before the answer
                self._refused_by(pod, decision.plugins())
                asleep = True
            if await self._placer.claims.deallocate(self._placer.claims.live(pod) or []):
                decision.message = f"{decision.message} deallocation of ResourceClaim completed"
                await self._reporter.failed(pod, decision.message, None)
                return
        outcome = self._placer.preempt(pod, decision, siblings, barred=barred)
        candidate = outcome.candidate
        if candidate is not None:
            freed = self.cache.nominate(pod, candidate.node)
        else:
            freed = not outcome.keep and self.cache.denominate(pod["metadata"]["uid"])
        if freed:
            self._happened(POD_GONE)
        if asleep:
            self._waiting.also(key_of(pod), outcome.plugins)
        else:
            self._refused_by(pod, decision.plugins() | dict.fromkeys(outcome.plugins), alone=candidate is not None)
        if candidate is None:
            await self._reporter.failed(pod, decision.message, None if outcome.keep else "")
            return
        await self._reporter.failed(pod, decision.message, candidate.node)
        await self._make_room(pod, candidate)
        if not candidate.victims:
            self._waiting.wake(key_of(pod), self._ctx.env.now())

    async def _make_room(self, pod: Tree, candidate: Candidate) -> None:
        """Evict the victims; pods of lower priority lose their nomination to the node."""
        node, mine = candidate.node, priority_of(pod)
        for other in [each for each in self.cache.nominated.get(node, {}).values() if priority_of(each) < mine]:
            self.cache.denominate(other["metadata"]["uid"])
            self._waiting.wake(key_of(other), self._ctx.env.now())
            await self._reporter.nominated(self._pods.get_key(key_of(other)) or other, None)
        for victim in candidate.victims:
            if (going := self._give_way(victim)) is not None:
                await self._reporter.evict(pod, going, node)

    def _give_way(self, victim: Tree) -> Tree | None:
        """Return a victim that is to be evicted, as it is now: somebody else may have deleted it. None: it was not bound yet, has lost its place and tries again."""
        held = self._binding.pop(key_of(victim), None)
        if held is not None:
            self._placer.forget(held)
            self._freed(held)
            self.queue.add(key_of(victim), priority_of(victim))
            return None
        live = self._pods.get_key(key_of(victim))
        return live if live is not None and live["metadata"]["uid"] == victim["metadata"]["uid"] else victim

    # ------------------------------------------------------------------ pod groups

    async def _place_group(self, reference: tuple[Resource, str], namespace: str) -> None:
        """Place all pods of a group that have no node, against one state of the cluster: enough of them, or none."""
        gang = self._gangs.gang(reference, namespace)
        members = self._gangs.members(reference, namespace)
        todo = sorted((pod for pod in members if self._wants_node(pod) and not self._lacks_claims(pod)), key=turn)
        text = gangs.short(gang, reference[1], members)
        if gang is None or text:
            for pod in todo:
                self._sleep(pod, (GROUP,))
            for pod in todo:
                await self._reporter.failed(pod, text, None, quiet=True)
            return
        there = gangs.started(members) + sum(
            1 for pod in gangs.counted(members) if not pod["spec"].get("nodeName") and pod["metadata"]["uid"] in self.cache.placed
        )
        wanted = gang.minimum - there
        trial = self._groups.assume(gang, todo, members)
        if self._gangs.as_wholes and gang.tree is not None:
            if enough(trial, wanted):
                await self._start_group(gang, trial)
            elif todo:
                await self._preempt_as_whole(gang, gang.tree, trial, todo, wanted)
            return
        rescue = self._groups.rescue(trial, wanted) if trial.failed else None
        if rescue is not None and not rescue.candidates and len(trial.placed) >= wanted:
            trial, rescue = self._groups.assume(gang, todo, members), None
        if rescue is None and len(trial.placed) >= wanted:
            await self._start_group(gang, trial)
            return
        await self._fail_group(gang, reference[1], trial, rescue or self._groups.rescue(trial, wanted), wanted)

    async def _start_group(self, gang: Gang, trial: Trial) -> None:
        """Bind the pods of a group that have a place, and let the others wait."""
        bar = self._gangs.bar(gang)
        for pod, decision in trial.failed:
            # Before anything is written, lest what happens meanwhile is missed
            self._refused_by(pod, decision.plugins())
        if trial.failed and bar:
            # Their group preempts for them when they try again by themselves
            self._waiting.wake(key_of(trial.failed[0][0]), self._ctx.env.now(), busy=True)
        for assumed in trial.placed:
            # One by one: what is lost of one keeps nobody else from being bound
            await self._commit(assumed)
        siblings = [each.pod["metadata"]["uid"] for each in trial.placed]
        for pod, decision in trial.failed:
            await self._fail(pod, decision, asleep=True, siblings=siblings, barred=bar)
        if gang.tree is not None:
            await self._reporter.group(gang.tree, scheduled=True)

    async def _preempt_as_whole(self, gang: Gang, group: Tree, trial: Trial, todo: list[Tree], wanted: int) -> None:
        """Nothing of a group is bound: make room for it as a whole, anywhere in the cluster, or say why not.

        As upstream, only those places are kept for its pods that they would have now already: whose room is yet to be made are nominated nowhere.
        """
        nodes = {each.pod["metadata"]["uid"]: each.node for each in trial.placed}
        self._groups.forget(trial)
        relief = self._wholes.find(gang, group, todo, wanted)
        now = self._ctx.env.now()
        freed = False
        for pod in todo:
            uid = pod["metadata"]["uid"]
            if uid in nodes and not relief.text:
                freed = self.cache.nominate(pod, nodes[uid]) or freed
            elif not relief.ongoing:
                freed = self.cache.denominate(uid) or freed
        if freed:
            self._happened(POD_GONE)
        refused = {name: None for _, decision in trial.failed for name in decision.plugins()}
        events = tuple(dict.fromkeys((GROUP, *events_of(refused | relief.plugins))))
        for pod in todo:
            self._sleep(pod, events)
        bar = self._gangs.bar(gang)
        for pod, decision in trial.failed:
            self._placer.preempt(pod, decision, barred=bar)
        texts = {pod["metadata"]["uid"]: decision.message for pod, decision in trial.failed}
        for pod in todo:
            uid = pod["metadata"]["uid"]
            node = None if relief.ongoing else "" if relief.text else nodes.get(uid, "")
            await self._reporter.failed(pod, texts.get(uid, gangs.UNSCHEDULABLE), node)
        message = f"{gangs.UNSCHEDULABLE}, {relief.text}" if relief.text else gangs.UNSCHEDULABLE
        await self._evict_for(group, todo[0], relief.victims)
        await self._reporter.group(group, scheduled=False, message=message, fresh=True)
        if not relief.text and not relief.victims:
            # It fits after all, in another order: not before its back-off, lest it goes round in circles
            self._waiting.wake(key_of(todo[0]), now, busy=True)

    async def _evict_for(self, group: Tree, first: Tree, victims: Iterable[Tree]) -> None:
        """Evict the victims of a group, all of them: what is lost of one keeps no other from going, lest a unit goes in part. Raise the first refusal then."""
        scheduler = first["spec"].get("schedulerName", DEFAULT_SCHEDULER)
        problem: ApiStatus | None = None
        for victim in victims:
            going = self._give_way(victim)
            try:
                if going is not None:
                    await self._reporter.evict(group, going, "cluster", kind="podgroup", scheduler=scheduler)
            except ApiStatus as refused:
                problem = problem or refused
        if problem is not None:
            raise problem

    async def _fail_group(self, gang: Gang, name: str, trial: Trial, rescue: Rescue, wanted: int) -> None:
        """Nothing of a group is bound: it waits for preemption to make room, or for something to happen."""
        events = tuple(
            dict.fromkeys((GROUP, *events_of(dict.fromkeys(each for _, decision in trial.failed for each in decision.plugins()) | rescue.plugins)))
        )
        pods = trial.pods()
        freed = False
        for pod in pods:
            uid = pod["metadata"]["uid"]
            node = rescue.nodes.get(uid)
            if node is not None:
                freed = self.cache.nominate(pod, node) or freed
            elif uid not in rescue.kept:
                freed = self.cache.denominate(uid) or freed
        if freed:
            self._happened(POD_GONE)
        for pod in pods:
            self._sleep(pod, events)
        for pod in pods:
            uid = pod["metadata"]["uid"]
            node = rescue.nodes.get(uid, None if uid in rescue.kept else "")
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
