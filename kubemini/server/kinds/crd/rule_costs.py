"""CEL rules of a CRD: that they compile, give a bool, may look back where they do, and cannot cost too much.

Mirrors the CEL half of ``ValidateCustomResourceDefinitionOpenAPISchema`` and ``cel_validation.go`` of apiextensions-apiserver (1.36).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from kubemini.api.trees import Tree
from kubemini.machinery.cel import CelCompileError, Environment, Program
from kubemini.machinery.cel.costs import UNBOUNDED
from kubemini.machinery.cel.declared import MAX_REQUEST, declared
from kubemini.machinery.cel.types import Declared
from kubemini.machinery.errors import FieldError, forbidden, invalid
from kubemini.server.kinds.internal_types import Struct

EXPRESSION_LIMIT = 10_000_000
"""The most that one rule may cost, over all places where it may be evaluated."""
SCHEMA_LIMIT = 100_000_000
"""The most that all rules of a schema may cost together."""
_RULE: Final = Struct(Rule="", Message="", MessageExpression="", Reason=None, FieldPath="", OptionalOldSelf=None)
_ADVICE = "try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared"


@dataclass(slots=True)
class TotalCost:
    """What the rules of a schema cost together, and the four most expensive ones."""

    total: int = 0
    most_expensive: list[tuple[int, str]] = field(default_factory=list)

    def add(self, path: str, cost: int) -> None:
        """Count an expression."""
        self.total = min(self.total + cost, UNBOUNDED)
        if cost < SCHEMA_LIMIT // 100:
            return
        self.most_expensive.append((cost, path))
        self.most_expensive.sort(key=lambda each: -each[0])
        del self.most_expensive[4:]

    def errors(self, path: str) -> list[FieldError]:
        """Return the refusals of a schema whose rules cost too much together."""
        if self.total <= SCHEMA_LIMIT:
            return []
        detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
        errors = [forbidden(where, detail) for _, where in self.most_expensive]
        errors.append(
            forbidden(path, excess("x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema", self.total, SCHEMA_LIMIT))
        )
        return errors


def excess(what: str, cost: int, limit: int) -> str:
    """Return the text about a cost over its limit."""
    factor = cost / limit
    shown = "more than 100x" if factor > 100 else f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"{what} exceeds budget by factor of {shown} ({_ADVICE})"


def multiplied(cardinality: int | None, schema: Tree) -> int | None:
    """Return how often what is inside a schema may occur, None when there is no bound."""
    if cardinality is None:
        return None
    if schema.get("type") == "array":
        limit = schema.get("maxItems")
    elif schema.get("type") == "object" and schema.get("additionalProperties") is not None:
        limit = schema.get("maxProperties")
    else:
        return cardinality
    return None if limit is None else min(cardinality * max(0, limit), UNBOUNDED)


def rule_errors(
    schema: Tree, path: str, *, root: bool, cardinality: int | None, uncorrelatable: str, total: TotalCost, limited: bool = True
) -> list[FieldError]:
    """Return what is wrong with the CEL rules of one schema. `uncorrelatable` is the path within which old values cannot be told, "" = none."""
    rules = schema.get("x-kubernetes-validations") or []
    if not rules:
        return []
    known = declared(schema, root=root or bool(schema.get("x-kubernetes-embedded-resource")))
    where = f"{path}.x-kubernetes-validations"
    if known is None:
        detail = "internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations"
        return [FieldError("InternalError", where, f"Internal error: {detail}")]
    errors: list[FieldError] = []
    for place, rule in enumerate(rules):
        errors += _one(rule, f"{where}[{place}]", known, cardinality, uncorrelatable, total, limited=limited)
    return errors


def _one(
    rule: Tree, where: str, known: Declared, cardinality: int | None, uncorrelatable: str, total: TotalCost, *, limited: bool
) -> list[FieldError]:
    text = rule.get("rule") or ""
    environment = Environment.of_schema(known, optional_old=bool(rule.get("optionalOldSelf")))
    shown = _RULE.shown(rule)
    try:
        program = Program.compile(text, environment)
    except CelCompileError as error:
        return [invalid(f"{where}.rule", shown, f"compilation failed: {error}")]
    if program.result.kind != "bool":
        return [invalid(f"{where}.rule", shown, "cel expression must evaluate to a bool")]
    errors: list[FieldError] = []
    times = cardinality if cardinality is not None else MAX_REQUEST // (known.min_size + 1)
    cost = min(program.cost().high * times, UNBOUNDED)
    if limited and cost > EXPRESSION_LIMIT:
        errors.append(forbidden(f"{where}.rule", excess("estimated rule cost", cost, EXPRESSION_LIMIT)))
    total.add(f"{where}.rule", cost)
    errors += _message(rule, f"{where}.messageExpression", environment, shown, total, limited=limited)
    if "oldSelf" in program.references:
        if uncorrelatable:
            errors.append(
                invalid(f"{where}.rule", text, f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelatable}")
            )
    elif rule.get("optionalOldSelf") is not None:
        errors.append(invalid(f"{where}.optionalOldSelf", rule["optionalOldSelf"], "may not be set if oldSelf is not used in rule"))
    return errors


def _message(rule: Tree, where: str, environment: Environment, shown: Tree, total: TotalCost, *, limited: bool) -> list[FieldError]:
    text = rule.get("messageExpression")
    if not text:
        return []
    try:
        program = Program.compile(text, environment)
    except CelCompileError as error:
        return [invalid(where, shown, f"messageExpression compilation failed: {error}")]
    if program.result.kind != "string":
        return [invalid(where, shown, "messageExpression must evaluate to a string")]
    cost = program.cost().high
    total.add(where, cost)
    if limited and cost > EXPRESSION_LIMIT:
        return [forbidden(where, excess("estimated messageExpression cost", cost, EXPRESSION_LIMIT))]
    return []
