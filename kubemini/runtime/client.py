"""The client interface: how a controller reads and writes objects, in process or over HTTP.

Every verb raises the `ApiStatus` that a real API server would answer. Trees that come back are immutable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from kubemini.api.resources import Resource
from kubemini.api.trees import Tree


class Client(Protocol):
    """The verbs. `namespace` is "" for cluster-scoped objects; objects carry theirs in their metadata.

    With `canonical` the writer vouches that the object is as decoding would leave it: types, defaults, nothing unknown, nothing empty that Go leaves out.
    Nobody decodes it then; in debug mode it is proved. It is for what there is most of (pods, their statuses, events) and made of canonical parts.
    """

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Tree:
        """Return the newest state of an object. Raise `NotFound`."""
        ...

    async def list(self, resource: Resource, namespace: str = "", *, label_selector: str = "", field_selector: str = "") -> Sequence[Tree]:
        """Return the objects in key order, of all namespaces when none is named."""
        ...

    async def create(self, resource: Resource, obj: Tree, *, namespace: str = "", canonical: bool = False) -> Tree:
        """Create an object in its metadata's namespace (or in `namespace`). Raise `AlreadyExists`, `Invalid`, `Forbidden`."""
        ...

    async def update(self, resource: Resource, obj: Tree, *, subresource: str = "", canonical: bool = False) -> Tree:
        """Replace an object; its resourceVersion is the precondition. Raise `NotFound`, `Conflict`, `Invalid`."""
        ...

    async def update_status(self, resource: Resource, obj: Tree, *, canonical: bool = False) -> Tree:
        """Replace an object's status; its resourceVersion is the precondition. Raise `NotFound`, `Conflict`, `Invalid`."""
        ...

    async def patch(self, resource: Resource, name: str, patch: object, *, namespace: str = "", type: str = "merge", subresource: str = "") -> Tree:
        """Patch an object; `type` is merge, json or strategic. Raise `NotFound`, `Invalid`."""
        ...

    async def apply(self, resource: Resource, obj: Tree, *, manager: str, force: bool = True, subresource: str = "") -> Tree:
        """Server-side apply. Raise `FieldConflict`, `Invalid`."""
        ...

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
        """Delete an object; `uid` and `resource_version` are preconditions. Raise `NotFound`, `Conflict`."""
        ...

    async def delete_collection(
        self, resource: Resource, namespace: str = "", *, label_selector: str = "", field_selector: str = "", propagation: str = ""
    ) -> None:
        """Delete all objects that match."""
        ...

    async def act(self, resource: Resource, name: str, subresource: str, body: Tree, *, namespace: str = "") -> Tree:
        """POST to a subresource (``eviction``, ``binding``, …)."""
        ...

    async def scale(self, resource: Resource, name: str, namespace: str = "") -> Tree:
        """Return an object's Scale (autoscaling/v1), to be written by ``update(…, subresource="scale")``. Raise `NotFound`, without details where the kind has none."""
        ...

    def resources(self) -> Sequence[Resource]:
        """Return what the server serves and stores, every version of it, preferred versions first; reviews and other virtual kinds are left out."""
        ...

    def watch(self, resource: Resource, sink: Sink) -> Subscription:
        """Deliver a snapshot and then every change of a resource to `sink`, for an informer."""
        ...


class Sink(Protocol):
    """What a watch delivers to. Called on the event loop, never reentrantly."""

    def replace(self, objects: Sequence[Tree]) -> None:
        """Take a full snapshot: at the start, and after history was lost."""

    def change(self, type_: str, obj: Tree) -> None:
        """Take one change; `type_` is ADDED, MODIFIED or DELETED."""


class Subscription(Protocol):
    """A running watch."""

    def close(self) -> None:
        """Stop delivering."""


Handler = Callable[[Tree | None, Tree | None], None]
"""Called with (old, new): (None, new) when added, (old, new) when changed, (old, None) when deleted."""
