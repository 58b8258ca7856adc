"""Generic ephemeral volumes: a claim for each, owned by its pod. Mirrors the ephemeral-volume controller."""

from __future__ import annotations

from kubemini.api.resources import PERSISTENT_VOLUME_CLAIMS, PODS
from kubemini.api.trees import Tree
from kubemini.machinery.errors import AlreadyExists, ApiStatus
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.keys import controller_uid, key_of, owner_reference


class EphemeralVolumeController(Controller):
    """Keys are pods that have ephemeral volumes."""

    name = "ephemeral-volume"
    measured_as = "ephemeral_volume"
    component = "ephemeral_volume"

    def setup(self, ctx: Context) -> None:
        """Follow pods."""
        self._ctx = ctx
        self._pods = ctx.informer(PODS)
        self._claims = ctx.informer(PERSISTENT_VOLUME_CLAIMS)
        self._pods.on_change(self._on_pod, reads=())
        self._claims.on_change(self._on_claim)

    def _on_pod(self, old: Tree | None, new: Tree | None) -> None:
        if old is None and new is not None and "deletionTimestamp" not in new["metadata"] and _ephemeral(new):
            self.queue.add(key_of(new))

    def _on_claim(self, old: Tree | None, new: Tree | None) -> None:
        if new is None and old is not None:
            for owner in old["metadata"].get("ownerReferences") or ():
                if owner["kind"] == "Pod" and owner.get("controller"):
                    self.queue.add(f"{old['metadata']['namespace']}/{owner['name']}")

    async def reconcile(self, key: str) -> float | None:
        """Make the claims that a pod lacks."""
        pod = self._pods.get_key(key)
        if pod is None or "deletionTimestamp" in pod["metadata"]:
            return None
        failure: ApiStatus | None = None
        for volume in _ephemeral(pod):
            try:
                await self._make(pod, volume)
            except ApiStatus as refused:
                text = f"ephemeral volume {volume['name']}: {refused.message}"
                self._ctx.recorder.event(pod, "Warning", "FailedBinding", text)
                failure = refused
        if failure is not None:
            raise failure
        return None

    async def _make(self, pod: Tree, volume: Tree) -> None:
        meta = pod["metadata"]
        name = f"{meta['name']}-{volume['name']}"
        found = self._claims.get(name, meta["namespace"])
        if found is None:
            template = volume["ephemeral"]["volumeClaimTemplate"]
            about = {part: value for part, value in (template.get("metadata") or {}).items() if part in ("labels", "annotations")}
            owner = owner_reference({**pod, "apiVersion": "v1", "kind": "Pod"})
            about |= {"name": name, "namespace": meta["namespace"], "ownerReferences": [owner]}
            claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": about, "spec": template["spec"]}
            try:
                await self._ctx.client.create(PERSISTENT_VOLUME_CLAIMS, claim)
            except AlreadyExists:
                found = await self._ctx.client.get(PERSISTENT_VOLUME_CLAIMS, name, meta["namespace"])
            except ApiStatus as refused:
                raise type(refused)(f"create PVC {name}: {refused.message}") from refused
        if found is not None and controller_uid(found) != (meta["uid"],):
            raise ApiStatus(f"PVC {meta['namespace']}/{name} was not created for pod {meta['namespace']}/{meta['name']} (pod is not owner)")


def _ephemeral(pod: Tree) -> list[Tree]:
    return [volume for volume in pod["spec"].get("volumes") or () if "ephemeral" in volume]
