"""Validation of the schemas of a CustomResourceDefinition, in upstream's order: structure, defaults, keywords, CEL, total cost.

Mirrors ``validateCustomResourceDefinitionValidation`` of apiextensions-apiserver (1.36).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery.errors import FieldError, forbidden, invalid
from kubemini.machinery.schema.cleaning import Uncoercible, clean
from kubemini.machinery.schema.keywords import NO_PATH, ROOT
from kubemini.machinery.schema.structure import META_FIELDS, Node, Structure
from kubemini.machinery.schema.validating import Findings, validate
from kubemini.server.kinds.crd.schema_rules import Place, children, inner_place, keyword_errors, map_place, type_errors
from kubemini.server.kinds.crd.structural_rules import has_structure, validate_structural

_ALLOWED_AT_ROOT = {
    "description": "Description",
    "type": "Type",
    "format": "Format",
    "title": "Title",
    "maximum": "Maximum",
    "exclusiveMaximum": "ExclusiveMaximum",
    "minimum": "Minimum",
    "exclusiveMinimum": "ExclusiveMinimum",
    "maxLength": "MaxLength",
    "minLength": "MinLength",
    "pattern": "Pattern",
    "maxItems": "MaxItems",
    "minItems": "MinItems",
    "uniqueItems": "UniqueItems",
    "multipleOf": "MultipleOf",
    "required": "Required",
    "items": "Items",
    "properties": "Properties",
    "externalDocs": "ExternalDocs",
    "example": "Example",
    "x-kubernetes-preserve-unknown-fields": "XPreserveUnknownFields",
    "x-kubernetes-validations": "XValidations",
}


def validate_schema(schema: Tree, path: str, *, status: bool, limited: bool = True) -> list[FieldError]:
    """Return what is wrong with the schema of a version. `status` tells whether ``/status`` is served, `limited` whether costs of rules are limited."""
    errors = _root_errors(schema, path) if status else []
    if schema.get("nullable"):
        errors.append(forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    cel = False
    if has_structure(schema):
        found = validate_structural(schema, path) or _default_errors(schema, path)
        errors += found
        cel = not found
    walk = _Walk(cel=cel, limited=limited)
    keywords, rules = walk.visit(schema, path, Place(), root=True, cardinality=1, uncorrelatable="", proper=True)
    errors += [*keywords, *rules]
    if walk.total is not None:
        errors += walk.total.errors(path)
    return errors


def _root_errors(schema: Tree, path: str) -> list[FieldError]:
    if schema.get("type") != "object":
        detail = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        return [invalid(f"{path}.type", schema.get("type") or "", detail)] if schema.get("type") else []
    for key, value in schema.items():
        if value and key not in _ALLOWED_AT_ROOT:
            listed = " ".join(_ALLOWED_AT_ROOT.values())
            return [invalid(path, schema, f"only [{listed}] fields are allowed at the root of the schema if the status subresource is enabled")]
    return []


@dataclass(slots=True)
class _Walk:
    """One pass over a schema: keyword errors and CEL errors apart, because rules are only compiled where the keywords below are right."""

    cel: bool
    limited: bool
    total: Any = field(default=None)

    def visit(
        self, schema: Tree, path: str, place: Place, *, root: bool, cardinality: int | None, uncorrelatable: str, proper: bool
    ) -> tuple[list[FieldError], list[FieldError]]:
        """Return the keyword errors and the CEL errors of a schema and of all within it. `proper` is false inside compositions."""
        keywords = keyword_errors(schema, path, place)
        rules: list[FieldError] = []

        def inside(child: Any, where: str, at: Place, *, counted: int | None, blind: str, real: bool) -> None:
            if isinstance(child, dict):
                found = self.visit(child, where, at, root=False, cardinality=counted, uncorrelatable=blind, proper=real)
                keywords.extend(found[0])
                rules.extend(found[1])

        from kubemini.server.kinds.crd.rule_costs import multiplied

        inner = multiplied(cardinality, schema)
        inside(schema.get("additionalProperties"), f"{path}.additionalProperties", map_place(place), counted=inner, blind=uncorrelatable, real=proper)
        for name, child in (schema.get("properties") or {}).items():
            at = inner_place(schema, name, place, root=root)
            inside(child, f"{path}.properties[{name}]", at, counted=inner, blind=uncorrelatable, real=proper)
        for _, where, child in children(schema, path):
            inside(child, where, place, counted=None, blind=uncorrelatable, real=False)
        blind = uncorrelatable or ("" if schema.get("x-kubernetes-list-type") == "map" else path)
        items = schema.get("items")
        inside(items, f"{path}.items", place, counted=inner, blind=blind, real=proper)
        keywords += type_errors(schema, path)
        if not keywords and self.cel and proper and schema.get("x-kubernetes-validations"):
            rules += self._rules(schema, path, root=root, cardinality=cardinality, uncorrelatable=uncorrelatable)
        return keywords, rules

    def _rules(self, schema: Tree, path: str, *, root: bool, cardinality: int | None, uncorrelatable: str) -> list[FieldError]:
        # Imported here: most definitions have no rules, and CEL is a large module.
        from kubemini.server.kinds.crd.rule_costs import TotalCost, rule_errors

        if self.total is None:
            self.total = TotalCost()
        return rule_errors(schema, path, root=root, cardinality=cardinality, uncorrelatable=uncorrelatable, total=self.total, limited=self.limited)


# ----------------------------------------------------------------------------------------------- defaults


def _default_errors(schema: Tree, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    _defaults(Structure(schema).root, path, errors, in_metadata=False)
    return errors


def _defaults(node: Node, path: str, errors: list[FieldError], *, in_metadata: bool) -> None:
    if node.embedded:
        in_metadata = False
    if node.default is not None:
        errors += _one_default(node, f"{path}.default", in_metadata=in_metadata)
    if node.items is not None:
        _defaults(node.items, f"{path}.items", errors, in_metadata=in_metadata)
    whole = node.is_root or node.embedded
    for name, child in node.properties.items():
        _defaults(child, f"{path}.properties[{name}]", errors, in_metadata=in_metadata or (whole and name in META_FIELDS))


def _one_default(node: Node, path: str, *, in_metadata: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    dropped: list[str] = []
    try:
        pruned = clean(node, node.default, dropped)
    except Uncoercible as problem:
        return [invalid(path, node.default, problem.text())]
    if dropped and not in_metadata:
        errors.append(invalid(path, node.default, "must not have unknown fields"))
    del pruned
    found = Findings()
    validate(node, node.default, ROOT, found)
    broken = [replace(each, field=_placed(path, each.field)) for each in (*found.embedded, *found.schema)]
    if broken or not node.has_rules:
        return errors + broken
    return errors + _broken_rules(node, path)


def _placed(path: str, within: str) -> str:
    if within in {"", NO_PATH}:
        return path
    return f"{path}{within}" if within.startswith("[") else f"{path}.{within}"


def _broken_rules(node: Node, path: str) -> list[FieldError]:
    """Return the CEL rules that a default breaks, as an unchanged value and as a new one."""
    from kubemini.machinery.schema.ruling import evaluate, ruled

    rules = ruled(node)
    errors: list[FieldError] = []
    if rules is not None:
        evaluate(rules, node.default, (ROOT, ".", path), errors, node.default)
        if not errors:
            evaluate(rules, node.default, (ROOT, ".", path), errors)
    return errors
