"""What a revision of a LeaderWorkerSet records, and how it is named.

It records the template of the groups and the network, so that a change of anything in them is a new revision: the pods' templates, but also size, restart policy, subgroups
and claims. Its key is the hash of that, and stands as a label on everything made from it. Mirrors ``pkg/utils/revision``.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubemini.api.trees import Tree
from kubemini.api.wellknown import lws as names
from kubemini.controllers.lws.view import LwsView
from kubemini.controllers.revisions.hashing import revision_hash
from kubemini.machinery.memo import IdentityMemo, by_identity
from kubemini.machinery.schema.roundtrip import go_form
from kubemini.runtime.keys import owner_reference

OWNER_LENGTH = 220
SHARED: Tree = {"subdomainPolicy": "Shared"}


def key_of(obj: Tree) -> str:
    """Return the revision key that an object carries, "" without one."""
    found: str = (obj["metadata"].get("labels") or {}).get(names.REVISION, "")
    return found


@by_identity()
def recorded(spec: Tree) -> Tree:
    """Return the data of the revision of a spec."""
    template = _go_template(spec["leaderWorkerTemplate"])
    network = spec.get("networkConfig") or SHARED
    return {"spec": {"leaderWorkerTemplate": {**template, "$patch": "replace"}, "networkConfig": {**network, "$patch": "replace"}}}


def _go_template(template: Tree) -> Tree:
    pod, claim = go_form("core/v1.PodTemplateSpec"), go_form("core/v1.PersistentVolumeClaim")
    found = {key: value for key, value in template.items() if value is not None and value != []}
    for key in ("leaderTemplate", "workerTemplate"):
        if key in found:
            found[key] = pod(found[key])
    if "volumeClaimTemplates" in found:
        found["volumeClaimTemplates"] = [claim(each) for each in found["volumeClaimTemplates"]]
    return found


@by_identity()
def restored(data: Tree) -> Tree:
    """Return the part of a spec that a revision's data holds: ``leaderWorkerTemplate`` and ``networkConfig``."""
    spec = data["spec"]
    return {
        part: {key: value for key, value in (spec.get(part) or {}).items() if key != "$patch"} for part in ("leaderWorkerTemplate", "networkConfig")
    }


_hashes: IdentityMemo[str] = IdentityMemo(2048)


def hash_of(spec: Tree) -> str:
    """Return the key of a spec."""
    data = recorded(spec)
    found = _hashes.get(data)
    return found if found is not None else _hashes.put(data, revision_hash(data))


def records(revision: Tree, spec: Tree) -> bool:
    """Tell whether a revision records a spec, be it in the spelling of another version."""
    wanted = recorded(spec)
    return bool(revision["data"] == wanted or recorded(restored(revision["data"])) == wanted)


def highest(revisions: Iterable[Tree]) -> Tree | None:
    """Return the revision with the highest number."""
    return max(revisions, key=lambda each: (each.get("revision", 0), each["metadata"]["name"]), default=None)


def of_key(revisions: Iterable[Tree], key: str) -> Tree | None:
    """Return the newest revision with a key; None also for no key."""
    return highest(each for each in revisions if key_of(each) == key) if key else None


def new(owner: LwsView, number: int, key: str = "") -> Tree:
    """Return a new revision of the live spec. `key` is the one that it shall carry where that is not its hash: a revision that was lost."""
    hashed = hash_of(owner.spec)
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": f"{owner.name[:OWNER_LENGTH]}-{hashed}-{number}",
            "namespace": owner.namespace,
            "labels": {names.NAME: owner.name, names.REVISION: key or hashed},
            "ownerReferences": [owner_reference(owner.tree)],
        },
        "data": recorded(owner.spec),
        "revision": number,
    }
