"""JSON merge patch and JSON patch: results, sharing, refusals."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.machinery.errors import BadRequest, Invalid, TooLarge
from kubemini.machinery.jsonpatch import json_patch
from kubemini.machinery.merge import merge_patch

DOC: Any = {"a": {"b": [1, {"c": 2}, 3]}, "x/y": {"~": 1}, "s": "t"}


@pytest.mark.parametrize(
    "live,patch,result",
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({}, {"a": [1, None, {"b": None, "c": 1}]}, {"a": [1, {"c": 1}]}),
        ({"a": [1]}, {"a": [True]}, {"a": [True]}),
        ({"a": 1}, {"a": True}, {"a": True}),
    ],
)
def test_merge_patches(live: Any, patch: Any, result: Any) -> None:
    """Objects merge, nulls delete and vanish from new values, everything else replaces; true is not 1."""
    merged = merge_patch(live, patch)
    assert merged == result
    assert [type(each) for each in merged.values()] == [type(each) for each in result.values()]


def test_merge_patches_share_what_they_leave() -> None:
    """A patch that changes nothing returns the object itself, another one all untouched subtrees."""
    live: Any = {"a": {"b": {"c": 1}}, "d": {"e": [1, 2]}}
    assert merge_patch(live, {"a": {"b": {"c": 1}, "x": None}, "d": {"e": [1, 2]}}) is live
    new = merge_patch(live, {"a": {"x": 1}})
    assert new["d"] is live["d"]
    assert new["a"]["b"] is live["a"]["b"]


@pytest.mark.parametrize(
    "operation,result",
    [
        ({"op": "add", "path": "/a/b/1", "value": 9}, {**DOC, "a": {"b": [1, 9, {"c": 2}, 3]}}),
        ({"op": "add", "path": "/a/b/-", "value": 9}, {**DOC, "a": {"b": [1, {"c": 2}, 3, 9]}}),
        ({"op": "add", "path": "/a/b/3", "value": 9}, {**DOC, "a": {"b": [1, {"c": 2}, 3, 9]}}),
        ({"op": "add", "path": "/s", "value": None}, {**DOC, "s": None}),
        ({"op": "add", "path": "/n"}, {**DOC, "n": None}),
        ({"op": "add", "path": "/x~1y/~0", "value": 2}, {**DOC, "x/y": {"~": 2}}),
        ({"op": "add", "path": "", "value": {"k": 1}}, {"k": 1}),
        ({"op": "remove", "path": "/a/b/1/c"}, {**DOC, "a": {"b": [1, {}, 3]}}),
        ({"op": "remove", "path": "/a/b/-1"}, {**DOC, "a": {"b": [1, {"c": 2}]}}),
        ({"op": "replace", "path": "/a/b/0", "value": 0}, {**DOC, "a": {"b": [0, {"c": 2}, 3]}}),
        ({"op": "replace", "path": "", "value": {}}, {}),
        ({"op": "move", "from": "/a/b/1", "path": "/m"}, {**DOC, "a": {"b": [1, 3]}, "m": {"c": 2}}),
        ({"op": "copy", "from": "/a/b/1", "path": "/m"}, {**DOC, "m": {"c": 2}}),
        ({"op": "test", "path": "/a/b", "value": [1.0, {"c": 2}, 3]}, DOC),
        ({"op": "test", "path": "/gone", "value": None}, DOC),
    ],
)
def test_json_patches(operation: Any, result: Any) -> None:
    """Each operation does what RFC 6902 says, and what evanphx/json-patch adds to it."""
    assert json_patch(DOC, [operation]) == result


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "add", "path": "/gone/x", "value": 1},
        {"op": "add", "path": "/a/b/4", "value": 1},
        {"op": "add", "path": "/a/b/x", "value": 1},
        {"op": "add", "path": "/s/x", "value": 1},
        {"op": "add", "path": "a", "value": 1},
        {"op": "remove", "path": "/gone"},
        {"op": "remove", "path": "/a/b/3"},
        {"op": "remove", "path": ""},
        {"op": "replace", "path": "/gone", "value": 1},
        {"op": "replace", "path": "/a/b/3", "value": 1},
        {"op": "replace", "path": "", "value": "x"},
        {"op": "move", "from": "/gone", "path": "/m"},
        {"op": "copy", "path": "/m"},
        {"op": "test", "path": "/s", "value": "u"},
        {"op": "test", "path": "/a/b/0", "value": True},
        {"op": "bogus", "path": "/s"},
        {"op": "add", "value": 1},
        {"op": "replace", "path": "/a/b/１", "value": 1},
        {"op": "replace", "path": "/a/b/²", "value": 1},
    ],
)
def test_json_patches_that_do_not_apply(operation: Any) -> None:
    """An operation that does not apply is the generic 422 without details, and nothing of the patch happens."""
    before = {**DOC}
    with pytest.raises(Invalid) as refused:
        json_patch(before, [{"op": "add", "path": "/z", "value": 1}, operation])
    assert refused.value.to_status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "the server rejected our request due to an error in our request",
        "reason": "Invalid",
        "code": 422,
    }
    assert before == DOC


@pytest.mark.parametrize(
    "body,text",
    [
        ({"op": "add"}, "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
        ([1], "error decoding patch: json: cannot unmarshal number into Go value of type handlers.jsonPatchOp"),
        ([{"op": 1}], "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string"),
    ],
)
def test_malformed_json_patches(body: Any, text: str) -> None:
    """A body that is no list of operations is a bad request."""
    with pytest.raises(BadRequest) as refused:
        json_patch(DOC, body)
    assert refused.value.message == text


def test_json_patches_have_a_limit() -> None:
    """More than 10,000 operations are too many."""
    with pytest.raises(TooLarge, match="The allowed maximum operations in a JSON patch is 10000, got 10001"):
        json_patch({"a": 1}, [{"op": "test", "path": "/a", "value": 1}] * 10_001)


def test_copies_do_not_grow_without_end() -> None:
    """What the ``copy`` operations of one patch add together is bounded: twenty doublings are not applied."""
    live = {"a": ["x" * 20]}
    double = {"op": "copy", "from": "/a", "path": "/a/-"}
    assert len(json_patch(live, [double] * 5)["a"]) == 6
    with pytest.raises(Invalid):
        json_patch(live, [double] * 40)


def test_copies_do_not_nest_without_end() -> None:
    """A patch cannot make an object that is too deep to be written."""
    with pytest.raises(Invalid):
        json_patch({"a": {}}, [{"op": "copy", "from": "/a", "path": "/a/x"}] * 300)
