"""``pods/ephemeralcontainers`` and ``pods/resize``: the two parts of a running pod's spec that have a door of their own.

Mirrors the pod strategies of ``pkg/registry/core/pod`` (1.36). Whatever else a body changes is silently dropped.
"""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.machinery.errors import FieldError
from kubemini.server.kinds.core.pod_spec_defaults import default_pod_spec
from kubemini.server.kinds.core.pod_spec_validation import validate_pod_spec
from kubemini.server.kinds.core.pod_update import resized, updated_ephemeral_containers, updated_resources
from kubemini.server.registry import Kind
from kubemini.server.strategy import WriteContext
from kubemini.server.subresources.base import ObjectSubresource


class EphemeralContainersSubresource(ObjectSubresource):
    """Adds debugging containers; those that are there stay as they are."""

    name = "ephemeralcontainers"

    def merge(self, new: Tree, old: Tree, kind: Kind, ctx: WriteContext) -> Tree:
        """Take the ephemeral containers, with their defaults."""
        added = (new.get("spec") or {}).get("ephemeralContainers")
        spec = {**old["spec"], "ephemeralContainers": added} if added else {k: v for k, v in old["spec"].items() if k != "ephemeralContainers"}
        return {**old, "metadata": _metadata(new, old), "spec": default_pod_spec(spec)}

    def validate(self, new: Tree, old: Tree, kind: Kind, ctx: WriteContext) -> list[FieldError]:
        """Check the spec, and that containers were only added."""
        return [*validate_pod_spec(new["spec"], pod_name=new["metadata"]["name"]), *updated_ephemeral_containers(new, old)]


class ResizeSubresource(ObjectSubresource):
    """Changes the resources of containers in place."""

    name = "resize"

    def merge(self, new: Tree, old: Tree, kind: Kind, ctx: WriteContext) -> Tree:
        """Take resources and resize policies, container by container."""
        spec = resized(new.get("spec") or {}, old["spec"])
        return {**old, "metadata": _metadata(new, old), "spec": old["spec"] if spec == old["spec"] else spec}

    def validate(self, new: Tree, old: Tree, kind: Kind, ctx: WriteContext) -> list[FieldError]:
        """Check the spec, and what a resize may do."""
        if new["spec"] is old["spec"]:
            return []
        return [*validate_pod_spec(new["spec"], pod_name=new["metadata"]["name"]), *updated_resources(new, old)]


def _metadata(new: Tree, old: Tree) -> Tree:
    """Return the old metadata; of the new one only the field tracking counts."""
    meta: Tree = old["metadata"]
    managed = new["metadata"].get("managedFields")
    return meta if managed is None or managed is meta.get("managedFields") else {**meta, "managedFields": managed}
