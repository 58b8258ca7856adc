"""The finalizer that admission puts on pod groups, taken off once no pod that has not ended names the group."""

from __future__ import annotations

from contextlib import suppress

from kubemini.api.resources import POD_GROUPS, PODS
from kubemini.api.trees import Tree
from kubemini.api.wellknown.kubernetes import POD_GROUP_PROTECTION
from kubemini.machinery.errors import NotFound
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.keys import key_of

INDEX = "active-pod-group"


class GroupProtection(Controller):
    """Keys are pod groups that are being deleted."""

    name = "podgroup-protection"
    measured_as = "podgroupprotection"
    component = "podgroup-protection-controller"

    def setup(self, ctx: Context) -> None:
        """Follow groups, and pods that have not ended by group."""
        self._ctx = ctx
        self._groups = ctx.informer(POD_GROUPS)
        self._pods = ctx.informer(PODS)
        self._pods.add_index(INDEX, _group_of, reads=("spec.schedulingGroup", "status"))
        self._groups.on_change(self._on_group)
        self._pods.on_change(self._on_pod)

    def _on_group(self, old: Tree | None, new: Tree | None) -> None:
        if new is not None and _going(new):
            self.queue.add(key_of(new))

    def _on_pod(self, old: Tree | None, new: Tree | None) -> None:
        if old is None:
            return
        for key in _group_of(old):
            if new is None or key not in _group_of(new):
                self.queue.add(key)

    async def reconcile(self, key: str) -> float | None:
        """Let one group go, unless a pod is left that names it."""
        group = self._groups.get_key(key)
        if group is None or not _going(group) or self._pods.count_index(INDEX, key):
            return None
        meta = group["metadata"]
        kept = [each for each in meta["finalizers"] if each != POD_GROUP_PROTECTION]
        with suppress(NotFound):
            await self._ctx.client.update(POD_GROUPS, {**group, "metadata": {**meta, "finalizers": kept}})
        return None


def _going(group: Tree) -> bool:
    meta = group["metadata"]
    return "deletionTimestamp" in meta and POD_GROUP_PROTECTION in (meta.get("finalizers") or ())


def _group_of(pod: Tree) -> tuple[str, ...]:
    """Return the key of the group that a pod names and has not ended in, as index values."""
    name = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
    if not name or (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return ()
    return (f"{pod['metadata']['namespace']}/{name}",)
