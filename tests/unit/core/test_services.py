"""Services: addresses, node ports, families, types."""

from typing import Any

import pytest

PORTS = [{"port": 80}]


def test_an_ordinary_service_gets_an_address_and_its_surroundings(desk: Any) -> None:
    """Address, families, policies and target ports are filled."""
    spec = desk.create("Service", spec={"ports": PORTS})["spec"]
    assert spec["clusterIPs"] == [spec["clusterIP"]]
    assert spec["clusterIP"].startswith("10.96.")
    assert {key: value for key, value in spec.items() if not key.startswith("clusterIP")} == {
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
        "sessionAffinity": "None",
        "type": "ClusterIP",
        "internalTrafficPolicy": "Cluster",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
    }


def test_an_address_is_taken_while_its_service_lives(desk: Any) -> None:
    """An asked-for address is kept, refused twice, and free again after deletion."""
    desk.create("Service", name="a", spec={"clusterIP": "10.96.77.2", "ports": PORTS})
    taken = ['spec.clusterIPs: Invalid value: ["10.96.77.2"]: failed to allocate IP 10.96.77.2: provided IP is already allocated']
    assert desk.causes("Service", name="b", spec={"clusterIP": "10.96.77.2", "ports": PORTS}) == taken
    desk.delete("Service", "a")
    desk.create("Service", name="b", spec={"clusterIP": "10.96.77.2", "ports": PORTS})


def test_no_two_services_share_an_address_or_a_node_port(desk: Any) -> None:
    """What is allocated is never what is taken."""
    specs = [
        desk.create("Service", name=f"s{index}", spec={"type": "NodePort", "ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]})["spec"]
        for index in range(40)
    ]
    addresses = [each["clusterIP"] for each in specs]
    ports = [port["nodePort"] for each in specs for port in each["ports"]]
    assert len(set(addresses)) == len(addresses)
    assert len(set(ports)) == len(ports)


def test_one_port_in_two_protocols_shares_its_node_port(desk: Any) -> None:
    """As upstream: DNS over TCP and UDP is reached at one number."""
    ports = [{"port": 53, "name": "t"}, {"port": 53, "name": "u", "protocol": "UDP"}]
    found = desk.create("Service", spec={"type": "NodePort", "ports": ports})["spec"]["ports"]
    assert found[0]["nodePort"] == found[1]["nodePort"]


@pytest.mark.parametrize(
    "selector, families, policy",
    [({}, ["IPv4", "IPv6"], "RequireDualStack"), ({"a": "b"}, ["IPv4"], "SingleStack")],
)
def test_headless_services_without_selector_ask_for_both_families(desk: Any, selector: dict[str, str], families: list[str], policy: str) -> None:
    """Observed on 1.36, on a cluster with IPv4 only."""
    spec = desk.create("Service", spec={"clusterIP": "None", "selector": selector})["spec"]
    assert (spec["ipFamilies"], spec["ipFamilyPolicy"], spec["clusterIPs"]) == (families, policy, ["None"])


def test_node_ports_come_and_go_with_the_type(desk: Any) -> None:
    """NodePort adds ports and a policy, ClusterIP drops them, ExternalName drops the address."""
    desk.create("Service", spec={"ports": PORTS})
    spec = desk.patch("Service", "x", {"spec": {"type": "NodePort"}})["spec"]
    assert (spec["ports"][0]["nodePort"] >= 30000, spec["externalTrafficPolicy"]) == (True, "Cluster")
    kept = spec["ports"][0]["nodePort"]
    assert desk.patch("Service", "x", {"spec": {"ports": [{"port": 80, "name": "n"}]}})["spec"]["ports"][0]["nodePort"] == kept
    spec = desk.patch("Service", "x", {"spec": {"type": "ClusterIP"}})["spec"]
    assert ("nodePort" in spec["ports"][0], "externalTrafficPolicy" in spec) == (False, False)
    spec = desk.patch("Service", "x", {"spec": {"type": "ExternalName", "externalName": "a.b"}})["spec"]
    assert sorted(spec) == ["externalName", "ports", "sessionAffinity", "type"]
    assert desk.patch("Service", "x", {"spec": {"type": "ClusterIP", "externalName": None}})["spec"]["clusterIP"].startswith("10.96.")


def test_an_address_does_not_change_but_may_be_left_out(desk: Any) -> None:
    """A nulled address is put back; another one is refused."""
    address = desk.create("Service", spec={"ports": PORTS})["spec"]["clusterIP"]
    assert desk.patch("Service", "x", {"spec": {"clusterIP": None, "clusterIPs": None}})["spec"]["clusterIP"] == address
    assert desk.unpatched("Service", "x", {"spec": {"clusterIP": "10.96.7.7"}}) == [
        'spec.clusterIPs[0]: Invalid value: ["10.96.7.7"]: may not change once set'
    ]
    assert desk.unpatched("Service", "x", {"spec": {"clusterIP": "None"}}) == ['spec.clusterIPs[0]: Invalid value: ["None"]: may not change once set']


def test_a_local_load_balancer_has_a_health_check_port(desk: Any) -> None:
    """externalTrafficPolicy Local allocates healthCheckNodePort, which then stays."""
    spec = desk.create("Service", spec={"type": "LoadBalancer", "externalTrafficPolicy": "Local", "ports": PORTS})["spec"]
    assert spec["healthCheckNodePort"] >= 30000
    assert spec["allocateLoadBalancerNodePorts"] is True
    text = "spec.healthCheckNodePort: Forbidden: field is immutable"
    other = 30000 + (spec["healthCheckNodePort"] - 30000 + 1) % 2000
    if other != spec["ports"][0]["nodePort"]:
        assert desk.unpatched("Service", "x", {"spec": {"healthCheckNodePort": other}}) == [text]


REFUSED: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["spec.ports: Required value"]),
    ({"ports": [{"port": 1}, {"port": 2}]}, ["spec.ports[0].name: Required value", "spec.ports[1].name: Required value"]),
    (
        {"ports": [{"port": 1, "targetPort": "Not_ok"}]},
        ['spec.ports[0].targetPort: Invalid value: "Not_ok": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)'],
    ),
    ({"type": "ExternalName"}, ["spec.externalName: Required value"]),
    (
        {"type": "NodePort", "clusterIP": "None", "ports": PORTS},
        ["spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort services"],
    ),
    ({"ports": PORTS, "loadBalancerClass": "a/b"}, ["spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'"]),
    (
        {"ports": PORTS, "externalIPs": ["127.0.0.1"]},
        ['spec.externalIPs[0]: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)'],
    ),
    ({"ports": PORTS, "ipFamilies": ["IPv6"]}, ['spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster']),
    (
        {"ports": PORTS, "ipFamilyPolicy": "RequireDualStack"},
        ['spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services'],
    ),
    (
        {"ports": PORTS, "trafficDistribution": "Odd"},
        ['spec.trafficDistribution: Unsupported value: "Odd": supported values: "PreferClose", "PreferSameNode", "PreferSameZone"'],
    ),
    (
        {"type": "NodePort", "ports": [{"port": 1, "name": "a", "nodePort": 30001}, {"port": 2, "name": "b", "nodePort": 30001}]},
        ["spec.ports[1].nodePort: Duplicate value: 30001"],
    ),
]


@pytest.mark.parametrize("spec, expected", REFUSED)
def test_wrong_services_are_refused(desk: Any, spec: dict[str, Any], expected: list[str]) -> None:
    """Each broken rule has upstream's field and text."""
    assert desk.causes("Service", spec=spec) == expected


def test_a_load_balancer_address_says_how_it_is_reached(desk: Any) -> None:
    """ipMode defaults to VIP when an address is reported."""
    desk.create("Service", spec={"type": "LoadBalancer", "ports": PORTS})
    status = desk.patch("Service", "x", {"status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}}, subresource="status")["status"]
    assert status == {"loadBalancer": {"ingress": [{"ip": "1.2.3.4", "ipMode": "VIP"}]}}


def test_only_load_balancers_report_addresses(desk: Any) -> None:
    """A name is no address, a Service that is none any more forgets them, and takes no new ones."""
    desk.create("Service", spec={"type": "LoadBalancer", "ports": PORTS})
    named = {"status": {"loadBalancer": {"ingress": [{"hostname": "1.2.3.4"}]}}}
    assert desk.unpatched("Service", "x", named, subresource="status") == [
        'status.loadBalancer.ingress[0].hostname: Invalid value: "1.2.3.4": must be a DNS name, not an IP address'
    ]
    reported = {"status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}}
    desk.patch("Service", "x", reported, subresource="status")
    assert desk.patch("Service", "x", {"spec": {"type": "ClusterIP"}})["status"] == {"loadBalancer": {}}
    assert desk.unpatched("Service", "x", reported, subresource="status") == [
        'status.loadBalancer.ingress: Forbidden: may only be used when `spec.type` is "LoadBalancer"'
    ]
