"""From OpenAPI v3 to Swagger 2.0, for clients that know nothing newer (``/openapi/v2``).

Swagger cannot say everything: alternatives, nullable values and defaults go, and where unknown fields are kept nothing is said at all, since
old kubectl takes what is said as all there is (kube-openapi, ``pkg/handler``, and apiextensions-apiserver, ``pkg/controller/openapi/v2``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kubemini.api.trees import Tree
from kubemini.machinery.schema.definitions import REFERENCE

DEFINITION: Final = "#/definitions/"
_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_INT_OR_STRING: Final = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_SPECIAL: Final[dict[str, Tree]] = {_QUANTITY: {"type": "string"}, _INT_OR_STRING: {"format": "int-or-string", "type": "string"}}
"""Leaves whose alternatives Swagger writes as strings."""
_DROPPED: Final = frozenset({"default", "oneOf", "anyOf", "allOf", "not", "nullable"})
_METHODS: Final = ("delete", "get", "patch", "post", "put")


def swagger(documents: Iterable[Tree], version: str) -> Tree:
    """Return one Swagger document from the v3 documents of all groups and versions of a cluster that emulates Kubernetes `version`."""
    paths: Tree = {}
    definitions: Tree = {}
    for document in documents:
        for name, schema in document["components"]["schemas"].items():
            if name not in definitions:
                definitions[name] = definition(name, schema)
        for path, item in document["paths"].items():
            paths[path] = _item(item)
    return {
        "definitions": dict(sorted(definitions.items())),
        "info": {"title": "Kubernetes", "version": f"v{version}.0"},
        "paths": dict(sorted(paths.items())),
        "security": [{"BearerToken": []}],
        "securityDefinitions": {
            "BearerToken": {"description": "Bearer Token authentication", "in": "header", "name": "authorization", "type": "apiKey"}
        },
        "swagger": "2.0",
    }


def definition(name: str, schema: Tree) -> Tree:
    """Return a schema of ``components.schemas`` as it stands in ``definitions``."""
    if name in _SPECIAL:
        return {**({"description": schema["description"]} if "description" in schema else {}), **_SPECIAL[name]}
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return {"type": "object", "x-kubernetes-group-version-kind": schema.get("x-kubernetes-group-version-kind", [])}
    return _schema(schema)


def _schema(schema: Tree) -> Tree:
    reference: str | None = schema.get("$ref") or _only_reference(schema)
    if reference is not None:
        described = {"description": schema["description"]} if "description" in schema else {}
        kept = {key: value for key, value in schema.items() if key.startswith("x-kubernetes-")}
        return {"$ref": DEFINITION + reference.removeprefix(REFERENCE), **described, **kept}
    out = {key: value for key, value in schema.items() if key not in _DROPPED}
    preserved = schema.get("x-kubernetes-preserve-unknown-fields")
    if schema.get("nullable") or preserved:
        out.pop("items", None)
        out.pop("properties", None)
    if schema.get("nullable") or (preserved and out.get("type") == "object") or (out.get("type") == "array" and "items" not in out):
        out.pop("type", None)
    if "properties" in out:
        properties: dict[str, Tree] = out["properties"]
        out["properties"] = {name: _schema(each) for name, each in properties.items()}
        nullable = {name for name, each in properties.items() if each.get("nullable")}
        if nullable and "required" in out:
            out["required"] = [name for name in out["required"] if name not in nullable]
    for key in ("items", "additionalProperties"):
        if isinstance(out.get(key), dict):
            out[key] = _schema(out[key])
    if not out.get("required", True):
        del out["required"]
    return out


def _only_reference(schema: Tree) -> str | None:
    """Return the reference that ``allOf`` wraps because something stands beside it."""
    parts: list[Tree] = schema.get("allOf", [])
    found: str | None = parts[0].get("$ref") if len(parts) == 1 else None
    return found


def _item(item: Tree) -> Tree:
    out: Tree = {method: _operation(item[method]) for method in _METHODS if method in item}
    if "parameters" in item:
        out["parameters"] = [_parameter(each) for each in item["parameters"]]
    return out


def _operation(operation: Tree) -> Tree:
    out = {key: value for key, value in operation.items() if key not in {"parameters", "requestBody", "responses"}}
    parameters = [_parameter(each) for each in operation.get("parameters", ())]
    body: Tree | None = operation.get("requestBody")
    out["consumes"] = ["*/*"]
    if body is not None:
        out["consumes"] = list(body["content"])
        referred: Tree = next(iter(body["content"].values()))["schema"]
        required = {"required": True} if body.get("required") else {}
        parameters.insert(0, {"in": "body", "name": "body", **required, "schema": _schema(referred)})
    if parameters:
        out["parameters"] = parameters
    answers: Tree = operation["responses"]
    out["produces"] = sorted({form for answer in answers.values() for form in answer.get("content", ())})
    out["responses"] = {code: _answer(answer) for code, answer in answers.items()}
    out["schemes"] = ["https"]
    return out


def _answer(answer: Tree) -> Tree:
    content: Tree = answer.get("content", {})
    out: Tree = {"description": answer["description"]}
    for form in content.values():
        out["schema"] = _schema(form["schema"])
        break
    return out


def _parameter(parameter: Tree) -> dict[str, Any]:
    return {**{key: value for key, value in parameter.items() if key != "schema"}, **parameter["schema"]}
