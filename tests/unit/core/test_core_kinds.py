"""The other kinds of the core group: configuration, namespaces, nodes, volumes, events, endpoints, quotas."""

from base64 import b64encode
from typing import Any

import pytest

from kubemini.machinery.errors import ApiStatus, Conflict, Forbidden

# ------------------------------------------------------------------------------------------------------ configuration


def test_a_secret_keeps_texts_as_data(desk: Any) -> None:
    """stringData goes into data and is not returned; the type is Opaque unless given."""
    secret = desk.create("Secret", data={"a": "eA=="}, stringData={"b": "y"})
    assert (secret["data"], secret["type"], "stringData" in secret) == ({"a": "eA==", "b": b64encode(b"y").decode()}, "Opaque", False)


CONFIG: list[tuple[str, dict[str, Any], list[str]]] = [
    ("ConfigMap", {"data": {"k": "1"}, "binaryData": {"k": "AAAA"}}, ['data[k]: Invalid value: "k": duplicate of key present in binaryData']),
    ("ConfigMap", {"data": {"k": "x" * (1024 * 1024 + 1)}}, ["[]: Too long: may not be more than 1048576 bytes"]),
    ("Secret", {"type": "kubernetes.io/tls"}, ["data[tls.crt]: Required value", "data[tls.key]: Required value"]),
    ("Secret", {"type": "kubernetes.io/ssh-auth"}, ["data[ssh-privatekey]: Required value"]),
    (
        "Secret",
        {"type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": "x"}},
        ["data[.dockerconfigjson]: Invalid value: \"<secret contents redacted>\": invalid character 'x' looking for beginning of value"],
    ),
    (
        "Secret",
        {"type": "kubernetes.io/dockercfg", "stringData": {".dockercfg": "[]"}},
        ['data[.dockercfg]: Invalid value: "<secret contents redacted>": json: cannot unmarshal array into Go value of type map[string]interface {}'],
    ),
]


@pytest.mark.parametrize("kind, fields, expected", CONFIG)
def test_wrong_configuration_is_refused(desk: Any, kind: str, fields: dict[str, Any], expected: list[str]) -> None:
    """Keys, sizes and typed secrets are checked."""
    assert desk.causes(kind, **fields) == expected


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret"])
def test_immutable_configuration_only_changes_its_metadata(desk: Any, kind: str) -> None:
    """Once immutable, data and the mark itself stay."""
    desk.create(kind, data={"a": "eA=="}, immutable=True)
    text = "Forbidden: field is immutable when `immutable` is set"
    assert desk.unpatched(kind, "x", {"data": {"a": None}}) == [f"data: {text}"]
    assert desk.unpatched(kind, "x", {"immutable": False}) == [f"immutable: {text}"]
    desk.patch(kind, "x", {"metadata": {"labels": {"a": "b"}}})


# ------------------------------------------------------------------------------------------------------ namespaces


def test_a_namespace_carries_its_name_and_a_finalizer(desk: Any) -> None:
    """The label is defended; finalizers change through their subresource only."""
    namespace = desk.create("Namespace", name="team")
    assert (namespace["metadata"]["labels"], namespace["spec"], namespace["status"]) == (
        {"kubernetes.io/metadata.name": "team"},
        {"finalizers": ["kubernetes"]},
        {"phase": "Active"},
    )
    changed = desk.patch("Namespace", "team", {"metadata": {"labels": {"kubernetes.io/metadata.name": "other"}}, "spec": {"finalizers": []}})
    assert (changed["metadata"]["labels"], changed["spec"]) == (namespace["metadata"]["labels"], namespace["spec"])


def test_a_deleted_namespace_waits_and_takes_nothing_new(desk: Any) -> None:
    """Terminating, refuses creates with the cause, refuses a second deletion, keeps updates possible."""
    desk.create("Namespace", name="team")
    desk.create("ConfigMap", name="held", namespace="team")
    assert desk.delete("Namespace", "team").obj["status"]["phase"] == "Terminating"
    refusal = desk.refused("Secret", name="s", namespace="team")
    assert isinstance(refusal, Forbidden)
    assert refusal.message == 'secrets "s" is forbidden: unable to create new content in namespace team because it is being terminated'
    assert refusal.details["causes"] == [
        {"reason": "NamespaceTerminating", "message": "namespace team is being terminated", "field": "metadata.namespace"}
    ]
    with pytest.raises(Conflict, match="The system is ensuring all content is removed from this namespace"):
        desk.delete("Namespace", "team")
    desk.patch("ConfigMap", "held", {"data": {"a": "b"}}, namespace="team")


def test_system_namespaces_cannot_be_deleted(desk: Any) -> None:
    """The namespace ``default`` never goes."""
    with pytest.raises(Forbidden, match=r'^namespaces "default" is forbidden: this namespace may not be deleted$'):
        desk.delete("Namespace", "default")


def test_an_absent_namespace_is_not_found(desk: Any) -> None:
    """Creating in a namespace that never was is 404 of the namespace."""
    refusal = desk.refused("ConfigMap", namespace="nowhere")
    assert (refusal.code, refusal.message) == (404, 'namespaces "nowhere" not found')


# ------------------------------------------------------------------------------------------------------ nodes


def test_a_new_node_is_tainted_and_keeps_the_status_it_came_with(desk: Any) -> None:
    """Kubelets register with a status; allocatable defaults to capacity."""
    node = desk.create("Node", name="n", spec={"taints": [{"key": "a", "effect": "NoSchedule"}]}, status={"capacity": {"cpu": "4"}})
    assert [each["key"] for each in node["spec"]["taints"]] == ["a", "node.kubernetes.io/not-ready"]
    assert node["status"]["allocatable"] == {"cpu": "4"}


def test_node_facts_are_set_once(desk: Any) -> None:
    """podCIDR and providerID go from empty to something, then stay."""
    node = desk.create("Node", name="n", spec={"podCIDR": "10.1.0.0/24"})
    assert node["spec"]["podCIDRs"] == ["10.1.0.0/24"]
    desk.patch("Node", "n", {"spec": {"providerID": "one"}})
    assert desk.unpatched("Node", "n", {"spec": {"providerID": "two"}}) == [
        'spec.providerID: Forbidden: node updates may not change providerID except from "" to valid'
    ]
    assert desk.unpatched("Node", "n", {"spec": {"podCIDR": "10.2.0.0/24", "podCIDRs": ["10.2.0.0/24"]}}) == [
        'spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid'
    ]


def test_wrong_capacities_are_refused(desk: Any) -> None:
    """Counted resources come in whole numbers."""
    assert desk.causes("Node", name="n", status={"capacity": {"example.com/gpu": "500m"}}) == [
        'status.capacity.example.com/gpu: Invalid value: "500m": must be an integer',
        'status.allocatable.example.com/gpu: Invalid value: "500m": must be an integer',
    ]


# ------------------------------------------------------------------------------------------------------ storage

CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def test_a_claim_gets_the_newest_default_class_and_a_finalizer(desk: Any) -> None:
    """Of several default classes the newest counts, then the first by name; an empty class is a choice."""
    mark = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
    desk.create("StorageClass", name="b", meta=mark, provisioner="p")
    desk.create("StorageClass", name="a", meta=mark, provisioner="p")
    claim = desk.create("PersistentVolumeClaim", spec=CLAIM)
    assert (claim["spec"]["storageClassName"], claim["metadata"]["finalizers"], claim["status"]) == (
        "a",
        ["kubernetes.io/pvc-protection"],
        {"phase": "Pending"},
    )
    assert desk.create("PersistentVolumeClaim", name="y", spec={**CLAIM, "storageClassName": ""})["spec"]["storageClassName"] == ""


def test_a_claim_only_grows_once_bound(desk: Any) -> None:
    """The spec is immutable but for the volume's name, and the size of a bound claim."""
    desk.create("PersistentVolumeClaim", spec=CLAIM)
    bigger = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    (text,) = desk.unpatched("PersistentVolumeClaim", "x", bigger)
    assert text.startswith("spec: Forbidden: spec is immutable after creation except")
    assert '   "Requests": {\n-   "storage": "1Gi"\n+   "storage": "2Gi"\n' in text
    desk.patch("PersistentVolumeClaim", "x", {"spec": {"volumeName": "v"}})
    desk.patch("PersistentVolumeClaim", "x", {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}, subresource="status")
    desk.patch("PersistentVolumeClaim", "x", bigger)
    assert desk.unpatched("PersistentVolumeClaim", "x", {"spec": {"resources": {"requests": {"storage": "1Gi"}}}}) == [
        "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"
    ]


def test_a_volume_has_one_source_and_local_ones_a_node(desk: Any) -> None:
    """Volumes are checked, and their source never changes."""
    spec = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
    assert desk.causes("PersistentVolume", spec=spec) == ["spec: Required value: must specify a volume type"]
    assert desk.causes("PersistentVolume", spec={**spec, "local": {"path": "/x"}}) == [
        "spec.nodeAffinity: Required value: Local volume requires node affinity"
    ]
    volume = desk.create("PersistentVolume", spec={**spec, "hostPath": {"path": "/x"}})
    assert (volume["metadata"]["finalizers"], volume["spec"]["persistentVolumeReclaimPolicy"]) == (["kubernetes.io/pv-protection"], "Retain")
    assert desk.unpatched("PersistentVolume", "x", {"spec": {"hostPath": {"path": "/y"}}})[0].startswith(
        "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation\n"
    )


def test_what_a_storage_class_means_stays(desk: Any) -> None:
    """Provisioner, parameters, reclaim policy and binding mode are immutable."""
    desk.create("StorageClass", provisioner="p", parameters={"a": "b"})
    assert desk.unpatched("StorageClass", "x", {"parameters": {"a": "c"}}) == ["parameters: Forbidden: updates to parameters are forbidden."]
    assert desk.unpatched("StorageClass", "x", {"provisioner": "q"}) == ["provisioner: Forbidden: updates to provisioner are forbidden."]


# ------------------------------------------------------------------------------------------------------ events, endpoints

EVENT = {"reason": "Tested", "type": "Normal", "action": "Test", "reportingController": "example.com/me", "reportingInstance": "me-0"}


def test_one_event_is_seen_in_two_forms(desk: Any) -> None:
    """What is written through events.k8s.io reads back through v1 under its old names."""
    about = {"kind": "Secret", "namespace": "default", "name": "s"}
    desk.create("Event", group="events.k8s.io", eventTime="2026-01-02T03:04:05.000000Z", regarding=about, note="hello", **EVENT)
    old = desk.get("Event", "x", group="")
    assert (old["involvedObject"], old["message"], old["reportingComponent"], old["source"], old["apiVersion"]) == (
        about,
        "hello",
        "example.com/me",
        {},
        "v1",
    )
    new = desk.get("Event", "x", group="events.k8s.io")
    assert (new["regarding"], new["note"], new["reportingController"], new["apiVersion"]) == (about, "hello", "example.com/me", "events.k8s.io/v1")
    assert not {"involvedObject", "message", "source"} & set(new)


def test_events_stand_beside_their_object(desk: Any) -> None:
    """The namespace of an event is its object's; new-style ones must be complete."""
    assert desk.causes("Event", group="", involvedObject={"kind": "Pod", "namespace": "other", "name": "p"}) == [
        'involvedObject.namespace: Invalid value: "other": does not match event.namespace'
    ]
    desk.create("Event", group="", involvedObject={"kind": "Node", "name": "n"})
    fields = [
        each.partition(":")[0] for each in desk.causes("Event", name="y", group="events.k8s.io", type="Odd", regarding={"kind": "Node", "name": "n"})
    ]
    assert fields == ["eventTime", "type"]


def test_a_slice_counts_generations_by_its_endpoints(desk: Any) -> None:
    """Endpoints and ports make the generation, labels do not."""
    slice_ = desk.create("EndpointSlice", addressType="IPv4", endpoints=[{"addresses": ["192.0.2.9"]}], ports=[{"port": 80}])
    assert (slice_["metadata"]["generation"], slice_["ports"]) == (1, [{"name": "", "port": 80, "protocol": "TCP"}])
    assert desk.patch("EndpointSlice", "x", {"metadata": {"labels": {"a": "b"}}})["metadata"]["generation"] == 1
    assert desk.patch("EndpointSlice", "x", {"endpoints": []})["metadata"]["generation"] == 2


SLICES: list[tuple[dict[str, Any], list[str]]] = [
    ({"addressType": "IPv4", "endpoints": [{"addresses": []}]}, ["endpoints[0].addresses: Required value: must contain at least 1 endpoint"]),
    (
        {"addressType": "IPv4", "endpoints": [{"addresses": ["::1"]}]},
        [
            'endpoints[0].addresses[0]: Invalid value: "::1": must be a valid IPv4 address',
            'endpoints[0].addresses[0]: Invalid value: "::1": may not be in the loopback range (127.0.0.0/8, ::1/128)',
        ],
    ),
    ({"addressType": "Odd", "endpoints": []}, ['addressType: Unsupported value: "Odd": supported values: "FQDN", "IPv4", "IPv6"']),
    (
        {"addressType": "IPv4", "endpoints": [], "ports": [{"name": "a", "port": 1}, {"name": "a", "port": 2}]},
        ['ports[1].name: Duplicate value: "a"'],
    ),
    (
        {
            "addressType": "IPv4",
            "endpoints": [
                {"addresses": ["192.0.2.9"], "hints": {"forZones": [{"name": "a"}] * 2, "forNodes": [{"name": f"n-{n}"} for n in range(9)]}}
            ],
        },
        [
            'endpoints[0].hints.forZones[1].name: Duplicate value: "a"',
            "endpoints[0].hints.forNodes: Too many: 9: must have at most 8 items",
        ],
    ),
]


@pytest.mark.parametrize("fields, expected", SLICES)
def test_wrong_slices_are_refused(desk: Any, fields: dict[str, Any], expected: list[str]) -> None:
    """Addresses fit their type and are ordinary ones."""
    assert desk.causes("EndpointSlice", **fields) == expected


def test_slices_forget_the_topology_of_v1beta1(desk: Any) -> None:
    """Endpoints written through v1 have no deprecatedTopology."""
    endpoint = {"addresses": ["192.0.2.9"], "deprecatedTopology": {"kubernetes.io/hostname": "n"}}
    made = desk.create("EndpointSlice", addressType="IPv4", endpoints=[endpoint])
    assert made["endpoints"] == [{"addresses": ["192.0.2.9"], "conditions": {}}]
    assert desk.patch("EndpointSlice", "x", {"endpoints": [endpoint]})["endpoints"] == made["endpoints"]


def test_endpoints_need_addresses(desk: Any) -> None:
    """A subset without any address is refused, and so is one that no endpoint can have."""
    assert desk.causes("Endpoints", subsets=[{"ports": [{"port": 1}]}]) == [
        "subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`"
    ]
    assert desk.causes("Endpoints", subsets=[{"addresses": [{"ip": "169.254.1.1"}]}]) == [
        'subsets[0].addresses[0].ip: Invalid value: "169.254.1.1": may not be in the link-local range (169.254.0.0/16, fe80::/10)'
    ]


# ------------------------------------------------------------------------------------------------------ quotas, limit ranges

QUOTAS: list[tuple[dict[str, Any], list[str]]] = [
    (
        {"hard": {"bogus": "1"}},
        [
            'spec.hard[bogus]: Invalid value: "bogus": must be a standard resource type or fully qualified',
            'spec.hard[bogus]: Invalid value: "bogus": must be a standard resource for quota',
        ],
    ),
    ({"hard": {"pods": "1.5"}}, ['spec.hard[pods]: Invalid value: "1500m": must be an integer']),
    (
        {"hard": {"pods": "1"}, "scopes": ["Terminating", "NotTerminating"]},
        ['spec.scopes: Invalid value: ["Terminating","NotTerminating"]: conflicting scopes'],
    ),
    (
        {"hard": {"pods": "1"}, "scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In"}]}},
        [
            "spec.scopeSelector.matchExpressions.values: Required value: must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
        ],
    ),
]


@pytest.mark.parametrize("spec, expected", QUOTAS)
def test_wrong_quotas_are_refused(desk: Any, spec: dict[str, Any], expected: list[str]) -> None:
    """Resources and scopes are checked against each other."""
    assert desk.causes("ResourceQuota", spec=spec) == expected


def test_a_limit_range_fills_its_own_defaults(desk: Any) -> None:
    """Default limits come from maxima, default requests from default limits, then from minima."""
    item = {"type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1Mi"}, "default": {"memory": "1Gi"}}
    found = desk.create("LimitRange", spec={"limits": [item]})["spec"]["limits"][0]
    assert (found["default"], found["defaultRequest"]) == ({"cpu": "2", "memory": "1Gi"}, {"memory": "1Gi", "cpu": "2"})


def test_limits_of_a_range_must_fit_together(desk: Any) -> None:
    """A ratio wider than maximum by minimum can never be met."""
    item = {"type": "Pod", "max": {"cpu": "4"}, "min": {"cpu": "2"}, "maxLimitRequestRatio": {"cpu": "3"}}
    assert desk.causes("LimitRange", spec={"limits": [item]}) == [
        'spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "3": ratio 3 is greater than max/min = 2.000000'
    ]


def test_put_creates_some_kinds(desk: Any) -> None:
    """Services, endpoints, events and leases can be PUT into being; config maps cannot."""
    import asyncio

    body = {"metadata": {"name": "new"}, "spec": {"clusterIP": "None"}}
    assert asyncio.run(desk.api.update(desk.served("Service"), "default", "new", body)).code == 201
    with pytest.raises(ApiStatus) as problem:
        asyncio.run(desk.api.update(desk.served("ConfigMap"), "default", "new", {"metadata": {"name": "new"}}))
    assert problem.value.code == 404
