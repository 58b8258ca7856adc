"""The loop over plain pods and pod groups: a Workload for each group (or single pod), whose pods are let go together when it is admitted.

Keys are ``pod|namespace/name`` and ``group|namespace/group``. Pods cannot be suspended: they wait behind scheduling gates, and an eviction deletes them.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from kubemini.api.resources import PODS, PRIORITY_CLASSES, WORKLOAD_PRIORITY_CLASSES, WORKLOADS
from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.controllers.kueue import conditions, reservation
from kubemini.controllers.kueue.conditions import Draft
from kubemini.controllers.kueue.finalizers import without_finalizer
from kubemini.controllers.kueue.hub import Hub
from kubemini.controllers.kueue.integrations.admission_state import give_back, kept_for, release_quota, report_pods_ready
from kubemini.controllers.kueue.integrations.ancestors import queue_name
from kubemini.controllers.kueue.integrations.following import follow_gates, follow_priority, follow_queue, waiting_for
from kubemini.controllers.kueue.integrations.framework import Permanent
from kubemini.controllers.kueue.integrations.job_marks import kept_annotations, max_execution_time, prebuilt_name
from kubemini.controllers.kueue.integrations.pods import (
    Match,
    Pods,
    Uncomposable,
    counts,
    deleting,
    group_name,
    has_finalizer,
    is_gated,
    keep_order,
    managed,
    match,
    owners,
    role_of,
    started,
    target,
    terminated,
)
from kubemini.controllers.kueue.integrations.podsets import start_infos
from kubemini.controllers.kueue.integrations.priorities import ClassMissing, resolve
from kubemini.controllers.kueue.workloads import assignments, workload_name
from kubemini.controllers.kueue.writing import update_workload, write_status
from kubemini.machinery.errors import AlreadyExists, Conflict, NotFound
from kubemini.machinery.labels import from_label_selector
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.env import from_stamp
from kubemini.runtime.keys import key_of, owner_reference, owner_uids, split_key


class PodController(Controller):
    """See the module."""

    name = "kueue-pod"
    component = "pod-kueue-controller"

    def __init__(self, hub: Hub) -> None:
        super().__init__()
        self.hub = hub
        self.config = hub.config

    def setup(self, ctx: Context) -> None:
        """Follow pods and Workloads."""
        self._ctx = ctx
        self.hub.attach(ctx)
        self._pods = ctx.informer(PODS)
        self._pods.add_index("group", _groups, reads=("labels", "annotations"), marks=(names.POD_GROUP_NAME,))
        self._workloads = self.hub.workloads
        self._workloads.add_index("owner", owner_uids)
        self._classes = ctx.informer(WORKLOAD_PRIORITY_CLASSES)
        self._pod_classes = ctx.informer(PRIORITY_CLASSES)
        self._pods.on_change(self._on_pod, marks=(names.MANAGED,))
        self._workloads.on_change(self._on_workload)
        self.selector = from_label_selector(self.config.namespace_selector) if self.config.namespace_selector is not None else None

    # ------------------------------------------------------------------ events

    def _on_pod(self, old: Tree | None, new: Tree | None) -> None:
        for pod in (new, old):
            if pod is not None and managed(pod):
                group = group_name(pod)
                namespace = pod["metadata"]["namespace"]
                self.queue.add(f"group|{namespace}/{group}" if group else f"pod|{key_of(pod)}")
                return

    def _on_workload(self, old: Tree | None, new: Tree | None) -> None:
        tree = new if new is not None else old
        if tree is None:
            return
        namespace = tree["metadata"]["namespace"]
        if (tree["metadata"].get("annotations") or {}).get(names.IS_GROUP_WORKLOAD) == "true":
            self.queue.add(f"group|{key_of(tree)}")
            return
        for reference in tree["metadata"].get("ownerReferences") or ():
            if reference["kind"] == "Pod":
                self.queue.add(f"pod|{namespace}/{reference['name']}")
        if self._pods.count_index("group", key_of(tree)):
            self.queue.add(f"group|{key_of(tree)}")

    # ------------------------------------------------------------------ the pass

    async def reconcile(self, key: str) -> float | None:
        """Take one pass over a group or a single pod."""
        sort, _, rest = key.partition("|")
        namespace, name = split_key(rest)
        if self.selector is not None and not self.selector.matches(self.hub.namespace_labels(namespace)):
            return None
        if sort == "pod":
            return await self._single(rest)
        members = sorted(
            (pod for pod in self._pods.by_index("group", rest) if managed(pod)),
            key=lambda pod: (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]),
        )
        workload = self._workloads.get_key(rest)
        if not members:
            if workload is not None and _is_group(workload) and "deletionTimestamp" in workload["metadata"]:
                await self._drop_workload_finalizer(workload)
            return None
        pods = Pods(name, members)
        if workload is not None and not _is_group(workload):
            words = f'A Workload named "{name}" already exists but is not a pod group workload; this pod group cannot be admitted'
            self._event(pods.first, "Warning", "WorkloadNameConflict", words)
            await self._finalize([pod for pod in members if not counts(pod)])
            return None
        return await self._pass(pods, workload)

    async def _single(self, key: str) -> float | None:
        pod = self._pods.get_key(key)
        if pod is None:
            return None
        if not managed(pod) or group_name(pod):
            return None
        workload = next(iter(self._workloads.by_index("owner", pod["metadata"]["uid"])), None)
        if deleting(pod):
            if workload is not None and "deletionTimestamp" not in workload["metadata"] and not conditions.finished(workload):
                await self._mark_finished(workload, names.OWNER_NOT_FOUND, reservation.OWNER_GONE)
            if workload is not None:
                await self._drop_workload_finalizer(self._workloads.get_key(key_of(workload)) or workload)
            await self._finalize([pod])
            return None
        return await self._pass(Pods("", [pod]), workload)

    async def _pass(self, pods: Pods, workload: Tree | None) -> float | None:
        open_ = workload is not None and "deletionTimestamp" not in workload["metadata"] and not conditions.finished(workload)
        if workload is not None and open_ and pods.group:
            compared = match(pods, workload)
            if not compared.known or max_execution_time(pods.first) != workload["spec"].get("maximumExecutionTimeSeconds"):
                await self._delete_workload(workload)
                return None
            if await self._tidy(pods, workload, compared) or await self._replacements(pods, workload, compared):
                return None
            gone = {pod["metadata"]["uid"] for pod in (*compared.excess, *compared.replaced)}
            pods = Pods(pods.group, [pod for pod in pods.pods if pod["metadata"]["uid"] not in gone])
            if not pods.pods:
                return None
        if workload is not None and open_ and await self._follow(pods, workload):
            return None
        if workload is not None and conditions.finished(workload):
            await self._finalize(pods.pods)
            if await self._drop_workload_finalizer(workload):
                self._declared(pods, workload)
            return None
        if workload is not None and "deletionTimestamp" in workload["metadata"]:
            await self._stop(pods, "WorkloadDeleted", "Workload is deleted", everything=True)
            await self._drop_workload_finalizer(workload)
            return None
        done = pods.finished()
        if done is not None:
            if workload is not None:
                await self._mark_finished(workload, names.SUCCEEDED if done[0] else names.FAILED, done[1])
                self._declared(pods, workload)
            await self._finalize(pods.pods)
            return None
        if workload is None:
            return await self._compose(pods)
        if self.config.on("ReclaimablePods") and await give_back(self._ctx, workload, pods.reclaimable()):
            return None
        if self.config.pods_ready is not None and await report_pods_ready(self._ctx, workload, ready=pods.ready()):
            return None
        if conditions.evicted(workload):
            return await self._evicted(pods, workload)
        if conditions.admitted(workload):
            await self._start(pods, workload)
        elif pods.suspended():
            await self._waiting(pods, workload)
        elif not pods.serving:
            await self._stop(pods, "NotAdmitted", "Not admitted by cluster queue", everything=False)
        return None

    async def _follow(self, pods: Pods, workload: Tree) -> bool:
        """Bring admission gates and priority in line with the pods. Tell whether something was written."""
        if pods.serving:
            return False

        def say(message: str) -> None:
            self._event(pods.first, "Normal", names.UPDATED_WORKLOAD, message)

        if self.config.on("AdmissionGatedBy") and await follow_gates(self._ctx, pods.first, workload, say):
            return True
        return await follow_priority(self._ctx, self._classes, pods.first, workload, say)

    async def _waiting(self, pods: Pods, workload: Tree) -> None:
        """Tell pods what their checks wait for, and move their Workload to the queue that they name now."""
        if conditions.reserved(workload):
            waiting = waiting_for(workload)
            for pod in pods.pods if waiting else ():
                self._event(pod, "Normal", names.UPDATED_ADMISSION_CHECK, waiting)
        elif not pods.serving:
            await follow_queue(self._ctx, pods.first, workload)

    # ------------------------------------------------------------------ the Workload

    async def _compose(self, pods: Pods) -> float | None:
        first = pods.first
        if prebuilt_name(first):
            await self._stop(pods, "NoMatchingWorkload", "missing workload", everything=False)
            gone = [pod for pod in pods.pods if deleting(pod)]
            await self._finalize(gone)
            return None
        if pods.group:
            failed = [pod for pod in pods.pods if not counts(pod)]
            await self._finalize(failed)
            pods = Pods(pods.group, [pod for pod in pods.pods if counts(pod)])
            if not pods.pods:
                return None
            if await self._drop_excess(pods):
                return None
        if any(deleting(pod) for pod in pods.pods) and not pods.group:
            return None
        try:
            pod_sets = pods.pod_sets()
            labels = pods.labels(self.config.labels_to_copy)
        except Uncomposable as problem:
            if problem.retriable:
                self._event(first, "Warning", names.ERR_WORKLOAD_COMPOSE, str(problem))
            return None
        meta = first["metadata"]
        spec: Tree = {"podSets": pod_sets, "queueName": queue_name(first), "active": True}
        if not spec["queueName"]:
            del spec["queueName"]
        seconds = max_execution_time(first)
        if seconds is not None:
            spec["maximumExecutionTimeSeconds"] = seconds
        annotations = kept_annotations(first, gates=self.config.on("AdmissionGatedBy"))
        metadata: Tree = {"namespace": meta["namespace"], "finalizers": [names.RESOURCE_IN_USE]}
        if pods.group:
            metadata |= {"name": pods.group, "ownerReferences": owners(pods.pods, {})}
            annotations[names.IS_GROUP_WORKLOAD] = "true"
        else:
            metadata |= {
                "name": workload_name("Pod", "", meta["name"], meta["uid"]),
                "ownerReferences": [owner_reference({**first, "apiVersion": "v1", "kind": "Pod"})],
            }
            labels[names.JOB_UID] = meta["uid"]
        metadata |= {key: value for key, value in (("labels", labels), ("annotations", annotations)) if value}
        try:
            priority = resolve(first, pod_sets, self._classes, self._pod_classes)
        except ClassMissing as missing:
            self._event(first, "Warning", names.PRIORITY_CLASS_NOT_FOUND, str(missing))
            raise NotFound(str(missing)) from None
        spec["priority"] = priority.value
        if priority.reference is not None:
            spec["priorityClassRef"] = priority.reference
        workload = {"apiVersion": WORKLOADS.api_version, "kind": WORKLOADS.kind, "metadata": metadata, "spec": spec}
        try:
            created = await self._ctx.client.create(WORKLOADS, workload)
        except AlreadyExists:
            return None
        self._event(first, "Normal", names.CREATED_WORKLOAD, f"Created Workload: {key_of(created)}")
        return None

    async def _drop_excess(self, pods: Pods) -> bool:
        if pods.fast:
            return False
        extra = sorted(pods.pods, key=keep_order)[pods.total :] if pods.total else []
        for pod in extra:
            await self._delete_excess(pod)
        return bool(extra)

    async def _delete_excess(self, pod: Tree) -> None:
        await self._finalize([pod])
        if not deleting(pod):
            await self._delete(pod)
            self._event(pod, "Normal", names.EXCESS_POD_DELETED, "Excess pod deleted")

    async def _tidy(self, pods: Pods, workload: Tree, compared: Match) -> bool:
        """Delete surplus pods, let replaced ones go, and make newcomers owners. Tell whether something was written."""
        for pod in compared.excess:
            await self._delete_excess(pod)
        gone = [pod for pod in compared.replaced if has_finalizer(pod)]
        await self._finalize(gone)
        surplus = {pod["metadata"]["uid"] for pod in compared.excess}
        known = {each["uid"]: None for each in workload["metadata"].get("ownerReferences") or ()}
        new = owners([pod for pod in pods.pods if pod["metadata"]["uid"] not in surplus and counts(pod)], known)[:1]
        if new:
            meta = workload["metadata"]
            stored = await update_workload(
                self._ctx, {**workload, "metadata": {**meta, "ownerReferences": [*(meta.get("ownerReferences") or ()), *new]}}
            )
            self._event(stored, "Normal", names.OWNER_REFERENCES_ADDED, f"Added {len(new)} owner reference(s)")
            return True
        return bool(compared.excess)

    async def _replacements(self, pods: Pods, workload: Tree, compared: Match) -> bool:
        """Say whether pods of the group are missing. Tell whether something was written."""
        old = conditions.find(workload, names.WAITING_FOR_REPLACEMENT_PODS)
        evicted = conditions.find(workload, names.EVICTED)
        if compared.absent:
            if evicted is not None and evicted["status"] == "True":
                wanted = (True, evicted["reason"], evicted["message"])
            else:
                wanted = (True, "PodsFailed", "Some Failed pods need replacement")
        elif old is not None:
            wanted = (False, "PodsReady", "No pods need replacement")
        else:
            return False
        if old is not None and (old["status"] == "True", old["reason"]) == wanted[:2]:
            return False

        def change(draft: Draft) -> bool:
            draft.mark(names.WAITING_FOR_REPLACEMENT_PODS, *wanted)
            return True

        await write_status(self._ctx, workload, change)
        return True

    async def _mark_finished(self, workload: Tree, reason: str, message: str) -> None:
        def change(draft: Draft) -> bool:
            if conditions.finished(draft.obj):
                return False
            draft.mark(names.FINISHED, True, reason, message)
            return True

        await write_status(self._ctx, workload, change)

    # ------------------------------------------------------------------ pods

    async def _start(self, pods: Pods, workload: Tree) -> None:
        waiting = pods.gated()
        if not waiting:
            return
        try:
            infos = {info.name: info for info in start_infos(workload, self.hub.cache.flavors)}
            placed = {each["name"] for each in assignments(workload) if each.get("topologyAssignment") is not None}
            queue = workload["status"]["admission"]["clusterQueue"]
            for pod in waiting:
                role = role_of(pod) if pods.group else names.DEFAULT_POD_SET
                info = infos.get(role)
                if info is None or deleting(pod):
                    continue
                new = started(pod, info, topology=role in placed)
                try:
                    await self._ctx.client.update(PODS, new)
                except (NotFound, Conflict):
                    continue
                self._event(pod, "Normal", names.STARTED, f"Admitted by clusterQueue {queue}")
        except Permanent as problem:
            await self._mark_finished(workload, "FailedToStart", str(problem))

    async def _evicted(self, pods: Pods, workload: Tree) -> float | None:
        condition = conditions.find(workload, names.EVICTED)
        if condition is None:
            return None
        reason = f"WorkloadEvictedDueTo{condition['reason']}"
        await self._stop(pods, reason, condition["message"], everything=False)
        now = self._ctx.env.now()
        if not conditions.reserved(workload):
            return await self._expire(pods, workload)
        if pods.active(now):
            ends = [from_stamp(pod["metadata"]["deletionTimestamp"]) - now for pod in pods.pods if deleting(pod) and not terminated(pod)]
            return max(0.05, min(ends)) if ends else None
        await release_quota(self._ctx, self.hub, workload, single_pod=not pods.group)
        return None

    async def _expire(self, pods: Pods, workload: Tree) -> float | None:
        """Delete what Kueue has deactivated, once it was kept long enough."""
        left = kept_for(workload, self.config.keep_deactivated, self._ctx.env.now())
        if left is None or left > 0:
            return left
        await self._delete(pods.first)
        self._event(pods.first, "Normal", "Deleted", "Deleted job: deactivation retention period expired")
        await self._finalize(pods.pods)
        return None

    async def _stop(self, pods: Pods, reason: str, message: str, *, everything: bool) -> None:
        for pod in pods.pods:
            if not everything and (terminated(pod) or is_gated(pod)):
                continue
            if not deleting(pod):
                meta = pod["metadata"]
                patch = {"metadata": {"uid": meta["uid"]}, "status": {"conditions": [target(reason, message, self._ctx.env.stamp())]}}
                with suppress(NotFound, Conflict):
                    await self._ctx.client.patch(PODS, meta["name"], patch, namespace=meta["namespace"], type="strategic", subresource="status")
                    await self._delete(pod)
                self._event(pod, "Normal", names.STOPPED, message)
            if everything:
                await self._finalize([pod])

    async def _delete(self, pod: Tree) -> None:
        meta = pod["metadata"]
        try:
            await self._ctx.client.delete(PODS, meta["name"], namespace=meta["namespace"], uid=meta["uid"])
        except (NotFound, Conflict):
            return

    async def _finalize(self, pods: Iterable[Tree]) -> None:
        """Let pods go: take the finalizer off."""
        for pod in pods:
            if not has_finalizer(pod):
                continue
            meta = pod["metadata"]
            try:
                patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": [names.MANAGED], "uid": meta["uid"]}}
                await self._ctx.client.patch(PODS, meta["name"], patch, namespace=meta["namespace"], type="strategic")
            except (NotFound, Conflict):
                continue

    # ------------------------------------------------------------------ small things

    def _event(self, obj: Tree, type_: str, reason: str, message: str) -> None:
        kind = "Workload" if "podSets" in obj["spec"] else "Pod"
        version = WORKLOADS.api_version if kind == "Workload" else "v1"
        self._ctx.recorder.event({**obj, "kind": kind, "apiVersion": version}, type_, reason, message)

    def _declared(self, pods: Pods, workload: Tree) -> None:
        self._event(pods.first, "Normal", names.FINISHED_WORKLOAD, f"Workload '{key_of(workload)}' is declared finished")

    async def _drop_workload_finalizer(self, workload: Tree) -> bool:
        smaller = without_finalizer(workload, names.RESOURCE_IN_USE)
        if smaller is None:
            return False
        try:
            await update_workload(self._ctx, smaller)
        except NotFound:
            return False
        return True

    async def _delete_workload(self, workload: Tree) -> None:
        await self._drop_workload_finalizer(workload)
        meta = workload["metadata"]
        try:
            await self._ctx.client.delete(WORKLOADS, meta["name"], namespace=meta["namespace"], uid=meta["uid"])
        except (NotFound, Conflict):
            return

    async def started(self) -> None:
        """Look at every group and pod once."""
        for pod in self._pods.list():
            self._on_pod(None, pod)


def _groups(pod: Tree) -> tuple[str, ...]:
    group = group_name(pod)
    return (f"{pod['metadata']['namespace']}/{group}",) if group else ()


def _is_group(workload: Tree) -> bool:
    return (workload["metadata"].get("annotations") or {}).get(names.IS_GROUP_WORKLOAD) == "true"
