"""Warnings about Services, endpoints and claims, and how strictly addresses are read."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.api.trees import Tree
from kubemini.server.kinds.core.formats import cidr, ip

PORTS = [{"port": 80}]
HINTS = "service.kubernetes.io/topology-aware-hints"

SERVICES: list[tuple[Tree, list[str]]] = [
    ({"ports": PORTS}, []),
    ({"clusterIP": "None", "sessionAffinity": "ClientIP"}, ["spec.SessionAffinity is ignored for headless services"]),
    (
        {"clusterIP": "None", "externalIPs": ["192.0.2.1"], "loadBalancerIP": "192.0.2.2"},
        ["spec.loadBalancerIP is ignored for headless services", "spec.externalIPs is ignored for headless services"],
    ),
    ({"ports": PORTS, "trafficDistribution": "PreferClose"}, ['spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"']),
    ({"ports": PORTS, "trafficDistribution": "PreferSameZone"}, []),
    (
        {"type": "ExternalName", "externalName": "a.b", "externalIPs": ["192.0.2.1"]},
        ['spec.externalIPs is ignored when spec.type is "ExternalName"'],
    ),
    ({"ports": PORTS, "externalName": "a.b"}, ['spec.externalName is ignored when spec.type is not "ExternalName"']),
    (
        {"ports": PORTS, "externalIPs": ["2001:DB8::0:1"]},
        ['spec.externalIPs[0]: IPv6 address "2001:DB8::0:1" should be in RFC 5952 canonical format ("2001:db8::1")'],
    ),
    (
        {"type": "LoadBalancer", "ports": PORTS, "loadBalancerSourceRanges": ["10.0.0.0/8", "2001:DB8::/32"]},
        ['spec.loadBalancerSourceRanges[1]: IPv6 CIDR value "2001:DB8::/32" should be in RFC 5952 canonical format ("2001:db8::/32")'],
    ),
]


@pytest.mark.parametrize("spec, texts", SERVICES)
def test_odd_services_are_warned_about(desk: Any, spec: Tree, texts: list[str]) -> None:
    """The Service is created, with a Warning for each field that does nothing or goes out of use."""
    assert desk.outcome("Service", spec=spec).warnings == texts


def test_an_old_annotation_of_services_is_named(desk: Any) -> None:
    """Topology aware hints have a newer annotation."""
    found = desk.outcome("Service", meta={"annotations": {HINTS: "Auto"}}, spec={"ports": PORTS}).warnings
    assert found == [f"annotation {HINTS} is deprecated, please use service.kubernetes.io/topology-mode instead"]


@pytest.mark.parametrize("labels", [{}, {"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}])
def test_slices_written_by_hand_are_looked_at(desk: Any, labels: dict[str, str]) -> None:
    """Odd addresses are named, but not to the controllers; names instead of addresses go out of use for everybody."""
    odd = {"addressType": "IPv6", "endpoints": [{"addresses": ["2001:db8::1"]}, {"addresses": ["2001:DB8::2"]}], "ports": []}
    told = ['endpoints[1].addresses[0]: IPv6 address "2001:DB8::2" should be in RFC 5952 canonical format ("2001:db8::2")']
    assert desk.outcome("EndpointSlice", meta={"labels": labels}, **odd).warnings == ([] if labels else told)
    names = {"addressType": "FQDN", "endpoints": [{"addresses": ["a.b"]}], "ports": []}
    assert desk.outcome("EndpointSlice", name="y", meta={"labels": labels}, **names).warnings == ["spec.addressType: FQDN endpoints are deprecated"]


def test_endpoints_written_by_hand_are_looked_at(desk: Any) -> None:
    """Addresses of both kinds; the controller's own are not."""
    subsets = [{"addresses": [{"ip": "2001:DB8::1"}], "notReadyAddresses": [{"ip": "2001:DB8::2"}]}]
    told = [
        f'subsets[0].{key}[0].ip: IPv6 address "2001:DB8::{number}" should be in RFC 5952 canonical format ("2001:db8::{number}")'
        for key, number in (("addresses", 1), ("notReadyAddresses", 2))
    ]
    assert desk.outcome("Endpoints", subsets=subsets).warnings == told
    labels = {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}
    assert desk.outcome("Endpoints", name="y", meta={"labels": labels}, subsets=subsets).warnings == []


def claim(**resources: Any) -> Tree:
    """Return the spec of a claim."""
    return {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}, **resources}}


def test_odd_claims_are_warned_about(desk: Any) -> None:
    """Parts of bytes, and the annotation from before there was a field."""
    old = "volume.beta.kubernetes.io/storage-class"
    found = desk.outcome("PersistentVolumeClaim", meta={"annotations": {old: "x"}}, spec=claim(requests={"storage": "1500m"})).warnings
    assert found == [
        f'metadata.annotations[{old}]: deprecated since v1.8; use "storageClassName" attribute instead',
        'spec.resources.requests[storage]: fractional byte value "1500m" is invalid, must be an integer',
    ]


def test_claim_templates_are_warned_about_like_claims(desk: Any) -> None:
    """On creation, and on every update under another path; after what is to be said of the pods."""
    labels = {"app": "x"}
    spec = {
        "serviceName": "x",
        "selector": {"matchLabels": labels},
        "revisionHistoryLimit": -1,
        "template": {
            "metadata": {"labels": labels},
            "spec": {"nodeSelector": {"beta.kubernetes.io/os": "linux"}, "containers": [{"name": "c", "image": "i"}]},
        },
        "volumeClaimTemplates": [{"metadata": {"name": "d"}, "spec": claim(limits={"storage": "2500m"})}],
    }
    pods = 'spec.template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead'
    size = 'spec.volumeClaimTemplates[0]{}.resources.limits[storage]: fractional byte value "2500m" is invalid, must be an integer'
    history = "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
    assert desk.outcome("StatefulSet", spec=spec).warnings == [pods, size.format(""), history]
    assert desk.outcome_of_patch("StatefulSet", "x", {"metadata": {"labels": {"a": "b"}}}).warnings == [size.format(".Spec"), history]


@pytest.mark.parametrize(
    "value, text",
    [
        ("10.0.0.1", ""),
        ("fd00::1", ""),
        ("10.0.0.01", "must not have leading 0s"),
        ("::ffff:10.0.0.1", "must not be an IPv4-mapped IPv6 address"),
        ("10.0.0", "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
        ("10.0.0.0256", "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
    ],
)
def test_addresses_are_read_strictly(value: str, text: str) -> None:
    """No zeros in front, no IPv4 in IPv6."""
    assert [each.body for each in ip(value, "p")] == ([f'Invalid value: "{value}": {text}'] if text else [])


@pytest.mark.parametrize(
    "value, text",
    [
        ("10.0.0.0/8", ""),
        ("fd00::/8", ""),
        ("10.0.0.1/8", "must not have bits set beyond the prefix length"),
        ("010.0.0.0/8", "must not have leading 0s in IP or prefix length"),
        ("10.0.0.0/08", "must not have leading 0s in IP or prefix length"),
        ("::ffff:10.0.0.0/104", "must not have an IPv4-mapped IPv6 address"),
        ("10.0.0.0/33", "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"),
        ("10.0.0.0", "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"),
        ("10.0.0.0/255.0.0.0", "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"),
    ],
)
def test_ranges_are_read_strictly(value: str, text: str) -> None:
    """Nor bits beyond the prefix."""
    assert [each.body for each in cidr(value, "p")] == ([f'Invalid value: "{value}": {text}'] if text else [])
