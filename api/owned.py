"""The kinds we own, as data: names, versions, printer columns, subresources, schemas. What a CustomResourceDefinition says of a kind.

Cheap to import: no models, no pydantic. Schemas are read from ``api/_generated`` when they are asked for (`schema_of`); their form is
described in `kubemini.api.openapi`, which makes them from the models.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import orjson

from kubemini.api.trees import Tree

GENERATED = Path(__file__).parent / "_generated"
"""Where the generated schemas are."""


@dataclass(frozen=True, slots=True)
class PrinterColumn:
    """One of ``additionalPrinterColumns``: a name, and the JSONPath of the cell."""

    name: str
    json_path: str
    type: str = "string"
    description: str = ""
    priority: int = 0

    def to_tree(self) -> Tree:
        """Return it as a CRD has it."""
        optional = {"description": self.description, "priority": self.priority}
        return {"name": self.name, "type": self.type, "jsonPath": self.json_path} | {key: value for key, value in optional.items() if value}


AGE = PrinterColumn("Age", ".metadata.creationTimestamp", "date")


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """``subresources.scale``: where a kind keeps its scale, as JSONPath with a leading dot."""

    spec_replicas: str = ".spec.replicas"
    status_replicas: str = ".status.replicas"
    selector: str = ""


@dataclass(frozen=True, slots=True)
class OwnedVersion:
    """One served version of a kind."""

    name: str
    model: str
    """Where its model is, as ``module:Class``; import it only to parse or build objects."""
    columns: tuple[PrinterColumn, ...] = ()
    """Columns beside NAME; none = Name and Age, as for a CRD without columns."""
    status: bool = True
    """Whether ``/status`` is served."""
    scale: ScalePaths | None = None
    """Where ``/scale`` reads and writes, None = not served."""
    selectable_fields: tuple[str, ...] = ()
    """JSONPaths that field selectors may name beside metadata.name and metadata.namespace."""
    deprecation: str = ""
    """Text of the warning to users of this version; "" = not deprecated."""


@dataclass(frozen=True, slots=True)
class OwnedKind:
    """One kind. All its versions are served; the first one is stored."""

    group: str
    kind: str
    plural: str
    versions: tuple[OwnedVersion, ...]
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()

    @property
    def singular(self) -> str:
        """The kind in lower case."""
        return self.kind.lower()

    @property
    def list_kind(self) -> str:
        """The kind of a list."""
        return f"{self.kind}List"


def schema_of(group: str, version: str, kind: str) -> Tree:
    """Return the structural schema of a kind that we own. The tree is shared: never mutate it. KeyError for an unknown kind."""
    try:
        schema: Tree = _schemas(group, version)[kind]
    except FileNotFoundError:
        raise KeyError(f"{group}/{version}") from None
    return schema


def generated_name(group: str, version: str) -> str:
    """Return the name of the file with the schemas of one group and version."""
    return f"{group}_{version}.json"


@cache
def _schemas(group: str, version: str) -> Tree:
    found: Tree = orjson.loads((GENERATED / generated_name(group, version)).read_bytes())
    return found


def crd_of(kind: OwnedKind) -> Tree:
    """Return the CustomResourceDefinition of a kind, with built-in types left as ``$ref`` (`kubemini.api.embedded.expanded` spells them out)."""
    names: Tree = {"kind": kind.kind, "listKind": kind.list_kind, "plural": kind.plural, "singular": kind.singular}
    if kind.short_names:
        names["shortNames"] = list(kind.short_names)
    if kind.categories:
        names["categories"] = list(kind.categories)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "names": names,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [
                _crd_version(kind, version, stored=version is kind.versions[0]) for version in sorted(kind.versions, key=lambda each: each.name)
            ],
        },
    }


def _crd_version(kind: OwnedKind, version: OwnedVersion, *, stored: bool) -> Tree:
    out: Tree = {"name": version.name, "served": True, "storage": stored}
    if version.deprecation:
        out |= {"deprecated": True, "deprecationWarning": version.deprecation}
    out["schema"] = {"openAPIV3Schema": schema_of(kind.group, version.name, kind.kind)}
    subresources: Tree = {"status": {}} if version.status else {}
    if version.scale is not None:
        paths = {"specReplicasPath": version.scale.spec_replicas, "statusReplicasPath": version.scale.status_replicas}
        subresources["scale"] = paths | ({"labelSelectorPath": version.scale.selector} if version.scale.selector else {})
    if subresources:
        out["subresources"] = subresources
    if version.columns:
        out["additionalPrinterColumns"] = [column.to_tree() for column in version.columns]
    if version.selectable_fields:
        out["selectableFields"] = [{"jsonPath": path} for path in version.selectable_fields]
    return out
