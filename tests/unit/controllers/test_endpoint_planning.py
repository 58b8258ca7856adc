"""Endpoints: how slices are filled, and how subsets are packed."""

from typing import Any

from kubemini.controllers.endpoints.planning import SLICE_LIMIT, Plan, identity, plan, ports_key
from kubemini.controllers.endpoints.services import Member
from kubemini.controllers.endpoints.subsets import CAPACITY, offer, subsets, truncated

PORTS = [{"name": "", "protocol": "TCP", "port": 80}]
KEY = ports_key(PORTS)
LABELS = {"kubernetes.io/service-name": "s"}


def endpoint(number: int, *, ready: bool = True) -> dict[str, Any]:
    """Return the endpoint of pod ``p-NUMBER``."""
    return {
        "addresses": [f"10.0.{number >> 8}.{number & 255}"],
        "conditions": {"ready": ready, "serving": ready, "terminating": False},
        "targetRef": {"kind": "Pod", "namespace": "x", "name": f"p-{number}", "uid": str(number)},
    }


def slice_(name: str, numbers: range, *, owner: str = "uid", labels: dict[str, str] = LABELS) -> dict[str, Any]:
    """Return a slice that exists."""
    meta = {"name": name, "labels": labels, "ownerReferences": [{"uid": owner}]}
    return {"metadata": meta, "addressType": "IPv4", "ports": PORTS, "endpoints": [endpoint(number) for number in numbers]}


def planned(existing: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> Plan:
    """Plan for a Service with one port."""
    skeleton = {"metadata": {"generateName": "s-", "labels": LABELS}, "addressType": "IPv4", "endpoints": [], "ports": []}
    by_ports = {KEY: {identity(each): each for each in wanted}} if wanted else {}
    return plan(existing, by_ports, {KEY: PORTS}, owner_uid="uid", skeleton=skeleton, labels=LABELS)


def sizes(slices: list[dict[str, Any]]) -> list[int]:
    """Return how many endpoints slices hold."""
    return [len(each["endpoints"]) for each in slices]


def test_nothing_is_written_when_slices_are_right() -> None:
    """Slices that hold what is wanted are left alone."""
    found = planned([slice_("a", range(3))], [endpoint(number) for number in range(3)])
    assert (found.create, found.update, found.delete) == ([], [], [])


def test_new_slices_are_filled_to_the_limit() -> None:
    """Without slices, as few as possible are made."""
    found = planned([], [endpoint(number) for number in range(2 * SLICE_LIMIT + 5)])
    assert sizes(found.create) == [SLICE_LIMIT, SLICE_LIMIT, 5]
    assert found.update == found.delete == []


def test_endpoints_stay_where_they_are() -> None:
    """An endpoint that turns is changed in its own slice; the other slice is not written."""
    wanted = [endpoint(number, ready=number != 1) for number in range(6)]
    found = planned([slice_("a", range(3)), slice_("b", range(3, 6))], wanted)
    assert [each["metadata"]["name"] for each in found.update] == ["a"]
    assert [each["conditions"]["ready"] for each in found.update[0]["endpoints"]] == [True, False, True]


def test_a_slice_that_is_written_anyway_is_filled_first() -> None:
    """New endpoints go where an old one went, though another slice has room."""
    wanted = [endpoint(number) for number in (0, 1, 3, 4, 5, 9)]
    found = planned([slice_("a", range(3)), slice_("b", range(3, 6))], wanted)
    assert [(each["metadata"]["name"], sizes([each])) for each in found.update] == [("a", [3])]


def test_the_fullest_slice_with_room_for_all_is_taken() -> None:
    """New endpoints that fit into a slice go into the fullest such; no slice is made."""
    existing = [slice_("a", range(90)), slice_("b", range(200, 250))]
    wanted = [endpoint(number) for number in (*range(90), *range(200, 250), *range(300, 308))]
    found = planned(existing, wanted)
    assert [(each["metadata"]["name"], len(each["endpoints"])) for each in found.update] == [("a", 98)]
    assert found.create == []


def test_an_empty_service_keeps_one_empty_slice() -> None:
    """The last slice is emptied, not deleted, and the empty one is then left alone."""
    found = planned([slice_("a", range(3)), slice_("b", range(3, 6))], [])
    assert [(each["metadata"]["name"], each["endpoints"], each["ports"]) for each in found.update] == [("a", [], [])]
    assert [each["metadata"]["name"] for each in found.delete] == ["b"]
    again = planned([{**found.update[0], "endpoints": None, "ports": None}], [])
    assert (again.create, again.update, again.delete) == ([], [], [])


def test_slices_of_an_earlier_service_are_not_reused() -> None:
    """A slice owned by a deleted Service of the name goes, and a new one is made."""
    found = planned([slice_("a", range(3), owner="old")], [endpoint(0)])
    assert [each["metadata"]["name"] for each in found.delete] == ["a"]
    assert sizes(found.create) == [1]


def test_labels_are_put_back() -> None:
    """A slice with other labels than its Service gives it is written."""
    found = planned([slice_("a", range(1), labels={**LABELS, "more": "x"})], [endpoint(0)])
    assert [each["metadata"]["labels"] for each in found.update] == [LABELS]


def test_a_slice_of_other_ports_is_recycled() -> None:
    """When the ports change, the old slice is turned into the new one."""
    old = {**slice_("a", range(2)), "ports": [{"name": "", "protocol": "TCP", "port": 81}]}
    found = planned([old], [endpoint(0), endpoint(1)])
    assert [(each["metadata"]["name"], each["ports"]) for each in found.update] == [("a", PORTS)]
    assert found.create == found.delete == []


# ----------------------------------------------------------------------------------------------- subsets


def pod(number: int, *, ready: bool = True, ports: dict[str, int] | None = None, terminating: bool = False) -> Member:
    """Return a pod as a member of a Service."""
    containers = [{"name": "c", "ports": [{"name": name, "containerPort": port} for name, port in (ports or {}).items()]}]
    meta = {"namespace": "x", "name": f"p-{number}", "uid": f"{number:05}", **({"deletionTimestamp": "t"} if terminating else {})}
    status = {"podIPs": [{"ip": f"10.0.{number >> 8}.{number & 255}"}], "conditions": [{"type": "Ready", "status": str(ready)}]}
    return Member.of({"metadata": meta, "spec": {"nodeName": "n", "containers": containers}, "status": status})


def packed(members: list[Member], **spec: Any) -> list[dict[str, Any]]:
    """Return the subsets of a Service."""
    service = {"metadata": {"name": "s"}, "spec": spec}
    return subsets(each for each in (offer(service, member) for member in members) if each is not None)


def ips(subset: dict[str, Any], name: str = "addresses") -> list[str]:
    """Return the addresses of a subset."""
    return [each["ip"] for each in subset.get(name, ())]


def test_addresses_are_sorted_by_number_and_split_by_readiness() -> None:
    """One subset: the ready ones and the others, each in numeric order."""
    (found,) = packed([pod(10), pod(9), pod(300, ready=False), pod(11, terminating=True)], ports=[{"port": 80, "targetPort": 8080}])
    assert ips(found) == ["10.0.0.9", "10.0.0.10"]
    assert ips(found, "notReadyAddresses") == ["10.0.1.44"]
    assert found["ports"] == [{"port": 8080, "protocol": "TCP"}]


def test_ports_with_the_same_addresses_share_a_subset() -> None:
    """Ports stand together where all addresses are the same, apart where a pod lacks a named port."""
    both, one = pod(1, ports={"a": 1, "b": 2}), pod(2, ports={"a": 1})
    ports = [
        {"name": "pa", "port": 80, "targetPort": "a"},
        {"name": "pb", "port": 81, "targetPort": "b"},
        {"name": "pc", "port": 82, "targetPort": 5},
    ]
    found = packed([both, one], ports=ports)
    assert [([port["name"] for port in subset["ports"]], ips(subset)) for subset in found] == [
        (["pa", "pc"], ["10.0.0.1", "10.0.0.2"]),
        (["pb"], ["10.0.0.1"]),
    ]


def test_a_pod_without_any_of_the_ports_is_left_out() -> None:
    """A named port that a pod lacks makes it no address at all."""
    assert packed([pod(1)], ports=[{"name": "pa", "port": 80, "targetPort": "a"}]) == []


def test_publishing_unready_addresses_makes_all_ready() -> None:
    """With publishNotReadyAddresses, unready and terminating pods are addresses."""
    (found,) = packed([pod(1, ready=False), pod(2, terminating=True)], publishNotReadyAddresses=True, clusterIP="None")
    assert ips(found) == ["10.0.0.1", "10.0.0.2"]
    assert "ports" not in found


def test_too_many_addresses_are_cut_ready_ones_first() -> None:
    """Over the capacity unready addresses go first, then ready ones in proportion to each subset."""
    few_unready = packed([pod(number, ready=number < CAPACITY - 10) for number in range(CAPACITY + 50)], ports=[{"port": 80}])
    (cut,) = truncated(few_unready) or [{}]
    assert (len(ips(cut)), len(ips(cut, "notReadyAddresses"))) == (CAPACITY - 10, 10)
    (cut,) = truncated(packed([pod(number, ready=number < CAPACITY + 5) for number in range(CAPACITY + 50)], ports=[{"port": 80}])) or [{}]
    assert (len(ips(cut)), "notReadyAddresses" in cut) == (CAPACITY, False)
    assert truncated(packed([pod(1)], ports=[{"port": 80}])) is None
