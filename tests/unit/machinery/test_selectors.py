"""Label and field selectors: grammar, matching, texts of refusals."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.machinery.errors import BadRequest
from kubemini.machinery.fields import parse_fields
from kubemini.machinery.labels import EVERYTHING, NOTHING, from_label_selector, from_labels, parse_selector, validate_label_selector

LABELS = {"app": "x", "tier": "", "n": "5"}


@pytest.mark.parametrize(
    "text,matches,shown",
    [
        ("", True, ""),
        ("app", True, "app"),
        ("!app", False, "!app"),
        ("!gone", True, "!gone"),
        ("app=x", True, "app=x"),
        ("app==x", True, "app==x"),
        ("app = x , tier=", True, "app=x,tier="),
        ("app!=x", False, "app!=x"),
        ("gone!=x", True, "gone!=x"),
        ("gone=", False, "gone="),
        ("app in (y, x)", True, "app in (x,y)"),
        ("tier in (,a)", True, "tier in (,a)"),
        ("tier in ()", True, "tier in ()"),
        ("app notin (x)", False, "app notin (x)"),
        ("gone notin (x)", True, "gone notin (x)"),
        ("n>4", True, "n>4"),
        ("n<5", False, "n<5"),
        ("app>4", False, "app>4"),
        ("gone<4", False, "gone<4"),
        ("z,app=x", False, "app=x,z"),
        ("in in (in),notin=in", False, "in in (in),notin=in"),
        ("app=x,app!=y", True, "app=x,app!=y"),
    ],
)
def test_label_selectors(text: str, matches: bool, shown: str) -> None:
    """Every form of requirement matches as upstream's; the text form is sorted by key."""
    selector = parse_selector(text)
    assert selector.matches(LABELS) is matches
    assert str(selector) == shown


@pytest.mark.parametrize(
    "text,problem",
    [
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
        ("a in (=)", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
        ("a in (b,=)", "unable to parse requirement: found '=', expected: ',', or identifier"),
        ("a=(", "unable to parse requirement: found '(', expected: identifier"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("a,", "found '', expected: identifier after ','"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("=b", "found '=', expected: !, identifier, or 'end of string'"),
        ("a>x", "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer"),
    ],
)
def test_malformed_label_selectors(text: str, problem: str) -> None:
    """A selector that cannot be parsed is a bad request in upstream's words."""
    with pytest.raises(BadRequest) as refused:
        parse_selector(text)
    assert refused.value.message == problem


def test_bad_keys_and_values_are_told_like_field_errors() -> None:
    """A bad key has no path, a bad value the path of its requirement."""
    with pytest.raises(BadRequest, match=r'^unable to parse requirement: <nil>: Invalid value: "a/b/c": a valid label key'):
        parse_selector("a/b/c=d")
    with pytest.raises(BadRequest, match=r'^unable to parse requirement: values\[0\]\[a\]: Invalid value: "-": a valid label must'):
        parse_selector("a in (-)")


def test_selector_objects() -> None:
    """A null selector selects nothing, an empty one everything, labels and expressions together."""
    assert from_label_selector(None) is NOTHING
    assert not NOTHING.matches({})
    assert from_label_selector({}) is EVERYTHING
    tree: Any = {
        "matchLabels": {"app": "x"},
        "matchExpressions": [{"key": "n", "operator": "Exists"}, {"key": "b", "operator": "NotIn", "values": ["2", "1"]}],
    }
    selector = from_label_selector(tree)
    assert str(selector) == "app=x,b notin (1,2),n"
    assert selector.matches(LABELS)
    assert from_label_selector(tree) is selector
    with pytest.raises(ValueError, match='"Near" is not a valid label selector operator'):
        from_label_selector({"matchExpressions": [{"key": "a", "operator": "Near"}]})


def test_equalities_are_what_an_index_may_use() -> None:
    """Only requirements that fix one value count, however they are written."""
    selector = parse_selector("a=1,b in (2),c in (3,4),d!=5,e")
    assert selector.equalities == (("a", "1"), ("b", "2"))
    assert selector.value_of("b") == "2"
    assert selector.value_of("c") is None
    assert from_labels({"x": "1"}).equalities == (("x", "1"),)


def test_selectors_are_values() -> None:
    """Equal selectors are equal, and nothing is not everything."""
    assert parse_selector("a=1,b") == parse_selector("b,a=1")
    assert len({parse_selector("a"), parse_selector(" a ")}) == 1
    assert EVERYTHING != NOTHING
    assert EVERYTHING.matches(None)


@pytest.mark.parametrize(
    "tree,text",
    [
        ({"matchLabels": {"/": "x"}}, 'f.matchLabels: Invalid value: "/"'),
        (
            {"matchExpressions": [{"key": "a", "operator": "In"}]},
            "f.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or",
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]},
            "f.matchExpressions[0].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "Near"}]},
            'f.matchExpressions[0].operator: Invalid value: "Near": not a valid selector operator',
        ),
        ({"matchExpressions": [{"key": "", "operator": "Exists"}]}, 'f.matchExpressions[0].key: Invalid value: "": name part must be non-empty'),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["-"]}]}, 'f.matchExpressions[0].values[0]: Invalid value: "-"'),
    ],
)
def test_faults_of_selector_objects(tree: Any, text: str) -> None:
    """Each broken rule of a LabelSelector is told at its path."""
    assert str(validate_label_selector(tree, "f")[0]).startswith(text)
    assert validate_label_selector(None, "f") == []


POD = {"metadata": {"name": "p", "namespace": "d"}, "spec": {"nodeName": "n1"}, "status": {}}
EXTRACTORS = {"spec.nodeName": lambda pod: pod["spec"].get("nodeName", ""), "status.phase": lambda pod: pod["status"].get("phase", "")}


@pytest.mark.parametrize(
    "text,matches,shown",
    [
        ("", True, ""),
        ("metadata.name=p", True, "metadata.name=p"),
        ("spec.nodeName==n1,status.phase=", True, "spec.nodeName=n1,status.phase="),
        ("status.phase!=Running", True, "status.phase!=Running"),
        ("metadata.namespace!=d", False, "metadata.namespace!=d"),
        (r"spec.nodeName=a\,b\=c\\", False, r"spec.nodeName=a\,b\=c\\"),
        (",metadata.name=p,", True, "metadata.name=p"),
        ("=", True, ""),
    ],
)
def test_field_selectors(text: str, matches: bool, shown: str) -> None:
    """Terms are compared as texts, absent fields as the empty one."""
    selector = parse_fields(text)
    assert selector.matches(POD, EXTRACTORS) is matches
    assert str(selector) == shown


@pytest.mark.parametrize(
    "text,problem",
    [
        ("a", "invalid selector: 'a'; can't understand 'a'"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        (r"a=b\x", r"invalid field selector: invalid escape sequence: \x"),
        ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
    ],
)
def test_malformed_field_selectors(text: str, problem: str) -> None:
    """A selector that cannot be parsed is a bad request in upstream's words."""
    with pytest.raises(BadRequest) as refused:
        parse_fields(text)
    assert refused.value.message == problem


def test_unknown_fields_are_refused() -> None:
    """Kinds with fields of their own answer otherwise than those without."""
    selector = parse_fields("spec.x=1,metadata.name=p")
    assert (selector.name, selector.namespace, selector.value_of("spec.x")) == ("p", None, "1")
    selector.check(["spec.x"])
    with pytest.raises(BadRequest, match=r"^field label not supported: spec\.x$"):
        selector.check(["spec.y"], kind="Pod")
    with pytest.raises(BadRequest, match=r'^"spec\.x" is not a known field selector: only "metadata\.name", "metadata\.namespace"$'):
        selector.check([])
