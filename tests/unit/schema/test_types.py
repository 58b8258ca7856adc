"""The types of built-in kinds: what is known of each field, in each served version."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError

import pytest

from kubemini.api.schemas.boil import read_definitions
from kubemini.api.schemas.records import VERSIONS
from kubemini.machinery.errors import ConfigError
from kubemini.machinery.schema.builtin import BuiltinSchemas, builtin_schemas
from kubemini.machinery.schema.types import LEAVES, UNSET, GroupVersionKind


def test_a_field_knows_how_it_merges() -> None:
    """Strategic merge and server-side apply have keys of their own: container ports differ in them."""
    ports = builtin_schemas().type("core/v1.Container").fields["ports"]
    assert (ports.type, ports.cardinality, ports.strategies, ports.merge_key) == ("core/v1.ContainerPort", "list", ("merge",), "containerPort")
    assert (ports.list_type, ports.list_keys) == ("map", ("containerPort", "protocol"))
    assert builtin_schemas().type("core/v1.ContainerPort").fields["protocol"].schema_default == "TCP"


def test_short_cuts_for_one_field() -> None:
    """Element type, merge strategy and list type can be asked for without a FieldInfo."""
    schemas = builtin_schemas()
    assert schemas.element_type("core/v1.PodSpec", "volumes") == "core/v1.Volume"
    assert schemas.merge_strategy("core/v1.PodSpec", "volumes") == (("merge", "retainKeys"), "name")
    assert schemas.list_type("meta/v1.ObjectMeta", "finalizers") == ("set", ())
    assert schemas.list_type("core/v1.ReplicationControllerSpec", "selector") == ("atomic", ())


def test_inlined_structs_are_flat_with_the_numbers_on_the_way() -> None:
    """The members of a Go struct that is inlined are fields of their parent; protobuf nests them."""
    assert builtin_schemas().type("core/v1.Volume").fields["hostPath"].numbers == (2, 1)
    rule = builtin_schemas().type("admissionregistration/v1.NamedRuleWithOperations").fields["apiGroups"]
    assert (rule.numbers, rule.go_inlined) == ((2, 2, 1), "RuleWithOperations.Rule")
    assert builtin_schemas().type("storage/v1.VolumeAttachmentSource").fields["inlineVolumeSpec"].type == "core/v1.PersistentVolumeSpec"


def test_pointers_and_structs_tell_what_is_serialised() -> None:
    """Pointers keep a zero, fields without omitempty and structs that are no pointers are always there."""
    spec = builtin_schemas().type("apps/v1.StatefulSetSpec").fields
    assert spec["replicas"].pointer
    assert not spec["replicas"].req
    assert spec["updateStrategy"].req
    assert (spec["selector"].pointer, spec["selector"].req) == (True, True)


def test_a_creation_time_that_is_none_vanished_in_1_34() -> None:
    """Up to 1.33 templates showed ``creationTimestamp: null``."""
    assert BuiltinSchemas("1.33").type("meta/v1.ObjectMeta").fields["creationTimestamp"].req
    assert not BuiltinSchemas("1.34").type("meta/v1.ObjectMeta").fields["creationTimestamp"].req


def test_versions_differ() -> None:
    """Fields and kinds come and go with the Kubernetes version."""
    assert "restartPolicyRules" not in BuiltinSchemas("v1.33.2").type("core/v1.Container").fields
    assert "restartPolicyRules" in BuiltinSchemas("v1.34.0").type("core/v1.Container").fields
    assert BuiltinSchemas("1.33").type_of("resource.k8s.io", "v1", "ResourceClaim") is None
    assert BuiltinSchemas("1.34").type_of("resource.k8s.io", "v1", "ResourceClaim") is not None


@pytest.mark.parametrize("version", ["1.30", "1.99", "x", ""])
def test_unknown_versions_are_refused(version: str) -> None:
    """A version without data is a mistake in the configuration, and says which there are."""
    with pytest.raises(ConfigError, match=r"is not one of 1\.31 to 1\.37"):
        BuiltinSchemas(version)


def test_kinds_of_all_groups() -> None:
    """Every kind is found by group, version and kind, the same type each time."""
    schemas = builtin_schemas()
    assert {
        GroupVersionKind("", "v1", "Pod"),
        GroupVersionKind("batch", "v1", "Job"),
        GroupVersionKind("apiregistration.k8s.io", "v1", "APIService"),
        GroupVersionKind("internal.apiserver.k8s.io", "v1alpha1", "StorageVersion"),
        GroupVersionKind("meta.k8s.io", "v1", "PartialObjectMetadata"),
        GroupVersionKind("", "v1", "DeleteOptions"),
    } <= set(schemas.kinds())
    job = schemas.type_of("batch", "v1", "Job")
    assert job is schemas.type("batch/v1.Job") is schemas.by_definition("io.k8s.api.batch.v1.Job")
    assert schemas.type_of("batch", "v1", "Jobs") is None
    with pytest.raises(KeyError):
        schemas.type("batch/v1.Jobs")
    with pytest.raises(KeyError):
        schemas.codec("batch", "v1", "Jobs")


@pytest.mark.parametrize("version", VERSIONS)
def test_every_element_type_exists(version: str) -> None:
    """No field names a type that its version lacks, and merge keys and list keys are fields of the elements."""
    schemas = BuiltinSchemas(version)
    for name in schemas.names():
        for field in schemas.type(name).fields.values():
            if field.type not in LEAVES:
                element = schemas.type(field.type)
                # Upstream names a merge key that the elements lack.
                if name != "storagemigration/v1alpha1.StorageVersionMigrationList":
                    assert {*field.list_keys, field.merge_key} - {""} <= element.fields.keys(), f"{name}.{field.name}"
            assert field.default is UNSET or not (field.type in LEAVES and isinstance(field.default, dict)), f"{name}.{field.name}"


@pytest.mark.parametrize("version", VERSIONS)
def test_data_agree_with_the_published_definitions(version: str) -> None:
    """Each published field is in the data with its list type, keys and merge strategy, and no field more."""
    try:
        published = read_definitions(int(version.partition(".")[2]))
    except PackageNotFoundError:
        pytest.skip("kubernetes-validate is not installed")
    schemas = BuiltinSchemas(version)
    checked = 0
    for name in schemas.names():
        info = schemas.type(name)
        definition = published.get(info.definition)
        if definition is None:
            continue
        properties = definition.get("properties", {})
        assert info.fields.keys() == properties.keys(), name
        for field in info.fields.values():
            schema = properties[field.name]
            assert field.list_type == schema.get("x-kubernetes-list-type", ""), f"{name}.{field.name}"
            assert list(field.list_keys) == schema.get("x-kubernetes-list-map-keys", []), f"{name}.{field.name}"
            assert field.patch_strategy == schema.get("x-kubernetes-patch-strategy", ""), f"{name}.{field.name}"
            assert field.merge_key == schema.get("x-kubernetes-patch-merge-key", ""), f"{name}.{field.name}"
            checked += 1
    assert checked > 2500
