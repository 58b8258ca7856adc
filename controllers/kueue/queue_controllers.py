"""The loops of ClusterQueues, LocalQueues, Cohorts, and of what ClusterQueues refer to: status, and finalizers that keep things while they are in use.

Status is written in small batches after events, never when nothing changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kubemini.api.resources import ADMISSION_CHECKS, CLUSTER_QUEUES, COHORTS, LOCAL_QUEUES, RESOURCE_FLAVORS, TOPOLOGIES, Resource
from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.controllers.kueue.amounts import shown
from kubemini.controllers.kueue.cache import QueueState
from kubemini.controllers.kueue.conditions import Draft
from kubemini.controllers.kueue.fairness import weighted_share
from kubemini.controllers.kueue.finalizers import with_finalizer, without_finalizer
from kubemini.controllers.kueue.hub import Hub
from kubemini.controllers.kueue.workloads import admissible
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.keys import key_of

BATCH_SECONDS = 0.1
"""Status follows Workloads this long after the first event (upstream: 1 s)."""
MOST_FLAVORS = 64


class _Own:
    """Passes on changes of a controller's objects, but not the events of its own status writes: they say nothing that it has not said itself."""

    def __init__(self, add: Callable[[str], None]) -> None:
        self._add = add
        self._last: dict[str, str] = {}

    def wrote(self, obj: Tree) -> None:
        """Note what the API returned."""
        self._last[key_of(obj)] = obj["metadata"]["resourceVersion"]

    def on_change(self, old: Tree | None, new: Tree | None) -> None:
        """Take an event of an informer."""
        if new is None:
            if old is not None:
                self._last.pop(key_of(old), None)
        elif self._last.get(key_of(new)) != new["metadata"]["resourceVersion"]:
            self._add(key_of(new))


class ClusterQueueController(Controller):
    """Keys are ClusterQueues: conditions, counters, usage, and the finalizer that keeps one while Workloads hold its quota."""

    name = "kueue-clusterqueue"
    component = "kueue-clusterqueue-controller"

    def __init__(self, hub: Hub) -> None:
        super().__init__()
        self.hub = hub

    def setup(self, ctx: Context) -> None:
        """Follow ClusterQueues and the hub."""
        self._ctx = ctx
        self.hub.attach(ctx)
        self._queues = ctx.informer(CLUSTER_QUEUES)
        self._own = _Own(self.queue.add)
        self._queues.on_change(self._own.on_change)
        self.hub.on_queue = lambda name: self.queue.add_after(name, BATCH_SECONDS) if name else None

    async def reconcile(self, key: str) -> float | None:
        """Write a ClusterQueue's status, or let it go."""
        tree = self._queues.get_key(key)
        state = self.hub.cache.linked().queues.get(key)
        if tree is None or state is None:
            return None
        if "deletionTimestamp" in tree["metadata"]:
            if not state.holding:
                smaller = without_finalizer(tree, names.RESOURCE_IN_USE)
                if smaller is not None:
                    await self._ctx.client.update(CLUSTER_QUEUES, smaller)
                    return None
        elif (kept := with_finalizer(tree, names.RESOURCE_IN_USE)) is not tree:
            await self._ctx.client.update(CLUSTER_QUEUES, kept)
            return None
        draft = Draft(tree, self._ctx.env.stamp())
        health = self.hub.cache.health(key)
        draft.mark(names.ACTIVE, health.active, health.reason, health.message)
        draft.set("flavorsReservation", _usage(state, state.node.usage))
        draft.set("flavorsUsage", _usage(state, state.admitted_usage))
        pending = self.hub.pending.get(key)
        draft.set("pendingWorkloads", len(pending.entries) if pending is not None else 0)
        draft.set("reservingWorkloads", len(state.holding))
        draft.set("admittedWorkloads", state.admitted)
        if self.hub.config.fair_sharing:
            draft.set("fairSharing", {"weightedShare": weighted_share(state.node)})
        if draft.changed:
            self._own.wrote(await self._ctx.client.update_status(CLUSTER_QUEUES, draft.tree()))
        return None


def _usage(state: QueueState, usage: dict[tuple[str, str], int]) -> list[Tree] | None:
    """Return usage per flavor and resource with flavors in the order of the spec and resources in that of their names, with what is borrowed where there is a cohort; None without flavors."""
    found: list[Tree] = []
    for group in state.groups:
        for flavor in group.flavors:
            resources = []
            for resource in sorted(group.resources):
                total = usage.get((flavor, resource), 0)
                over = max(0, total - state.node.nominal((flavor, resource))) if state.cohort else 0
                resources.append({"name": resource, "total": shown(resource, total), "borrowed": shown(resource, over)})
            found.append({"name": flavor, "resources": resources})
    return found or None


class LocalQueueController(Controller):
    """Keys are LocalQueues: conditions, counters and usage."""

    name = "kueue-localqueue"
    component = "kueue-localqueue-controller"

    def __init__(self, hub: Hub) -> None:
        super().__init__()
        self.hub = hub

    def setup(self, ctx: Context) -> None:
        """Follow LocalQueues, their ClusterQueues and the hub."""
        self._ctx = ctx
        self.hub.attach(ctx)
        self._own = _Own(self.queue.add)
        self.hub.local_queues.on_change(self._own.on_change)
        self.hub.workloads.on_change(self._on_workload)
        ctx.informer(CLUSTER_QUEUES).on_change(self._on_cluster_queue)
        self.hub.on_local_queue = lambda key: self.queue.add_after(key, BATCH_SECONDS)

    def _on_workload(self, old: Tree | None, new: Tree | None) -> None:
        tree = new if new is not None else old
        if tree is not None:
            key = f"{tree['metadata']['namespace']}/{tree['spec'].get('queueName', '')}"
            local = self.hub.local_queues.get_key(key)
            if local is not None and local["spec"].get("clusterQueue", "") not in self.hub.cache.queues:
                self.queue.add_after(key, BATCH_SECONDS)

    def _on_cluster_queue(self, old: Tree | None, new: Tree | None) -> None:
        tree = new if new is not None else old
        if tree is not None and (old is None or new is None or old["spec"] != new["spec"] or "deletionTimestamp" in new["metadata"]):
            for local in self.hub.local_queues.by_index("clusterQueue", tree["metadata"]["name"]):
                self.queue.add(key_of(local))

    async def reconcile(self, key: str) -> float | None:
        """Write a LocalQueue's status."""
        tree = self.hub.local_queues.get_key(key)
        if tree is None:
            return None
        cache = self.hub.cache.linked()
        draft = Draft(tree, self._ctx.env.stamp())
        name = tree["spec"].get("clusterQueue", "")
        state = cache.queues.get(name)
        wait: float | None = None
        if tree["spec"].get("stopPolicy", "None") != "None":
            draft.mark(names.ACTIVE, False, names.STOPPED, "LocalQueue is stopped")
        elif state is None:
            draft.mark(names.ACTIVE, False, names.CLUSTER_QUEUE_DOES_NOT_EXIST, "Can't submit new workloads to clusterQueue")
        elif not cache.health(name).active:
            draft.mark(names.ACTIVE, False, names.CLUSTER_QUEUE_IS_INACTIVE, "Can't submit new workloads to clusterQueue")
        else:
            draft.mark(names.ACTIVE, True, names.READY, "Can submit new workloads to localQueue")
            wait = self._sample(key, draft)
        local = cache.local.get(key)
        draft.set("pendingWorkloads", self._pending(key, known=state is not None))
        draft.set("reservingWorkloads", local.reserving if local is not None else 0)
        draft.set("admittedWorkloads", local.admitted if local is not None else 0)
        if state is not None:
            draft.set("flavorsReservation", _local_usage(state, local.reserved_usage if local is not None else {}))
            draft.set("flavorsUsage", _local_usage(state, local.admitted_usage if local is not None else {}))
        else:
            draft.set("flavorsReservation", None)
            draft.set("flavorsUsage", None)
        if draft.changed:
            self._own.wrote(await self._ctx.client.update_status(LOCAL_QUEUES, draft.tree()))
        if wait is not None and self.hub.admission_fairness is not None:
            self.hub.admission_fairness.saved(key)
        return wait

    def _sample(self, key: str, draft: Draft) -> float | None:
        """Tell of what was used, where it counts and a sample is due (also where the ClusterQueue does not go by it). Return when to look again."""
        fairness = self.hub.admission_fairness
        if fairness is None:
            return None
        wait, status = fairness.sample(key, self._ctx.env.stamp())
        if status is not None:
            draft.set("fairSharing", status)
        return wait

    def _pending(self, key: str, *, known: bool) -> int:
        """Return how many Workloads wait; those of a LocalQueue without ClusterQueue stand in no queue and are counted one by one."""
        if known:
            return self.hub.local_pending.get(key, 0)
        tree = self.hub.local_queues.get_key(key)
        if tree is None or tree["spec"].get("stopPolicy", "None") != "None":
            return 0
        return sum(1 for workload in self.hub.workloads.by_index("queue", key) if admissible(workload))


def _local_usage(state: QueueState, usage: dict[tuple[str, str], int]) -> list[Tree] | None:
    found: list[Tree] = []
    for group in state.groups:
        for flavor in group.flavors:
            resources = [{"name": resource, "total": shown(resource, usage.get((flavor, resource), 0))} for resource in sorted(group.resources)]
            found.append({"name": flavor, "resources": resources})
    return found[:MOST_FLAVORS] or None


class CohortController(Controller):
    """Keys are Cohorts: their share, where fair sharing is on."""

    name = "kueue-cohort"
    component = "kueue-cohort-controller"

    def __init__(self, hub: Hub) -> None:
        super().__init__()
        self.hub = hub

    def setup(self, ctx: Context) -> None:
        """Follow Cohorts, and ClusterQueues as a sign that usage has changed."""
        self._ctx = ctx
        self.hub.attach(ctx)
        self._cohorts = ctx.informer(COHORTS)
        self._cohorts.on_change(lambda old, new: self.queue.add(key_of(new)) if new is not None else None)
        if self.hub.config.fair_sharing:
            ctx.informer(CLUSTER_QUEUES).on_change(self._on_cluster_queue)

    def _on_cluster_queue(self, old: Tree | None, new: Tree | None) -> None:
        for name in self._cohorts.objects:
            self.queue.add_after(name, BATCH_SECONDS)

    async def reconcile(self, key: str) -> float | None:
        """Write a Cohort's share."""
        tree = self._cohorts.get_key(key)
        if tree is not None and "status" not in tree:
            await self._ctx.client.update_status(COHORTS, {**tree, "status": {}})
            return None
        node = self.hub.cache.linked().cohorts.get(key)
        if tree is None or node is None or not self.hub.config.fair_sharing:
            return None
        draft = Draft(tree, self._ctx.env.stamp())
        draft.set("fairSharing", {"weightedShare": weighted_share(node)})
        if draft.changed:
            await self._ctx.client.update_status(COHORTS, draft.tree())
        return None


class InUseController(Controller):
    """Keeps a kind of object (flavor, check, topology) by a finalizer for as long as something names it."""

    def __init__(self, hub: Hub, resource: Resource, users: Callable[[Hub, str], Iterable[str]], watched: Resource) -> None:
        super().__init__()
        self.name = f"kueue-{resource.kind.lower()}"
        self.component = f"{self.name}-controller"
        self.hub = hub
        self._resource = resource
        self._users = users
        self._watched = watched

    def setup(self, ctx: Context) -> None:
        """Follow the kind, and what may name it."""
        self._ctx = ctx
        self.hub.attach(ctx)
        self._objects = ctx.informer(self._resource)
        self._objects.on_change(lambda old, new: self.queue.add(key_of(new)) if new is not None else None)
        ctx.informer(self._watched).on_change(self._on_user)

    def _on_user(self, old: Tree | None, new: Tree | None) -> None:
        if old is None or new is None or old["spec"] != new["spec"]:
            for key, obj in self._objects.objects.items():
                if "deletionTimestamp" in obj["metadata"]:
                    self.queue.add(key)

    async def reconcile(self, key: str) -> float | None:
        """Add the finalizer to a live object; take it from a deleted one that nothing names."""
        tree = self._objects.get_key(key)
        if tree is None:
            return None
        if "deletionTimestamp" not in tree["metadata"]:
            kept = with_finalizer(tree, names.RESOURCE_IN_USE)
            if kept is not tree:
                await self._ctx.client.update(self._resource, kept)
            return None
        if any(True for _ in self._users(self.hub, key)):
            return None
        smaller = without_finalizer(tree, names.RESOURCE_IN_USE)
        if smaller is not None:
            await self._ctx.client.update(self._resource, smaller)
        return None


def in_use_controllers(hub: Hub) -> list[Controller]:
    """Return the finalizer loops of flavors, checks and topologies."""
    return [
        InUseController(
            hub, RESOURCE_FLAVORS, lambda hub, name: (q for q, state in hub.cache.queues.items() if name in state.flavors()), CLUSTER_QUEUES
        ),
        InUseController(
            hub,
            ADMISSION_CHECKS,
            lambda hub, name: (q for q, state in hub.cache.queues.items() if any(check == name for check, _ in state.checks)),
            CLUSTER_QUEUES,
        ),
        InUseController(
            hub,
            TOPOLOGIES,
            lambda hub, name: (f for f, tree in hub.cache.flavors.items() if tree["spec"].get("topologyName") == name),
            RESOURCE_FLAVORS,
        ),
    ]
