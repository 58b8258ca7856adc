"""The quota loop: one reconcile writes what is used of a ResourceQuota where it changed."""

from __future__ import annotations

from kubemini.api.resources import CUSTOM_RESOURCE_DEFINITIONS, RESOURCE_QUOTAS
from kubemini.api.trees import Tree
from kubemini.controllers.quota.counting import Counts
from kubemini.machinery import quota
from kubemini.machinery.errors import NotFound
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.keys import key_of

BATCH_SECONDS = 0.05
"""Changes in a namespace are answered together."""


class ResourceQuotaController(Controller):
    """Keys are ResourceQuotas."""

    name = "resourcequota"
    measured_as = "resourcequota_primary"
    component = "resourcequota-controller"

    def setup(self, ctx: Context) -> None:
        """Follow quotas, and what they count."""
        self._ctx = ctx
        self._quotas = ctx.informer(RESOURCE_QUOTAS)
        self._by_namespace: dict[str, dict[str, None]] = {}
        self._counts = Counts(ctx, self._on_use)
        self._quotas.on_change(self._on_quota)
        ctx.informer(CUSTOM_RESOURCE_DEFINITIONS).on_change(self._on_definition)

    async def started(self) -> None:
        """Follow further resources at once from now on."""
        self._counts.started()

    def _on_quota(self, old: Tree | None, new: Tree | None) -> None:
        obj = new if new is not None else old
        if obj is None:
            return
        key, namespace = key_of(obj), obj["metadata"]["namespace"]
        if new is None:
            self._counts.forget(key)
            self._by_namespace.get(namespace, {}).pop(key, None)
            if not self._by_namespace.get(namespace):
                self._by_namespace.pop(namespace, None)
            return
        self._by_namespace.setdefault(namespace, {})[key] = None
        self.queue.add(key)

    def _on_use(self, namespace: str) -> None:
        for key in self._by_namespace.get(namespace, ()):
            self.queue.add_after(key, BATCH_SECONDS)

    def _on_definition(self, old: Tree | None, new: Tree | None) -> None:
        for key in self._quotas.objects:
            self.queue.add_after(key, BATCH_SECONDS)

    async def reconcile(self, key: str) -> float | None:
        """Write the status of one quota."""
        limit = self._quotas.get_key(key)
        if limit is None:
            return None
        used = self._counts.used(limit, self._ctx.env.now())
        hard = (limit.get("spec") or {}).get("hard") or {}
        status: Tree = {"hard": hard, "used": {name: quota.shown(name, size) for name, size in used.items()}} if hard else {}
        if status != (limit.get("status") or {}):
            try:
                await self._ctx.client.update_status(RESOURCE_QUOTAS, {**limit, "status": status})
            except NotFound:
                return None
        return None
