"""Inter-pod affinity both ways, and topology spread."""

from __future__ import annotations

from kubemini.controllers.scheduler import spreading
from kubemini.controllers.scheduler.affinity import EXISTING, NO_AFFINITY, NO_ANTI, compute
from kubemini.controllers.scheduler.deciding import decide, filters_of
from tests.unit.scheduler.samples import affinity, cluster, no_labels, node, pod, spread

RACK = "rack"
NODES = [node(f"n-{i}", labels={RACK: f"r{i // 2}"}) for i in range(4)]


def refused(of: dict[str, object], cache: object) -> list[str]:
    """Return the nodes that inter-pod rules refuse, as text."""
    found = compute(of, cache, no_labels)  # type: ignore[arg-type]
    return [info.name for info in cache.live() if found.refusal(info) is not None]  # type: ignore[attr-defined]


def test_affinity_follows_a_match_through_its_domain() -> None:
    """Required affinity allows every node of a domain that holds a matching pod, and no other."""
    cache = cluster(*NODES, n_2=[pod("lead", labels={"a": "l"})])
    follower = pod("f", affinity=affinity("podAffinity", RACK, {"a": "l"}))
    assert refused(follower, cache) == ["n-0", "n-1"]


def test_the_first_of_its_kind_may_go_anywhere() -> None:
    """A pod that meets its own affinity, while no other does, is allowed on every node that has the key."""
    first = pod("f", labels={"a": "l"}, affinity=affinity("podAffinity", RACK, {"a": "l"}))
    cache = cluster(*NODES, node("bare"))
    found = compute(first, cache, no_labels)
    assert [info.name for info in cache.live() if found.refusal(info) is NO_AFFINITY] == ["bare"]


def test_a_match_in_another_namespace_does_not_count() -> None:
    """A term without namespaces speaks of its pod's own namespace; with an empty selector, of all."""
    cache = cluster(*NODES, n_2=[pod("lead", labels={"a": "l"}, namespace="other")])
    assert len(refused(pod("f", affinity=affinity("podAffinity", RACK, {"a": "l"})), cache)) == 4
    assert refused(pod("f", affinity=affinity("podAffinity", RACK, {"a": "l"}, namespaceSelector={})), cache) == ["n-0", "n-1"]


def test_anti_affinity_both_ways() -> None:
    """Required anti-affinity refuses the domain of a match; that of a placed pod refuses the pods it speaks of."""
    shy = pod("s", labels={"a": "s"}, affinity=affinity("podAntiAffinity", RACK, {"a": "t"}))
    cache = cluster(*NODES, n_0=[pod("t", labels={"a": "t"})])
    found = compute(shy, cache, no_labels)
    assert [found.refusal(info) for info in cache.live()] == [NO_ANTI, NO_ANTI, None, None]
    cache = cluster(*NODES, n_0=[shy])
    found = compute(pod("t", labels={"a": "t"}), cache, no_labels)
    assert [found.refusal(info) for info in cache.live()] == [EXISTING, EXISTING, None, None]


def test_victims_are_left_out() -> None:
    """Rules between pods do not count pods that would be preempted."""
    other = pod("t", labels={"a": "t"})
    cache = cluster(*NODES, n_0=[other])
    shy = pod("s", affinity=affinity("podAntiAffinity", RACK, {"a": "t"}))
    found = compute(shy, cache, no_labels, without=[other["metadata"]["uid"]])
    assert all(found.refusal(info) is None for info in cache.live())


def test_ended_pods_are_gone() -> None:
    """A pod that leaves the cache leaves no trace in the counts."""
    lead = pod("lead", labels={"a": "l"})
    cache = cluster(*NODES, n_2=[lead])
    follower = pod("f", affinity=affinity("podAffinity", RACK, {"a": "l"}))
    assert refused(follower, cache) == ["n-0", "n-1"]
    cache.remove(lead["metadata"]["uid"])
    assert len(refused(follower, cache)) == 4


def test_spread_keeps_the_skew() -> None:
    """A hard constraint refuses the domains that would get more than maxSkew ahead of the emptiest."""
    placed = [pod(f"a{i}", labels={"a": "x"}) for i in range(2)]
    cache = cluster(*NODES, n_0=placed)
    found = spreading.compute(pod(labels={"a": "x"}, topologySpreadConstraints=[spread(RACK, {"a": "x"})]), cache)
    assert [found.refusal(info) for info in cache.live()] == [spreading.SKEWED, spreading.SKEWED, None, None]


def test_spread_needs_the_label() -> None:
    """A node without the topology key cannot be used, and preemption does not help."""
    cache = cluster(*NODES, node("bare"))
    found = spreading.compute(pod(labels={"a": "x"}, topologySpreadConstraints=[spread(RACK, {"a": "x"})]), cache)
    assert found.refusal(cache.nodes["bare"]) is spreading.UNLABELLED


def test_fewer_domains_than_asked_for() -> None:
    """With fewer domains than minDomains the emptiest counts as zero."""
    cache = cluster(*NODES, n_0=[pod("a", labels={"a": "x"})], n_2=[pod("b", labels={"a": "x"})])
    constraint = spread(RACK, {"a": "x"}, minDomains=3)
    found = spreading.compute(pod(labels={"a": "x"}, topologySpreadConstraints=[constraint]), cache)
    assert all(found.refusal(info) is spreading.SKEWED for info in cache.live())


def test_tainted_domains() -> None:
    """A tainted node's empty domain counts unless nodeTaintsPolicy is Honor (kubernetes issues 107464, 116118)."""
    tainted = node("t", labels={RACK: "r9"}, taints=[{"key": "k", "effect": "NoSchedule"}])
    cache = cluster(NODES[0], tainted, n_0=[pod("a", labels={"a": "x"})])
    ignore, honor = spread(RACK, {"a": "x"}), spread(RACK, {"a": "x"}, nodeTaintsPolicy="Honor")
    assert spreading.compute(pod(labels={"a": "x"}, topologySpreadConstraints=[ignore]), cache).refusal(cache.nodes["n-0"]) is spreading.SKEWED
    assert spreading.compute(pod(labels={"a": "x"}, topologySpreadConstraints=[honor]), cache).refusal(cache.nodes["n-0"]) is None


def test_going_pods_do_not_count_for_spread() -> None:
    """A pod that is being deleted is not counted for spreading, though it still takes its room."""
    going = pod("g", labels={"a": "x"})
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    cache = cluster(*NODES, n_0=[going])
    found = spreading.compute(pod(labels={"a": "x"}, topologySpreadConstraints=[spread(RACK, {"a": "x"})]), cache)
    assert found.refusal(cache.nodes["n-0"]) is None


def test_soft_spread_prefers_room() -> None:
    """Among nodes that do, a soft constraint prefers the emptier domain."""
    cache = cluster(*NODES, n_0=[pod("a", labels={"a": "x"})], n_3=[pod("b", labels={"b": "y"})])
    chosen = decide(filters_of(pod(labels={"a": "x"}, topologySpreadConstraints=[spread(RACK, {"a": "x"}, hard=False)]), cache, no_labels), cache)
    assert chosen.node == "n-2"
