"""Decoding of built-in objects under random trees: clean objects stay the same objects, protobuf carries them unchanged."""

from __future__ import annotations

from contextlib import suppress
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubemini.api.trees import Tree
from kubemini.machinery import protobuf
from kubemini.machinery.errors import BadRequest, UnsupportedMediaType
from kubemini.machinery.schema.builtin import builtin_schemas
from kubemini.machinery.schema.contract import Undecodable
from kubemini.machinery.schema.types import FieldInfo, GroupVersionKind
from tests.unit.schema.wire import body

SCHEMAS = builtin_schemas()
KINDS = [
    kind
    for kind in SCHEMAS.kinds()
    if kind.version in {"v1", "v2"}
    and (kind.group not in {"meta.k8s.io", "storagemigration.k8s.io"})
    and "metadata" in (info := SCHEMAS.codec(*kind).type_info).fields
    and not kind.kind.endswith("List")
    and info.fields["metadata"].numbers
]
NAMES = st.sampled_from(["a", "b-c", "x/y", "é", "0"])
START = datetime(2, 1, 1, tzinfo=UTC)
TIMES = st.integers(0, 315_000_000_000).map(lambda seconds: (START + timedelta(seconds=seconds)).isoformat(timespec="seconds")[:19])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=4,
)
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "string": st.sampled_from(["", "a", "é\n", "Always"]),
    "bool": st.booleans(),
    "int32": st.sampled_from([0, 1, -1, 2**31 - 1, -(2**31)]),
    "int64": st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63)]),
    "double": st.sampled_from([0, 1.5, -2, 1e300]),
    "bytes": st.sampled_from(["", "YQ==", "AP8=", "YW\nJj"]),
    "Quantity": st.sampled_from(["0", "1", "1000m", "1.5Gi", "1e3", 2, "0.0001"]),
    "Time": TIMES.map(lambda text: f"{text}Z") | TIMES.map(lambda text: f"{text}.25+01:00"),
    "MicroTime": TIMES.map(lambda text: f"{text}.000007Z"),
    "IntOrString": st.sampled_from([0, 7, "", "web", "25%"]),
    "RawExtension": st.dictionaries(st.text(max_size=2), JSON, max_size=2),
    "FieldsV1": st.dictionaries(st.sampled_from(["f:a", "."]), st.just({}), max_size=2),
    "JSON": JSON.filter(lambda value: value is not None),
    "strings": st.lists(st.sampled_from(["", "a"]), min_size=1, max_size=2),
}


@st.composite
def objects(draw: st.DrawFn, name: str, depth: int = 5, *, noisy: bool) -> Tree:
    """Draw an object of a type; a noisy one has nulls and unknown fields too."""
    tree: Tree = {}
    fields = sorted(SCHEMAS.type(name).fields)
    for key in draw(st.lists(st.sampled_from(fields), unique=True, max_size=6)) if fields else ():
        if key not in {"apiVersion", "kind"} or not SCHEMAS.type(name).kinds:
            tree[key] = draw(values(SCHEMAS.type(name).fields[key], depth, noisy=noisy))
    if noisy and draw(st.integers(0, 3)) == 0:
        tree[draw(st.sampled_from(["bogus", "Name", ""]))] = draw(JSON)
    return tree


def values(field: FieldInfo, depth: int, *, noisy: bool) -> st.SearchStrategy[Any]:
    """Return a strategy of values of a field."""
    drawn = elements(field.type, depth, noisy=noisy)
    if field.cardinality == "list":
        drawn = st.lists(drawn, max_size=2)
    elif field.cardinality == "map":
        drawn = st.dictionaries(NAMES, drawn, max_size=2)
    return st.none() | drawn if noisy else drawn


def elements(kind: str, depth: int, *, noisy: bool) -> st.SearchStrategy[Any]:
    """Return a strategy of elements of a type."""
    if kind in SCALARS:
        return SCALARS[kind]
    if kind.startswith("JSONSchemaPropsOr"):
        schema = objects("apiextensions/v1.JSONSchemaProps", 0, noisy=noisy)
        other = {"Bool": st.booleans(), "Array": st.lists(schema, min_size=1, max_size=2), "StringArray": SCALARS["strings"]}
        return schema | other[kind.removeprefix("JSONSchemaPropsOr")]
    return objects(kind, depth - 1, noisy=noisy) if depth else st.just({})


@st.composite
def bodies(draw: st.DrawFn, *, noisy: bool) -> tuple[GroupVersionKind, Tree]:
    """Draw a kind and an object of it."""
    kind = draw(st.sampled_from(KINDS))
    tree = draw(objects(SCHEMAS.codec(*kind).type_info.name, noisy=noisy))
    return kind, {"apiVersion": kind.api_version, "kind": kind.kind, **tree}


@given(bodies(noisy=True))
def test_decoding_is_done_once(drawn: tuple[GroupVersionKind, Tree]) -> None:
    """A decoded object decodes to the very same object, without warnings; what was given is left alone."""
    kind, tree = drawn
    codec = SCHEMAS.codec(*kind)
    before = deepcopy(tree)
    clean = codec.decode(tree).tree
    assert tree == before
    again = codec.decode(clean, validation="Strict")
    assert again.tree is clean
    assert codec.decode(deepcopy(clean)).tree == clean


@given(bodies(noisy=True))
def test_strict_validation_refuses_just_what_is_warned_of(drawn: tuple[GroupVersionKind, Tree]) -> None:
    """Strict refuses an object if and only if Warn has something to say of it."""
    kind, tree = drawn
    codec = SCHEMAS.codec(*kind)
    warnings = codec.decode(tree).warnings
    if not warnings:
        codec.decode(tree, validation="Strict")
        return
    with pytest.raises(Undecodable) as refused:
        codec.decode(tree, validation="Strict")
    assert refused.value.why == f"strict decoding error: {', '.join(warnings)}"


@given(bodies(noisy=False))
def test_protobuf_says_the_same_as_json(drawn: tuple[GroupVersionKind, Tree]) -> None:
    """An object that was encoded as a Go client does it decodes to what its JSON decodes to."""
    kind, tree = drawn
    codec = SCHEMAS.codec(*kind)
    clean = codec.decode(tree).tree
    assert codec.decode(protobuf.decode(body(clean, SCHEMAS), SCHEMAS), validation="Strict").tree == clean


@given(bodies(noisy=False), st.data())
def test_a_cut_protobuf_body_is_refused_or_read(drawn: tuple[GroupVersionKind, Tree], data: st.DataObject) -> None:
    """However a body is cut or changed, decoding ends in an object or in a refusal."""
    kind, tree = drawn
    raw = bytearray(body(SCHEMAS.codec(*kind).decode(tree).tree, SCHEMAS))
    at = data.draw(st.integers(4, len(raw) - 1))
    raw[at] = data.draw(st.integers(0, 255))
    cut = bytes(raw[: data.draw(st.integers(at, len(raw)))])
    with suppress(BadRequest, UnsupportedMediaType):
        assert isinstance(protobuf.decode(cut, SCHEMAS), dict)
