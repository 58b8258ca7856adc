"""The loop. Keys are ``pod:namespace/name`` (make what its templates want) and ``claim:namespace/name`` (reservations, freeing, deletion)."""

from __future__ import annotations

from kubemini.api.resources import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from kubemini.api.trees import Tree
from kubemini.controllers.resource_claims.policy import (
    FINALIZER,
    POD_CLAIM,
    claim_from,
    ended,
    owner_pod,
    settled_status,
    still_reserved,
    wanted_claims,
)
from kubemini.machinery.errors import ApiStatus, NotFound
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.keys import key_of


class ResourceClaimController(Controller):
    """A claim made here is remembered until the cache shows it, so that a stale cache never makes two."""

    name = "resourceclaim"
    measured_as = "resource_claim"
    component = "resource_claim"

    def setup(self, ctx: Context) -> None:
        """Follow pods with claims, claims and templates."""
        self._ctx = ctx
        self._pods = ctx.informer(PODS)
        self._claims = ctx.informer(RESOURCE_CLAIMS)
        self._templates = ctx.informer(RESOURCE_CLAIM_TEMPLATES)
        self._claims.add_index("pod", lambda claim: (owner["uid"],) if (owner := owner_pod(claim)) is not None else ())
        self._pods.add_index("resource-claim-template", _templates_of, reads=("spec.resourceClaims",))
        self._pods.add_index("resource-claim", _claims_of, reads=("spec.resourceClaims", "status"))
        self._made: dict[tuple[str, str], str] = {}
        """(pod uid, entry) → name of the claim that was made for it."""
        self._doubtful: dict[tuple[str, str], None] = {}
        """Those whose claim may have been made: the answer was lost."""
        self._pods.on_change(self._on_pod)
        self._claims.on_change(self._on_claim)
        self._templates.on_change(self._on_template)

    # ------------------------------------------------------------------ events

    def _on_pod(self, old: Tree | None, new: Tree | None) -> None:
        pod = new if new is not None else old
        if pod is None or not pod["spec"].get("resourceClaims"):
            return
        key = key_of(pod)
        if new is not None and not ended(new):
            self.queue.add(f"pod:{key}")
        if new is None or ended(new) or (old is not None and not old["spec"].get("nodeName") and new["spec"].get("nodeName")):
            for name in _claims_of(pod):
                self.queue.add(f"claim:{name}")
            for claim in self._claims.by_index("pod", pod["metadata"]["uid"]):
                self.queue.add(f"claim:{key_of(claim)}")
        if new is None:
            for entry in pod["spec"]["resourceClaims"]:
                for memory in (self._made, self._doubtful):
                    memory.pop((pod["metadata"]["uid"], entry["name"]), None)

    def _on_claim(self, old: Tree | None, new: Tree | None) -> None:
        claim = new if new is not None else old
        if claim is None:
            return
        if new is not None:
            self.queue.add(f"claim:{key_of(new)}")
        owner = owner_pod(claim)
        if owner is not None:
            self.queue.add(f"pod:{claim['metadata']['namespace']}/{owner['name']}")

    def _on_template(self, old: Tree | None, new: Tree | None) -> None:
        if new is not None:
            for pod in self._pods.by_index("resource-claim-template", key_of(new)):
                self.queue.add(f"pod:{key_of(pod)}")

    # ------------------------------------------------------------------ steps

    async def reconcile(self, key: str) -> None:
        """Bring one pod's claims into being, or one claim's reservations in line with its pods."""
        kind, _, rest = key.partition(":")
        if kind == "pod":
            pod = self._pods.get_key(rest)
            if pod is not None and not ended(pod) and "deletionTimestamp" not in pod["metadata"]:
                await self._make(pod)
        else:
            claim = self._claims.get_key(rest)
            if claim is not None:
                await self._settle(claim)

    async def _make(self, pod: Tree) -> None:
        entries = wanted_claims(pod)
        if not entries:
            return
        meta = pod["metadata"]
        found: list[Tree] = []
        for entry in entries:
            template = self._templates.get(entry["resourceClaimTemplateName"], meta["namespace"])
            name = self._existing(pod, entry["name"]) or await self._unanswered(pod, entry["name"])
            if name is None:
                if template is None:
                    text = f'resource claim template "{entry["resourceClaimTemplateName"]}": resourceclaimtemplate.resource.k8s.io "{entry["resourceClaimTemplateName"]}" not found'
                    self._ctx.recorder.event(pod, "Warning", "FailedResourceClaimCreation", f"PodResourceClaim {entry['name']}: {text}")
                    continue
                try:
                    made = await self._ctx.client.create(RESOURCE_CLAIMS, claim_from(template, pod, entry["name"]))
                except ApiStatus as refused:
                    if refused.code >= 500:
                        self._doubtful[meta["uid"], entry["name"]] = None
                    self._ctx.recorder.event(
                        pod, "Warning", "FailedResourceClaimCreation", f"PodResourceClaim {entry['name']}: failed to create ResourceClaim: {refused}"
                    )
                    raise
                name = made["metadata"]["name"]
                self._made[meta["uid"], entry["name"]] = name
            found.append({"name": entry["name"], "resourceClaimName": name})
        if found:
            body = {"metadata": {"uid": meta["uid"]}, "status": {"resourceClaimStatuses": found}}
            try:
                await self._ctx.client.patch(PODS, meta["name"], body, namespace=meta["namespace"], type="strategic", subresource="status")
            except NotFound:
                return

    async def _unanswered(self, pod: Tree, entry: str) -> str | None:
        """Return the claim that was made for an entry although the answer was lost: the API is asked, as the cache may not show it yet."""
        key = (pod["metadata"]["uid"], entry)
        if key not in self._doubtful:
            return None
        for claim in await self._ctx.client.list(RESOURCE_CLAIMS, pod["metadata"]["namespace"]):
            owner = owner_pod(claim)
            if owner is not None and owner["uid"] == key[0] and _is_for(claim, entry):
                self._made[key] = claim["metadata"]["name"]
                break
        del self._doubtful[key]
        return self._made.get(key)

    def _existing(self, pod: Tree, entry: str) -> str | None:
        """Return the claim that was made for an entry, when the pod's status does not tell yet."""
        uid = pod["metadata"]["uid"]
        for claim in self._claims.by_index("pod", uid):
            if _is_for(claim, entry):
                found: str = claim["metadata"]["name"]
                return found
        return self._made.get((uid, entry))

    async def _settle(self, claim: Tree) -> None:
        meta = claim["metadata"]
        namespace = meta["namespace"]
        owner = owner_pod(claim)
        status = claim.get("status") or {}

        def pod_of(name: str, uid: str) -> Tree | None:
            pod = self._pods.get(name, namespace)
            return pod if pod is not None and pod["metadata"]["uid"] == uid else None

        before = status.get("reservedFor") or []
        reserved = still_reserved(claim, pod_of)
        reserved += self._missing(claim, reserved)
        try:
            changed = settled_status(claim, reserved) if reserved or before or "deletionTimestamp" in meta else status
            if changed != status:
                claim = await self._ctx.client.update_status(RESOURCE_CLAIMS, {**claim, "status": changed})
                meta, status = claim["metadata"], claim.get("status") or {}
            if (
                not status.get("allocation")
                and not reserved
                and FINALIZER in (meta.get("finalizers") or ())
                and (before or "deletionTimestamp" in meta)
            ):
                kept = [each for each in meta["finalizers"] if each != FINALIZER]
                claim = await self._ctx.client.update(RESOURCE_CLAIMS, {**claim, "metadata": {**meta, "finalizers": kept}})
            if owner is not None and not reserved and "deletionTimestamp" not in meta and ended(pod_of(owner["name"], owner["uid"])):
                await self._ctx.client.delete(RESOURCE_CLAIMS, meta["name"], namespace=namespace, uid=meta["uid"])
        except NotFound:
            return

    def _missing(self, claim: Tree, reserved: list[Tree]) -> list[Tree]:
        """Return reservations for pods that were bound past the scheduler and use an allocated claim."""
        if not (claim.get("status") or {}).get("allocation"):
            return []
        known = {each["uid"]: None for each in reserved}
        found: list[Tree] = []
        for pod in self._pods.by_index("resource-claim", key_of(claim)):
            meta = pod["metadata"]
            if pod["spec"].get("nodeName") and not ended(pod) and meta["uid"] not in known:
                found.append({"resource": "pods", "name": meta["name"], "uid": meta["uid"]})
        return found


def _is_for(claim: Tree, entry: str) -> bool:
    """Tell whether a claim was made for an entry of its pod and stays."""
    meta = claim["metadata"]
    return (meta.get("annotations") or {}).get(POD_CLAIM) == entry and "deletionTimestamp" not in meta


def _templates_of(pod: Tree) -> tuple[str, ...]:
    namespace = pod["metadata"]["namespace"]
    return tuple(
        f"{namespace}/{each['resourceClaimTemplateName']}"
        for each in pod["spec"].get("resourceClaims") or ()
        if each.get("resourceClaimTemplateName")
    )


def _claims_of(pod: Tree) -> tuple[str, ...]:
    """Return the keys of a pod's claims, as far as they are known."""
    entries = pod["spec"].get("resourceClaims")
    if not entries:
        return ()
    namespace = pod["metadata"]["namespace"]
    made = {each["name"]: each.get("resourceClaimName") for each in (pod.get("status") or {}).get("resourceClaimStatuses") or ()}
    names = [each.get("resourceClaimName") or made.get(each["name"]) for each in entries]
    return tuple(f"{namespace}/{name}" for name in names if name)
