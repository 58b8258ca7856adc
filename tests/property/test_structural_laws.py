"""Laws of structural schemas: decoding settles, and what did not change is never refused."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubemini.api.trees import Tree
from kubemini.machinery.schema.contract import Undecodable
from kubemini.machinery.schema.structural import StructuralCodec

NAMES = ("a", "b", "c")

leaves = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("string")}, optional={"maxLength": st.integers(0, 3), "enum": st.just(["x", "yy"]), "default": st.just("x")}
    ),
    st.fixed_dictionaries({"type": st.just("integer")}, optional={"minimum": st.integers(-1, 2), "default": st.just(2), "nullable": st.just(True)}),
    st.just({"type": "boolean"}),
    st.just({"x-kubernetes-int-or-string": True}),
    st.just({"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
)


def _containers(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    records = st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)},
        optional={"required": st.just(["a"]), "x-kubernetes-preserve-unknown-fields": st.just(True), "default": st.just({})},
    )
    maps = st.fixed_dictionaries({"type": st.just("object"), "additionalProperties": inner}, optional={"maxProperties": st.integers(0, 2)})
    lists = st.fixed_dictionaries({"type": st.just("array"), "items": inner}, optional={"maxItems": st.integers(0, 2), "nullable": st.just(True)})
    return records | maps | lists


schemas = st.recursive(leaves, _containers, max_leaves=8)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from(["", "x", "yy", "long"]) | st.just(1.5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from((*NAMES, "odd")), inner, max_size=3),
    max_leaves=10,
)


def codec(schema: Tree) -> StructuralCodec:
    """Return the codec of a kind whose spec has a schema."""
    return StructuralCodec({"type": "object", "properties": {"spec": schema}}, group="example.com", version="v1", kind="Gear")


def gear(spec: Any) -> Tree:
    """Return an object."""
    return {"apiVersion": "example.com/v1", "kind": "Gear", "metadata": {"name": "g"}, "spec": spec}


def copied(tree: Tree) -> Tree:
    """Return an equal tree that shares nothing."""
    new: Tree = orjson.loads(orjson.dumps(tree))
    return new


def decoded(of_kind: StructuralCodec, spec: Any) -> Tree:
    """Return a decoded object."""
    return of_kind.decode(gear(spec), validation="Ignore").tree


@given(schemas, values)
def test_decoding_settles(schema: Tree, spec: Any) -> None:
    """A decoded object decodes to itself, the very same tree, and an equal one to an equal one; the body is never touched."""
    of_kind = codec(schema)
    body = gear(spec)
    before = orjson.dumps(body)
    once = of_kind.decode(body, validation="Ignore").tree
    assert of_kind.decode(once).tree is once
    assert of_kind.decode(copied(once)).tree == once
    assert orjson.dumps(body) == before


@given(schemas, values)
def test_strict_decoding_refuses_what_pruning_drops(schema: Tree, spec: Any) -> None:
    """What strict validation lets pass is not pruned: each key is still there, with defaults beside."""
    of_kind = codec(schema)
    warned = of_kind.decode(gear(spec)).warnings
    if warned:
        with pytest.raises(Undecodable) as refused:
            of_kind.decode(gear(spec), validation="Strict")
        assert refused.value.why == f"strict decoding error: {', '.join(warned)}"
    else:
        assert _covers(of_kind.decode(gear(spec), validation="Strict").tree.get("spec"), spec)


def _covers(new: Any, old: Any) -> bool:
    """Tell whether nothing but nulls has gone."""
    if isinstance(old, dict):
        return isinstance(new, dict) and all(value is None or (key in new and _covers(new[key], value)) for key, value in old.items())
    if isinstance(old, list):
        return isinstance(new, list) and len(new) == len(old) and all(map(_covers, new, old))
    return old is None or new == old


@given(schemas, values)
def test_identity_does_not_matter_to_errors(schema: Tree, spec: Any) -> None:
    """The memory of sound subtrees changes nothing: a fresh codec finds the same in a copy, and finds it again."""
    of_kind = codec(schema)
    tree = decoded(of_kind, spec)
    first = of_kind.validate(tree)
    assert of_kind.validate(tree) == first
    assert codec(schema).validate(copied(tree)) == first


@given(schemas, values)
def test_what_did_not_change_is_not_refused(schema: Tree, spec: Any) -> None:
    """An update that changes nothing is accepted, however broken the object is: shared, or an equal copy."""
    of_kind = codec(schema)
    tree = decoded(of_kind, spec)
    assert of_kind.validate({**tree, "metadata": {"name": "g", "labels": {"x": "y"}}}, tree) == []
    assert of_kind.validate(copied(tree), tree) == []


@given(schemas, values, values)
def test_updates_are_refused_for_no_more_than_creates(schema: Tree, old: Any, new: Any) -> None:
    """Each error of an update is one that the new object has by itself."""
    of_kind = codec(schema)
    before, after = decoded(of_kind, old), decoded(of_kind, new)
    alone = [str(error) for error in of_kind.validate(after)]
    assert [text for text in map(str, of_kind.validate(after, before)) if text not in alone] == []
