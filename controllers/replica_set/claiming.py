"""Which objects belong to an owner: those that it controls and selects, after adopting matching ones without a controller and releasing those that no longer match.

Mirrors the ControllerRefManagers of kube-controller-manager.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubemini.api.resources import Resource
from kubemini.api.trees import Tree
from kubemini.machinery.errors import ApiStatus, Conflict, NotFound
from kubemini.machinery.labels import Selector
from kubemini.runtime.controller import Context
from kubemini.runtime.informer import Informer
from kubemini.runtime.keys import controller_of, controller_uid, owner_reference


def loose(obj: Tree) -> tuple[str, ...]:
    """Return the namespace of an object without a controller, as an index value."""
    return () if controller_of(obj) is not None else (obj["metadata"]["namespace"],)


class Claims:
    """Keeps owners of one resource and objects of another matched. Uses the indexes ``controller`` and ``loose`` of the objects' informer."""

    def __init__(self, ctx: Context, owners: Resource, objects: Informer) -> None:
        self._ctx = ctx
        self._owners = owners
        self._objects = objects
        objects.add_index("controller", controller_uid, reads=("ownerReferences",))
        objects.add_index("loose", loose, reads=("ownerReferences",))

    def owned(self, uid: str) -> Iterable[Tree]:
        """Return the objects that an owner controls, matching or not."""
        return self._objects.by_index("controller", uid)

    async def claim(self, owner: Tree, selector: Selector) -> list[Tree]:
        """Return the objects of an owner, after adopting and releasing."""
        meta = owner["metadata"]
        matches = selector.matches
        kept: list[Tree] = []
        lost: list[Tree] = []
        for each in self.owned(meta["uid"]):
            (kept if matches(each["metadata"].get("labels")) else lost).append(each)
        if "deletionTimestamp" in meta:
            return kept
        for each in lost:
            await self._release(owner, each)
        strays = [
            each
            for each in self._objects.by_index("loose", meta["namespace"])
            if "deletionTimestamp" not in each["metadata"] and matches(each["metadata"].get("labels"))
        ]
        if strays and await self._lives(meta):
            for each in strays:
                adopted = await self._adopt(owner, each)
                if adopted is not None:
                    kept.append(adopted)
        return kept

    async def _lives(self, meta: Tree) -> bool:
        """Ask the API itself whether the owner lives: a cache must not decide an adoption."""
        try:
            live = await self._ctx.client.get(self._owners, meta["name"], meta["namespace"])
        except NotFound:
            return False
        return bool(live["metadata"]["uid"] == meta["uid"] and "deletionTimestamp" not in live["metadata"])

    async def _adopt(self, owner: Tree, obj: Tree) -> Tree | None:
        meta = obj["metadata"]
        reference = owner_reference({**owner, "apiVersion": self._owners.api_version, "kind": self._owners.kind})
        patch = {"metadata": {"uid": meta["uid"], "ownerReferences": [reference]}}
        try:
            return await self._ctx.client.patch(self._objects.resource, meta["name"], patch, namespace=meta["namespace"], type="strategic")
        except (NotFound, Conflict):
            return None

    async def _release(self, owner: Tree, obj: Tree) -> None:
        meta = obj["metadata"]
        patch = {"metadata": {"uid": meta["uid"], "ownerReferences": [{"$patch": "delete", "uid": owner["metadata"]["uid"]}]}}
        try:
            await self._ctx.client.patch(self._objects.resource, meta["name"], patch, namespace=meta["namespace"], type="strategic")
        except (NotFound, Conflict):
            return
        except ApiStatus as refused:
            if refused.code != 422:
                raise
