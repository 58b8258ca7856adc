"""The loop over CustomResourceDefinitions: accept names, establish, and clear away the objects of a definition that is deleted.

Mirrors apiextensions-apiserver's naming, establishing, API approval and finalizer controllers (1.36), in one.
"""

from __future__ import annotations

from kubemini.api.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource
from kubemini.api.trees import Tree
from kubemini.controllers.customresources.naming import Taken, decide, deleting, is_established, with_condition
from kubemini.machinery.errors import ApiStatus, Conflict, NotFound
from kubemini.runtime.controller import Context, Controller

FINALIZER = "customresourcecleanup.apiextensions.k8s.io"


class CustomResourceController(Controller):
    """Keys are names of definitions."""

    name = "customresources"
    component = "customresource-controller"

    def setup(self, ctx: Context) -> None:
        """Follow the definitions."""
        self._ctx = ctx
        self._definitions = ctx.informer(CUSTOM_RESOURCE_DEFINITIONS)
        self._definitions.on_change(self._on_definition)
        self._waiting: dict[str, str] = {}
        """Storage names of objects that are to go, and the definitions that wait for it."""

    def _on_definition(self, old: Tree | None, new: Tree | None) -> None:
        if new is not None:
            self.queue.add(new["metadata"]["name"])
        if old is not None and (new is None or _accepted(old) != _accepted(new)):
            # A name may have become free: everyone in the group has another look.
            group = old["spec"]["group"]
            for other in self._definitions.list():
                if other["spec"]["group"] == group:
                    self.queue.add(other["metadata"]["name"])

    async def reconcile(self, key: str) -> float | None:
        """Bring one definition on, or clear up after it."""
        crd = self._definitions.get(key)
        if crd is None:
            return None
        try:
            if "deletionTimestamp" in crd["metadata"]:
                if FINALIZER in (crd["metadata"].get("finalizers") or ()):
                    await self._clear(await self._ctx.client.get(CUSTOM_RESOURCE_DEFINITIONS, key))
                return None
            others = [each for each in self._definitions.list() if each is not crd and each["spec"]["group"] == crd["spec"]["group"]]
            status = decide(crd, Taken.by(others), self._ctx.env.stamp())
            if status is not None:
                await self._ctx.client.update_status(CUSTOM_RESOURCE_DEFINITIONS, {**crd, "status": status})
        except (NotFound, Conflict):
            # Deleted or changed meanwhile: the change brings us back.
            return None
        return None

    # ------------------------------------------------------------------ deletion

    async def _clear(self, crd: Tree) -> None:
        """Delete the objects of a definition; when none is left, let it go."""
        if not is_established(crd):
            await self._release(crd, deleting("NeverEstablished", "False", "resource was never established"))
            return
        crd = await self._say(crd, deleting("InstanceDeletionInProgress", "True", "CustomResource deletion is in progress"))
        resource = resource_of(crd)
        try:
            await self._ctx.client.delete_collection(resource)
            left = await self._left(crd["metadata"]["name"], resource)
        except NotFound:
            # Not served (any more), so nothing can be left of it.
            left = False
        except ApiStatus as problem:
            await self._say(crd, deleting("InstanceDeletionFailed", "True", f"could not issue all deletes: {problem.message}"))
            raise
        if not left:
            self._waiting.pop(resource.storage, None)
            await self._release(crd, deleting("InstanceDeletionCompleted", "False", "removed all instances"))

    async def _left(self, name: str, resource: Resource) -> bool:
        """Tell whether objects are left; if so, each one that goes brings the definition back."""
        if not await self._ctx.client.list(resource):
            return False
        informer = self._ctx.informer(resource)
        if resource.storage not in self._waiting:
            self._waiting[resource.storage] = name
            informer.on_change(lambda old, new: self._on_object(resource, new))
        informer.start(self._ctx.client)
        await informer.synced.wait()
        return bool(informer.objects) or bool(await self._ctx.client.list(resource))

    def _on_object(self, resource: Resource, new: Tree | None) -> None:
        name = self._waiting.get(resource.storage)
        if new is None and name is not None:
            self.queue.add(name)

    async def _say(self, crd: Tree, condition: Tree) -> Tree:
        status = crd.get("status") or {}
        conditions = with_condition(list(status.get("conditions") or ()), condition, self._ctx.env.stamp())
        if conditions == status.get("conditions"):
            return crd
        return await self._ctx.client.update_status(CUSTOM_RESOURCE_DEFINITIONS, {**crd, "status": {**status, "conditions": conditions}})

    async def _release(self, crd: Tree, condition: Tree) -> None:
        crd = await self._say(crd, condition)
        meta = crd["metadata"]
        finalizers = [each for each in meta["finalizers"] if each != FINALIZER]
        await self._ctx.client.update(CUSTOM_RESOURCE_DEFINITIONS, {**crd, "metadata": {**meta, "finalizers": finalizers}})


def _accepted(crd: Tree) -> Tree | None:
    names: Tree | None = (crd.get("status") or {}).get("acceptedNames")
    return names


def resource_of(crd: Tree) -> Resource:
    """Return the handle of the objects of a definition, through a version that is served."""
    spec, names = crd["spec"], crd["status"]["acceptedNames"]
    served = [version["name"] for version in spec["versions"] if version.get("served")] or [spec["versions"][0]["name"]]
    return Resource(spec["group"], served[0], names["plural"], names["kind"], spec["scope"] == "Namespaced")
