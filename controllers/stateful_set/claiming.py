"""Which pods belong to a StatefulSet: those that it controls and selects, and strays that match by labels and name."""

from __future__ import annotations

from collections.abc import Callable

from kubemini.api.resources import PODS, STATEFUL_SETS
from kubemini.api.trees import Tree
from kubemini.controllers.stateful_set.pods import facts, is_named_for
from kubemini.controllers.stateful_set.view import SetView
from kubemini.machinery.errors import ApiStatus, Conflict, NotFound
from kubemini.runtime.controller import Context
from kubemini.runtime.keys import controller_of, controller_uid, owner_reference


def _orphaned(pod: Tree) -> tuple[str, ...]:
    """Return the namespace of a pod that nobody controls, as index values."""
    return () if controller_uid(pod) else (pod["metadata"]["namespace"],)


class Claims:
    """Keeps pods and sets matched."""

    def __init__(self, ctx: Context, written: Callable[[SetView, Tree], None]) -> None:
        self._ctx = ctx
        self._pods = ctx.informer(PODS)
        self._pods.add_index("controller", controller_uid, reads=("ownerReferences",))
        self._pods.add_index("orphan", _orphaned, reads=("ownerReferences",))
        self._written = written

    async def claim(self, owner: SetView) -> list[Tree]:
        """Return the pods of a set, after adopting strays and releasing what no longer matches."""
        matches, name = owner.selector.matches, owner.name
        kept: list[Tree] = []
        lost: list[Tree] = []
        for pod in self._pods.by_index("controller", owner.uid):
            mine = facts(pod).parent == name and matches(pod["metadata"].get("labels"))
            (kept if mine else lost).append(pod)
        if owner.deleting:
            return kept
        for pod in lost:
            await self._release(owner, pod)
        if not self._pods.count_index("orphan", owner.namespace):
            return kept
        strays = [each for each in self._pods.select(owner.selector, owner.namespace) if controller_of(each) is None]
        strays = [each for each in strays if "deletionTimestamp" not in each["metadata"] and is_named_for(owner, each)]
        if strays and await self.lives(owner):
            kept += [await self._adopt(owner, each) for each in strays]
        return kept

    async def lives(self, owner: SetView) -> bool:
        """Ask the API itself whether a set lives: a cache must not decide an adoption."""
        try:
            live = await self._ctx.client.get(STATEFUL_SETS, owner.name, owner.namespace)
        except NotFound:
            return False
        return bool(live["metadata"]["uid"] == owner.uid and "deletionTimestamp" not in live["metadata"])

    async def _adopt(self, owner: SetView, pod: Tree) -> Tree:
        meta = pod["metadata"]
        patch = {"metadata": {"uid": meta["uid"], "ownerReferences": [owner_reference(owner.tree)]}}
        adopted = await self._ctx.client.patch(PODS, meta["name"], patch, namespace=meta["namespace"], type="strategic")
        self._written(owner, adopted)
        return adopted

    async def _release(self, owner: SetView, pod: Tree) -> None:
        meta = pod["metadata"]
        patch = {"metadata": {"uid": meta["uid"], "ownerReferences": [{"$patch": "delete", "uid": owner.uid}]}}
        try:
            await self._ctx.client.patch(PODS, meta["name"], patch, namespace=meta["namespace"], type="strategic")
        except (NotFound, Conflict):
            return
        except ApiStatus as refused:
            if refused.code != 422:
                raise
