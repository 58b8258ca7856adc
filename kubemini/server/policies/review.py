"""A write as webhooks and policies see it: the ``request`` of an AdmissionReview. Mirrors ``admission.k8s.io/v1`` (1.36)."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.server.admission import AdmissionRequest
from kubemini.server.registry import Served

_OPTIONS = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}


def request_attributes(request: AdmissionRequest, served: Served, uid: str) -> Tree:
    """Return who wants to do what with which kind, in the version that the webhook wants to hear of; without the objects."""
    kind = served.kind
    named = _kind_of(request, served)
    resource = {"group": kind.group, "version": served.version.name, "resource": kind.plural}
    options = request.options or {"kind": _OPTIONS.get(request.operation, ""), "apiVersion": "meta.k8s.io/v1"}
    tree: Tree = {"uid": uid, "kind": named, "resource": resource}
    if request.subresource:
        tree["subResource"] = request.subresource
    tree |= {"requestKind": named, "requestResource": resource}
    if request.subresource:
        tree["requestSubResource"] = request.subresource
    obj = request.obj if request.obj is not None else request.old
    # An object that gets its name only now is spoken of without one
    name = request.name if request.operation != "CREATE" else ((obj or {}).get("metadata") or {}).get("name", "")
    if name:
        tree["name"] = name
    if request.namespace:
        tree["namespace"] = request.namespace
    return {**tree, "operation": request.operation, "userInfo": request.ctx.user_info(), "dryRun": request.ctx.dry_run, "options": options}


def _kind_of(request: AdmissionRequest, served: Served) -> Tree:
    """Return the kind of what is written: that of the subresource where it has one of its own."""
    kind = served.kind
    sub = kind.subresource(request.subresource) if request.subresource else None
    # A Scale goes through admission as the object that it is of
    if sub is None or sub.name == "scale" or not sub.kind:
        return {"group": kind.group, "version": served.version.name, "kind": kind.kind}
    return {"group": sub.group if sub.version else kind.group, "version": sub.version or served.version.name, "kind": sub.kind}


def shown(obj: Tree | None, served: Served) -> Tree | None:
    """Return an object of the storage version as a webhook gets it."""
    return None if obj is None else served.from_storage(obj)
