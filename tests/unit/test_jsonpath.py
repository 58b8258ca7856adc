"""JSONPaths of printer columns find what kubectl shows."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.machinery.jsonpath import compiled, first

OBJECT = {
    "metadata": {"labels": {"a.b/c": "d"}, "a.b": 1},
    "spec": {"list": [1, 2, 3], "items": [{"n": "x", "v": 1, "on": True}, {"n": "y", "v": 2}, {"n": "it's", "v": 3}], "none": None},
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
        (".metadata.labels['a.b/c']", ["d"]),
        (".metadata.labels.*", ["d"]),
        (r".metadata.a\.b", [1]),
        (r".metadata.labels.a\.b/c", ["d"]),
        (".spec.list[0]", [1]),
        (".spec.list[-1]", [3]),
        (".spec.list[9]", []),
        (".spec.list[1:]", [2, 3]),
        (".spec.list[:1]", [1]),
        (".spec.items[?(@.v>1)].n", ["y", "it's"]),
        (".spec.items[?(@.v<=2)].n", ["x", "y"]),
        (".spec.items[?(@.on)].n", ["x"]),
        (".spec.items[?(@.on==true)].n", ["x"]),
        (r".spec.items[?(@.n=='it\'s')].v", [3]),
        (".spec.items[?(@.v=='1')].n", []),
        (".spec.none", [None]),
        (".spec.missing.deeper", []),
        (".spec.list.name", []),
        ("spec.list[0]", [1]),
    ],
)
def test_paths(path: str, found: list[Any]) -> None:
    """Fields, quoted keys, indices, slices, wildcards and filters find their values in order; what is missing yields nothing."""
    assert compiled(path)(OBJECT) == found
    assert first(OBJECT, path) == (found[0] if found else None)


@pytest.mark.parametrize("path", [".spec[", ".spec[?(@.a", ".spec[a]", "..name"])
def test_refusals(path: str) -> None:
    """What is no path of this kind is a ValueError that shows the offending part."""
    with pytest.raises(ValueError, match="unexpected"):
        compiled(path)
