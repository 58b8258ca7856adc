"""Rules of ObjectMeta: what a new or changed object's metadata may say."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.api.trees import Tree
from kubemini.machinery.metadata import (
    dedup_owner_references,
    metadata_problems_of_update,
    metadata_warnings,
    validate_field_manager,
    validate_managed_fields,
    validate_metadata_create,
    validate_metadata_update,
)
from kubemini.machinery.names import dns1123_subdomain, path_segment

ENTRY = {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u"}


def created(*, namespaced: bool = True, custom: bool = False, **meta: Any) -> list[str]:
    """Return the faults of a new object's metadata as texts."""
    full: Tree = {"name": "n", **({"namespace": "default"} if namespaced else {}), **meta}
    return [str(each) for each in validate_metadata_create(full, namespaced=namespaced, validate_name=dns1123_subdomain, custom=custom)]


def updated(new: Tree, old: Tree, *, custom: bool = False) -> list[str]:
    """Return the faults of an update as texts."""
    base: Tree = {"name": "n", "namespace": "default", "uid": "u"}
    return [str(each) for each in validate_metadata_update({**base, **new}, {**base, **old}, custom=custom)]


def test_sound_metadata_has_no_faults() -> None:
    """Names, labels, annotations, owners and finalizers within the rules pass."""
    assert created(labels={"a/b": "c", "d": ""}, annotations={"A.b/C": "x\n"}, ownerReferences=[OWNER], finalizers=["a.b/c", "orphan"]) == []


def test_a_bad_prefix_is_two_faults() -> None:
    """generateName is checked as well as the name made of it."""
    assert [each.split(":")[0] for each in created(generateName="Bad_", name="Bad_x1x2x")] == ["metadata.generateName", "metadata.name"]


@pytest.mark.parametrize(
    "meta,text",
    [
        ({"name": ""}, "metadata.name: Required value: name or generateName is required"),
        ({"namespace": ""}, "metadata.namespace: Required value"),
        ({"namespace": "a.b"}, 'metadata.namespace: Invalid value: "a.b": must not contain dots'),
        ({"generation": -1}, "metadata.generation: Invalid value: -1: must be greater than or equal to 0"),
        ({"labels": {"/x": "1"}}, 'metadata.labels: Invalid value: "/x": prefix part must be non-empty'),
        ({"labels": {"x": "1" * 64}}, f'metadata.labels: Invalid value: "{"1" * 64}": must be no more than 63 bytes'),
        ({"annotations": {"/x": "1"}}, 'metadata.annotations: Invalid value: "/x": prefix part must be non-empty'),
        ({"annotations": {"x": "1" * 262144}}, "metadata.annotations: Too long: may not be more than 262144 bytes"),
        ({"ownerReferences": [{**OWNER, "uid": ""}]}, 'metadata.ownerReferences.uid: Invalid value: "": must not be empty'),
        ({"ownerReferences": [{**OWNER, "apiVersion": "a/"}]}, 'metadata.ownerReferences.apiVersion: Invalid value: "a/": version must not be empty'),
        ({"finalizers": ["x"]}, 'metadata.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified'),
        (
            {"finalizers": ["orphan", "foregroundDeletion"]},
            'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and foregroundDeletion cannot be both set',
        ),
        ({"managedFields": [{**ENTRY, "manager": "x" * 129}]}, "metadata.managedFields[0].manager: Too long: may not be more than 128 bytes"),
        ({"managedFields": [{**ENTRY, "subresource": "x" * 257}]}, "metadata.managedFields[0].subresource: Too long: may not be more than 256 bytes"),
    ],
)
def test_faults_of_new_metadata(meta: Tree, text: str) -> None:
    """Each broken rule is told at upstream's path in upstream's words."""
    assert created(**meta) == [text]


def test_malformed_managed_fields_are_for_field_tracking_to_mend() -> None:
    """A list with a malformed entry, or the one empty entry that clears, is no fault of the object; one by one such entries are."""
    assert created(managedFields=[{}]) == []
    assert created(managedFields=[{**ENTRY, "operation": "Own"}]) == []
    assert [str(each) for each in validate_managed_fields([{}, {"operation": "Own"}, {**ENTRY, "fieldsType": "V2"}], "f")] == [
        "f[0].operation: Required value: must not be empty",
        'f[1].operation: Unsupported value: "Own": supported values: "Apply", "Update"',
        'f[2].fieldsType: Invalid value: "V2": must be `FieldsV1`',
    ]


def test_only_one_owner_may_be_the_controller() -> None:
    """Two controllers are named by kind and name."""
    second = {**OWNER, "uid": "v", "name": "k", "controller": True}
    (text,) = created(ownerReferences=[{**OWNER, "controller": True}, second])
    assert text.endswith('Only one reference can have Controller set to true. Found "true" in references for Job/j and Job/k')


def test_events_own_nothing() -> None:
    """A v1 Event may not be an owner."""
    (text,) = created(ownerReferences=[{**OWNER, "apiVersion": "v1", "kind": "Event"}])
    assert text.endswith("/v1, Kind=Event is disallowed from being an owner")


def test_a_cluster_scoped_object_has_no_namespace() -> None:
    """A namespace on a cluster-scoped kind is forbidden."""
    assert created(namespaced=False, namespace="x") == ["metadata.namespace: Forbidden: not allowed on this type"]


def test_the_kinds_own_rule_decides_names() -> None:
    """The rule of the kind is asked, not a general one."""
    assert validate_metadata_create({"name": "system:x"}, namespaced=False, validate_name=path_segment) == []


def test_plain_finalizers_of_custom_resources_are_warned_of() -> None:
    """Custom resources may have finalizers without a domain, with a warning for each that is new."""
    assert created(custom=True, finalizers=["x"]) == []
    (text,) = metadata_warnings({"finalizers": ["x", "a/b", "y"]}, custom=True, old={"finalizers": ["y"]})
    assert text == (
        'metadata.finalizers: "x": prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers'
    )
    assert metadata_warnings({"finalizers": ["x"]}) == []


@pytest.mark.parametrize("field,value", [("name", "m"), ("namespace", "other"), ("uid", "v"), ("creationTimestamp", "2026-01-01T00:00:00Z")])
def test_identity_never_changes(field: str, value: str) -> None:
    """Name, namespace, uid and creation time are immutable."""
    assert updated({field: value}, {}) == [f'metadata.{field}: Invalid value: "{value}": field is immutable']


def test_a_removed_identity_is_a_change_too() -> None:
    """An absent uid is shown as an empty text, an absent time as null."""
    assert updated({"uid": None, "deletionTimestamp": None}, {"deletionTimestamp": "2026-01-01T00:00:00Z"}) == [
        'metadata.uid: Invalid value: "": field is immutable',
        "metadata.deletionTimestamp: Invalid value: null: field is immutable",
    ]


def test_no_finalizer_is_added_to_an_object_under_deletion() -> None:
    """Removing and reordering is fine, adding is forbidden."""
    gone: Tree = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert updated({**gone, "finalizers": ["a/b"]}, {**gone, "finalizers": ["c/d", "a/b"]}) == []
    assert updated({**gone, "finalizers": ["a/b", "e/f"]}, {**gone, "finalizers": ["a/b"]}) == [
        'metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"e/f"}'
    ]


def test_updates_are_checked_like_new_objects() -> None:
    """Labels, annotations, owners and finalizers obey the same rules on updates."""
    assert len(updated({"labels": {"/": "1"}, "annotations": {"/": "1"}, "ownerReferences": [{}], "finalizers": ["x"]}, {})) == 11


def test_repeated_owner_references_are_merged_with_a_warning() -> None:
    """The first of equal references stays; the warning names the uid."""
    meta, warning = dedup_owner_references({"ownerReferences": [OWNER, dict(OWNER), {**OWNER, "uid": "v"}]})
    assert meta == {"ownerReferences": [OWNER, {**OWNER, "uid": "v"}]}
    assert warning == (
        ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; "
        "please fix your requests; duplicate UID(s) observed: u"
    )
    clean = {"ownerReferences": [OWNER]}
    assert dedup_owner_references(clean) == (clean, None)


def test_field_managers_are_short_and_printable() -> None:
    """Names of managers have at most 128 bytes, and every unprintable character is a fault."""
    assert validate_field_manager("kubectl client") == []
    assert [str(each) for each in validate_field_manager("x" * 129)] == ["fieldManager: Too long: may not be more than 128 bytes"]
    assert [each.body for each in validate_field_manager("é\nb")] == ['Invalid value: "é\\nb": invalid character U+000A (at position 2)']


@pytest.mark.parametrize(
    "new, times",
    [
        ({"uid": "v"}, 2),
        ({"labels": {"a b": "c"}}, 3),
        ({"finalizers": ["example.com/a b"]}, 3),
        ({"finalizers": ["x"]}, 1),
        ({"labels": {"a": "b"}}, 0),
    ],
)
def test_faults_of_updates_are_found_again(new: Tree, times: int) -> None:
    """Upstream looks at metadata as such, at its change, and at its change as the kind's: the causes of a refusal have a fault as often."""
    base: Tree = {"name": "n", "namespace": "default", "uid": "u"}
    found = metadata_problems_of_update({**base, **new}, base)
    assert (len(found), len(set(map(str, found)))) == (times, min(times, 1))


@pytest.mark.parametrize("again, order", [("", "mcc"), ("before", "mcmc"), ("after", "mccm")])
def test_faults_of_updates_that_some_kinds_find_once_more(again: str, order: str) -> None:
    """Kinds whose updates are checked as new objects too have what is wrong in itself four times, what must not change twice."""
    base: Tree = {"name": "n", "namespace": "default", "uid": "u"}
    found = metadata_problems_of_update({**base, "uid": "v", "labels": {"a b": "c"}}, base, again=again)
    fields = [each.field for each in found]
    assert fields.count("metadata.labels") == len(order)
    wanted = [field for look in order for field in (["metadata.labels"] if look == "m" else ["metadata.uid", "metadata.labels"])]
    assert fields == wanted
