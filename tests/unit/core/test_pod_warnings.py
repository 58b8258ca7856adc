"""Warnings about pods and pod templates that are legal, but hardly meant."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.server.kinds.core.pod_warnings import pod_warnings

NULL = "a null labelSelector results in matching no pod"
SECCOMP = 'non-functional in v1.27+; use the "seccompProfile" field instead'
REQUIRED, PREFERRED = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"


def port(number: int, host: int = 0, address: str = "", **more: Any) -> dict[str, Any]:
    """Return a port of a container, UDP."""
    return {"containerPort": number, "protocol": "UDP", **({"hostPort": host} if host else {}), **({"hostIP": address} if address else {}), **more}


def pod(*containers: list[dict[str, Any]], **spec: Any) -> dict[str, Any]:
    """Return a pod of containers with these ports."""
    return {"spec": {"containers": [{"name": f"c{index}", "ports": ports} for index, ports in enumerate(containers)], **spec}}


@pytest.mark.parametrize(
    "containers, expected",
    [
        (([port(80), port(80), port(80)],), ["[0].ports[1]: duplicate 0 0", "[0].ports[2]: duplicate 0 0", "[0].ports[2]: duplicate 0 1"]),
        (([port(80)], [port(80)]), ["[1].ports[0]: duplicate 0 0"]),
        (([port(80, 80), port(180, 80)],), []),
        (([port(80, 80, "10.0.0.1"), port(80)],), ["[0].ports[1]: overlapping 0 0"]),
        (([port(80, 80), port(80, 81)],), []),
        (([port(80, 80, "10.0.0.1"), port(80, 80, "10.0.0.2")],), []),
        (
            ([port(80, 80, "10.0.0.1"), port(80, 80), port(80, 80, "10.0.0.2")],),
            ["[0].ports[1]: dangerously ambiguous 0 0", "[0].ports[2]: dangerously ambiguous 0 1"],
        ),
    ],
)
def test_ports_that_are_declared_twice(containers: tuple[list[dict[str, Any]], ...], expected: list[str]) -> None:
    """Each pair is told of: alike, one within the other, or such that nobody knows."""
    texts = []
    for each in expected:
        *words, container, index = each.split(" ")
        texts.append(f"spec.containers{' '.join(words)} port definition with spec.containers[{container}].ports[{index}]")
    assert pod_warnings(pod(*containers)) == texts


def test_an_address_of_a_host_without_a_port_of_it() -> None:
    """The port is shown as Go prints it."""
    text = "spec.containers[0].ports[0]: hostIP set without hostPort: {Name:p HostPort:0 ContainerPort:80 Protocol:UDP HostIP:10.0.0.1}"
    assert pod_warnings(pod([port(80, 0, "10.0.0.1", name="p")])) == [text]


def test_names_of_ports_of_init_containers_count_where_these_stay() -> None:
    """A doubled port counts in any init container, a doubled name in a sidecar."""
    inits = [{"name": "i", "ports": [port(80, name="p")]}, {"name": "s", "restartPolicy": "Always", "ports": [port(81, name="q")]}]
    first, second = "spec.containers[0].ports[0]", "spec.containers[0].ports[1]"
    sidecar = "spec.initContainers[1].ports[0]"
    assert pod_warnings(pod([port(80, name="p"), port(82, name="q")], initContainers=inits)) == [
        f"{first}: duplicate port definition with spec.initContainers[0].ports[0]",
        f'{second}: duplicate port name "q" with {sidecar}, services and probes that select ports by name will use {sidecar}',
    ]


@pytest.mark.parametrize(
    "spec, expected",
    [
        (
            {"topologySpreadConstraints": [{"topologyKey": "a"}, {"topologyKey": "b", "labelSelector": {}}]},
            [f"spec.topologySpreadConstraints[0].labelSelector: {NULL}"],
        ),
        (
            {"affinity": {"podAffinity": {REQUIRED: [{"topologyKey": "a"}]}, "podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": {}}]}}},
            [
                f"spec.affinity.podAffinity.{REQUIRED}[0].labelSelector: {NULL}",
                f"spec.affinity.podAntiAffinity.{PREFERRED}[0].podAffinityTerm.labelSelector: {NULL}",
            ],
        ),
        ({"overhead": {"memory": "1m"}}, ['spec.overhead[memory]: fractional byte value "1m" is invalid, must be an integer']),
        (
            {"imagePullSecrets": [{}, {}]},
            [
                'spec.imagePullSecrets[1].name: duplicate name ""',
                'spec.imagePullSecrets[0].name: invalid empty name ""',
                'spec.imagePullSecrets[1].name: invalid empty name ""',
            ],
        ),
        (
            {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "1m"}}}}}}]},
            [
                (
                    "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources.requests[storage]: "
                    'fractional byte value "1m" is invalid, must be an integer'
                )
            ],
        ),
        (
            {"volumes": [{"name": "v", "storageos": {}}]},
            ["spec.volumes[0].storageOS: deprecated in v1.22, non-functional in v1.25+"],
        ),
        (
            {"dnsConfig": {"nameservers": ["1::0"]}, "hostAliases": [{"ip": "2::0"}]},
            [
                'spec.dnsConfig.nameservers[0]: IPv6 address "1::0" should be in RFC 5952 canonical format ("1::")',
                'spec.hostAliases[0].ip: IPv6 address "2::0" should be in RFC 5952 canonical format ("2::")',
            ],
        ),
    ],
)
def test_parts_of_a_spec(spec: dict[str, Any], expected: list[str]) -> None:
    """What selects nothing, is no whole number, or goes out of use."""
    assert pod_warnings(pod([], **spec)) == expected


def test_preferences_for_nodes_that_no_label_can_satisfy() -> None:
    """Values of preferred terms are looked at; those of required ones are refused elsewhere."""
    term = {"matchExpressions": [{"key": "beta.kubernetes.io/os", "operator": "In", "values": ["-1"]}]}
    here = f"spec.affinity.nodeAffinity.{PREFERRED}[0].preference.matchExpressions[0]"
    key, value = pod_warnings(pod([], affinity={"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": term}]}}))
    assert key == f'{here}.key: beta.kubernetes.io/os is deprecated since v1.14; use "kubernetes.io/os" instead'
    assert value.startswith(f"{here}.values[0]: -1 is invalid, a valid label must be an empty string or consist of")


@pytest.mark.parametrize(
    "volume, expected",
    [
        ({"configMap": {"name": "m", "items": [{"path": "a"}, {"path": "a/"}]}}, 'volume "v" (ConfigMap "m"): overlapping paths: "a" with "a"'),
        ({"secret": {"secretName": "s", "items": [{"path": "a/b"}, {"path": "a"}]}}, 'volume "v" (Secret "s"): overlapping paths: "a" with "a/b"'),
        ({"downwardAPI": {"items": [{"path": "a"}, {"path": "ab"}, {"path": "a/b"}]}}, 'volume "v" (DownwardAPI): overlapping paths: "a/b" with "a"'),
        (
            {"projected": {"sources": [{"configMap": {"name": "m", "items": [{"path": "a"}]}}, {"serviceAccountToken": {"path": "a"}}]}},
            'volume "v" (Projected): overlapping paths: "a" (ServiceAccountToken) with "a" (ConfigMap "m")',
        ),
        ({"projected": {"sources": [{}]}}, 'volume "v" (Projected) has no sources provided'),
        (
            {"projected": {"sources": [{"clusterTrustBundle": {"name": "b", "path": "x"}}, {"podCertificate": {"keyPath": "x/y"}}]}},
            'volume "v" (Projected): overlapping paths: "x/y" (PodCertificate key) with "x" (ClusterTrustBundle "b")',
        ),
    ],
)
def test_two_things_in_one_place(volume: dict[str, Any], expected: str) -> None:
    """A file cannot be a directory too, nor two files."""
    assert pod_warnings(pod([], volumes=[{"name": "v", **volume}])) == [expected]


def test_annotations_that_fields_have_replaced() -> None:
    """Seccomp says nothing any more without the field; AppArmor still does, but templates should not say it so."""
    annotations = {
        "security.alpha.kubernetes.io/sysctls": "a=b",
        "seccomp.security.alpha.kubernetes.io/pod": "x",
        "container.seccomp.security.alpha.kubernetes.io/c0": "x",
        "container.apparmor.security.beta.kubernetes.io/c0": "unconfined",
    }
    tree = {"metadata": {"annotations": annotations}, **pod([])}
    expected = [
        'annotations[security.alpha.kubernetes.io/sysctls]: non-functional in v1.11+; use the "sysctls" field instead',
        f"annotations[seccomp.security.alpha.kubernetes.io/pod]: {SECCOMP}",
        f"annotations[container.seccomp.security.alpha.kubernetes.io/c0]: {SECCOMP}",
    ]
    assert pod_warnings(tree) == [f"metadata.{each}" for each in expected]
    app_armor = 'annotations[container.apparmor.security.beta.kubernetes.io/c0]: deprecated since v1.30; use the "appArmorProfile" field instead'
    assert pod_warnings(tree, template=True, path="spec.template.spec") == [f"spec.template.metadata.{each}" for each in [*expected, app_armor]]
    secured = {
        **tree,
        "spec": {**tree["spec"], "securityContext": {"appArmorProfile": {"type": "Unconfined"}, "seccompProfile": {"type": "Unconfined"}}},
    }
    assert pod_warnings(secured, template=True, path="spec.template.spec") == [
        f"spec.template.metadata.{each}" for each in (expected[0], expected[2])
    ]


def test_a_name_that_is_no_label_comes_first() -> None:
    """A long name is no better a host name than one with dots."""
    (name, port_) = pod_warnings({"metadata": {"name": "x" * 64}, **pod([port(1), port(1)])})
    assert name.startswith(
        "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: ["
    )
    assert port_.startswith("spec.containers[0].ports[1]: ")


def test_nobody_is_warned_of_a_changed_pod(desk: Any) -> None:
    """People hardly change pods, and programs would be told again and again."""
    spec = {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}, {"containerPort": 80}]}]}
    assert len(desk.outcome("Pod", spec=spec).warnings) == 1
    assert desk.outcome_of_patch("Pod", "x", {"spec": {"activeDeadlineSeconds": 9}}).warnings == []
