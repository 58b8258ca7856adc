"""Making and deleting pods for an owner: expectations before the writes, events after them, and a slow start where creation may be refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kubemini.api.resources import PODS
from kubemini.api.trees import Tree
from kubemini.controllers.pod_templates import pod_spec
from kubemini.machinery.errors import ApiStatus, Conflict, NotFound
from kubemini.runtime.controller import Context
from kubemini.runtime.expectations import Expectations
from kubemini.runtime.keys import owner_reference


class PodTemplate:
    """Makes pods of one template; everything is shared between them."""

    __slots__ = ("_meta", "_spec")

    def __init__(self, owner: Tree, template: Tree, *, labels: Tree | None = None) -> None:
        meta, about = owner["metadata"], template.get("metadata") or {}
        self._meta: Tree = {"generateName": f"{meta['name']}-", "namespace": meta["namespace"]}
        labels = {**(about.get("labels") or {}), **(labels or {})}
        for name, value in (("labels", labels), ("annotations", about.get("annotations")), ("finalizers", about.get("finalizers"))):
            if value:
                self._meta[name] = value
        self._meta["ownerReferences"] = [owner_reference(owner)]
        self._spec = pod_spec(template["spec"])

    def make(self, **spec: object) -> Tree:
        """Return a new pod; `spec` replaces fields of its spec."""
        return {"apiVersion": "v1", "kind": "Pod", "metadata": self._meta, "spec": {**self._spec, **spec} if spec else self._spec}


class PodWriter:
    """Writes the pods of owners, known by uid."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self.expectations: Expectations[str] = Expectations(ctx.env)

    async def create(self, owner: Tree, pods: Sequence[Callable[[], Tree]]) -> ApiStatus | None:
        """Create pods in batches of 1, 2, 4, …; after a batch with a refusal no further one is tried. Return the refusal, None when all went well.

        Refusals in a namespace that is being deleted are nobody's news.
        """
        uid, recorder = owner["metadata"]["uid"], self._ctx.recorder
        self.expectations.expect(uid, creations=len(pods))
        refusal: ApiStatus | None = None
        done, batch = 0, 1
        while done < len(pods):
            for make in pods[done : done + batch]:
                try:
                    pod = await self._ctx.client.create(PODS, make(), canonical=True)
                except ApiStatus as refused:
                    self.expectations.creation_observed(uid)
                    if not refused.has_cause("NamespaceTerminating"):
                        refusal = refused
                        recorder.event(owner, "Warning", "FailedCreate", f"Error creating: {refused.message}")
                else:
                    recorder.event(owner, "Normal", "SuccessfulCreate", f"Created pod: {pod['metadata']['name']}")
            done = min(done + batch, len(pods))
            if refusal is not None:
                break
            batch *= 2
        for _ in range(len(pods) - done):
            self.expectations.creation_observed(uid)
        return refusal

    async def delete(self, owner: Tree, pods: Sequence[Tree]) -> ApiStatus | None:
        """Delete pods. Return the first refusal, None when all went well or were gone."""
        uid, recorder = owner["metadata"]["uid"], self._ctx.recorder
        self.expectations.expect_more(uid, deletions=[pod["metadata"]["uid"] for pod in pods])
        refusal: ApiStatus | None = None
        for pod in pods:
            meta = pod["metadata"]
            try:
                await self._ctx.client.delete(PODS, meta["name"], namespace=meta["namespace"], uid=meta["uid"])
            except ApiStatus as refused:
                self.expectations.deletion_observed(uid, meta["uid"])
                if isinstance(refused, NotFound | Conflict):
                    continue
                refusal = refusal or refused
                recorder.event(owner, "Warning", "FailedDelete", f"Error deleting: {refused.message}")
            else:
                recorder.event(owner, "Normal", "SuccessfulDelete", f"Deleted pod: {meta['name']}")
        return refusal

    def observe(self, uid: str, old: Tree | None, new: Tree | None) -> None:
        """Tick off what a change of a pod of this owner shows."""
        if old is None:
            self.expectations.creation_observed(uid)
        if new is None:
            if old is not None:
                self.expectations.deletion_observed(uid, old["metadata"]["uid"])
        elif "deletionTimestamp" in new["metadata"] and (old is None or "deletionTimestamp" not in old["metadata"]):
            self.expectations.deletion_observed(uid, new["metadata"]["uid"])
