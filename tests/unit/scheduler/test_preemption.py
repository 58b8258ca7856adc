"""Preemption: victims, budgets, the choice among nodes, and the text when there is none."""

from __future__ import annotations

from typing import Any

from kubemini.controllers.scheduler import preemption
from kubemini.controllers.scheduler.cache import Cache
from kubemini.controllers.scheduler.deciding import decide, filters_of
from tests.unit.scheduler.samples import affinity, cluster, no_labels, node, pod

Tree = dict[str, Any]


def outcome(of: Tree, cache: Cache, budgets: list[Tree] | None = None) -> preemption.Outcome:
    """Return what preemption has to offer a pod that finds no node."""
    decision = decide(filters_of(of, cache, no_labels), cache)
    assert decision.node is None
    return preemption.find(of, decision, cache, budgets or [], lambda without: filters_of(of, cache, no_labels, without=without))


def names(found: preemption.Outcome) -> list[str]:
    """Return the names of the victims."""
    assert found.candidate is not None
    return [victim["metadata"]["name"] for victim in found.candidate.victims]


def budget(match: Tree, allowed: int) -> Tree:
    """Return a PodDisruptionBudget that allows some disruptions."""
    return {
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"selector": {"matchLabels": match}},
        "status": {"disruptionsAllowed": allowed},
    }


def test_no_more_victims_than_needed() -> None:
    """Whoever fits beside the newcomer is reprieved, the most important first (kubernetes issue 70622)."""
    cache = cluster(node("a"), a=[pod("low", cpu="1", priority=1), pod("mid", cpu="2", priority=2), pod("tiny", cpu="1", priority=1)])
    assert names(outcome(pod("h", cpu="2", priority=10), cache)) == ["low", "tiny"]


def test_equal_priority_is_never_preempted() -> None:
    """Only strictly lower priorities give way."""
    cache = cluster(node("a"), a=[pod("same", cpu="4", priority=10)])
    found = outcome(pod("h", cpu="1", priority=10), cache)
    assert found.candidate is None
    assert found.text == "0/1 nodes are available: 1 No preemption victims found for incoming pod."


def test_hopeless_nodes_are_told_apart() -> None:
    """Where even an empty node would not do, preemption is not helpful."""
    cache = cluster(node("a", cpu="1"), node("b"), b=[pod("same", cpu="4", priority=10)])
    text = "0/2 nodes are available: 1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling."
    assert outcome(pod("h", cpu="2", priority=10), cache).text == text


def test_never_means_never() -> None:
    """A pod with preemptionPolicy Never preempts nobody."""
    cache = cluster(node("a"), a=[pod("low", cpu="4")])
    found = outcome(pod("h", cpu="1", priority=10, preemptionPolicy="Never"), cache)
    assert (found.candidate, found.text) == (None, "not eligible due to preemptionPolicy=Never.")


def test_victims_on_their_way_out_are_awaited() -> None:
    """A preemptor whose victims still terminate on its node waits for them (kubernetes issue 93505)."""
    going = preempted("low", cpu="4")
    high = pod("h", cpu="1", priority=10)
    high["status"]["nominatedNodeName"] = "a"
    found = outcome(high, cluster(node("a"), a=[going]))
    assert (found.candidate, found.keep) == (None, True)
    assert found.text == "not eligible due to a terminating pod on the nominated node."


def preempted(name: str, **more: Any) -> Tree:
    """Return a pod that the scheduler has preempted, still terminating."""
    going = pod(name, **more)
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    going["status"]["conditions"] = [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]
    return going


def test_who_leaves_for_another_reason_is_not_awaited() -> None:
    """A pod that somebody else deleted does not keep the preemptor from preempting."""
    going = pod("low", cpu="4")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    high = pod("h", cpu="1", priority=10)
    high["status"]["nominatedNodeName"] = "a"
    assert names(outcome(high, cluster(node("a"), a=[going]))) == ["low"]


def test_a_nominated_node_that_shut_is_not_awaited() -> None:
    """Where the nominated node no longer takes the pod whatever leaves it, the preemptor looks elsewhere."""
    high = pod("h", cpu="1", priority=10)
    high["status"]["nominatedNodeName"] = "a"
    cache = cluster(node("a", unschedulable=True), node("b"), a=[preempted("low", cpu="4")], b=[pod("other", cpu="4")])
    assert names(outcome(high, cache)) == ["other"]


def test_fewest_broken_budgets_first() -> None:
    """A node whose victims break no budget wins, even with a victim of higher priority (kubernetes PR 128307)."""
    cache = cluster(node("a"), node("b"), a=[pod("kept", cpu="4", priority=1, labels={"app": "g"})], b=[pod("free", cpu="4", priority=5)])
    assert names(outcome(pod("h", cpu="1", priority=10), cache, [budget({"app": "g"}, 0)])) == ["free"]
    assert names(outcome(pod("h", cpu="1", priority=10), cache, [budget({"app": "g"}, 1)])) == ["kept"]


def test_pods_of_exhausted_budgets_are_reprieved_first() -> None:
    """On one node, the pod whose budget is spent stays if either could go."""
    cache = cluster(node("a"), a=[pod("kept", cpu="2", priority=1, labels={"app": "g"}), pod("free", cpu="2", priority=3)])
    assert names(outcome(pod("h", cpu="2", priority=10), cache, [budget({"app": "g"}, 0)])) == ["free"]


def test_lowest_highest_victim_wins() -> None:
    """Among candidates the one whose most important victim matters least is chosen, then the smaller sum, then fewer victims."""
    cache = cluster(
        node("a"),
        node("b"),
        node("c"),
        a=[pod("a", cpu="4", priority=5)],
        b=[pod("b1", cpu="2", priority=3), pod("b2", cpu="2", priority=3)],
        c=[pod("c", cpu="4", priority=3)],
    )
    assert names(outcome(pod("h", cpu="4", priority=10), cache)) == ["c"]


def test_later_start_loses_less() -> None:
    """Between equal candidates the one whose most important victim started last is chosen."""
    early, late = pod("early", cpu="4"), pod("late", cpu="4")
    early["status"]["startTime"], late["status"]["startTime"] = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"
    assert names(outcome(pod("h", cpu="4", priority=1), cluster(node("a"), node("b"), a=[early], b=[late]))) == ["late"]


def test_preempting_for_anti_affinity() -> None:
    """A pod that only stands in the way by anti-affinity is a victim as well (kubernetes issue 86938)."""
    cache = cluster(node("a"), a=[pod("t", labels={"a": "t"}), pod("u", labels={"a": "u"})])
    shy = pod("h", priority=10, affinity=affinity("podAntiAffinity", "kubernetes.io/hostname", {"a": "t"}))
    assert names(outcome(shy, cache)) == ["t"]


def test_exclusive_placement_compares_equals() -> None:
    """Anti-affinity among pods of one priority does not stop a higher one (jobset issue 1057)."""
    term = {
        "matchExpressions": [
            {"key": "job-key", "operator": "Exists"},
            {"key": "job-key", "operator": "NotIn", "values": ["one"]},
            {"key": "p", "operator": "In", "values": ["1"]},
        ]
    }
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "kubernetes.io/hostname", "labelSelector": term}]}}
    cache = cluster(node("a"), a=[pod("one", cpu="4", priority=1, labels={"job-key": "one", "p": "1"}, affinity=rule)])
    assert names(outcome(pod("two", cpu="4", priority=2, labels={"job-key": "two", "p": "2"}), cache)) == ["one"]
