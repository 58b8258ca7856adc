"""Estimated costs are those that the API server computes: they decide which CRDs are refused."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.api.trees import Tree
from kubemini.machinery.cel import Environment, Program
from kubemini.machinery.cel.declared import declared

STRING: Tree = {"type": "string"}


def cost(schema: Tree, rule: str) -> int:
    """Return the most that a rule may cost."""
    known = declared(schema)
    assert known is not None
    return Program.compile(rule, Environment.of_schema(known)).cost().high


def array(items: Tree, **more: Any) -> Tree:
    """Return the schema of a list."""
    return {"type": "array", "items": items, **more}


@pytest.mark.parametrize(
    "schema,rule,wanted",
    [
        (array({"type": "boolean"}, maxItems=5), "self.all(x, true)", 17),
        (array({"type": "number"}), "self.all(x, true)", 4_718_591),
        (array(STRING), "self.all(x, true)", 3_145_727),
        (array({"type": "number"}, maxItems=10), "self.all(x, self.all(y, true))", 352),
        (STRING, "self.contains('test')", 314_574),
        ({**STRING, "maxLength": 10}, "self.contains('test')", 5),
        (STRING, "self.startsWith('test')", 2),
        (STRING, "self.matches('x')", 314_574),
        ({**STRING, "enum": ["A", "LongValue"]}, "self.contains('A')", 2),
        (array(STRING), "self[1] == self[1]", 314_577),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "oldSelf.size() == self.size()", 5),
        ({"type": "object", "properties": {"a": {"type": "integer"}}}, "!has(self.a) || self.a > 1", 5),
        (array({**STRING, "maxLength": 10}, maxItems=10), "self.join(' ') == 'aa bb'", 43),
        (array({**STRING, "maxLength": 10}, maxItems=10), "self.isSorted()", 51),
    ],
)
def test_known_costs(schema: Tree, rule: str, wanted: int) -> None:
    """Costs follow sizes: stated bounds, or what fits into a request."""
    assert cost(schema, rule) == wanted


def test_bounds_lower_the_cost() -> None:
    """A bound on a list or a string lowers what a rule over it may cost."""
    assert cost(array(STRING, maxItems=3), "self.all(x, x != '')") < cost(array(STRING), "self.all(x, x != '')")
    assert cost({**STRING, "maxLength": 5}, "self == 'x' || self.size() > 3") <= cost(STRING, "self == 'x' || self.size() > 3")
