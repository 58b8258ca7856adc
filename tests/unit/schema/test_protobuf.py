"""Protobuf bodies: bytes written by hand, by the rules of the wire."""

from __future__ import annotations

from struct import pack

import pytest

from kubemini.api.trees import Tree
from kubemini.machinery import protobuf
from kubemini.machinery.errors import BadRequest, UnsupportedMediaType
from kubemini.machinery.schema.builtin import builtin_schemas
from tests.unit.schema.wire import body, bytes_field, envelope, number_field, varint


def decode(api_version: str, kind: str, raw: bytes) -> Tree:
    """Return the decoded object of a message."""
    return protobuf.decode(envelope(api_version, kind, raw), builtin_schemas())


META = bytes_field(1, bytes_field(1, "n") + bytes_field(2, "") + bytes_field(8, b"") + number_field(7, 0))
"""The metadata that a Go client sends: name, and the zero values of generateName, creationTimestamp and generation."""


def test_zero_values_are_dropped() -> None:
    """What JSON would omit is left out: empty strings, zero numbers, a creation time that is none."""
    assert decode("v1", "ConfigMap", META + bytes_field(2, bytes_field(1, "k") + bytes_field(2, "v"))) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "n"},
        "data": {"k": "v"},
    }


def test_pointers_keep_their_zero() -> None:
    """A nil pointer is absent, a pointer to zero is there."""
    spec = number_field(1, 0) + bytes_field(3, bytes_field(2, b""))
    assert decode("apps/v1", "Deployment", META + bytes_field(2, spec))["spec"] == {"replicas": 0, "template": {"spec": {}}}


def test_negative_numbers_are_sixty_four_bits() -> None:
    """A negative int32 takes ten bytes, as any negative varint does."""
    assert len(varint(-1)) == 10
    assert decode("apps/v1", "Deployment", bytes_field(2, number_field(1, -5)))["spec"] == {"replicas": -5}


def test_maps_and_their_missing_parts() -> None:
    """A map entry may lack its key or its value; each is then empty. Later entries win."""
    entries = bytes_field(2, bytes_field(1, "a")) + bytes_field(2, bytes_field(2, "x")) + bytes_field(2, bytes_field(1, "a") + bytes_field(2, "y"))
    assert decode("v1", "ConfigMap", entries)["data"] == {"a": "y", "": "x"}


def test_bytes_are_base64() -> None:
    """Bytes become base64 text."""
    assert decode("v1", "Secret", bytes_field(2, bytes_field(1, "k") + bytes_field(2, b"\x00\xff")))["data"] == {"k": "AP8="}


def test_quantities_times_and_ports() -> None:
    """The hand-written messages: quantities hold text, times seconds and nanoseconds, int-or-string a kind and two values."""
    resources = bytes_field(8, bytes_field(1, bytes_field(1, "cpu") + bytes_field(2, bytes_field(1, "1"))))
    port = bytes_field(2, number_field(1, 1) + number_field(2, 0) + bytes_field(3, "web"))
    port = bytes_field(12, bytes_field(2, bytes_field(2, port)))
    container = decode("v1", "Pod", bytes_field(2, bytes_field(2, bytes_field(1, "c") + resources + port)))["spec"]["containers"][0]
    assert container["resources"] == {"limits": {"cpu": "1"}}
    assert container["lifecycle"] == {"preStop": {"httpGet": {"port": "web"}}}
    lease = decode("coordination.k8s.io/v1", "Lease", bytes_field(2, bytes_field(4, number_field(1, 1) + number_field(2, 5000))))
    assert lease["spec"] == {"renewTime": "1970-01-01T00:00:01.000005Z"}
    event = decode("v1", "Event", bytes_field(6, number_field(1, 86400)) + bytes_field(7, b""))
    assert event["firstTimestamp"] == "1970-01-02T00:00:00Z"
    assert event["lastTimestamp"] is None


def test_inlined_structs_are_flattened() -> None:
    """A volume's source is a message of its own on the wire and none in JSON."""
    volume = bytes_field(1, "v") + bytes_field(2, bytes_field(6, bytes_field(1, "s")))
    assert decode("v1", "Pod", bytes_field(2, bytes_field(1, volume)))["spec"]["volumes"] == [{"name": "v", "secret": {"secretName": "s"}}]
    rule = bytes_field(1, "CREATE") + bytes_field(2, bytes_field(1, "apps") + bytes_field(3, "deployments"))
    webhook = bytes_field(2, bytes_field(1, "w") + bytes_field(3, rule))
    found = decode("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", webhook)["webhooks"][0]["rules"]
    assert found == [{"operations": ["CREATE"], "apiGroups": ["apps"], "resources": ["deployments"]}]


def test_raw_json_and_nested_envelopes() -> None:
    """Raw extensions hold JSON, or an object in an envelope of its own."""
    assert decode("apps/v1", "ControllerRevision", bytes_field(2, bytes_field(1, '{"a":[null]}')) + number_field(3, 1))["data"] == {"a": [None]}
    inner = envelope("v1", "ConfigMap", META)
    assert decode("apps/v1", "ControllerRevision", bytes_field(2, bytes_field(1, inner)))["data"] == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "n"},
    }
    as_json = envelope("v1", "ConfigMap", b'{"kind":"ConfigMap"}', "application/json")
    assert protobuf.decode(as_json, builtin_schemas()) == {"kind": "ConfigMap"}


def test_packed_lists() -> None:
    """Numbers may come one by one or packed into one field."""
    groups = bytes_field(4, varint(1) + varint(300)) + number_field(4, 5)
    assert decode("v1", "Pod", bytes_field(2, bytes_field(14, groups)))["spec"]["securityContext"] == {"supplementalGroups": [1, 300, 5]}


def test_doubles() -> None:
    """Doubles are eight bytes, little-endian; whole ones are integers in JSON."""
    schema = bytes_field(5, "number") + varint(9 << 3 | 1) + pack("<d", 1.5) + varint(11 << 3 | 1) + pack("<d", -2.0)
    version = bytes_field(7, bytes_field(1, "v1") + bytes_field(4, bytes_field(1, schema)))
    crd = decode("apiextensions.k8s.io/v1", "CustomResourceDefinition", bytes_field(2, version))
    assert crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] == {"type": "number", "maximum": 1.5, "minimum": -2}


def test_delete_options_of_any_group() -> None:
    """Delete options come as a kind of the group whose object goes; an empty body is no options."""
    raw = number_field(1, 0) + bytes_field(4, "Foreground") + bytes_field(2, bytes_field(1, "u"))
    for api_version in ("v1", "apps/v1", "policy/v1", "jobs.example.com/v1"):
        assert decode(api_version, "DeleteOptions", raw) == {
            "apiVersion": api_version,
            "kind": "DeleteOptions",
            "gracePeriodSeconds": 0,
            "propagationPolicy": "Foreground",
            "preconditions": {"uid": "u"},
        }
    assert protobuf.decode(b"", builtin_schemas()) == {}


def test_a_message_in_two_parts_is_merged() -> None:
    """A message field that comes twice is one message; unknown fields and unknown wire types of known fields are no harm."""
    meta = bytes_field(1, bytes_field(1, "n")) + bytes_field(1, bytes_field(3, "ns")) + number_field(999, 1) + varint(998 << 3 | 5) + b"abcd"
    assert decode("v1", "ConfigMap", meta)["metadata"] == {"name": "n", "namespace": "ns"}


@pytest.mark.parametrize(
    "data, message",
    [
        (b"{}", "does not appear to be a protobuf message, expected prefix"),
        (b"k8s\x00\x0a\xff", "unexpected EOF"),
        (b"k8s\x00\x0a\x05v", "unexpected EOF"),
        (envelope("v1", "ConfigMap", b"\x0a\x7f"), "unexpected EOF"),
        (envelope("v1", "ConfigMap", b"\x0b"), "illegal wireType 3"),
        (envelope("v1", "ConfigMap", number_field(1, 5)), "wrong wireType"),
        (envelope("v1", "ConfigMap", b"\x08" + b"\xff" * 11), "integer overflow"),
        (envelope("v1", "ConfigMap", bytes_field(1, bytes_field(1, b"\xff"))), "invalid UTF-8"),
        (envelope("v1", "Gadget", b""), 'no kind "Gadget" is registered for version "v1"'),
        (envelope("apps/v1", "ControllerRevision", bytes_field(2, bytes_field(1, "{"))), "json: "),
    ],
)
def test_broken_bodies(data: bytes, message: str) -> None:
    """What is no protobuf, ends too early or is of no known kind is a bad request, never a crash."""
    with pytest.raises(BadRequest, match=message):
        protobuf.decode(data, builtin_schemas())


def test_kinds_without_numbers() -> None:
    """A kind whose field numbers are not known takes no protobuf."""
    with pytest.raises(UnsupportedMediaType):
        protobuf.decode(envelope("resource.k8s.io/v1beta1", "ResourceClaim", META), builtin_schemas())


def test_fields_of_one_version_only() -> None:
    """A field that upstream had for one release is read by its number then: what a device of 1.36 gives of its node."""
    quantity = bytes_field(2, bytes_field(1, "2"))
    mapping = bytes_field(1, "cpu") + bytes_field(2, bytes_field(1, "cores") + quantity)
    device = bytes_field(1, "gpu-0") + bytes_field(13, mapping)
    decoded = decode("resource.k8s.io/v1", "ResourceSlice", META + bytes_field(2, bytes_field(6, device)))
    assert decoded["spec"]["devices"][0]["nodeAllocatableResourceMappings"] == {"cpu": {"capacityKey": "cores", "allocationMultiplier": "2"}}


def test_a_whole_object_comes_back() -> None:
    """An encoded Job decodes to itself."""
    job = (
        builtin_schemas()
        .codec("batch", "v1", "Job")
        .decode(
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {
                    "name": "j",
                    "labels": {"a": "b"},
                    "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u", "controller": False}],
                },
                "spec": {
                    "parallelism": 0,
                    "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i", "command": ["x"]}]}},
                },
            }
        )
        .tree
    )
    back = builtin_schemas().codec("batch", "v1", "Job").decode(protobuf.decode(body(job, builtin_schemas()), builtin_schemas())).tree
    assert back == job
