"""What a decision means for a pod's volumes: promises are made at once, written before the pod is bound, and waited for.

Mirrors the Reserve and PreBind steps of the VolumeBinding plugin: a chosen volume gets the claim's reference, a claim to be provisioned gets the node as an annotation; the volume controller
does the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kubemini.api.resources import (
    CSI_DRIVERS,
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
)
from kubemini.api.trees import Tree
from kubemini.controllers.scheduler.cache import NodeInfo
from kubemini.controllers.scheduler.deciding import Rejection
from kubemini.controllers.scheduler.filters import Refusal
from kubemini.controllers.scheduler.volumes import SELECTED_NODE, Choice, choose, claims_of, is_bound
from kubemini.runtime.controller import Context
from kubemini.runtime.informer import Informer

BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
TIMEOUT_SECONDS = 600.0
"""How long a pod waits for its volumes on a node (``bindTimeoutSeconds``)."""


@dataclass(slots=True)
class VolumePlan:
    """What is written and waited for."""

    node: str
    choice: Choice
    written: dict[str, int] = field(default_factory=dict)
    """Uid of a claim to be provisioned → the revision that carries the node: older ones say nothing."""


class VolumeBinder:
    """Sees storage through informers, and keeps the promises that are not written yet."""

    def __init__(self, ctx: Context) -> None:
        self._client = ctx.client
        self.claims = ctx.informer(PERSISTENT_VOLUME_CLAIMS)
        self.volumes = ctx.informer(PERSISTENT_VOLUMES)
        self.classes = ctx.informer(STORAGE_CLASSES)
        self.nodes = ctx.informer(CSI_NODES)
        self.drivers = ctx.informer(CSI_DRIVERS)
        self.capacity = ctx.informer(CSI_STORAGE_CAPACITIES)
        self.volumes.add_index("class", lambda volume: (volume["spec"].get("storageClassName") or "",))
        self.capacity.add_index("class", lambda capacity: (capacity.get("storageClassName") or "",))
        self._promised: dict[str, str] = {}
        """Volume → uid of the claim that gets it."""

    @property
    def informers(self) -> tuple[Informer, ...]:
        """The informers whose changes may help a waiting pod."""
        return (self.claims, self.volumes, self.classes, self.nodes, self.drivers, self.capacity)

    # ------------------------------------------------------------------ Storage

    def claim(self, namespace: str, name: str) -> Tree | None:
        """See `Storage`."""
        return self.claims.get(name, namespace)

    def volume(self, name: str) -> Tree | None:
        """See `Storage`."""
        return self.volumes.get(name)

    def volumes_of(self, storage_class: str) -> Iterable[Tree]:
        """See `Storage`."""
        return self.volumes.by_index("class", storage_class)

    def storage_class(self, name: str) -> Tree | None:
        """See `Storage`."""
        return self.classes.get(name)

    def csi_node(self, name: str) -> Tree | None:
        """See `Storage`."""
        return self.nodes.get(name)

    def capacities(self, storage_class: str) -> list[Tree] | None:
        """See `Storage`."""
        found = self.classes.get(storage_class)
        driver = self.drivers.get(found["provisioner"]) if found is not None else None
        if driver is None or not driver["spec"].get("storageCapacity"):
            return None
        return list(self.capacity.by_index("class", storage_class))

    def taken(self, volume: str) -> str | None:
        """See `Storage`."""
        return self._promised.get(volume)

    # ------------------------------------------------------------------ promises

    def reserve(self, pod: Tree, info: NodeInfo) -> VolumePlan | None:
        """Promise what the pod's claims get on a node; None where nothing is to be done."""
        claims = claims_of(pod, self)
        if isinstance(claims, Rejection) or not claims.waiting:
            return None
        chosen = choose(claims.waiting, info, self)
        if isinstance(chosen, Refusal):
            return None
        for claim, volume in chosen.static:
            self._promised[volume["metadata"]["name"]] = claim["metadata"]["uid"]
        return VolumePlan(info.name, chosen)

    def release(self, plan: VolumePlan) -> None:
        """Forget the promises of a plan: it was written and came true, or was given up."""
        for _, volume in plan.choice.static:
            self._promised.pop(volume["metadata"]["name"], None)

    async def write(self, plan: VolumePlan) -> None:
        """Write a plan. Raise `Conflict` and `NotFound` where the world moved on."""
        for claim, volume in plan.choice.static:
            meta, spec = volume["metadata"], volume["spec"]
            before = spec.get("claimRef")
            if before is not None and before.get("uid") == claim["metadata"]["uid"]:
                continue
            theirs = claim["metadata"]
            reference = {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "name": theirs["name"],
                "namespace": theirs["namespace"],
                "resourceVersion": theirs["resourceVersion"],
                "uid": theirs["uid"],
            }
            annotations = {**(meta.get("annotations") or {})}
            if before is None:
                annotations[BOUND_BY_CONTROLLER] = "yes"
            await self._client.update(
                PERSISTENT_VOLUMES, {**volume, "metadata": {**meta, "annotations": annotations}, "spec": {**spec, "claimRef": reference}}
            )
        for claim in plan.choice.provisioned:
            meta = claim["metadata"]
            if (meta.get("annotations") or {}).get(SELECTED_NODE) != plan.node:
                patch = {"metadata": {"annotations": {SELECTED_NODE: plan.node}, "uid": meta["uid"]}}
                written = await self._client.patch(PERSISTENT_VOLUME_CLAIMS, meta["name"], patch, namespace=meta["namespace"])
                plan.written[meta["uid"]] = int(written["metadata"]["resourceVersion"])

    def progress(self, plan: VolumePlan) -> bool | str:
        """Tell whether all claims of a written plan are bound; a text says why that will not happen."""
        ready = True
        for claim in [*(claim for claim, _ in plan.choice.static), *plan.choice.provisioned]:
            meta = claim["metadata"]
            live = self.claims.get(meta["name"], meta["namespace"])
            if live is None or live["metadata"]["uid"] != meta["uid"]:
                return f'persistentvolumeclaim "{meta["name"]}" not found'
            ready = ready and is_bound(live)
        for claim, volume in plan.choice.static:
            live = self.claims.get(claim["metadata"]["name"], claim["metadata"]["namespace"])
            if live is not None and is_bound(live) and live["spec"]["volumeName"] != volume["metadata"]["name"]:
                # An earlier try had chosen otherwise, and its answer was lost
                return f'ClaimRef got reset for pv "{volume["metadata"]["name"]}"'
        if ready:
            return True
        for claim in plan.choice.provisioned:
            meta = claim["metadata"]
            live = self.claims.get(meta["name"], meta["namespace"])
            if live is None or is_bound(live) or int(live["metadata"]["resourceVersion"]) < plan.written.get(meta["uid"], 0):
                continue
            if (live["metadata"].get("annotations") or {}).get(SELECTED_NODE) != plan.node:
                # The provisioner gave the claim back: another node may do
                return f'provisioning failed for PVC "{meta["name"]}"'
        return False
