"""OpenAPI v3 definitions of built-in types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kubemini.api.trees import Tree
from kubemini.machinery.schema.builtin import BuiltinSchemas, builtin_schemas
from kubemini.machinery.schema.definitions import REFERENCE


def bare(tree: Any) -> Any:
    """Return a schema without its texts, which come from a package that may not be installed."""
    if isinstance(tree, dict):
        return {key: bare(each) for key, each in tree.items() if not (key == "description" and isinstance(each, str))}
    return [bare(each) for each in tree] if isinstance(tree, list) else tree


def references(tree: Any) -> Iterator[str]:
    """Yield all references in a schema."""
    if isinstance(tree, dict):
        if isinstance(tree.get("$ref"), str):
            yield tree["$ref"]
        for each in tree.values():
            yield from references(each)
    elif isinstance(tree, list):
        for each in tree:
            yield from references(each)


def field(owner: str, name: str) -> Tree:
    """Return the schema of a field, without texts."""
    schema: Tree = bare(builtin_schemas().type_schema(owner))["properties"][name]
    return schema


def test_a_kind_says_what_it_is() -> None:
    """The definition of a kind carries its group, version and kind, and refers to its parts."""
    pod = bare(builtin_schemas().codec("", "v1", "Pod").openapi())
    assert pod["x-kubernetes-group-version-kind"] == [{"group": "", "kind": "Pod", "version": "v1"}]
    assert pod["type"] == "object"
    assert pod["properties"]["metadata"] == {"allOf": [{"$ref": f"{REFERENCE}io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}], "default": {}}


def test_lists_and_maps() -> None:
    """Lists tell how they merge; elements default to their zero."""
    assert field("core/v1.Container", "ports") == {
        "items": {"allOf": [{"$ref": f"{REFERENCE}io.k8s.api.core.v1.ContainerPort"}], "default": {}},
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["containerPort", "protocol"],
        "x-kubernetes-patch-strategy": "merge",
        "x-kubernetes-patch-merge-key": "containerPort",
    }
    assert field("core/v1.PodSpec", "nodeSelector") == {
        "additionalProperties": {"type": "string", "default": ""},
        "type": "object",
        "x-kubernetes-map-type": "atomic",
    }
    quantity = f"{REFERENCE}io.k8s.apimachinery.pkg.api.resource.Quantity"
    assert field("core/v1.ResourceRequirements", "limits") == {"additionalProperties": {"$ref": quantity}, "type": "object"}


def test_scalars_enums_and_defaults() -> None:
    """Formats, enum values and declared defaults are published, and atomic types say so."""
    assert field("core/v1.ContainerPort", "protocol") == {"type": "string", "enum": ["SCTP", "TCP", "UDP"], "default": "TCP"}
    assert field("core/v1.ContainerPort", "containerPort") == {"format": "int32", "type": "integer", "default": 0}
    assert field("core/v1.Secret", "data") == {"additionalProperties": {"format": "byte", "type": "string"}, "type": "object"}
    assert builtin_schemas().type_schema("meta/v1.LabelSelector")["x-kubernetes-map-type"] == "atomic"
    assert builtin_schemas().type_schema("core/v1.ContainerPort")["required"] == ["containerPort"]


def test_leaves_have_definitions_too() -> None:
    """Quantities, times and the like are types of their own in OpenAPI."""
    assert bare(builtin_schemas().type_schema("Quantity")) == {"oneOf": [{"type": "string"}, {"type": "number"}]}
    assert bare(builtin_schemas().type_schema("IntOrString")) == {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]}
    assert bare(builtin_schemas().type_schema("JSON")) == {}


def test_a_closure_lacks_nothing() -> None:
    """The definitions of any kinds hold every type that they refer to, and no other."""
    for version in ("1.31", "1.37"):
        schemas = BuiltinSchemas(version)
        found = schemas.openapi_definitions(
            [info.name for info in (schemas.type_of("batch", "v1", "Job"), schemas.type_of("", "v1", "Node")) if info]
        )
        wanted = {each.removeprefix(REFERENCE) for each in references(found)} | {"io.k8s.api.batch.v1.Job", "io.k8s.api.core.v1.Node"}
        assert set(found) == wanted
        assert list(found) == sorted(found)


def test_texts_are_published_where_they_are_installed() -> None:
    """`kubectl explain` finds descriptions, with the values of enums."""
    schemas = builtin_schemas()
    if not schemas.descriptions:
        pytest.skip("kubernetes-validate is not installed")
    described = schemas.type_schema("core/v1.PodSpec")
    assert described["description"] == "PodSpec is a description of a pod."
    policy = described["properties"]["restartPolicy"]["description"]
    assert policy.startswith("Restart policy for all containers")
    assert policy.endswith('Possible enum values:\n - `"Always"`\n - `"Never"`\n - `"OnFailure"`')
