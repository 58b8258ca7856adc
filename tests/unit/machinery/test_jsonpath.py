"""JSONPath of printer columns and selectable fields: what it finds, what cells it makes."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.machinery.jsonpath import JsonPath, JsonPathError, cell

OBJECT: Any = {
    "metadata": {"labels": {"a.b/c": "d"}, "a.b": 1, "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {
        "list": [1, 2, 3],
        "items": [{"n": "x", "v": 1, "on": True}, {"n": "y", "v": 2}, {"n": "it's", "v": 3}],
        "none": None,
        "ratio": 0.5,
        "flag": False,
    },
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Failed", "status": "False"}]},
}


@pytest.mark.parametrize(
    "path,found",
    [
        (".status.conditions[?(@.type=='Failed')].status", ["False"]),
        ('.status.conditions[?(@.type == "Ready")].status', ["True"]),
        ('.status.conditions[?(@.type!="Ready")].type', ["Failed"]),
        (".status.conditions[*].type", ["Ready", "Failed"]),
        (".status.conditions[?(@.type=='Gone')].status", []),
        ("$.metadata.a\\.b", [1]),
        (".metadata.labels['a.b/c']", []),
        (".metadata.labels['a\\.b/c']", ["d"]),
        (".metadata.labels.a\\.b/c", ["d"]),
        (".metadata.labels.*", ["d"]),
        (".spec.list[0]", [1]),
        (".spec.list[-1]", [3]),
        (".spec.list[-2:]", [2, 3]),
        (".spec.list[1:]", [2, 3]),
        (".spec.list[:1]", [1]),
        (".spec.list[0,2]", [1, 3]),
        (".spec['flag','ratio']", [False, 0.5]),
        (".spec.items[?(@.v>1)].n", ["y", "it's"]),
        (".spec.items[?(@.v<=2)].n", ["x", "y"]),
        (".spec.items[?(@.on)].n", ["x"]),
        (".spec.items[?(@.on==true)].n", ["x"]),
        (".spec.items[?(@.n=='it\\'s')].v", [3]),
        (".spec.items[?(@.n==')')].v", []),
        (".spec.gone.x", []),
        (".spec.none", [None]),
        ("..status", [{"conditions": OBJECT["status"]["conditions"]}, "True", "False"]),
    ],
)
def test_what_paths_find(path: str, found: list[Any]) -> None:
    """Fields, slices, unions, filters and recursion find what kubectl finds; absent keys find nothing."""
    assert JsonPath(path).find(OBJECT) == found


@pytest.mark.parametrize(
    "path", [".spec.list[9]", ".spec.list[1:9]", ".spec.flag[0]", ".spec.items[?(@.v=='1')]", ".spec.items[?(@.v=!1)]", "spec.list", ".spec[?(@.x)]"]
)
def test_paths_that_lead_astray(path: str) -> None:
    """Indices out of bounds, values of other types and bare words are errors, which an empty cell stands for."""
    with pytest.raises(JsonPathError):
        JsonPath(path).find(OBJECT)
    assert cell(JsonPath(path), "string", OBJECT, 0.0) is None


@pytest.mark.parametrize(
    "path,problem",
    [
        (".a[0", "unterminated array"),
        (".a[x]", "invalid array index x"),
        (".a[?(@.b", "unterminated filter"),
        (".a[?(@.b)x", "unclosed array expect ]"),
        (".a[?(@.b=='x)]", "unterminated filter"),
        ("....a", "invalid multiple recursive descent"),
        (".a |b", "unrecognized character in action: U+007C '|'"),
    ],
)
def test_malformed_paths(path: str, problem: str) -> None:
    """A path that cannot be parsed says where it fails, in kubectl's words."""
    with pytest.raises(JsonPathError) as refused:
        JsonPath(path)
    assert str(refused.value) == problem


@pytest.mark.parametrize(
    "path,kind,shown",
    [
        (".spec.list[1]", "integer", 2),
        (".spec.ratio", "integer", 0),
        (".spec.list[1]", "number", 2.0),
        (".spec.flag", "boolean", False),
        (".spec.flag", "string", "false"),
        (".spec.list", "string", "[1,2,3]"),
        (".spec.ratio", "string", "0.5"),
        (".spec.flag", "integer", None),
        (".metadata.a\\.b", "boolean", None),
        (".spec.gone", "string", None),
        (".metadata.creationTimestamp", "date", "5m30s"),
        (".metadata.creationTimestamp", "string", "2026-01-01T00:00:00Z"),
        (".status.conditions[0].type", "date", "<invalid>"),
    ],
)
def test_cells_of_printer_columns(path: str, kind: str, shown: Any) -> None:
    """A cell has its column's type, shows dates as ages and containers as JSON, and is null where there is nothing to show."""
    found = cell(JsonPath(path), kind, OBJECT, 1_767_225_600.0 + 330)
    assert (found, type(found)) == (shown, type(shown))


def test_selectable_fields_are_texts() -> None:
    """A selectable field is compared as text, the empty one where it is absent."""
    assert JsonPath(".spec.flag").text_of(OBJECT) == "false"
    assert JsonPath(".spec.gone").text_of(OBJECT) == ""
