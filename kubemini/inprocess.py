"""The in-process client: the runtime's `Client` straight onto the request path, without HTTP.

It enters the path after decoding of bytes and takes the very same steps, so nothing can be done in process that HTTP
would refuse. Watches are cursors on the store, drained on the event loop in batches.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kubemini.api.resources import Resource
from kubemini.api.trees import Tree
from kubemini.machinery.errors import NotFound
from kubemini.runtime.client import Sink
from kubemini.server.options import ADMIN, Caller, DeleteOptions, ListOptions, Patch, WriteOptions
from kubemini.server.registry import Served
from kubemini.server.requests import ApiServer
from kubemini.server.subresources.scale import ScaleSubresource
from kubemini.store import Compacted, Record

BATCH = 512
"""Changes that one drain of a watch hands over before other callbacks may run."""
RESOLVED = 1024
"""How many resources a client remembers."""


class InProcessClient:
    """A client of one caller (a controller manager, a test, a user)."""

    def __init__(self, server: ApiServer, caller: Caller = ADMIN, *, field_manager: str = "", track: bool = False) -> None:
        self.server = server
        self._write = WriteOptions(caller=caller, field_manager=field_manager, field_validation="Strict", track=track)
        self._vouched = replace(self._write, canonical=True)
        self._delete = DeleteOptions(caller=caller)
        self._served: dict[int, tuple[Resource, int, Served]] = {}
        """By the identity of the resource: most are constants, and hashing one costs as much as reading an object."""

    def _resolve(self, resource: Resource) -> Served:
        registry = self.server.registry
        found = self._served.get(id(resource))
        if found is None or found[1] != registry.generation:
            served = registry.served(resource.group, resource.version, resource.plural)
            if served is None:
                raise NotFound.path()
            if len(self._served) >= RESOLVED:
                self._served.clear()
            found = self._served[id(resource)] = (resource, registry.generation, served)
        return found[2]

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Tree:
        """Return an object. Raise `NotFound`."""
        served = self._resolve(resource)
        return served.from_storage(self.server.get(served, namespace, name).obj)

    async def list(self, resource: Resource, namespace: str = "", *, label_selector: str = "", field_selector: str = "") -> Sequence[Tree]:
        """Return the objects in key order."""
        served = self._resolve(resource)
        listing = self.server.list(served, namespace, ListOptions(label_selector=label_selector, field_selector=field_selector))
        return [served.from_storage(record.obj) for record in listing.records]

    async def create(self, resource: Resource, obj: Tree, *, namespace: str = "", canonical: bool = False) -> Tree:
        """Create an object."""
        options = self._vouched if canonical else self._write
        return (await self.server.create(self._resolve(resource), namespace or obj["metadata"].get("namespace", ""), obj, options)).obj

    async def update(self, resource: Resource, obj: Tree, *, subresource: str = "", canonical: bool = False) -> Tree:
        """Replace an object."""
        meta, options = obj["metadata"], self._vouched if canonical else self._write
        return (await self.server.update(self._resolve(resource), meta.get("namespace", ""), meta["name"], obj, options, subresource=subresource)).obj

    async def update_status(self, resource: Resource, obj: Tree, *, canonical: bool = False) -> Tree:
        """Replace an object's status."""
        meta, options = obj["metadata"], self._vouched if canonical else self._write
        return (await self.server.update(self._resolve(resource), meta.get("namespace", ""), meta["name"], obj, options, subresource="status")).obj

    async def patch(self, resource: Resource, name: str, patch: object, *, namespace: str = "", type: str = "merge", subresource: str = "") -> Tree:
        """Patch an object."""
        outcome = await self.server.patch(self._resolve(resource), namespace, name, Patch(type, patch), self._write, subresource=subresource)
        return outcome.obj

    async def apply(self, resource: Resource, obj: Tree, *, manager: str, force: bool = True, subresource: str = "") -> Tree:
        """Server-side apply."""
        meta = obj["metadata"]
        options = replace(self._write, field_manager=manager, force=force, track=True)
        outcome = await self.server.patch(
            self._resolve(resource), meta.get("namespace", ""), meta["name"], Patch("apply", obj), options, subresource=subresource
        )
        return outcome.obj

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str = "",
        propagation: str = "",
        grace: int | None = None,
        uid: str = "",
        resource_version: str = "",
    ) -> None:
        """Delete an object."""
        options = DeleteOptions(self._delete.caller, grace, propagation, None, uid, resource_version)
        await self.server.delete(self._resolve(resource), namespace, name, options)

    async def delete_collection(
        self, resource: Resource, namespace: str = "", *, label_selector: str = "", field_selector: str = "", propagation: str = ""
    ) -> None:
        """Delete all objects that match."""
        await self.server.delete_collection(
            self._resolve(resource),
            namespace,
            ListOptions(label_selector=label_selector, field_selector=field_selector),
            replace(self._delete, propagation=propagation),
        )

    async def act(self, resource: Resource, name: str, subresource: str, body: Tree, *, namespace: str = "") -> Tree:
        """POST to a subresource."""
        return (await self.server.act(self._resolve(resource), namespace, name, subresource, body, self._write)).obj

    async def scale(self, resource: Resource, name: str, namespace: str = "") -> Tree:
        """Return an object's Scale."""
        served = self._resolve(resource)
        handler = self.server.subresource(served, "scale")
        if not isinstance(handler, ScaleSubresource):
            raise NotFound.path()
        return handler.shown(served.kind, served.from_storage(self.server.get(served, namespace, name).obj))

    def resources(self) -> Sequence[Resource]:
        """Return what is served and stored."""
        return self.server.registry.resources()

    def watch(self, resource: Resource, sink: Sink) -> StoreSubscription:
        """Deliver a resource's snapshot and changes to `sink`. A resource that is not served yet is followed from when it is."""
        return StoreSubscription(self.server, self._resolve(resource), sink)


@dataclass(slots=True)
class _State:
    scheduled: bool = False
    closed: bool = False


class StoreSubscription:
    """A watch cursor drained onto a sink. After lost history it takes a new snapshot."""

    def __init__(self, server: ApiServer, served: Served, sink: Sink) -> None:
        self._server = server
        self._served = served
        self._sink = sink
        self._state = _State()
        self._loop = asyncio.get_running_loop()
        self._open()

    def _open(self) -> None:
        table = self._server.store.table(self._served.kind.storage)
        self._cursor = table.watch()
        self._schedule(self._snapshot, table.list().records)

    def _schedule(self, step: object, *args: object) -> None:
        self._loop.call_soon(step, *args)  # type: ignore[arg-type]

    def _snapshot(self, records: list[Record]) -> None:
        if self._state.closed:
            return
        self._sink.replace([self._served.from_storage(record.obj) for record in records])
        self._cursor.on_ready(self._wake)

    def _wake(self) -> None:
        if not self._state.scheduled and not self._state.closed:
            self._state.scheduled = True
            self._loop.call_soon(self._drain)

    def _drain(self) -> None:
        self._state.scheduled = False
        if self._state.closed:
            return
        try:
            # The cursor has no filter, and there are many changes: no event is made of them
            changes = self._cursor.changes(BATCH)
        except Compacted:
            self._open()
            return
        deliver, shown = self._sink.change, None if self._served.stored_as_is else self._served.from_storage
        for change in changes:
            new = change.new
            type_ = "DELETED" if new is None else "ADDED" if change.old is None else "MODIFIED"
            obj = (change.gone if new is None else new).obj
            deliver(type_, obj if shown is None else shown(obj))
        self._cursor.on_ready(self._wake)

    def close(self) -> None:
        """Stop delivering."""
        self._state.closed = True
        self._cursor.close()
