"""The two shapes of subresources, ``/status``, and the table of the others."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.machinery.errors import FieldError
from kubemini.server.options import Outcome, WriteOptions
from kubemini.server.registry import Kind, Served
from kubemini.server.strategy import WriteContext
from kubemini.server.verbs import Verbs


class ObjectSubresource:
    """A subresource that takes the whole object and changes a part of it. All methods are pure."""

    name = ""

    def merge(self, new: Tree, old: Tree, kind: Kind, ctx: WriteContext) -> Tree:
        """Return `old` with the part that this subresource may change taken from `new` (whose metadata rules were applied)."""
        return new

    def prepare(self, new: Tree, old: Tree, kind: Kind, ctx: WriteContext) -> Tree:
        """Compute fields after mutating admission."""
        return new

    def validate(self, new: Tree, old: Tree, kind: Kind, ctx: WriteContext) -> list[FieldError]:
        """Return the broken rules."""
        return []


class StatusSubresource(ObjectSubresource):
    """``/status``: the spec stays; of the metadata, custom resources keep all, built-ins take labels, annotations, finalizers and owners as sent."""

    name = "status"

    def merge(self, new: Tree, old: Tree, kind: Kind, ctx: WriteContext) -> Tree:
        """Return `old` with `new`'s status."""
        if kind.custom:
            meta = old["metadata"]
            managed = new["metadata"].get("managedFields")
            if managed is not None and managed is not meta.get("managedFields"):
                meta = {**meta, "managedFields": managed}
        else:
            meta = new["metadata"]
        merged = {**old, "metadata": meta}
        if "status" in new:
            merged["status"] = new["status"]
        else:
            merged.pop("status", None)
        return merged

    def prepare(self, new: Tree, old: Tree, kind: Kind, ctx: WriteContext) -> Tree:
        """Let the kind's strategy compute fields."""
        return kind.strategy.prepare_for_status(new, old, ctx)

    def validate(self, new: Tree, old: Tree, kind: Kind, ctx: WriteContext) -> list[FieldError]:
        """Ask the kind's strategy."""
        return kind.strategy.validate_status(new, old, ctx)


STATUS = StatusSubresource()


class ActionSubresource:
    """A subresource that is only POSTed to."""

    name = ""

    async def act(self, api: Verbs, served: Served, namespace: str, name: str, body: Tree, options: WriteOptions) -> Outcome:
        """Do it, and return what to answer with which code."""
        raise NotImplementedError


class Subresources:
    """The subresources beside status and scale, by storage name and subresource name."""

    def __init__(self) -> None:
        self._table: dict[tuple[str, str], ObjectSubresource | ActionSubresource] = {}

    def add(self, storage: str, behaviour: ObjectSubresource | ActionSubresource) -> None:
        """Serve a subresource of a resource (``pods``, ``serviceaccounts``, …)."""
        self._table[storage, behaviour.name] = behaviour

    def find(self, storage: str, name: str) -> ObjectSubresource | ActionSubresource | None:
        """Return a behaviour, or None."""
        return self._table.get((storage, name))
