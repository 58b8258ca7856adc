"""Bodies to trees: JSON and YAML, with what strict validation says of keys that stand twice."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.machinery.schema.body import BodyError
from kubemini.machinery.schema.text import parse_json, parse_manifest, parse_yaml


@pytest.mark.parametrize(
    "body, duplicates",
    [
        ('{"a":1}', []),
        ('{"a" : 1, "b" : {"c":":"}}', []),
        ('{"a":"{\\"b\\":1,\\"b\\":2}"}', []),
        ('{"k\\\\":1,"x":"\\\\"}', []),
        ('{"a":1,"a":2}', ["a"]),
        ('{"spec":{"x":[1,{"b":1,"b":2,"b":3}]}}', ["spec.x[1].b"]),
        ('{"a":{"c":1,"c":2},"a":{}}', ["a.c", "a"]),
        ('{"k\\\\":1,"a":1,"a":2}', ["a"]),
        ('{"a":1,"x":"\\":","a":2}', ["a"]),
    ],
)
def test_duplicate_fields_of_json(body: str, duplicates: list[str]) -> None:
    """Each field that stands twice is told once, with its path; text that looks like keys is not."""
    assert parse_json(body.encode())[1] == [f'duplicate field "{path}"' for path in duplicates]


def test_the_last_of_two_equal_keys_wins() -> None:
    """As in Go, what comes later replaces what stood before."""
    assert parse_json(b'{"a":1,"a":2}')[0] == {"a": 2}


@pytest.mark.parametrize(
    "body, message",
    [
        ("", "unexpected end of JSON input"),
        ('{"metadata":', "unexpected end of JSON input"),
        ('{"a"', "unexpected end of JSON input"),
        ("{a:1}", "invalid character 'a' looking for beginning of object key string"),
        ('{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ('{"a":}', "invalid character '}' looking for beginning of value"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a":1 "b":2}', "invalid character '\"' after object key:value pair"),
        ("[1 2]", "invalid character '2' after array element"),
        ("{} x", "invalid character 'x' after top-level value"),
        ('{"a":nul}', "invalid character '}' in literal null (expecting 'l')"),
        ('{"a":"\n"}', r"invalid character '\n' in string literal"),
    ],
)
def test_broken_json_is_told_in_gos_words(body: str, message: str) -> None:
    """Every text was printed by Go's scanner."""
    with pytest.raises(BodyError) as refused:
        parse_json(body.encode())
    assert (refused.value.message, refused.value.code) == (message, 400)


@pytest.mark.parametrize(
    "text, value",
    [
        ("yes", True), ("On", True), ("y", True), ("n", False), ("NO", False), ("off", False), ("TRUE", True), ("tRUE", "tRUE"),
        ("~", None), ("", None), ("Null", None),
        ("0644", 420), ("0o17", 15), ("0x1F", 31), ("0b11", 3), ("-0b11", -3), ("1_000", 1000), ("+7", 7), ("08", 8), ("0_7", 7),
        ("1e3", 1000), ("1.0", 1), ("1.5", 1.5), (".5", 0.5), ("1.", 1), ("12e03", 12000), ("1e400", "1e400"),
        ("18446744073709551615", 18446744073709551615), ("-5", -5),
        ("2026-01-01", "2026-01-01"), ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"), ("1:30", "1:30"), ("1Gi", "1Gi"),
        ("'yes'", "yes"), ('"1"', "1"), ("!!str 1", "1"), ("!!float 5", 5), ("!!int '5'", 5), ("!x 1", "1"), ("|\n  a\n  b", "a\nb\n"),
    ],
)  # fmt: skip
def test_yaml_scalars(text: str, value: Any) -> None:
    """Plain scalars mean what Go's YAML 1.1 says: yes and on are booleans, a leading zero is octal, dates are text, whole floats integers."""
    tree, _ = parse_yaml(f"a: {text}\n".encode())
    assert tree == {"a": value}
    assert type(tree["a"]) is type(value)


def test_yaml_keys_are_text() -> None:
    """Keys that are no strings become some, as their values would print."""
    assert parse_yaml(b"1: a\n1.5: b\nyes: c\n0x10: d\n'2': e\n")[0] == {"1": "a", "1.5": "b", "true": "c", "16": "d", "2": "e"}
    with pytest.raises(BodyError, match="unsupported map key"):
        parse_yaml(b"~: 1\n")


def test_yaml_anchors_and_merges() -> None:
    """Aliases repeat their anchor, merged fields yield to the map's own, and an anchor that holds itself is refused."""
    assert parse_yaml(b"base: &b {x: 1, z: 2}\nd:\n  <<: *b\n  z: 3\ne: *b\n")[0] == {
        "base": {"x": 1, "z": 2},
        "d": {"x": 1, "z": 3},
        "e": {"x": 1, "z": 2},
    }
    assert parse_yaml(b"d:\n  <<: [{a: 1}, {a: 2, b: 3}]\n")[0] == {"d": {"a": 1, "b": 3}}
    with pytest.raises(BodyError, match="contains itself"):
        parse_yaml(b"a: &a [*a]\n")


def test_duplicate_keys_of_yaml() -> None:
    """All keys that stand twice are told in one text, with the line of the second value."""
    tree, duplicates = parse_yaml(b"a: 1\na: 2\nb:\n  c: 1\n  1: x\n  1: z\n")
    assert tree == {"a": 2, "b": {"c": 1, "1": "z"}}
    assert duplicates == ['yaml: unmarshal errors:\n  line 2: key "a" already set in map\n  line 6: key 1 already set in map']


@pytest.mark.parametrize(
    "body, message",
    [
        ("a: b: c\n", "mapping values are not allowed in this context"),
        ("a: -\n", "block sequence entries are not allowed in this context"),
        ("a: [1,\n", "did not find expected node content"),
        ("a:\n  b: 1\n c: 2\n", "did not find expected key"),
        ("a: *nope\n", "found undefined alias"),
        ("a: .nan\n", "json: unsupported value: NaN"),
        ("a: !!int x\n", "cannot decode !!str `x` as a !!int"),
    ],
)
def test_broken_yaml(body: str, message: str) -> None:
    """What is no YAML, or no JSON afterwards, is refused with the parser's words."""
    with pytest.raises(BodyError, match=message):
        parse_yaml(body.encode())


def test_only_the_first_document_is_a_body() -> None:
    """A request body is one document; an empty one is nothing."""
    assert parse_yaml(b"a: 1\n---\nb: 2\n") == ({"a": 1}, [])
    assert parse_yaml(b"# nothing\n") == (None, [])


def test_manifests_have_many_documents() -> None:
    """Documents of YAML and JSON are read alike; empty ones are left out."""
    assert parse_manifest('---\na: 1\n---\n# none\n---\n{"b": [1]}\n') == [{"a": 1}, {"b": [1]}]
    assert parse_manifest(b'{"a": {"b": "\\u00e4"}}') == [{"a": {"b": "ä"}}]
