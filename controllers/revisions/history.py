"""The history of one owner: order, equality, names, the objects themselves, and which of them may go."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from kubemini.api.resources import CONTROLLER_REVISIONS
from kubemini.api.trees import Tree
from kubemini.controllers.revisions.hashing import revision_hash
from kubemini.machinery.errors import AlreadyExists, ApiStatus, NotFound
from kubemini.machinery.labels import Selector
from kubemini.runtime.controller import Context
from kubemini.runtime.env import from_stamp
from kubemini.runtime.keys import controller_uid, owner_reference

HASH_LABEL = "controller.kubernetes.io/hash"
"""Label: hash of the data at creation."""
OWNER_LENGTH = 223
"""How many characters of the owner's name go into that of a revision."""


def revision_name(owner: str, hashed: str) -> str:
    """Return the name of a revision.

    >>> revision_name("web", "794b958b55")
    'web-794b958b55'
    """
    return f"{owner[:OWNER_LENGTH]}-{hashed}"


def in_order(revisions: Iterable[Tree]) -> list[Tree]:
    """Return revisions from the oldest to the newest: by number, then creation, then name."""
    return sorted(revisions, key=lambda each: (each.get("revision", 0), from_stamp(each["metadata"]["creationTimestamp"]), each["metadata"]["name"]))


def next_number(ordered: Sequence[Tree]) -> int:
    """Return the number after the newest."""
    return (ordered[-1].get("revision", 0) if ordered else 0) + 1


def same(one: Tree, other: Tree) -> bool:
    """Tell whether two revisions hold the same, byte for byte; hash labels that read as numbers tell them apart at once."""
    left, right = _numeric_hash(one), _numeric_hash(other)
    if left is not None and right is not None and left != right:
        return False
    return bool(one.get("data") == other.get("data"))


def alike(one: Tree, other: Tree) -> bool:
    """Tell whether two revisions mean the same, where one was written by a version that spelled out what is null."""
    return bool(_meaning(one.get("data")) == _meaning(other.get("data")))


def _numeric_hash(revision: Tree) -> int | None:
    text = (revision["metadata"].get("labels") or {}).get(HASH_LABEL, "")
    return int(text) if text.isdecimal() and text.isascii() else None


def _meaning(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _meaning(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_meaning(each) for each in value]
    return value


def proposed(owner: Tree, data: Tree, *, labels: Tree, number: int, collisions: int) -> Tree:
    """Return the revision that holds `data` for an owner, as it would be made; `labels` are those of the pod template."""
    meta = owner["metadata"]
    hashed = revision_hash(data, collisions)
    found: Tree = {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": revision_name(meta["name"], hashed),
            "namespace": meta["namespace"],
            "labels": {**labels, HASH_LABEL: hashed},
            "ownerReferences": [owner_reference(owner)],
        },
        "data": data,
        "revision": number,
    }
    if meta.get("annotations"):
        found["metadata"]["annotations"] = meta["annotations"]
    return found


def historic(ordered: Sequence[Tree], live: Collection[str], limit: int) -> list[Tree]:
    """Return the revisions to delete: of those that nothing names, all but the newest `limit`; none where the limit is negative."""
    dead = [each for each in ordered if each["metadata"]["name"] not in live]
    return dead[: max(0, len(dead) - limit)] if limit >= 0 else []


def _orphaned(revision: Tree) -> tuple[str, ...]:
    """Return the namespace of a revision that nobody controls, as index values."""
    return () if controller_uid(revision) else (revision["metadata"]["namespace"],)


class History:
    """The revisions of a controller's owners: reads from the cache, writes to the API."""

    def __init__(self, ctx: Context) -> None:
        self._client = ctx.client
        self.cache = ctx.informer(CONTROLLER_REVISIONS)
        self.cache.add_index("controller", controller_uid, reads=("ownerReferences",))
        self.cache.add_index("orphan", _orphaned, reads=("ownerReferences",))

    def of(self, owner: Tree, selector: Selector) -> list[Tree]:
        """Return the revisions that an owner's selector takes and nobody else controls, in order."""
        meta, cache = owner["metadata"], self.cache
        candidates = [*cache.by_index("controller", meta["uid"]), *cache.by_index("orphan", meta["namespace"])]
        return in_order(each for each in candidates if selector.matches(each["metadata"].get("labels")))

    async def create(self, revision: Tree, collisions: int) -> tuple[Tree, int]:
        """Create a revision, going on to another name while its own is taken by other data. Return it with the collision count that it took."""
        owner = revision["metadata"]["ownerReferences"][0]["name"]
        while True:
            name = revision_name(owner, revision_hash(revision["data"], collisions))
            named = {**revision, "metadata": {**revision["metadata"], "name": name}}
            try:
                return await self._client.create(CONTROLLER_REVISIONS, named), collisions
            except AlreadyExists:
                try:
                    existing = await self._client.get(CONTROLLER_REVISIONS, name, revision["metadata"]["namespace"])
                except NotFound:
                    continue
                if existing.get("data") == revision["data"]:
                    return existing, collisions
                collisions += 1

    async def renumber(self, revision: Tree, number: int) -> Tree:
        """Raise a revision's number: it is the newest again."""
        if revision.get("revision") == number:
            return revision
        return await self._client.update(CONTROLLER_REVISIONS, {**revision, "revision": number})

    async def adopt(self, owner: Tree, revision: Tree) -> Tree:
        """Make an owner the controller of a revision that has none."""
        meta = revision["metadata"]
        patch = {"metadata": {"uid": meta["uid"], "ownerReferences": [owner_reference(owner)]}}
        return await self._client.patch(CONTROLLER_REVISIONS, meta["name"], patch, namespace=meta["namespace"], type="strategic")

    async def delete(self, revisions: Sequence[Tree]) -> None:
        """Delete revisions; those that are gone already do not matter."""
        for each in revisions:
            meta = each["metadata"]
            try:
                await self._client.delete(CONTROLLER_REVISIONS, meta["name"], namespace=meta["namespace"], uid=meta["uid"])
            except NotFound:
                continue
            except ApiStatus as refused:
                if refused.code != 409:
                    raise
