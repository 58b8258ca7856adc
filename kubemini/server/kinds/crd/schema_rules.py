"""The rules of a CRD's schema keyword by keyword, beside those of structure: list types, lists that are maps, CEL rules as texts.

Mirrors ``ValidateCustomResourceDefinitionOpenAPISchema`` of apiextensions-apiserver (1.36) for everything that needs no CEL.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery.errors import FieldError, forbidden, invalid, not_supported, required
from kubemini.machinery.schema.fieldpaths import FieldPathError, field_path
from kubemini.machinery.schema.structure import META_FIELDS, Structure

TYPES = ("array", "boolean", "integer", "number", "object", "string")
REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_UNSUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_newlines = re.compile(r"[\n\r]+").search


@dataclass(frozen=True, slots=True)
class Place:
    """What holds at a place of a schema: why defaults are forbidden ("" = they are not), and whether it is within metadata."""

    no_defaults: str = ""
    in_metadata: bool = False


def keyword_errors(schema: Tree, path: str, place: Place, *, root: bool = False) -> list[FieldError]:
    """Return what is wrong with the keywords of one schema (not of those within it)."""
    errors = _standard(schema, path, place)
    if schema.get("uniqueItems"):
        errors.append(forbidden(f"{path}.uniqueItems", "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"))
    additional = schema.get("additionalProperties")
    if additional is not None and additional is not True and schema.get("properties"):
        errors.append(forbidden(f"{path}.additionalProperties", "additionalProperties and properties are mutual exclusive"))
    return errors


def type_errors(schema: Tree, path: str) -> list[FieldError]:
    """Return what is wrong with the map and list types of one schema, and with the texts of its CEL rules: upstream tells it after the children's."""
    return [*_extensions(schema, path), *_list_map(schema, path), *_keyed_items(schema, path), *rule_texts(schema, path)]


def inner_place(schema: Tree, name: str, place: Place, *, root: bool) -> Place:
    """Return what holds inside a property."""
    if not (root or schema.get("x-kubernetes-embedded-resource")) or name not in META_FIELDS:
        return place
    return replace(place, in_metadata=True, no_defaults=f"in top-level {name}" if root else place.no_defaults)


def map_place(place: Place) -> Place:
    """Return what holds inside additionalProperties."""
    return replace(place, no_defaults="inside additionalProperties applying to object metadata") if place.in_metadata else place


def _standard(schema: Tree, path: str, place: Place) -> list[FieldError]:
    errors: list[FieldError] = []
    type_ = schema.get("type") or ""
    if type_ and type_ not in TYPES:
        errors.append(not_supported(f"{path}.type", type_, TYPES))
    if schema.get("default") is not None and place.no_defaults:
        errors.append(forbidden(f"{path}.default", f"must not be set {place.no_defaults}"))
    for key in _UNSUPPORTED:
        if schema.get(key) or (key in {"additionalItems", "dependencies", "$ref"} and schema.get(key) is not None):
            errors.append(forbidden(f"{path}.{key}", f"{key} is not supported"))
    if type_ == "null":
        errors.append(forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative"))
    if isinstance(schema.get("items"), list):
        errors.append(forbidden(f"{path}.items", "items must be a schema object and not an array"))
    if place.in_metadata and schema.get("x-kubernetes-embedded-resource"):
        errors.append(forbidden(f"{path}.x-kubernetes-embedded-resource", "must not be used inside of resource meta"))
    return errors


def _extensions(schema: Tree, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        errors.append(invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined"))
    errors += _typed(schema, path, "x-kubernetes-map-type", "object", ("atomic", "granular"))
    wrong_list = _typed(schema, path, "x-kubernetes-list-type", "array", ())
    errors += wrong_list
    list_type = schema.get("x-kubernetes-list-type")
    items = schema.get("items")
    if not wrong_list and list_type == "set" and isinstance(items, dict):
        inner = "x-kubernetes-list-type" if items.get("type") == "array" else "x-kubernetes-map-type"
        value = items.get("x-kubernetes-list-type")
        wrong = items.get("type") == "array" and value not in {None, "atomic"}
        if wrong or (items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic"):
            errors.append(invalid(f"{path}.items.{inner}", value, "must be atomic as item of a list with x-kubernetes-list-type=set"))
    if list_type is not None and list_type not in {"atomic", "set", "map"}:
        errors.append(not_supported(f"{path}.x-kubernetes-list-type", list_type, ("atomic", "set", "map")))
    return errors


def _typed(schema: Tree, path: str, key: str, wanted: str, values: tuple[str, ...]) -> list[FieldError]:
    value, type_ = schema.get(key), schema.get("type") or ""
    if value is None:
        return []
    errors: list[FieldError] = []
    if type_ != wanted:
        detail = f"must be {wanted} if {key} is specified"
        errors.append(invalid(f"{path}.type", type_, detail) if type_ else required(f"{path}.type", detail))
    if values and value not in values:
        errors.append(not_supported(f"{path}.{key}", value, values))
    return errors


def _list_map(schema: Tree, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    keys, list_type, items = schema.get("x-kubernetes-list-map-keys") or [], schema.get("x-kubernetes-list-type"), schema.get("items")
    where = f"{path}.x-kubernetes-list-map-keys"
    if keys and list_type != "map":
        detail = "must be map if x-kubernetes-list-map-keys is non-empty"
        place = f"{path}.x-kubernetes-list-type"
        errors.append(required(place, detail) if list_type is None else invalid(place, list_type, detail))
    if list_type != "map":
        return errors
    if not keys:
        errors.append(required(where, "must not be empty if x-kubernetes-list-type is map"))
    if items is None:
        errors.append(required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map"))
    if not isinstance(items, dict):
        return errors
    if items.get("type") != "object":
        errors.append(invalid(f"{path}.items.type", items.get("type") or "", "must be object if parent array's x-kubernetes-list-type is map"))
        return errors
    properties = items.get("properties") or {}
    for index, key in enumerate(keys):
        if key not in properties:
            errors.append(invalid(where, keys, "entries must all be names of item properties"))
        elif properties[key].get("type") in {"array", "object"}:
            detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            errors.append(invalid(f"{path}.items.properties[{key}].type", items.get("type"), detail))
        if key in keys[:index]:
            errors.append(invalid(where, keys, "must not contain duplicate entries"))
    return errors


def _keyed_items(schema: Tree, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    list_type, items = schema.get("x-kubernetes-list-type"), schema.get("items")
    if list_type not in {"set", "map"} or not isinstance(items, dict):
        return errors
    if items.get("nullable"):
        errors.append(forbidden(f"{path}.items.nullable", f"cannot be nullable when x-kubernetes-list-type is {list_type}"))
    if list_type == "set":
        return errors
    for key in schema.get("x-kubernetes-list-map-keys") or ():
        found = (items.get("properties") or {}).get(key)
        if found is None:
            continue
        where = f"{path}.items.properties[{key}]"
        if key not in (items.get("required") or ()) and found.get("default") is None:
            detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            errors.append(required(f"{where}.default", detail))
        if found.get("nullable"):
            errors.append(forbidden(f"{where}.nullable", "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"))
    return errors


def rule_texts(schema: Tree, path: str) -> list[FieldError]:
    """Return what is wrong with the texts around CEL rules."""
    errors: list[FieldError] = []
    for place, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        where = f"{path}.x-kubernetes-validations[{place}]"
        errors += _message_errors(rule, where)
        expression = rule.get("messageExpression") or ""
        if expression and not expression.strip():
            errors.append(required(f"{where}.messageExpression", "messageExpression must be non-empty if specified"))
        if rule.get("reason") is not None and rule["reason"] not in REASONS:
            errors.append(not_supported(f"{where}.reason", rule["reason"], REASONS))
        errors += _field_path_errors(schema, rule.get("fieldPath") or "", f"{where}.fieldPath")
    return errors


def _message_errors(rule: Tree, where: str) -> list[FieldError]:
    text, message = (rule.get("rule") or "").strip(), rule.get("message") or ""
    if not text:
        return [required(f"{where}.rule", "rule is not specified")]
    if message and not message.strip():
        return [invalid(f"{where}.message", message, "must be non-empty if specified")]
    if _newlines(message.strip()):
        return [invalid(f"{where}.message", message, "must not contain line breaks")]
    if _newlines(text) and not message.strip():
        return [required(f"{where}.message", "message must be specified if rule contains line breaks")]
    return []


def _field_path_errors(schema: Tree, path: str, where: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if path and not path.strip():
        errors.append(invalid(where, path, "must be non-empty if specified"))
    if _newlines(path):
        errors.append(invalid(where, path, "must not contain line breaks"))
    if path:
        try:
            field_path(path, Structure(schema).root)
        except FieldPathError:
            errors.append(invalid(where, path, "must be a valid path"))
    return errors


def children(schema: Tree, path: str) -> list[tuple[str, str, Any]]:
    """Return the schemas within compositions of one schema: how, where, what."""
    found: list[tuple[str, str, Any]] = []
    if schema.get("not") is not None:
        found.append(("not", f"{path}.not", schema["not"]))
    for key in ("allOf", "oneOf", "anyOf"):
        found += [(key, f"{path}.{key}[{place}]", each) for place, each in enumerate(schema.get(key) or ())]
    return found
