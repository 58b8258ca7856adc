"""Finalization of namespaces. Mirrors kube-controller-manager's namespace controller with ordered deletion: pods first, then everything else.

While content remains (pods in their grace, objects with finalizers) the conditions say so, and each object that goes brings the namespace back for
another look.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kubemini.api.resources import NAMESPACES, PODS, Resource
from kubemini.api.trees import Tree
from kubemini.machinery.errors import ApiStatus, NotFound
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.everything import Everything

FINALIZER = "kubernetes"


@dataclass(slots=True)
class _Content:
    """What is left in a namespace: instances by ``plural.group``, and finalizers by how many objects carry them."""

    remaining: dict[str, int] = field(default_factory=dict)
    finalizers: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)


class NamespaceController(Controller):
    """Keys are namespaces."""

    name = "namespace"
    component = "namespace-controller"

    def setup(self, ctx: Context) -> None:
        """Follow namespaces and everything in them."""
        self._ctx = ctx
        self._namespaces = ctx.informer(NAMESPACES)
        self._terminating: dict[str, None] = {}
        self._namespaces.on_change(self._on_namespace)
        self._everything = Everything(ctx, self._on_content, reads=("deletionTimestamp", "finalizers"))

    async def started(self) -> None:
        """Follow kinds that come later, too."""
        self._everything.started()

    def _on_namespace(self, old: Tree | None, new: Tree | None) -> None:
        if new is None:
            if old is not None:
                self._terminating.pop(old["metadata"]["name"], None)
        elif "deletionTimestamp" in new["metadata"]:
            self._terminating[new["metadata"]["name"]] = None
            self.queue.add(new["metadata"]["name"])

    def _on_content(self, resource: Resource, old: Tree | None, new: Tree | None) -> None:
        if self._terminating:
            obj = new if new is not None else old
            if obj is not None and (namespace := obj["metadata"].get("namespace")) in self._terminating:
                self.queue.add(namespace)

    async def reconcile(self, key: str) -> float | None:
        """Delete what is left in one namespace, say what remains, or let it go."""
        try:
            namespace = await self._ctx.client.get(NAMESPACES, key)
        except NotFound:
            return None
        if "deletionTimestamp" not in namespace["metadata"] or not (namespace.get("spec") or {}).get("finalizers"):
            return None
        content = await self._empty(key)
        try:
            status = self._status(namespace, content)
            if status != namespace.get("status"):
                namespace = await self._ctx.client.update_status(NAMESPACES, {**namespace, "status": status})
            if not content.remaining and not content.failures:
                kept = [each for each in namespace["spec"]["finalizers"] if each != FINALIZER]
                await self._ctx.client.update(NAMESPACES, {**namespace, "spec": {**namespace["spec"], "finalizers": kept}}, subresource="finalize")
        except NotFound:
            return None
        return None

    async def _empty(self, namespace: str) -> _Content:
        content = _Content()
        await self._empty_one(PODS, namespace, content)
        if content.remaining:
            # Ordered deletion: nothing else goes before the pods have gone
            return content
        served = {
            resource.storage: resource for resource in reversed(self._ctx.client.resources()) if resource.namespaced and resource.plural != "bindings"
        }
        for resource in served.values():
            if resource.storage != PODS.storage:
                await self._empty_one(resource, namespace, content)
        return content

    async def _empty_one(self, resource: Resource, namespace: str, content: _Content) -> None:
        client = self._ctx.client
        try:
            items = await client.list(resource, namespace)
            if not items:
                return
            if any("deletionTimestamp" not in item["metadata"] for item in items):
                await client.delete_collection(resource, namespace, propagation="Background")
                items = await client.list(resource, namespace)
        except NotFound:
            return
        except ApiStatus as problem:
            content.failures.append(problem.message)
            return
        if items:
            content.remaining[f"{resource.plural}.{resource.group}"] = len(items)
            for item in items:
                for finalizer in item["metadata"].get("finalizers") or ():
                    content.finalizers[finalizer] = content.finalizers.get(finalizer, 0) + 1

    def _status(self, namespace: Tree, content: _Content) -> Tree:
        resources = ", ".join(f"{name} has {count} resource instances" for name, count in sorted(content.remaining.items()))
        finalizers = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(content.finalizers.items()))
        failures = "; ".join(content.failures)
        wanted = (
            ("NamespaceDeletionDiscoveryFailure", False, "ResourcesDiscovered", "All resources successfully discovered"),
            ("NamespaceDeletionGroupVersionParsingFailure", False, "ParsedGroupVersions", "All legacy kube types successfully parsed"),
            (
                "NamespaceDeletionContentFailure",
                bool(failures),
                "ContentDeletionFailed" if failures else "ContentDeleted",
                f"Failed to delete all resource types, {len(content.failures)} remaining: {failures}"
                if failures
                else "All content successfully deleted, may be waiting on finalization",
            ),
            (
                "NamespaceContentRemaining",
                bool(resources),
                "SomeResourcesRemain" if resources else "ContentRemoved",
                f"Some resources are remaining: {resources}" if resources else "All content successfully removed",
            ),
            (
                "NamespaceFinalizersRemaining",
                bool(finalizers),
                "SomeFinalizersRemain" if finalizers else "ContentHasNoFinalizers",
                f"Some content in the namespace has finalizers remaining: {finalizers}"
                if finalizers
                else "All content-preserving finalizers finished",
            ),
        )
        before = {condition["type"]: condition for condition in (namespace.get("status") or {}).get("conditions") or ()}
        now = self._ctx.env.stamp()
        changed = []
        for type_, on, reason, message in wanted:
            status = "True" if on else "False"
            current = before.pop(type_, None)
            since = current["lastTransitionTime"] if current is not None and current["status"] == status else now
            changed.append({"type": type_, "status": status, "lastTransitionTime": since, "reason": reason, "message": message})
        return {**(namespace.get("status") or {}), "phase": "Terminating", "conditions": [*before.values(), *changed]}
