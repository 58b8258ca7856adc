"""The Endpoints loop: the legacy object of each Service's name. One reconcile brings it in line with the pods."""

from __future__ import annotations

import contextlib

from kubemini.api.resources import ENDPOINTS
from kubemini.api.trees import Tree
from kubemini.api.wellknown import kubernetes as names
from kubemini.controllers.endpoints import pods as view
from kubemini.controllers.endpoints.services import Member, Reader, Services
from kubemini.controllers.endpoints.subsets import Offer, offer, subsets, truncated
from kubemini.controllers.endpoints.triggers import Triggers
from kubemini.controllers.endpoints.written import Written
from kubemini.machinery.errors import ApiStatus, NotFound
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.keys import key_of, split_key

MANAGED_BY = "endpoints.kubernetes.io/managed-by"
"""Label: who keeps an Endpoints object (since 1.33)."""
LEADER_ELECTION = "control-plane.alpha.kubernetes.io/leader"
"""Annotation of Endpoints that are a lock, as old leader elections made them."""


class EndpointsController(Controller):
    """Keys are Services."""

    name = "endpoint"
    component = "endpoint-controller"

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services

    def setup(self, ctx: Context) -> None:
        """Follow Services, their pods and Endpoints."""
        self._ctx = ctx
        self._endpoints = ctx.informer(ENDPOINTS)
        self._written = Written(self._endpoints, key_of)
        self._triggers = Triggers()
        self._offers: dict[str, tuple[Tree, dict[str, tuple[Member, Offer | None]]]] = {}
        """Service → (its spec, what was made of each pod)."""
        self._endpoints.on_change(lambda old, new: self.queue.add(key_of(old)) if new is None and old is not None else None)
        self._services.attach(ctx, Reader(self.queue, self._triggers))

    async def started(self) -> None:
        """Look at every Endpoints object once: those of Services that went meanwhile have to go."""
        for obj in self._endpoints.list():
            if LEADER_ELECTION not in (obj["metadata"].get("annotations") or {}):
                self.queue.add(key_of(obj))

    async def reconcile(self, key: str) -> float | None:
        """Write the Endpoints of one Service where they differ, delete those of a Service that is gone."""
        service = self._services.get(key)
        if service is None:
            await self._clean_up(key)
            return None
        if not view.selects(service):
            return None
        trigger = self._triggers.since_last(service)
        wanted = subsets(each for each in self._made(key, service) if each is not None)
        cut = truncated(wanted)
        current = self._written.newest(key, key)
        obj = _endpoints(service, current, wanted if cut is None else cut, over=cut is not None)
        if current is not None and _same(obj, current):
            return None
        await self._write(service, current, _stamped(obj, trigger))
        return None

    def _made(self, key: str, service: Tree) -> list[Offer | None]:
        spec = service["spec"]
        before = self._offers.get(key)
        known = before[1] if before is not None and before[0] is spec else {}
        now: dict[str, tuple[Member, Offer | None]] = {}
        for name, member in self._services.members(key).items():
            entry = known.get(name)
            now[name] = entry if entry is not None and entry[0] is member else (member, offer(service, member))
        self._offers[key] = (spec, now)
        return [entry[1] for entry in now.values()]

    async def _write(self, service: Tree, current: Tree | None, obj: Tree) -> None:
        meta = service["metadata"]
        try:
            if current is None:
                self._written.put(await self._ctx.client.create(ENDPOINTS, obj, canonical=True))
            else:
                self._written.put(await self._ctx.client.update(ENDPOINTS, obj, canonical=True))
        except ApiStatus as refused:
            if refused.has_cause("NamespaceTerminating"):
                return
            about = {"kind": "Endpoints", "apiVersion": "v1", "name": meta["name"], "namespace": meta["namespace"]}
            if current is None:
                text = f"Failed to create endpoint for service {meta['namespace']}/{meta['name']}: {refused.message}"
                self._ctx.recorder.about(about, "Warning", "FailedToCreateEndpoint", text)
            else:
                about |= {"uid": current["metadata"]["uid"], "resourceVersion": current["metadata"]["resourceVersion"]}
                text = f"Failed to update endpoint {meta['namespace']}/{meta['name']}: {refused.message}"
                self._ctx.recorder.about(about, "Warning", "FailedToUpdateEndpoint", text)
            raise

    async def _clean_up(self, key: str) -> None:
        self._offers.pop(key, None)
        current = self._written.newest(key, key)
        if current is None:
            return
        namespace, name = split_key(key)
        with contextlib.suppress(NotFound):
            await self._ctx.client.delete(ENDPOINTS, name, namespace=namespace, uid=current["metadata"]["uid"])
        self._written.drop(current)


def _endpoints(service: Tree, current: Tree | None, wanted: list[Tree], *, over: bool) -> Tree:
    """Return the object as it should be, without a new trigger time."""
    meta = service["metadata"]
    labels = {name: value for name, value in (meta.get("labels") or {}).items() if name != names.HEADLESS}
    labels[MANAGED_BY] = "endpoint-controller"
    if view.headless(service):
        labels[names.HEADLESS] = ""
    about: Tree = dict(current["metadata"]) if current is not None else {"name": meta["name"], "namespace": meta["namespace"]}
    annotations = {name: value for name, value in (about.get("annotations") or {}).items() if name != names.OVER_CAPACITY}
    if over:
        annotations[names.OVER_CAPACITY] = "truncated"
    about |= {"labels": labels, "annotations": annotations}
    obj: Tree = {"apiVersion": "v1", "kind": "Endpoints", "metadata": about}
    if wanted:
        obj["subsets"] = wanted
    return obj


def _same(obj: Tree, current: Tree) -> bool:
    meta, was = obj["metadata"], current["metadata"]
    if obj.get("subsets", []) != (current.get("subsets") or []):
        return False
    return bool(meta["labels"] == (was.get("labels") or {}) and meta["annotations"] == (was.get("annotations") or {}))


def _stamped(obj: Tree, trigger: str) -> Tree:
    meta = obj["metadata"]
    annotations = {name: value for name, value in meta["annotations"].items() if name != names.LAST_CHANGE_TRIGGER}
    if trigger:
        annotations[names.LAST_CHANGE_TRIGGER] = trigger
    kept = {name: value for name, value in meta.items() if name != "annotations"}
    return {**obj, "metadata": {**kept, "annotations": annotations} if annotations else kept}
