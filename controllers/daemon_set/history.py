"""The revisions of a DaemonSet's template: one ControllerRevision each, named by the template's hash."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kubemini.api.resources import CONTROLLER_REVISIONS, DAEMON_SETS, PODS
from kubemini.api.trees import Tree
from kubemini.api.wellknown import kubernetes as names
from kubemini.controllers.replica_set.claiming import Claims
from kubemini.controllers.replica_set.template_hash import template_hash
from kubemini.controllers.revisions.history import History
from kubemini.machinery.errors import AlreadyExists, NotFound
from kubemini.machinery.labels import from_label_selector
from kubemini.runtime.controller import Context
from kubemini.runtime.keys import owner_reference


class HashCollision(Exception):
    """Another template has this hash; the collision count has to go up."""


@dataclass(frozen=True, slots=True)
class Revisions:
    """The revision of the present template, and the others from the oldest to the newest."""

    current: Tree
    old: list[Tree]

    @property
    def hash(self) -> str:
        """The hash that pods of the present template carry."""
        return _hash(self.current)


def _hash(revision: Tree) -> str:
    found: str = (revision["metadata"].get("labels") or {}).get(names.CONTROLLER_REVISION_HASH, "")
    return found


class Histories:
    """Keeps the revisions of DaemonSets."""

    def __init__(self, ctx: Context) -> None:
        self._client = ctx.client
        self._history = History(ctx)
        self._claims = Claims(ctx, DAEMON_SETS, self._history.cache)

    async def of(self, daemon_set: Tree, pods: Iterable[Tree]) -> Revisions:
        """Return the revisions of a DaemonSet, after making or renumbering that of its template. `pods` are the DaemonSet's. Raise `HashCollision`."""
        claimed = await self._claims.claim(daemon_set, from_label_selector(daemon_set["spec"]["selector"]))
        named = [each if _hash(each) else await self._name(each) for each in claimed]
        ordered = sorted(named, key=lambda each: (each.get("revision", 0), each["metadata"]["name"]))
        data = {"spec": {"template": {**daemon_set["spec"]["template"], "$patch": "replace"}}}
        equal = [each for each in ordered if each.get("data") == data]
        old = [each for each in ordered if each not in equal]
        number = max((each.get("revision", 0) for each in old), default=0) + 1
        if not equal:
            return Revisions(await self._make(daemon_set, data, number), old)
        *doubles, current = equal
        if doubles:
            await self._merge(doubles, current, pods)
        if current.get("revision", 0) < number:
            current = await self._history.renumber(current, number)
        return Revisions(current, old)

    async def _name(self, revision: Tree) -> Tree:
        """Give a revision that somebody else made, without a hash, its name for one."""
        meta = revision["metadata"]
        labels = {**(meta.get("labels") or {}), names.CONTROLLER_REVISION_HASH: meta["name"]}
        return await self._client.update(CONTROLLER_REVISIONS, {**revision, "metadata": {**meta, "labels": labels}})

    async def _merge(self, doubles: list[Tree], kept: Tree, pods: Iterable[Tree]) -> None:
        """Keep one of several revisions of a template: pods of the others are its own from now on."""
        gone = {_hash(each) for each in doubles}
        label = {"metadata": {"labels": {names.CONTROLLER_REVISION_HASH: _hash(kept)}}}
        for pod in pods:
            meta = pod["metadata"]
            if (meta.get("labels") or {}).get(names.CONTROLLER_REVISION_HASH) in gone:
                try:
                    await self._client.patch(PODS, meta["name"], label, namespace=meta["namespace"])
                except NotFound:
                    continue
        await self._history.delete(doubles)

    async def _make(self, daemon_set: Tree, data: Tree, number: int) -> Tree:
        meta, template = daemon_set["metadata"], daemon_set["spec"]["template"]
        hashed = template_hash(template, (daemon_set.get("status") or {}).get("collisionCount"))
        about: Tree = {
            "name": f"{meta['name']}-{hashed}",
            "namespace": meta["namespace"],
            "labels": {**((template.get("metadata") or {}).get("labels") or {}), names.CONTROLLER_REVISION_HASH: hashed},
            "ownerReferences": [owner_reference({**daemon_set, "apiVersion": "apps/v1", "kind": "DaemonSet"})],
        }
        if meta.get("annotations"):
            about["annotations"] = meta["annotations"]
        wanted = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": about, "data": data, "revision": number}
        try:
            return await self._client.create(CONTROLLER_REVISIONS, wanted)
        except AlreadyExists:
            existing = await self._client.get(CONTROLLER_REVISIONS, about["name"], meta["namespace"])
            if existing.get("data") == data:
                return existing
            raise HashCollision from None

    async def trim(self, daemon_set: Tree, found: Revisions, live: set[str]) -> None:
        """Delete old revisions above the history limit that no pod is of, the oldest first; `live` are the hashes of pods."""
        limit: int = daemon_set["spec"].get("revisionHistoryLimit", 10)
        excess = len(found.old) - limit
        gone = [each for each in found.old if _hash(each) not in live]
        if excess > 0:
            await self._history.delete(gone[:excess])
