"""The Workload loop: everything about a Workload that is neither scheduling nor its job. One pass, in upstream's order, ends in at most one write.

Mirrors Kueue's ``pkg/controller/core/workload_controller.go``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kubemini.api.resources import ADMISSION_CHECKS, CLUSTER_QUEUES, NAMESPACES, WORKLOAD_PRIORITY_CLASSES, WORKLOADS
from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.controllers.kueue import conditions, reservation
from kubemini.controllers.kueue.conditions import Draft
from kubemini.controllers.kueue.finalizers import without_finalizer
from kubemini.controllers.kueue.hub import Hub
from kubemini.controllers.kueue.requests import NAMESPACE_MISMATCH, misfit
from kubemini.controllers.kueue.workloads import cluster_queue, gated, on_hold, pod_sets_of
from kubemini.controllers.kueue.writing import update_workload
from kubemini.machinery.errors import NotFound
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.env import from_stamp, to_stamp
from kubemini.runtime.keys import key_of, split_key

SCHEDULED = (
    names.NO_MATCHING_FLAVOR,
    names.WAITING_FOR_QUOTA,
    names.EXCEEDS_MAX_QUOTA,
    names.TOPOLOGY_PLACEMENT_FAILED,
    names.WAITING_FOR_PREEMPTED_WORKLOADS,
    names.WAITING_FOR_PODS_READY,
    names.PENDING_EVALUATION,
)
"""Reasons that only the scheduler gives, and that stay until it says something else."""
BYPASSING = (names.DEACTIVATED, names.PENDING_EVALUATION, names.SUSPENDED, names.PENDING)
"""Reasons that give way to what was found of a Workload of the same shape: nobody has tried this one since."""


@dataclass(slots=True)
class _Pass:
    """One pass: the draft, events to send after the write, and when to look again."""

    draft: Draft
    events: list[tuple[str, str, str]]
    again: float | None = None

    def event(self, type_: str, reason: str, message: str) -> None:
        self.events.append((type_, reason, message))

    def later(self, seconds: float) -> None:
        self.again = seconds if self.again is None else min(self.again, seconds)


class WorkloadController(Controller):
    """Keys are Workloads."""

    name = "kueue-workload"
    component = "kueue-workload-controller"

    def __init__(self, hub: Hub) -> None:
        super().__init__()
        self.hub = hub
        self.config = hub.config

    def setup(self, ctx: Context) -> None:
        """Follow Workloads and what decides about them."""
        self._ctx = ctx
        self.hub.attach(ctx)
        self._workloads = self.hub.workloads
        self._local_queues = self.hub.local_queues
        self._cluster_queues = ctx.informer(CLUSTER_QUEUES)
        self._workloads.add_index("priorityClass", _priority_class)
        self._workloads.on_change(self._on_workload)
        self._local_queues.on_change(self._on_local_queue)
        self._cluster_queues.on_change(self._on_cluster_queue)
        self._classes = ctx.informer(WORKLOAD_PRIORITY_CLASSES)
        self._classes.on_change(self._on_class)
        ctx.informer(ADMISSION_CHECKS).on_change(self._on_check)
        ctx.informer(NAMESPACES)

    def _on_workload(self, old: Tree | None, new: Tree | None) -> None:
        if new is not None:
            self.queue.add(key_of(new))
            if old is not None and gated(old) and not gated(new) and self.config.on("AdmissionGatedBy"):
                self._ctx.recorder.event(new, "Normal", "AdmissionGateCleared", "Admission gate cleared, workload is now admissible")

    def _of_local_queue(self, key: str) -> None:
        for workload in self._workloads.by_index("queue", key):
            if not conditions.finished(workload):
                self.queue.add(key_of(workload))

    def _on_local_queue(self, old: Tree | None, new: Tree | None) -> None:
        tree = new if new is not None else old
        if tree is not None and (old is None or new is None or old["spec"] != new["spec"] or "deletionTimestamp" in new["metadata"]):
            self._of_local_queue(key_of(tree))

    def _on_cluster_queue(self, old: Tree | None, new: Tree | None) -> None:
        tree = new if new is not None else old
        if tree is None or (old is not None and new is not None and old["spec"] == new["spec"] and _condition_status(old) == _condition_status(new)):
            return
        name = tree["metadata"]["name"]
        for local in self._local_queues.by_index("clusterQueue", name):
            self._of_local_queue(key_of(local))
        for workload in self._workloads.by_index("holder", name):
            self.queue.add(key_of(workload))

    def _on_class(self, old: Tree | None, new: Tree | None) -> None:
        if new is not None and (old is None or old.get("value") != new.get("value")):
            for workload in self._workloads.by_index("priorityClass", new["metadata"]["name"]):
                self.queue.add(key_of(workload))

    def _on_check(self, old: Tree | None, new: Tree | None) -> None:
        tree = new if new is not None else old
        if tree is None or (old is not None and new is not None and conditions.is_true(old, names.ACTIVE) == conditions.is_true(new, names.ACTIVE)):
            return
        name = tree["metadata"]["name"]
        for state in self.hub.cache.queues.values():
            if any(check == name for check, _ in state.checks):
                for local in self._local_queues.by_index("clusterQueue", state.name):
                    self._of_local_queue(key_of(local))

    # ------------------------------------------------------------------ the pass

    async def reconcile(self, key: str) -> float | None:
        """Take one pass over a Workload."""
        tree = self._workloads.get_key(key)
        if tree is None:
            return None
        if await self._orphaned(tree):
            return None
        if conditions.finished(tree):
            return await self._retain(tree)
        if await self._follow_class(tree):
            return None
        now = self._ctx.env.now()
        this = _Pass(Draft(tree, self._ctx.env.stamp()), [])
        spec_change = self._steps(tree, this, now)
        if spec_change is not None:
            await update_workload(self._ctx, spec_change)
            return this.again
        if this.draft.changed:
            stored = await self._ctx.client.update_status(WORKLOADS, this.draft.tree())
            for type_, reason, message in this.events:
                self._ctx.recorder.event(stored, type_, reason, message)
        return this.again

    async def _orphaned(self, tree: Tree) -> bool:
        """Finish or release a Workload whose job is gone. Tell whether the pass is over."""
        meta = tree["metadata"]
        if meta.get("ownerReferences"):
            return False
        if names.JOB_UID in (meta.get("labels") or {}) and self.config.on("FinishOrphanedWorkloads") and not conditions.finished(tree):
            draft = Draft(tree, self._ctx.env.stamp())
            draft.mark(names.FINISHED, True, names.OWNER_NOT_FOUND, reservation.OWNER_GONE)
            await self._ctx.client.update_status(WORKLOADS, draft.tree())
            return True
        if "deletionTimestamp" in meta or (conditions.finished(tree) and names.JOB_UID in (meta.get("labels") or {})):
            smaller = without_finalizer(tree, names.RESOURCE_IN_USE)
            if smaller is not None:
                await update_workload(self._ctx, smaller)
                return True
        return "deletionTimestamp" in meta

    async def _retain(self, tree: Tree) -> float | None:
        keep = self.config.keep_finished
        condition = conditions.find(tree, names.FINISHED)
        if keep is None or condition is None:
            return None
        left = from_stamp(condition["lastTransitionTime"]) + keep - self._ctx.env.now()
        if left > 0:
            return left
        namespace, name = split_key(key_of(tree))
        free = without_finalizer(tree, names.RESOURCE_IN_USE)
        try:
            if free is not None:
                tree = await update_workload(self._ctx, free)
            if "deletionTimestamp" in tree["metadata"]:
                return None
            await self._ctx.client.delete(WORKLOADS, name, namespace=namespace, uid=tree["metadata"]["uid"])
        except NotFound:
            return None
        self._ctx.recorder.event(tree, "Normal", "Deleted", "Deleted finished workload due to elapsed retention")
        return None

    async def _follow_class(self, tree: Tree) -> bool:
        """Write the value of the WorkloadPriorityClass where it has changed."""
        for name in _priority_class(tree):
            found = self._classes.get(name)
            if found is not None and found.get("value") != tree["spec"].get("priority"):
                await update_workload(self._ctx, {**tree, "spec": {**tree["spec"], "priority": found["value"]}})
                return True
        return False

    def _steps(self, tree: Tree, this: _Pass, now: float) -> Tree | None:
        """Walk through upstream's steps. Return an object to write instead of a status where the spec has to change."""
        draft = this.draft
        delayed = self._retry_delay(tree, draft)
        if delayed:
            return None
        active = conditions.active(tree)
        if active:
            target = conditions.find(tree, names.DEACTIVATION_TARGET)
            if target is not None and target["status"] == "True":
                return {**tree, "spec": {**tree["spec"], "active": False}}
            if self._back_off(tree, this, now):
                return None
        elif not conditions.evicted(tree):
            self._deactivate(this)
            self._sync(this, tree, now)
            return None
        elif draft.get("requeueState") is not None:
            self._clear_requeuing(draft)
            return None
        local = self._local_queues.get(tree["spec"].get("queueName", ""), tree["metadata"]["namespace"])
        if self._restarted(draft, local):
            self._sync(this, tree, now)
            return None
        self._gate(tree, this)
        if self._sync_checks(tree, draft, local):
            self._sync(this, tree, now)
            return None
        if not conditions.reserved(tree):
            self._why_pending(tree, draft, local)
            self._sync(this, tree, now)
            return None
        if self._sync(this, tree, now):
            return None
        self._reserving(tree, this, local, now)
        return None

    # ------------------------------------------------------------------ steps

    def _retry_delay(self, tree: Tree, draft: Draft) -> bool:
        """Put a Workload off for as long as its checks in Retry ask for."""
        until = 0.0
        for check in draft.get("admissionChecks") or ():
            seconds = check.get("requeueAfterSeconds")
            if check["state"] == reservation.RETRY and seconds:
                until = max(until, from_stamp(check["lastTransitionTime"]) + seconds)
        if until <= self._ctx.env.now():
            return False
        state = draft.get("requeueState") or {}
        at = state.get("requeueAt")
        if at is not None and from_stamp(at) >= int(until):
            return False
        draft.set("requeueState", {**state, "requeueAt": to_stamp(until)})
        return draft.changed

    def _back_off(self, tree: Tree, this: _Pass, now: float) -> bool:
        """Wait for requeueAt, and queue again what may be. Tell whether the pass is over."""
        draft = this.draft
        state = draft.get("requeueState") or {}
        at = state.get("requeueAt")
        requeued = draft.condition(names.REQUEUED)
        blocked = requeued["reason"] if requeued is not None and requeued["status"] == "False" else ""
        if at is not None:
            left = from_stamp(at) - now
            if left > 0:
                this.later(left)
                return True
            rest = {key: value for key, value in state.items() if key != "requeueAt"}
            draft.set("requeueState", rest or None)
        if blocked == names.DEACTIVATED:
            draft.mark(names.REQUEUED, True, names.REACTIVATED, "The workload was reactivated")
        elif blocked in (names.EVICTED_BY_PODS_READY_TIMEOUT, names.EVICTED_BY_ADMISSION_CHECK):
            draft.mark(names.REQUEUED, True, names.BACKOFF_FINISHED, "The workload backoff was finished")
        if draft.changed:
            if not conditions.reserved(tree):
                self._why_pending(tree, draft, self._local_queues.get(tree["spec"].get("queueName", ""), tree["metadata"]["namespace"]))
            self._sync(this, tree, now)
            return not self._overdue(tree)
        return False

    @staticmethod
    def _overdue(tree: Tree) -> bool:
        return any(check["state"] == reservation.RETRY for check in (tree.get("status") or {}).get("admissionChecks") or ())

    def _deactivate(self, this: _Pass) -> None:
        target = this.draft.condition(names.DEACTIVATION_TARGET)
        message, cause = "The workload is deactivated", ""
        if target is not None:
            cause = target["reason"]
            message = f"{message} due to {target['message']}"
        self._clear_requeuing(this.draft)
        self._evict(this, names.DEACTIVATED, message, cause)

    @staticmethod
    def _clear_requeuing(draft: Draft) -> None:
        draft.drop(names.DEACTIVATION_TARGET)
        if draft.get("requeueState") is not None:
            draft.set("requeueState", None)

    def _restarted(self, draft: Draft, local: Tree | None) -> bool:
        requeued = draft.condition(names.REQUEUED)
        if requeued is None or requeued["status"] == "True" or local is None:
            return False
        if requeued["reason"] == names.EVICTED_BY_LOCAL_QUEUE_STOPPED and not _stopped(local):
            return draft.mark(names.REQUEUED, True, names.LOCAL_QUEUE_RESTARTED, "The LocalQueue was restarted after being stopped")
        queue = self._cluster_queues.get(local["spec"].get("clusterQueue", ""))
        if requeued["reason"] == names.EVICTED_BY_CLUSTER_QUEUE_STOPPED and queue is not None and not _stopped(queue):
            return draft.mark(names.REQUEUED, True, names.CLUSTER_QUEUE_RESTARTED, "The ClusterQueue was restarted after being stopped")
        return False

    def _gate(self, tree: Tree, this: _Pass) -> None:
        holders = gated(tree)
        condition = this.draft.condition(names.QUOTA_RESERVED)
        is_gated = condition is not None and condition["status"] == "False" and condition["reason"] == names.ADMISSION_GATED
        if holders and not conditions.reserved(tree):
            if this.draft.mark(names.QUOTA_RESERVED, False, names.ADMISSION_GATED, f"Admission is gated by: {holders}") and not is_gated:
                this.event("Normal", names.ADMISSION_GATED, f"Workload admission is gated by: {holders}")
        elif not holders and is_gated:
            message = "AdmissionGatedBy cleared, waiting for quota reservation"
            this.draft.mark(names.QUOTA_RESERVED, False, reservation.pending_reason(self.config), message)

    def _required(self, tree: Tree, local: Tree | None) -> Sequence[str] | None:
        """Return the names of the checks that a Workload needs, or None where its ClusterQueue is unknown."""
        name = cluster_queue(tree) or (local["spec"].get("clusterQueue", "") if local is not None else "")
        state = self.hub.cache.queues.get(name)
        if state is None:
            return None
        if not cluster_queue(tree):
            return state.required_checks(None)
        admission = tree["status"]["admission"]
        return state.required_checks({flavor for each in admission["podSetAssignments"] for flavor in (each.get("flavors") or {}).values()})

    def _sync_checks(self, tree: Tree, draft: Draft, local: Tree | None) -> bool:
        required = self._required(tree, local)
        if required is None:
            return False
        known = {check["name"]: check for check in draft.get("admissionChecks") or ()}
        if sorted(known) == list(required):
            return False
        pending = {"state": reservation.PENDING, "lastTransitionTime": self._ctx.env.stamp(), "message": ""}
        draft.set("admissionChecks", [known.get(name) or {"name": name, **pending} for name in required] or None)
        return draft.changed

    def _why_pending(self, tree: Tree, draft: Draft, local: Tree | None) -> None:
        """Refresh why a Workload has no quota, as far as it can be told without a try."""
        condition = draft.condition(names.QUOTA_RESERVED)
        fine = self.config.reasons
        spec = tree["spec"]
        if not conditions.active(tree):
            reservation.refuse(draft, names.DEACTIVATED if fine else names.INADMISSIBLE, "The workload is deactivated")
            return
        if gated(tree) or on_hold(tree):
            return
        problem = self._inadmissible(spec.get("queueName", ""), local)
        if problem is not None:
            reservation.refuse(draft, problem[0] if fine else names.INADMISSIBLE, problem[1])
            return
        if not fine or (condition is not None and condition["status"] == "True"):
            return
        wrong = self._misfit(tree, local)
        if wrong:
            reservation.refuse(draft, names.MISCONFIGURED, wrong)
            return
        if condition is None and not self.config.on("UnadmittedWorkloadsExplicitStatus"):
            return
        reason = condition["reason"] if condition is not None else ""
        if not reason or reason in BYPASSING:
            twins = self.hub.no_fit(key_of(tree))
            if twins:
                reservation.refuse(draft, twins, "Bypassed scheduling evaluation because an equivalent workload recently failed")
                return
        if reason not in SCHEDULED:
            reservation.refuse(draft, reservation.pending_reason(self.config), "Workload is pending evaluation in the scheduling queue")

    def _misfit(self, tree: Tree, local: Tree | None) -> str:
        """Return why a Workload cannot be admitted by its ClusterQueue whatever the quota, or ""."""
        state = self.hub.cache.queues.get(local["spec"].get("clusterQueue", "")) if local is not None else None
        namespace = tree["metadata"]["namespace"]
        if state is not None and not state.selector.matches(self.hub.namespace_labels(namespace)):
            return NAMESPACE_MISMATCH
        return misfit(pod_sets_of(tree), self.hub.limit_ranges(namespace))

    def _inadmissible(self, name: str, local: Tree | None) -> tuple[str, str] | None:
        if local is None:
            return names.MISCONFIGURED, f"LocalQueue {name} doesn't exist"
        if _stopped(local):
            return names.SUSPENDED, f"LocalQueue {name} is inactive"
        queue = local["spec"].get("clusterQueue", "")
        if queue not in self.hub.cache.queues:
            return names.MISCONFIGURED, f"ClusterQueue {queue} doesn't exist"
        if not self.hub.cache.health(queue).active:
            return names.SUSPENDED, f"ClusterQueue {queue} is inactive"
        return None

    def _sync(self, this: _Pass, tree: Tree, now: float) -> bool:
        """Bring Admitted in line. Tell whether anything changed in this pass."""
        draft = this.draft
        if not draft.is_true(names.QUOTA_RESERVED) and draft.condition(names.QUOTA_RESERVED) is None and draft.condition(names.ADMITTED) is None:
            return draft.changed
        local = self._local_queues.get(tree["spec"].get("queueName", ""), tree["metadata"]["namespace"])
        required = self._required(tree, local) if draft.is_true(names.QUOTA_RESERVED) else ()
        if required is None:
            required = ()
        if reservation.sync_admitted(draft, self.config, required, now):
            condition = draft.condition(names.QUOTA_RESERVED)
            since = round(now - from_stamp(condition["lastTransitionTime"])) if condition is not None else 0
            queue = cluster_queue(tree)
            this.event("Normal", "Admitted", f"Admitted by ClusterQueue {queue}, wait time since reservation was {since}s")
        return draft.changed

    # ------------------------------------------------------------------ with quota

    def _reserving(self, tree: Tree, this: _Pass, local: Tree | None, now: float) -> None:
        """Look after a Workload that holds quota: checks, stopped queues, time limits."""
        draft = this.draft
        if self._checks(tree, this):
            return
        if self._queues(tree, this, local, now):
            return
        if conditions.evicted(tree) or not conditions.admitted(tree):
            return
        if self._pods_ready(tree, this, now):
            return
        self._execution_time(tree, this, now)
        del draft

    def _checks(self, tree: Tree, this: _Pass) -> bool:
        checks = this.draft.get("admissionChecks") or ()
        rejected = [check for check in checks if check["state"] == reservation.REJECTED]
        if rejected and not conditions.evicted(tree):
            message = _listed("Rejected", rejected)
            if this.draft.mark(names.DEACTIVATION_TARGET, True, names.EVICTED_BY_ADMISSION_CHECK, message):
                this.event("Warning", "AdmissionCheckRejected", f"Deactivated due to {message}")
            return True
        retried = [check for check in checks if check["state"] == reservation.RETRY]
        if retried and not conditions.evicted(tree):
            self._evict(this, names.EVICTED_BY_ADMISSION_CHECK, f"Evicted due to {_listed('Retry', retried)}")
            return True
        return False

    def _queues(self, tree: Tree, this: _Pass, local: Tree | None, now: float) -> bool:
        name = tree["spec"].get("queueName", "")
        queue_name = cluster_queue(tree)
        queue = self._cluster_queues.get(queue_name)
        admitted = conditions.admitted(tree)
        for word, label, obj, reason in (
            ("LocalQueue", name, local, names.EVICTED_BY_LOCAL_QUEUE_STOPPED),
            ("ClusterQueue", queue_name, queue, names.EVICTED_BY_CLUSTER_QUEUE_STOPPED),
        ):
            if admitted:
                if obj is not None and obj["spec"].get("stopPolicy") == "HoldAndDrain" and not conditions.evicted(tree):
                    self._evict(this, reason, f"The {word} is stopped")
                    return True
                continue
            if obj is None or "deletionTimestamp" in obj["metadata"]:
                why, problem = names.MISCONFIGURED, f"{word} {label} is terminating or missing"
            elif _stopped(obj):
                why, problem = names.SUSPENDED, f"{word} {label} is stopped"
            else:
                continue
            reservation.refuse(this.draft, why if self.config.reasons else names.INADMISSIBLE, problem)
            self._sync(this, tree, now)
            return True
        return False

    def _evict(self, this: _Pass, reason: str, message: str, cause: str = "") -> None:
        if reservation.evict(this.draft, reason, message, cause, self._ctx.env.stamp()):
            this.event("Normal", reservation.eviction_event(reservation.eviction_reason(reason, cause)), message)

    def _pods_ready(self, tree: Tree, this: _Pass, now: float) -> bool:
        """Evict a Workload whose pods were not ready in time."""
        config = self.config.pods_ready
        ready = conditions.find(tree, names.PODS_READY)
        if config is None or not conditions.active(tree) or (ready is not None and ready["status"] == "True"):
            return False
        admitted = conditions.find(tree, names.ADMITTED)
        if admitted is None:
            return False
        if ready is not None and ready["reason"] == names.WAIT_FOR_RECOVERY:
            if config.recovery is None:
                return False
            due, cause = from_stamp(ready["lastTransitionTime"]) + config.recovery, names.WAIT_FOR_RECOVERY
        else:
            due, cause = from_stamp(admitted["lastTransitionTime"]) + config.timeout, names.WAIT_FOR_START
        if due > now:
            this.later(due - now)
            return False
        state = this.draft.get("requeueState") or {}
        count = state.get("count", 0) + 1
        if config.backoff_limit is not None and count > config.backoff_limit:
            message = "exceeding the maximum number of re-queuing retries"
            this.draft.mark(names.DEACTIVATION_TARGET, True, names.REQUEUING_LIMIT_EXCEEDED, message)
            return True
        delay = min(config.backoff_base * 2 ** min(count - 1, 32), config.backoff_max)
        this.draft.set("requeueState", {"count": count, "requeueAt": to_stamp(now + delay)})
        self._evict(this, names.EVICTED_BY_PODS_READY_TIMEOUT, f"Exceeded the PodsReady timeout {key_of(tree)}", cause)
        return True

    def _execution_time(self, tree: Tree, this: _Pass, now: float) -> None:
        limit = tree["spec"].get("maximumExecutionTimeSeconds")
        admitted = conditions.find(tree, names.ADMITTED)
        if limit is None or admitted is None:
            return
        spent = this.draft.get("accumulatedPastExecutionTimeSeconds") or 0
        left = limit - spent - (now - from_stamp(admitted["lastTransitionTime"]))
        if left > 0:
            this.later(left)
            return
        target = this.draft.condition(names.DEACTIVATION_TARGET)
        if target is None or target["status"] != "True":
            message = "exceeding the maximum execution time"
            this.draft.mark(names.DEACTIVATION_TARGET, True, names.MAXIMUM_EXECUTION_TIME_EXCEEDED, message)
            this.draft.set("accumulatedPastExecutionTimeSeconds", None)
            this.event("Warning", names.MAXIMUM_EXECUTION_TIME_EXCEEDED, f"The maximum execution time ({limit}s) exceeded")


def _stopped(tree: Tree) -> bool:
    return bool(tree["spec"].get("stopPolicy", "None") != "None")


def _condition_status(queue: Tree) -> str:
    condition = conditions.find(queue, names.ACTIVE)
    return condition["status"] if condition is not None else ""


def _priority_class(tree: Tree) -> tuple[str, ...]:
    reference = tree["spec"].get("priorityClassRef")
    return (reference["name"],) if reference and reference.get("kind") == "WorkloadPriorityClass" else ()


def _listed(state: str, checks: Sequence[Tree]) -> str:
    named = sorted(checks, key=lambda check: str(check["name"]))
    texts = "; ".join(f'"{check["name"]}" ({check["message"]})' if check.get("message") else f'"{check["name"]}"' for check in named)
    return f"AdmissionCheck{'s' if len(checks) > 1 else ''} in {state} state: {texts}"
