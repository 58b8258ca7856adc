"""``namespaces/finalize``: how a finalizer of the namespace's spec is taken away. Mirrors ``pkg/registry/core/namespace`` (1.36)."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.machinery.errors import FieldError
from kubemini.machinery.metadata import validate_finalizers
from kubemini.server.registry import Kind
from kubemini.server.strategy import WriteContext
from kubemini.server.subresources.base import ObjectSubresource


class FinalizeSubresource(ObjectSubresource):
    """Writes ``spec.finalizers``; a terminating namespace without any is removed by the write that takes the last one."""

    name = "finalize"

    def merge(self, new: Tree, old: Tree, kind: Kind, ctx: WriteContext) -> Tree:
        """Take metadata and spec; the status stays."""
        merged = {**old, "metadata": new["metadata"]}
        if "spec" in new:
            merged["spec"] = new["spec"]
        else:
            merged.pop("spec", None)
        return merged

    def validate(self, new: Tree, old: Tree, kind: Kind, ctx: WriteContext) -> list[FieldError]:
        """Check the names of the finalizers."""
        return validate_finalizers((new.get("spec") or {}).get("finalizers") or [], "spec.finalizers")
