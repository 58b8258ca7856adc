"""Filters on one node: order, reasons, and which refusals no preemption cures."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.controllers.scheduler.deciding import filters_of
from kubemini.controllers.scheduler.filters import Refusal
from kubemini.machinery.node_matching import named_nodes, tolerates
from tests.unit.scheduler.samples import cluster, no_labels, node, pod

TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}


def refusal(of: dict[str, Any], on: dict[str, Any], *there: dict[str, Any]) -> Refusal | None:
    """Return why a pod may not run on a node beside some others."""
    cache = cluster(on, **{on["metadata"]["name"]: list(there)})
    return filters_of(of, cache, no_labels).refusal(cache.nodes[on["metadata"]["name"]])


CASES: list[tuple[str, dict[str, Any], dict[str, Any], tuple[str, ...], bool]] = [
    ("cordoned", pod(), node("n", unschedulable=True), ("node(s) were unschedulable",), True),
    ("cordoned and tainted: the first filter speaks", pod(), node("n", unschedulable=True, taints=[TAINT]), ("node(s) were unschedulable",), True),
    ("tainted", pod(), node("n", taints=[TAINT]), ("node(s) had untolerated taint(s)",), True),
    ("tainted and unselected: just the taint", pod(nodeSelector={"a": "b"}), node("n", taints=[TAINT]), ("node(s) had untolerated taint(s)",), True),
    ("unselected", pod(nodeSelector={"a": "b"}), node("n"), ("node(s) didn't match Pod's node affinity/selector",), True),
    (
        "short of two resources, one of them for ever",
        pod(cpu="9", memory="1Gi"),
        node("n", memory="1Mi"),
        ("Insufficient cpu", "Insufficient memory"),
        True,
    ),
    ("an unknown resource is zero", pod(cpu="1"), node("n", cpu="0"), ("Insufficient cpu",), True),
]


@pytest.mark.parametrize("of, on, reasons, unresolvable", [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_reasons(of: dict[str, Any], on: dict[str, Any], reasons: tuple[str, ...], *, unresolvable: bool) -> None:
    """A node is refused by the first plugin in upstream's order, with all that this plugin has to say."""
    found = refusal(of, on)
    assert found is not None
    assert (found.reasons, found.unresolvable) == (reasons, unresolvable)


def test_what_others_take_can_be_preempted() -> None:
    """A node that is full now, but could hold the pod when empty, is worth preempting on."""
    found = refusal(pod(cpu="2"), node("n"), pod("other", cpu="3"))
    assert found == Refusal("NodeResourcesFit", ("Insufficient cpu",))


def test_number_of_pods() -> None:
    """The number of pods is a resource with words of its own."""
    found = refusal(pod(), node("n", pods="1"), pod("other"))
    assert found is not None
    assert found.reasons == ("Too many pods",)


def port(number: int, address: str = "", protocol: str = "TCP") -> dict[str, Any]:
    """Return the fields of a pod with one host port."""
    return {"containers": [{"name": "c", "ports": [{"hostPort": number, "protocol": protocol, **({"hostIP": address} if address else {})}]}]}


@pytest.mark.parametrize(
    "mine, theirs, clash",
    [
        (port(80), port(80), True),
        (port(80), port(81), False),
        (port(80), port(80, protocol="UDP"), False),
        (port(80, "10.0.0.1"), port(80, "10.0.0.2"), False),
        (port(80, "10.0.0.1"), port(80), True),
        (port(80), port(80, "10.0.0.2"), True),
    ],
)
def test_host_ports(mine: dict[str, Any], theirs: dict[str, Any], *, clash: bool) -> None:
    """A host port is taken on its address, or everywhere when one side asks for all addresses."""
    found = refusal(pod(**mine), node("n"), pod("other", **theirs))
    assert (found is not None) is clash


@pytest.mark.parametrize(
    "toleration, taint, covered",
    [
        ({"operator": "Exists"}, TAINT, True),
        ({"key": "k", "operator": "Exists"}, TAINT, True),
        ({"key": "k", "value": "v"}, TAINT, True),
        ({"key": "k", "value": "w"}, TAINT, False),
        ({"key": "other", "operator": "Exists"}, TAINT, False),
        ({"key": "k", "operator": "Exists", "effect": "NoExecute"}, TAINT, False),
        ({"key": "k", "operator": "Gt", "value": "3"}, {"key": "k", "value": "4", "effect": "NoSchedule"}, True),
        ({"key": "k", "operator": "Lt", "value": "3"}, {"key": "k", "value": "4", "effect": "NoSchedule"}, False),
    ],
)
def test_tolerations(toleration: dict[str, Any], taint: dict[str, Any], *, covered: bool) -> None:
    """A toleration covers a taint by key, operator, value and effect."""
    assert tolerates(toleration, taint) is covered


def test_terms_without_anything_match_nothing() -> None:
    """An empty node selector term accepts no node."""
    required: dict[str, Any] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}}
    assert refusal(pod(affinity={"nodeAffinity": required}), node("n")) is not None


def test_pods_bound_by_name() -> None:
    """matchFields on metadata.name limit a pod to those nodes, if every term has them."""
    field = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n-1"]}]}
    by_name = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [field]}}}}
    assert named_nodes(by_name) == ["n-1"]
    wider = {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [field, {"matchExpressions": []}]}}}
    }
    assert named_nodes(wider) is None
