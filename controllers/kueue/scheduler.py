"""Kueue's scheduler: runs cycles when something may have changed, and writes what they decide.

A cycle is decided without awaiting (see `cycle`); its reservations are assumed in the cache before the first write, so the next cycle may start while the
objects lag behind. A write that fails takes the assumption back; one of which the answer was lost is looked up before anything else happens to the Workload.
"""

from __future__ import annotations

import math
from collections import OrderedDict

from kubemini.api.resources import WORKLOADS, Resource
from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.controllers.kueue import conditions, reservation
from kubemini.controllers.kueue.admission_fairness import AdmissionFairness
from kubemini.controllers.kueue.amounts import shown
from kubemini.controllers.kueue.conditions import Draft
from kubemini.controllers.kueue.cycle import Cycle, Entry, Outcome, Requeue
from kubemini.controllers.kueue.hub import Hub
from kubemini.controllers.kueue.metrics import Metrics
from kubemini.controllers.kueue.preemption import WORDS, Target
from kubemini.controllers.kueue.topology.places import TopologyPlaces
from kubemini.controllers.kueue.visibility import visibility_api
from kubemini.controllers.kueue.why import Attempt
from kubemini.controllers.kueue.workloads import Info, holding
from kubemini.controllers.kueue.writing import write_status
from kubemini.machinery.errors import ApiStatus, NotFound
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.keys import split_key
from kubemini.runtime.recorder import shortened

CYCLE = "cycle"
BATCH_SECONDS, BATCH_PER_WAITING, BATCH_LIMIT = 0.1, 20e-6, 1.0
"""Releases of quota are answered together this long after the first one, longer where many wait (upstream: always 1 s)."""
AGAIN, AGAIN_SECONDS = "again:", 0.1
"""A ClusterQueue whose Workload could not preempt is tried again after so long: the cache is behind, or the API refuses."""
REMEMBERED = 8192


class Scheduler(Controller):
    """The key is the cycle; Workloads whose write went wrong are looked up under ``verify:KEY``, and ``again:QUEUE`` wakes a ClusterQueue."""

    name = "kueue-scheduler"
    component = "kueue-admission"

    def __init__(self, hub: Hub) -> None:
        super().__init__()
        self.hub = hub
        self.why: OrderedDict[str, Attempt] = OrderedDict()
        """The last attempt of each Workload, latest last: what was tried and why it was rejected."""
        self.cycles = 0
        self._metrics = Metrics(hub)
        self.families = self._metrics.all()
        if hub.config.on("VisibilityOnDemand"):
            self.apis = (visibility_api(hub),)

    def setup(self, ctx: Context) -> None:
        """Take part in the hub."""
        self._ctx = ctx
        self.hub.attach(ctx)
        self.hub.on_due = self._due
        self.hub.workloads.on_change(self._metrics.on_workload)
        if self.hub.config.on("TopologyAwareScheduling"):
            places = TopologyPlaces(self.hub)
            places.attach(ctx)
            self.hub.places = places

    def decision_about(self, resource: Resource, key: str) -> Tree | None:
        """Return the last attempt of a Workload as JSON."""
        attempt = self.why.get(key) if resource.storage == WORKLOADS.storage else None
        return attempt.tree() if attempt is not None else None

    def _due(self, urgent: bool) -> None:
        if urgent:
            self.queue.add(CYCLE)
        else:
            self.queue.add_after(CYCLE, min(BATCH_SECONDS + len(self.hub.waits_in) * BATCH_PER_WAITING, BATCH_LIMIT))

    async def reconcile(self, key: str) -> float | None:
        """Run one cycle and write its decisions."""
        if key.startswith(AGAIN):
            self.hub.wake([key.removeprefix(AGAIN)])
            return None
        if key != CYCLE:
            await self._verify(key.removeprefix("verify:"))
            return None
        hub = self.hub
        heads = hub.heads()
        if not heads:
            return None
        self.cycles += 1
        began = self._ctx.env.now()
        entries = Cycle(hub).run(heads)
        progress = any(self._changes_something(entry) for entry in entries)
        for entry in entries:
            self._remember(entry)
            if entry.outcome is Outcome.ADMITTED:
                # The next cycle may come before the event that says so, and prefers to preempt the newest
                entry.info.reserved_at = self._ctx.env.now()
            if entry.outcome is Outcome.ADMITTED and hub.admission_fairness is not None:
                self._charge(entry, hub.admission_fairness)
            if entry.outcome is Outcome.ADMITTED or entry.outcome is Outcome.DROPPED:
                hub.dequeue(entry.info.key)
            else:
                self._requeue(entry, progress=progress)
        self._metrics.tried(self._ctx.env.now() - began, admitted=any(entry.outcome is Outcome.ADMITTED for entry in entries))
        if hub.ready or hub.waking:
            self.queue.add(CYCLE)
        for entry in entries:
            if entry.outcome is Outcome.ADMITTED:
                await self._admit(entry)
            elif entry.outcome is Outcome.PREEMPTING:
                await self._preempt(entry)
        for entry in entries:
            if entry.outcome not in (Outcome.ADMITTED, Outcome.DROPPED):
                await self._refuse(entry)
        return None

    def _charge(self, entry: Entry, fairness: AdmissionFairness) -> None:
        fairness.charge(entry.info.local_queue, entry.info.key, entry.info.requests, entry.queue)
        self.hub.on_local_queue(entry.info.local_queue)

    # ------------------------------------------------------------------ queues

    def _changes_something(self, entry: Entry) -> bool:
        """Tell whether the next cycle finds another world because of an entry: it takes quota, or evicts whom nobody has evicted."""
        if entry.outcome is Outcome.PREEMPTING:
            return any(not self._going(target.info) for target in entry.targets)
        return entry.outcome is Outcome.ADMITTED

    def _going(self, info: Info) -> bool:
        return info.evicted or self.hub.preempting.get(info.key) == info.uid

    def _requeue(self, entry: Entry, *, progress: bool) -> None:
        """Put a loser back. One that lost against another entry is tried again at once, but waits when that would only lose in the same way again."""
        info, queue = entry.info, entry.queue
        pending = self.hub.pending.get(info.queue)
        if pending is None:
            return
        info.last = entry.position(self.hub.cache.allocation(queue))
        if info.last is not None and info.last.untried() and entry.requeue in (Requeue.NO_FIT, Requeue.NO_CANDIDATES):
            self.hub.requeue(info, park=False)
            return
        if entry.requeue is Requeue.PENDING_PREEMPTION and not queue.strict:
            pending.prefer(info.key)
        immediate = entry.requeue in (Requeue.FAILED_AFTER_NOMINATION, Requeue.PENDING_PREEMPTION)
        lost_for_now = entry.requeue is Requeue.FAILED_AFTER_NOMINATION and (entry.outcome is Outcome.BLOCKED or not progress)
        waits = entry.requeue is Requeue.PENDING_PREEMPTION or lost_for_now or (queue.strict and not immediate)
        park = not immediate and (not queue.strict or entry.requeue is Requeue.NAMESPACE_MISMATCH)
        fits_nowhere = entry.requeue in (Requeue.NO_FIT, Requeue.NO_CANDIDATES)
        self.hub.requeue(info, park=park, why=reservation.coarse(self.hub.config, entry.reason) if fits_nowhere else "")
        if waits and not park and info.key in pending.entries:
            pending.blocked = info.key

    def _remember(self, entry: Entry) -> None:
        key = entry.info.key
        self.why.pop(key, None)
        self.why[key] = Attempt.of(entry, self._ctx.env.stamp())
        if len(self.why) > REMEMBERED:
            self.why.popitem(last=False)

    def explain(self, key: str) -> Attempt | None:
        """Return the last attempt of a Workload (``namespace/name``), or None."""
        return self.why.get(key)

    # ------------------------------------------------------------------ admitting

    async def _admit(self, entry: Entry) -> None:
        info, queue = entry.info, entry.queue.name
        hub, env = self.hub, self._ctx.env
        admission = entry.assignment.admission(queue)
        flavors = {flavor for each in admission["podSetAssignments"] for flavor in (each.get("flavors") or {}).values()}
        required = entry.queue.required_checks(flavors)
        turned = False

        def change(draft: Draft) -> bool:
            nonlocal turned
            tree = draft.obj
            if conditions.reserved(tree) or conditions.finished(tree) or not conditions.active(tree) or "deletionTimestamp" in tree["metadata"]:
                return False
            if tree["spec"] != info.tree["spec"]:
                return False
            reservation.reserve(draft, admission, queue)
            turned = reservation.sync_admitted(draft, hub.config, required, env.now())
            return True

        before, since = info.tree, hub.queued_since(info.tree)
        try:
            stored = await write_status(self._ctx, before, change)
        except ApiStatus:
            self.queue.add(f"verify:{info.key}")
            return
        if stored is None:
            await self._verify(info.key)
            return
        if info.key in hub.cache.assumed:
            info.tree = stored
        # Upstream counts from a stamp cut to whole seconds and rounds: one wait reads as two numbers, by chance. This is the likelier one, always
        waited = math.ceil(env.now() - since)
        considered = entry.assignment.considered()
        more = f"; Flavors considered: {considered}" if considered else ""
        self._ctx.recorder.event(
            stored, "Normal", "QuotaReserved", f"Quota reserved in ClusterQueue {queue}, wait time since queued was {waited}s{more}"
        )
        if turned:
            self._ctx.recorder.event(stored, "Normal", "Admitted", f"Admitted by ClusterQueue {queue}, wait time since reservation was 0s")
        if entry.replaced is not None:
            await self._finish_slice(entry.replaced, stored)

    async def _finish_slice(self, old: Info, new: Tree) -> None:
        message = f"Replaced to accommodate a workload (UID: {new['metadata']['uid']}, JobUID: {_job_uid(new)}) due to workload slice aggregation"

        def change(draft: Draft) -> bool:
            if conditions.finished(draft.obj):
                return False
            draft.mark(names.FINISHED, True, names.WORKLOAD_SLICE_REPLACED, message)
            return True

        stored = await write_status(self._ctx, old.tree, change)
        if stored is not None:
            self._ctx.recorder.event(stored, "Normal", names.WORKLOAD_SLICE_REPLACED, message)

    async def _verify(self, key: str) -> None:
        """Look at what became of a reservation: keep the assumption, or take it back and queue the Workload again."""
        hub = self.hub
        info = hub.cache.assumed.get(key)
        if info is None:
            return
        namespace, name = split_key(key)
        try:
            tree = await self._ctx.client.get(WORKLOADS, name, namespace)
        except NotFound:
            hub.forget(key)
            return
        if hub.cache.assumed.get(key) is not info:
            return
        if tree["metadata"]["uid"] == info.uid and conditions.reserved(tree) and conditions.active(tree) and not conditions.finished(tree):
            kept = holding(tree, boost=hub.config.on("PriorityBoost"))
            hub.cache.assume(kept)
            return
        hub.forget(key)
        if tree["metadata"]["uid"] == info.uid:
            hub.enqueue(tree)

    # ------------------------------------------------------------------ preempting

    async def _preempt(self, entry: Entry) -> None:
        for target in entry.targets:
            info = target.info
            if self._going(info):
                continue
            self.hub.preempting[info.key] = info.uid
            try:
                await self._evict(entry, target)
            except ApiStatus:
                self._not_evicted(entry, info)

    def _not_evicted(self, entry: Entry, info: Info) -> None:
        self.hub.preempting.pop(info.key, None)
        self.queue.add_after(f"{AGAIN}{entry.queue.name}", AGAIN_SECONDS)

    async def _evict(self, entry: Entry, target: Target) -> None:
        hub, env, info = self.hub, self._ctx.env, target.info
        preemptor = entry.info
        holder = hub.cache.queues.get(info.queue)
        paths = f"preemptor path: {entry.queue.node.path()}; preemptee path: {holder.node.path() if holder is not None else ''}"
        message = f"Preempted to accommodate a workload (UID: {preemptor.uid}, JobUID: {_job_uid(preemptor.tree) or 'UNKNOWN'}) due to {WORDS[target.reason]}; {paths}"
        told = False

        def change(draft: Draft) -> bool:
            nonlocal told
            tree = draft.obj
            if not conditions.reserved(tree) or conditions.finished(tree) or conditions.evicted(tree):
                return False
            told = reservation.evict(draft, names.PREEMPTED, message, "", env.stamp())
            draft.mark(names.PREEMPTED, True, target.reason, message, observed=False)
            return True

        stored = await write_status(self._ctx, info.tree, change)
        if stored is None:
            self._not_evicted(entry, info)
            return
        self._metrics.preempted(entry.queue.name, target.reason)
        priorities = f"preemptor effective priority: {_priority(preemptor)}; preemptee effective priority: {_priority(info)}"
        recorder = self._ctx.recorder
        recorder.event(stored, "Normal", "Preempted", f"{message}; {priorities}")
        if told:
            recorder.event(stored, "Normal", reservation.eviction_event(names.PREEMPTED), message)
        recorder.event(
            preemptor.tree,
            "Normal",
            "PreemptedWorkload",
            f"Preempted workload {info.key} (UID: {info.uid}) in ClusterQueue {info.queue}; {priorities}",
        )

    # ------------------------------------------------------------------ refusing

    async def _refuse(self, entry: Entry) -> None:
        info, hub = entry.info, self.hub
        reason = reservation.coarse(hub.config, entry.reason)
        requests = [
            {"name": each.name, "resources": {resource: shown(resource, value) for resource, value in sorted(each.total.items())}}
            for each in info.requests
        ]
        news = False

        def change(draft: Draft) -> bool:
            nonlocal news
            tree = draft.obj
            if conditions.reserved(tree) or conditions.finished(tree) or not conditions.active(tree):
                return False
            news = reservation.refuse(draft, reason, entry.message)
            reservation.sync_admitted(draft, hub.config, (), self._ctx.env.now())
            draft.set("resourceRequests", requests)
            return True

        fresh = hub.workloads.get_key(info.key)
        if fresh is None or fresh["metadata"]["uid"] != info.uid:
            return
        stored = await write_status(self._ctx, fresh, change)
        if stored is not None and (news or reason == names.MISCONFIGURED):
            # The controller may have written of a misfit before anybody tried it: that is told all the same
            self._ctx.recorder.event(stored, "Warning", reason, shortened(entry.message))


def _job_uid(workload: Tree) -> str:
    found: str = (workload["metadata"].get("labels") or {}).get(names.JOB_UID, "")
    return found


def _priority(info: Info) -> str:
    base = info.tree["spec"].get("priority") or 0
    return f"{info.priority} (base: {base}, boost: {info.priority - base})"
