"""Decoding of built-in objects: what Go's decoder, defaulting and encoder would make of them together."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from kubemini.api.trees import Tree
from kubemini.machinery.schema.builtin import BuiltinSchemas, builtin_schemas
from kubemini.machinery.schema.contract import Undecodable


def decoded(kind: str, tree: Tree, group: str = "", version: str = "v1") -> Tree:
    """Return the clean form of an object."""
    return builtin_schemas().codec(group, version, kind).decode(tree).tree


def pod(**spec: Any) -> Tree:
    """Return a pod with one container, whose spec has more fields."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


def clean_spec(**spec: Any) -> Tree:
    """Return the clean spec of such a pod."""
    tree: Tree = decoded("Pod", pod(**spec))["spec"]
    return tree


def test_plain_defaults_are_filled() -> None:
    """A pod gets the defaults that depend on nothing else; empty structs stand where Go has no pointer."""
    assert decoded("Pod", pod()) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {
            "containers": [
                {
                    "name": "c",
                    "image": "i",
                    "resources": {},
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                }
            ],
            "dnsPolicy": "ClusterFirst",
            "enableServiceLinks": True,
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
            "securityContext": {},
            "terminationGracePeriodSeconds": 30,
        },
        "status": {},
    }


def test_a_clean_tree_is_returned_as_it_is() -> None:
    """Decoding what was decoded returns the very same object, and never touches what it is given."""
    raw = pod(volumes=[{"name": "v", "secret": {}}], hostNetwork=False)
    before = deepcopy(raw)
    clean = decoded("Pod", raw)
    assert raw == before
    assert decoded("Pod", clean) is clean


def test_clean_parts_are_shared() -> None:
    """A new pod around the containers of an old one keeps them as the very same list."""
    clean = decoded("Pod", pod())
    other = decoded("Pod", {**clean, "spec": {**clean["spec"], "hostname": "", "nodeName": "n"}})
    assert other["spec"]["containers"] is clean["spec"]["containers"]
    assert "hostname" not in other["spec"]


def test_a_remembered_part_is_not_confused_with_its_equal() -> None:
    """What is recognised is an object, not a place in memory or an equal value: a changed copy is decoded."""
    clean = decoded("Pod", pod())
    changed = [{**clean["spec"]["containers"][0], "bogus": 1}]
    result = builtin_schemas().codec("", "v1", "Pod").decode({**clean, "spec": {**clean["spec"], "containers": changed}})
    assert result.warnings == ['unknown field "spec.containers[0].bogus"']
    assert result.tree == clean


def test_remembering_is_bounded() -> None:
    """After thousands of different specs the last one still decodes right."""
    codec = builtin_schemas().codec("", "v1", "Pod")
    for index in range(5000):
        tree = codec.decode(pod(hostname=f"h{index}", hostNetwork=False)).tree
        assert (tree["spec"]["hostname"], tree["spec"].get("hostNetwork")) == (f"h{index}", None)


@pytest.mark.parametrize(
    "spec, left",
    [
        ({"hostNetwork": False, "hostname": "", "tolerations": [], "nodeSelector": {}}, {}),
        ({"hostNetwork": None, "hostname": None, "tolerations": None, "nodeSelector": None, "affinity": None, "priority": None}, {}),
        ({"hostNetwork": True, "hostname": "h"}, {"hostNetwork": True, "hostname": "h"}),
        ({"terminationGracePeriodSeconds": 0, "shareProcessNamespace": False, "runtimeClassName": ""},
         {"terminationGracePeriodSeconds": 0, "shareProcessNamespace": False, "runtimeClassName": ""}),
        ({"affinity": {}}, {"affinity": {}}),
    ],
    ids=["zeros", "nulls", "values", "zeros behind pointers", "an empty object behind a pointer"],
)  # fmt: skip
def test_zero_values(spec: Tree, left: Tree) -> None:
    """Zero values are left out where Go would not serialise them, and kept behind pointers."""
    plain = clean_spec()
    assert clean_spec(**spec) == {**plain, **left}


def test_fields_that_go_always_serialises() -> None:
    """Required lists show as null, required strings as empty, times that are no pointers as null."""
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"}}
    assert decoded("Role", role, "rbac.authorization.k8s.io")["rules"] is None
    assert decoded("Role", {**role, "rules": []}, "rbac.authorization.k8s.io")["rules"] is None
    status = {"conditions": [{"type": "Ready"}]}
    condition = decoded("Pod", {**pod(), "status": status})["status"]["conditions"][0]
    assert condition == {"type": "Ready", "status": "", "lastProbeTime": None, "lastTransitionTime": None}
    node = decoded("Node", {"metadata": {"name": "n"}})
    assert node["status"]["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 0}}
    assert node["status"]["nodeInfo"]["kubeletVersion"] == ""
    claim = decoded("PersistentVolumeClaim", {"spec": {"dataSource": {"kind": "PersistentVolumeClaim", "name": "x"}}})
    assert claim["spec"]["dataSource"] == {"apiGroup": None, "kind": "PersistentVolumeClaim", "name": "x"}


def test_null_elements_are_zero_values() -> None:
    """Null in a list or map is the zero value of its element."""
    assert decoded("ConfigMap", {"metadata": {"name": "c", "labels": {"a": None}}, "data": {"k": None}})["data"] == {"k": ""}
    assert clean_spec(containers=[{"name": "c", "args": ["a", None]}])["containers"][0]["args"] == ["a", ""]
    assert clean_spec(tolerations=[None])["tolerations"] == [{}]


def test_quantities_are_canonical() -> None:
    """Quantities come in any form, numbers too; resource lists hold nothing below a thousandth."""
    limits = {"cpu": "1000m", "memory": "1024Mi", "a/b": 2, "c/d": "0.00001", "e/f": 0.5}
    spec = clean_spec(containers=[{"name": "c", "resources": {"limits": limits}}])
    assert spec["containers"][0]["resources"]["limits"] == {"cpu": "1", "memory": "1Gi", "a/b": "2", "c/d": "1m", "e/f": "500m"}
    field = {"name": "X", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}
    assert clean_spec(containers=[{"name": "c", "env": [field]}])["containers"][0]["env"][0]["valueFrom"]["resourceFieldRef"]["divisor"] == "0"


def test_times_are_whole_seconds_in_utc() -> None:
    """Times lose their fraction and their offset; micro times keep six decimals and take no other number of them."""
    event = {"metadata": {"name": "e"}, "firstTimestamp": "2026-01-02T03:04:05.9Z", "lastTimestamp": "2026-01-02T05:04:05+02:00"}
    clean = decoded("Event", event)
    assert (clean["firstTimestamp"], clean["lastTimestamp"], clean["eventTime"]) == ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z", None)
    lease = {"spec": {"renewTime": "2026-01-02T03:04:05.000000+02:00"}}
    assert decoded("Lease", lease, "coordination.k8s.io")["spec"] == {"renewTime": "2026-01-02T01:04:05.000000Z"}


def test_bytes_are_base64_with_padding() -> None:
    """Secrets hold base64; line breaks vanish."""
    secret = decoded("Secret", {"data": {"a": "YWJj\nZGU=", "b": "", "c": None}})
    assert secret["data"] == {"a": "YWJjZGU=", "b": "", "c": ""}
    assert secret["type"] == "Opaque"


def test_int_or_string_keeps_its_kind() -> None:
    """A port may be a number or a name; zero stays where it is required."""
    probe = {"httpGet": {"port": "web"}, "timeoutSeconds": 0}
    container = clean_spec(containers=[{"name": "c", "livenessProbe": probe, "readinessProbe": {"tcpSocket": {"port": 0}}}])["containers"][0]
    assert container["livenessProbe"]["httpGet"] == {"path": "/", "port": "web", "scheme": "HTTP"}
    assert container["livenessProbe"]["timeoutSeconds"] == 1
    assert container["readinessProbe"]["tcpSocket"] == {"port": 0}


def test_embedded_json_is_untouched() -> None:
    """Raw extensions keep whatever JSON they hold, nulls and all; without any they are null."""
    data = {"spec": {"a": None, "b": [1.5, {"c": ""}]}}
    revision = {"metadata": {"name": "r"}, "data": data, "revision": 1}
    assert decoded("ControllerRevision", revision, "apps")["data"] is data
    assert decoded("ControllerRevision", {"revision": 1}, "apps")["data"] is None


def test_json_schemas_decode_to_all_depths() -> None:
    """The schema of a CustomResourceDefinition holds schemas, booleans, lists and any JSON."""
    schema = {
        "type": "object",
        "default": None,
        "enum": ["a", None],
        "additionalProperties": {"type": "string", "bogus": 1},
        "properties": {"a": {"items": {"type": "integer", "minimum": 1}}, "b": {"additionalProperties": False, "x-kubernetes-list-type": ""}},
    }
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    crd = {"spec": {"group": "g", "names": {"plural": "p", "kind": "K"}, "scope": "Namespaced", "versions": [version]}}
    result = builtin_schemas().codec("apiextensions.k8s.io", "v1", "CustomResourceDefinition").decode(crd)
    assert result.tree["spec"]["versions"][0]["schema"]["openAPIV3Schema"] == {
        "type": "object",
        "enum": ["a", None],
        "additionalProperties": {"type": "string"},
        "properties": {"a": {"items": {"type": "integer", "minimum": 1}}, "b": {"additionalProperties": False, "x-kubernetes-list-type": ""}},
    }
    assert result.tree["spec"]["conversion"] == {"strategy": "None"}


def test_unknown_fields() -> None:
    """Unknown fields are dropped: warned of, refused or silent. Names differ by case."""
    codec = builtin_schemas().codec("", "v1", "Pod")
    raw = {**pod(), "bogus": {"a": 1}}
    raw["spec"] = {**raw["spec"], "Volumes": [], "containers": [{"name": "c"}, {"name": "d", "env": [{"nme": "x"}]}]}
    texts = ['unknown field "spec.Volumes"', 'unknown field "spec.containers[1].env[0].nme"', 'unknown field "bogus"']
    warned = codec.decode(raw)
    assert sorted(warned.warnings) == sorted(texts)
    assert codec.decode(raw, validation="Ignore").warnings == []
    assert codec.decode(raw, validation="Ignore").tree == warned.tree
    assert "bogus" not in warned.tree
    with pytest.raises(Undecodable) as refused:
        codec.decode(raw, validation="Strict")
    assert refused.value.message == f'Pod in version "v1" cannot be handled as a Pod: strict decoding error: {", ".join(warned.warnings)}'
    assert (refused.value.code, refused.value.reason) == (400, "BadRequest")


def test_duplicates_of_the_parser_are_told_too() -> None:
    """What the parser says of a body is warned of or refused along with unknown fields; YAML's word goes first."""
    codec = builtin_schemas().codec("", "v1", "ConfigMap")
    assert codec.decode({"bogus": 1}, duplicates=['duplicate field "data"']).warnings == ['unknown field "bogus"', 'duplicate field "data"']
    yaml = 'yaml: unmarshal errors:\n  line 2: key "a" already set in map'
    assert codec.decode({"bogus": 1}, duplicates=[yaml]).warnings == [yaml, 'unknown field "bogus"']
    with pytest.raises(Undecodable, match=r'strict decoding error: duplicate field "data"$'):
        codec.decode({}, validation="Strict", duplicates=['duplicate field "data"'])
    assert codec.decode({}, validation="Ignore", duplicates=["x"]).warnings == []


def test_at_most_a_hundred_unknown_fields_are_told() -> None:
    """A body of a thousand mistakes gives a hundred warnings."""
    assert len(builtin_schemas().codec("", "v1", "ConfigMap").decode({f"x{index}": 1 for index in range(1000)}).warnings) == 100


@pytest.mark.parametrize(
    "tree, why",
    [
        ({"spec": {"activeDeadlineSeconds": "5"}}, "json: cannot unmarshal string into Go struct field PodSpec.spec.activeDeadlineSeconds of type int64"),
        ({"spec": {"activeDeadlineSeconds": 1.5}}, "json: cannot unmarshal number 1.5 into Go struct field PodSpec.spec.activeDeadlineSeconds of type int64"),
        ({"spec": {"priority": 2**40}}, "json: cannot unmarshal number 1099511627776 into Go struct field PodSpec.spec.priority of type int32"),
        ({"spec": {"hostNetwork": "true"}}, "json: cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork of type bool"),
        ({"spec": {"containers": [{"image": 5}]}}, "json: cannot unmarshal number into Go struct field Container.spec.containers.image of type string"),
        ({"spec": {"containers": {}}}, "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container"),
        ({"spec": {"containers": ["c"]}}, "json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type v1.Container"),
        ({"spec": {"restartPolicy": 1}}, "json: cannot unmarshal number into Go struct field PodSpec.spec.restartPolicy of type v1.RestartPolicy"),
        ({"spec": {"volumes": [{"emptyDir": []}]}},
         "json: cannot unmarshal array into Go struct field Volume.spec.volumes.VolumeSource.emptyDir of type v1.EmptyDirVolumeSource"),
        ({"spec": {"nodeSelector": {"a": True}}}, "json: cannot unmarshal bool into Go struct field PodSpec.spec.nodeSelector of type string"),
        ({"spec": {"overhead": []}}, "json: cannot unmarshal array into Go struct field PodSpec.spec.overhead of type v1.ResourceList"),
        ({"metadata": "x"}, "json: cannot unmarshal string into Go struct field Pod.metadata of type v1.ObjectMeta"),
        ({"metadata": {"uid": 1}}, "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.uid of type types.UID"),
        ({"metadata": {"creationTimestamp": 5}}, "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.creationTimestamp of type string"),
        ({"metadata": {"creationTimestamp": "now"}}, 'parsing time "now" as "2006-01-02T15:04:05Z07:00": cannot parse "now" as "2006"'),
        ({"spec": {"overhead": {"cpu": "1x"}}}, "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"),
        ({"spec": {"overhead": {"cpu": True}}}, "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"),
        ({"spec": {"containers": [{"livenessProbe": {"tcpSocket": {"port": {}}}}]}},
         "json: cannot unmarshal object into Go struct field TCPSocketAction.spec.containers.livenessProbe.ProbeHandler.tcpSocket.port of type int32"),
    ],
)  # fmt: skip
def test_wrong_types_are_told_in_gos_words(tree: Tree, why: str) -> None:
    """Every text was printed by the decoder of Kubernetes 1.36."""
    with pytest.raises(Undecodable) as refused:
        decoded("Pod", tree)
    assert refused.value.why == why
    assert refused.value.message == f'Pod in version "v1" cannot be handled as a Pod: {why}'


@pytest.mark.parametrize("body", [[], "x", 5, True])
def test_a_body_that_is_no_object(body: Any) -> None:
    """Anything but an object is refused with the type of the kind."""
    with pytest.raises(Undecodable, match=r"json: cannot unmarshal (array|string|number|bool) into Go value of type v1\.Pod"):
        decoded("Pod", body)


def test_a_served_version_decodes_its_own_fields() -> None:
    """A field of a newer version is unknown to an older one."""
    raw = pod(containers=[{"name": "c", "restartPolicyRules": [{"action": "Restart"}]}])
    assert BuiltinSchemas("1.33").codec("", "v1", "Pod").decode(raw).warnings == ['unknown field "spec.containers[0].restartPolicyRules"']
    assert BuiltinSchemas("1.34").codec("", "v1", "Pod").decode(raw).warnings == []
