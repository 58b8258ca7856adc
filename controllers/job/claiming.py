"""Which pods belong to a Job: adoption of matching pods without a controller, release of owned pods whose labels no longer match."""

from __future__ import annotations

from collections.abc import Sequence

from kubemini.api.resources import JOBS, PODS
from kubemini.api.trees import Tree
from kubemini.controllers.job.counting import Looks
from kubemini.controllers.job.pods import FINALIZER
from kubemini.controllers.job.view import JobView, as_owner
from kubemini.machinery.errors import ApiStatus, NotFound
from kubemini.machinery.labels import from_label_selector
from kubemini.machinery.memo import by_identity
from kubemini.runtime.controller import Context
from kubemini.runtime.informer import Informer
from kubemini.runtime.keys import controller_of, key_of

_selector = by_identity()(from_label_selector)


def _loose(pod: Tree) -> tuple[str, ...]:
    return () if controller_of(pod) is not None else (pod["metadata"]["namespace"],)


class Claims:
    """Keeps pods and Jobs matched by selector."""

    def __init__(self, ctx: Context, pods: Informer) -> None:
        self._ctx = ctx
        self._pods = pods
        pods.add_index("loose", _loose, reads=("ownerReferences",))

    def claimants(self, pod: Tree, jobs: Informer) -> list[str]:
        """Return the keys of Jobs that would adopt a pod without a controller: their selector matches, and they are ours and at work."""
        labels = pod["metadata"].get("labels")
        if not labels:
            return []
        found = []
        for job in jobs.list(pod["metadata"]["namespace"]):
            selector = job["spec"].get("selector")
            if "deletionTimestamp" not in job["metadata"] and selector and _selector(selector).matches(labels):
                view = JobView(job)
                if not view.finished and not view.foreign:
                    found.append(key_of(job))
        return found

    async def claim(self, job: JobView, owned: Sequence[Tree], looks: Looks) -> Sequence[Tree]:
        """Return the pods of a Job, after adopting and releasing. Only those that are new to `looks` are held against the selector, unless some were not selected."""
        selector_tree = job.spec.get("selector")
        if not selector_tree:
            return owned
        matches = _selector(selector_tree).matches
        looks.take(owned)
        kept = owned
        if looks.strays or len(_selector(selector_tree).taken(looks.fresh)) < len(looks.fresh):
            kept = _selector(selector_tree).taken(owned)
            looks.strays = len(kept) < len(owned)
            for pod in owned if looks.strays else ():
                if not matches(pod["metadata"].get("labels") or {}):
                    await self._let_go(job, pod)
        loose = self._pods.by_index("loose", job.namespace)
        adoptable = [pod for pod in loose if "deletionTimestamp" not in pod["metadata"] and matches(pod["metadata"].get("labels") or {})]
        if adoptable and not job.deleting and await self._fresh(job):
            adopted = [await self._adopt(job, pod) for pod in adoptable]
            kept = [*kept, *(pod for pod in adopted if pod is not None)]
        return kept

    async def _fresh(self, job: JobView) -> bool:
        """Ask the API itself whether the Job lives: a cache must not decide an adoption."""
        try:
            live = await self._ctx.client.get(JOBS, job.name, job.namespace)
        except NotFound:
            return False
        return bool(live["metadata"]["uid"] == job.uid and "deletionTimestamp" not in live["metadata"])

    async def _adopt(self, job: JobView, pod: Tree) -> Tree | None:
        meta = pod["metadata"]
        reference = as_owner(job.tree)
        # One that has ended too: it is counted like those that the Job made
        patch = {"metadata": {"uid": meta["uid"], "ownerReferences": [reference], "finalizers": [FINALIZER]}}
        try:
            return await self._ctx.client.patch(PODS, meta["name"], patch, namespace=meta["namespace"], type="strategic")
        except ApiStatus:
            return None

    async def _let_go(self, job: JobView, pod: Tree) -> None:
        meta = pod["metadata"]
        patch = {
            "metadata": {
                "uid": meta["uid"],
                "ownerReferences": [{"$patch": "delete", "uid": job.uid}],
                "$deleteFromPrimitiveList/finalizers": [FINALIZER],
            }
        }
        try:
            await self._ctx.client.patch(PODS, meta["name"], patch, namespace=meta["namespace"], type="strategic")
        except ApiStatus:
            return
