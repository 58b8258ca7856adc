"""Keys of objects, as queues and caches use them."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.machinery.owners import controller_of

__all__ = ["controller_of", "controller_uid", "key_of", "owner_reference", "owner_uids", "split_key"]


def key_of(obj: Tree) -> str:
    """Return ``namespace/name``, or the bare name of a cluster-scoped object.

    >>> key_of({"metadata": {"namespace": "default", "name": "a"}})
    'default/a'
    """
    meta = obj["metadata"]
    namespace = meta.get("namespace")
    name: str = meta["name"]
    return f"{namespace}/{name}" if namespace else name


def split_key(key: str) -> tuple[str, str]:
    """Return (namespace, name); the namespace is "" for a cluster-scoped object.

    >>> split_key("default/a"), split_key("node-1")
    (('default', 'a'), ('', 'node-1'))
    """
    namespace, slash, name = key.partition("/")
    return (namespace, name) if slash else ("", key)


def controller_uid(obj: Tree) -> tuple[str, ...]:
    """Return the uid of the controlling owner as index values: one or none."""
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            return (reference["uid"],)
    return ()


def owner_uids(obj: Tree) -> tuple[str, ...]:
    """Return the uids of all owners as index values."""
    return tuple(reference["uid"] for reference in obj["metadata"].get("ownerReferences") or ())


def owner_reference(owner: Tree, *, block: bool = True, controller: bool = True) -> Tree:
    """Return the owner reference that a controller writes into what it creates for `owner`."""
    meta = owner["metadata"]
    reference: Tree = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"]}
    if controller:
        reference["controller"] = True
    if block:
        reference["blockOwnerDeletion"] = True
    return reference
