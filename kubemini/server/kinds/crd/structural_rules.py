"""What makes a schema structural: every node has a type, compositions only restrict, metadata is left alone.

Mirrors apiextensions-apiserver's ``schema.ValidateStructural`` (1.36), paths and texts included. Errors come sorted by their text, as upstream's.
"""

from __future__ import annotations

from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery.errors import FieldError, forbidden, invalid, required
from kubemini.machinery.regexes import RegexError, compiled
from kubemini.server.kinds.crd.layout import subschemas

_ROOT, _ITEM, _FIELD = "root", "item", "field"
_NO_TYPE = {
    _ROOT: "must not be empty at the root",
    _ITEM: "must not be empty for specified array items",
    _FIELD: "must not be empty for specified object fields",
}
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_UNSUPPORTED = ("id", "$schema", "$ref", "additionalItems", "patternProperties", "definitions", "dependencies")
_FORBIDDEN_IN_NESTED = (
    ("type", "must be empty to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
    ("x-kubernetes-validations", "must be empty to be structural"),
)
_METADATA_MAY_SAY = frozenset({"type", "properties", "default"})


def has_structure(schema: Tree) -> bool:
    """Tell whether a schema can be read as structural at all: it uses no keyword that has no place there."""
    return not any(each.get(key) or isinstance(each.get("items"), list) for each in subschemas(schema) for key in _UNSUPPORTED)


def validate_structural(schema: Tree, path: str) -> list[FieldError]:
    """Return what is not structural in a schema."""
    errors: list[FieldError] = []
    _invariants(schema, _ROOT, path, errors)
    _completeness(schema, schema, path, path, errors)
    return sorted(errors, key=str)


def _invariants(schema: Tree, level: str, path: str, errors: list[FieldError]) -> None:
    type_ = schema.get("type") or ""
    items, additional = schema.get("items"), schema.get("additionalProperties")
    if type_ == "array" and items is None:
        errors.append(required(f"{path}.items", "must be specified"))
    if isinstance(items, dict):
        _invariants(items, _ITEM, f"{path}.items", errors)
    for name, child in (schema.get("properties") or {}).items():
        _invariants(child, _FIELD, f"{path}.properties[{name}]", errors)
    if additional is not None:
        if level == _ROOT:
            errors.append(forbidden(f"{path}.additionalProperties", "must not be used at the root"))
        if isinstance(additional, dict):
            _invariants(additional, _FIELD, f"{path}.additionalProperties", errors)
    _extensions(schema, path, errors)
    any_of, all_of = schema.get("anyOf"), schema.get("allOf") or []
    first = bool(all_of) and all_of[0].get("anyOf") == _INT_OR_STRING
    _value_validation(schema, level, path, errors, skip_any_of=any_of == _INT_OR_STRING, skip_first=first)
    _type_rules(schema, type_, level, path, errors)
    _metadata_rules(schema, level, path, errors)


def _extensions(schema: Tree, path: str, errors: list[FieldError]) -> None:
    if not schema.get("x-kubernetes-int-or-string"):
        return
    for key in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
        if schema.get(key):
            errors.append(invalid(f"{path}.{key}", schema[key], "must be false if x-kubernetes-int-or-string is true"))


def _type_rules(schema: Tree, type_: str, level: str, path: str, errors: list[FieldError]) -> None:
    embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    if embedded and type_ != "object":
        detail = "must be object if x-kubernetes-embedded-resource is true"
        errors.append(invalid(f"{path}.type", type_, detail) if type_ else required(f"{path}.type", detail))
    elif not type_ and not schema.get("x-kubernetes-int-or-string") and not schema.get("x-kubernetes-preserve-unknown-fields"):
        errors.append(required(f"{path}.type", _NO_TYPE[level]))
    if embedded and schema.get("additionalProperties") is not None:
        errors.append(forbidden(f"{path}.additionalProperties", "must not be used if x-kubernetes-embedded-resource is set"))
    if level == _ROOT and type_ and type_ != "object":
        errors.append(invalid(f"{path}.type", type_, "must be object at the root"))
    if embedded and not schema.get("x-kubernetes-preserve-unknown-fields") and not schema.get("properties"):
        detail = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        errors.append(required(f"{path}.properties", detail))


def _metadata_rules(schema: Tree, level: str, path: str, errors: list[FieldError]) -> None:
    properties = schema.get("properties") or {}
    whole = level == _ROOT or bool(schema.get("x-kubernetes-embedded-resource"))
    if whole:
        for name in ("kind", "apiVersion"):
            if name in properties and properties[name].get("type") != "string":
                errors.append(invalid(f"{path}.properties[{name}].type", properties[name].get("type") or "", "must be string"))
    metadata = properties.get("metadata")
    if metadata is None:
        return
    where = f"{path}.properties[metadata]"
    if whole and metadata.get("type") != "object":
        errors.append(invalid(f"{where}.type", metadata.get("type") or "", "must be object"))
    if level == _ROOT and not (metadata.keys() <= _METADATA_MAY_SAY and (metadata.get("properties") or {}).keys() <= {"name", "generateName"}):
        errors.append(forbidden(where, "must not specify anything other than name and generateName, but metadata is implicitly specified"))


def _value_validation(schema: Tree, level: str, path: str, errors: list[FieldError], *, skip_any_of: bool, skip_first: bool) -> None:
    if not skip_any_of:
        for place, each in enumerate(schema.get("anyOf") or ()):
            _nested(each, level, f"{path}.anyOf[{place}]", errors)
    for place, each in enumerate(schema.get("allOf") or ()):
        _nested(each, level, f"{path}.allOf[{place}]", errors, skip_any_of=skip_first and place == 0)
    for place, each in enumerate(schema.get("oneOf") or ()):
        _nested(each, level, f"{path}.oneOf[{place}]", errors)
    if schema.get("not") is not None:
        _nested(schema["not"], level, f"{path}.not", errors)
    pattern = schema.get("pattern")
    if pattern:
        try:
            compiled(pattern)
        except RegexError as error:
            errors.append(invalid(f"{path}.pattern", pattern, f"must be a valid regular expression, but isn't: {error}"))


def _nested(schema: Tree, level: str, path: str, errors: list[FieldError], *, skip_any_of: bool = False) -> None:
    """Check a schema inside a composition: it may restrict values and nothing else."""
    _value_validation(schema, level, path, errors, skip_any_of=skip_any_of, skip_first=False)
    if isinstance(schema.get("items"), dict):
        _nested(schema["items"], level, f"{path}.items", errors)
    for name, child in (schema.get("properties") or {}).items():
        _nested(child, _FIELD, f"{path}.properties[{name}]", errors)
    for key, detail in _FORBIDDEN_IN_NESTED:
        value = schema.get(key)
        if value if key not in {"default", "additionalProperties", "x-kubernetes-list-type", "x-kubernetes-map-type"} else value is not None:
            errors.append(forbidden(f"{path}.{key}", detail))
    if "metadata" in (schema.get("properties") or {}):
        errors.append(forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context"))


def _completeness(schema: Tree, structure: Any, where: str, said: str, errors: list[FieldError]) -> None:
    """Check that what compositions restrict is specified outside of them: `structure` is the schema proper at this place."""
    if isinstance(schema.get("not"), dict):
        _nested_completeness(schema["not"], structure, where, f"{said}.not", errors)
    for key in ("allOf", "anyOf", "oneOf"):
        for place, each in enumerate(schema.get(key) or ()):
            _nested_completeness(each, structure, where, f"{said}.{key}[{place}]", errors)


def _nested_completeness(schema: Tree, structure: Any, where: str, said: str, errors: list[FieldError]) -> None:
    if not isinstance(structure, dict):
        errors.append(required(where, f"because it is defined in {said}"))
        return
    _completeness(schema, structure, where, said, errors)
    if isinstance(schema.get("items"), dict):
        _nested_completeness(schema["items"], structure.get("items"), f"{where}.items", f"{said}.items", errors)
    known = structure.get("properties") or {}
    for name, child in (schema.get("properties") or {}).items():
        inner = f"{where}.properties[{name}]"
        if name not in known:
            errors.append(required(inner, f"because it is defined in {said}.properties[{name}]"))
        else:
            _nested_completeness(child, known[name], inner, f"{said}.properties[{name}]", errors)
