"""The kinds we own, as they are served: built from the same data as their CustomResourceDefinitions (`kubemini.api.owned`).

They behave as custom resources in every respect. Schemas are read and compiled when the first object of a version comes in, so that a
server which nobody asks for a JobSet never does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from kubemini.api.embedded import EmbeddedTypes
from kubemini.api.kueue import GROUP as KUEUE
from kubemini.api.operators import OWNED_KINDS
from kubemini.api.owned import OwnedKind, OwnedVersion, schema_of
from kubemini.api.trees import Tree
from kubemini.machinery.errors import FieldError
from kubemini.machinery.schema.contract import Codec, Decoded
from kubemini.server.kinds.custom import CustomStrategy, custom_table, scale_of
from kubemini.server.registry import Convert, Kind, KindVersion, Subresource

EMBEDDED = EmbeddedTypes()
"""What ``$ref`` means in the schemas, made once for all kinds."""

_WRITTEN = ("get", "patch", "update")


def owned_kinds() -> tuple[Kind, ...]:
    """Return the kinds of JobSet, LeaderWorkerSet, DisaggregatedSet, Kueue and the cluster autoscaler."""
    return tuple(kind_of(each) for each in OWNED_KINDS)


def kind_of(owned: OwnedKind) -> Kind:
    """Return one kind as the registry takes it."""
    stored = owned.versions[0]
    scale = scale_of(stored.scale.spec_replicas, stored.scale.status_replicas, stored.scale.selector) if stored.scale else None
    subresources = [Subresource("status", owned.kind, _WRITTEN)] if stored.status else []
    if scale is not None:
        subresources.append(Subresource("scale", "Scale", _WRITTEN, "autoscaling", "v1"))
    return Kind(
        group=owned.group,
        kind=owned.kind,
        plural=owned.plural,
        versions=tuple(_version(owned, each) for each in owned.versions),
        strategy=CustomStrategy(status=stored.status, scale=scale, selectable=stored.selectable_fields),
        namespaced=owned.namespaced,
        singular=owned.singular,
        list_kind=owned.list_kind,
        short_names=owned.short_names,
        categories=owned.categories,
        subresources=tuple(subresources),
        custom=True,
    )


def _version(owned: OwnedKind, version: OwnedVersion) -> KindVersion:
    up: Convert | None = None
    down: Convert | None = None
    if owned.group == KUEUE and version is not owned.versions[0]:
        from kubemini.api.kueue.conversion import to_v1beta1, to_v1beta2

        up, down = to_v1beta2, to_v1beta1
    return KindVersion(
        version.name,
        OwnedCodec(owned.group, version.name, owned.kind),
        to_storage=up,
        from_storage=down,
        table=custom_table(column.to_tree() for column in version.columns),
        deprecation=version.deprecation,
    )


class OwnedCodec:
    """The codec of one version, compiled on first use."""

    definitions: Mapping[str, Tree] = EMBEDDED
    """What ``$ref`` means in its schema."""

    def __init__(self, group: str, version: str, kind: str) -> None:
        self.group, self.version, self.kind = group, version, kind

    @cached_property
    def _codec(self) -> Codec:
        from kubemini.machinery.schema.structural import StructuralCodec

        schema = schema_of(self.group, self.version, self.kind)
        return StructuralCodec(schema, group=self.group, version=self.version, kind=self.kind, definitions=EMBEDDED, fixed=True)

    @cached_property
    def _may_lack_spec(self) -> bool:
        schema = schema_of(self.group, self.version, self.kind)
        return "spec" in schema["properties"] and "spec" not in (schema.get("required") or ())

    def decode(self, tree: Tree, *, validation: str = "Warn", duplicates: Sequence[str] = (), stored: Tree | None = None) -> Decoded:
        """Prune, check types and fill defaults. A spec that may be missing is {}: what the operators' own types make of it in Go."""
        found = self._codec.decode(tree, validation=validation, duplicates=duplicates, stored=stored)
        if "spec" not in found.tree and self._may_lack_spec:
            return replace(found, tree={**found.tree, "spec": {}})
        return found

    def validate(self, new: Tree, old: Tree | None = None) -> list[FieldError]:
        """Return broken schema and CEL rules."""
        return self._codec.validate(new, old)

    def openapi(self) -> Tree:
        """Return the structural schema, with built-in types as ``$ref`` (`kubemini.api.embedded.referenced` collects what they mean)."""
        return schema_of(self.group, self.version, self.kind)
