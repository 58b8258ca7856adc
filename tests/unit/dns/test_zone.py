"""Names of Services and pods, by table: what CoreDNS answers for the same objects."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from dnslib import DNSRecord

from kubemini.api.trees import Tree
from kubemini.dns.server import DnsServer
from kubemini.dns.zone import ALIASES, Answer, Record, Zone


def service(name: str, namespace: str = "default", **spec: object) -> Tree:
    """Return a Service."""
    return {"metadata": {"name": name, "namespace": namespace}, "spec": spec}


def endpoints(service_name: str, *items: Tree, ports: Sequence[Tree] = ()) -> Tree:
    """Return an EndpointSlice."""
    labels = {"kubernetes.io/service-name": service_name}
    return {"metadata": {"name": f"{service_name}-x", "namespace": "default", "labels": labels}, "endpoints": list(items), "ports": list(ports)}


class Objects:
    """A few objects to read."""

    def __init__(self) -> None:
        self.services = [
            service("web", clusterIP="10.96.0.7", clusterIPs=["10.96.0.7", "fd00::7"], ports=[{"name": "http", "port": 80, "protocol": "TCP"}]),
            service("train", clusterIP="None"),
            service("empty", clusterIP="None"),
            service("out", type="ExternalName", externalName="example.com"),
            service("alias", type="ExternalName", externalName="next.default.svc.cluster.local"),
            service("next", type="ExternalName", externalName="web.default.svc.cluster.local."),
            service("loop", type="ExternalName", externalName="loop.default.svc.cluster.local"),
        ]
        self.slices = [
            endpoints(
                "train",
                {"addresses": ["10.128.0.1"], "hostname": "train-w-0-0", "conditions": {"ready": True}},
                {"addresses": ["10.128.0.2"], "hostname": "train-w-0-1", "conditions": {"ready": False}},
                {"addresses": ["10.128.0.3"], "conditions": {"ready": True}},
                ports=[{"name": "nccl", "port": 2900, "protocol": "TCP"}],
            ),
            endpoints("web", {"addresses": ["10.128.0.9"], "hostname": "h", "conditions": {"ready": True}}),
        ]

    def get(self, resource: str, namespace: str, name: str) -> Tree | None:
        """Return a Service, or the only namespace."""
        if resource == "namespaces":
            return {"metadata": {"name": name}} if name == "default" else None
        return next((each for each in self.list(resource, namespace) if each["metadata"]["name"] == name), None)

    def list(self, resource: str, namespace: str = "") -> Sequence[Tree]:
        """Return Services or slices."""
        found = self.services if resource == "services" else self.slices
        return [each for each in found if namespace in ("", each["metadata"]["namespace"])]


ZONE = Zone(Objects())


@pytest.mark.parametrize(
    "name, type_, values",
    [
        ("web.default.svc.cluster.local.", "A", ["10.96.0.7"]),
        ("WEB.default.svc.cluster.local", "AAAA", ["fd00::7"]),
        ("_http._tcp.web.default.svc.cluster.local", "SRV", ["80 web.default.svc.cluster.local."]),
        ("train.default.svc.cluster.local", "A", ["10.128.0.1", "10.128.0.3"]),
        ("train-w-0-0.train.default.svc.cluster.local", "A", ["10.128.0.1"]),
        ("10-128-0-3.train.default.svc.cluster.local", "A", ["10.128.0.3"]),
        (
            "_nccl._tcp.train.default.svc.cluster.local",
            "SRV",
            ["2900 train-w-0-0.train.default.svc.cluster.local.", "2900 10-128-0-3.train.default.svc.cluster.local."],
        ),
        ("out.default.svc.cluster.local", "A", ["example.com."]),
        ("alias.default.svc.cluster.local", "A", ["next.default.svc.cluster.local.", "web.default.svc.cluster.local.", "10.96.0.7"]),
        ("alias.default.svc.cluster.local", "CNAME", ["next.default.svc.cluster.local."]),
        ("loop.default.svc.cluster.local", "A", ["loop.default.svc.cluster.local."] * ALIASES),
        ("dns-version.cluster.local", "TXT", ["1.1.0"]),
        ("10-1-2-3.default.pod.cluster.local", "A", ["10.1.2.3"]),
        ("1.0.128.10.in-addr.arpa", "PTR", ["train-w-0-0.train.default.svc.cluster.local."]),
        ("7.0.96.10.in-addr.arpa", "PTR", ["web.default.svc.cluster.local."]),
    ],
)
def test_names_resolve(name: str, type_: str, values: list[str]) -> None:
    """Each kind of name gives its records."""
    answer = ZONE.lookup(name, type_)
    assert answer.exists
    assert [record.value for record in answer.records] == values


@pytest.mark.parametrize(
    "name",
    [
        "nope.default.svc.cluster.local",
        "web.other.svc.cluster.local",
        "empty.default.svc.cluster.local",  # headless without ready endpoints
        "train-w-0-1.train.default.svc.cluster.local",  # not ready
        "h.web.default.svc.cluster.local",  # per-pod names are of headless Services
        "_http._udp.web.default.svc.cluster.local",
        "999-1-2-3.default.pod.cluster.local",
        "10-1-2-3.other.pod.cluster.local",
        "other.svc.cluster.local",
        "9.9.9.9.in-addr.arpa",
        "x.example.com",
    ],
)
def test_names_that_do_not_exist(name: str) -> None:
    """A missing Service, a wrong name and a pod that is not ready all look the same: NXDOMAIN."""
    assert not ZONE.lookup(name, "A").exists


def test_other_types_of_an_existing_name_are_no_data() -> None:
    """A name that exists with another type answers nothing, but is no NXDOMAIN."""
    assert ZONE.lookup("train.default.svc.cluster.local", "AAAA").exists
    assert ZONE.lookup("train.default.svc.cluster.local", "AAAA").records == ()
    for name in ("default.svc.cluster.local", "default.pod.cluster.local", "svc.cluster.local"):
        assert ZONE.lookup(name, "A") == Answer(exists=True)


@pytest.mark.parametrize(
    "name, addresses",
    [
        ("train-w-0-0.train", ["10.128.0.1"]),
        ("web", ["10.96.0.7", "fd00::7"]),
        ("web.default", ["10.96.0.7", "fd00::7"]),
        ("web.default.svc.cluster.local.", ["10.96.0.7", "fd00::7"]),
        ("web.default.svc.cluster.local", ["10.96.0.7", "fd00::7"]),
        ("train-w-0-1.train", []),
        ("alias", ["10.96.0.7", "fd00::7"]),
    ],
)
def test_search_path(name: str, addresses: list[str]) -> None:
    """Short names go through the search path of a pod in the namespace."""
    assert ZONE.resolve(name) == addresses


def test_records_are_values() -> None:
    """Records compare by value."""
    assert Record("a", "A", "1.2.3.4") == Record("a", "A", "1.2.3.4")


def test_an_answer_about_a_port_has_shares_and_addresses() -> None:
    """The endpoints of a port share the weight, and their addresses come along."""
    reply = DNSRecord.parse(DnsServer(ZONE).answer(bytes(DNSRecord.question("_nccl._tcp.train.default.svc.cluster.local", "SRV").pack())) or b"")
    assert [(each.rdata.weight, each.rdata.port, str(each.rdata.target)) for each in reply.rr] == [
        (50, 2900, "train-w-0-0.train.default.svc.cluster.local."),
        (50, 2900, "10-128-0-3.train.default.svc.cluster.local."),
    ]
    assert [(str(each.rname), str(each.rdata)) for each in reply.ar] == [
        ("train-w-0-0.train.default.svc.cluster.local.", "10.128.0.1"),
        ("10-128-0-3.train.default.svc.cluster.local.", "10.128.0.3"),
    ]
