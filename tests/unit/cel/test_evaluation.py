"""Expressions have the values that the API server gives them."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.machinery.cel import CelEvaluationError, Environment, Program


def value(text: str, **variables: Any) -> Any:
    """Return the value of an expression over variables of unknown type."""
    return Program.compile(text, Environment.dynamic(*variables)).evaluate(variables)


@pytest.mark.parametrize(
    "text,wanted",
    [
        ("-7 / 2", -3),
        ("-7 % 2", -1),
        ("7.0 / 2.0", 3.5),
        ("1.0 / 0.0", float("inf")),
        ("1 < 1.5", True),
        ("dyn(1) == 1.0", True),
        ("dyn(1) == true", False),
        ("2u + 3u", 5),
        ("-9223372036854775808", -(2**63)),
        ("!!true", True),
        ("true ? 'yes' : 'no'", "yes"),
        ("'a' in ['a', 'b']", True),
        ("'a' in {'a': 1}", True),
        ("[1, 2] + [3]", [1, 2, 3]),
        ("{'a': 1}.a", 1),
        ("[1, 2][1]", 2),
        ("size('é')", 1),
        ("'''a\nb'''", "a\nb"),
        (r"'\u00e9\x41\101\n'", "éAA\n"),
        (r"r'\d'", r"\d"),
        (r"b'\xff'", b"\xff"),
        ("type(1) == int && type('a') == string && type(1u) == uint", True),
        ("type(duration('1s')) == google.protobuf.Duration", True),
    ],
)
def test_language(text: str, wanted: object) -> None:
    """Operators, literals and types of the language itself."""
    assert value(text) == wanted


@pytest.mark.parametrize(
    "text,wanted",
    [
        ("[1, 2, 3].all(x, x > 0)", True),
        ("[1, 2, 3].exists(x, x > 2)", True),
        ("[1, 2, 2].exists_one(x, x == 2)", False),
        ("[1, 2, 3].map(x, x * 2)", [2, 4, 6]),
        ("[1, 2, 3].map(x, x > 1, x * 2)", [4, 6]),
        ("[1, 2, 3].filter(x, x != 2)", [1, 3]),
        ("{'b': 2, 'a': 1}.all(k, k < 'c')", True),
        ("[5, 6].all(i, v, i < v)", True),
        ("{'a': 1}.exists(k, v, k == 'a' && v == 1)", True),
        ("[5, 6].transformList(i, v, i + v)", [5, 7]),
        ("[5, 6].transformList(i, v, i > 0, v)", [6]),
        ("{'a': 1, 'b': 2}.transformMap(k, v, v * 2)", {"a": 2, "b": 4}),
        ("{'a': 1}.transformMapEntry(k, v, {k + 'x': v})", {"ax": 1}),
        ("[3, 1, 2].sortBy(x, -x)", [3, 2, 1]),
        ("[[1, 2], [3]].map(l, l.map(x, x + size(l)))", [[3, 4], [4]]),
    ],
)
def test_macros(text: str, wanted: object) -> None:
    """Comprehensions over lists and maps, with one variable and with two."""
    assert value(text) == wanted


@pytest.mark.parametrize(
    "text,wanted",
    [
        ("'Hello'.charAt(1)", "e"),
        ("'hello'.indexOf('l')", 2),
        ("'hello'.lastIndexOf('l')", 3),
        ("'a,b,c'.split(',', 2)", ["a", "b,c"]),
        ("'abc'.split('')", ["a", "b", "c"]),
        ("['a', 'b'].join('-')", "a-b"),
        ("'aaa'.replace('a', 'b', 2)", "bba"),
        ("'Ab'.lowerAscii() + 'Ab'.upperAscii()", "abAB"),
        ("' a '.trim()", "a"),
        ("'hello'.substring(1, 3)", "el"),
        ("'abc'.matches('^a(?i)B')", True),
        ("'a1b22'.findAll('[0-9]+')", ["1", "22"]),
        ("'a1b22'.findAll('[0-9]+', 1)", ["1"]),
        ("'a1'.find('[0-9]')", "1"),
        ("'%s is %s, %s'.format(['a', 'b', string(1.5)])", "a is b, 1.5"),
        ("'%d %x %.2f'.format([dyn(10), dyn(255), dyn(1.0)])", "10 ff 1.00"),
        ("string(1e30)", "1e+30"),
        ("string(duration('1h30m'))", "5400s"),
        ("strings.quote('a\"b')", '"a\\"b"'),
    ],
)
def test_strings(text: str, wanted: object) -> None:
    """String functions, regular expressions and formatting."""
    assert value(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "quantity('1').isGreaterThan(quantity('500m'))",
        "quantity('1Gi').compareTo(quantity('1024Mi')) == 0",
        "quantity('1').add(1).asInteger() == 2",
        "!isQuantity('x') && isQuantity('1e3')",
        "quantity('500m').asApproximateFloat() == 0.5 && !quantity('500m').isInteger()",
        "url('https://a.example:80/p?x=1&x=2').getPort() == '80'",
        "url('https://a.example:80/p?x=1&x=2').getQuery() == {'x': ['1', '2']}",
        "url('https://[::1]:80/').getHostname() == '::1'",
        "isURL('/path') && !isURL('../x')",
        "ip('::1').isLoopback() && ip('10.0.0.1').family() == 4",
        "cidr('10.0.0.0/8').containsIP('10.1.1.1') && !cidr('10.0.0.0/8').containsCIDR('11.0.0.0/16')",
        "string(cidr('10.1.2.3/8').masked()) == '10.0.0.0/8'",
        "semver('1.2.3').isLessThan(semver('1.10.0')) && semver('1.0.0-rc.1').isLessThan(semver('1.0.0'))",
        "isSemver('v1.2', true) && !isSemver('v1.2')",
        "format.dns1123Label().validate('A').hasValue() && !format.dns1123Label().validate('a').hasValue()",
        "format.named('uuid').hasValue() && !format.named('nope').hasValue()",
        "sets.contains([1, 2], [1]) && sets.equivalent([1, 1], [1]) && !sets.intersects([1], [2])",
        "[1, 2, 3].sum() == 6 && [1, 3, 2].max() == 3 && [1, 3, 2].min() == 1 && ![1, 3, 2].isSorted()",
        "[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2",
        "[[1], [2]].flatten() == [1, 2] && [1, 2, 3].slice(1, 3) == [2, 3] && [3, 1].sort() == [1, 3]",
        "[1, 1, 2].distinct() == [1, 2] && [1, 2].reverse() == [2, 1] && lists.range(2) == [0, 1]",
        "duration('90m').getHours() == 1 && duration('1.5s').getMilliseconds() == 1500",
        "timestamp('2026-02-03T04:05:06Z').getMonth() == 1 && timestamp('2026-02-03T04:05:06Z').getHours('+02:00') == 6",
        "timestamp('2026-01-01T00:00:00Z') + duration('24h') == timestamp('2026-01-02T00:00:00Z')",
    ],
)
def test_libraries(text: str) -> None:
    """Kubernetes' libraries: quantities, URLs, addresses, versions, formats, sets, lists, time."""
    assert value(text) is True


def test_optional_values() -> None:
    """Optional selection, indexing, defaults and mapping."""
    tree = {"a": {"b": 1}, "list": [7]}
    assert value("x.?a.?b.orValue(0)", x=tree) == 1
    assert value("x.?a.?c.orValue(0)", x=tree) == 0
    assert value("x.list[?3].hasValue()", x=tree) is False
    assert value("x.?list[0].value()", x=tree) == 7
    assert value("optional.of(1).optMap(n, n + 1).value()") == 2
    assert value("optional.none().or(optional.of(2)).value()") == 2
    assert value("{?'a': optional.none(), 'b': 1}") == {"b": 1}
    assert value("[?optional.of(1), ?optional.none(), 2]") == [1, 2]


@pytest.mark.parametrize(
    "text,problem",
    [
        ("9223372036854775807 + 1", "integer overflow"),
        ("1 / 0", "division by zero"),
        ("1 % 0", "modulus by zero"),
        ("[1][1]", "index out of bounds: 1"),
        ("x.missing", "no such key: missing"),
        ("x.a.d.c", "no such key: c"),
        ("x.a.b > 'a'", "no such overload"),
        ("'abc'.substring(2, 9)", "index out of range: 9"),
        ("duration(string(x.a.b) + ' hour')", "time: invalid duration"),
        ("optional.none().value()", "optional.none() dereference"),
        ("[1, 2].map(i, x.missing)", "no such key: missing"),
    ],
)
def test_errors(text: str, problem: str) -> None:
    """An expression without a value fails with cel-go's text."""
    with pytest.raises(CelEvaluationError) as caught:
        value(text, x={"a": {"b": 1, "d": {}}})
    assert str(caught.value).startswith(problem)


@pytest.mark.parametrize(
    "text,wanted",
    [
        ("x.missing > 1 || true", True),
        ("true || x.missing > 1", True),
        ("x.missing > 1 && false", False),
        ("[1, 2].exists(i, i == 2 || x.missing == i)", True),
        ("['a', 'b'].all(i, x[i] == 1)", False),
        ("has(x.missing) && x.missing > 1", False),
    ],
)
def test_errors_yield_to_a_decision(text: str, wanted: object) -> None:
    """An error beside a deciding operand does not count, on whichever side it stands."""
    assert value(text, x={"b": 2}) is wanted


def test_an_error_that_decides_is_raised() -> None:
    """Without a deciding operand the error is the outcome."""
    with pytest.raises(CelEvaluationError, match="no such key: missing"):
        value("x.missing > 1 || false", x={})
    with pytest.raises(CelEvaluationError, match="no such overload"):
        value("x.all(i, i > 1)", x=[2, "a"])


def test_programs_are_cached_by_text() -> None:
    """The same text in the same environment is compiled once."""
    environment = Environment.dynamic("x")
    assert Program.compile("x + 1", environment) is Program.compile("x + 1", environment)
    assert Program.compile("x + 1", environment).references == frozenset({"x"})


def test_long_chains() -> None:
    """A chain of hundreds of operands is no deeper than one of two."""
    assert value(" || ".join(["x == 1"] * 400), x=2) is False
    assert value(" && ".join(f"x != {n}" for n in range(400)), x=-1) is True
