"""StatefulSets and LeaderWorkerSets under Kueue. They cannot be suspended: their pods wait gated, and a Workload made beforehand stands for each group.

Each loop makes the Workloads and marks the pods as members of their groups; the loop over pod groups does the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kubemini.api.resources import LEADER_WORKER_SETS, PODS, PRIORITY_CLASSES, STATEFUL_SETS, WORKLOAD_PRIORITY_CLASSES, WORKLOADS, Resource
from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.controllers.kueue import conditions, reservation
from kubemini.controllers.kueue.conditions import Draft
from kubemini.controllers.kueue.finalizers import without_finalizer
from kubemini.controllers.kueue.hub import Hub
from kubemini.controllers.kueue.integrations.ancestors import TooDeep, ancestor, queue_name
from kubemini.controllers.kueue.integrations.following import follow_gates
from kubemini.controllers.kueue.integrations.job_marks import kept_annotations, max_execution_time
from kubemini.controllers.kueue.integrations.pods import annotation, gate_names, terminated
from kubemini.controllers.kueue.integrations.podsets import sanitised
from kubemini.controllers.kueue.integrations.priorities import ClassMissing, label_of, resolve
from kubemini.controllers.kueue.topology.requests import topology_request
from kubemini.controllers.kueue.workloads import on_hold, pod_sets_of, workload_name
from kubemini.controllers.kueue.writing import update_workload, write_status
from kubemini.machinery.errors import AlreadyExists, Conflict, NotFound
from kubemini.machinery.labels import from_label_selector
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.keys import controller_of, controller_uid, key_of, owner_uids

STS_INDEX = "apps.kubernetes.io/pod-index"
LWS_PREFIX = "leaderworkerset.sigs.k8s.io/"
LWS_NAME, LWS_GROUP, LWS_WORKER, LWS_LEADER = (
    "leaderworkerset.sigs.k8s.io/name",
    "leaderworkerset.sigs.k8s.io/group-index",
    "leaderworkerset.sigs.k8s.io/worker-index",
    "leaderworkerset.sigs.k8s.io/leader-name",
)
REVISION = "controller-revision-hash"


@dataclass(frozen=True, slots=True)
class Wanted:
    """One Workload that an owner should have."""

    name: str
    pod_sets: list[Tree]
    annotations: dict[str, str]


class ServingController(Controller):
    """What both kinds share. Keys are owners."""

    def __init__(self, hub: Hub, resource: Resource) -> None:
        super().__init__()
        self.hub = hub
        self.config = hub.config
        self.resource = resource
        self.name = f"kueue-{resource.kind.lower()}"
        self.component = f"{resource.kind.lower()}-kueue-controller"
        self.copied: Sequence[str] = ()
        """Keys of labels that Workloads get from their owner."""

    def setup(self, ctx: Context) -> None:
        """Follow the owners, their pods and Workloads."""
        self._ctx = ctx
        self.hub.attach(ctx)
        self._owners = ctx.informer(self.resource)
        self._sets = ctx.informer(STATEFUL_SETS)
        self._lws = ctx.informer(LEADER_WORKER_SETS)
        self._pods = ctx.informer(PODS)
        self._pods.add_index("controller", controller_uid, reads=("ownerReferences",))
        self._pods.add_index("lws", _lws_of, reads=("labels",), marks=(LWS_NAME,))
        self._workloads = self.hub.workloads
        self._workloads.add_index("owner", owner_uids)
        self._classes = ctx.informer(WORKLOAD_PRIORITY_CLASSES)
        self._pod_classes = ctx.informer(PRIORITY_CLASSES)
        self._owners.on_change(self._on_owner)
        self._pods.on_change(self._on_pod, marks=(names.SUSPENDED_BY_PARENT, LWS_NAME))
        self._workloads.on_change(self._on_workload)
        self.selector = from_label_selector(self.config.namespace_selector) if self.config.namespace_selector is not None else None

    def _on_owner(self, old: Tree | None, new: Tree | None) -> None:
        tree = new if new is not None else old
        if tree is not None:
            self.queue.add(key_of(tree))

    def _on_pod(self, old: Tree | None, new: Tree | None) -> None:
        for pod in (new, old):
            if pod is not None:
                key = self.owner_key(pod)
                if key:
                    self.queue.add(key)
                return

    def _on_workload(self, old: Tree | None, new: Tree | None) -> None:
        tree = new if new is not None else old
        if tree is not None:
            for reference in tree["metadata"].get("ownerReferences") or ():
                if reference["kind"] == self.resource.kind:
                    self.queue.add(f"{tree['metadata']['namespace']}/{reference['name']}")

    def owner_key(self, pod: Tree) -> str:
        """Return the key of the owner of a pod, or ""."""
        raise NotImplementedError

    def lookup(self, resource: Resource, namespace: str, name: str) -> Tree | None:
        """Find an owner in the caches."""
        informer = {STATEFUL_SETS: self._sets, LEADER_WORKER_SETS: self._lws, PODS: self._pods}.get(resource)
        return informer.get(name, namespace) if informer is not None else None

    def managed(self, owner: Tree) -> bool:
        """Tell whether Kueue manages an owner itself."""
        if self.selector is not None and not self.selector.matches(self.hub.namespace_labels(owner["metadata"]["namespace"])):
            return False
        if not queue_name(owner) and not self.config.manage_without_queue:
            return False
        try:
            return ancestor(owner, self.lookup, any_queue=self.config.manage_without_queue) is None
        except TooDeep:
            return False

    async def make(self, owner: Tree, wanted: Wanted) -> None:
        """Make a Workload."""
        meta = owner["metadata"]
        spec: Tree = {"podSets": [sanitised(each) for each in wanted.pod_sets], "queueName": queue_name(owner), "active": True}
        seconds = max_execution_time(owner)
        if seconds is not None:
            spec["maximumExecutionTimeSeconds"] = seconds
        labels = {key: value for key, value in (meta.get("labels") or {}).items() if key in self.copied}
        try:
            priority = resolve(owner, wanted.pod_sets, self._classes, self._pod_classes)
        except ClassMissing as missing:
            self.say(owner, "Warning", names.PRIORITY_CLASS_NOT_FOUND, str(missing))
            raise NotFound(str(missing)) from None
        spec["priority"] = priority.value
        if priority.reference is not None:
            spec["priorityClassRef"] = priority.reference
        workload = {
            "apiVersion": WORKLOADS.api_version,
            "kind": WORKLOADS.kind,
            "metadata": {
                "name": wanted.name,
                "namespace": meta["namespace"],
                "labels": {**labels, names.JOB_UID: meta["uid"]},
                "annotations": {
                    **kept_annotations(owner, gates=self.config.on("AdmissionGatedBy")),
                    names.IS_GROUP_WORKLOAD: "true",
                    names.JOB_OWNER_GVK: f"{self.resource.api_version}, Kind={self.resource.kind}",
                    names.JOB_OWNER_NAME: meta["name"],
                    **wanted.annotations,
                },
                "ownerReferences": [{"apiVersion": self.resource.api_version, "kind": self.resource.kind, "name": meta["name"], "uid": meta["uid"]}],
            },
            "spec": spec,
        }
        try:
            created = await self._ctx.client.create(WORKLOADS, workload)
        except AlreadyExists:
            return
        self.say(owner, "Normal", names.CREATED_WORKLOAD, f"Created Workload: {key_of(created)}")

    async def follow(self, owner: Tree, workload: Tree) -> bool:
        """Bring gates, queue and priority of a Workload in line with its owner. Tell whether something was written."""

        def say(message: str) -> None:
            self.say(owner, "Normal", names.UPDATED_WORKLOAD, message)

        if self.config.on("AdmissionGatedBy") and await follow_gates(self._ctx, owner, workload, say):
            return True
        spec = workload["spec"]
        new = spec
        if not conditions.reserved(workload) and queue_name(owner) and spec.get("queueName") != queue_name(owner):
            new = {**new, "queueName": queue_name(owner)}
        label = label_of(owner)
        reference = spec.get("priorityClassRef")
        if label and (reference is None or reference["name"] != label) and not (reference is None and conditions.reserved(workload)):
            found = self._classes.get(label)
            if found is not None:
                new = {
                    **new,
                    "priority": found["value"],
                    "priorityClassRef": {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": label},
                }
        if new is spec:
            return False
        await update_workload(self._ctx, {**workload, "spec": new})
        return True

    async def decorate(self, owner: Tree, pod: Tree, workload: str, total: int, role: str, more: dict[str, str]) -> None:
        """Mark a pod as a member of its group."""
        meta = pod["metadata"]
        labels = {names.MANAGED: "true"}
        if queue_name(owner):
            labels[names.QUEUE_NAME] = queue_name(owner)
        if label_of(owner):
            labels[names.PRIORITY_CLASS] = label_of(owner)
        annotations = {
            names.PREBUILT_WORKLOAD: workload,
            names.POD_GROUP_NAME: workload,
            names.POD_GROUP_TOTAL_COUNT: str(total),
            names.ROLE_HASH: role,
            **more,
        }
        have_labels, have = meta.get("labels") or {}, meta.get("annotations") or {}
        if all(have_labels.get(k) == v for k, v in labels.items()) and all(have.get(k) == v for k, v in annotations.items()):
            return
        if terminated(pod) or "deletionTimestamp" in meta:
            return
        patch = {"metadata": {"uid": meta["uid"], "labels": labels, "annotations": annotations}}
        try:
            await self._ctx.client.patch(PODS, meta["name"], patch, namespace=meta["namespace"])
        except (NotFound, Conflict):
            return

    async def ungate(self, pods: Iterable[Tree]) -> None:
        """Let pods go that their group's admission covers already."""
        for pod in pods:
            if names.ADMISSION_GATE not in gate_names(pod):
                continue
            gates = [each for each in pod["spec"]["schedulingGates"] if each["name"] not in (names.ADMISSION_GATE, names.TOPOLOGY_GATE)]
            spec = {key: value for key, value in pod["spec"].items() if key != "schedulingGates"}
            if gates:
                spec["schedulingGates"] = gates
            try:
                await self._ctx.client.update(PODS, {**pod, "spec": spec})
            except (NotFound, Conflict):
                continue

    async def remove(self, workload: Tree) -> None:
        """Delete a Workload, finalizer or not."""
        smaller = without_finalizer(workload, names.RESOURCE_IN_USE)
        meta = workload["metadata"]
        try:
            if smaller is not None:
                await update_workload(self._ctx, smaller)
            await self._ctx.client.delete(WORKLOADS, meta["name"], namespace=meta["namespace"], uid=meta["uid"])
        except (NotFound, Conflict):
            return

    def say(self, owner: Tree, type_: str, reason: str, message: str) -> None:
        """Record an event about an owner."""
        self._ctx.recorder.event({**owner, "kind": self.resource.kind, "apiVersion": self.resource.api_version}, type_, reason, message)


class StatefulSetController(ServingController):
    """One Workload for a StatefulSet, on hold while it is scaled to zero."""

    def __init__(self, hub: Hub) -> None:
        super().__init__(hub, STATEFUL_SETS)

    def owner_key(self, pod: Tree) -> str:
        """By the controlling owner."""
        owner = controller_of(pod)
        if owner is None or owner["kind"] != "StatefulSet" or annotation(pod, names.SUSPENDED_BY_PARENT) != "statefulset":
            return ""
        return f"{pod['metadata']['namespace']}/{owner['name']}"

    async def reconcile(self, key: str) -> float | None:
        """Take one pass over a StatefulSet."""
        owner = self._owners.get_key(key)
        if owner is None or "deletionTimestamp" in owner["metadata"] or not self.managed(owner):
            return None
        meta, spec = owner["metadata"], owner["spec"]
        replicas = spec.get("replicas", 1)
        name = workload_name("StatefulSet", "apps", meta["name"], meta["uid"])
        pods = list(self._pods.by_index("controller", meta["uid"]))
        workload = self._workloads.get(name, meta["namespace"])
        if workload is None:
            if replicas > 0:
                await self.make(owner, Wanted(name, self._pod_sets(owner), {}))
        elif "deletionTimestamp" in workload["metadata"]:
            return None
        elif replicas == 0:
            await self._hold(workload)
        elif not await self.follow(owner, workload):
            # Only then: a Workload that is queued in its former queue may have quota there before it moves
            await self._resume(owner, workload)
        more = {names.POD_GROUP_FAST_ADMISSION: "true", names.POD_GROUP_SERVING: "true", names.POD_GROUP_POD_INDEX_LABEL: STS_INDEX}
        if replicas > 0:
            for pod in pods:
                await self.decorate(owner, pod, name, replicas, names.DEFAULT_POD_SET, more)
        status = owner.get("status") or {}
        if status.get("currentRevision") != status.get("updateRevision"):
            await self.ungate(pod for pod in pods if (pod["metadata"].get("labels") or {}).get(REVISION) == status.get("currentRevision"))
        return None

    @staticmethod
    def _pod_sets(owner: Tree) -> list[Tree]:
        template = owner["spec"]["template"]
        pod_set: Tree = {
            "name": names.DEFAULT_POD_SET,
            "count": owner["spec"].get("replicas", 1),
            "template": {"metadata": {}, "spec": template["spec"]},
        }
        request = topology_request(template, STS_INDEX)
        if request:
            pod_set["topologyRequest"] = request
        return [pod_set]

    async def _hold(self, workload: Tree) -> None:
        def change(draft: Draft) -> bool:
            if conditions.finished(draft.obj):
                return False
            reservation.refuse(draft, names.ON_HOLD, "StatefulSet scaled to zero; workload on hold")
            reservation.sync_admitted(draft, self.config, (), self._ctx.env.now())
            if draft.condition(names.PODS_READY) is not None:
                draft.mark(names.PODS_READY, False, names.WAIT_FOR_START, "Not all pods are ready or succeeded")
            return True

        await write_status(self._ctx, workload, change)

    async def _resume(self, owner: Tree, workload: Tree) -> None:
        """Queue a Workload that was on hold."""
        if not on_hold(workload):
            return
        pod_sets = self._pod_sets(owner)
        if [each["count"] for each in pod_sets_of(workload)] != [each["count"] for each in pod_sets]:
            await update_workload(self._ctx, {**workload, "spec": {**workload["spec"], "podSets": pod_sets}})
            return

        def change(draft: Draft) -> bool:
            if not on_hold(draft.obj):
                return False
            reservation.refuse(draft, reservation.pending_reason(self.config), "Workload no longer on hold; waiting for quota reservation")
            return True

        await write_status(self._ctx, workload, change)


class LeaderWorkerSetController(ServingController):
    """One Workload for each group of a LeaderWorkerSet."""

    def __init__(self, hub: Hub) -> None:
        super().__init__(hub, LEADER_WORKER_SETS)
        self.copied = hub.config.labels_to_copy

    def owner_key(self, pod: Tree) -> str:
        """By the label."""
        name = (pod["metadata"].get("labels") or {}).get(LWS_NAME, "")
        return f"{pod['metadata']['namespace']}/{name}" if name else ""

    async def reconcile(self, key: str) -> float | None:
        """Take one pass over a LeaderWorkerSet."""
        owner = self._owners.get_key(key)
        if owner is None or "deletionTimestamp" in owner["metadata"] or not self.managed(owner):
            return None
        meta = owner["metadata"]
        wanted = {each.name: each for each in self._wanted(owner)}
        for workload in self._workloads.by_index("owner", meta["uid"]):
            if (
                workload["metadata"]["name"] not in wanted
                and (workload["metadata"].get("annotations") or {}).get(names.JOB_OWNER_NAME) == meta["name"]
            ):
                await self.remove(workload)
        for each in wanted.values():
            found = self._workloads.get(each.name, meta["namespace"])
            if found is None:
                await self.make(owner, each)
            elif "deletionTimestamp" not in found["metadata"]:
                await self.follow(owner, found)
        size = owner["spec"]["leaderWorkerTemplate"].get("size", 1)
        two = bool(owner["spec"]["leaderWorkerTemplate"].get("leaderTemplate"))
        for pod in self._pods.by_index("lws", key):
            group = (pod["metadata"].get("labels") or {}).get(LWS_GROUP)
            name = self._name(owner, group) if group is not None else ""
            if name in wanted:
                role = names.DEFAULT_POD_SET if not two else "worker" if annotation(pod, LWS_LEADER) else "leader"
                await self.decorate(owner, pod, name, size, role, {})
        return None

    @staticmethod
    def _name(owner: Tree, group: int | str) -> str:
        return workload_name("LeaderWorkerSet", LEADER_WORKER_SETS.group, f"{owner['metadata']['name']}-{group}", owner["metadata"]["uid"])

    def _wanted(self, owner: Tree) -> Iterator[Wanted]:
        spec, status = owner["spec"], owner.get("status") or {}
        groups = spec.get("replicas", 1)
        surge = ((spec.get("rolloutStrategy") or {}).get("rollingUpdateConfiguration") or {}).get("maxSurge", 0)
        if surge not in (0, "0", "0%") and status.get("updatedReplicas", 0) < groups:
            groups = max(groups, status.get("replicas", 0))
        for group in range(groups):
            yield Wanted(self._name(owner, group), self._pod_sets(spec["leaderWorkerTemplate"]), {names.COMPONENT_WORKLOAD_INDEX: str(group)})

    @staticmethod
    def _pod_sets(template: Tree) -> list[Tree]:
        size = template.get("size", 1)
        parts = [(names.DEFAULT_POD_SET, template["workerTemplate"], size, LWS_WORKER)]
        if template.get("leaderTemplate"):
            parts = [("leader", template["leaderTemplate"], 1, ""), ("worker", template["workerTemplate"], size - 1, LWS_WORKER)]
        found = []
        for name, each, count, label in parts:
            given = each.get("metadata") or {}
            meta = {field: _without_lws(given[field]) for field in ("labels", "annotations") if given.get(field)}
            pod_set: Tree = {"name": name, "count": count, "template": {"metadata": meta, "spec": each["spec"]}}
            request = topology_request(each, label or None)
            if request:
                pod_set["topologyRequest"] = request
            found.append(pod_set)
        return found


def _without_lws(marks: dict[str, str]) -> dict[str, str]:
    """Return labels or annotations without those that LeaderWorkerSet gives each group; its own name stays."""
    return {key: value for key, value in marks.items() if key == LWS_NAME or not key.startswith(LWS_PREFIX)}


def _lws_of(pod: Tree) -> tuple[str, ...]:
    name = (pod["metadata"].get("labels") or {}).get(LWS_NAME)
    return (f"{pod['metadata']['namespace']}/{name}",) if name else ()
