"""Admission fair sharing: what a LocalQueue has used, what it owes, and who goes first by that."""

from __future__ import annotations

import math
from typing import Any

import pytest

from kubemini.api.trees import Tree
from kubemini.controllers.kueue.admission_fairness import AdmissionFairness, alpha, asked, decayed, scaled, weight_of, weighted
from kubemini.controllers.kueue.cycle import Outcome
from kubemini.controllers.kueue.hub import Hub
from kubemini.controllers.kueue.queues import FairPending, Pending
from kubemini.controllers.kueue.requests import PodSetRequest
from kubemini.controllers.kueue.workloads import Info
from kubemini.machinery.quantity import NANO
from tests.unit.kueue.worlds import World

BY_USAGE: Any = {"admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"}}
CONFIG = {"usageHalfLifeTime": "10m", "usageSamplingInterval": "5m"}
QUARTER = 1 - 0.5**0.5
"""What a sampling interval of half a half-life makes of a request."""

# ---------------------------------------------------------------------------------------------- formulae


def test_an_average_halves_in_a_half_life() -> None:
    """After a half-life half of the old is left and half of the new is in; in steps or at once makes no difference but for rounding."""
    assert decayed({"cpu": 8 * NANO}, {"cpu": 4 * NANO, "gpu": NANO}, 600, 600) == {"cpu": 6 * NANO, "gpu": NANO // 2}
    at_once = decayed({"cpu": 8 * NANO}, {"cpu": NANO}, 700, 600)["cpu"]
    in_steps = decayed({"cpu": 8 * NANO}, {"cpu": NANO}, 100, 600)
    for _ in range(6):
        in_steps = decayed(in_steps, {"cpu": NANO}, 100, 600)
    assert at_once == pytest.approx(in_steps["cpu"], abs=20)
    assert decayed({"cpu": NANO}, {}, -5, 600) == {"cpu": NANO}, "a clock that went back"


def test_amounts_are_rounded_down_to_billionths() -> None:
    """The factor is taken as it is printed, so that a tenth is a tenth; what decays ends at zero."""
    assert scaled({"cpu": NANO}, 0.1) == {"cpu": NANO // 10}
    assert scaled({"cpu": 7, "memory": 2**63}, 1.0) == {"cpu": 7, "memory": 2**63}
    assert scaled({"cpu": 10**9}, 1e-9) == {"cpu": 1}
    assert scaled({"cpu": 3}, 2e22) == {"cpu": 6 * 10**22}
    left = {"cpu": NANO}
    for _ in range(40):
        left = scaled(left, 0.5)
    assert left == {"cpu": 0}


def test_without_a_half_life_nothing_is_new() -> None:
    """No half-life: requests cost nothing."""
    assert alpha(300, 0) == 0.0
    assert scaled({"cpu": NANO}, alpha(300, 0)) == {"cpu": 0}


def test_usage_is_weighted_by_resource_and_by_queue() -> None:
    """Resources count by their weights (1 where none is given) and include penalties; a queue of twice the weight has half the usage; one without weight comes last."""
    consumed, penalty = {"cpu": 2 * NANO, "gpu": NANO}, {"gpu": NANO, "memory": 3 * NANO}
    assert weighted(consumed, penalty, 1, {}) == 7.0
    assert weighted(consumed, penalty, 2, {"gpu": 10, "memory": 0}) == 11.0
    assert weighted({}, {}, 0, {}) == math.inf


@pytest.mark.parametrize("spec, weight", [({}, 1.0), ({"fairSharing": {"weight": "500m"}}, 0.5), ({"fairSharing": {"weight": "0"}}, 0.0)])
def test_weights_of_local_queues(spec: Tree, weight: float) -> None:
    """A LocalQueue weighs 1 unless it says otherwise; so does one that is not there."""
    assert weight_of({"spec": spec}) == weight
    assert weight_of(None) == 1.0


def test_what_workloads_ask_for() -> None:
    """Requests of all pod sets are added up, cpu by thousandths; only some resources count where undeclared ones are ignored."""
    pods = [PodSetRequest("a", 1, {}, {"cpu": 1500, "memory": 10}), PodSetRequest("b", 1, {}, {"cpu": 500})]
    assert asked(pods) == {"cpu": 2 * NANO, "memory": 10 * NANO}
    assert asked(pods, ["cpu", "gpu"]) == {"cpu": 2 * NANO}


# ---------------------------------------------------------------------------------------------- order of those that wait


def info(key: str, queue: str = "a", priority: int = 0, at: float = 0.0) -> Info:
    """Return the reading of a Workload in a LocalQueue."""
    return Info({"metadata": {"namespace": "ns"}, "spec": {"queueName": queue}}, key, key, priority, at)


def filled(usages: dict[str, float], *infos: Info, cls: type[Pending] = FairPending) -> Pending:
    """Return a queue in which these wait; usages are by LocalQueue."""
    pending = FairPending("q", lambda local: usages[local.removeprefix("ns/")]) if cls is FairPending else Pending("q")
    for each in infos:
        pending.push(each, f"{each.local_queue}|{each.priority}")
    return pending


def listed(pending: Pending) -> list[str]:
    """Return who waits, first to last."""
    return [each.key for each in pending.in_order()]


def drained(pending: Pending) -> list[str]:
    """Pop everything that may be tried."""
    found = []
    while (head := pending.pop()) is not None:
        found.append(head.key)
    return found


def test_lower_usage_goes_before_priority() -> None:
    """The LocalQueue with the lower usage goes first whatever the priorities; within one, and between equal ones, priority and age decide."""
    some = (info("a-high", "a", 9), info("b-low", "b", 0, 2), info("b-old", "b", 0, 1), info("c", "c", 5))
    pending = filled({"a": 3.0, "b": 1.0, "c": 3.0}, *some)
    assert listed(pending) == drained(pending) == ["b-old", "b-low", "a-high", "c"]


def test_usage_may_change_while_workloads_wait() -> None:
    """The head is who has the lowest usage now; nothing has to be pushed again."""
    usages = {"a": 0.0, "b": 1.0}
    pending = filled(usages, info("a1", "a", at=1), info("a2", "a", at=2), info("b1", "b"))
    head = pending.pop()
    assert head is not None
    assert head.key == "a1"
    usages["a"] = 2.0
    assert drained(pending) == ["b1", "a2"]


def test_usage_goes_before_a_preemptor_that_waits() -> None:
    """One that has preempted goes first among those of its own LocalQueue, and not before a LocalQueue of lower usage; as the head it keeps the queue at rest."""
    pending = filled({"a": 1.0, "b": 0.0}, info("old", "a", at=1))
    pending.prefer("preemptor")
    pending.push(info("preemptor", "a", at=5), "p")
    pending.blocked = "preemptor"
    pending.push(info("other", "b", at=9), "o")
    assert listed(pending) == ["other", "preemptor", "old"]
    assert drained(pending) == ["other"]


def test_parked_lines_stay_out_until_a_retry() -> None:
    """A LocalQueue whose Workloads do not fit does not keep the others from their turn."""
    pending = filled({"a": 0.0, "b": 1.0}, info("a1", "a"), info("b1", "b"))
    pending.park("ns/a|0")
    assert drained(pending) == ["b1"]
    assert pending.retry()
    assert drained(pending) == ["a1"]


def test_a_queue_that_begins_to_share_goes_on_where_it_was() -> None:
    """Turning fair sharing on and off keeps all that wait, parked and put aside, and only orders them anew."""
    plain = filled({}, info("a1", "a", 5), info("b1", "b"), info("b2", "b", 7), cls=Pending)
    plain.park("ns/b|7")
    plain.put_aside(info("late", "b"))
    assert listed(plain) == ["b2", "a1", "b1", "late"]
    fair = FairPending("q", lambda local: 1.0 if local == "ns/a" else 0.0)
    fair.take_over(plain)
    assert listed(fair) == ["b2", "b1", "late", "a1"]
    again = Pending("q")
    again.take_over(fair)
    assert drained(fair) == ["b1", "a1"]
    assert [each.key for each in again.aside()] == ["late"]


# ---------------------------------------------------------------------------------------------- accounts


class Books:
    """The accounts of LocalQueues `ns/a` and `ns/b` in a ClusterQueue of ten cpus, at a time of our own."""

    def __init__(self, **config: Any) -> None:
        self.world = World(admissionFairSharing={**CONFIG, **config})
        self.world.queue("q", {"f": 10}, **BY_USAGE)
        self.world.queue("plain", {"f": 10})
        self.now = 1000.0
        self.changed: list[str] = []
        self.locals: dict[str, Tree] = {}
        for name in ("a", "b"):
            self.locals[f"ns/{name}"] = {"metadata": {"name": name, "namespace": "ns", "uid": name}, "spec": {"clusterQueue": "q"}}
        settings = self.world.cache.config.admission_fair_sharing
        assert settings is not None
        self.fairness = AdmissionFairness(settings, self.world.cache, self.locals.get, lambda: self.now, self.changed.append)

    def charge(self, name: str, cpu: int, queue: str = "q") -> None:
        """Let `ns/a` pay for a reservation."""
        requests = [PodSetRequest("main", 1, {}, {"cpu": cpu * 1000})]
        self.fairness.charge("ns/a", f"ns/{name}", requests, self.world.cache.queues[queue])

    def workload(self, name: str, *true: str, queue: str = "a", active: bool = True, uid: str = "") -> Tree:
        """Return a Workload of one cpu with conditions that are true."""
        stamp = "2026-01-01T00:00:00Z"
        status: Tree = {"conditions": [{"type": each, "status": "True", "reason": each, "message": "", "lastTransitionTime": stamp} for each in true]}
        if "QuotaReserved" in true:
            given = {"name": "main", "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": "1"}, "count": 1}
            status["admission"] = {"clusterQueue": "q", "podSetAssignments": [given]}
        meta = {"name": name, "namespace": "ns", "uid": uid or name, "creationTimestamp": stamp}
        pods = [{"name": "main", "count": 1, "template": {"spec": {"containers": []}}}]
        return {"metadata": meta, "spec": {"queueName": queue, "active": active, "podSets": pods}, "status": status}

    def event(self, old: Tree | None, new: Tree | None) -> None:
        """Let the cache, then the accounts, hear of a change."""
        if new is not None and "admission" in new["status"]:
            self.world.cache.observe(new)
        self.fairness.on_workload(old, new)

    def usage(self) -> float:
        """Return the usage of `ns/a`."""
        return self.fairness.usage("ns/a")

    def sampled(self) -> dict[str, str] | None:
        """Take a sample of `ns/a` and save it; return what is consumed, or None where none is due."""
        _, status = self.fairness.sample("ns/a", "then")
        self.fairness.saved("ns/a")
        consumed: dict[str, str] | None = status and status["admissionFairSharingStatus"]["consumedResources"]
        return consumed


def test_a_reservation_costs_at_once() -> None:
    """Quota costs what so much of it would have used in a sampling interval; a second reservation of a Workload takes the place of the first."""
    books = Books()
    books.charge("w", 4)
    assert books.usage() == pytest.approx(4 * QUARTER)
    books.charge("w", 2)
    assert books.usage() == pytest.approx(2 * QUARTER)
    books.charge("v", 4)
    assert books.usage() == pytest.approx(6 * QUARTER)
    assert books.changed == ["ns/a"] * 3
    books.fairness.take_back("ns/a", "ns/w")
    books.fairness.take_back("ns/a", "ns/w")
    assert books.usage() == pytest.approx(4 * QUARTER)


def test_a_reservation_that_was_not_written_costs_nothing() -> None:
    """Where the write of a reservation failed, its quota and its penalty are given back together."""
    books = Books()
    hub = Hub(books.world.cache.config)
    hub.cache, hub.admission_fairness = books.world.cache, books.fairness
    waiting = books.world.pending("w", "q", 1)
    waiting.tree["spec"]["queueName"] = "a"
    books.charge("w", 1)
    hub.cache.assume(waiting)
    hub.forget("ns/w")
    assert books.usage() == 0.0
    assert hub.cache.held("ns/w") is None


def test_only_queues_that_share_by_usage_charge() -> None:
    """A reservation in another ClusterQueue costs nothing: nothing would ever settle it."""
    books = Books()
    books.charge("w", 4, queue="plain")
    assert books.usage() == 0.0


def test_admission_settles() -> None:
    """On admission the penalty becomes consumption; a second event about it adds nothing, nor does a Workload without a penalty, as after a restart."""
    books = Books()
    books.charge("w", 1)
    reserved, admitted = books.workload("w", "QuotaReserved"), books.workload("w", "QuotaReserved", "Admitted")
    books.event(books.workload("w"), reserved)
    books.event(reserved, admitted)
    assert books.usage() == pytest.approx(QUARTER)
    books.fairness.take_back("ns/a", "ns/w")
    assert books.usage() == pytest.approx(QUARTER), "it is settled"
    books.event(admitted, books.workload("w", "QuotaReserved", "Admitted", "PodsReady"))
    books.event(books.workload("x"), books.workload("x", "QuotaReserved", "Admitted"))
    assert books.usage() == pytest.approx(QUARTER)


def test_consumption_follows_what_is_admitted() -> None:
    """The first sample is taken at once and counts no time; then one each interval, and what is admitted moves into it by the half-life."""
    books = Books()
    assert books.sampled() == {}
    books.event(books.workload("w"), books.workload("w", "QuotaReserved", "Admitted"))
    books.now += 299
    assert books.fairness.sample("ns/a", "then") == (1.0, None)
    books.now += 301
    assert books.sampled() == {"cpu": "500m"}
    books.world.cache.release("ns/w")
    books.now += 600
    assert books.sampled() == {"cpu": "250m"}


def test_a_sample_that_was_not_written_is_taken_again() -> None:
    """Where the write of a status fails, the next look has a sample for it, and not only after an interval."""
    books = Books()
    assert books.fairness.sample("ns/a", "then")[1] is not None
    assert books.sampled() == {}
    assert books.sampled() is None


def test_penalties_that_wait_are_sampled_with_every_look() -> None:
    """As long as there is a penalty to settle every look takes a sample."""
    books = Books()
    books.charge("w", 1)
    assert books.sampled() == {}
    assert books.sampled() == {}
    books.fairness.take_back("ns/a", "ns/w")
    assert books.sampled() is None


def test_without_a_half_life_usage_is_forgotten() -> None:
    """A half-life of zero: every sample begins at nothing."""
    books = Books(usageHalfLifeTime="0s")
    books.charge("w", 4)
    books.event(books.workload("w"), books.workload("w", "QuotaReserved", "Admitted"))
    books.now += 1000
    assert books.sampled() == {}
    assert books.usage() == 0.0


def test_an_account_goes_on_where_status_left_off() -> None:
    """A new process reads what was consumed from status, and the time while nobody ran does not count."""
    books = Books()
    stored = {"consumedResources": {"cpu": "1500m"}, "lastUpdate": "2020-01-01T00:00:00Z"}
    books.locals["ns/a"]["status"] = {"fairSharing": {"weightedShare": 0, "admissionFairSharingStatus": stored}}
    assert books.usage() == 1.5
    books.now += 5000
    assert books.sampled() == {"cpu": "1500m"}
    books.now += 600
    assert books.sampled() == {"cpu": "750m"}


def test_an_admission_before_the_first_sample_keeps_what_status_said() -> None:
    """Right after a restart an admission does not hide what was consumed before."""
    books = Books()
    stored = {"consumedResources": {"cpu": "2"}, "lastUpdate": "2020-01-01T00:00:00Z"}
    books.locals["ns/a"]["status"] = {"fairSharing": {"weightedShare": 0, "admissionFairSharingStatus": stored}}
    books.charge("w", 1)
    books.event(books.workload("w"), books.workload("w", "QuotaReserved", "Admitted"))
    assert books.usage() == pytest.approx(2 + QUARTER)


@pytest.mark.parametrize(
    "old, new, kept",
    [
        (("QuotaReserved",), None, False),
        (("QuotaReserved",), {"true": ("QuotaReserved", "Finished")}, False),
        (("QuotaReserved",), {"true": (), "active": False}, False),
        (("QuotaReserved",), {"true": ("QuotaReserved",), "active": False}, True),
        ((), {"true": (), "queue": "b"}, False),
        ((), {"true": (), "uid": "another"}, False),
        (("QuotaReserved",), {"true": ("Evicted",)}, True),
    ],
    ids=["deleted", "finished", "inactive", "inactive, with quota", "moved", "made anew", "evicted, still queued"],
)
def test_when_a_penalty_is_taken_back(old: tuple[str, ...], new: dict[str, Any] | None, kept: bool) -> None:
    """A penalty goes when its Workload cannot be admitted by it any more; one that is evicted keeps it, for its next reservation replaces it."""
    books = Books()
    books.charge("w", 1)
    changed = dict(new) if new is not None else None
    books.event(books.workload("w", *old), books.workload("w", *changed.pop("true"), **changed) if changed is not None else None)
    assert books.usage() == pytest.approx(QUARTER if kept else 0.0)


def test_local_queues_that_go_or_change_their_weight() -> None:
    """Another weight is another usage at once; one that is deleted, or made anew, begins at nothing."""
    books = Books()
    books.charge("w", 1)
    old = books.locals["ns/a"]
    assert books.usage() == pytest.approx(QUARTER)
    new = books.locals["ns/a"] = {**old, "spec": {"clusterQueue": "q", "fairSharing": {"weight": "2"}}}
    books.changed.clear()
    books.fairness.on_local_queue(old, new)
    assert books.usage() == pytest.approx(QUARTER / 2)
    assert books.changed == ["ns/a"]
    again = books.locals["ns/a"] = {**new, "metadata": {**new["metadata"], "uid": "again"}}
    books.fairness.on_local_queue(new, again)
    assert not books.fairness.known("ns/a")
    assert books.usage() == 0.0


def test_a_local_queue_that_is_not_there_has_used_nothing() -> None:
    """Nothing is kept of LocalQueues that do not exist."""
    books = Books()
    assert books.fairness.usage("ns/nowhere") == 0.0
    assert not books.fairness.known("ns/nowhere")


# ---------------------------------------------------------------------------------------------- whom to preempt


def test_who_used_more_is_preempted_first() -> None:
    """Within a ClusterQueue Workloads of the LocalQueue with the higher usage go first, though their priority is higher; without fair sharing priority decides."""
    for scope, expected in ((BY_USAGE, "rich"), ({}, "poor")):
        world = World(admissionFairSharing=CONFIG)
        world.queue("q", {"f": 4}, preemption={"withinClusterQueue": "LowerPriority"}, **scope)
        world.cache.local_share = {"ns/much": 5.0, "ns/little": 1.0, "ns/lq": 0.0}.__getitem__
        for name, local, priority in (("rich", "much", 2), ("poor", "little", 1)):
            held = world.held(name, "q", 2, priority=priority)
            held.tree = {**held.tree, "spec": {**held.tree["spec"], "queueName": local}}
        (entry,) = world.run(world.pending("w", "q", 2, priority=3))
        assert entry.outcome is Outcome.PREEMPTING
        assert [target.info.uid for target in entry.targets] == [expected]


def test_local_queues_of_one_name_are_not_compared() -> None:
    """LocalQueues of two namespaces that have the same name: priority decides, as upstream has it."""
    world = World(admissionFairSharing=CONFIG)
    world.queue("q", {"f": 4}, preemption={"withinClusterQueue": "LowerPriority"}, **BY_USAGE)
    world.cache.local_share = {"ns/lq": 1.0, "other/lq": 5.0}.__getitem__
    for name, namespace, priority in (("rich", "other", 2), ("poor", "ns", 1)):
        held = world.held(name, "q", 2, priority=priority)
        held.tree = {**held.tree, "metadata": {**held.tree["metadata"], "namespace": namespace}}
    (entry,) = world.run(world.pending("w", "q", 2, priority=3))
    assert [target.info.uid for target in entry.targets] == ["poor"]


def test_preemption_by_shares_looks_at_local_queues_too() -> None:
    """With preemption by fair sharing the own ClusterQueue's Workloads are taken in the same order."""
    world = World(admissionFairSharing=CONFIG, fairSharing={})
    world.queue("q", {"f": 4}, preemption={"withinClusterQueue": "LowerPriority"}, **BY_USAGE)
    world.cache.local_share = {"ns/much": 5.0, "ns/little": 1.0, "ns/lq": 0.0}.__getitem__
    for name, local, priority in (("rich", "much", 2), ("poor", "little", 1)):
        held = world.held(name, "q", 2, priority=priority)
        held.tree = {**held.tree, "spec": {**held.tree["spec"], "queueName": local}}
    (entry,) = world.run(world.pending("w", "q", 2, priority=3))
    assert [target.info.uid for target in entry.targets] == ["rich"]
