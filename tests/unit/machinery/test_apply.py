"""Server-side apply: merging, ownership, conflicts and pruning, as recorded on a real API server."""

from __future__ import annotations

import pytest

from kubemini.api.trees import Tree
from kubemini.machinery.errors import BadRequest, FieldConflict, ServerError
from tests.unit.machinery.managed import Managed


def config_map(name: str = "n", **data: str) -> dict[str, object]:
    """Return a configuration of a ConfigMap."""
    return {"metadata": {"name": name}, **({"data": data} if data else {})}


def test_shared_fields_survive_until_their_last_owner_drops_them() -> None:
    """A field left out of the next apply disappears unless somebody else owns it."""
    obj = Managed("", "v1", "ConfigMap")
    obj.apply("m1", config_map(a="1", b="1", c="1"))
    obj.apply("m2", config_map(b="1"))
    assert obj.apply("m1", config_map(a="1"))["data"] == {"a": "1", "b": "1"}
    assert obj.apply("m2", config_map())["data"] == {"a": "1"}
    assert obj.names == ["m1"]


def test_keyed_lists_merge_by_their_keys() -> None:
    """Environment merges by name, ports by port and protocol with its default; a manager takes out only its own elements."""

    def body(*containers: object) -> dict[str, object]:
        return {"metadata": {"name": "n"}, "spec": {"template": {"spec": {"containers": list(containers)}}}}

    obj = Managed("apps", "v1", "StatefulSet")
    obj.apply("m1", body({"name": "c", "image": "x", "env": [{"name": "A", "value": "1"}], "ports": [{"containerPort": 53, "name": "tcp"}]}))
    live = obj.apply(
        "m2", body({"name": "c", "env": [{"name": "B", "value": "2"}], "ports": [{"containerPort": 53, "protocol": "UDP", "name": "udp"}]})
    )
    (container,) = live["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "x"
    assert [each["name"] for each in container["env"]] == ["A", "B"]
    assert [each["protocol"] for each in container["ports"]] == ["TCP", "UDP"]
    (container,) = obj.apply("m2", {"metadata": {"name": "n"}})["spec"]["template"]["spec"]["containers"]
    assert [each["name"] for each in container["env"]] == ["A"]
    assert [each["name"] for each in container["ports"]] == ["tcp"]


def test_finalizers_are_owned_value_by_value() -> None:
    """Sets keep the live order, put new values before the shared value that follows them, and lose a value with its last owner."""
    obj = Managed("", "v1", "ConfigMap")
    obj.apply("m1", {"metadata": {"name": "n", "finalizers": ["example.com/a", "example.com/b"]}})
    assert obj.owned("m1") == {"f:metadata": {"f:finalizers": {'v:"example.com/a"': {}, 'v:"example.com/b"': {}}}}
    live = obj.apply("m2", {"metadata": {"name": "n", "finalizers": ["example.com/c", "example.com/b"]}})
    assert live["metadata"]["finalizers"] == ["example.com/a", "example.com/c", "example.com/b"]
    live = obj.apply("m1", {"metadata": {"name": "n"}})
    assert live["metadata"]["finalizers"] == ["example.com/c", "example.com/b"]
    assert obj.names == ["m2"]


def test_a_changed_value_of_another_manager_is_a_conflict() -> None:
    """Without force the conflict names manager and field and changes nothing; with force the other manager loses the field."""
    obj = Managed("", "v1", "ConfigMap")
    obj.apply("m1", config_map(a="1", b="1"))
    before = obj.live
    with pytest.raises(FieldConflict) as refused:
        obj.apply("m2", config_map(a="2"))
    assert obj.live is before
    assert refused.value.message == 'Apply failed with 1 conflict: conflict with "m1": .data.a'
    assert refused.value.to_status()["details"] == {
        "causes": [{"reason": "FieldManagerConflict", "message": 'conflict with "m1"', "field": ".data.a"}]
    }
    assert obj.apply("m2", config_map(a="2"), force=True)["data"] == {"a": "2", "b": "1"}
    assert obj.owned("m1") == {"f:data": {"f:b": {}}}


def test_conflicts_are_grouped_by_manager_with_leaves_before_what_stands_below_them() -> None:
    """Several conflicts are listed by manager, update managers with their version, members of a node before its children."""
    obj = Managed("", "v1", "Pod")
    containers = [{"name": "c", "image": "i", "args": ["x"]}]
    obj.write("writer", {"metadata": {"name": "p"}, "spec": {"containers": containers, "activeDeadlineSeconds": 5}})
    with pytest.raises(FieldConflict) as refused:
        obj.apply("m", {"metadata": {"name": "p"}, "spec": {"activeDeadlineSeconds": 6, "containers": [{"name": "c", "image": "j", "args": ["y"]}]}})
    assert refused.value.message == (
        'Apply failed with 3 conflicts: conflicts with "writer" using v1:\n'
        '- .spec.activeDeadlineSeconds\n- .spec.containers[name="c"].args\n- .spec.containers[name="c"].image'
    )


def test_equal_values_are_shared_without_conflict() -> None:
    """Applying the value that is there makes a co-owner; its entry has no time, so it stands first."""
    obj = Managed("", "v1", "ConfigMap")
    obj.apply("m1", config_map(a="1"))
    obj.apply("m2", config_map(a="1"))
    assert [(each["manager"], each.get("time")) for each in obj.entries] == [("m2", None), ("m1", "2026-01-01T00:00:01Z")]
    obj.apply("m2", config_map(a="1", b="1"))
    assert [(each["manager"], each.get("time")) for each in obj.entries] == [("m1", "2026-01-01T00:00:01Z"), ("m2", "2026-01-01T00:00:03Z")]


def test_the_same_configuration_again_changes_nothing() -> None:
    """Applying a configuration twice leaves the object and its managers as they are, times included."""
    obj = Managed("apps", "v1", "Deployment")
    body = {
        "metadata": {"name": "d", "labels": {"a": "b"}},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    }
    before = obj.apply("m", body)
    assert obj.apply("m", body) == before


def test_a_plain_write_takes_ownership_from_appliers() -> None:
    """A field that a plain writer changes leaves every other entry; the applier who wants it back gets a conflict naming the writer."""
    obj = Managed("", "v1", "ConfigMap")
    obj.apply("m1", config_map(a="1", b="1"))
    obj.change("curl", data={"a": "2", "b": "1"})
    assert obj.owned("m1") == {"f:data": {"f:b": {}}}
    assert obj.owned("curl", "Update") == {"f:data": {"f:a": {}}}
    with pytest.raises(FieldConflict, match=r'conflict with "curl" using v1: \.data\.a'):
        obj.apply("m1", config_map(a="1", b="1"))
    obj.apply("m1", config_map(a="1", b="1"), force=True)
    assert obj.names == ["m1"]


def test_the_same_name_with_another_operation_is_another_manager() -> None:
    """An apply conflicts with its own manager's earlier plain write."""
    obj = Managed("", "v1", "ConfigMap")
    obj.write("m", config_map(a="1"))
    with pytest.raises(FieldConflict, match='conflict with "m" using v1'):
        obj.apply("m", config_map(a="2"))


def test_defaults_belong_to_nobody() -> None:
    """A field that the server filled in can be applied by anyone without conflict."""
    obj = Managed("", "v1", "Service")
    live = obj.apply("m1", {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})
    assert live["spec"]["ports"][0]["protocol"] == "TCP"
    obj.apply("m2", {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80, "name": "http"}], "type": "NodePort"}})
    assert obj.owned("m1") == {"f:spec": {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}}}}


def test_atomic_objects_are_owned_as_one() -> None:
    """Two appliers of a Service's selector conflict on the selector as a whole."""
    obj = Managed("", "v1", "Service")
    obj.apply("m1", {"metadata": {"name": "s"}, "spec": {"selector": {"a": "1"}}})
    assert obj.owned("m1") == {"f:spec": {"f:selector": {}}}
    with pytest.raises(FieldConflict, match=r"\.spec\.selector$"):
        obj.apply("m2", {"metadata": {"name": "s"}, "spec": {"selector": {"b": "1"}}})


def test_an_element_stays_while_anybody_owns_it() -> None:
    """When the manager of a container's image drops it, the element stays with what its other manager owns."""
    obj = Managed("", "v1", "Pod")
    obj.apply("m1", {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    obj.apply("m2", {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "env": [{"name": "A", "value": "1"}]}]}})
    live = obj.apply("m1", {"metadata": {"name": "p"}})
    (container,) = live["spec"]["containers"]
    assert container["name"] == "c"
    assert container["env"] == [{"name": "A", "value": "1"}]
    assert "image" not in container


def test_status_is_owned_under_its_subresource() -> None:
    """An apply to /status owns status alone under an entry of its own, the main endpoint everything else."""
    obj = Managed("", "v1", "Pod")
    obj.write("creator", {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    condition = {"type": "example.com/ok", "status": "True"}
    obj.apply("m3", {"metadata": {"name": "p"}, "spec": {"activeDeadlineSeconds": 5}, "status": {"conditions": [condition]}}, subresource="status")
    owned: Tree = {"f:status": {"f:conditions": {'k:{"type":"example.com/ok"}': {".": {}, "f:status": {}, "f:type": {}}}}}
    assert obj.owned("m3", subresource="status") == owned
    obj.apply("m3", {"metadata": {"name": "p"}, "spec": {"activeDeadlineSeconds": 50}, "status": {"conditions": []}})
    assert obj.owned("m3") == {"f:spec": {"f:activeDeadlineSeconds": {}}}
    assert obj.owned("m3", subresource="status") == owned
    live = obj.apply("m3", {"metadata": {"name": "p"}}, subresource="status")
    assert "conditions" not in (live.get("status") or {})
    assert obj.owned("m3", subresource="status") is None


def test_cleared_managers_stay_cleared_until_the_next_apply() -> None:
    """After managedFields were cleared nothing is tracked; the next apply finds everything owned by before-first-apply."""
    obj = Managed("", "v1", "ConfigMap")
    obj.write("creator", config_map(a="1"))
    assert obj.live is not None
    obj.change("creator", metadata={**obj.live["metadata"], "managedFields": [{}]})
    assert obj.entries == []
    obj.change("later", data={"a": "1", "b": "1"})
    assert obj.entries == []
    with pytest.raises(FieldConflict, match=r'conflict with "before-first-apply" using v1: \.data\.a'):
        obj.apply("m1", config_map(a="2"))
    obj.apply("m1", config_map(a="2"), force=True)
    assert [(each["manager"], each["operation"], each["fieldsV1"]["f:data"]) for each in obj.entries] == [
        ("m1", "Apply", {"f:a": {}}),
        ("before-first-apply", "Update", {".": {}, "f:b": {}}),
    ]


def test_kubectl_takes_over_what_its_client_side_apply_set() -> None:
    """The manager kubectl may change fields that the last client-side apply set, prunes the others with its next apply, and keeps the annotation in step."""
    annotation = "kubectl.kubernetes.io/last-applied-configuration"
    last = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"n"},"data":{"a":"1","b":"1"}}'
    obj = Managed("", "v1", "ConfigMap")
    obj.write("kubectl-client-side-apply", {"metadata": {"name": "n", "annotations": {annotation: last}}, "data": {"a": "1", "b": "1"}})
    with pytest.raises(FieldConflict):
        obj.apply("other", config_map(a="2"))
    live = obj.apply("kubectl", config_map(a="2"))
    assert live["data"] == {"a": "2", "b": "1"}
    assert live["metadata"]["annotations"][annotation] == '{"apiVersion":"v1","data":{"a":"2"},"kind":"ConfigMap","metadata":{"name":"n"}}\n'


def test_kubectl_does_not_take_over_what_others_changed_since() -> None:
    """A field that no longer has its last applied value is a conflict for kubectl too."""
    annotation = "kubectl.kubernetes.io/last-applied-configuration"
    last = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"n"},"data":{"a":"1"}}'
    obj = Managed("", "v1", "ConfigMap")
    obj.write("kubectl-client-side-apply", {"metadata": {"name": "n", "annotations": {annotation: last}}, "data": {"a": "1"}})
    obj.change("curl", data={"a": "9"})
    with pytest.raises(FieldConflict, match=r'conflict with "curl" using v1: \.data\.a'):
        obj.apply("kubectl", config_map(a="2"))


@pytest.mark.parametrize(
    "kind,body,text",
    [
        (
            "ConfigMap",
            {"dota": {"a": "1"}},
            r"failed to create typed patch object \(/n; /v1, Kind=ConfigMap\): \.dota: field not declared in schema$",
        ),
        ("ConfigMap", {"data": "x"}, r"\.data: expected map, got &\{x\}$"),
        ("ConfigMap", {"data": {"a": 1}}, r"\.data\.a: expected string, got &value\.valueUnstructured\{Value:1\}$"),
        ("Pod", {"spec": {"containers": [{"name": "c", "args": "x"}]}}, r'\.spec\.containers\[name="c"\]\.args: expected list, got &\{x\}$'),
        ("Pod", {"spec": {"activeDeadlineSeconds": "5"}}, r"\.spec\.activeDeadlineSeconds: expected numeric \(int or float\), got string$"),
        ("Pod", {"spec": {"hostNetwork": "yes"}}, r"\.spec\.hostNetwork: expected boolean, got &\{yes\}$"),
        (
            "Pod",
            {"spec": {"containers": [{"name": "c", "env": [{"name": "A"}, {"name": "A"}]}]}},
            r'\.spec\.containers\[name="c"\]\.env: duplicate entries for key \[name="A"\]$',
        ),
        (
            "Pod",
            {"spec": {"a": 1}, "status": {"b": 1}},
            r"errors:\n  \.spec\.a: field not declared in schema\n  \.status\.b: field not declared in schema$",
        ),
    ],
)
def test_a_configuration_against_the_schema_is_refused(kind: str, body: dict[str, object], text: str) -> None:
    """Undeclared fields, wrong types and doubled keys are answered with a bare 500 that names the path."""
    with pytest.raises(ServerError, match=text):
        Managed("", "v1", kind).apply("m", {"metadata": {"name": "n"}, **body})


def test_a_configuration_of_another_type_is_refused() -> None:
    """Another version or kind, and managedFields in the body, are bad requests."""
    obj = Managed("", "v1", "ConfigMap")
    with pytest.raises(BadRequest, match=r"^invalid object type: /v1, Kind=Secret$"):
        obj.apply("m", {"kind": "Secret", "metadata": {"name": "n"}})
    with pytest.raises(BadRequest, match=r"^metadata\.managedFields must be nil$"):
        obj.apply("m", {"metadata": {"name": "n", "managedFields": []}})


def test_the_objects_own_metadata_is_never_pruned() -> None:
    """A manager who applied labels and drops them leaves name, namespace and uid alone."""
    obj = Managed("", "v1", "ConfigMap")
    obj.apply("m", {"metadata": {"name": "n", "labels": {"a": "b"}}})
    assert obj.live is not None
    obj.live["metadata"]["uid"] = "u"
    live = obj.apply("m", {"metadata": {}})
    assert live["metadata"] == {"name": "n", "uid": "u"}
