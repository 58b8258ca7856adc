"""The finalizers that keep claims while pods use them, and volumes while they are bound. Mirrors the pvc-protection and pv-protection controllers."""

from __future__ import annotations

from collections.abc import Iterable

from kubemini.api.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, Resource
from kubemini.api.trees import Tree
from kubemini.api.wellknown import kubernetes as names
from kubemini.controllers.volumes import using
from kubemini.controllers.volumes.matching import phase
from kubemini.machinery.errors import Conflict, NotFound
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.keys import key_of

BATCH_SECONDS = 0.02
"""Changes in a namespace are answered together: one look at its live pods serves all claims that are going."""


def _with(obj: Tree, finalizer: str) -> Tree:
    meta = obj["metadata"]
    return {**obj, "metadata": {**meta, "finalizers": [*(meta.get("finalizers") or ()), finalizer]}}


def _without(obj: Tree, finalizer: str) -> Tree:
    meta = obj["metadata"]
    return {**obj, "metadata": {**meta, "finalizers": [each for each in meta["finalizers"] if each != finalizer]}}


def _going(obj: Tree, finalizer: str) -> bool:
    meta = obj["metadata"]
    return "deletionTimestamp" in meta and finalizer in (meta.get("finalizers") or ())


def _unprotected(obj: Tree, finalizer: str) -> bool:
    meta = obj["metadata"]
    return "deletionTimestamp" not in meta and finalizer not in (meta.get("finalizers") or ())


async def _write(ctx: Context, resource: Resource, obj: Tree) -> None:
    try:
        await ctx.client.update(resource, obj)
    except NotFound:
        return


class ClaimProtection(Controller):
    """Keys are namespaces."""

    name = "persistentvolumeclaim-protection"
    measured_as = "pvcprotection"
    component = "pvc-protection-controller"

    def setup(self, ctx: Context) -> None:
        """Follow claims, and pods by claim."""
        self._ctx = ctx
        self._claims = ctx.informer(PERSISTENT_VOLUME_CLAIMS)
        self._pods = ctx.informer(PODS)
        using.index(self._pods)
        self._open: dict[str, dict[str, None]] = {}
        """Namespace → keys of claims that are going, or lack the finalizer."""
        self._claims.on_change(self._on_claim)
        self._pods.on_change(self._on_pod)

    def _on_claim(self, old: Tree | None, new: Tree | None) -> None:
        claim = new if new is not None else old
        if claim is None:
            return
        namespace, key = claim["metadata"]["namespace"], key_of(claim)
        if new is not None and (_going(new, names.PVC_PROTECTION) or _unprotected(new, names.PVC_PROTECTION)):
            self._open.setdefault(namespace, {})[key] = None
            self.queue.add_after(namespace, BATCH_SECONDS)
        elif namespace in self._open and self._open[namespace].pop(key, self) is None and not self._open[namespace]:
            del self._open[namespace]

    def _on_pod(self, old: Tree | None, new: Tree | None) -> None:
        pod = new if new is not None else old
        if pod is None or not self._open or pod["metadata"]["namespace"] not in self._open:
            return
        if any(key in self._open[pod["metadata"]["namespace"]] for key in using.claims_of(pod)):
            self.queue.add_after(pod["metadata"]["namespace"], BATCH_SECONDS)

    async def reconcile(self, key: str) -> float | None:
        """Put finalizers on and take them off in one namespace."""
        going: list[Tree] = []
        for name in list(self._open.get(key, ())):
            claim = self._claims.get_key(name)
            if claim is None:
                continue
            if _unprotected(claim, names.PVC_PROTECTION):
                await _write(self._ctx, PERSISTENT_VOLUME_CLAIMS, _with(claim, names.PVC_PROTECTION))
            elif _going(claim, names.PVC_PROTECTION) and not _used(self._pods.by_index(using.INDEX, name)):
                going.append(claim)
        if not going:
            return None
        # The cache may be behind: the live pods decide
        used = {name for pod in await self._ctx.client.list(PODS, key) if _uses(pod) for name in using.claims_of(pod)}
        stale = False
        for claim in going:
            if key_of(claim) in used:
                continue
            try:
                await _write(self._ctx, PERSISTENT_VOLUME_CLAIMS, _without(claim, names.PVC_PROTECTION))
            except Conflict:
                stale = True
        return BATCH_SECONDS if stale else None


def _uses(pod: Tree) -> bool:
    """Tell whether a pod holds on to its volumes: it was placed, and its kubelet is not done with it."""
    meta = pod["metadata"]
    return bool(pod["spec"].get("nodeName")) and not ("deletionTimestamp" in meta and meta.get("deletionGracePeriodSeconds") == 0)


def _used(pods: Iterable[Tree]) -> bool:
    return any(_uses(pod) for pod in pods)


class VolumeProtection(Controller):
    """Keys are volumes."""

    name = "persistentvolume-protection"
    measured_as = "pvprotection"
    component = "pv-protection-controller"

    def setup(self, ctx: Context) -> None:
        """Follow volumes."""
        self._ctx = ctx
        self._volumes = ctx.informer(PERSISTENT_VOLUMES)
        self._volumes.on_change(self._on_volume)

    def _on_volume(self, old: Tree | None, new: Tree | None) -> None:
        if new is not None and (_going(new, names.PV_PROTECTION) or _unprotected(new, names.PV_PROTECTION)):
            self.queue.add(new["metadata"]["name"])

    async def reconcile(self, key: str) -> float | None:
        """Put the finalizer on one volume, or take it off."""
        volume = self._volumes.get(key)
        if volume is None:
            return None
        if _unprotected(volume, names.PV_PROTECTION):
            await _write(self._ctx, PERSISTENT_VOLUMES, _with(volume, names.PV_PROTECTION))
        elif _going(volume, names.PV_PROTECTION) and phase(volume) != "Bound":
            await _write(self._ctx, PERSISTENT_VOLUMES, _without(volume, names.PV_PROTECTION))
        return None
