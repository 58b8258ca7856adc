"""The binder: brings claims and volumes together, and says what becomes of a volume whose claim is gone.

A binding is four writes: the volume names the claim, the volume is Bound, the claim names the volume, the claim is Bound. Every pass takes up whatever state it finds, so a
binding that broke off is completed later. Keys are ``claim:NAMESPACE/NAME`` and ``volume:NAME``.
"""

from __future__ import annotations

from kubemini.api.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, STORAGE_CLASSES
from kubemini.api.trees import Tree
from kubemini.api.wellknown import kubernetes as names
from kubemini.controllers.volumes import using
from kubemini.controllers.volumes.classes import default_class
from kubemini.controllers.volumes.matching import best, mismatch, phase, reserved_for, storage_class
from kubemini.controllers.volumes.reclaiming import Reclaim, reclaim
from kubemini.machinery.errors import NotFound
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.keys import key_of

BETA_PROVISIONER = "volume.beta.kubernetes.io/storage-provisioner"
UNBOUND, FREE = "unbound", "free"
"""Indexes: claims without and volumes without a partner, by class."""
_WAITING = (
    "Waiting for a volume to be created either by the external provisioner '{}' or manually by the system administrator. "
    "If volume creation is delayed, please verify that the provisioner is running and correctly registered."
)


def bound(claim: Tree) -> bool:
    """Tell whether the binding of a claim was completed once."""
    return names.BIND_COMPLETED in (claim["metadata"].get("annotations") or {})


def _unbound(claim: Tree) -> tuple[str, ...]:
    return () if bound(claim) else (storage_class(claim),)


def _free(volume: Tree) -> tuple[str, ...]:
    return () if volume["spec"].get("claimRef") else (storage_class(volume),)


def _claim_key(volume: Tree) -> tuple[str, ...]:
    reference = volume["spec"].get("claimRef")
    return (f"{reference.get('namespace', '')}/{reference.get('name', '')}",) if reference else ()


class VolumeBinderController(Controller):
    """Claims and volumes."""

    name = "persistentvolume-binder"
    component = "persistentvolume-controller"

    def setup(self, ctx: Context) -> None:
        """Follow claims, volumes, classes, and pods by claim."""
        self._ctx = ctx
        self._claims = ctx.informer(PERSISTENT_VOLUME_CLAIMS)
        self._volumes = ctx.informer(PERSISTENT_VOLUMES)
        self._classes = ctx.informer(STORAGE_CLASSES)
        self._pods = ctx.informer(PODS)
        using.index(self._pods)
        self._claims.add_index(UNBOUND, _unbound)
        self._volumes.add_index("claim", _claim_key)
        self._volumes.add_index(FREE, _free)
        self._claims.on_change(self._on_claim)
        self._volumes.on_change(self._on_volume)
        self._classes.on_change(self._on_class)

    # ------------------------------------------------------------------ events

    def _on_claim(self, old: Tree | None, new: Tree | None) -> None:
        claim = new if new is not None else old
        if claim is None:
            return
        if new is not None:
            self.queue.add(f"claim:{key_of(new)}")
        if claim["spec"].get("volumeName"):
            self.queue.add(f"volume:{claim['spec']['volumeName']}")
        if new is None:
            for volume in self._volumes.by_index("claim", key_of(claim)):
                self.queue.add(f"volume:{volume['metadata']['name']}")

    def _on_volume(self, old: Tree | None, new: Tree | None) -> None:
        volume = new if new is not None else old
        if volume is None:
            return
        if new is not None:
            self.queue.add(f"volume:{new['metadata']['name']}")
            if new["spec"].get("claimRef") is None and phase(new) == "Available" and (old is None or phase(old) != "Available"):
                self._wake(storage_class(new))
        for key in _claim_key(volume):
            if self._claims.get_key(key) is not None:
                self.queue.add(f"claim:{key}")

    def _on_class(self, old: Tree | None, new: Tree | None) -> None:
        if new is not None:
            self._wake(new["metadata"]["name"])
            self._wake("")

    def _wake(self, name: str) -> None:
        """Look again at the claims of a class that wait for a volume (upstream looks at all of them every 15 s)."""
        for claim in self._claims.by_index(UNBOUND, name):
            self.queue.add(f"claim:{key_of(claim)}")

    async def reconcile(self, key: str) -> float | None:
        """Take one pass over a claim or a volume."""
        kind, _, name = key.partition(":")
        if kind == "claim":
            claim = self._claims.get_key(name)
            if claim is not None:
                await (self._sync_bound(claim) if bound(claim) else self._sync_unbound(claim))
        else:
            volume = self._volumes.get_key(name)
            if volume is not None:
                await self._sync_volume(volume)
        return None

    # ------------------------------------------------------------------ claims

    async def _sync_unbound(self, claim: Tree) -> None:
        if "deletionTimestamp" in claim["metadata"]:
            return
        wanted = claim["spec"].get("volumeName")
        if wanted:
            await self._take_named(claim, wanted)
            return
        found = await self._class_of(claim)
        delayed = found is not None and found.get("volumeBindingMode") == "WaitForFirstConsumer"
        reserved = self._volumes.by_index("claim", key_of(claim))
        volume = best(claim, reserved, delayed=True)
        if volume is None and not delayed:
            volume = best(claim, self._volumes.by_index(FREE, storage_class(claim)), delayed=False)
        if volume is not None:
            await self._bind(volume, claim)
        elif claim["spec"].get("storageClassName") is None and (default := default_class(self._classes)) is not None:
            spec = {**claim["spec"], "storageClassName": default["metadata"]["name"]}
            await self._ctx.client.update(PERSISTENT_VOLUME_CLAIMS, {**claim, "spec": spec})
        elif delayed and names.SELECTED_NODE not in (claim["metadata"].get("annotations") or {}):
            self._say_waiting(claim)
        elif storage_class(claim):
            await self._provision(claim, found)
        else:
            text = "no persistent volumes available for this claim and no storage class is set"
            self._ctx.recorder.event(claim, "Normal", "FailedBinding", text)

    def _say_waiting(self, claim: Tree) -> None:
        waiting = [
            pod["metadata"]["name"]
            for pod in self._pods.by_index(using.INDEX, key_of(claim))
            if not pod["spec"].get("nodeName") and phase(pod) not in ("Succeeded", "Failed") and "deletionTimestamp" not in pod["metadata"]
        ]
        if not waiting:
            self._ctx.recorder.event(claim, "Normal", "WaitForFirstConsumer", "waiting for first consumer to be created before binding")
        else:
            what = f"pod {waiting[0]}" if len(waiting) == 1 else f"pods {','.join(sorted(waiting))}"
            self._ctx.recorder.event(claim, "Normal", "WaitForPodScheduled", f"waiting for {what} to be scheduled")

    async def _take_named(self, claim: Tree, name: str) -> None:
        """Bind a claim to the volume that its spec names."""
        volume = self._volumes.get(name)
        if volume is None:
            return
        if volume["spec"].get("claimRef") is None:
            problem = mismatch(volume, claim)
            if problem:
                self._ctx.recorder.event(claim, "Warning", "VolumeMismatch", f'Cannot bind to requested volume "{name}": {problem}')
                return
            await self._bind(volume, claim)
        elif reserved_for(volume, claim):
            await self._bind(volume, claim)
        else:
            self._ctx.recorder.event(claim, "Warning", "FailedBinding", f'volume "{name}" already bound to a different claim.')

    async def _sync_bound(self, claim: Tree) -> None:
        name = claim["spec"].get("volumeName")
        if not name:
            await self._lose(claim, "ClaimLost", "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!")
            return
        volume = self._volumes.get(name)
        if volume is None:
            try:
                volume = await self._ctx.client.get(PERSISTENT_VOLUMES, name)
            except NotFound:
                await self._lose(claim, "ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!")
                return
        reference = volume["spec"].get("claimRef")
        if reference is None or reference.get("uid") == claim["metadata"]["uid"]:
            await self._bind(volume, claim)
        else:
            await self._lose(claim, "ClaimMisbound", "Two claims are bound to the same volume, this one is bound incorrectly")

    async def _lose(self, claim: Tree, reason: str, text: str) -> None:
        if phase(claim) != "Lost":
            await self._ctx.client.update_status(PERSISTENT_VOLUME_CLAIMS, {**claim, "status": {"phase": "Lost"}})
            self._ctx.recorder.event(claim, "Warning", reason, text)

    async def _class_of(self, claim: Tree) -> Tree | None:
        name = storage_class(claim)
        found = self._classes.get(name) if name else None
        if name and found is None:
            # Often made just before the claim: a cache does not decide that it is missing
            try:
                return await self._ctx.client.get(STORAGE_CLASSES, name)
            except NotFound:
                return None
        return found

    async def _provision(self, claim: Tree, found: Tree | None) -> None:
        """Hand a claim to the provisioner of its class."""
        problem = ""
        if found is None:
            problem = f'storageclass.storage.k8s.io "{storage_class(claim)}" not found'
        elif found["provisioner"].startswith("kubernetes.io/"):
            problem = f"no volume plugin matched name: {found['provisioner']}"
        if found is None or problem:
            self._ctx.recorder.event(claim, "Warning", "ProvisioningFailed", problem)
            return
        provisioner = found["provisioner"]
        meta = claim["metadata"]
        annotations = meta.get("annotations") or {}
        if annotations.get(names.STORAGE_PROVISIONER) != provisioner:
            annotations = {**annotations, BETA_PROVISIONER: provisioner, names.STORAGE_PROVISIONER: provisioner}
            claim = await self._ctx.client.update(PERSISTENT_VOLUME_CLAIMS, {**claim, "metadata": {**meta, "annotations": annotations}})
        self._ctx.recorder.event(claim, "Normal", "ExternalProvisioning", _WAITING.format(provisioner))

    # ------------------------------------------------------------------ binding

    async def _bind(self, volume: Tree, claim: Tree) -> None:
        """Take those of the four steps that are still to be taken."""
        client = self._ctx.client
        volume = await self._name_claim(volume, claim)
        volume = await self._set_phase(volume, "Bound")
        meta, spec = claim["metadata"], claim["spec"]
        annotations = meta.get("annotations") or {}
        wanted = annotations
        if spec.get("volumeName") != volume["metadata"]["name"]:
            wanted = {**wanted, names.BOUND_BY_CONTROLLER: "yes"}
        if names.BIND_COMPLETED not in wanted:
            wanted = {**wanted, names.BIND_COMPLETED: "yes"}
        if wanted is not annotations:
            changed = {**claim, "metadata": {**meta, "annotations": wanted}, "spec": {**spec, "volumeName": volume["metadata"]["name"]}}
            claim = await client.update(PERSISTENT_VOLUME_CLAIMS, changed)
        if phase(claim) != "Bound":
            status = {
                **(claim.get("status") or {}),
                "phase": "Bound",
                "accessModes": volume["spec"]["accessModes"],
                "capacity": volume["spec"]["capacity"],
            }
            if volume["spec"].get("volumeAttributesClassName"):
                status["currentVolumeAttributesClassName"] = volume["spec"]["volumeAttributesClassName"]
            await client.update_status(PERSISTENT_VOLUME_CLAIMS, {**claim, "status": status})

    async def _name_claim(self, volume: Tree, claim: Tree) -> Tree:
        spec, meta, theirs = volume["spec"], volume["metadata"], claim["metadata"]
        before = spec.get("claimRef")
        if before is not None and before.get("uid") == theirs["uid"]:
            return volume
        annotations = meta.get("annotations") or {}
        if not reserved_for(volume, claim):
            annotations = {**annotations, names.BOUND_BY_CONTROLLER: "yes"}
        reference = {
            "kind": "PersistentVolumeClaim",
            "namespace": theirs["namespace"],
            "name": theirs["name"],
            "uid": theirs["uid"],
            "apiVersion": "v1",
            "resourceVersion": theirs["resourceVersion"],
        }
        changed = {**volume, "metadata": {**meta, "annotations": annotations}, "spec": {**spec, "claimRef": reference}}
        return await self._ctx.client.update(PERSISTENT_VOLUMES, changed)

    async def _set_phase(self, volume: Tree, wanted: str, message: str = "") -> Tree:
        if phase(volume) == wanted and (volume["status"].get("message") or "") == message:
            return volume
        status: Tree = {"phase": wanted, "lastPhaseTransitionTime": self._ctx.env.stamp()}
        if phase(volume) == wanted and "lastPhaseTransitionTime" in volume["status"]:
            status["lastPhaseTransitionTime"] = volume["status"]["lastPhaseTransitionTime"]
        if message:
            status["message"] = message
        return await self._ctx.client.update_status(PERSISTENT_VOLUMES, {**volume, "status": status})

    # ------------------------------------------------------------------ volumes

    async def _sync_volume(self, volume: Tree) -> None:
        reference = volume["spec"].get("claimRef")
        if reference is None or not reference.get("uid"):
            # Unused, or reserved for a claim that will find it
            await self._set_phase(volume, "Available")
            return
        claim = await self._claim_of(reference)
        if claim is None:
            await self._reclaim(volume)
        elif not claim["spec"].get("volumeName"):
            self.queue.add(f"claim:{key_of(claim)}")
        elif claim["spec"]["volumeName"] == volume["metadata"]["name"]:
            await self._set_phase(volume, "Bound")
        elif (
            names.PROVISIONED_BY in (volume["metadata"].get("annotations") or {}) and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete"
        ):
            # Made for the claim, which found another in the meantime
            await self._reclaim(volume)
        else:
            await self._unbind(volume)

    async def _claim_of(self, reference: Tree) -> Tree | None:
        """Return the claim that a volume is bound to; a cache does not decide that it is gone."""
        claim = self._claims.get(reference["name"], reference["namespace"])
        if claim is None or claim["metadata"]["uid"] != reference["uid"]:
            try:
                claim = await self._ctx.client.get(PERSISTENT_VOLUME_CLAIMS, reference["name"], reference["namespace"])
            except NotFound:
                return None
        return claim if claim["metadata"]["uid"] == reference["uid"] else None

    async def _unbind(self, volume: Tree) -> None:
        meta, spec = volume["metadata"], volume["spec"]
        annotations = meta.get("annotations") or {}
        if names.BOUND_BY_CONTROLLER in annotations:
            annotations = {name: value for name, value in annotations.items() if name != names.BOUND_BY_CONTROLLER}
            spec = {name: value for name, value in spec.items() if name != "claimRef"}
        else:
            # The user reserved it: it stays reserved, for whoever has that name
            reference = {name: value for name, value in spec["claimRef"].items() if name != "uid"}
            spec = {**spec, "claimRef": reference}
        volume = await self._ctx.client.update(PERSISTENT_VOLUMES, {**volume, "metadata": {**meta, "annotations": annotations}, "spec": spec})
        await self._set_phase(volume, "Available")

    async def _reclaim(self, volume: Tree) -> None:
        if phase(volume) not in ("Released", "Failed"):
            volume = await self._set_phase(volume, "Released")
        found: Reclaim = reclaim(volume)
        recorder = self._ctx.recorder
        if found.problem:
            if phase(volume) != "Failed":
                await self._set_phase(volume, "Failed", found.problem)
                recorder.event(volume, "Warning", found.reason, found.problem)
        elif found.recycle:
            recorder.event(volume, "Normal", "VolumeRecycled", "Volume recycled")
            reserved = {name: value for name, value in (volume["metadata"].get("annotations") or {}).items() if name != names.BOUND_BY_CONTROLLER}
            spec = {name: value for name, value in volume["spec"].items() if name != "claimRef"}
            volume = await self._ctx.client.update(
                PERSISTENT_VOLUMES, {**volume, "metadata": {**volume["metadata"], "annotations": reserved}, "spec": spec}
            )
            await self._set_phase(volume, "Available")
        elif found.delete and "deletionTimestamp" not in volume["metadata"]:
            try:
                await self._ctx.client.delete(PERSISTENT_VOLUMES, volume["metadata"]["name"], uid=volume["metadata"]["uid"])
            except NotFound:
                return
