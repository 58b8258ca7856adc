"""Scheduling cycles: flavors, preemption and the order of entries, each on a small world."""

from __future__ import annotations

import pytest

from kubemini.controllers.kueue.config import KueueConfig
from kubemini.controllers.kueue.cycle import Entry, Outcome, Requeue
from kubemini.runtime.gates import FeatureGates
from tests.unit.kueue.worlds import World

WITHIN = {"preemption": {"withinClusterQueue": "LowerPriority"}}
RECLAIM = {"cohortName": "co", "preemption": {"reclaimWithinCohort": "Any"}}


def targets(entry: Entry) -> dict[str, str]:
    """Return who is to be evicted, and why."""
    return {target.info.uid: target.reason for target in entry.targets}


def flavor(entry: Entry) -> str:
    """Return the flavor of the only pod set."""
    return entry.assignment.pod_sets[0].flavors["cpu"].flavor


def usage(world: World) -> dict[str, int]:
    """Return the cpu in use by queue."""
    return {name: sum(state.node.usage.values()) for name, state in world.cache.queues.items()}


def test_what_fits_is_assumed_at_once() -> None:
    """An admitted Workload counts in the cache when the cycle returns."""
    world = World()
    world.queue("q", {"f": 4})
    (entry,) = world.run(world.pending("w", "q", 3))
    assert entry.outcome is Outcome.ADMITTED
    assert usage(world) == {"q": 3000}
    (second,) = world.run(world.pending("v", "q", 2))
    assert second.message == "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor f, 1 more needed"
    assert second.reason == "WaitingForQuota"


def test_more_than_the_tree_has_can_never_fit() -> None:
    """A request beyond the maximum says so, also where it would overflow int64."""
    world = World()
    world.queue("q", {"f": 4})
    (entry,) = world.run(world.pending("w", "q", 5))
    assert entry.reason == "ExceedsMaxQuota"
    assert "(5) > maximum capacity (4)" in entry.message
    huge = world.pending("h", "q", 10**17)
    (entry,) = world.run(huge)
    assert "current podset request (9223372036854775807m)" in entry.message


def test_earlier_entries_of_a_cycle_take_from_later_ones() -> None:
    """Two queues of a cohort compete for the same unused quota: the one that borrows less high, then the older one, wins."""
    world = World()
    world.queue("a", {"f": 0}, cohortName="co")
    world.queue("b", {"f": 0}, cohortName="co")
    world.queue("lender", {"f": 4}, cohortName="co")
    young, old = world.run(world.pending("young", "a", 3, at=2.0), world.pending("old", "b", 3, at=1.0))
    assert old.outcome is Outcome.ADMITTED
    assert young.message == "Workload no longer fits after processing another workload"
    assert young.requeue is Requeue.FAILED_AFTER_NOMINATION


def test_supposed_usage_is_gone_after_the_cycle() -> None:
    """What a preemptor is promised during a cycle leaves no trace in the cache."""
    world = World()
    world.queue("q", {"f": 4}, **WITHIN)
    world.held("low", "q", 4)
    (entry,) = world.run(world.pending("high", "q", 2, priority=1))
    assert entry.outcome is Outcome.PREEMPTING
    assert usage(world) == {"q": 4000}


def test_taints_and_selectors_reject_flavors() -> None:
    """A flavor with an untolerated taint or a contradicting label is passed over; its reason is kept."""
    world = World()
    world.flavor("tainted", nodeTaints=[{"key": "spot", "value": "yes", "effect": "NoSchedule"}])
    world.flavor("zoned", nodeLabels={"zone": "b"})
    world.queue("q", {"tainted": 4, "zoned": 4, "plain": 4})
    (entry,) = world.run(world.pending("w", "q", 1, nodeSelector={"zone": "a"}))
    assert flavor(entry) == "plain"
    verdicts = {verdict.flavor: verdict.messages for verdict in entry.assignment.pod_sets[0].verdicts}
    assert verdicts["tainted"] == ("untolerated taint {spot yes NoSchedule <nil>} in flavor tainted",)
    assert verdicts["zoned"] == ("flavor zoned doesn't match node affinity",)


def test_selector_keys_of_other_flavors_do_not_count() -> None:
    """A node selector on a key that only another flavor declares does not reject a flavor (kueue PR 12449)."""
    world = World()
    world.flavor("a", nodeLabels={"tier": "t0"})
    world.flavor("b", nodeLabels={"zone": "z"})
    world.queue("q", {"a": 0, "b": 5})
    (entry,) = world.run(world.pending("w", "q", 1, nodeSelector={"tier": "t0"}))
    assert flavor(entry) == "b"


@pytest.mark.parametrize("when, expected", [("MayStopSearch", "first"), ("TryNextFlavor", "second")])
def test_when_can_borrow_decides_between_borrowing_and_the_next_flavor(when: str, expected: str) -> None:
    """A flavor that needs borrowing is taken, or the next one is looked at."""
    world = World()
    world.queue("q", {"first": 1, "second": 4}, cohortName="co", flavorFungibility={"whenCanBorrow": when})
    world.queue("lender", {"first": 4}, cohortName="co")
    (entry,) = world.run(world.pending("w", "q", 2))
    assert flavor(entry) == expected


def test_no_candidates_is_worse_than_any_flavor_that_works() -> None:
    """With PreemptionOverBorrowing a flavor without candidates does not outrank a later one that fits by borrowing (kueue PR 13896)."""
    world = World()
    fungibility = {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor", "preference": "PreemptionOverBorrowing"}
    world.queue("q", {"first": 2, "second": 0}, cohortName="co", flavorFungibility=fungibility, **WITHIN)
    world.queue("lender", {"second": 4}, cohortName="co")
    world.held("peer", "q", 2, flavor="first", priority=9)
    (entry,) = world.run(world.pending("w", "q", 2))
    assert entry.outcome is Outcome.ADMITTED
    assert flavor(entry) == "second"


def test_zero_of_an_undeclared_resource_is_ignored() -> None:
    """A request of zero of a resource that no group covers refuses nothing (kueue PR 8241)."""
    world = World()
    world.queue("q", {"f": 4})
    info = world.pending("w", "q", 1, containers=[{"name": "c", "resources": {"requests": {"cpu": "1", "gpu": "0"}}}])
    (entry,) = world.run(info)
    assert entry.outcome is Outcome.ADMITTED
    assert entry.assignment.admission("q")["podSetAssignments"][0]["resourceUsage"] == {"cpu": "1"}


def test_lowest_priority_and_newest_go_first() -> None:
    """Targets are of the lowest priority first, then the latest reservation; no more than needed."""
    world = World()
    world.queue("q", {"f": 6}, **WITHIN)
    world.held("low-old", "q", 2, priority=1, at=1.0)
    world.held("low-new", "q", 2, priority=1, at=2.0)
    world.held("mid", "q", 2, priority=2, at=3.0)
    (entry,) = world.run(world.pending("high", "q", 2, priority=5))
    assert targets(entry) == {"low-new": "InClusterQueue"}


def test_targets_that_turn_out_needless_stay() -> None:
    """Filling back drops a small target once a larger one makes enough room alone."""
    world = World()
    world.queue("q", {"f": 5}, **WITHIN)
    world.held("small", "q", 1, priority=1)
    world.held("large", "q", 4, priority=2)
    (entry,) = world.run(world.pending("high", "q", 4, priority=5))
    assert targets(entry) == {"large": "InClusterQueue"}


def test_lent_quota_is_reclaimed_from_those_who_borrow() -> None:
    """A queue within its quota takes it back from a borrower, not from a queue within its own."""
    world = World()
    world.queue("owner", {"f": 4}, **RECLAIM)
    world.queue("borrower", {"f": 2}, cohortName="co")
    world.queue("modest", {"f": 2}, cohortName="co")
    world.held("loan", "borrower", 4)
    world.held("own", "borrower", 2, at=0.5)
    world.held("fair", "modest", 2)
    (entry,) = world.run(world.pending("w", "owner", 4, priority=-5))
    assert targets(entry) == {"loan": "InCohortReclamation"}


def test_nothing_is_evicted_when_that_would_not_help() -> None:
    """Where even all candidates together do not make room, nobody is evicted."""
    world = World()
    world.queue("q", {"f": 4}, **WITHIN)
    world.held("low", "q", 1, priority=0)
    world.held("peer", "q", 3, priority=5)
    (entry,) = world.run(world.pending("high", "q", 3, priority=5))
    assert not entry.targets
    assert entry.requeue is Requeue.NO_CANDIDATES


def test_partial_admission_takes_as_many_pods_as_fit() -> None:
    """A pod set with a minimum is admitted with the largest number of pods that fits."""
    world = World()
    world.queue("q", {"f": 5})
    info = world.pending("w", "q", 8)
    info.pod_sets[0]["minCount"] = 2
    (entry,) = world.run(info)
    assert entry.outcome is Outcome.ADMITTED
    assert entry.assignment.admission("q")["podSetAssignments"][0]["count"] == 5


def test_a_stopped_queue_still_lends() -> None:
    """A ClusterQueue on hold admits nothing, and its unused quota is there for its cohort."""
    world = World()
    world.queue("held", {"f": 4}, cohortName="co", stopPolicy="Hold")
    world.queue("q", {"f": 0}, cohortName="co")
    stopped, lent = world.run(world.pending("a", "held", 1), world.pending("b", "q", 4))
    assert stopped.message == "ClusterQueue held is inactive"
    assert lent.outcome is Outcome.ADMITTED


def test_a_deleted_queue_lends_no_more() -> None:
    """After a ClusterQueue is gone its quota is too (kueue PR 5985)."""
    world = World()
    world.queue("lender", {"f": 4}, cohortName="co")
    world.queue("q", {"f": 0}, cohortName="co")
    world.cache.drop_queue("lender")
    (entry,) = world.run(world.pending("w", "q", 1))
    assert entry.reason == "ExceedsMaxQuota"


def test_the_smaller_share_goes_first_under_fair_sharing() -> None:
    """With fair sharing the entry whose queue has less, weighed, is admitted before an older one of a queue that has more."""
    world = World(fairSharing={})
    world.queue("rich", {"f": 0}, cohortName="co")
    world.queue("poor", {"f": 0}, cohortName="co")
    world.queue("lender", {"f": 6}, cohortName="co")
    world.held("loan", "rich", 3)
    rich, poor = world.run(world.pending("a", "rich", 3, at=1.0), world.pending("b", "poor", 3, at=2.0))
    assert poor.outcome is Outcome.ADMITTED
    assert rich.outcome is Outcome.WAITING


def test_fair_sharing_takes_from_the_one_with_the_most() -> None:
    """A queue below its fair share preempts the queue above it, until both are even."""
    world = World(fairSharing={})
    policy = {"preemption": {"reclaimWithinCohort": "Any"}, "cohortName": "co"}
    world.queue("rich", {"f": 0}, **policy)
    world.queue("poor", {"f": 0}, **policy)
    world.queue("lender", {"f": 6}, cohortName="co")
    for number in range(6):
        world.held(f"r{number}", "rich", 1, at=float(number))
    (entry,) = world.run(world.pending("w", "poor", 3))
    assert targets(entry) == {"r5": "InCohortFairSharing", "r4": "InCohortFairSharing", "r3": "InCohortFairSharing"}


def test_lowered_quota_does_not_make_a_request_larger() -> None:
    """Where usage is above a lowered quota, what is missing is told as if nothing were free, not less than nothing."""
    world = World()
    world.queue("q", {"f": 3})
    world.held("w", "q", 3)
    world.queue("q", {"f": 2})
    (entry,) = world.run(world.pending("small", "q", 1))
    assert entry.message.endswith("insufficient unused quota for cpu in flavor f, 1 more needed")


def contested(victims: int) -> World:
    """Return two queues of two cpus each that a third one in their cohort has taken with so many Workloads."""
    world = World()
    for name in ("a", "b"):
        world.queue(name, {"f": 2}, cohortName="co", preemption={"reclaimWithinCohort": "Any"})
    world.queue("taker", {"f": 0}, cohortName="co")
    for number in range(victims):
        world.held(f"v{number}", "taker", 4 // victims, at=float(number))
    return world


def test_who_fits_behind_the_victim_of_another_waits_for_it() -> None:
    """Two preemptors with one victim between them: the second one fits once the victim is gone, and says that it waits for that (kueue gate RecomputeAssignment…)."""
    first, second = (world := contested(1)).run(world.pending("p", "a", 2, at=1.0), world.pending("q", "b", 2, at=2.0))
    assert first.outcome is Outcome.PREEMPTING
    assert (second.reason, second.requeue) == ("WaitingForPreemptedWorkloads", Requeue.PENDING_PREEMPTION)
    assert second.message == "Workload has overlapping preemption targets with another workload, but will fit after these preemptions complete"
    assert usage(world) == {"a": 0, "b": 0, "taker": 4000}


def test_who_waits_behind_a_victim_keeps_its_place() -> None:
    """What such a Workload is going to take is not given to a third one in the same cycle."""
    world = contested(1)
    world.queue("c", {"f": 0}, cohortName="co")
    *_, third = world.run(world.pending("p", "a", 2, at=1.0), world.pending("q", "b", 1, at=2.0), world.pending("r", "c", 2, at=3.0))
    assert third.outcome is Outcome.WAITING


def test_without_the_gate_the_second_preemptor_is_only_skipped() -> None:
    """With the gate off overlapping targets are no reason to look again."""
    world = contested(1)
    world.cache.config = KueueConfig.of({}, FeatureGates({"RecomputeAssignmentUponPreemptionTargetsOverlap": False}))
    _, second = world.run(world.pending("p", "a", 2, at=1.0), world.pending("q", "b", 2, at=2.0))
    assert second.message == "Workload has overlapping preemption targets with another workload"


def test_a_slice_keeps_the_flavor_of_the_one_before() -> None:
    """A slice that replaces another gets no flavor but that of the other, and is told which that is."""
    world = World()
    world.queue("q", {"f": 2, "g": 8})
    old = world.held("old", "q", 2, flavor="f")
    old.tree["status"] = {"admission": {"podSetAssignments": [{"name": "main", "count": 2, "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": "2"}}]}}
    new = world.pending("new", "q", 4)
    new.replaces = "ns/old"
    (entry,) = world.run(new)
    assert "could not assign g flavor since the original workload is assigned: f" in entry.message


def test_a_preemptor_begins_anew_with_the_first_flavor() -> None:
    """The next attempt of one that preempts looks at every flavor again; one that nothing was found for goes on after the last flavor tried."""
    world = World()
    world.queue("q", {"f": 2, "g": 0}, flavorFungibility={"whenCanPreempt": "MayStopSearch"}, **WITHIN)
    world.held("low", "q", 2)
    (entry,) = world.run(world.pending("high", "q", 2, priority=1))
    assert entry.outcome is Outcome.PREEMPTING
    assert entry.position(0) is None
    (peer,) = world.run(world.pending("peer", "q", 2))
    assert peer.position(0) is not None
