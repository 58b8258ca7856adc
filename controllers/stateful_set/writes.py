"""The writes of a pass: pods with their claims, and the events that tell of them."""

from __future__ import annotations

from collections.abc import Callable

from kubemini.api.resources import PERSISTENT_VOLUME_CLAIMS, PODS
from kubemini.api.trees import Tree
from kubemini.controllers.stateful_set import claim_owners, pods
from kubemini.controllers.stateful_set.view import SetView
from kubemini.machinery.errors import AlreadyExists, ApiStatus, Conflict, InternalError, NotFound
from kubemini.runtime.controller import Context

CONFLICT_TRIES = 4
CONFLICT = (
    "PersistentVolumeClaim {} has a conflicting OwnerReference that acts as a managing controller, the retention policy is ignored for this claim"
)


Note = Callable[[SetView, Tree], None]


class Writes:
    """Writes for one controller. `created`, `removed` and `claimed` are told of what the caches of pods and claims must show before the next pass."""

    def __init__(self, ctx: Context, created: Note, removed: Note, claimed: Note) -> None:
        self._ctx = ctx
        self._claims = ctx.informer(PERSISTENT_VOLUME_CLAIMS)
        self._created = created
        self._removed = removed
        self._claimed = claimed

    # ------------------------------------------------------------------ pods

    async def create(self, owner: SetView, pod: Tree) -> Tree:
        """Create a pod, its claims first. Raise what the API answers; a name that is taken is no event."""
        try:
            await self._create_claims(owner, pod)
        except ApiStatus as refused:
            self._say(owner, "Create", pod, refused)
            raise
        problem: ApiStatus | None = None
        try:
            pod = await self._ctx.client.create(PODS, pod, canonical=True)
        except AlreadyExists:
            raise
        except ApiStatus as refused:
            problem = refused
        else:
            self._created(owner, pod)
            await self._correct(owner, pod)
        self._say(owner, "Create", pod, problem)
        if problem is not None:
            raise problem
        return pod

    async def delete(self, owner: SetView, pod: Tree) -> None:
        """Delete a pod; one that is gone already, or was replaced, is no error."""
        meta = pod["metadata"]
        try:
            await self._ctx.client.delete(PODS, meta["name"], namespace=meta["namespace"], uid=meta["uid"])
        except (NotFound, Conflict):
            self._removed(owner, pod)
            return
        except ApiStatus as refused:
            self._say(owner, "Delete", pod, refused)
            raise
        self._removed(owner, pod)
        self._say(owner, "Delete", pod)

    async def keep(self, owner: SetView, pod: Tree) -> None:
        """See that a pod in range has its identity, its volumes, and claims with the right owners."""
        if pods.identity_matches(owner, pod) and pods.storage_matches(owner, pod) and self._owners_match(owner, pod):
            return
        if not pods.storage_matches(owner, pod):
            try:
                await self._create_claims(owner, pod)
            except ApiStatus as refused:
                self._say(owner, "Update", pod, refused)
                raise
        if not self._owners_match(owner, pod):
            await self._correct(owner, pod)
        try:
            await self._update(owner, pod)
        except ApiStatus as refused:
            self._say(owner, "Update", pod, refused)
            raise
        self._say(owner, "Update", pod)

    async def _update(self, owner: SetView, pod: Tree) -> None:
        meta = pod["metadata"]
        for tries in range(CONFLICT_TRIES):
            try:
                self._created(owner, await self._ctx.client.update(PODS, pods.repaired(owner, pod)))
            except Conflict:
                if tries == CONFLICT_TRIES - 1:
                    raise
                pod = await self._ctx.client.get(PODS, meta["name"], meta["namespace"])
                if pod["metadata"]["uid"] != meta["uid"]:
                    return
            else:
                return

    def _say(self, owner: SetView, verb: str, pod: Tree, problem: ApiStatus | None = None) -> None:
        about = f"{verb} Pod {pod['metadata']['name']} in StatefulSet {owner.name}"
        if problem is None:
            self._ctx.recorder.event(owner.tree, "Normal", f"Successful{verb}", f"{about} successful")
        else:
            self._ctx.recorder.event(owner.tree, "Warning", f"Failed{verb}", f"{about} failed error: {problem.message}")

    # ------------------------------------------------------------------ claims

    async def ensure_claims(self, owner: SetView, pod: Tree) -> None:
        """Make the claims of a pending pod that are missing, with their owners."""
        if not owner.claims:
            return
        await self._create_claims(owner, pod)
        await self._correct(owner, pod)

    async def correct_owners(self, owner: SetView, pod: Tree) -> None:
        """Give the claims of a pod out of range to whom the policy wants, before it goes."""
        if not self._owners_match(owner, pod):
            await self._correct(owner, pod, tell=False)

    def is_stale(self, owner: SetView, ordinal: int) -> bool:
        """Tell whether a pod must not be made yet: a claim of its name still belongs to the pod before, and goes with it."""
        if owner.when_scaled != "Delete":
            return False
        name = pods.pod_name(owner, ordinal)
        found = (self._claims.get(pods.claim_name(each, owner, ordinal), owner.namespace) for each in owner.claims)
        return any(claim is not None and claim_owners.waits_for(claim, name) for claim in found)

    def _owners_match(self, owner: SetView, pod: Tree) -> bool:
        return all(claim_owners.up_to_date(claim, owner, pod) for _, claim in self._of(owner, pod))

    def _of(self, owner: SetView, pod: Tree) -> list[tuple[str, Tree]]:
        ordinal = pods.ordinal_of(pod)
        found = []
        for template in owner.claims:
            name = pods.claim_name(template, owner, ordinal)
            claim = self._claims.get(name, owner.namespace)
            if claim is not None:
                found.append((name, claim))
        return found

    async def _create_claims(self, owner: SetView, pod: Tree) -> None:
        ordinal = pods.ordinal_of(pod)
        problems: list[str] = []
        for template in owner.claims:
            name = pods.claim_name(template, owner, ordinal)
            present = self._claims.get(name, owner.namespace)
            if present is not None:
                if "deletionTimestamp" in present["metadata"]:
                    problems.append(f"pvc {name} is being deleted")
                continue
            about = f"Create Claim {name}"
            recorder = self._ctx.recorder
            try:
                self._claimed(owner, await self._ctx.client.create(PERSISTENT_VOLUME_CLAIMS, claim_owners.made(owner, template, name)))
            except ApiStatus as refused:
                problems.append(f"failed to create PVC {name}: {refused.message}")
                if not isinstance(refused, AlreadyExists):
                    said = f"{about} for Pod {pod['metadata']['name']} in StatefulSet {owner.name} failed error: {refused.message}"
                    recorder.event(owner.tree, "Warning", "FailedCreate", said)
            else:
                recorder.event(owner.tree, "Normal", "SuccessfulCreate", f"{about} Pod {pod['metadata']['name']} in StatefulSet {owner.name} success")
        if problems:
            raise InternalError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")

    async def _correct(self, owner: SetView, pod: Tree, *, tell: bool = True) -> None:
        """Write the owners of a pod's claims where they are not as the policy wants; `tell` of a refusal as an event about the pod."""
        for name, claim in self._of(owner, pod):
            if claim_owners.has_other_controller(claim, owner, pod):
                self._ctx.recorder.event(owner.tree, "Warning", "ConflictingController", CONFLICT.format(name))
            if claim_owners.up_to_date(claim, owner, pod):
                continue
            try:
                self._claimed(owner, await self._ctx.client.update(PERSISTENT_VOLUME_CLAIMS, claim_owners.corrected(claim, owner, pod)))
            except ApiStatus as refused:
                problem = InternalError(f"could not update claim {name} for delete policy ownerRefs: {refused.message}")
                if tell:
                    self._say(owner, "Update", pod, problem)
                raise problem from refused
