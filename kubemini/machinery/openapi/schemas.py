"""``components.schemas`` of one group and version: what its operations refer to, and everything that this refers to.

Built-in types are published under their OpenAPI names (``io.k8s.api.core.v1.Pod``), kinds with a structural schema under theirs
(``io.x-k8s.jobset.v1alpha2.JobSet``), whole, as upstream publishes CustomResourceDefinitions (apiextensions-apiserver,
``pkg/controller/openapi/builder``, 1.36).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from weakref import WeakKeyDictionary

from kubemini.api.trees import Tree
from kubemini.machinery.openapi.served import Referring, SchemaSource, ServedKind
from kubemini.machinery.schema.builtin import BuiltinSchemas
from kubemini.machinery.schema.definitions import LEAF_NAMES, REFERENCE, Texts, reference_name

PATCH: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch"
_PATCH_SCHEMA: Final[Tree] = {
    "description": "Patch is provided to give a concrete name and type to the Kubernetes PATCH request body.",
    "type": "object",
}
_EMBEDDED: Final = "#/definitions/"
"""What stands before the name of a built-in type in structural schemas (`kubemini.api.embedded`)."""
_API_VERSION: Final = "APIVersion defines the versioned schema of this representation of an object."
_KIND: Final = "Kind is a string value representing the REST resource this object represents. Cannot be updated. In CamelCase."
_METADATA: Final = "Standard object's metadata."
_LIST_METADATA: Final = "Standard list metadata."

_published: WeakKeyDictionary[BuiltinSchemas, dict[str, tuple[Tree, tuple[str, ...]]]] = WeakKeyDictionary()
"""Definitions made so far with the types that they refer to: most documents share most of them."""


class Schemas:
    """The schemas of one document. Ask for references first, then for `closed`."""

    def __init__(self, types: BuiltinSchemas, group: str, version: str) -> None:
        self._types = types
        self._group, self._version = group, version
        self._named: dict[str, Tree] = {}
        self._roots: dict[str, None] = {}

    # ------------------------------------------------------------------ references

    def type(self, name: str) -> str:
        """Return the OpenAPI name of a built-in type (``meta/v1.Status``), and publish it."""
        self._roots[name] = None
        return reference_name(name)

    def patch(self) -> str:
        """Return the OpenAPI name of the body of a PATCH, and publish it."""
        self._named[PATCH] = _PATCH_SCHEMA
        return PATCH

    def body(self, group: str, version: str, kind: str) -> str | None:
        """Return the OpenAPI name of a built-in kind and publish it; None where there is no such kind."""
        info = self._types.type_of(group, version, kind)
        return None if info is None else self.type(info.name)

    def kind(self, kind: ServedKind, codec: SchemaSource) -> str:
        """Return the OpenAPI name of the objects of a kind, and publish them."""
        built_in = self.body(self._group, self._version, kind.kind)
        if built_in is not None:
            return built_in
        name = self._model(kind.kind)
        if name not in self._named:
            self._named[name] = self._object(kind.kind, codec)
        return name

    def list(self, kind: ServedKind, codec: SchemaSource) -> str:
        """Return the OpenAPI name of a list of a kind, and publish it."""
        built_in = self.body(self._group, self._version, kind.list_kind)
        if built_in is not None:
            return built_in
        name = self._model(kind.list_kind)
        if name not in self._named:
            self._named[name] = self._list(kind, self.kind(kind, codec))
        return name

    def _model(self, kind: str) -> str:
        return f"{'.'.join(reversed(self._group.split('.')))}.{self._version}.{kind}"

    # ------------------------------------------------------------------ schemas

    def _object(self, kind: str, codec: SchemaSource) -> Tree:
        """Return a structural schema as it is published: complete, with what every object has."""
        definitions = codec.definitions if isinstance(codec, Referring) else {}
        schema = Publisher(definitions, self._types.descriptions, self._reference("meta/v1.ObjectMeta", _METADATA)).published(codec.openapi())
        if "properties" in schema or not schema.get("x-kubernetes-preserve-unknown-fields"):
            properties = {**schema.get("properties", {}), **self._type_meta(), "metadata": self._reference("meta/v1.ObjectMeta", _METADATA)}
            schema = {**schema, "properties": properties}
        return {**schema, "x-kubernetes-group-version-kind": [self._identity(kind)]}

    def _list(self, kind: ServedKind, item: str) -> Tree:
        items: Tree = {"description": f"List of {kind.plural}.", "items": {"$ref": REFERENCE + item}, "type": "array"}
        return {
            "description": f"{kind.list_kind} is a list of {kind.kind}",
            "properties": {**self._type_meta(), "items": items, "metadata": self._reference("meta/v1.ListMeta", _LIST_METADATA)},
            "required": ["items"],
            "type": "object",
            "x-kubernetes-group-version-kind": [self._identity(kind.list_kind)],
        }

    def _identity(self, kind: str) -> Tree:
        return {"group": self._group, "kind": kind, "version": self._version}

    @staticmethod
    def _type_meta() -> Tree:
        return {"apiVersion": {"description": _API_VERSION, "type": "string"}, "kind": {"description": _KIND, "type": "string"}}

    def _reference(self, name: str, description: str) -> Tree:
        return {"allOf": [{"$ref": REFERENCE + self.type(name)}], "description": description}

    def closed(self) -> dict[str, Tree]:
        """Return all schemas by OpenAPI name, sorted."""
        known = _published.setdefault(self._types, {})
        found = dict(self._named)
        pending = list(self._roots)
        while pending:
            name = pending.pop()
            key = reference_name(name)
            if key in found:
                continue
            made = known.get(name)
            if made is None:
                made = known[name] = (self._types.type_schema(name), () if name in LEAF_NAMES else self._referred(name))
            found[key], referred = made
            pending += referred
        return dict(sorted(found.items()))

    def _referred(self, name: str) -> tuple[str, ...]:
        fields = self._types.type(name).fields.values()
        return tuple(dict.fromkeys(field.type for field in fields if field.type in LEAF_NAMES or not field.is_leaf))


class Publisher:
    """Makes structural schemas complete: no references but to metadata, and everything said that goes without saying in a CRD."""

    def __init__(self, definitions: Mapping[str, Tree], texts: Texts, metadata: Tree) -> None:
        self._definitions = definitions
        self._texts = texts
        self._metadata = metadata
        self._expanded: dict[str, Tree] = {}

    def published(self, schema: Tree, texts: Mapping[str, str] | None = None) -> Tree:
        """Return a schema with its references replaced by what they mean. `texts` describe its properties where it does not itself."""
        reference: str | None = schema.get("$ref")
        if reference is not None:
            meant = self._definition(reference.removeprefix(_EMBEDDED))
            return {**meant, "description": schema["description"]} if "description" in schema else meant
        out = dict(schema)
        if "properties" in schema:
            out["properties"] = {name: self._property(each, (texts or {}).get(name, "")) for name, each in schema["properties"].items()}
        for key in ("items", "additionalProperties"):
            if isinstance(schema.get(key), dict):
                out[key] = self.published(schema[key])
        if schema.get("x-kubernetes-int-or-string") and "anyOf" not in schema and "allOf" not in schema:
            out["anyOf"] = [{"type": "integer"}, {"type": "string"}]
        if schema.get("x-kubernetes-embedded-resource"):
            out["properties"] = {
                **out.get("properties", {}),
                "apiVersion": {"type": "string"},
                "kind": {"type": "string"},
                "metadata": self._metadata,
            }
            out["required"] = sorted({*schema.get("required", ()), "apiVersion", "kind"})
        return out

    def _property(self, schema: Tree, text: str) -> Tree:
        out = self.published(schema)
        return {**out, "description": text} if text and "description" not in schema else out

    def _definition(self, name: str) -> Tree:
        found = self._expanded.get(name)
        if found is None:
            texts = self._texts.get(name, {})
            found = self._expanded[name] = self._described(self.published(self._definitions[name], texts), texts)
        return found

    @staticmethod
    def _described(schema: Tree, texts: Mapping[str, str]) -> Tree:
        return {**schema, "description": texts[""]} if "" in texts and "description" not in schema else schema
