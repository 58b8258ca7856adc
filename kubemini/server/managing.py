"""Field managers on the write path: who owns which field, and server-side apply.

The rules are `kubemini.machinery.apply`; this module gives them the schema of each kind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kubemini.api.trees import Tree

if TYPE_CHECKING:
    from kubemini.server.registry import Served
    from kubemini.server.subresources.scale import ScaleSubresource


class Managing:
    """Without field management: nothing is tracked and apply is a merge. Replaced by the real one."""

    def created(self, served: Served, obj: Tree, manager: str, time: str) -> Tree:
        """Return a new object (storage version) with its managedFields."""
        return obj

    def updated(self, served: Served, new: Tree, old: Tree, manager: str, time: str, subresource: str) -> Tree:
        """Return an updated object with its managedFields."""
        return new

    def checked(self, served: Served, config: Tree, name: str, namespace: str) -> Tree:
        """Return an applied configuration after the checks that need no live object. Raise `BadRequest`, `ServerError`."""
        return config

    def born(self, served: Served, obj: Tree, config: Tree, manager: str, time: str) -> Tree:
        """Return an object that an apply creates, with its managedFields."""
        return obj

    def applied(
        self, served: Served, live: Tree, config: Tree, name: str, namespace: str, manager: str, time: str, subresource: str, *, force: bool
    ) -> tuple[Tree, Callable[[Tree], Tree]]:
        """Return the merged object in the served version, and a function that puts the managedFields on what is finally written. Raise `FieldConflict`."""
        return {**live, **config}, lambda new: new

    def applied_scale(
        self, served: Served, handler: ScaleSubresource, live: Tree, config: Tree, manager: str, time: str, *, force: bool
    ) -> tuple[Tree, Callable[[Tree], Tree]]:
        """The same for an apply to ``/scale``; the tree returned is in the storage version."""
        return served.to_storage(handler.written(served.from_storage(live), config, served.kind)), lambda new: new
