"""The simulated provisioner of every StorageClass that names it: makes a volume for each claim handed to it, deletes it when it is released, and grows it.

Behaves as an external CSI provisioner and resizer do. Parameters of a StorageClass with provisioner ``kubemini.dev/simulated``:

| parameter | meaning |
| --- | --- |
| ``provision-after`` | duration from hand-over to the volume (default 100ms) |
| ``fail`` | every attempt fails with this text |
| ``topology`` | node label (``kubernetes.io/hostname``, a zone label) to whose value on the chosen node a volume is tied; for classes that wait for the first consumer |

Keys are ``claim:NAMESPACE/NAME`` and ``volume:NAME``.
"""

from __future__ import annotations

from kubemini.api.resources import NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES
from kubemini.api.trees import Tree
from kubemini.api.wellknown import kubernetes as names
from kubemini.controllers.volumes.matching import capacity, phase, requested, storage_class
from kubemini.machinery.duration import DurationError
from kubemini.machinery.duration import seconds as parse_duration
from kubemini.machinery.errors import AlreadyExists, Conflict, NotFound
from kubemini.machinery.quantity import compare
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.keys import key_of

PROVISIONER = "kubemini.dev/simulated"
DRIVER = "simulated.kubemini.dev"
"""Name of the CSI driver in the volumes."""
SECONDS = 0.1
RETRY_SECONDS = 15.0


class SimulatedProvisioner(Controller):
    """Claims whose storage-provisioner is ours, and our volumes."""

    name = "simulated-provisioner"
    component = PROVISIONER

    def setup(self, ctx: Context) -> None:
        """Follow claims, volumes, classes and nodes."""
        self._ctx = ctx
        self._claims = ctx.informer(PERSISTENT_VOLUME_CLAIMS)
        self._volumes = ctx.informer(PERSISTENT_VOLUMES)
        self._classes = ctx.informer(STORAGE_CLASSES)
        self._nodes = ctx.informer(NODES)
        self._began: dict[str, float] = {}
        """Uid of a claim → when its volume was begun."""
        self._claims.on_change(self._on_claim)
        self._claims.add_index("unbound-class", lambda claim: () if claim["spec"].get("volumeName") else (storage_class(claim),))
        self._claims.add_index("selected-node", _waits_on)
        self._classes.on_change(self._on_class)
        self._nodes.on_change(self._on_node)
        self._volumes.on_change(lambda old, new: self.queue.add(f"volume:{new['metadata']['name']}") if new is not None and _ours(new) else None)

    def _on_claim(self, old: Tree | None, new: Tree | None) -> None:
        if new is not None:
            if (new["metadata"].get("annotations") or {}).get(names.STORAGE_PROVISIONER) == PROVISIONER:
                self.queue.add(f"claim:{key_of(new)}")
        elif old is not None:
            self._began.pop(old["metadata"]["uid"], None)

    def _on_class(self, old: Tree | None, new: Tree | None) -> None:
        if new is not None and new["provisioner"] == PROVISIONER:
            for claim in self._claims.by_index("unbound-class", new["metadata"]["name"]):
                self._on_claim(None, claim)

    def _on_node(self, old: Tree | None, new: Tree | None) -> None:
        if new is not None and old is None:
            for claim in self._claims.by_index("selected-node", new["metadata"]["name"]):
                self._on_claim(None, claim)

    async def reconcile(self, key: str) -> float | None:
        """Make, grow or delete one volume."""
        kind, _, name = key.partition(":")
        if kind == "volume":
            await self._delete(name)
            return None
        claim = self._claims.get_key(name)
        if claim is None or "deletionTimestamp" in claim["metadata"]:
            return None
        if claim["spec"].get("volumeName"):
            await self._grow(claim)
            return None
        return await self._provision(claim)

    # ------------------------------------------------------------------ making

    async def _provision(self, claim: Tree) -> float | None:
        meta = claim["metadata"]
        found = self._classes.get(storage_class(claim))
        if found is None or found["provisioner"] != PROVISIONER:
            # Handed over before our cache shows the class: its event brings us back
            return None
        name = f"pvc-{meta['uid']}"
        if self._volumes.get(name) is not None:
            return None
        node: Tree | None = None
        if found.get("volumeBindingMode") == "WaitForFirstConsumer":
            node = self._nodes.get((meta.get("annotations") or {}).get(names.SELECTED_NODE, ""))
            if node is None:
                return None
        recorder, now = self._ctx.recorder, self._ctx.env.now()
        parameters = found.get("parameters") or {}
        try:
            lasts = parse_duration(parameters["provision-after"]) if "provision-after" in parameters else SECONDS
        except DurationError as problem:
            parameters, lasts = {"fail": f"parameter provision-after: {problem}"}, SECONDS
        began = self._began.get(meta["uid"])
        if began is None:
            began = self._began[meta["uid"]] = now
            recorder.event(claim, "Normal", "Provisioning", f'External provisioner is provisioning volume for claim "{key_of(claim)}"')
        left = began + lasts - now
        if left > 1e-6:
            return left
        if "fail" in parameters:
            text = f'failed to provision volume with StorageClass "{found["metadata"]["name"]}": {parameters["fail"]}'
            recorder.event(claim, "Warning", "ProvisioningFailed", text)
            del self._began[meta["uid"]]
            return RETRY_SECONDS
        try:
            await self._ctx.client.create(PERSISTENT_VOLUMES, _volume(name, claim, found, node))
        except AlreadyExists:
            return None
        recorder.event(claim, "Normal", "ProvisioningSucceeded", f"Successfully provisioned volume {name}")
        return None

    # ------------------------------------------------------------------ growing and deleting

    async def _grow(self, claim: Tree) -> None:
        """Grow the volume of a bound claim that asks for more."""
        status = claim.get("status") or {}
        size = requested(claim)
        if phase(claim) != "Bound" or compare(size, (status.get("capacity") or {}).get("storage", "0")) <= 0:
            return
        volume = self._volumes.get(claim["spec"]["volumeName"])
        found = self._classes.get(storage_class(claim))
        if volume is None or not _ours(volume) or found is None or not found.get("allowVolumeExpansion"):
            return
        name = volume["metadata"]["name"]
        if compare(capacity(volume), size) < 0:
            self._ctx.recorder.event(claim, "Normal", "Resizing", f"External resizer is resizing volume {name}")
            spec = {**volume["spec"], "capacity": {**volume["spec"]["capacity"], "storage": size}}
            await self._ctx.client.update(PERSISTENT_VOLUMES, {**volume, "spec": spec})
        await self._ctx.client.update_status(
            PERSISTENT_VOLUME_CLAIMS, {**claim, "status": {**status, "capacity": {**status["capacity"], "storage": size}}}
        )
        self._ctx.recorder.event(claim, "Normal", "VolumeResizeSuccessful", "Resize volume succeeded")

    async def _delete(self, name: str) -> None:
        volume = self._volumes.get(name)
        if (
            volume is None
            or phase(volume) != "Released"
            or volume["spec"].get("persistentVolumeReclaimPolicy") != "Delete"
            or "deletionTimestamp" in volume["metadata"]
        ):
            return
        try:
            await self._ctx.client.delete(PERSISTENT_VOLUMES, name, uid=volume["metadata"]["uid"])
        except (NotFound, Conflict):
            return


def _waits_on(claim: Tree) -> tuple[str, ...]:
    node = (claim["metadata"].get("annotations") or {}).get(names.SELECTED_NODE)
    return (node,) if node and not claim["spec"].get("volumeName") else ()


def _ours(volume: Tree) -> bool:
    return (volume["metadata"].get("annotations") or {}).get(names.PROVISIONED_BY) == PROVISIONER


def _volume(name: str, claim: Tree, found: Tree, node: Tree | None) -> Tree:
    meta, wanted = claim["metadata"], claim["spec"]
    spec: Tree = {
        "capacity": {"storage": requested(claim)},
        "csi": {"driver": DRIVER, "fsType": "ext4", "volumeHandle": name},
        "accessModes": wanted["accessModes"],
        "claimRef": {
            "kind": "PersistentVolumeClaim",
            "namespace": meta["namespace"],
            "name": meta["name"],
            "uid": meta["uid"],
            "apiVersion": "v1",
            "resourceVersion": meta["resourceVersion"],
        },
        "persistentVolumeReclaimPolicy": found.get("reclaimPolicy", "Delete"),
        "storageClassName": found["metadata"]["name"],
        "volumeMode": wanted.get("volumeMode", "Filesystem"),
    }
    if spec["volumeMode"] == "Block":
        del spec["csi"]["fsType"]
    if found.get("mountOptions"):
        spec["mountOptions"] = found["mountOptions"]
    if wanted.get("volumeAttributesClassName"):
        spec["volumeAttributesClassName"] = wanted["volumeAttributesClassName"]
    keys = dict.fromkeys(filter(None, [(found.get("parameters") or {}).get("topology")]))
    keys |= dict.fromkeys(each["key"] for term in found.get("allowedTopologies") or () for each in term.get("matchLabelExpressions") or ())
    labels = (node["metadata"].get("labels") or {}) if node is not None else {}
    tied = [{"key": key, "operator": "In", "values": [labels[key]]} for key in keys if key in labels]
    if tied:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": tied}]}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {names.PROVISIONED_BY: PROVISIONER}},
        "spec": spec,
    }
