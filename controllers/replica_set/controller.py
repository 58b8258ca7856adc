"""The ReplicaSet loop: one reconcile claims the pods, makes or deletes the difference, and tells the counts. ReplicationControllers are kept by the same code."""

from __future__ import annotations

from collections.abc import Sequence

from kubemini.api.resources import PODS, REPLICATION_CONTROLLERS, Resource
from kubemini.api.trees import Tree
from kubemini.controllers.replica_set.claiming import Claims
from kubemini.controllers.replica_set.metrics import Metrics
from kubemini.controllers.replica_set.pods import ended, is_active, next_available, ready_since, victims
from kubemini.controllers.replica_set.status import calculated
from kubemini.controllers.replica_set.writing import PodTemplate, PodWriter
from kubemini.machinery.errors import ApiStatus
from kubemini.machinery.labels import Selector, from_label_selector, from_labels
from kubemini.runtime.consistency import LAPSE, StatusWrites
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.keys import controller_of, key_of
from kubemini.runtime.selecting import SelectorIndex

BURST = 500
"""Pods that one pass makes or deletes."""
BATCH_SECONDS, BATCH_PER_POD, BATCH_LIMIT = 0.02, 50e-6, 1.0
"""Pod events are answered together: a pass follows the first one after this long, longer where there are many pods."""


def selector_of(owner: Tree) -> Selector:
    """Return which pods a ReplicaSet or ReplicationController means; nothing where it does not say."""
    selector = owner["spec"].get("selector")
    if not selector:
        return from_label_selector(None)
    return from_labels(selector) if owner["kind"] == REPLICATION_CONTROLLERS.kind else from_label_selector(selector)


class ReplicaSetController(Controller):
    """Keys are ReplicaSets (or ReplicationControllers)."""

    def __init__(self, name: str, component: str, resource: Resource) -> None:
        super().__init__()
        self.name = name
        self.measured_as = "replicationmanager" if resource == REPLICATION_CONTROLLERS else ""
        self.component = component
        self._resource = resource

    def setup(self, ctx: Context) -> None:
        """Follow the sets and their pods."""
        self._ctx = ctx
        self._sets = ctx.informer(self._resource)
        self._pods = ctx.informer(PODS)
        self._claims = Claims(ctx, self._resource, self._pods)
        self._writer = PodWriter(ctx)
        self._selectors = SelectorIndex()
        self._templates: dict[str, tuple[Tree, PodTemplate]] = {}
        self._status_writes = StatusWrites()
        self._metrics = Metrics()
        if self._resource != REPLICATION_CONTROLLERS:
            self.families = self._metrics.all()
        self._tells_terminating = ctx.gates.enabled("DeploymentReplicaSetTerminatingReplicas") and self._resource != REPLICATION_CONTROLLERS
        self._sets.add_index("owner", _owner_uid)
        self._sets.on_change(self._on_set)
        self._pods.on_change(self._on_pod, controller=self._resource.kind)

    # ------------------------------------------------------------------ events

    def _on_set(self, old: Tree | None, new: Tree | None) -> None:
        obj = new if new is not None else old
        if obj is None:
            return
        key = key_of(obj)
        if new is None:
            self._selectors.drop(key)
            self._templates.pop(obj["metadata"]["uid"], None)
            self._status_writes.forget(key)
        elif old is None or old["spec"].get("selector") is not new["spec"].get("selector"):
            self._selectors.put(key, new["metadata"]["namespace"], selector_of(new))
        if new is not None and old is not None and old["metadata"]["uid"] != new["metadata"]["uid"]:
            self._writer.expectations.forget(old["metadata"]["uid"])
        if old is not None and new is not None and old["spec"] is new["spec"]:
            self.queue.add_after(key, BATCH_SECONDS)
        else:
            self.queue.add(key)

    def _on_pod(self, old: Tree | None, new: Tree | None) -> None:
        pod = new if new is not None else old
        if pod is None:
            return
        owner = controller_of(pod)
        before = controller_of(old) if old is not None and new is not None else None
        if before is not None and before is not owner and (owner is None or before["uid"] != owner["uid"]):
            self._due(before, pod)
        if owner is None:
            if new is not None and (old is None or before is not None or old["metadata"].get("labels") != new["metadata"].get("labels")):
                for key in self._selectors.matching(new["metadata"]["namespace"], new["metadata"].get("labels")):
                    self.queue.add_after(key, BATCH_SECONDS)
            return
        if owner["kind"] == self._resource.kind:
            self._writer.observe(owner["uid"], old, new)
            self._due(owner, pod)

    def _due(self, owner: Tree, pod: Tree) -> None:
        if owner["kind"] == self._resource.kind:
            pods = self._pods.count_index("controller", owner["uid"])
            self.queue.add_after(f"{pod['metadata']['namespace']}/{owner['name']}", min(BATCH_SECONDS + pods * BATCH_PER_POD, BATCH_LIMIT))

    # ------------------------------------------------------------------ the pass

    async def reconcile(self, key: str) -> float | None:
        """Take one pass over a set."""
        owner = self._sets.get_key(key)
        if owner is None:
            return None
        if self._status_writes.behind(key, owner["metadata"]):
            # The cache will show our last write, and that brings the next pass
            self._metrics.stale.count(self._resource)
            return LAPSE
        pods = await self._claims.claim(owner, selector_of(owner))
        active = [pod for pod in pods if is_active(pod)]
        failure: tuple[str, str] | None = None
        refusal: ApiStatus | None = None
        if "deletionTimestamp" not in owner["metadata"] and self._writer.expectations.satisfied(owner["metadata"]["uid"]):
            short = len(active) < owner["spec"].get("replicas", 1)
            refusal = await self._manage(owner, active)
            if refusal is not None:
                failure = ("FailedCreate" if short else "FailedDelete", refusal.message)
        elif (lapse := self._writer.expectations.lapses_in(owner["metadata"]["uid"])) is not None:
            self.queue.add_after(key, max(lapse, 0.0) + 0.001)
        terminating: int | None = None
        if self._tells_terminating:
            terminating = sum(1 for pod in pods if "deletionTimestamp" in pod["metadata"] and not ended(pod))
        now = self._ctx.env.now()
        status = calculated(owner, active, terminating, failure, now, self._ctx.env.stamp())
        if status != (owner.get("status") or {}):
            written = await self._ctx.client.update_status(self._resource, {**owner, "status": status})
            self._status_writes.note(key, written)
        if refusal is not None:
            raise refusal
        min_ready = owner["spec"].get("minReadySeconds", 0)
        return next_available(active, min_ready, now) if min_ready and any(ready_since(pod) is not None for pod in active) else None

    async def _manage(self, owner: Tree, active: Sequence[Tree]) -> ApiStatus | None:
        excess = len(active) - owner["spec"].get("replicas", 1)
        if excess < 0:
            make = self._template(owner).make
            return await self._writer.create(owner, [make] * min(-excess, BURST))
        if excess > 0:
            self._writer.expectations.forget(owner["metadata"]["uid"])
            now = self._ctx.env.now()
            chosen = victims(active, self._related(owner), min(excess, BURST), now)
            if len(chosen) < len(active):
                self._metrics.chose(chosen, active, now)
            return await self._writer.delete(owner, chosen)
        return None

    def _template(self, owner: Tree) -> PodTemplate:
        uid, template = owner["metadata"]["uid"], owner["spec"]["template"]
        known = self._templates.get(uid)
        if known is None or known[0] is not template:
            known = self._templates[uid] = (
                template,
                PodTemplate({**owner, "apiVersion": self._resource.api_version, "kind": self._resource.kind}, template),
            )
        return known[1]

    def _related(self, owner: Tree) -> list[Tree]:
        """Return the pods of all sets that have the same controller (the ReplicaSets of one Deployment)."""
        above = controller_of(owner)
        family = self._sets.by_index("owner", above["uid"]) if above is not None else [owner]
        return [pod for each in family for pod in self._claims.owned(each["metadata"]["uid"])]


def _owner_uid(obj: Tree) -> tuple[str, ...]:
    owner = controller_of(obj)
    return (owner["uid"],) if owner is not None else ()
