"""Laws of CEL: both forms of a compiled expression agree, and costs bound nothing away."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kubemini.machinery.cel import CelEvaluationError, Environment, Program
from kubemini.machinery.cel.compiling import compile_function
from kubemini.machinery.cel.declared import declared

SCHEMA = {
    "type": "object",
    "properties": {
        "n": {"type": "integer"},
        "s": {"type": "string", "maxLength": 10},
        "b": {"type": "boolean"},
        "l": {"type": "array", "maxItems": 5, "items": {"type": "integer"}},
        "m": {"type": "object", "maxProperties": 5, "additionalProperties": {"type": "integer"}},
        "p": {"x-kubernetes-int-or-string": True},
    },
}
SEEN = declared(SCHEMA)
assert SEEN is not None
ENVIRONMENT = Environment.of_schema(SEEN)

objects = st.fixed_dictionaries(
    {},
    optional={
        "n": st.integers(-3, 3) | st.just(2**63 - 1),
        "s": st.sampled_from(["", "a", "ab", "b"]),
        "b": st.booleans(),
        "l": st.lists(st.integers(-2, 3), max_size=3),
        "m": st.dictionaries(st.sampled_from(["a", "b"]), st.integers(-2, 2), max_size=2),
        "p": st.integers(0, 2) | st.sampled_from(["a", "1"]),
    },
)


def _joined(parts: tuple[str, ...]) -> str:
    return "".join(parts)


ints = st.recursive(
    st.sampled_from(["self.n", "1", "0", "-2", "self.l[0]", "self.m['a']", "size(self.s)", "size(self.l)", "self.p"]),
    lambda inner: st.tuples(st.just("("), inner, st.sampled_from([" + ", " - ", " * ", " / ", " % "]), inner, st.just(")")).map(_joined),
    max_leaves=4,
)
strings = st.sampled_from(["self.s", "'a'", "self.s + 'b'", "string(self.n)", "self.p"])
tests = st.one_of(
    st.tuples(ints, st.sampled_from([" == ", " != ", " < ", " >= "]), ints).map(_joined),
    st.tuples(strings, st.sampled_from([" == ", " != "]), strings).map(_joined),
    st.sampled_from(["self.b", "has(self.n)", "has(self.l)", "'a' in self.m", "self.n in self.l", "type(self.p) == int", "self.s.startsWith('a')"]),
    st.tuples(
        st.sampled_from(["self.l.all(x, ", "self.l.exists(x, ", "self.l.exists_one(x, "]),
        st.sampled_from(["x > 0", "x / self.n > 0", "1 / x > 0"]),
        st.just(")"),
    ).map(_joined),
)
conditions = st.recursive(
    tests,
    lambda inner: st.one_of(
        st.tuples(st.just("("), inner, st.sampled_from([" && ", " || "]), inner, st.just(")")).map(_joined),
        inner.map(lambda text: f"!({text})"),
        st.tuples(st.just("("), inner, st.just(" ? "), inner, st.just(" : "), inner, st.just(")")).map(_joined),
    ),
    max_leaves=5,
)


def outcome(program: Program, obj: Any) -> Any:
    """Return the value, or the error's text."""
    try:
        return program.evaluate({"self": obj, "oldSelf": obj})
    except CelEvaluationError as error:
        return str(error)


@given(conditions, objects)
def test_the_quick_form_decides_as_the_careful_one(text: str, obj: Any) -> None:
    """What the quick form answers is what the form that follows CEL's rules about errors to the letter answers, errors included."""
    program = Program.compile(text, ENVIRONMENT)
    careful = compile_function(program.checked, program.parameters, careful=True)
    try:
        wanted: Any = careful(*(obj for _ in program.parameters))
    except CelEvaluationError as error:
        wanted = str(error)
    found = outcome(program, obj)
    assert (type(found), found) == (type(wanted), wanted)


@given(tests, tests, objects)
def test_logic_is_commutative(a: str, b: str, obj: Any) -> None:
    """An error on one side of && or || does not matter where the other side decides, whichever comes first."""
    for operator, deciding in (("&&", False), ("||", True)):
        found = outcome(Program.compile(f"{a} {operator} {b}", ENVIRONMENT), obj)
        turned = outcome(Program.compile(f"{b} {operator} {a}", ENVIRONMENT), obj)
        assert (found is deciding) == (turned is deciding)
        assert isinstance(found, str) == isinstance(turned, str)


@given(conditions)
def test_costs_are_ranges(text: str) -> None:
    """The least cost is not above the greatest, and a condition costs at least as much as its negation's inside."""
    cost = Program.compile(text, ENVIRONMENT).cost()
    assert 0 <= cost.low <= cost.high
    assert Program.compile(f"!({text})", ENVIRONMENT).cost().low >= cost.low
