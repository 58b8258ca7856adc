"""Ill-formed and ill-typed expressions are refused with cel-go's texts and pointers."""

from __future__ import annotations

import pytest

from kubemini.api.trees import Tree
from kubemini.machinery.cel import CelCompileError, Environment, Program
from kubemini.machinery.cel.declared import declared

SCHEMA: Tree = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "list": {"type": "array", "items": {"type": "string"}},
        "port": {"x-kubernetes-int-or-string": True},
        "at": {"type": "string", "format": "date-time"},
        "wait": {"type": "string", "format": "duration"},
        "data": {"type": "string", "format": "byte"},
        "namespace": {"type": "string"},
        "a-b": {"type": "string"},
        "any": {"x-kubernetes-preserve-unknown-fields": True},
        "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "parts": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["id"],
            "items": {"type": "object", "properties": {"id": {"type": "string"}, "n": {"type": "integer"}}},
        },
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}


def environment() -> Environment:
    """Return the environment of a rule on the schema."""
    known = declared(SCHEMA)
    assert known is not None
    return Environment.of_schema(known)


@pytest.mark.parametrize(
    "text,problem",
    [
        ("self +", "ERROR: <input>:1:7: Syntax error: mismatched input '<EOF>' expecting {"),
        ("self.nope", "ERROR: <input>:1:5: undefined field 'nope'\n | self.nope\n | ....^"),
        ("self.name.x", "ERROR: <input>:1:10: type 'string' does not support field selection"),
        ("other", "ERROR: <input>:1:1: undeclared reference to 'other' (in container '')"),
        ("nope(self)", "ERROR: <input>:1:5: undeclared reference to 'nope' (in container '')"),
        ("self.name > 1", "ERROR: <input>:1:11: found no matching overload for '_>_' applied to '(string, int)'"),
        ("self.name.startsWith(1)", "ERROR: <input>:1:21: found no matching overload for 'startsWith' applied to 'string.(int)'"),
        ("self.name.all(x, true)", "expression of type 'string' cannot be range of a comprehension (must be list, map, or dynamic)"),
        ("self.any == 1", "undefined field 'any'"),
        ("[1, 'a']", "expected type 'int' but found 'string'"),
        ("has(self)", "invalid argument to has() macro"),
        ("self.list.map(1, true)", "argument is not an identifier"),
        ("self.name.matches('(')", "invalid matches argument"),
        ("duration('x') > duration('1s')", "invalid duration argument"),
        ("for", "reserved identifier: for"),
        ("'a", "Syntax error: token recognition error at: ''a'"),
        ("99999999999999999999", "Syntax error: invalid int literal"),
        ("(" * 300 + "1" + ")" * 300, "expression recursion limit exceeded: 250"),
    ],
)
def test_refusals(text: str, problem: str) -> None:
    """Each fault is told with its place and a pointer."""
    with pytest.raises(CelCompileError) as caught:
        Program.compile(text, environment())
    assert problem in str(caught.value)


def test_all_faults_are_told() -> None:
    """Several faults come in the order of their places, with lines counted."""
    with pytest.raises(CelCompileError) as caught:
        Program.compile("self.a == 1 &&\n  self.b", environment())
    first, second = str(caught.value).split("\nERROR")
    assert first.startswith("ERROR: <input>:1:5: undefined field 'a'")
    assert second.startswith(": <input>:2:7: undefined field 'b'\n |   self.b\n | ......^")


@pytest.mark.parametrize(
    "text,kind",
    [
        ("self.count + 1", "int"),
        ("self.ratio", "double"),
        ("self.port", "dyn"),
        ("self.at", "timestamp"),
        ("self.wait", "duration"),
        ("self.data", "bytes"),
        ("self.list.map(x, size(x))", "list(int)"),
        ("self.labels", "map(string, string)"),
        ("self.?name", "optional_type(string)"),
        ("self.__namespace__ + self.namespace + self.a__dash__b", "string"),
        ("self.parts[0].n", "int"),
        ("optional.none()", "optional_type(dyn)"),
        ("[]", "list(dyn)"),
        ("self.count > 1.5", "bool"),
    ],
)
def test_types_follow_the_schema(text: str, kind: str) -> None:
    """Fields have the types of their schemas, names that CEL cannot spell are escaped."""
    assert str(Program.compile(text, environment()).result) == kind


@pytest.mark.parametrize(
    "text,self,old,wanted",
    [
        ("self.ratio / 2.0 == 2.5", {"ratio": 5}, {}, True),
        ("self.at < timestamp('2027-01-01T00:00:00Z')", {"at": "2026-01-01T00:00:00Z"}, {}, True),
        ("self.at == oldSelf.at", {"at": "2026-01-01T00:00:00Z"}, {"at": "2026-01-01T01:00:00+01:00"}, True),
        ("self.wait.getMinutes() == 90", {"wait": "1h30m"}, {}, True),
        ("self.data == b'hi'", {"data": "aGk="}, {}, True),
        ("self.set == oldSelf.set", {"set": ["a", "b"]}, {"set": ["b", "a"]}, True),
        ("self.list == oldSelf.list", {"list": ["a", "b"]}, {"list": ["b", "a"]}, False),
        ("self.parts == oldSelf.parts", {"parts": [{"id": "a"}, {"id": "b"}]}, {"parts": [{"id": "b"}, {"id": "a"}]}, True),
        ("self.parts == oldSelf.parts", {"parts": [{"id": "a", "n": 1}]}, {"parts": [{"id": "a", "n": 2}]}, False),
        ("self == oldSelf", {"set": ["a", "b"], "name": "x"}, {"name": "x", "set": ["b", "a"]}, True),
        ("self == oldSelf", {"any": [1]}, {"any": [2]}, False),
        ("(self.set + ['a', 'c']) == ['b', 'a', 'c']", {"set": ["a", "b"]}, {}, True),
        (
            "(self.parts + oldSelf.parts).map(p, p.n) == [2, 3]",
            {"parts": [{"id": "a", "n": 1}]},
            {"parts": [{"id": "a", "n": 2}, {"id": "b", "n": 3}]},
            True,
        ),
        ("type(self.port) == int ? self.port > 1 : self.port == 'http'", {"port": "http"}, {}, True),
        ("'x' in self.labels && self.labels['x'] == 'y'", {"labels": {"x": "y"}}, {}, True),
        ("self.labels.all(k, self.labels[k].startsWith(k))", {"labels": {"a": "ab"}}, {}, True),
        ("has(self.__namespace__) && !has(self.name)", {"namespace": "d"}, {}, True),
    ],
)
def test_values_follow_the_schema(text: str, self: Tree, old: Tree, wanted: object) -> None:
    """Times, durations and bytes are read from their texts; sets and keyed lists compare and add as such."""
    assert Program.compile(text, environment()).evaluate({"self": self, "oldSelf": old}) is wanted
