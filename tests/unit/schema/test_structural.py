"""Custom objects are pruned, defaulted and validated as their CustomResourceDefinition says, with the API server's texts."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.api.trees import Tree
from kubemini.machinery.schema.contract import Undecodable
from kubemini.machinery.schema.structural import StructuralCodec

STRING: Tree = {"type": "string"}


def codec(spec: Tree, **root: Any) -> StructuralCodec:
    """Return the codec of a kind whose spec has a schema."""
    schema = {"type": "object", "properties": {"spec": spec, "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}, **root}
    return StructuralCodec(schema, group="example.com", version="v1", kind="Gear")


def of(properties: Tree, **more: Any) -> StructuralCodec:
    """Return the codec of a kind whose spec has properties."""
    return codec({"type": "object", "properties": properties, **more})


def gear(spec: Any, **parts: Any) -> Tree:
    """Return an object."""
    return {"apiVersion": "example.com/v1", "kind": "Gear", "metadata": {"name": "g"}, "spec": spec, **parts}


def decoded(of_kind: StructuralCodec, spec: Any) -> Any:
    """Return the spec after decoding."""
    return of_kind.decode(gear(spec)).tree.get("spec")


def texts(of_kind: StructuralCodec, new: Any, old: Any = None) -> list[str]:
    """Return the errors of a spec, or of an update of it."""
    return [str(error) for error in of_kind.validate(gear(new), None if old is None else gear(old))]


# ------------------------------------------------------------------------------------------------- pruning and defaults


def test_unknown_fields_go_and_are_told() -> None:
    """Unknown fields are dropped at every level with a warning each, or refused when validation is strict."""
    kind = of(
        {
            "known": STRING,
            "inner": {"type": "object", "properties": {"a": STRING}},
            "list": {"type": "array", "items": {"type": "object", "properties": {"a": STRING}}},
        }
    )
    body = {**gear({"known": "x", "zz": 1, "inner": {"a": "b", "c": 1}, "list": [{"a": "b"}, {"d": 2}]}), "extra": {}}
    found = kind.decode(body)
    assert found.tree["spec"] == {"known": "x", "inner": {"a": "b"}, "list": [{"a": "b"}, {}]}
    assert "extra" not in found.tree
    assert found.warnings == [f'unknown field "{path}"' for path in ("extra", "spec.inner.c", "spec.list[1].d", "spec.zz")]
    assert kind.decode(body, validation="Ignore").warnings == []
    with pytest.raises(Undecodable) as caught:
        kind.decode(gear({"foo": 1}), validation="Strict")
    assert str(caught.value) == 'strict decoding error: unknown field "spec.foo"'


def test_metadata_is_decoded_like_any_other() -> None:
    """Unknown metadata is dropped and told, metadata of the wrong type refused in Go's words."""
    kind = of({})
    found = kind.decode({"apiVersion": "example.com/v1", "kind": "Gear", "metadata": {"name": "g", "nope": 1, "creationTimestamp": None}})
    assert found.tree["metadata"] == {"name": "g"}
    assert found.warnings == ['unknown field "metadata.nope"']
    with pytest.raises(Undecodable) as caught:
        kind.decode({"metadata": {"name": "g", "labels": {"a": 1}}})
    assert str(caught.value) == (
        'Gear in version "v1" cannot be handled as a Gear: json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string'
    )


def test_preserved_subtrees_stay() -> None:
    """Preserved objects keep everything, nulls too, but what their properties describe is pruned by those."""
    kind = of({"any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"strict": {"type": "object"}}}})
    assert decoded(kind, {"any": {"x": {"y": [None, {"z": None}]}, "strict": {"gone": 1}}}) == {
        "any": {"x": {"y": [None, {"z": None}]}, "strict": {}}
    }


def test_maps_keep_their_keys() -> None:
    """additionalProperties prunes values by its schema; stated as true it empties objects, as upstream does."""
    kind = of(
        {
            "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": STRING}}},
            "open": {"type": "object", "additionalProperties": True},
        }
    )
    assert decoded(kind, {"map": {"k": {"a": "1", "b": 2}}, "open": {"x": 1, "y": {"gone": 1}}}) == {
        "map": {"k": {"a": "1"}},
        "open": {"x": 1, "y": {}},
    }


def test_defaults() -> None:
    """Absent fields get their default, in existing parents only unless those default themselves; explicit values stay."""
    kind = of(
        {
            "size": {"type": "integer", "default": 3},
            "inner": {"type": "object", "properties": {"a": {**STRING, "default": "x"}}},
            "made": {"type": "object", "default": {}, "properties": {"b": {**STRING, "default": "y"}}},
            "list": {"type": "array", "items": {"type": "object", "properties": {"c": {**STRING, "default": "z"}}}},
        }
    )
    assert decoded(kind, {}) == {"size": 3, "made": {"b": "y"}}
    assert decoded(kind, {"size": 0, "inner": {}, "list": [{}, {"c": ""}]}) == {
        "size": 0,
        "inner": {"a": "x"},
        "list": [{"c": "z"}, {"c": ""}],
        "made": {"b": "y"},
    }


def test_nulls() -> None:
    """A null that may not be one becomes the default or goes; a nullable one stays."""
    kind = of({"a": {**STRING, "default": "x"}, "b": STRING, "c": {**STRING, "nullable": True}, "d": {**STRING, "nullable": True, "default": "x"}})
    assert decoded(kind, {"a": None, "b": None, "c": None, "d": None}) == {"a": "x", "c": None, "d": None}


def test_a_clean_object_is_the_same_object() -> None:
    """What is clean already comes back as it is, and clean parts of a changed object are shared."""
    kind = of({"a": STRING, "inner": {"type": "object", "properties": {"b": STRING}}})
    body = gear({"a": "x", "inner": {"b": "y"}})
    assert kind.decode(body).tree is body
    dirty = {**body, "spec": {**body["spec"], "zz": 1}}
    assert kind.decode(dirty).tree["spec"]["inner"] is body["spec"]["inner"]
    assert dirty["spec"]["zz"] == 1


def test_embedded_resources() -> None:
    """Type and metadata of an embedded resource are kept and decoded, and must be sound."""
    kind = of({"pod": {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": {"type": "object"}}}})
    body = {"pod": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "nope": 1}, "other": 1}}
    found = kind.decode(gear(body))
    assert found.tree["spec"] == {"pod": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}}
    assert found.warnings == ['unknown field "spec.pod.metadata.nope"', 'unknown field "spec.pod.other"']
    assert texts(kind, {"pod": {"kind": "pod_", "metadata": {"name": "a/b"}}}) == [
        "spec.pod.apiVersion: Required value",
        (
            'spec.pod.kind: Invalid value: "pod_": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case '
            "alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
            "regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
        ),
        "spec.pod.metadata.name: Invalid value: \"a/b\": may not contain '/'",
    ]
    with pytest.raises(Undecodable, match=r"cannot be handled as a Gear: spec.pod.kind: Invalid value: 5: must be a string"):
        kind.decode(gear({"pod": {"apiVersion": "v1", "kind": 5}}))


def test_references() -> None:
    """Definitions are followed, also where they contain themselves."""
    schema = {"type": "object", "properties": {"spec": {"$ref": "#/definitions/Node"}}}
    definitions = {"Node": {"type": "object", "properties": {"name": {**STRING, "maxLength": 2}, "next": {"$ref": "#/definitions/Node"}}}}
    kind = StructuralCodec(schema, group="example.com", version="v1", kind="Gear", definitions=definitions)
    assert decoded(kind, {"next": {"next": {"x": 1, "name": "a"}}}) == {"next": {"next": {"name": "a"}}}
    assert texts(kind, {"next": {"next": {"name": "abc"}}}) == ["spec.next.next.name: Too long: may not be more than 2 bytes"]


# ------------------------------------------------------------------------------------------------- values


@pytest.mark.parametrize(
    "schema,value,wanted",
    [
        ({"type": "integer"}, "x", 'spec.f: Invalid value: "string": spec.f in body must be of type integer: "string"'),
        ({"type": "integer"}, 1.5, 'spec.f: Invalid value: "number": spec.f in body must be of type integer: "number"'),
        ({"type": "string"}, 5, 'spec.f: Invalid value: "integer": spec.f in body must be of type string: "integer"'),
        ({"type": "boolean"}, "yes", 'spec.f: Invalid value: "string": spec.f in body must be of type boolean: "string"'),
        ({"type": "object"}, [], 'spec.f: Invalid value: "array": spec.f in body must be of type object: "array"'),
        ({"type": "array", "items": STRING}, {}, 'spec.f: Invalid value: "object": spec.f in body must be of type array: "object"'),
        ({"type": "string"}, None, 'spec.f: Invalid value: "null": spec.f in body must be of type string: "null"'),
        ({"x-kubernetes-int-or-string": True}, 1.5, 'spec.f: Invalid value: "number": spec.f in body must be of type integer,string: "number"'),
        ({"type": "string", "enum": ["red", "blue"]}, "green", 'spec.f: Unsupported value: "green": supported values: "red", "blue"'),
        ({"type": "integer", "enum": [2, 1]}, 3, 'spec.f: Unsupported value: 3: supported values: "2", "1"'),
        ({"type": "string", "maxLength": 3}, "abcd", "spec.f: Too long: may not be more than 3 bytes"),
        ({"type": "string", "minLength": 3}, "é", 'spec.f: Invalid value: "é": spec.f in body should be at least 3 chars long'),
        ({"type": "string", "pattern": "^[a-z]+$"}, "A", "spec.f: Invalid value: \"A\": spec.f in body should match '^[a-z]+$'"),
        ({"type": "integer", "minimum": 1}, 0, "spec.f: Invalid value: 0: spec.f in body should be greater than or equal to 1"),
        ({"type": "integer", "maximum": 5, "exclusiveMaximum": True}, 5, "spec.f: Invalid value: 5: spec.f in body should be less than 5"),
        ({"type": "number", "maximum": 0.5}, 0.75, "spec.f: Invalid value: 0.75: spec.f in body should be less than or equal to 0.5"),
        ({"type": "integer", "multipleOf": 3}, 4, "spec.f: Invalid value: 4: spec.f in body should be a multiple of 3"),
        ({"type": "array", "items": STRING, "minItems": 1}, [], "spec.f: Invalid value: 0: spec.f in body should have at least 1 items"),
        ({"type": "array", "items": STRING, "maxItems": 1}, ["a", "b"], "spec.f: Too many: 2: must have at most 1 item"),
        (
            {"type": "object", "additionalProperties": STRING, "maxProperties": 1},
            {"a": "", "b": ""},
            "spec.f: Too many: 2: must have at most 1 item",
        ),
        (
            {"type": "object", "additionalProperties": STRING, "minProperties": 1},
            {},
            "spec.f: Invalid value: 0: spec.f in body should have at least 1 properties",
        ),
        ({"type": "object", "required": ["x"]}, {}, "spec.f.x: Required value"),
        (
            {"type": "object", "additionalProperties": {"type": "integer"}},
            {"k": "v"},
            'spec.f.k: Invalid value: "string": spec.f.k in body must be of type integer: "string"',
        ),
        (
            {"type": "array", "items": {"type": "integer"}},
            [1, "v"],
            'spec.f[1]: Invalid value: "string": spec.f[1] in body must be of type integer: "string"',
        ),
        ({"type": "array", "items": STRING, "x-kubernetes-list-type": "set"}, ["a", "b", "a", "a"], 'spec.f[2]: Duplicate value: "a"'),
        (
            {"type": "string", "format": "date-time"},
            "yesterday",
            'spec.f: Invalid value: "yesterday": spec.f in body must be of type date-time: "yesterday"',
        ),
        ({"type": "string", "format": "date-time"}, 5, 'spec.f: Invalid value: "int64": spec.f in body must be of type date-time: "int64"'),
        (
            {"type": "integer", "format": "int32"},
            2**31,
            '<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.f',
        ),
        ({"type": "string", "not": {"enum": ["x"]}}, "x", '<nil>: Invalid value: "": "spec.f" must not validate the schema (not)'),
    ],
)
def test_one_fault(schema: Tree, value: Any, wanted: str) -> None:
    """Each keyword has its path, reason and text."""
    assert texts(of({"f": schema}), {"f": value}) == [wanted]


def test_keyed_lists() -> None:
    """Elements of a keyed list differ in their keys; the second of a kind is told, with its keys."""
    one = of(
        {
            "f": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["id"],
                "items": {"type": "object", "properties": {"id": STRING}},
            }
        }
    )
    assert texts(one, {"f": [{"id": "x"}, {"id": "y"}, {"id": "x"}, {"id": "x"}]}) == ['spec.f[2]: Duplicate value: {"id":"x"}']
    two = of({"f": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"], "items": {"type": "object"}}})
    assert texts(two, {"f": [{"a": 1, "b": 1}, {"a": 1, "b": "1"}, {"a": 1}]}) == []
    assert texts(two, {"f": [{"a": 1}, {"a": 1}]}) == ['spec.f[1]: Duplicate value: {"a":1}']


def test_compositions() -> None:
    """anyOf, oneOf and allOf say which part failed, and why the first alternative did."""
    kind = of({"a": STRING, "b": STRING}, oneOf=[{"required": ["a"]}, {"required": ["b"]}])
    assert texts(kind, {"a": "x"}) == []
    assert texts(kind, {}) == [
        '<nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found none valid',
        "spec.a: Required value",
    ]
    assert texts(kind, {"a": "", "b": ""}) == [
        '<nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found 2 valid alternatives'
    ]
    some = of({"f": {"type": "integer", "anyOf": [{"minimum": 5}, {"maximum": 1}]}})
    assert texts(some, {"f": 1}) == []
    assert texts(some, {"f": 3}) == [
        '<nil>: Invalid value: "": "spec.f" must validate at least one schema (anyOf)',
        "spec.f: Invalid value: 3: spec.f in body should be greater than or equal to 5",
    ]
    every = of({"f": {"type": "integer", "allOf": [{"minimum": 5}, {"maximum": 9}]}})
    assert texts(every, {"f": 1}) == [
        "spec.f: Invalid value: 1: spec.f in body should be greater than or equal to 5",
        '<nil>: Invalid value: "": "spec.f" must validate all the schemas (allOf)',
    ]


def test_integers_may_be_written_as_floats() -> None:
    """A float without fraction is an integer, an integer is a number."""
    assert texts(of({"a": {"type": "integer"}, "b": {"type": "number"}}), {"a": 5.0, "b": 5}) == []


# ------------------------------------------------------------------------------------------------- updates


def test_unchanged_faults_are_forgiven() -> None:
    """On update an error under a value that did not change is tolerated; a changed value must be right."""
    kind = of({"a": {**STRING, "maxLength": 1}, "b": STRING, "inner": {"type": "object", "required": ["x"], "properties": {"y": STRING}}})
    old = {"a": "long", "b": "1", "inner": {"y": "1"}}
    assert texts(kind, {"a": "long", "b": "2", "inner": {"y": "1"}}, old) == []
    assert texts(kind, {"a": "longer", "b": "1", "inner": {"y": "1"}}, old) == ["spec.a: Too long: may not be more than 1 bytes"]
    assert texts(kind, {"a": "long", "b": "1", "inner": {"y": "2"}}, old) == ["spec.inner.x: Required value"]


def test_elements_of_keyed_lists_are_compared_by_key() -> None:
    """A faulty element of a keyed list is forgiven wherever it moves; in a plain list only when the whole list stays."""
    items = {"type": "object", "properties": {"id": STRING, "v": {**STRING, "maxLength": 1}}}
    keyed = of({"f": {"type": "array", "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"]}})
    old = {"f": [{"id": "a", "v": "long"}]}
    assert texts(keyed, {"f": [{"id": "b", "v": ""}, {"id": "a", "v": "long"}]}, old) == []
    plain = of({"f": {"type": "array", "items": items}})
    assert texts(plain, {"f": [{"id": "b", "v": ""}, {"id": "a", "v": "long"}]}, old) == ["spec.f[1].v: Too long: may not be more than 1 bytes"]


def test_repeated_keys_that_were_there_are_forgiven() -> None:
    """Repeated list keys are only refused when the old object had none."""
    kind = of({"f": {"type": "array", "items": STRING, "x-kubernetes-list-type": "set"}, "b": STRING})
    assert texts(kind, {"f": ["a", "a"], "b": "2"}, {"f": ["a", "a"], "b": "1"}) == []
    assert texts(kind, {"f": ["a", "a"]}, {"f": ["a"]}) == ['spec.f[1]: Duplicate value: "a"']


def test_what_was_forgiven_is_not_taken_for_valid() -> None:
    """A subtree that an update forgave is still refused in a new object, even as the very same Python object."""
    fields = {f"f{n}": STRING for n in range(30)}
    kind = of({"big": {"type": "object", "properties": {**fields, "bad": {**STRING, "maxLength": 1}}}, "b": STRING})
    big = {"bad": "long"}
    assert texts(kind, {"big": big, "b": "2"}, {"big": big, "b": "1"}) == []
    assert texts(kind, {"big": big, "b": "2"}, {"big": {"bad": "long"}, "b": "1"}) == []
    assert texts(kind, {"big": big}) == ["spec.big.bad: Too long: may not be more than 1 bytes"]


# ------------------------------------------------------------------------------------------------- rules

RANGE = {"rule": "self.low <= self.high", "messageExpression": "'low is ' + string(self.low)", "reason": "FieldValueForbidden", "fieldPath": ".low"}


def ruled(*rules: Tree, **properties: Tree) -> StructuralCodec:
    """Return the codec of a kind with rules on its spec."""
    numbers = {"low": {"type": "integer"}, "high": {"type": "integer"}}
    return of({**numbers, **properties}, **{"x-kubernetes-validations": list(rules)})


def test_broken_rules() -> None:
    """A broken rule has its message, its expression's message, or its own text; its reason and its path are as stated."""
    assert texts(ruled(RANGE), {"low": 2, "high": 1}) == ["spec.low: Forbidden: low is 2"]
    assert texts(ruled({"rule": "self.low <= self.high"}), {"low": 2, "high": 1}) == ["spec: Invalid value: failed rule: self.low <= self.high"]
    assert texts(ruled({"rule": "self.low <= self.high", "message": " no "}), {"low": 2, "high": 1}) == ["spec: Invalid value: no"]
    field = ruled(
        mode={
            **STRING,
            "x-kubernetes-validations": [{"rule": "self != 'off'", "message": "never off", "reason": "FieldValueDuplicate"}, {"rule": "self == 'x'"}],
        }
    )
    assert texts(field, {"mode": "off"}) == ['spec.mode: Duplicate value: "off"', "spec.mode: Invalid value: \"off\": failed rule: self == 'x'"]


def test_rules_that_fail() -> None:
    """A rule without a value is an error of its own."""
    assert texts(ruled({"rule": "self.low > 1"}), {}) == ['spec: Invalid value: "object": no such key: low evaluating rule: self.low > 1']
    mixed = ruled(port={"x-kubernetes-int-or-string": True, "x-kubernetes-validations": [{"rule": "self > 1"}]})
    assert texts(mixed, {"port": "a"}) == [
        "spec.port: Invalid value: \"\": 'no such overload': call arguments did not match a supported operator, function or macro signature for rule: self > 1"
    ]


def test_rules_in_maps_and_lists() -> None:
    """Rules below maps and lists are evaluated for each element, with keys in brackets."""
    rule = {"x-kubernetes-validations": [{"rule": "self > 0", "message": "positive"}]}
    kind = of(
        {
            "map": {"type": "object", "additionalProperties": {"type": "integer", **rule}},
            "list": {"type": "array", "items": {"type": "integer", **rule}},
        }
    )
    assert texts(kind, {"map": {"a.b": 0}, "list": [1, -1]}) == [
        "spec.map[a.b]: Invalid value: 0: positive",
        "spec.list[1]: Invalid value: -1: positive",
    ]


def test_transition_rules() -> None:
    """Rules that look at the old value run on updates with an old value only, unless it is optional."""
    kind = ruled(
        {"rule": "self.high >= oldSelf.high"}, mode={**STRING, "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed"}]}
    )
    assert texts(kind, {"high": 1, "mode": "a"}) == []
    assert texts(kind, {"high": 2, "mode": "b"}, {"high": 3, "mode": "a"}) == [
        "spec: Invalid value: failed rule: self.high >= oldSelf.high",
        'spec.mode: Invalid value: "b": fixed',
    ]
    assert texts(kind, {"high": 3, "mode": "b"}, {"high": 3}) == []
    first = ruled({"rule": "oldSelf.hasValue() || self.low == 1", "optionalOldSelf": True, "message": "starts at 1"})
    assert texts(first, {"low": 2}) == ["spec: Invalid value: starts at 1"]
    assert texts(first, {"low": 2}, {"low": 1}) == []


def test_broken_rules_on_unchanged_values_are_forgiven() -> None:
    """A broken rule is tolerated while what it looks at stays, but not one that looks back."""
    strict = {"rule": "self == 'x'", "message": "x"}
    kind = ruled({"rule": "self.high != oldSelf.high", "message": "must move"}, mode={**STRING, "x-kubernetes-validations": [strict]})
    assert texts(kind, {"high": 1, "mode": "a"}, {"high": 0, "mode": "a"}) == []
    assert texts(kind, {"high": 1, "mode": "b"}, {"high": 0, "mode": "a"}) == ['spec.mode: Invalid value: "b": x']
    spec = {"high": 1}
    assert texts(kind, spec, spec) == ["spec: Invalid value: must move"]


def test_blocking_errors_keep_rules_from_running() -> None:
    """Where a type or a required field is wrong, rules are not evaluated, and that is said."""
    kind = ruled({"rule": "self.low <= self.high"}, need=STRING)
    assert texts(kind, {"low": "a"}) == [
        'spec.low: Invalid value: "string": spec.low in body must be of type integer: "string"',
        (
            "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; "
            "correct the existing errors to complete validation"
        ),
    ]


def test_rules_at_the_root_see_the_name() -> None:
    """A rule at the root may read apiVersion, kind and the name; its errors name no field."""
    rule = {"x-kubernetes-validations": [{"rule": "self.metadata.name == self.spec.name", "message": "name yourself"}]}
    kind = codec({"type": "object", "properties": {"name": STRING}}, **rule)
    assert texts(kind, {"name": "g"}) == []
    assert texts(kind, {"name": "h"}) == ["<nil>: Invalid value: name yourself"]


# ------------------------------------------------------------------------------------------------- formats


@pytest.mark.parametrize(
    "name,good,bad",
    [
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123"),
        ("ipv4", "10.0.0.1", "10.0.0.256"),
        ("ipv6", "::1", "10.0.0.1"),
        ("cidr", "10.0.0.0/8", "10.0.0.0"),
        ("mac", "00:11:22:aa:bb:cc", "00:11"),
        ("hostname", "a.example", "-a."),
        ("uri", "https://a.example/x", "a b"),
        ("email", "a@b.example", "a"),
        ("byte", "aGk=", "a"),
        ("date", "2026-01-31", "2026-02-31"),
        ("date-time", "2026-01-01T00:00:00.5+01:00", "2026-01-01"),
        ("duration", "1h30m", "1 fortnight"),
        ("hexcolor", "#fff", "#ff"),
        ("isbn", "978-0321751041", "９７８-0321751041"),
        ("duration", "1h30m", "１h"),
        ("cidr", "10.0.0.0/8", "10.0.0.0/８"),
        ("isbn", "978-0321751041", "978-0321751042"),
        ("k8s-short-name", "a-b", "A"),
    ],
)
def test_formats(name: str, good: str, bad: str) -> None:
    """Formats that CRDs know are checked."""
    kind = of({"f": {**STRING, "format": name}})
    assert texts(kind, {"f": good}) == []
    assert texts(kind, {"f": bad}) == [f'spec.f: Invalid value: "{bad}": spec.f in body must be of type {name}: "{bad}"']


def test_unknown_formats_mean_nothing() -> None:
    """A format that CRDs do not know is no rule."""
    assert texts(of({"f": {**STRING, "format": "sonnet"}}), {"f": "x"}) == []


# ------------------------------------------------------------------------------------------------- what is remembered


def test_remembered_values_are_told_apart_by_type() -> None:
    """A scalar that was found good once does not vouch for an equal value of another type, here or in another field."""
    kind = of(
        {"count": {"type": "integer", "minimum": 1}, "name": {"type": "string", "pattern": "^[a-z]+$"}, "other": {"type": "string", "maxLength": 2}}
    )
    assert texts(kind, {"count": 1, "name": "abc"}) == []
    assert texts(kind, {"count": 1, "name": "abc"}) == []
    assert texts(kind, {"count": True}) == ['spec.count: Invalid value: "boolean": spec.count in body must be of type integer: "boolean"']
    assert texts(kind, {"other": "abc"}) == ["spec.other: Too long: may not be more than 2 bytes"]
    assert texts(kind, {"count": 0}) == ["spec.count: Invalid value: 0: spec.count in body should be greater than or equal to 1"]


def test_remembered_quantities_keep_their_pattern() -> None:
    """A quantity may be a number or a text; texts are matched each by itself, also after one was found good."""
    pattern = "^[0-9]+m?$"
    quantity = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True, "pattern": pattern}
    kind = of({"used": {"type": "object", "additionalProperties": quantity}})
    assert texts(kind, {"used": {"cpu": "5", "memory": 5}}) == []
    assert texts(kind, {"used": {"cpu": "5", "memory": "5"}}) == []
    assert texts(kind, {"used": {"cpu": "x"}}) == [f"spec.used.cpu: Invalid value: \"x\": spec.used.cpu in body should match '{pattern}'"]
    assert any("must be of type integer,string" in text for text in texts(kind, {"used": {"cpu": ["5"]}}))


def test_bad_values_are_not_remembered() -> None:
    """A scalar that an update was forgiven for is refused again in the next object."""
    kind = of({"name": {"type": "string", "pattern": "^[a-z]+$"}})
    assert texts(kind, {"name": "A"}, {"name": "A"}) == []
    assert texts(kind, {"name": "A"}) == ["spec.name: Invalid value: \"A\": spec.name in body should match '^[a-z]+$'"]


def test_only_a_fixed_schema_trusts_what_is_stored() -> None:
    """What was stored under an earlier schema is pruned when it is written again, unless the schema never changes."""
    spec = {"known": {"a": "b", "unknown": 1}}
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"known": {"type": "object", "properties": {"a": STRING}}}}},
    }
    loose = StructuralCodec(schema, group="example.com", version="v1", kind="Gear")
    fixed = StructuralCodec(schema, group="example.com", version="v1", kind="Gear", fixed=True)
    stored = gear(spec)
    new = {**stored, "spec": {**spec}}
    assert loose.decode(new, stored=stored).tree["spec"] == {"known": {"a": "b"}}
    assert fixed.decode(new, stored=stored).tree["spec"]["known"] is spec["known"]
    fresh = {**stored, "spec": {"known": {"a": "b", "unknown": 1}}}
    assert fixed.decode(fresh, stored=stored).tree["spec"] == {"known": {"a": "b"}}
