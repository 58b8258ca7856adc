"""The loop over pods of LeaderWorkerSets: it recreates groups whose pods fail, and gives each leader its workers.

Mirrors ``pkg/controllers/pod_controller.go``. A worker StatefulSet is made once and never written again: it lives and dies with its leader.
"""

from __future__ import annotations

from kubemini.api.resources import NODES, PODS, SERVICES, STATEFUL_SETS, VOLCANO_POD_GROUPS
from kubemini.api.trees import Tree
from kubemini.api.wellknown import lws as names
from kubemini.controllers.lws import restarting, revisions
from kubemini.controllers.lws.cache import Caches
from kubemini.controllers.lws.groups import pod_ready
from kubemini.controllers.lws.pod_groups import VOLCANO, pod_group
from kubemini.controllers.lws.services import headless
from kubemini.controllers.lws.view import LwsView, is_shared
from kubemini.controllers.lws.worker_set import worker_set
from kubemini.machinery.errors import AlreadyExists, ApiStatus, Conflict, InternalError, NotFound
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.keys import controller_of, key_of

REVISION_RETRY = 1.0
"""Seconds until a leader whose revision is not in the cache yet is looked at again."""
NO_ORDINALS = "leader pod {}/{} contains mistake annotation '{}': requires Kubernetes ≥v1.27 or v1.26 with StatefulSetStartOrdinal feature"


class GroupController(Controller):
    """Keys are pods that carry the name label. `provider` is the gang scheduler, "" without one."""

    name = "lws-pods"
    measured_as = "pod"
    component = "leaderworkerset"

    def __init__(self, provider: str = "") -> None:
        super().__init__()
        self._gang = provider == VOLCANO

    def setup(self, ctx: Context) -> None:
        """Follow the pods of groups and the StatefulSets of their workers."""
        self._ctx = ctx
        self._caches = Caches(ctx)
        self._nodes = ctx.informer(NODES)
        self._deleted: dict[str, None] = {}
        """Uids of leaders that were deleted here and are not gone yet: a failure takes a group down once."""
        self._vanishing: dict[str, Tree] = {}
        """Pods that were deleted without grace, as they were last: they may be gone before anybody looks, and their groups still go with them."""
        self._caches.pods.on_change(self._on_pod, marks=(names.NAME,))
        self._caches.stateful.on_change(self._on_stateful_set)

    def _on_pod(self, old: Tree | None, new: Tree | None) -> None:
        if new is None:
            if old is not None:
                self._deleted.pop(old["metadata"]["uid"], None)
            return
        labels = new["metadata"].get("labels")
        if labels and names.NAME in labels:
            if restarting.vanishes(new):
                self._vanishing[key_of(new)] = new
            self.queue.add(key_of(new))

    def _on_stateful_set(self, old: Tree | None, new: Tree | None) -> None:
        changed = new if new is not None else old
        if changed is None or names.NAME not in (changed["metadata"].get("labels") or {}):
            return
        owner = controller_of(changed)
        if owner is not None and owner["kind"] == "Pod":
            self.queue.add(f"{changed['metadata']['namespace']}/{owner['name']}")

    async def reconcile(self, key: str) -> float | None:
        """Look at one pod, and at the one before it of its name that went without grace."""
        pod = self._caches.pods.get_key(key)
        gone = self._vanishing.get(key)
        if gone is not None and (pod is None or pod["metadata"]["uid"] != gone["metadata"]["uid"]):
            await self._look_at(gone)
        self._vanishing.pop(key, None)
        return None if pod is None else await self._look_at(pod)

    async def _look_at(self, pod: Tree) -> float | None:
        meta = pod["metadata"]
        labels = meta.get("labels") or {}
        for label in (names.NAME, names.WORKER_INDEX):
            if label not in labels:
                raise InternalError(f"{label} label is unexpected missing")
        tree = self._caches.sets.get(labels[names.NAME], meta["namespace"])
        if tree is None:
            return None
        owner = LwsView(tree)
        if await self._restart(owner, pod) or labels[names.WORKER_INDEX] != "0":
            return None
        if (meta.get("annotations") or {}).get(names.LEADER_NAME):
            self._say(owner, pod, names.FAILED_CREATE, NO_ORDINALS.format(meta["namespace"], meta["name"], names.LEADER_NAME), "Create", "Warning")
            return None
        # Nothing may be made for a leader that is going
        return None if "deletionTimestamp" in meta else await self._follow(owner, pod)

    # ------------------------------------------------------------------ restarting

    async def _restart(self, owner: LwsView, pod: Tree) -> bool:
        """Recreate the group of a pod in trouble. Tell whether its leader is going."""
        meta = pod["metadata"]
        index = (meta.get("labels") or {}).get(names.GROUP_INDEX, "")
        group = self._caches.pods.by_index("lws-group", f"{owner.namespace}/{owner.name}/{index}")
        if not restarting.recreates(owner, pod, group):
            return False
        leader = pod if meta["labels"][names.WORKER_INDEX] == "0" else self._leader_of(pod)
        if leader is None:
            return False
        if "deletionTimestamp" in leader["metadata"] or leader["metadata"]["uid"] in self._deleted:
            return True
        about = leader["metadata"]
        self._deleted[about["uid"]] = None
        try:
            await self._ctx.client.delete(PODS, about["name"], namespace=about["namespace"], uid=about["uid"], propagation="Foreground")
        except (NotFound, Conflict):
            return True
        except ApiStatus:
            self._deleted.pop(about["uid"], None)
            raise
        text = f"Worker pod {meta['name']} failed, deleted leader pod {about['name']} to recreate group {index}"
        self._say(owner, leader, names.RECREATE_GROUP, text, "Delete")
        return True

    def _leader_of(self, pod: Tree) -> Tree | None:
        """Return the leader that a worker follows, None where it follows none that is there."""
        meta = pod["metadata"]
        name, dash, ordinal = meta["name"].rpartition("-")
        if not dash or not (ordinal.isascii() and ordinal.isdigit()):
            raise InternalError(f"parsing pod name for pod {meta['name']}")
        leader = self._caches.pods.get(name, meta["namespace"])
        if leader is None:
            return None
        reference = controller_of(pod)
        workers = self._caches.stateful.get(reference["name"], meta["namespace"]) if reference is not None else None
        return leader if restarting.is_follower(pod, leader, workers) else None

    # ------------------------------------------------------------------ what a leader needs

    async def _follow(self, owner: LwsView, leader: Tree) -> float | None:
        """Give a leader what its group needs: a Service of its own, a PodGroup, its workers."""
        name: str = leader["metadata"]["name"]
        if not is_shared(owner.spec.get("networkConfig")):
            await self._serve(owner, leader)
        if self._gang:
            await self._gather(owner, leader)
        if owner.size == 1 or (owner.leader_ready_first and not pod_ready(leader)):
            return None
        revision = revisions.of_key(self._caches.history(owner.tree), revisions.key_of(leader))
        if revision is None:
            return REVISION_RETRY
        domain: tuple[str, str] | None = None
        if owner.exclusive_topology is not None:
            if not leader["spec"].get("nodeName"):
                return None
            domain = owner.exclusive_topology, self._domain_of(leader, owner.exclusive_topology)
        if self._caches.stateful.get(name, owner.namespace) is not None:
            return None
        try:
            await self._ctx.client.create(STATEFUL_SETS, worker_set(owner, leader, revision, domain))
        except AlreadyExists:
            return None
        except ApiStatus as refused:
            text = f"Failed to create worker statefulset for leader pod {name}: {refused.message}"
            self._say(owner, leader, names.FAILED_CREATE, text, "Create", "Warning")
            raise
        self._say(owner, leader, names.GROUPS_PROGRESSING, f"Created worker statefulset for leader pod {name}", "Create")
        return None

    async def _serve(self, owner: LwsView, leader: Tree) -> None:
        name = leader["metadata"]["name"]
        if self._caches.services.get(name, owner.namespace) is not None:
            return
        selector = {names.NAME: owner.name, names.GROUP_INDEX: leader["metadata"]["labels"].get(names.GROUP_INDEX, "")}
        try:
            await self._ctx.client.create(SERVICES, headless(owner.name, name, selector, {**leader, "apiVersion": "v1", "kind": "Pod"}))
        except AlreadyExists:
            return

    async def _gather(self, owner: LwsView, leader: Tree) -> None:
        wanted = pod_group(owner, leader)
        try:
            await self._ctx.client.get(VOLCANO_POD_GROUPS, wanted["metadata"]["name"], owner.namespace)
        except NotFound:
            try:
                await self._ctx.client.create(VOLCANO_POD_GROUPS, wanted)
            except AlreadyExists:
                return

    def _domain_of(self, leader: Tree, key: str) -> str:
        """Return the topology domain of a leader's node. Raise `InternalError` where that cannot be told yet."""
        node_name = leader["spec"]["nodeName"]
        node = self._nodes.get(node_name)
        if node is None:
            raise InternalError(f'getting node "{node_name}": Node "{node_name}" not found')
        domain: str | None = (node["metadata"].get("labels") or {}).get(key)
        if domain is None:
            raise InternalError(f"node does not have topology label: {key}")
        return domain

    def _say(self, owner: LwsView, pod: Tree, reason: str, message: str, action: str, type_: str = "Normal") -> None:
        self._ctx.recorder.acted(owner.tree, type_, reason, message, action=action, related=pod)
