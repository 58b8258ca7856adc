"""The rules of Namespaces: their finalizer, their phase, their name as a label."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.machinery import names
from kubemini.machinery.errors import Conflict, FieldError, invalid
from kubemini.server.kinds.core.formats import wrong
from kubemini.server.kinds.tables import NAMESPACE
from kubemini.server.strategy import Strategy, WriteContext

NAME_LABEL = "kubernetes.io/metadata.name"
FINALIZER = "kubernetes"
_BEING_EMPTIED = (
    "The system is ensuring all content is removed from this namespace.  Upon completion, this namespace will automatically be purged by the system."
)


def _phase(namespace: Tree) -> str:
    return str((namespace.get("status") or {}).get("phase") or "")


NAMESPACE_FIELDS = {"status.phase": _phase}


class NamespaceStrategy(Strategy):
    """Namespaces. They outlive their deletion until ``spec.finalizers`` is empty."""

    has_status = True
    table = NAMESPACE
    fields = NAMESPACE_FIELDS

    def validate_name(self, name: str, *, prefix: bool = False) -> str | None:
        """Names are DNS-1123 labels."""
        return names.dns1123_label(name, prefix=prefix)

    def default(self, obj: Tree, ctx: WriteContext) -> Tree:
        """Write the name as a label, whatever the client says."""
        metadata = obj["metadata"]
        name, labels = metadata.get("name", ""), metadata.get("labels") or {}
        if not name or labels.get(NAME_LABEL) == name:
            return obj
        return {**obj, "metadata": {**metadata, "labels": {**labels, NAME_LABEL: name}}}

    def initial_status(self, obj: Tree) -> Tree:
        """New namespaces are active."""
        return {"phase": "Active"}

    def prepare_for_create(self, obj: Tree, ctx: WriteContext) -> Tree:
        """Add the finalizer."""
        spec = obj.get("spec") or {}
        finalizers = spec.get("finalizers") or []
        return obj if FINALIZER in finalizers else {**obj, "spec": {**spec, "finalizers": [*finalizers, FINALIZER]}}

    def prepare_for_update(self, new: Tree, old: Tree, ctx: WriteContext) -> Tree:
        """Finalizers change through ``/finalize`` only."""
        finalizers = (old.get("spec") or {}).get("finalizers")
        spec = {key: value for key, value in (new.get("spec") or {}).items() if key != "finalizers"}
        return {**new, "spec": {**spec, "finalizers": finalizers} if finalizers else spec}

    def validate_create(self, obj: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check the finalizers."""
        return finalizer_names(obj)

    def validate_update(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """Metadata is all that can change."""
        return []

    def validate_status(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """The phase says whether the namespace is being deleted."""
        phase = _phase(new)
        if "deletionTimestamp" not in new["metadata"]:
            return [] if phase == "Active" else [invalid("status.Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty")]
        return [] if phase == "Terminating" else [invalid("status.Phase", phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")]

    def check_delete(self, obj: Tree, ctx: WriteContext) -> None:
        """Refuse a second deletion while content remains. Raise `Conflict`."""
        if "deletionTimestamp" in obj["metadata"] and (obj.get("spec") or {}).get("finalizers"):
            raise Conflict.of("namespaces", "", obj["metadata"]["name"], _BEING_EMPTIED)

    def terminating(self, obj: Tree, ctx: WriteContext) -> Tree | None:
        """Stay behind, Terminating, while there are finalizers."""
        if not (obj.get("spec") or {}).get("finalizers"):
            return None
        status = obj.get("status") or {}
        return obj if status.get("phase") == "Terminating" else {**obj, "status": {**status, "phase": "Terminating"}}

    def may_go(self, obj: Tree) -> bool:
        """Go when the finalizers are gone."""
        return not (obj.get("spec") or {}).get("finalizers")


def finalizer_names(obj: Tree) -> list[FieldError]:
    """Return what is wrong with the names in ``spec.finalizers``."""
    errors: list[FieldError] = []
    for each in (obj.get("spec") or {}).get("finalizers") or ():
        errors += wrong(names.qualified_name, each, "spec.finalizers")
        if "/" not in each and each not in (FINALIZER, "orphan", "foregroundDeletion"):
            errors.append(invalid("spec.finalizers", each, "name is neither a standard finalizer name nor is it fully qualified"))
    return errors
