"""``/scale``: any scalable kind in the one form of autoscaling/v1 Scale."""

from __future__ import annotations

from typing import Any

from kubemini.api.trees import Tree, get_in, set_in
from kubemini.machinery.errors import BadRequest, Invalid, invalid
from kubemini.machinery.labels import from_label_selector, from_labels
from kubemini.server.registry import Kind
from kubemini.server.strategy import Scale, WriteContext
from kubemini.server.subresources.base import ObjectSubresource

SCALE_API_VERSION = "autoscaling/v1"


class ScaleSubresource(ObjectSubresource):
    """Shows and writes ``spec.replicas`` of a parent through the paths that its kind declares."""

    name = "scale"

    def __init__(self, paths: Scale) -> None:
        self.paths = paths

    def shown(self, kind: Kind, parent: Tree) -> Tree:
        """Return the Scale of a parent object."""
        meta = parent["metadata"]
        status: Tree = {"replicas": get_in(parent, *self.paths.status_replicas.split("."), default=0) or 0}
        if self.paths.selector:
            selector = get_in(parent, *self.paths.selector.split("."))
            text = _selector_text(selector)
            if text:
                status["selector"] = text
        replicas = get_in(parent, *self.paths.spec_replicas.split("."), default=0) or 0
        kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        return {
            "kind": "Scale",
            "apiVersion": SCALE_API_VERSION,
            "metadata": {key: meta[key] for key in kept if key in meta},
            "spec": {"replicas": replicas} if replicas else {},
            "status": status,
        }

    def written(self, parent: Tree, scale: Tree, kind: Kind) -> Tree:
        """Return the parent as a written Scale wants it. Raise `BadRequest`, `Invalid`."""
        meta = scale.get("metadata") or {}
        name = parent["metadata"]["name"]
        if meta.get("name") not in (None, "", name):
            raise BadRequest(f"the name of the object ({meta['name']}) does not match the name on the URL ({name})")
        replicas = get_in(scale, "spec", "replicas", default=0) or 0
        if not isinstance(replicas, int) or isinstance(replicas, bool):
            raise BadRequest(
                f'Scale in version "v1" cannot be handled as a Scale: json: cannot unmarshal {_go_type(replicas)} into Go struct field ScaleSpec.spec.replicas of type int32'
            )
        if replicas < 0:
            raise Invalid.of("Scale", "autoscaling", name, [invalid("spec.replicas", replicas, "must be greater than or equal to 0")])
        new = set_in(parent, tuple(self.paths.spec_replicas.split(".")), replicas)
        pinned = {key: meta[key] for key in ("resourceVersion", "uid") if meta.get(key)}
        fresh = {key: value for key, value in parent["metadata"].items() if key != "resourceVersion"}
        return {**new, "metadata": {**fresh, **pinned}}

    def as_object(self) -> ObjectSubresource:
        """Return the subresource under which the parent is written."""
        return _SCALED

    def merge(self, new: Tree, old: Tree, kind: Kind, ctx: WriteContext) -> Tree:
        """Never reached: a Scale is written through its parent."""
        raise NotImplementedError


class _ScaledParent(ObjectSubresource):
    """The parent of a written Scale: its spec is validated as an ordinary update's."""

    name = "scale"

    def merge(self, new: Tree, old: Tree, kind: Kind, ctx: WriteContext) -> Tree:
        return new

    def prepare(self, new: Tree, old: Tree, kind: Kind, ctx: WriteContext) -> Tree:
        return kind.strategy.prepare_for_update(new, old, ctx)

    def validate(self, new: Tree, old: Tree, kind: Kind, ctx: WriteContext) -> list:  # type: ignore[type-arg]
        return kind.strategy.validate_update(new, old, ctx)


_SCALED = _ScaledParent()


def _selector_text(selector: Any) -> str:
    """Return a selector as text: a string is one already; otherwise it is a LabelSelector, or the plain labels of a ReplicationController."""
    if not selector or isinstance(selector, str):
        return selector or ""
    plain = all(isinstance(value, str) for value in selector.values())
    return str(from_labels(selector) if plain else from_label_selector(selector))


def _go_type(value: object) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, float):
        return f"number {value}"
    return "array" if isinstance(value, list) else "object"
