"""From a model to the schema that a CustomResourceDefinition would state: ``structural_schema(JobSet)``.

The convention of these schemas, also of the generated ones in ``api/_generated`` that a server loads instead of importing models:

- OpenAPI v3 in the structural subset, with the ``x-kubernetes-*`` extensions, as in ``spec.versions[].schema.openAPIV3Schema`` of a CRD.
  Properties are sorted by name; descriptions are ours.
- A subtree of a built-in type is ``{"$ref": "#/definitions/io.k8s.api.core.v1.PodTemplateSpec"}`` with at most a ``description`` beside it.
  No other ``$ref`` occurs. The definition meant is the one *as a CRD embeds it*, which differs from what the built-in API serves:
  `kubemini.api.embedded` states how, and makes it from the built-in definition. Inside, ``$ref`` goes on from type to type.
- ``metadata`` of the root is a bare ``{"type": "object"}``, as in every CRD: the server knows what it is.

Building a schema imports pydantic and reads source files (descriptions are the docstrings of attributes), so it happens when data is
generated and in tests: ``python -m kubemini.api.openapi`` writes the files of ``api/_generated`` anew.
"""

from __future__ import annotations

import ast
import inspect
import types
import typing
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types as at
import orjson
from pydantic import StringConstraints

from kubemini.api.embedded import REF
from kubemini.api.meta.markers import ABSENT, BuiltIn, Format, IntOrStringType, ListType, MapType, RequiredInSchema, Rule
from kubemini.api.meta.model import Model
from kubemini.api.meta.v1 import ApiObject
from kubemini.api.operators import OWNED_KINDS
from kubemini.api.owned import GENERATED, generated_name
from kubemini.api.trees import Tree

_SCALARS = {str: "string", int: "integer", bool: "boolean", float: "number"}
_LENGTHS = {"string": ("minLength", "maxLength"), "array": ("minItems", "maxItems"), "object": ("minProperties", "maxProperties")}


def structural_schema(model: type[Model]) -> Tree:
    """Return the structural schema of a model; of a kind when it is an `ApiObject`. A new tree each time."""
    return _object(model)


def _object(model: type[Model]) -> Tree:
    docs = _attribute_docs(model)
    hints = typing.get_type_hints(model, include_extras=True)
    root = issubclass(model, ApiObject)
    properties: Tree = {}
    required: list[str] = []
    for name, field in model.model_fields.items():
        json_name = field.alias or name
        if root and name in {"api_version", "kind", "metadata"}:
            properties[json_name] = {"description": docs[name], "type": "object" if name == "metadata" else "string"}
            continue
        schema, markers = _typed(hints[name])
        default = field.get_default(call_default_factory=True)
        is_absent = isinstance(field.json_schema_extra, dict) and ABSENT in field.json_schema_extra
        if not field.is_required() and default is not None and not is_absent:
            schema["default"] = default.to_tree() if isinstance(default, Model) else default
        if field.is_required() or any(isinstance(each, RequiredInSchema) for each in markers):
            required.append(json_name)
        if name in docs:
            schema["description"] = docs[name]
        properties[json_name] = dict(sorted(schema.items()))
    out: Tree = {"description": inspect.cleandoc(model.__doc__ or ""), "type": "object", "properties": dict(sorted(properties.items()))}
    if required:
        out["required"] = sorted(required)
    if model.atomic:
        out["x-kubernetes-map-type"] = "atomic"
    if model.cel_rules:
        out["x-kubernetes-validations"] = [_rule(each) for each in model.cel_rules]
    return out


def _typed(hint: Any) -> tuple[Tree, list[Any]]:
    """Return the schema of a type hint without its default and description, and all its markers."""
    base, markers = _unwrap(hint)
    schema = _base(base, markers)
    for marker in markers:
        _mark(schema, marker)
    return schema, markers


def _unwrap(hint: Any) -> tuple[Any, list[Any]]:
    """Peel off ``Annotated`` and ``| None``: return what is left, and the markers from the inside out."""
    origin = get_origin(hint)
    if origin is Annotated:
        inner, *outer = get_args(hint)
        base, markers = _unwrap(inner)
        return base, markers + list(_flat(outer))
    if origin in {Union, types.UnionType}:
        members = [each for each in get_args(hint) if each is not type(None)]
        if len(members) == 1:
            return _unwrap(members[0])
    return hint, []


def _flat(markers: Iterable[Any]) -> Iterable[Any]:
    for marker in markers:
        if isinstance(marker, at.GroupedMetadata) and not isinstance(marker, StringConstraints):
            yield from marker
        else:
            yield marker


def _base(base: Any, markers: list[Any]) -> Tree:
    for marker in markers:
        if isinstance(marker, BuiltIn):
            return {"$ref": REF + marker.definition}
        if isinstance(marker, IntOrStringType):
            schema: Tree = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
            return {**schema, "pattern": marker.pattern} if marker.pattern else schema
    if base in _SCALARS:
        return {"type": _SCALARS[base]}
    origin, args = get_origin(base), get_args(base)
    if origin is Literal:
        return {"type": "string", "enum": list(args)}
    if origin is list:
        return {"type": "array", "items": _typed(args[0])[0]}
    if origin is dict:
        return {"type": "object", "additionalProperties": _typed(args[1])[0]}
    if isinstance(base, type) and issubclass(base, Model):
        return _object(base)
    raise TypeError(f"no schema for {base!r}: use a Model, list, dict, Literal, str, int, bool, or a type of kubemini.api.meta.types")


def _mark(schema: Tree, marker: Any) -> None:
    shortest, longest = _LENGTHS.get(schema.get("type", ""), ("", ""))
    match marker:
        case Format(name=name):
            schema["format"] = name
        case at.Ge(ge=bound):
            schema["minimum"] = bound
        case at.Le(le=bound):
            schema["maximum"] = bound
        case at.MinLen(min_length=bound):
            schema[shortest] = bound
        case at.MaxLen(max_length=bound):
            schema[longest] = bound
        case StringConstraints():
            limits = {"minLength": marker.min_length, "maxLength": marker.max_length, "pattern": marker.pattern}
            schema.update({key: value for key, value in limits.items() if value is not None})
        case ListType(type=kind, keys=keys):
            schema["x-kubernetes-list-type"] = kind
            if keys:
                schema["x-kubernetes-list-map-keys"] = list(keys)
        case MapType(type=kind):
            schema["x-kubernetes-map-type"] = kind
        case Rule():
            schema["x-kubernetes-validations"] = [*schema.get("x-kubernetes-validations", []), _rule(marker)]
        case _:
            pass


def _rule(rule: Rule) -> Tree:
    return {"rule": rule.rule, "message": rule.message}


# ------------------------------------------------------------------------------------------------- descriptions


def _attribute_docs(model: type[Model]) -> dict[str, str]:
    """Return the docstrings of a model's attributes, its own over those of its bases."""
    docs: dict[str, str] = {}
    for each in reversed(model.__mro__):
        if issubclass(each, Model):
            docs.update(_class_docs(each.__module__).get(each.__name__, {}))
    return docs


@cache
def _class_docs(module: str) -> dict[str, dict[str, str]]:
    """Return class name → attribute → docstring, read from the source of a module."""
    source = inspect.getsource(import_module(module))
    found: dict[str, dict[str, str]] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef):
            docs = found.setdefault(node.name, {})
            for statement, after in zip(node.body, node.body[1:], strict=False):
                if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and isinstance(after, ast.Expr):
                    docs[statement.target.id] = inspect.cleandoc(str(ast.literal_eval(after.value)))
    return found


# ------------------------------------------------------------------------------------------------- generated data


def generated_files() -> Iterator[tuple[Path, bytes]]:
    """Yield each file of ``api/_generated`` with the content that the models give it."""
    schemas: dict[str, Tree] = {}
    for kind in OWNED_KINDS:
        for version in kind.versions:
            module, _, name = version.model.partition(":")
            model: type[ApiObject] = getattr(import_module(module), name)
            schemas.setdefault(generated_name(kind.group, version.name), {})[kind.kind] = structural_schema(model)
    for name, by_kind in sorted(schemas.items()):
        yield GENERATED / name, orjson.dumps(by_kind, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)


def main() -> None:
    """Write the files of ``api/_generated`` anew."""
    GENERATED.mkdir(exist_ok=True)
    for path, content in generated_files():
        path.write_bytes(content)


if __name__ == "__main__":
    main()
