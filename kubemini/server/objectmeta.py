"""The metadata rules of the write path: what the server fills, restores and counts.

Mirrors apiserver's ``registry/rest`` BeforeCreate/BeforeUpdate/BeforeDelete. Pure functions over trees.
"""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.machinery.errors import BadRequest, Conflict, Invalid, ServerError, invalid, required
from kubemini.machinery.gotext import is_decimal
from kubemini.runtime.env import Env, from_stamp, to_stamp
from kubemini.server.registry import Kind

_SERVER_SET = frozenset(
    ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion", "generation", "uid", "creationTimestamp", "namespace")
)
"""What writers cannot say."""
_FIRST: Tree = {"apiVersion": None, "kind": None, "metadata": None}
"""What stands first in every stored tree, in this order: lists cut apiVersion and kind off the encoded bytes."""


def key_of(kind: Kind, namespace: str, name: str) -> str:
    """Return the store key of an object."""
    return f"{namespace}/{name}" if kind.namespaced else name


def check_type(kind: Kind, version: str, obj: Tree) -> None:
    """Raise `BadRequest` where the body names another apiVersion or kind than the URL."""
    expected = kind.api_version(version)
    api_version = obj.get("apiVersion")
    if api_version and api_version != expected:
        raise BadRequest(f"the API version in the data ({api_version}) does not match the expected API version ({expected})")
    found = obj.get("kind")
    if found and found != kind.kind:
        raise BadRequest(
            f'{found} in version "{version}" cannot be handled as a {kind.kind}: converting ({found}) to ({kind.kind}): unknown conversion'
        )


def namespace_of_new(kind: Kind, meta: Tree, namespace: str) -> None:
    """Raise `BadRequest` where a new object names another namespace than the URL."""
    named = meta.get("namespace")
    if kind.namespaced and named and named != namespace:
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")


def for_create(kind: Kind, obj: Tree, namespace: str, name: str, env: Env) -> Tree:
    """Return the object with the metadata that the server sets on create."""
    meta = obj.get("metadata") or {}
    if meta.get("resourceVersion"):
        raise ServerError("resourceVersion should not be set on objects to be created")
    fresh: Tree = {"name": name}
    if kind.namespaced:
        fresh["namespace"] = namespace
    fresh["uid"] = env.uid()
    fresh["creationTimestamp"] = env.stamp()
    if kind.strategy.has_generation:
        fresh["generation"] = 1
    for key, value in meta.items():
        if key not in fresh and key not in _SERVER_SET and value is not None:
            fresh[key] = value
    return {**_FIRST, **obj, "kind": kind.kind, "metadata": fresh}


def generated_name(prefix: str, env: Env) -> str:
    """Return a name of a generateName: the prefix cut to 58 characters and five random ones."""
    return prefix[:58] + env.suffix()


def for_update(kind: Kind, new: Tree, old: Tree, url_name: str, namespace: str) -> Tree:
    """Return the object with the metadata that an update cannot change put back. Raise `BadRequest`, `Conflict`, `Invalid`."""
    meta = new.get("metadata") or {}
    name = meta.get("name")
    if not name:
        raise BadRequest("the name of the object (based on URL) was undeterminable: name must be provided")
    if name != url_name:
        raise BadRequest(f"the name of the object ({name}) does not match the name on the URL ({url_name})")
    named = meta.get("namespace")
    if kind.namespaced and named and named != namespace:
        raise BadRequest(f"the namespace of the object ({named}) does not match the namespace on the request ({namespace})")
    before = old["metadata"]
    uid = meta.get("uid")
    if uid and uid != before["uid"]:
        raise Conflict.of(kind.plural, kind.group, name, f"Precondition failed: UID in precondition: {uid}, UID in object meta: {before['uid']}")
    if meta is before:
        return {**_FIRST, **new, "apiVersion": old["apiVersion"], "kind": kind.kind}
    kept: Tree = {"name": name}
    if kind.namespaced:
        kept["namespace"] = before["namespace"]
    for key in ("uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds"):
        if key in before:
            kept[key] = before[key]
    for key, value in meta.items():
        if key not in kept and key not in _SERVER_SET and value is not None:
            kept[key] = value
    if kept.get("managedFields") is None and "managedFields" in before:
        kept["managedFields"] = before["managedFields"]
    return {**_FIRST, **new, "apiVersion": old["apiVersion"], "kind": kind.kind, "metadata": kept}


def check_revision(kind: Kind, meta: Tree, old_revision: int, name: str, *, unconditional: bool) -> None:
    """Raise `Conflict` for a stale resourceVersion, `Invalid` where one is required or is no number."""
    given = meta.get("resourceVersion")
    if not given:
        if not unconditional:
            raise Invalid.of(kind.kind, kind.group, name, [invalid("metadata.resourceVersion", _ZERO, "must be specified for an update")])
        return
    if not is_decimal(str(given)):
        raise Invalid.of(kind.kind, kind.group, name, [invalid("metadata.resourceVersion", given, "must be a valid resource version")])
    if int(given) != old_revision:
        raise Conflict.modified(kind.plural, kind.group, name)


class _Hex(int):
    """Prints as 0x0, the way unsigned zero prints in upstream's field errors."""

    def __str__(self) -> str:
        return hex(self)


_ZERO = _Hex(0)


def next_generation(kind: Kind, new: Tree, old: Tree) -> Tree:
    """Return the object with its generation counted up where its spec changed."""
    strategy = kind.strategy
    if strategy.has_generation and strategy.spec_changed(new, old):
        meta = new["metadata"]
        return {**new, "metadata": {**meta, "generation": meta.get("generation", 0) + 1}}
    return new


def name_required(kind: Kind) -> Invalid:
    """Return the refusal of an object with neither name nor generateName."""
    return Invalid.of(kind.kind, kind.group, "", [required("metadata.name", "name or generateName is required")])


def propagated(meta: Tree, propagation: str, orphan: bool | None) -> list[str]:
    """Return the finalizers after a deletion's propagation policy was written into them."""
    finalizers: list[str] = list(meta.get("finalizers") or ())
    if orphan is not None:
        propagation = "Orphan" if orphan else "Background"
    wanted = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}.get(propagation)
    if propagation:
        finalizers = [each for each in finalizers if each == wanted or each not in ("foregroundDeletion", "orphan")]
        if wanted and wanted not in finalizers:
            finalizers.append(wanted)
    return finalizers


def with_finalizers(meta: Tree, finalizers: list[str]) -> Tree:
    """Return metadata with these finalizers (without the key when there are none)."""
    if finalizers == (meta.get("finalizers") or []):
        return meta
    rest = {key: value for key, value in meta.items() if key != "finalizers"}
    return {**rest, "finalizers": finalizers} if finalizers else rest


def marked(meta: Tree, *, now: float, grace: int) -> Tree:
    """Return metadata with a first deletion mark: deletionTimestamp, grace, generation."""
    fresh = {**meta, "deletionTimestamp": to_stamp(now + grace), "deletionGracePeriodSeconds": grace}
    if meta.get("generation", 0) > 0:
        fresh["generation"] = meta["generation"] + 1
    return fresh


def shortened(meta: Tree, *, now: float, grace: int) -> Tree:
    """Return metadata of an object under graceful deletion with a shorter grace; the same object when it is no shorter."""
    existing = meta.get("deletionGracePeriodSeconds") or 0
    if grace >= existing:
        return meta
    began = from_stamp(meta["deletionTimestamp"]) - existing
    until = began + grace
    if until < now:
        until, grace = now, max(1, min(grace, 1)) if grace else 0
    return {**meta, "deletionTimestamp": to_stamp(until), "deletionGracePeriodSeconds": grace}
