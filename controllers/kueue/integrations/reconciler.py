"""The generic loop over one kind of job: one Workload for each queued job, started when it is admitted, stopped when it is evicted.

The order of steps is upstream's (``pkg/controller/jobframework/reconciler.go``) and observable. Each pass takes one step that writes, and is called again by its event.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubemini.api.resources import (
    DEPLOYMENTS,
    JOB_SETS,
    JOBS,
    LEADER_WORKER_SETS,
    PRIORITY_CLASSES,
    REPLICA_SETS,
    STATEFUL_SETS,
    WORKLOAD_PRIORITY_CLASSES,
    WORKLOADS,
    Resource,
)
from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.controllers.kueue import conditions, reservation
from kubemini.controllers.kueue.conditions import Draft
from kubemini.controllers.kueue.finalizers import without_finalizer
from kubemini.controllers.kueue.hub import Hub
from kubemini.controllers.kueue.integrations.admission_state import give_back, kept_for, pods_ready_condition, release_quota, report_pods_ready
from kubemini.controllers.kueue.integrations.ancestors import TooDeep, ancestor, owned_by_known, queue_name
from kubemini.controllers.kueue.integrations.following import follow_gates, follow_priority, follow_queue, waiting_for
from kubemini.controllers.kueue.integrations.framework import Finish, Integration, Permanent, Stop
from kubemini.controllers.kueue.integrations.job_marks import kept_annotations, max_execution_time, prebuilt_name
from kubemini.controllers.kueue.integrations.podsets import equivalent, restore_infos, same_but_defaults, sanitised, start_infos
from kubemini.controllers.kueue.integrations.priorities import ClassMissing, resolve
from kubemini.controllers.kueue.integrations.slices import Slices, elastic
from kubemini.controllers.kueue.workloads import pod_sets_of, workload_name
from kubemini.controllers.kueue.writing import update_workload, write_status
from kubemini.machinery.errors import AlreadyExists, ApiStatus, Conflict, NotFound
from kubemini.machinery.labels import from_label_selector
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.keys import controller_of, controller_uid, key_of, owner_reference, owner_uids, split_key

OWNERS = (JOBS, JOB_SETS, STATEFUL_SETS, REPLICA_SETS, DEPLOYMENTS, LEADER_WORKER_SETS)


class JobReconciler(Controller):
    """Keys are jobs of one kind."""

    def __init__(self, hub: Hub, kind: Integration) -> None:
        super().__init__()
        self.hub = hub
        self.config = hub.config
        self.kind = kind
        self.resource = kind.resource
        self.name = f"kueue-{kind.resource.kind.lower()}"
        self.component = f"{kind.name}-kueue-controller"

    def setup(self, ctx: Context) -> None:
        """Follow the jobs, their Workloads and the classes of priority."""
        self._ctx = ctx
        self.hub.attach(ctx)
        self._jobs = ctx.informer(self.resource)
        self._workloads = self.hub.workloads
        self._workloads.add_index("owner", owner_uids)
        self._owners = {each: ctx.informer(each) for each in OWNERS}
        self._classes = ctx.informer(WORKLOAD_PRIORITY_CLASSES)
        self._pod_classes = ctx.informer(PRIORITY_CLASSES)
        self._jobs.add_index("controller", controller_uid, reads=("ownerReferences",))
        self._jobs.on_change(self._on_job)
        self._workloads.on_change(self._on_workload)
        self.slices = Slices(ctx, self.hub, self.kind)
        self.selector = from_label_selector(self.config.namespace_selector) if self.config.namespace_selector is not None else None

    # ------------------------------------------------------------------ events

    def _on_job(self, old: Tree | None, new: Tree | None) -> None:
        if new is not None:
            self.queue.add(key_of(new))
        elif old is not None:
            self.queue.add(key_of(old))
            for workload in self._workloads.by_index("owner", old["metadata"]["uid"]):
                self.queue.add(f"gone:{key_of(workload)}")

    def _on_workload(self, old: Tree | None, new: Tree | None) -> None:
        tree = new if new is not None else old
        if tree is None:
            return
        namespace = tree["metadata"]["namespace"]
        for reference in tree["metadata"].get("ownerReferences") or ():
            if reference["kind"] == self.resource.kind:
                self.queue.add(f"{namespace}/{reference['name']}")
                job = self._jobs.get(reference["name"], namespace)
                if reference.get("controller") and (job is None or job["metadata"]["uid"] != reference["uid"]):
                    self.queue.add(f"gone:{key_of(tree)}")
            elif old is None or new is None or conditions.admitted(old) != conditions.admitted(new):
                for child in self._jobs.by_index("controller", reference["uid"]):
                    self.queue.add(key_of(child))

    def lookup(self, resource: Resource, namespace: str, name: str) -> Tree | None:
        """Find an owner in the caches."""
        informer = self._owners.get(resource)
        return informer.get(name, namespace) if informer is not None else None

    # ------------------------------------------------------------------ the pass

    async def reconcile(self, key: str) -> float | None:
        """Take one pass over a job."""
        if key.startswith("gone:"):
            await self._abandon(self._workloads.get_key(key.removeprefix("gone:")))
            return None
        job = self._jobs.get_key(key)
        if job is None:
            return None
        if "deletionTimestamp" in job["metadata"]:
            return None
        namespace = job["metadata"]["namespace"]
        if self.selector is not None and not self.selector.matches(self.hub.namespace_labels(namespace)):
            return None
        try:
            above = ancestor(job, self.lookup, any_queue=self.config.manage_without_queue)
        except TooDeep:
            self._event(
                job, "Warning", names.JOB_NESTING_TOO_DEEP, "Terminated search for Kueue-managed Job because ancestor depth exceeded limit of 10"
            )
            return None
        if not queue_name(job) and not self.config.manage_without_queue and above is None:
            return None
        if above is not None:
            await self._child(job, above)
            return None
        if owned_by_known(job) and not queue_name(job):
            return None
        return await self._top(job)

    async def _child(self, job: Tree, above: Tree) -> None:
        """Keep a job below a managed one from running while that is not admitted."""
        if self.kind.finished(job) is not None or self.kind.is_suspended(job):
            return
        unfinished = [each for each in self._workloads.by_index("owner", above["metadata"]["uid"]) if not conditions.finished(each)]
        if unfinished and all(conditions.admitted(each) for each in unfinished):
            return
        if await self._update(self.kind.suspended(job)):
            self._event(job, "Normal", names.JOB_SUSPENDED, "Kueue managed child job suspended")

    async def _top(self, job: Tree) -> float | None:
        finish = self.kind.finished(job)
        if elastic(job, self.config):
            found = await self.slices.ensure(self, job, finish)
        else:
            found = await self._ensure_one(job, finish)
        if found is Stop:
            return None
        workload = found if isinstance(found, dict) else None
        if workload is not None and conditions.finished(workload):
            await self._end(job, workload)
            return None
        if workload is not None and "deletionTimestamp" in workload["metadata"]:
            if await self._stopping(job, workload, "Workload is deleted"):
                await self.drop_finalizer(workload)
            return None
        if finish is not None:
            if workload is not None:
                await self.finish(job, workload, finish)
            return None
        if workload is None:
            return await self._missing(job)
        if await self._reclaim(job, workload) or await self.pods_ready(job, workload):
            return None
        if conditions.evicted(workload):
            await self._evicted(job, workload)
            return await self._expire(job, workload)
        if self.kind.is_suspended(job):
            await self._suspended(job, workload)
        elif not conditions.admitted(workload):
            await self._unadmitted(job, workload)
        elif (job["metadata"].get("annotations") or {}).get(names.STOPPING) == "true":
            await self._stopping(job, workload, "")
        elif elastic(job, self.config):
            await self.slices.scale(self, job, workload)
        return None

    async def _unadmitted(self, job: Tree, workload: Tree) -> None:
        if elastic(job, self.config) and self.slices.predecessor(workload) is not None:
            return
        await self._stopping(job, workload, "Not admitted by cluster queue")

    # ------------------------------------------------------------------ one Workload

    async def _ensure_one(self, job: Tree, finish: Finish | None) -> Tree | type[Stop] | None:
        """Return the Workload that stands for a job, or None; `Stop` where this pass has written something that has to be seen first."""
        prebuilt = prebuilt_name(job)
        if prebuilt:
            return await self._prebuilt(job, prebuilt)
        job_sets = self.kind.pod_sets(job)
        match: Tree | None = None
        surplus: list[Tree] = []
        for workload in self._owned(job):
            if match is None and (
                conditions.finished(workload) or "deletionTimestamp" in workload["metadata"] or self._equivalent(job, job_sets, workload)
            ):
                match = workload
            else:
                surplus.append(workload)
        if match is None and surplus and self.kind.is_suspended(job) and not conditions.reserved(surplus[0]) and finish is None:
            await self._in_place(job, surplus[0], job_sets)
            return Stop
        if match is None and finish is None and not self.kind.is_suspended(job):
            message = "Missing Workload; unable to restore pod templates"
            if len(surplus) == 1:
                message = "No matching Workload; restoring pod templates according to existent Workload"
            if not await self._stopping(job, surplus[0] if len(surplus) == 1 else None, message):
                return Stop
            if not surplus:
                return None
        if surplus:
            for workload in surplus:
                await self._delete(workload)
                self._event(job, "Normal", names.DELETED_WORKLOAD, f"Deleted not matching Workload: {key_of(workload)}")
            return Stop
        if match is not None and not conditions.finished(match) and await self._follow(job, match):
            return Stop
        return match

    def _owned(self, job: Tree) -> list[Tree]:
        return sorted(
            self._workloads.by_index("owner", job["metadata"]["uid"]),
            key=lambda each: (each["metadata"]["creationTimestamp"], each["metadata"]["name"]),
        )

    def _equivalent(self, job: Tree, job_sets: Sequence[Tree], workload: Tree) -> bool:
        if max_execution_time(job) != workload["spec"].get("maximumExecutionTimeSeconds"):
            return False
        return equivalent(job_sets, workload, self.hub.cache.flavors, suspended=self.kind.is_suspended(job))

    async def _in_place(self, job: Tree, workload: Tree, job_sets: Sequence[Tree]) -> None:
        spec = {**workload["spec"], "podSets": list(job_sets)}
        seconds = max_execution_time(job)
        if seconds is not None:
            spec["maximumExecutionTimeSeconds"] = seconds
        else:
            spec.pop("maximumExecutionTimeSeconds", None)
        if queue_name(job):
            spec["queueName"] = queue_name(job)
        try:
            priority = resolve(job, job_sets, self._classes, self._pod_classes)
        except ClassMissing:
            pass
        else:
            spec["priority"] = priority.value
            spec.pop("priorityClassRef", None)
            if priority.reference is not None:
                spec["priorityClassRef"] = priority.reference
        await update_workload(self._ctx, {**workload, "spec": spec})
        self._event(job, "Normal", names.UPDATED_WORKLOAD, f"Updated not matching Workload for suspended job: {key_of(workload)}")

    async def _prebuilt(self, job: Tree, name: str) -> Tree | type[Stop] | None:
        workload = self._workloads.get(name, job["metadata"]["namespace"])
        if workload is None:
            return None
        owner = controller_of(workload)
        if owner is not None and owner["uid"] != job["metadata"]["uid"]:
            return None
        meta = workload["metadata"]
        if owner is None:
            references = [*(each for each in meta.get("ownerReferences") or () if each["uid"] != job["metadata"]["uid"]), owner_reference(job)]
            labels = {**(meta.get("labels") or {}), names.JOB_UID: job["metadata"]["uid"]}
            await update_workload(self._ctx, {**workload, "metadata": {**meta, "ownerReferences": references, "labels": labels}})
            return Stop
        if (
            conditions.finished(workload)
            or self._equivalent(job, self.kind.pod_sets(job), workload)
            or same_but_defaults(self.kind.pod_sets(job), workload)
        ):
            return workload
        await self.mark_finished(workload, names.OUT_OF_SYNC, "The prebuilt workload is out of sync with its user job")
        return Stop

    async def _follow(self, job: Tree, workload: Tree) -> bool:
        """Bring admission gates and priority in line with the job. Tell whether something was written."""

        def say(message: str) -> None:
            self._event(job, "Normal", names.UPDATED_WORKLOAD, message)

        if self.config.on("AdmissionGatedBy") and await follow_gates(self._ctx, job, workload, say):
            return True
        return await follow_priority(self._ctx, self._classes, job, workload, say)

    # ------------------------------------------------------------------ steps

    async def _end(self, job: Tree, workload: Tree) -> None:
        """See a finished Workload off."""
        condition = conditions.find(workload, names.FINISHED)
        if await self.drop_finalizer(workload) or (condition is not None and condition["reason"] not in (names.SUCCEEDED, names.FAILED)):
            self._event(job, "Normal", names.FINISHED_WORKLOAD, f"Workload '{key_of(workload)}' is declared finished")

    async def finish(self, job: Tree, workload: Tree, finish: Finish) -> None:
        """Mark the Workload of a job that has ended."""
        was_ready = finish.success and self.config.pods_ready is not None and self.kind.pods_ready(job)

        def change(draft: Draft) -> bool:
            if conditions.finished(draft.obj):
                return False
            if was_ready and draft.is_true(names.ADMITTED) and not draft.is_true(names.PODS_READY):
                draft.mark(names.PODS_READY, *pods_ready_condition(draft.obj, ready=True))
            draft.mark(names.FINISHED, True, names.SUCCEEDED if finish.success else names.FAILED, finish.message)
            return True

        await write_status(self._ctx, workload, change)
        self._event(job, "Normal", names.FINISHED_WORKLOAD, f"Workload '{key_of(workload)}' is declared finished")

    async def mark_finished(self, workload: Tree, reason: str, message: str) -> None:
        """Mark a Workload as finished."""

        def change(draft: Draft) -> bool:
            if conditions.finished(draft.obj):
                return False
            draft.mark(names.FINISHED, True, reason, message)
            return True

        await write_status(self._ctx, workload, change)

    async def _missing(self, job: Tree) -> float | None:
        """Make the Workload of a job that has none."""
        if prebuilt_name(job):
            if not self.kind.is_suspended(job):
                await self._stopping(job, None, "missing workload")
            return None
        if self.kind.is_active(job):
            return None
        await self.create(job, "", {})
        return None

    async def create(self, job: Tree, extra: str, annotations: dict[str, str], *, first_slice: bool = False) -> None:
        """Make a Workload for a job."""
        workload = self._composed(job, extra, annotations)
        if first_slice:
            workload["metadata"]["annotations"][names.WORKLOAD_SLICE_NAME] = workload["metadata"]["name"]
        try:
            priority = resolve(job, pod_sets_of(workload), self._classes, self._pod_classes)
        except ClassMissing as missing:
            self._event(job, "Warning", names.PRIORITY_CLASS_NOT_FOUND, str(missing))
            raise NotFound(str(missing)) from None
        workload["spec"]["priority"] = priority.value
        if priority.reference is not None:
            workload["spec"]["priorityClassRef"] = priority.reference
        try:
            created = await self._ctx.client.create(WORKLOADS, workload)
        except AlreadyExists:
            return
        self._event(job, "Normal", names.CREATED_WORKLOAD, f"Created Workload: {key_of(created)}")

    def _composed(self, job: Tree, extra: str, annotations: dict[str, str]) -> Tree:
        meta = job["metadata"]
        labels = {key: value for key in self.config.labels_to_copy if (value := (meta.get("labels") or {}).get(key)) is not None}
        labels[names.JOB_UID] = meta["uid"]
        kept = kept_annotations(job, gates=self.config.on("AdmissionGatedBy")) | annotations
        spec: Tree = {"podSets": [sanitised(each) for each in self.kind.pod_sets(job)], "queueName": queue_name(job), "active": True}
        seconds = max_execution_time(job)
        if seconds is not None:
            spec["maximumExecutionTimeSeconds"] = seconds
        if not spec["queueName"]:
            del spec["queueName"]
        metadata: Tree = {
            "name": workload_name(self.resource.kind, self.resource.group, meta["name"], meta["uid"], extra),
            "namespace": meta["namespace"],
            "labels": labels,
            "finalizers": [names.RESOURCE_IN_USE],
            "ownerReferences": [owner_reference(job)],
        }
        if kept:
            metadata["annotations"] = kept
        return {"apiVersion": WORKLOADS.api_version, "kind": WORKLOADS.kind, "metadata": metadata, "spec": spec}

    async def _reclaim(self, job: Tree, workload: Tree) -> bool:
        """Give back the quota of pods that are done. Tell whether something was written."""
        if not self.config.on("ReclaimablePods"):
            return False
        return await give_back(self._ctx, workload, {each["name"]: each["count"] for each in self.kind.reclaimable(job)})

    async def pods_ready(self, job: Tree, workload: Tree) -> bool:
        """Write PodsReady where it changes. Tell whether something was written."""
        if self.config.pods_ready is None:
            return False
        return await report_pods_ready(self._ctx, workload, ready=self.kind.pods_ready(job))

    async def _evicted(self, job: Tree, workload: Tree) -> None:
        """Stop the job of an evicted Workload, and give its quota back once its pods are gone."""
        condition = conditions.find(workload, names.EVICTED)
        if condition is None or not await self._stopping(job, workload, condition["message"]):
            return
        if not conditions.reserved(workload) or self.kind.is_active(job):
            return
        await release_quota(self._ctx, self.hub, workload, single_pod=self.resource.kind == "Pod")

    async def _expire(self, job: Tree, workload: Tree) -> float | None:
        """Delete a job that Kueue has deactivated, once it was kept long enough."""
        left = kept_for(workload, self.config.keep_deactivated, self._ctx.env.now())
        if left is None or left > 0:
            return left
        namespace, name = split_key(key_of(job))
        try:
            await self._ctx.client.delete(self.resource, name, namespace=namespace, propagation="Background")
        except NotFound:
            return None
        self._event(job, "Normal", "Deleted", "Deleted job: deactivation retention period expired")
        return None

    async def _suspended(self, job: Tree, workload: Tree) -> None:
        if conditions.admitted(workload):
            await self._start(job, workload)
            return
        if conditions.reserved(workload):
            waiting = waiting_for(workload)
            if waiting:
                self._event(job, "Normal", names.UPDATED_ADMISSION_CHECK, waiting)
            return
        await follow_queue(self._ctx, job, workload)

    async def _start(self, job: Tree, workload: Tree) -> None:
        try:
            started = self.kind.start(job, start_infos(workload, self.hub.cache.flavors))
        except Permanent as problem:
            await self.mark_finished(workload, "FailedToStart", str(problem))
            return
        if await self._update(started):
            queue = workload["status"]["admission"]["clusterQueue"]
            self._event(job, "Normal", names.STARTED, f"Admitted by clusterQueue {queue}")

    async def _stopping(self, job: Tree, workload: Tree | None, message: str) -> bool:
        """Take the next step of a stop. Tell whether the job is stopped already.

        What has ended needs no stop, and the API would refuse one for ever: a Job that is done keeps its start time.
        """
        if self.kind.finished(job) is not None:
            return True
        infos = restore_infos(workload) if workload is not None else None
        running = not job["spec"].get("suspend")
        step = self.kind.stop(job, infos)
        if step is None:
            return True
        written, subresource = step
        if await self._update(written, subresource) and running and message:
            self._event(job, "Normal", names.STOPPED, message)
        return False

    # ------------------------------------------------------------------ writing

    async def _update(self, obj: Tree, subresource: str = "") -> bool:
        try:
            if subresource:
                await self._ctx.client.update_status(self.resource, obj)
            else:
                await self._ctx.client.update(self.resource, obj)
        except NotFound:
            return False
        return True

    def _event(self, job: Tree, type_: str, reason: str, message: str) -> None:
        self._ctx.recorder.event({**job, "kind": self.resource.kind, "apiVersion": self.resource.api_version}, type_, reason, message)

    async def drop_finalizer(self, workload: Tree) -> bool:
        """Take Kueue's finalizer off a Workload. Tell whether it had one."""
        smaller = without_finalizer(workload, names.RESOURCE_IN_USE)
        if smaller is None:
            return False
        try:
            await update_workload(self._ctx, smaller)
        except NotFound:
            return False
        return True

    async def _delete(self, workload: Tree) -> None:
        """Delete a Workload at once, finalizer or not."""
        await self.drop_finalizer(workload)
        namespace, name = split_key(key_of(workload))
        try:
            await self._ctx.client.delete(WORKLOADS, name, namespace=namespace, uid=workload["metadata"]["uid"])
        except (NotFound, Conflict):
            return

    async def _abandon(self, workload: Tree | None) -> None:
        """Finish or release the Workload of a job that is gone."""
        if workload is None:
            return
        owner = controller_of(workload)
        if owner is None or owner["kind"] != self.resource.kind:
            return
        try:
            # The cache may lag behind a job that was just made: ask the server before calling its Workload an orphan
            job = await self._ctx.client.get(self.resource, owner["name"], workload["metadata"]["namespace"])
            if job["metadata"]["uid"] == owner["uid"]:
                return
        except NotFound:
            pass
        try:
            if "deletionTimestamp" not in workload["metadata"] and not conditions.finished(workload) and self.config.on("FinishOrphanedWorkloads"):
                await self.mark_finished(workload, names.OWNER_NOT_FOUND, reservation.OWNER_GONE)
            else:
                await self.drop_finalizer(workload)
        except ApiStatus:
            self.queue.add_rate_limited(f"gone:{key_of(workload)}")
            raise

    async def started(self) -> None:
        """Look for Workloads of jobs that vanished while nobody watched."""
        for workload in self._workloads.list():
            owner = controller_of(workload)
            if owner is not None and owner["kind"] == self.resource.kind:
                job = self._jobs.get(owner["name"], workload["metadata"]["namespace"])
                if job is None or job["metadata"]["uid"] != owner["uid"]:
                    self.queue.add(f"gone:{key_of(workload)}")
