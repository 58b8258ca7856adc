"""The collector's loop. Mirrors kube-controller-manager's garbage collector.

An object goes when all its owners are absent (asked of the API, never of a cache alone). Foreground: an owner waits until no dependent with
``blockOwnerDeletion`` is left. Orphan: dependents lose the reference, then the owner goes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kubemini.api.resources import Resource
from kubemini.api.trees import Tree
from kubemini.controllers.garbage_collector.graph import Graph, Node
from kubemini.machinery.errors import ApiStatus, Conflict, NotFound
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.everything import Everything
from kubemini.runtime.keys import key_of

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"


@dataclass(slots=True)
class _Owners:
    """An object's owner references by what became of the owners."""

    solid: list[Tree] = field(default_factory=list)
    dangling: list[Tree] = field(default_factory=list)
    waiting: list[Tree] = field(default_factory=list)
    """Owners that are deleting their dependents in the foreground."""


class GarbageCollector(Controller):
    """Keys are ``storage|namespace/name``."""

    name = "garbage-collector"
    component = "garbage-collector-controller"

    def setup(self, ctx: Context) -> None:
        """Follow everything."""
        self._ctx = ctx
        self._graph = Graph()
        self._absent: dict[str, None] = {}
        """Uids known to be gone for good (a uid never comes back)."""
        self._everything = Everything(ctx, self._on_change, reads=("ownerReferences", "deletionTimestamp", "finalizers"))

    async def started(self) -> None:
        """Look at every object once: owners may have vanished while nobody watched."""
        self._everything.started()
        for informer in self._everything.informers.values():
            for key, obj in informer.objects.items():
                if "ownerReferences" in obj["metadata"] or "deletionTimestamp" in obj["metadata"]:
                    self._add(informer.resource, key)

    def _add(self, resource: Resource, key: str) -> None:
        self.queue.add(f"{resource.storage}|{key}")

    def _on_change(self, resource: Resource, old: Tree | None, new: Tree | None) -> None:
        if new is not None and old is not None:
            meta, before = new["metadata"], old["metadata"]
            if meta.get("ownerReferences") is before.get("ownerReferences") and "deletionTimestamp" not in meta and meta["uid"] == before["uid"]:
                return
        obj = new if new is not None else old
        if obj is None:
            return
        key = key_of(obj)
        self._graph.change(resource, key, old, new)
        meta = obj["metadata"]
        if new is None:
            self._gone(meta["uid"])
            # An owner in foreground deletion waits for this one
            for reference in meta.get("ownerReferences") or ():
                self._wake(reference["uid"])
            return
        if old is not None and old["metadata"].get("ownerReferences") is not meta.get("ownerReferences"):
            # An owner in foreground deletion may have waited for this one alone
            kept = _blocked(new)
            for uid in _blocked(old):
                if uid not in kept:
                    self._wake(uid)
        if "deletionTimestamp" in meta:
            if not _left_alone(obj):
                self._add(resource, key)
                if FOREGROUND in meta["finalizers"]:
                    self._add_dependents(meta["uid"])
        elif meta.get("ownerReferences") and (old is None or old["metadata"].get("ownerReferences") is not meta["ownerReferences"]):
            # Only dangling or deleting owners need a look; live ones are told by their own events
            for reference in meta["ownerReferences"]:
                owner = self._graph.nodes.get(reference["uid"])
                if owner is None or self._deleting(owner):
                    self._add(resource, key)
                    break

    def _add_dependents(self, uid: str) -> None:
        """Have those looked at that name an owner which is deleting them."""
        for node in self._graph.dependents(uid):
            obj = self._object(node)
            if obj is None or not _left_alone(obj):
                self._add(node.resource, node.key)

    def _gone(self, uid: str) -> None:
        if self._graph.has_dependents(uid):
            self._absent[uid] = None
            if len(self._absent) > 4096:
                del self._absent[next(iter(self._absent))]
            for node in self._graph.dependents(uid):
                self._add(node.resource, node.key)

    def _wake(self, uid: str) -> None:
        node = self._graph.nodes.get(uid)
        if node is not None and self._deleting(node):
            self._add(node.resource, node.key)

    def _deleting(self, node: Node) -> bool:
        obj = self._object(node)
        return obj is not None and "deletionTimestamp" in obj["metadata"]

    def _object(self, node: Node) -> Tree | None:
        informer = self._everything.informers.get(node.resource.storage)
        return informer.get_key(node.key) if informer is not None else None

    # ------------------------------------------------------------------ one object

    async def reconcile(self, key: str) -> float | None:
        """Decide about one object."""
        storage, _, name = key.partition("|")
        informer = self._everything.informers.get(storage)
        obj = informer.get_key(name) if informer is not None else None
        if obj is None or informer is None:
            return None
        try:
            await self._decide(informer.resource, obj)
        except NotFound:
            return None
        except Conflict:
            # Somebody changed it meanwhile: the change comes back as an event, but it may already be in the cache
            self.queue.add_rate_limited(key)
        return None

    async def _decide(self, resource: Resource, obj: Tree) -> None:
        meta = obj["metadata"]
        if "deletionTimestamp" in meta:
            finalizers = meta.get("finalizers") or ()
            if ORPHAN in finalizers:
                await self._orphan(resource, obj)
                return
            if FOREGROUND not in finalizers:
                return
            if not self._blocked(meta["uid"]):
                await self._drop_finalizer(resource, obj, FOREGROUND)
                return
            self._add_dependents(meta["uid"])
        if meta.get("ownerReferences"):
            await self._judge(resource, obj)

    def _blocked(self, uid: str) -> bool:
        for node in self._graph.dependents(uid):
            obj = self._object(node)
            if obj is not None and any(
                reference["uid"] == uid and reference.get("blockOwnerDeletion") for reference in obj["metadata"].get("ownerReferences") or ()
            ):
                return True
        return False

    async def _judge(self, resource: Resource, obj: Tree) -> None:
        meta = obj["metadata"]
        owners = await self._classify(resource, obj)
        if owners.solid:
            lost = {reference["uid"] for reference in (*owners.dangling, *owners.waiting)}
            if lost:
                kept = [reference for reference in meta["ownerReferences"] if reference["uid"] not in lost]
                await self._write_owners(resource, obj, kept)
            return
        if not owners.dangling and not owners.waiting:
            return
        finalizers = meta.get("finalizers") or ()
        if owners.waiting and self._graph.has_dependents(meta["uid"]):
            propagation = "Foreground"
        elif ORPHAN in finalizers:
            propagation = "Orphan"
        elif FOREGROUND in finalizers:
            propagation = "Foreground"
        else:
            propagation = "Background"
        if "deletionTimestamp" in meta and FOREGROUND in finalizers:
            return
        await self._ctx.client.delete(
            resource,
            meta["name"],
            namespace=meta.get("namespace", ""),
            propagation=propagation,
            uid=meta["uid"],
            resource_version=meta["resourceVersion"],
        )

    async def _classify(self, resource: Resource, obj: Tree) -> _Owners:
        found = _Owners()
        for reference in obj["metadata"]["ownerReferences"]:
            owner = await self._owner(resource, obj, reference)
            if owner is _UNKNOWN:
                found.solid.append(reference)
            elif owner is None:
                found.dangling.append(reference)
            elif "deletionTimestamp" in owner["metadata"] and FOREGROUND in (owner["metadata"].get("finalizers") or ()):
                found.waiting.append(reference)
            else:
                found.solid.append(reference)
        return found

    async def _owner(self, resource: Resource, obj: Tree, reference: Tree) -> Tree | None:
        """Return a live owner, None when it is gone for good, or `_UNKNOWN` when nobody can tell."""
        uid = reference["uid"]
        if uid in self._absent:
            return None
        node = self._graph.nodes.get(uid)
        cached = self._object(node) if node is not None else None
        if cached is not None:
            return cached
        owner_resource = self._everything.by_kind.get((reference["apiVersion"], reference["kind"]))
        if owner_resource is None:
            self._everything.refresh()
            owner_resource = self._everything.by_kind.get((reference["apiVersion"], reference["kind"]))
            if owner_resource is None:
                return _UNKNOWN
        namespace = obj["metadata"].get("namespace", "")
        if owner_resource.namespaced and not namespace:
            text = f'ownerRef [{reference["apiVersion"]}/{reference["kind"]}, namespace: , name: {reference["name"]}, uid: {uid}] does not exist in namespace ""'
            self._ctx.recorder.event(obj, "Warning", "OwnerRefInvalidNamespace", text)
            return _UNKNOWN
        try:
            live = await self._ctx.client.get(owner_resource, reference["name"], namespace if owner_resource.namespaced else "")
        except NotFound:
            live = None
        except ApiStatus:
            return _UNKNOWN
        if live is None or live["metadata"]["uid"] != uid:
            self._absent[uid] = None
            return None
        return live

    # ------------------------------------------------------------------ writes

    async def _orphan(self, resource: Resource, obj: Tree) -> None:
        uid = obj["metadata"]["uid"]
        for node in self._graph.dependents(uid):
            dependent = self._object(node)
            if dependent is None:
                continue
            kept = [reference for reference in dependent["metadata"].get("ownerReferences") or () if reference["uid"] != uid]
            try:
                await self._write_owners(node.resource, dependent, kept)
            except NotFound:
                continue
        await self._drop_finalizer(resource, obj, ORPHAN)

    async def _write_owners(self, resource: Resource, obj: Tree, kept: list[Tree]) -> None:
        meta = obj["metadata"]
        patch = {"metadata": {"ownerReferences": kept or None, "uid": meta["uid"]}}
        if len(kept) + 1 != len(meta.get("ownerReferences") or ()):
            # More than one goes at once: only on the state that was judged
            patch["metadata"]["resourceVersion"] = meta["resourceVersion"]
        await self._ctx.client.patch(resource, meta["name"], patch, namespace=meta.get("namespace", ""))

    async def _drop_finalizer(self, resource: Resource, obj: Tree, finalizer: str) -> None:
        meta = obj["metadata"]
        kept = [each for each in meta.get("finalizers") or () if each != finalizer]
        patch = {"metadata": {"finalizers": kept or None, "resourceVersion": meta["resourceVersion"]}}
        await self._ctx.client.patch(resource, meta["name"], patch, namespace=meta.get("namespace", ""))


def _blocked(obj: Tree) -> dict[str, None]:
    """Return the uids of the owners that cannot go before an object has gone."""
    return {reference["uid"]: None for reference in obj["metadata"].get("ownerReferences") or () if reference.get("blockOwnerDeletion")}


def _left_alone(obj: Tree) -> bool:
    """Tell whether an object is on its way out and waits for others than the collector."""
    meta = obj["metadata"]
    finalizers = meta.get("finalizers") or ()
    return "deletionTimestamp" in meta and FOREGROUND not in finalizers and ORPHAN not in finalizers


_UNKNOWN: Tree = {"metadata": {}}
