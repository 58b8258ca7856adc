"""Strategic merge patch: merge keys, directives, order, refusals, as upstream does them."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.api.trees import Tree
from kubemini.machinery.errors import BadRequest, Invalid, ServerError
from kubemini.machinery.strategic import TypeMergeSchema, strategic_merge
from tests.unit.machinery.managed import SCHEMAS


def merged(kind: str, live: Tree, patch: Tree, *, group: str = "", version: str = "v1") -> Tree:
    """Return an object of a built-in kind after a patch."""
    info = SCHEMAS.type_of(group, version, kind)
    assert info is not None
    return strategic_merge(live, patch, TypeMergeSchema(SCHEMAS, info))


def pod(*containers: Tree, **spec: Any) -> Tree:
    """Return a pod of containers."""
    return {"spec": {**({"containers": list(containers)} if containers else {}), **spec}}


A: Tree = {"name": "a", "image": "x"}
B: Tree = {"name": "b", "image": "x"}


def test_containers_and_their_environment_merge_by_name() -> None:
    """An element with a known name merges, one with a new name is added; what the patch does not name stays where it was."""
    live = pod({**A, "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}, B)
    patch = pod({"name": "a", "env": [{"name": "B", "value": "9"}, {"name": "C", "value": "3"}]})
    first, second = merged("Pod", live, patch)["spec"]["containers"]
    assert [(each["name"], each["value"]) for each in first["env"]] == [("A", "1"), ("B", "9"), ("C", "3")]
    assert (first["image"], second) == ("x", B)


def test_new_elements_come_before_those_that_only_the_server_knows() -> None:
    """The order of the patch goes before the live order, so an added element stands first."""
    live: Tree = {"metadata": {"finalizers": ["e.x/a", "e.x/b"]}}
    patch: Tree = {"metadata": {"finalizers": ["e.x/c"]}}
    assert merged("ConfigMap", live, patch) == {"metadata": {"finalizers": ["e.x/c", "e.x/a", "e.x/b"]}}
    assert [each["name"] for each in merged("Pod", pod(A), pod(B))["spec"]["containers"]] == ["b", "a"]


def test_lists_without_a_strategy_are_replaced() -> None:
    """Arguments and tolerations are replaced as a whole."""
    live = pod({**A, "args": ["1", "2"]}, tolerations=[{"key": "k"}])
    new = merged("Pod", live, pod({"name": "a", "args": ["3"]}, tolerations=[]))
    assert new["spec"]["containers"][0]["args"] == ["3"]
    assert new["spec"]["tolerations"] == []


def test_nulls_delete() -> None:
    """A null takes a key out, at any depth; in new values nulls vanish."""
    live: Tree = {"metadata": {"labels": {"a": "1", "b": "2"}}, "data": {"x": "1"}}
    assert merged("ConfigMap", live, {"metadata": {"labels": {"a": None}}, "data": None}) == {"metadata": {"labels": {"b": "2"}}}
    assert merged("ConfigMap", {}, {"data": {"x": None, "y": "1"}}) == {"data": {"y": "1"}}


def test_patch_replace_and_delete_in_a_map() -> None:
    """``$patch: replace`` makes the map the patch's content, ``delete`` empties it."""
    live: Tree = {"data": {"x": "1", "y": "2"}}
    assert merged("ConfigMap", live, {"data": {"$patch": "replace", "z": "3"}}) == {"data": {"z": "3"}}
    assert merged("ConfigMap", live, {"data": {"$patch": "delete"}}) == {"data": {}}
    assert merged("ConfigMap", {}, {"data": {"$patch": "delete"}}) == {}


def test_patch_delete_and_replace_in_a_list() -> None:
    """An element with ``$patch: delete`` takes its match out, one with ``replace`` makes the list the patch's other elements."""
    assert merged("Pod", pod(A, B), pod({"name": "a", "$patch": "delete"})) == pod(B)
    assert merged("Pod", pod(A, B), pod({"$patch": "replace"}, {"name": "c"})) == pod({"name": "c"})


def test_retained_keys() -> None:
    """``$retainKeys`` drops every live key that it does not name."""
    live: Tree = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    patch: Tree = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert merged("Deployment", live, patch, group="apps") == {"spec": {"strategy": {"type": "Recreate"}}}


def test_deletion_from_primitive_lists() -> None:
    """``$deleteFromPrimitiveList`` takes values out before others are added."""
    live: Tree = {"metadata": {"finalizers": ["a/1", "a/2", "a/3"]}}
    patch: Tree = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/1", "a/9"], "finalizers": ["a/4", "a/3"]}}
    assert merged("ConfigMap", live, patch)["metadata"]["finalizers"] == ["a/4", "a/2", "a/3"]
    assert merged("ConfigMap", {"metadata": {}}, patch)["metadata"]["finalizers"] == ["a/4", "a/3"]


@pytest.mark.parametrize(
    "live,patch,order,result",
    [
        ("ab", "c", "cba", "cba"),
        ("ab", "", "ba", "ba"),
        ("abcd", "", "db", "acdb"),
        ("", "ba", "ba", "ba"),
        ("abc", "x", "cx", "abcx"),
        ("", "", "ab", None),
    ],
)
def test_element_order(live: str, patch: str, order: str, result: str | None) -> None:
    """Named elements stand in the given order, the others before the first named one that follows them in the live list."""
    body: Tree = {"$setElementOrder/containers": [{"name": each} for each in order]}
    if patch:
        body["containers"] = [{"name": each, "image": "y"} for each in patch]
    start = {"containers": [{"name": each, "image": "x"} for each in live]} if live else {}
    containers = merged("Pod", {"spec": start}, {"spec": body})["spec"].get("containers")
    assert (None if containers is None else "".join(each["name"] for each in containers)) == result


def test_ports_merge_by_number_alone() -> None:
    """Two ports with one number and different protocols collapse: upstream's defect, kept since clients meet it."""
    live = pod({**A, "ports": [{"containerPort": 53, "protocol": "TCP"}, {"containerPort": 53, "protocol": "UDP"}]})
    new = merged("Pod", live, pod({"name": "a", "ports": [{"containerPort": 53, "name": "dns"}]}))
    assert new["spec"]["containers"][0]["ports"] == [
        {"containerPort": 53, "protocol": "TCP", "name": "dns"},
        {"containerPort": 53, "protocol": "UDP"},
    ]


def test_a_field_with_strategy_replace_is_replaced() -> None:
    """The selector of a PodDisruptionBudget does not merge."""
    live: Tree = {"spec": {"selector": {"matchLabels": {"a": "1"}}}}
    patch: Tree = {"spec": {"selector": {"matchLabels": {"b": "1"}}}}
    assert merged("PodDisruptionBudget", live, patch, group="policy") == patch


def test_the_live_object_is_shared_not_changed() -> None:
    """Untouched parts are the same objects, and neither operand changes."""
    live = pod(A, B)
    patch = pod({"name": "a", "image": "y"})
    new = merged("Pod", live, patch)
    assert new["spec"]["containers"][1] is B
    assert (live, patch) == (pod({"name": "a", "image": "x"}, B), pod({"name": "a", "image": "y"}))


@pytest.mark.parametrize(
    "kind,live,patch,error,text",
    [
        ("Pod", pod(A), pod({"image": "j"}), ServerError, "map: map[image:j] does not contain declared merge key: name"),
        ("Pod", pod(A), pod({"name": "a", "$patch": "bogus"}), ServerError, "unknown patch type: bogus in map: map[$patch:bogus name:a]"),
        ("Pod", pod(A), pod({"name": "a", "$patch": "merge"}), ServerError, "merging lists cannot yet be specified in the patch"),
        ("Pod", pod(A), {"spec": {"$patch": "bogus"}}, ServerError, "unknown patch type: bogus in map: map[$patch:bogus]"),
        (
            "Pod",
            pod(A),
            {"spec": {"$setElementOrder/containers": [{"name": "a"}], "containers": [{"name": "b"}]}},
            ServerError,
            "The order in patch list:\n[map[name:b]]\n doesn't match $setElementOrder list:\n[map[name:a]]\n",
        ),
        ("Pod", pod(A), pod("a"), ServerError, "list element types are not identical: [[map[image:x name:a]] [a]]"),  # type: ignore[arg-type]
        ("Pod", pod(A), pod([A]), ServerError, "list element types are not identical: [[map[image:x name:a]] [[map[image:x name:a]]]]"),  # type: ignore[arg-type]
        ("Pod", pod(A), {"spec": {"$setElementOrder/containers": "a"}}, ServerError, "expected a []interface {}, but received a string"),
        ("Pod", pod(A), {"spec": {"$retainKeys": "a"}}, BadRequest, "invalid patch format of retainKeys"),
        ("Pod", pod(A), {"spec": {"$retainKeys": ["a"], "hostname": "x"}}, BadRequest, "invalid patch format of retainKeys"),
        ("ConfigMap", {"metadata": {}}, {"metadata": {"$deleteFromPrimitiveListX": ["a"]}}, BadRequest, "invalid patch format of primitive list"),
        ("ConfigMap", {"metadata": {}}, {"metadata": {"$setElementOrderX": ["a"]}}, BadRequest, "invalid patch format of setElementOrder list"),
        (
            "ConfigMap",
            {"metadata": {"finalizers": [["a"]]}},
            {"metadata": {"finalizers": [["b"]]}},
            Invalid,
            "the server rejected our request due to an error in our request",
        ),
    ],
)
def test_malformed_patches(kind: str, live: Tree, patch: Tree, error: type[Exception], text: str) -> None:
    """Directives of a wrong shape are bad requests, other contradictions bare 500s, lists of lists the generic 422."""
    with pytest.raises(error) as refused:
        merged(kind, live, patch)
    assert str(refused.value) == text
