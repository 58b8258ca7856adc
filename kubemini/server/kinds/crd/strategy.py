"""The strategy of CustomResourceDefinitions: names filled in, status kept by the server, the finalizer that a deletion brings.

Mirrors ``registry/customresourcedefinition`` of apiextensions-apiserver (1.36).
"""

from __future__ import annotations

from collections.abc import Iterator

from kubemini.api.trees import Tree
from kubemini.machinery.errors import FieldError
from kubemini.machinery.schema.contract import Codec
from kubemini.machinery.schema.formats import is_recognized
from kubemini.server.kinds.crd.layout import schemas, subschemas, versions_of
from kubemini.server.kinds.crd.validation import names_errors, validate_crd
from kubemini.server.registry import Kind, KindVersion, Subresource
from kubemini.server.strategy import Strategy, WriteContext

GROUP = "apiextensions.k8s.io"
FINALIZER = "customresourcecleanup.apiextensions.k8s.io"


class CrdStrategy(Strategy):
    """The rules of one definition."""

    has_status = True
    has_generation = True
    unconditional_update = False
    any_finalizer = True

    def default(self, obj: Tree, ctx: WriteContext) -> Tree:
        """Fill in the singular and the kind of lists."""
        spec = obj.get("spec") or {}
        names = spec.get("names") or {}
        filled = dict(names)
        if not names.get("singular") and names.get("kind"):
            filled["singular"] = names["kind"].lower()
        if not names.get("listKind") and names.get("kind"):
            filled["listKind"] = f"{names['kind']}List"
        return obj if filled == names else {**obj, "spec": {**spec, "names": filled}}

    def initial_status(self, obj: Tree) -> Tree | None:
        """Nothing is accepted yet; the storage version counts as stored."""
        stored = [version["name"] for version in versions_of(obj) if version.get("storage")][:1]
        return {"acceptedNames": {"kind": "", "plural": ""}, "conditions": None, "storedVersions": stored or None}

    def prepare_for_update(self, new: Tree, old: Tree, ctx: WriteContext) -> Tree:
        """Note a new storage version."""
        status = new.get("status") or {}
        stored = status.get("storedVersions") or []
        storage = next((version["name"] for version in versions_of(new) if version.get("storage")), None)
        if storage is None or storage in stored:
            return new
        return {**new, "status": {**status, "storedVersions": [*stored, storage]}}

    def validate_create(self, obj: Tree, ctx: WriteContext) -> list[FieldError]:
        """Return the broken rules of a new definition."""
        return validate_crd(obj)

    def validate_update(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """Return the broken rules of an update."""
        return validate_crd(new, old, established=is_true(old, "Established"))

    def validate_status(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """Return the broken rules of a status write."""
        return names_errors((new.get("status") or {}).get("acceptedNames") or {}, "status.acceptedNames")

    def warnings(self, new: Tree, old: Tree | None, ctx: WriteContext) -> list[str]:
        """Warn of formats without meaning and of sets of objects."""
        if old is not None and new.get("spec") == old.get("spec"):
            return []
        known = {*_odd_formats(old), *_odd_sets(old)} if old is not None else set[str]()
        return [text for text in (*_odd_formats(new), *sorted(dict.fromkeys(_odd_sets(new)))) if text not in known]

    def terminating(self, obj: Tree, ctx: WriteContext) -> Tree | None:
        """Keep a definition that is deleted until its objects are gone."""
        meta = obj["metadata"]
        if "deletionTimestamp" in meta:
            return None
        finalizers = meta.get("finalizers") or []
        pending: Tree = {
            "type": "Terminating",
            "status": "True",
            "lastTransitionTime": ctx.env.stamp(),
            "reason": "InstanceDeletionPending",
            "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        }
        status = obj.get("status") or {}
        conditions = [each for each in status.get("conditions") or () if each["type"] != "Terminating"]
        kept = finalizers if FINALIZER in finalizers else [*finalizers, FINALIZER]
        return {**obj, "metadata": {**meta, "finalizers": kept}, "status": {**status, "conditions": [*conditions, pending]}}


def is_true(crd: Tree, condition: str) -> bool:
    """Tell whether a condition of a definition is True."""
    return any(each["type"] == condition and each["status"] == "True" for each in (crd.get("status") or {}).get("conditions") or ())


def _odd_formats(crd: Tree) -> Iterator[str]:
    for part in schemas(crd):
        for schema in subschemas(part.value):
            form = schema.get("format")
            if form and not is_recognized(form, schema.get("type") or ""):
                yield f'unrecognized format "{form}"'


def _odd_sets(crd: Tree) -> Iterator[str]:
    for part in schemas(crd):
        for schema in subschemas(part.value):
            items = schema.get("items")
            if schema.get("x-kubernetes-list-type") == "set" and isinstance(items, dict) and items.get("type") in {"object", "array"}:
                type_ = items["type"]
                yield f'x-kubernetes-list-type: set for items of type "{type_}" is not supported by server-side apply or CEL validation rules'


def crd_kind(codec: Codec) -> Kind:
    """Return the kind as the registry serves it."""
    return Kind(
        group=GROUP,
        kind="CustomResourceDefinition",
        plural="customresourcedefinitions",
        versions=(KindVersion("v1", codec),),
        strategy=CrdStrategy(),
        namespaced=False,
        short_names=("crd", "crds"),
        categories=("api-extensions",),
        subresources=(Subresource("status", "CustomResourceDefinition", ("get", "patch", "update")),),
    )
