"""Field managers of plain writes: who owns what after creates, updates and patches."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.api.trees import Tree
from kubemini.machinery.apply import Reset, StructuralApplySchema, StructuralShapes, apply, deduced_root, same_but_times, track_update
from kubemini.machinery.apply.shapes import Shape
from kubemini.machinery.errors import FieldConflict
from tests.unit.machinery.managed import MAIN, SHAPES, STATUS, Managed, builtin

TIME = "2026-01-01T00:00:00Z"
GADGET = "example.com/v1"


def gadget_root(**properties: Any) -> Shape:
    """Return the shape of a custom resource with these properties of its spec."""
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}, "status": {"type": "object"}}}
    return StructuralShapes(SHAPES.metadata).root(schema)


def gadgets(**properties: Any) -> StructuralApplySchema:
    """Return the apply schema of a custom kind with these properties of its spec."""
    return StructuralApplySchema({GADGET: gadget_root(**properties)})


def test_a_new_deployment_is_owned_as_kubectl_create_shows_it() -> None:
    """Containers that Go's empty object lacks are members themselves (``.``), those it always holds are not; a selector is one field."""
    obj = Managed("apps", "v1", "Deployment")
    body = {
        "metadata": {"name": "d", "labels": {"app": "x"}},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "x"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}},
            "template": {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i", "resources": {}}]}},
        },
    }
    entries = track_update(
        None, {"apiVersion": "apps/v1", "kind": "Deployment", **body}, manager="m", api_version="apps/v1", time=TIME, schema=obj.schema, reset=MAIN
    )
    labels: Tree = {".": {}, "f:app": {}}
    container: Tree = {".": {}, "f:image": {}, "f:name": {}, "f:resources": {}}
    assert entries is not None
    assert entries[0]["fieldsV1"] == {
        "f:metadata": {"f:labels": labels},
        "f:spec": {
            "f:replicas": {},
            "f:selector": {},
            "f:strategy": {"f:rollingUpdate": {".": {}, "f:maxSurge": {}}, "f:type": {}},
            "f:template": {"f:metadata": {"f:labels": labels}, "f:spec": {"f:containers": {'k:{"name":"c"}': container}}},
        },
    }


def test_a_new_custom_resource_owns_its_spec_itself() -> None:
    """Of a custom resource only metadata counts as always there."""
    obj = Managed("example.com", "v1", "Gadget", schema=gadgets(size={"type": "integer"}))
    obj.write("m", {"metadata": {"name": "g"}, "spec": {"size": 1}, "status": {"x": 1}})
    assert obj.owned("m", "Update") == {"f:spec": {".": {}, "f:size": {}}}


def test_owner_references_are_owned_by_uid() -> None:
    """The list is a member of its own when it is new, and each reference is one field."""
    obj = Managed("", "v1", "ConfigMap")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}
    obj.write("m", {"metadata": {"name": "n", "ownerReferences": [owner]}})
    assert obj.owned("m", "Update") == {"f:metadata": {"f:ownerReferences": {".": {}, 'k:{"uid":"u"}': {}}}}


def test_an_update_gains_what_it_changes_and_loses_what_it_removes() -> None:
    """Changed and added fields move to the writer, removed ones leave every entry, an emptied entry goes."""
    obj = Managed("", "v1", "ConfigMap")
    obj.write("a", {"metadata": {"name": "n"}, "data": {"x": "1", "y": "1", "z": "1"}})
    obj.change("b", data={"x": "2", "z": "1", "w": "1"})
    assert obj.owned("a", "Update") == {"f:data": {".": {}, "f:z": {}}}
    assert obj.owned("b", "Update") == {"f:data": {"f:w": {}, "f:x": {}}}
    obj.change("c", data=None)
    assert obj.names == []


def test_a_second_write_of_one_manager_joins_its_entry() -> None:
    """One manager has one Update entry a version; its time is that of the last write that changed something."""
    obj = Managed("", "v1", "ConfigMap")
    obj.write("a", {"metadata": {"name": "n"}, "data": {"x": "1"}})
    obj.change("a", data={"x": "1", "y": "1"})
    obj.change("a", data={"x": "1", "y": "1"})
    assert [(each["time"], each["fieldsV1"]) for each in obj.entries] == [("2026-01-01T00:00:02Z", {"f:data": {".": {}, "f:x": {}, "f:y": {}}})]


def test_a_write_without_change_returns_the_live_entries() -> None:
    """Nothing changed: the very same list comes back."""
    obj = Managed("", "v1", "ConfigMap")
    obj.write("a", {"metadata": {"name": "n"}, "data": {"x": "1"}})
    live = obj.live
    assert live is not None
    entries = track_update(live, dict(live), manager="b", api_version="v1", time=TIME, schema=obj.schema)
    assert entries is live["metadata"]["managedFields"]


def test_the_main_resource_never_owns_status() -> None:
    """Status in a main write is nobody's, and a status write owns neither spec nor owner references."""
    obj = Managed("", "v1", "Pod")
    obj.write("creator", {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}, "status": {"phase": "Running"}})
    owned = obj.owned("creator", "Update")
    assert "f:status" not in owned
    assert obj.live is not None
    obj.write("kubelet", {**obj.live, "spec": {**obj.live["spec"], "hostname": "x"}, "status": {"phase": "Failed"}}, subresource="status")
    assert obj.owned("creator", "Update") == owned
    assert obj.owned("kubelet", "Update", "status") == {"f:status": {"f:phase": {}}}


def test_an_object_born_empty_is_not_tracked() -> None:
    """An object with nothing to own has no managedFields, and plain updates then record nothing."""
    obj = Managed("", "v1", "ConfigMap")
    obj.write("a", {"metadata": {"name": "n"}})
    assert obj.entries == []
    obj.change("b", data={"x": "1"})
    assert obj.entries == []


def test_only_ten_update_entries_are_kept() -> None:
    """The oldest entries are merged into ancient-changes, which counts as one of the ten."""
    obj = Managed("", "v1", "ConfigMap")
    data = {"k00": "1"}
    obj.write("u00", {"metadata": {"name": "n"}, "data": dict(data)})
    for index in range(1, 12):
        data[f"k{index:02}"] = "1"
        obj.change(f"u{index:02}", data=dict(data))
        ancient = [each for each in obj.entries if each["manager"] == "ancient-changes"]
        assert len(obj.entries) == min(index + 1, 10)
        assert len(ancient) == (index >= 10)
        if index == 10:
            assert ancient[0]["fieldsV1"] == {"f:data": {".": {}, "f:k00": {}, "f:k01": {}}}
            assert ancient[0]["time"] == "2026-01-01T00:00:02Z"
    assert obj.owned("ancient-changes", "Update") == {"f:data": {".": {}, "f:k00": {}, "f:k01": {}, "f:k02": {}}}


def test_entries_stand_in_upstreams_order() -> None:
    """Apply before Update, then older first, then by manager's name."""
    obj = Managed("", "v1", "ConfigMap")
    obj.write("z", {"metadata": {"name": "n"}, "data": {"z": "1"}})
    obj.apply("m2", {"metadata": {"name": "n"}, "data": {"m2": "1"}})
    obj.apply("m1", {"metadata": {"name": "n"}, "data": {"m1": "1"}})
    obj.change("a", data={"z": "1", "m1": "1", "m2": "1", "a": "1"})
    assert [(each["operation"], each["manager"]) for each in obj.entries] == [("Apply", "m2"), ("Apply", "m1"), ("Update", "z"), ("Update", "a")]


def test_a_client_may_edit_managed_fields() -> None:
    """Entries that an update sends replace the live ones; malformed ones, and those sent to a subresource, are ignored."""
    obj = Managed("", "v1", "ConfigMap")
    obj.write("a", {"metadata": {"name": "n"}, "data": {"x": "1"}})
    assert obj.live is not None
    (entry,) = obj.entries
    meta = {key: each for key, each in obj.live["metadata"].items() if key != "managedFields"}
    renamed = {**entry, "manager": "b", "fieldsV1": {"f:data": {"f:x": {}}}}
    before = obj.live
    obj.change("w", metadata={**meta, "managedFields": [renamed]}, subresource="status")
    assert obj.names == ["a"]
    for broken in ({**renamed, "operation": "Own"}, {**renamed, "fieldsV1": {"x": {}}}, {**renamed, "fieldsType": "V2"}):
        obj.live = before
        obj.change("w", metadata={**meta, "managedFields": [broken]})
        assert obj.names == ["a"]
    obj.change("w", metadata={**meta, "managedFields": [renamed]})
    assert obj.names == ["b"]


def test_lists_without_their_keys_do_not_stop_a_write() -> None:
    """Where the sets of an object cannot be made, its managers stay as they are."""
    schema = gadgets(parts={"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"]})
    obj = Managed("example.com", "v1", "Gadget", schema=schema)
    obj.write("a", {"metadata": {"name": "g"}, "spec": {"parts": [{"id": 1}]}})
    before = obj.entries
    obj.change("b", spec={"parts": [{"name": "x"}]})
    assert obj.entries == before


def test_doubled_elements_are_owned_as_one() -> None:
    """Plain writers may double a key; the element is then one field, and changes as a whole."""
    obj = Managed("", "v1", "Pod")
    spec = {"containers": [{"name": "c", "image": "i", "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}]}
    obj.write("a", {"metadata": {"name": "p"}, "spec": spec})
    container = obj.owned("a", "Update")["f:spec"]["f:containers"]['k:{"name":"c"}']
    assert container["f:env"] == {".": {}, 'k:{"name":"A"}': {}}
    spec = {"containers": [{"name": "c", "image": "i", "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "3"}]}]}
    obj.change("b", spec=spec)
    assert obj.owned("b", "Update") == {"f:spec": {"f:containers": {'k:{"name":"c"}': {"f:env": {'k:{"name":"A"}': {}}}}}}


def test_objects_without_a_schema_are_owned_key_by_key() -> None:
    """Without a schema objects are granular and lists atomic."""
    schema = StructuralApplySchema({GADGET: deduced_root(SHAPES.metadata)})
    obj = Managed("example.com", "v1", "Gadget", schema=schema)
    obj.apply("m", {"metadata": {"name": "g"}, "spec": {"a": {"b": 1}, "c": [{"d": 1}]}})
    assert obj.owned("m") == {"f:spec": {".": {}, "f:a": {".": {}, "f:b": {}}, "f:c": {}}}


def test_a_field_that_became_atomic_is_owned_as_a_whole() -> None:
    """Sets of an older schema are fitted to the current one when the object is written next."""
    granular = {"type": "object", "additionalProperties": {"type": "string"}}
    obj = Managed("example.com", "v1", "Gadget", schema=gadgets(tags=granular))
    obj.apply("m", {"metadata": {"name": "g"}, "spec": {"tags": {"a": "1"}}})
    assert obj.owned("m") == {"f:spec": {"f:tags": {"f:a": {}}}}
    obj.schema = gadgets(tags={**granular, "x-kubernetes-map-type": "atomic"}, size={"type": "integer"})
    assert obj.live is not None
    obj.change("w", spec={**obj.live["spec"], "size": 1})
    assert obj.owned("m") == {"f:spec": {"f:tags": {}}}


def test_managers_of_other_versions_are_compared_in_theirs() -> None:
    """A change is taken from a manager under the name that the field has in the manager's version; entries of versions that are gone go."""
    old, new = gadget_root(size={"type": "integer"}), gadget_root(length={"type": "integer"})

    def convert(tree: dict[str, Any], api_version: str) -> dict[str, Any]:
        if tree["apiVersion"] == api_version:
            return tree
        names = {"size": "length"} if api_version.endswith("v2") else {"length": "size"}
        spec = {names.get(key, key): each for key, each in (tree.get("spec") or {}).items()}
        return {**tree, "apiVersion": api_version, "spec": spec}

    schema = StructuralApplySchema({"example.com/v1": old, "example.com/v2": new}, convert)
    live = {"apiVersion": "example.com/v2", "kind": "Gadget", "metadata": {"name": "g"}}
    first = apply(
        None,
        {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": {"size": 1}},
        manager="m",
        api_version="example.com/v1",
        kind="Gadget",
        time=TIME,
        schema=schema,
    )
    live = {**live, "metadata": {"name": "g", "managedFields": first.managed_fields}, "spec": {"length": 1}}
    config = {"apiVersion": "example.com/v2", "kind": "Gadget", "metadata": {"name": "g"}, "spec": {"length": 2}}
    with pytest.raises(FieldConflict, match=r'conflict with "m": \.spec\.size'):
        apply(live, config, manager="n", api_version="example.com/v2", kind="Gadget", time=TIME, schema=schema)
    # The first manager moves to the new version and keeps one entry.
    moved = apply(live, config, manager="m", api_version="example.com/v2", kind="Gadget", time=TIME, schema=schema)
    assert [(each["apiVersion"], each["fieldsV1"]) for each in moved.managed_fields or ()] == [("example.com/v2", {"f:spec": {"f:length": {}}})]
    only_new = StructuralApplySchema({"example.com/v2": new})
    entries = track_update(live, {**live, "spec": {"length": 3}}, manager="w", api_version="example.com/v2", time=TIME, schema=only_new)
    assert [each["manager"] for each in entries or ()] == ["w"]


def test_pods_of_one_template_share_their_managers() -> None:
    """Objects that differ in names and values alone have the very same managedFields."""
    schema = builtin("", "v1", "Pod")
    containers = [{"name": "c", "image": "i", "env": [{"name": "A", "value": "1"}]}]

    def pod(index: int) -> dict[str, Any]:
        labels = {"app": "x", "index": str(index)}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"p{index}", "labels": labels},
            "spec": {"containers": containers, "hostname": f"p{index}"},
        }

    def created(index: int) -> Any:
        return track_update(None, pod(index), manager="m", api_version="v1", time=TIME, schema=schema, reset=MAIN)

    def running(index: int) -> Any:
        old = {**pod(index), "metadata": {**pod(index)["metadata"], "managedFields": created(index)}}
        new = {
            **old,
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}], "startTime": f"2026-01-01T00:00:{index:02}Z"},
        }
        return track_update(old, new, manager="kubelet", api_version="v1", time=TIME, schema=schema, subresource="status", reset=STATUS)

    assert created(1) is created(2)
    assert running(1) is running(2)


def test_times_alone_do_not_count() -> None:
    """Two lists of entries that differ in their times alone are the same."""
    entry = {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}
    assert same_but_times([{**entry, "time": TIME}], [entry])
    assert not same_but_times([entry], [{**entry, "manager": "n"}])
    assert not same_but_times([entry], None)


def test_reset_paths_reach_into_objects() -> None:
    """A reset path takes everything below it out of what a write owns, and nothing beside it."""
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n", "labels": {"a": "b"}, "annotations": {"c": "d"}}}
    entries = track_update(None, obj, manager="m", api_version="v1", time=TIME, schema=builtin("", "v1", "ConfigMap"), reset=Reset("metadata.labels"))
    assert entries is not None
    assert entries[0]["fieldsV1"] == {"f:metadata": {"f:annotations": {".": {}, "f:c": {}}}}
