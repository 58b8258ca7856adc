"""Informers of everything that is served, for controllers that care about all kinds (garbage collection, namespace deletion)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from kubemini.api.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource
from kubemini.api.trees import Tree
from kubemini.runtime.controller import Context
from kubemini.runtime.informer import Informer

IGNORED = ("events", "events.events.k8s.io")
"""Kinds that are never collected; they would only cost."""

Handler = Callable[[Resource, Tree | None, Tree | None], None]


class Everything:
    """Follows every stored resource, one version each, including those that custom resource definitions bring later."""

    def __init__(self, ctx: Context, handler: Handler, *, reads: Iterable[str]) -> None:
        self._ctx = ctx
        self._reads = tuple(reads)
        self._handler = handler
        self.informers: dict[str, Informer] = {}
        """By storage name."""
        self.by_kind: dict[tuple[str, str], Resource] = {}
        """(apiVersion, kind) → the resource that is followed."""
        self._running = False
        self._served: Sequence[Resource] | None = None
        self.refresh()
        ctx.informer(CUSTOM_RESOURCE_DEFINITIONS).on_change(self._on_definition)

    def started(self) -> None:
        """Called when the manager runs: informers added from now on are started at once."""
        self._running = True
        self.refresh()

    def _on_definition(self, old: Tree | None, new: Tree | None) -> None:
        if self._running:
            self.refresh()

    def refresh(self) -> None:
        """Follow what is served newly."""
        served = self._ctx.client.resources()
        if served is self._served:
            return
        self._served = served
        for resource in served:
            if resource.storage in IGNORED:
                continue
            informer = self.informers.get(resource.storage)
            if informer is None:
                informer = self.informers[resource.storage] = self._ctx.informer(resource)
                informer.on_change(partial(self._handler, resource), reads=self._reads)
                if self._running:
                    informer.start(self._ctx.client)
            self.by_kind[resource.api_version, resource.kind] = informer.resource

    def resources(self) -> list[Resource]:
        """Return the resources that are followed."""
        return [informer.resource for informer in self.informers.values()]
