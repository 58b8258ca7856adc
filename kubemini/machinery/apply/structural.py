"""The apply schema of custom resources, from their structural OpenAPI schemas; and that of kinds without any schema.

Mirrors kube-openapi's ``pkg/schemaconv`` (2026).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery.apply.builtin import list_rule
from kubemini.machinery.apply.shapes import DEDUCED, UNTYPED, Scalar, Shape, scalar

_SCALARS: dict[str, Scalar] = {"integer": "numeric", "number": "numeric", "boolean": "boolean"}
_NO_DEFINITIONS: Mapping[str, Tree] = {}


class StructuralShapes:
    """Compiles structural schemas. `metadata` is the shape of an object's own metadata, `definitions` are what ``$ref`` stands for, by its last part."""

    def __init__(self, metadata: Shape, definitions: Mapping[str, Tree] = _NO_DEFINITIONS) -> None:
        self._metadata = metadata
        self._definitions = definitions
        self._known: dict[tuple[str, bool], Shape] = {}

    def root(self, schema: Tree) -> Shape:
        """Return the shape of a custom resource."""
        found = self._compile(schema, preserve=False).copy()
        found.fields = {**found.fields, "apiVersion": scalar("string"), "kind": scalar("string"), "metadata": self._metadata}
        # Metadata counts as there: nobody owns it as a whole.
        found.present = {"metadata": {}}
        return found.sealed()

    def _compile(self, schema: Tree, *, preserve: bool) -> Shape:
        reference = schema.get("$ref")
        if reference is not None:
            return self._referenced(reference.rpartition("/")[2], preserve=preserve)
        return self._fill(Shape(), schema, preserve=preserve)

    def _referenced(self, name: str, *, preserve: bool) -> Shape:
        found = self._known.get((name, preserve))
        if found is None:
            # Known before it is filled: definitions may contain themselves.
            found = self._known[name, preserve] = Shape()
            self._fill(found, self._definitions[name], preserve=preserve)
        return found

    def _fill(self, shape: Shape, schema: Tree, *, preserve: bool) -> Shape:
        preserve = preserve or schema.get("x-kubernetes-preserve-unknown-fields") is True
        kind = schema.get("type") or ""
        if kind in {"", "object"}:
            shape.is_object, shape.atomic_object = True, schema.get("x-kubernetes-map-type") == "atomic"
        if kind in {"", "array"}:
            how, keys = list_rule(schema.get("x-kubernetes-list-type") or "", tuple(schema.get("x-kubernetes-list-map-keys") or ()), "", "")
            shape.is_list, shape.atomic_list = True, how == "atomic"
            shape.keys = tuple(sorted(keys)) if how == "map" else ()
        if not kind:
            shape.scalar = "untyped"
        elif kind == "string":
            shape.scalar = "string" if schema.get("format") in {None, "", "byte"} else "untyped"
        else:
            shape.scalar = _SCALARS.get(kind, "")
        shape.sealed()
        return shape.postponed(lambda: self._below(shape, schema, preserve=preserve)) if shape.is_object or shape.is_list else shape

    def _below(self, shape: Shape, schema: Tree, *, preserve: bool) -> None:
        if shape.is_object:
            self._object(shape, schema, preserve=preserve)
        if shape.is_list:
            items = schema.get("items")
            shape.items = self._compile(items, preserve=preserve) if isinstance(items, dict) else UNTYPED
            if shape.keys and isinstance(items, dict):
                shape.defaults = _defaults(self._resolved(items), shape.keys)

    def _object(self, shape: Shape, schema: Tree, *, preserve: bool) -> None:
        properties: Tree = schema.get("properties") or {}
        shape.fields = {name: self._compile(each, preserve=preserve) for name, each in properties.items()}
        if schema.get("x-kubernetes-embedded-resource") is True:
            shape.fields = {**shape.fields, "apiVersion": scalar("string"), "kind": scalar("string"), "metadata": self._metadata}
        additional = schema.get("additionalProperties")
        if isinstance(additional, dict):
            shape.element = self._compile(additional, preserve=preserve)
        elif additional is True or (additional is None and (preserve or not properties)):
            shape.element = DEDUCED

    def _resolved(self, schema: Tree) -> Tree:
        while (reference := schema.get("$ref")) is not None:
            schema = self._definitions[reference.rpartition("/")[2]]
        return schema


def _defaults(schema: Tree, keys: tuple[str, ...]) -> dict[str, Any]:
    properties = schema.get("properties") or {}
    found = {key: properties[key].get("default") for key in keys if key in properties}
    return {key: value for key, value in found.items() if value is not None}


class StructuralApplySchema:
    """The apply schema of one custom kind: the root shape of each version (by apiVersion), and a conversion where there are several."""

    def __init__(self, versions: Mapping[str, Shape], convert: Callable[[Tree, str], Tree] | None = None) -> None:
        self._versions = versions
        self._convert = convert

    @property
    def stable(self) -> bool:
        """The schemas of custom resources may change under stored objects."""
        return False

    def root(self, api_version: str) -> Shape | None:
        """Return the shape of the object in a version, None for a version that is not served."""
        return self._versions.get(api_version)

    def convert(self, tree: Tree, api_version: str) -> Tree:
        """Return an object in another version; without a conversion only the apiVersion changes, as with strategy None."""
        if tree.get("apiVersion") == api_version:
            return tree
        return {**tree, "apiVersion": api_version} if self._convert is None else self._convert(tree, api_version)


def deduced_root(metadata: Shape) -> Shape:
    """Return the shape of an object without a schema: objects merge, lists are replaced."""
    root = DEDUCED.copy()
    root.fields = {"apiVersion": scalar("string"), "kind": scalar("string"), "metadata": metadata}
    root.present = {"metadata": {}}
    return root.sealed()
