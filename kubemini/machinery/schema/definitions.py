"""OpenAPI v3 definitions of the built-in types, as the API server publishes them in ``components.schemas``.

Other types are referenced by their OpenAPI names. Texts come from the package ``kubernetes-validate`` where it is installed.
Mirrors kube-openapi's ``pkg/builder3`` (1.36): a reference with siblings is wrapped in ``allOf``, structs that are no pointers default to ``{}``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final

import orjson

from kubemini.api.trees import Tree
from kubemini.machinery.schema.types import UNSET, FieldInfo, TypeInfo, Types, definition_name

REFERENCE: Final = "#/components/schemas/"
"""What stands before the OpenAPI name of a type in a reference."""

_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_APIEXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."

LEAF_NAMES: Final[Mapping[str, str]] = {
    "Quantity": "io.k8s.apimachinery.pkg.api.resource.Quantity",
    "IntOrString": "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
    "RawExtension": "io.k8s.apimachinery.pkg.runtime.RawExtension",
    **{name: f"{_META}{name}" for name in ("Time", "MicroTime", "FieldsV1")},
    **{name: f"{_APIEXTENSIONS}{name}" for name in ("JSON", "JSONSchemaPropsOrArray", "JSONSchemaPropsOrBool", "JSONSchemaPropsOrStringArray")},
}
"""The OpenAPI names of the element types that have a definition though no declared fields."""

_LEAVES: Final[Mapping[str, Tree]] = {
    "Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "IntOrString": {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    "Time": {"format": "date-time", "type": "string"},
    "MicroTime": {"format": "date-time", "type": "string"},
    "RawExtension": {"type": "object"},
    "FieldsV1": {"type": "object"},
}
_PLAIN: Final[Mapping[str, Tree]] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"format": "int32", "type": "integer"},
    "int64": {"format": "int64", "type": "integer"},
    "double": {"format": "double", "type": "number"},
    "bytes": {"format": "byte", "type": "string"},
    "strings": {"items": {"default": "", "type": "string"}, "type": "array"},
}
_ZEROS: Final[Mapping[str, Any]] = {"string": "", "bool": False, "int32": 0, "int64": 0, "double": 0}
"""What elements of lists and maps default to."""

Texts = Mapping[str, Mapping[str, str]]
"""Descriptions by OpenAPI name and field, that of the type itself under ""; may be empty."""


def published_texts(version: str) -> Texts:
    """Return the descriptions of a Kubernetes version (``1.36``), none where the package is not installed. Costs some 20 ms."""
    try:
        found = distribution("kubernetes-validate").locate_file(f"kubernetes_validate/kubernetes-json-schema/v{version}.0-local/_definitions.json")
        document: dict[str, Any] = orjson.loads(Path(str(found)).read_bytes())
    except (PackageNotFoundError, OSError):
        return {}
    texts: dict[str, dict[str, str]] = {}
    for name, definition in document["$defs"].items():
        fields: dict[str, Any] = definition.get("properties", {})
        texts[name] = {key: each["description"] for key, each in (("", definition), *fields.items()) if "description" in each}
    return texts


def type_schema(info: TypeInfo, texts: Texts) -> Tree:
    """Return the definition of a type."""
    described = texts.get(info.definition, {})
    schema: Tree = {}
    if "" in described:
        schema["description"] = described[""]
    if info.fields:
        schema["properties"] = {name: field_schema(field, described.get(name, "")) for name, field in info.fields.items()}
    required = [name for name, field in info.fields.items() if field.required]
    if required:
        schema["required"] = required
    schema["type"] = "object"
    if info.kinds:
        schema["x-kubernetes-group-version-kind"] = [{"group": each.group, "kind": each.kind, "version": each.version} for each in info.kinds]
    if info.atomic:
        schema["x-kubernetes-map-type"] = "atomic"
    if info.unions:
        schema["x-kubernetes-unions"] = list(info.unions)
    return schema


def leaf_schema(name: str, texts: Texts) -> Tree:
    """Return the definition of an element type without declared fields (a key of `LEAF_NAMES`)."""
    text = texts.get(LEAF_NAMES[name], {}).get("")
    return {**({"description": text} if text else {}), **_LEAVES.get(name, {})}


def field_schema(field: FieldInfo, description: str = "") -> Tree:
    """Return the schema of one field."""
    schema: Tree = {}
    if description:
        schema["description"] = _with_values(description, field)
    schema |= _shape(field)
    if field.schema_default is not UNSET:
        schema["default"] = field.schema_default
    elif field.cardinality == "one" and field.req and not field.pointer and not field.is_leaf:
        schema["default"] = {}
    if field.list_type:
        schema["x-kubernetes-list-type"] = field.list_type
    if field.list_keys:
        schema["x-kubernetes-list-map-keys"] = list(field.list_keys)
    if field.map_type:
        schema["x-kubernetes-map-type"] = field.map_type
    if field.patch_strategy:
        schema["x-kubernetes-patch-strategy"] = field.patch_strategy
    if field.merge_key:
        schema["x-kubernetes-patch-merge-key"] = field.merge_key
    if "$ref" in schema and len(schema) > 1:
        return {"allOf": [{"$ref": schema.pop("$ref")}], **schema}
    return schema


def _shape(field: FieldInfo) -> Tree:
    if field.cardinality == "one":
        element = _element(field)
        return {**element, "enum": list(field.enum)} if field.enum else element
    element = _element(field, inside=True)
    if field.enum:
        element["enum"] = list(field.enum)
    return {"items": element, "type": "array"} if field.cardinality == "list" else {"additionalProperties": element, "type": "object"}


def _element(field: FieldInfo, *, inside: bool = False) -> Tree:
    plain = _PLAIN.get(field.type)
    if plain is not None:
        return {**plain, "default": _ZEROS[field.type]} if inside and field.type in _ZEROS else dict(plain)
    reference = REFERENCE + reference_name(field.type)
    if inside and not field.is_leaf:
        return {"allOf": [{"$ref": reference}], "default": {}}
    return {"$ref": reference}


def _with_values(description: str, field: FieldInfo) -> str:
    """Return a description with the values of an enum, as the API server appends them."""
    if not field.enum or "Possible enum values" in description:
        return description
    listed = "\n".join(f' - `"{value}"`' for value in field.enum)
    return f"{description}\n\nPossible enum values:\n{listed}"


def reference_name(name: str) -> str:
    """Return the OpenAPI name of a type or of a leaf that has a definition."""
    return LEAF_NAMES.get(name) or definition_name(name)


def closure(types: Types, roots: Iterable[str], texts: Texts) -> dict[str, Tree]:
    """Return the definitions of the root types and of all that they refer to, by OpenAPI name, sorted."""
    found: dict[str, Tree] = {}
    pending = sorted(roots, reverse=True)
    while pending:
        name = pending.pop()
        key = reference_name(name)
        if key in found:
            continue
        if name in LEAF_NAMES:
            found[key] = leaf_schema(name, texts)
        else:
            info = types.type(name)
            found[key] = type_schema(info, texts)
            pending += _references(info)
    return dict(sorted(found.items()))


def _references(info: TypeInfo) -> Iterator[str]:
    for field in info.fields.values():
        if field.type in LEAF_NAMES or not field.is_leaf:
            yield field.type
