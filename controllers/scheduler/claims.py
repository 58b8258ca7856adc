"""Device claims of pods in scheduling: which there are, on which nodes they can be served, and what is written before a pod is bound.

Mirrors the DynamicResources plugin (1.36): allocations are promised at once, and written with the pod's reservation before the binding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kubemini.api.resources import DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_SLICES
from kubemini.api.trees import Tree
from kubemini.controllers.scheduler.cache import NodeInfo
from kubemini.controllers.scheduler.deciding import Rejection
from kubemini.controllers.scheduler.devices import Catalogue, ClaimProblem, Identity, Inventory, allocate, requests_of_claim, selected
from kubemini.controllers.scheduler.filters import Refusal
from kubemini.machinery.errors import ApiStatus, Conflict, NotFound
from kubemini.machinery.node_matching import matches_term
from kubemini.runtime.controller import Context

FINALIZER = "resource.kubernetes.io/delete-protection"
PLUGIN = "DynamicResources"
RESERVED_LIMIT = 256
NOT_ALL = Refusal(PLUGIN, ("cannot allocate all claims",), unresolvable=True)
NOT_THERE = Refusal(PLUGIN, ("resourceclaim not available on the node",), unresolvable=True)


def claim_name(pod: Tree, entry: Tree) -> str | None:
    """Return the name of the claim behind an entry of a pod's resourceClaims: None while the one of a template is not made."""
    if entry.get("resourceClaimName"):
        found: str = entry["resourceClaimName"]
        return found
    for status in (pod.get("status") or {}).get("resourceClaimStatuses") or ():
        if status["name"] == entry["name"]:
            return status.get("resourceClaimName") or ""
    return None


def reservation(pod: Tree) -> Tree:
    """Return the entry that a pod has in ``reservedFor``."""
    return {"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}


def reserved_by(claim: Tree, uid: str) -> bool:
    """Tell whether a claim is reserved for an object."""
    return any(each["uid"] == uid for each in (claim.get("status") or {}).get("reservedFor") or ())


@dataclass(slots=True)
class _Promise:
    """An allocation that the cache does not show yet, and the pods that it was promised to."""

    allocation: Tree
    pods: dict[str, None] = field(default_factory=dict)
    written: int = 0
    """The revision that holds it; 0 while it is not written."""


@dataclass(slots=True)
class ClaimPlan:
    """What is written for one pod: its claims, with the allocation where it is new."""

    claims: list[tuple[Tree, Tree | None]] = field(default_factory=list)


@dataclass(slots=True)
class ClaimFilter:
    """The filter of one pod: its allocated claims tie it to nodes, the others must find devices there."""

    allocated: list[Tree]
    pending: list[Tree]
    inventory: Inventory
    found: dict[str, list[Tree]] = field(default_factory=dict)
    """Node → allocations of the pending claims."""

    def refusal(self, info: NodeInfo) -> Refusal | None:
        """Return why a node does not do, or None."""
        for claim in self.allocated:
            terms = (claim["status"]["allocation"].get("nodeSelector") or {}).get("nodeSelectorTerms")
            if terms and not any(matches_term(term, info.labels, info.name) for term in terms):
                return NOT_THERE
        if not self.pending:
            return None
        allocations = allocate(self.pending, info, self.inventory)
        if allocations is None:
            return NOT_ALL
        self.found[info.name] = allocations
        return None


class DeviceClaims:
    """Sees claims, classes and slices through informers, and keeps the allocations that are not written yet."""

    def __init__(self, ctx: Context) -> None:
        self._client = ctx.client
        self._env = ctx.env
        self.claims = ctx.informer(RESOURCE_CLAIMS)
        self.classes = ctx.informer(DEVICE_CLASSES)
        self.slices = ctx.informer(RESOURCE_SLICES)
        self._promised: dict[str, _Promise] = {}
        """By claim uid."""
        self._taken: dict[Identity, int] = {}
        """Allocated devices, as the cache shows them, and how many claims have them."""
        self._catalogue: Catalogue | None = None
        self.claims.on_change(self._on_claim)
        self.slices.on_change(self._on_slice)

    def _on_slice(self, old: Tree | None, new: Tree | None) -> None:
        self._catalogue = None

    def _on_claim(self, old: Tree | None, new: Tree | None) -> None:
        before = ((old or {}).get("status") or {}).get("allocation")
        after = ((new or {}).get("status") or {}).get("allocation")
        if before is not after:
            for identity in _devices(before) if before else ():
                self._taken[identity] -= 1
                if not self._taken[identity]:
                    del self._taken[identity]
            for identity in _devices(after) if after else ():
                self._taken[identity] = self._taken.get(identity, 0) + 1
        uid = (new or old or {})["metadata"]["uid"]
        promise = self._promised.get(uid)
        if promise is not None and (new is None or 0 < promise.written <= int(new["metadata"]["resourceVersion"])):
            # The cache has caught up with what was written
            del self._promised[uid]

    def live(self, pod: Tree) -> list[Tree] | None:
        """Return a pod's claims, or None while one is missing or going: then the pod does not even enter the queue."""
        found: list[Tree] = []
        meta = pod["metadata"]
        for entry in pod["spec"].get("resourceClaims") or ():
            name = claim_name(pod, entry)
            if name == "":
                continue
            claim = self.claims.get(name, meta["namespace"]) if name is not None else None
            if claim is None or "deletionTimestamp" in claim["metadata"]:
                return None
            if "resourceClaimTemplateName" in entry and not any(
                owner["uid"] == meta["uid"] for owner in claim["metadata"].get("ownerReferences") or ()
            ):
                return None
            found.append(claim)
        return found

    def _allocation(self, claim: Tree) -> Tree | None:
        promise = self._promised.get(claim["metadata"]["uid"])
        found: Tree | None = (claim.get("status") or {}).get("allocation")
        return found if found is not None or promise is None else promise.allocation

    def _allocated(self) -> dict[Identity, int]:
        if not self._promised:
            return self._taken
        return {**self._taken, **{identity: 1 for promise in self._promised.values() for identity in _devices(promise.allocation)}}

    def filter_of(self, pod: Tree, claims: Sequence[Tree]) -> ClaimFilter | Rejection:
        """Return the filter of a pod with claims, or why no node would do."""
        uid = pod["metadata"]["uid"]
        allocated: list[Tree] = []
        pending: list[Tree] = []
        for claim in claims:
            allocation = self._allocation(claim)
            if allocation is None:
                pending.append(claim)
                continue
            status = claim.get("status") or {}
            if len(status.get("reservedFor") or ()) >= RESERVED_LIMIT and not reserved_by(claim, uid):
                return Rejection(PLUGIN, "resourceclaim in use")
            allocated.append({**claim, "status": {**status, "allocation": allocation}})
        classes = {each["metadata"]["name"]: each for each in self.classes.list()}
        if self._catalogue is None:
            self._catalogue = Catalogue(self.slices.list())
        inventory = Inventory(self._catalogue, classes, self._allocated())
        found = ClaimFilter(allocated, pending, inventory)
        try:
            # A class that is missing or an expression that is bad is found before any node is looked at
            for claim in pending:
                _checked(claim, inventory)
        except ClaimProblem as problem:
            return Rejection(PLUGIN, str(problem))
        return found

    # ------------------------------------------------------------------ promises

    def reserve(self, pod: Tree, claims: Sequence[Tree], found: ClaimFilter, node: str) -> ClaimPlan:
        """Promise the pod what its claims get on the node."""
        fresh = dict(zip((claim["metadata"]["uid"] for claim in found.pending), found.found.get(node, ()), strict=False))
        plan = ClaimPlan()
        for claim in claims:
            uid = claim["metadata"]["uid"]
            given = fresh.get(uid)
            allocation = {**given, "allocationTimestamp": self._env.stamp()} if given is not None else self._allocation(claim)
            if allocation is not None:
                self._promised.setdefault(uid, _Promise(allocation)).pods[pod["metadata"]["uid"]] = None
            plan.claims.append((claim, allocation))
        return plan

    def release(self, pod: Tree, plan: ClaimPlan) -> None:
        """Take back the promises to a pod: its placement was given up. What is written already is seen from the cache."""
        for claim, _ in plan.claims:
            uid = claim["metadata"]["uid"]
            promise = self._promised.get(uid)
            if promise is not None:
                promise.pods.pop(pod["metadata"]["uid"], None)
                if not promise.pods and not promise.written:
                    del self._promised[uid]

    async def write(self, pod: Tree, plan: ClaimPlan) -> None:
        """Write allocations and reservations. Raise `Conflict` and `NotFound` where the world moved on."""
        for claim, allocation in plan.claims:
            meta = claim["metadata"]
            live = await self._client.get(RESOURCE_CLAIMS, meta["name"], meta["namespace"])
            if live["metadata"]["uid"] != meta["uid"]:
                raise NotFound.of("resourceclaims", "resource.k8s.io", meta["name"])
            status = live.get("status") or {}
            if status.get("allocation") is None:
                if "deletionTimestamp" in live["metadata"]:
                    raise Conflict.of("resourceclaims", "resource.k8s.io", meta["name"], "the claim got deleted in the meantime")
                finalizers = live["metadata"].get("finalizers") or []
                if FINALIZER not in finalizers:
                    live = await self._client.update(
                        RESOURCE_CLAIMS, {**live, "metadata": {**live["metadata"], "finalizers": [*finalizers, FINALIZER]}}
                    )
                status = {**(live.get("status") or {}), "allocation": allocation}
            elif allocation is not None and _devices(status["allocation"]) != _devices(allocation):
                raise Conflict.of("resourceclaims", "resource.k8s.io", meta["name"], "claim was allocated elsewhere in the meantime")
            if not reserved_by({"status": status}, pod["metadata"]["uid"]):
                status = {**status, "reservedFor": [*(status.get("reservedFor") or ()), reservation(pod)]}
            if status != live.get("status"):
                live = await self._written({**live, "status": status})
            promise = self._promised.get(meta["uid"])
            if promise is not None:
                promise.written = int(live["metadata"]["resourceVersion"])
                seen = self.claims.get(meta["name"], meta["namespace"])
                if seen is not None:
                    self._on_claim(seen, seen)

    async def _written(self, claim: Tree) -> Tree:
        """Write a claim's status. Where the answer is lost the API is asked what came of it, lest the devices are promised once more."""
        try:
            return await self._client.update_status(RESOURCE_CLAIMS, claim)
        except ApiStatus as lost:
            if lost.code < 500:
                raise
            meta, status = claim["metadata"], claim["status"]
            live = await self._client.get(RESOURCE_CLAIMS, meta["name"], meta["namespace"])
            if live["metadata"]["uid"] != meta["uid"] or any(
                (live.get("status") or {}).get(key) != status[key] for key in ("allocation", "reservedFor")
            ):
                raise
            return live

    # ------------------------------------------------------------------ deallocation

    async def deallocate(self, claims: Sequence[Tree]) -> bool:
        """Free one allocated claim that nobody uses, so that its pod may find another node; tell whether there was one."""
        for claim in claims:
            status = claim.get("status") or {}
            if status.get("allocation") is not None and not status.get("reservedFor"):
                rest = {key: value for key, value in status.items() if key not in ("allocation", "devices")}
                await self._client.update_status(RESOURCE_CLAIMS, {**claim, "status": rest})
                return True
        return False


def _devices(allocation: Tree) -> list[Identity]:
    """Return the devices of an allocation that are taken by it."""
    results = (allocation.get("devices") or {}).get("results") or ()
    return [(each["driver"], each["pool"], each["device"]) for each in results if not each.get("adminAccess")]


def _checked(claim: Tree, inventory: Inventory) -> None:
    for alternatives in requests_of_claim(claim, inventory.classes):
        for request in alternatives:
            for device in list(inventory.catalogue.known.values())[:1]:
                selected(device, request.selectors)
