"""Rules and warnings of networking.k8s.io kinds, and warnings about volumes, nodes, Secrets and ServiceAccounts."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from kubemini.api.trees import Tree
from kubemini.server.kinds.core.key_pairs import pair_fault

SERVICE: Tree = {"service": {"name": "s", "port": {"number": 80}}}
PEER = "spec.ingress[0].from[0].ipBlock"
PARAMETERS = "spec.parameters"
CLASS = "kubernetes.io/ingress.class"


def rule(path: str, kind: str = "Prefix", **more: Any) -> Tree:
    """Return the spec of an Ingress with one path."""
    return {"spec": {"rules": [{"http": {"paths": [{"path": path, "pathType": kind, "backend": SERVICE}]}, **more}]}}


def backend(**fields: Any) -> Tree:
    """Return the spec of an Ingress with a default backend."""
    return {"spec": {"defaultBackend": fields}}


def block(**fields: Any) -> Tree:
    """Return a NetworkPolicy with one range of addresses."""
    return {"spec": {"podSelector": {}, "ingress": [{"from": [{"ipBlock": fields}]}]}}


def port(**fields: Any) -> Tree:
    """Return a NetworkPolicy with one port."""
    return {"spec": {"podSelector": {}, "ingress": [{"ports": [fields]}]}}


def parameters(**fields: Any) -> Tree:
    """Return an IngressClass with parameters."""
    return {"spec": {"controller": "a.b/c", "parameters": {"kind": "K", "name": "n", **fields}}}


BAD: list[tuple[str, Tree, list[str]]] = [
    ("Ingress", rule("/a//b/.."), [f'path: Invalid value: "/a//b/..": {text}' for text in ("must not contain '//'", "cannot end with '/..'")]),
    ("Ingress", rule("/a//b", "ImplementationSpecific"), []),
    ("Ingress", rule("/", host="10.0.0.1"), ['spec.rules[0].host: Invalid value: "10.0.0.1": must be a DNS name, not an IP address']),
    ("Ingress", backend(), ['spec.defaultBackend: Invalid value: "": resource or service backend is required']),
    ("Ingress", backend(service={"name": "1s", "port": {}}), ["spec.defaultBackend: Required value: port name or number is required"]),
    ("Ingress", backend(resource={"kind": "K", "name": "a/b"}), ["spec.defaultBackend.resource.name: Invalid value: \"a/b\": may not contain '/'"]),
    (
        "Ingress",
        backend(resource={"kind": "", "name": ""}),
        [
            "spec.defaultBackend.resource.kind: Required value: kind is required",
            "spec.defaultBackend.resource.name: Required value: name is required",
        ],
    ),
    (
        "Ingress",
        {"meta": {"annotations": {CLASS: "a"}}, "spec": {"ingressClassName": "b", "defaultBackend": SERVICE}},
        [f'annotations.{CLASS}: Invalid value: "a": must match `ingressClassName` when both are specified'],
    ),
    ("IngressClass", parameters(scope="Cluster"), []),
    ("IngressClass", parameters(scope="Cluster", namespace="a"), [f"{PARAMETERS}.namespace: Forbidden: `parameters.scope` is set to 'Cluster'"]),
    ("IngressClass", parameters(scope="Namespace"), [f"{PARAMETERS}.namespace: Required value: `parameters.scope` is set to 'Namespace'"]),
    ("IngressClass", parameters(scope="All"), [f'{PARAMETERS}.scope: Unsupported value: "All": supported values: "Cluster", "Namespace"']),
    ("IngressClass", {"spec": {"controller": "a.b/" + "c" * 250}}, ["spec.controller: Too long: may not be more than 250 bytes"]),
    ("NetworkPolicy", block(cidr="10.0.0.0/8", **{"except": ["10.1.0.0/16"]}), []),
    (
        "NetworkPolicy",
        block(cidr="10.0.0.0/8", **{"except": ["10.0.0.0/8", "11.0.0.0/16", "x"]}),
        [
            f'{PEER}.except[0]: Invalid value: "10.0.0.0/8": must be a strict subset of `cidr`',
            f'{PEER}.except[1]: Invalid value: "11.0.0.0/16": must be a strict subset of `cidr`',
            f'{PEER}.except[2]: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)',
        ],
    ),
    ("NetworkPolicy", block(cidr="", **{"except": ["x"]}), [f"{PEER}.cidr: Required value"]),
    (
        "NetworkPolicy",
        port(endPort=5),
        ["spec.ingress[0].ports[0].endPort: Invalid value: 5: may not be specified when `port` is not specified"],
    ),
    (
        "NetworkPolicy",
        port(port="web", endPort=70000),
        ["spec.ingress[0].ports[0].endPort: Invalid value: 70000: may not be specified when `port` is non-numeric"],
    ),
    ("ServiceCIDR", {"spec": {"cidrs": ["10.0.0.0/24", "2001:db8::/64"]}}, []),
    ("ServiceCIDR", {"spec": {}}, ["spec.cidrs: Required value: at least one CIDR required"]),
    (
        "ServiceCIDR",
        {"spec": {"cidrs": ["10.0.0.0/24", "10.1.0.0/24"]}},
        [
            (
                'spec.cidrs: Invalid value: {"CIDRs":["10.0.0.0/24","10.1.0.0/24"]}: '
                "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
            )
        ],
    ),
    (
        "ServiceCIDR",
        {"spec": {"cidrs": ["2001:DB8::/64"]}},
        ['spec.cidrs[0]: Invalid value: "2001:DB8::/64": must be in canonical form ("2001:db8::/64")'],
    ),
    (
        "ServiceCIDR",
        {"spec": {"cidrs": ["10.0.0.1/24"]}},
        ['spec.cidrs[0]: Invalid value: "10.0.0.1/24": must not have bits set beyond the prefix length'],
    ),
]


@pytest.mark.parametrize("kind, fields, causes", BAD)
def test_rules_of_networks(desk: Any, kind: str, fields: Tree, causes: list[str]) -> None:
    """Each broken rule is a cause with upstream's field and text."""
    if causes:
        assert [each.removeprefix("spec.rules[0].http.paths[0].") for each in desk.causes(kind, **fields)] == causes
    else:
        desk.create(kind, **fields)


def test_hosts_and_secrets_of_tls_are_names(desk: Any) -> None:
    """Hosts may have a wildcard; a Secret need not be named."""
    spec = {"defaultBackend": SERVICE, "tls": [{"hosts": ["*.a.b", "A", "*"], "secretName": "X"}, {"hosts": []}]}
    found = [each.split(": Invalid")[0] for each in desk.causes("Ingress", spec=spec)]
    assert found == ["spec.tls[0].hosts[1]", "spec.tls[0].hosts[2]", "spec.tls[0].secretName"]


def test_a_fault_of_a_changed_network_policy_is_told_twice(desk: Any) -> None:
    """An update is checked two times over; the message names the fault once."""
    desk.create("NetworkPolicy", spec={"podSelector": {}})
    found = desk.unpatched("NetworkPolicy", "x", {"spec": {"policyTypes": ["a"]}})
    assert found == ['spec.policyTypes[0]: Unsupported value: "a": supported values: "Ingress", "Egress"'] * 2


def test_addresses_are_named_by_themselves(desk: Any) -> None:
    """An IPAddress is an address in its usual form, says whose it is, and that stays; so do the ranges of a ServiceCIDR."""
    owner = {"resource": "services", "name": "s", "namespace": "default"}
    assert desk.causes("IPAddress", name="2001:DB8::1", spec={"parentRef": owner}) == [
        'metadata.name: Invalid value: "2001:DB8::1": must be in canonical form ("2001:db8::1")'
    ]
    assert desk.causes("IPAddress", name="10.0.0.1", spec={"parentRef": {"group": "A"}})[1:] == [
        "spec.parentRef.resource: Required value",
        "spec.parentRef.name: Required value",
    ]
    assert desk.causes("IPAddress", name="10.0.0.1", spec={}) == ["spec.parentRef: Required value"]
    desk.create("IPAddress", name="10.0.0.1", spec={"parentRef": owner})
    shown = '{"Group":"","Resource":"services","Namespace":"default","Name":"t"}'
    assert desk.unpatched("IPAddress", "10.0.0.1", {"spec": {"parentRef": {"name": "t"}}}) == [
        f"spec.parentRef: Invalid value: {shown}: field is immutable"
    ]
    desk.create("ServiceCIDR", spec={"cidrs": ["10.0.0.0/24"]})
    assert desk.unpatched("ServiceCIDR", "x", {"spec": {"cidrs": ["x"]}}) == ['spec.cidrs: Invalid value: ["x"]: field is immutable']


def test_the_status_of_an_ingress_has_addresses(desk: Any) -> None:
    """Addresses are addresses and names are names."""
    desk.create("Ingress", spec={"defaultBackend": SERVICE})
    status = {"status": {"loadBalancer": {"ingress": [{"ip": "a"}, {"hostname": "1.2.3.4"}]}}}
    assert desk.unpatched("Ingress", "x", status, subresource="status") == [
        'status.loadBalancer.ingress[0].ip: Invalid value: "a": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
        'status.loadBalancer.ingress[1].hostname: Invalid value: "1.2.3.4": must be a DNS name, not an IP address',
    ]


# ------------------------------------------------------------------------------------------------------ warnings

OLD_OS = 'deprecated since v1.14; use "kubernetes.io/os" instead'
TERM = {"matchExpressions": [{"key": "beta.kubernetes.io/os", "operator": "In", "values": ["linux"]}]}
VOLUME = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}

WARNED: list[tuple[str, Tree, list[str]]] = [
    (
        "Ingress",
        {"meta": {"annotations": {CLASS: "a"}}, "spec": {"defaultBackend": SERVICE}},
        [f"annotation \"{CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"],
    ),
    ("Ingress", {"meta": {"annotations": {CLASS: "a"}}, "spec": {"defaultBackend": SERVICE, "ingressClassName": "a"}}, []),
    (
        "NetworkPolicy",
        block(cidr="2001:DB8::/32", **{"except": ["2001:DB8:1::/48"]}),
        [
            f'{PEER}.cidr: IPv6 CIDR value "2001:DB8::/32" should be in RFC 5952 canonical format ("2001:db8::/32")',
            f'{PEER}.except[0]: IPv6 CIDR value "2001:DB8:1::/48" should be in RFC 5952 canonical format ("2001:db8:1::/48")',
        ],
    ),
    (
        "StorageClass",
        {"provisioner": "p", "allowedTopologies": [{"matchLabelExpressions": [{"key": "beta.kubernetes.io/os", "values": ["a"]}]}]},
        [f"allowedTopologies[0].matchLabelExpressions[0].key: {OLD_OS}"],
    ),
    ("RuntimeClass", {"handler": "h", "scheduling": {"nodeSelector": {"beta.kubernetes.io/os": "a"}}}, [f"scheduling.nodeSelector: {OLD_OS}"]),
    (
        "CSIStorageCapacity",
        {"storageClassName": "s", "nodeTopology": {**TERM, "matchLabels": {"beta.kubernetes.io/os": "a"}}},
        [f"nodeTopology.matchExpressions[0].key: beta.kubernetes.io/os is {OLD_OS}", f"nodeTopology.matchLabels.beta.kubernetes.io/os: {OLD_OS}"],
    ),
    (
        "PersistentVolume",
        {
            "meta": {"annotations": {"volume.beta.kubernetes.io/mount-options": "a", "volume.beta.kubernetes.io/storage-class": "b"}},
            "spec": {**VOLUME, "persistentVolumeReclaimPolicy": "Recycle", "nodeAffinity": {"required": {"nodeSelectorTerms": [TERM]}}},
        },
        [
            'metadata.annotations[volume.beta.kubernetes.io/storage-class]: deprecated since v1.8; use "storageClassName" attribute instead',
            'metadata.annotations[volume.beta.kubernetes.io/mount-options]: deprecated since v1.31; use "mountOptions" attribute instead',
            (
                "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. "
                "Instead, the recommended approach is to use dynamic provisioning."
            ),
            f"spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key: beta.kubernetes.io/os is {OLD_OS}",
        ],
    ),
    ("Node", {"spec": {"externalID": "a"}}, ["spec.externalID: this field is deprecated, and is unused by Kubernetes"]),
    (
        "Secret",
        {"type": "kubernetes.io/tls", "data": {"tls.crt": "YQ==", "tls.key": "YQ=="}},
        ["tls: failed to find any PEM data in certificate input"],
    ),
    ("Secret", {"data": {"tls.crt": "YQ=="}}, []),
]


@pytest.mark.parametrize("kind, fields, texts", WARNED)
def test_what_goes_out_of_use_is_named(desk: Any, kind: str, fields: Tree, texts: list[str]) -> None:
    """The object is made, with a Warning for each such field."""
    assert desk.outcome(kind, **fields).warnings == texts


def test_mountable_secrets_are_warned_of_once(desk: Any) -> None:
    """The annotation is named when it appears, not at later changes."""
    key = "kubernetes.io/enforce-mountable-secrets"
    text = f"metadata.annotations[{key}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
    assert desk.outcome("ServiceAccount").warnings == []
    assert desk.outcome_of_patch("ServiceAccount", "x", {"metadata": {"annotations": {key: "true"}}}).warnings == [text]
    assert desk.outcome_of_patch("ServiceAccount", "x", {"metadata": {"labels": {"a": "b"}}}).warnings == []
    assert desk.outcome("ServiceAccount", name="y", meta={"annotations": {key: "true"}}).warnings == [text]


def test_key_pairs_are_looked_at_as_a_server_would() -> None:
    """What is no PEM, of the wrong kind, or of another pair is told apart."""

    def pem(key: Any) -> bytes:
        options = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        found: bytes = key.private_bytes(*options)
        return found

    own, other, different = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1()), ed25519.Ed25519PrivateKey.generate()
    name, day = x509.Name([]), dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(own.public_key()).serial_number(1)
    certificate = made.not_valid_before(day).not_valid_after(day).sign(own, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    junk = b"-----BEGIN %s-----\nYQ==\n-----END %s-----\n"
    assert pair_fault(certificate, pem(own)) is None
    assert pair_fault(certificate, pem(other)) == "tls: private key does not match public key"
    assert pair_fault(certificate, pem(different)) == "tls: private key type does not match public key type"
    assert pair_fault(certificate, b"") == "tls: failed to find any PEM data in key input"
    assert pair_fault(certificate, certificate) == "tls: found a certificate rather than a key in the PEM for the private key"
    assert pair_fault(certificate, junk % (b"PRIVATE KEY", b"PRIVATE KEY")) == "tls: failed to parse private key"
    assert pair_fault(junk % (b"CERTIFICATE", b"CERTIFICATE"), pem(own)) == "x509: malformed certificate"
    assert pair_fault(pem(own), pem(own)) == (
        "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched"
    )
    assert pair_fault(junk % (b"X", b"X"), b"") == (
        'tls: failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM blocks of the following types: [X]'
    )
    assert pair_fault(certificate, junk % (b"X", b"X")) == (
        'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input after skipping PEM blocks of the following types: [X]'
    )
