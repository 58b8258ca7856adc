"""Decisions: the message of a refusal, scores, nominations."""

from __future__ import annotations

from kubemini.controllers.scheduler.deciding import decide, enough, filters_of, with_nominated
from kubemini.controllers.scheduler.scoring import resources
from tests.unit.scheduler.samples import cluster, no_labels, node, pod


def message(*nodes: dict[str, object], **spec: object) -> str:
    """Return the message of a pod that finds no node."""
    cache = cluster(*nodes)
    return decide(filters_of(pod(**spec), cache, no_labels), cache).message  # type: ignore[arg-type]


def test_every_node_is_counted_under_its_first_refusal() -> None:
    """The message counts nodes by reason, sorted as text, and a node's plugin may give several reasons."""
    nodes = [
        node("a", taints=[{"key": "k", "effect": "NoSchedule"}]),
        node("b", unschedulable=True),
        node("c", labels={"d": "e"}, cpu="1", memory="1Mi"),
        node("d"),
    ]
    expected = (
        "0/4 nodes are available: 1 Insufficient cpu, 1 Insufficient memory, 1 node(s) didn't match Pod's node affinity/selector, "
        "1 node(s) had untolerated taint(s), 1 node(s) were unschedulable."
    )
    assert message(*nodes, cpu="2", memory="1Gi", nodeSelector={"d": "e"}) == expected


def test_no_nodes_at_all() -> None:
    """Without nodes the message says just that."""
    assert message() == "no nodes available to schedule pods"


def test_pods_bound_by_name_do_not_look_elsewhere() -> None:
    """For a DaemonSet's pod all other nodes fall under one reason, tainted or not."""
    field = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
    required = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [field]}}}
    nodes = [node("a", cpu="1"), node("b"), node("c", taints=[{"key": "k", "effect": "NoSchedule"}])]
    expected = "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    assert message(*nodes, cpu="2", affinity=required) == expected


def test_the_emptier_node_wins() -> None:
    """Of two equal nodes the one with more room left is chosen; equal ones in the order in which they came."""
    cache = cluster(node("a"), node("b"), a=[pod("x", cpu="1", memory="4Gi")])
    assert decide(filters_of(pod(cpu="1"), cache, no_labels), cache).node == "b"
    assert decide(filters_of(pod(cpu="1"), cluster(node("a"), node("b")), no_labels), cluster(node("a"), node("b"))).node == "a"


def test_preferred_affinity_weights_add_up() -> None:
    """The weights of all preferred terms that a node meets are added."""

    def term(weight: int, key: str) -> dict[str, object]:
        return {"weight": weight, "preference": {"matchExpressions": [{"key": key, "operator": "Exists"}]}}

    cache = cluster(node("a", labels={"x": ""}), node("b", labels={"y": "", "z": ""}))
    preferred = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term(50, "x"), term(30, "y"), term(30, "z")]}}
    assert decide(filters_of(pod(affinity=preferred), cache, no_labels), cache).node == "b"


def test_soft_taints_are_avoided() -> None:
    """A node with an untolerated PreferNoSchedule taint is chosen last."""
    cache = cluster(node("a", taints=[{"key": "k", "effect": "PreferNoSchedule"}]), node("b", cpu="2"))
    assert decide(filters_of(pod(cpu="1"), cache, no_labels), cache).node == "b"


def test_best_effort_pods_spread() -> None:
    """Balance is not scored for pods without requests: it would send them all to one node (kubernetes issue 129138)."""
    cache = cluster(node("a"), node("b"))
    for number in range(6):
        one = pod(f"p{number}")
        chosen = decide(filters_of(one, cache, no_labels), cache).node
        assert chosen is not None
        cache.place(one, chosen)
    assert len(cache.nodes["a"].pods) == len(cache.nodes["b"].pods) == 3
    assert resources(filters_of(pod(), cache, no_labels).requests, cache.nodes["a"]) <= 100.0


def test_nominated_room_is_kept() -> None:
    """The room of a nominated pod is closed to pods of its priority and below, and open to higher ones (kubernetes issue 72124)."""
    cache = cluster(node("a"))
    waiting = pod("n", cpu="3", priority=10)
    cache.nominate(waiting, "a")
    for priority, node_name in ((0, None), (10, None), (11, "a")):
        assert decide(filters_of(pod(cpu="2", priority=priority), cache, no_labels), cache).node == node_name
    waiting["status"]["nominatedNodeName"] = "a"
    assert decide(filters_of(waiting, cache, no_labels), cache).node == "a"


def test_nominated_node_comes_first() -> None:
    """A pod takes the node it won, even where another scores higher."""
    cache = cluster(node("a", cpu="4"), node("b", cpu="64", memory="64Gi"))
    winner = pod(cpu="1")
    winner["status"]["nominatedNodeName"] = "a"
    assert decide(filters_of(winner, cache, no_labels), cache).node == "a"


def test_enough_nodes_are_looked_at() -> None:
    """In large clusters part of the nodes is enough, as upstream's adaptive share says."""
    assert [enough(count) for count in (50, 100, 1000, 5000, 10_000)] == [50, 100, 420, 500, 500]


def test_a_nominated_pod_that_has_its_place_takes_room_once() -> None:
    """Members of a gang that are nominated on one node are assumed one after the other: the nomination of those before counts no more, here or elsewhere."""
    first, second = pod("first", cpu="2", priority=5), pod("second", cpu="2", priority=5)
    cache = cluster(node("a"), node("b", cpu="2"))
    for each in (first, second):
        cache.nominate(each, "a")
    for place in ("a", "b"):
        cache.place(first, place)
        assert filters_of(second, cache, no_labels).refusal(cache.nodes["a"], occupied=with_nominated(second, cache.nodes["a"], cache)) is None
        cache.remove(first["metadata"]["uid"])
    big = pod("big", cpu="4", priority=5)
    assert filters_of(big, cache, no_labels).refusal(cache.nodes["a"], occupied=with_nominated(big, cache.nodes["a"], cache)) is not None
