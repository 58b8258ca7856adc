"""What a pass does with each pod: order, availability, surplus pods, rolling updates."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.controllers.stateful_set.planning import Step, condemned_step, first_unavailable, max_unavailable, outdated, replica_step, split
from tests.unit.statefulset.samples import JUST_READY, NOW, pod, stateful_set

PARTITION: dict[str, Any] = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}}


def test_slots() -> None:
    """Pods in range stand at their index from ordinals.start, those out of range go from the top; names without an ordinal are nobody's."""
    strange = pod(0) | {"metadata": {**pod(0)["metadata"], "name": "web-x"}}
    slots = split(stateful_set(2, ordinals={"start": 3}), [pod(4), pod(1), pod(9), strange])
    assert [each and each["metadata"]["name"] for each in slots.replicas] == [None, "web-4"]
    assert [each["metadata"]["name"] for each in slots.condemned] == ["web-9", "web-1"]


@pytest.mark.parametrize(
    "found, ordered, parallel",
    [
        (None, Step.CREATE, Step.CREATE),
        (pod(0), Step.KEEP, Step.KEEP),
        (pod(0, ready=False), Step.WAIT, Step.KEEP),
        (pod(0, phase="Pending", ready=False), Step.WAIT, Step.KEEP),
        (pod(0, going=True), Step.WAIT, Step.KEEP),
        (pod(0, phase="Failed"), Step.DELETE, Step.DELETE),
        (pod(0, phase="Succeeded"), Step.DELETE, Step.DELETE),
        (pod(0, phase="Failed", going=True), Step.WAIT, Step.WAIT),
    ],
)
def test_steps_of_replicas(found: object, ordered: Step, parallel: Step) -> None:
    """An ordered set waits for a pod that is not available; a parallel one goes on; ended pods are replaced by both."""
    assert replica_step(stateful_set(), found, NOW) is ordered  # type: ignore[arg-type]
    assert replica_step(stateful_set(podManagementPolicy="Parallel"), found, NOW) is parallel  # type: ignore[arg-type]


def test_min_ready_seconds_hold_an_ordered_set() -> None:
    """A pod counts as available once it has been ready for minReadySeconds."""
    young = pod(0, since=JUST_READY)
    assert replica_step(stateful_set(minReadySeconds=5), young, NOW) is Step.WAIT
    assert replica_step(stateful_set(minReadySeconds=5), young, NOW + 4) is Step.KEEP


def test_of_unready_surplus_pods_only_the_first_unavailable_goes() -> None:
    """With two unready surplus pods the upper one blocks an ordered set: only the lowest unavailable pod may go while it is unready."""
    owner = stateful_set(0)
    slots = split(owner, [pod(0, ready=False), pod(1, ready=False)])
    first = first_unavailable(slots, 0, NOW)
    assert first is slots.condemned[1]
    assert condemned_step(owner, slots.condemned[0], first, NOW) is Step.WAIT
    assert condemned_step(owner, slots.condemned[1], first, NOW) is Step.DELETE
    parallel = stateful_set(0, podManagementPolicy="Parallel")
    assert condemned_step(parallel, slots.condemned[0], first, NOW) is Step.DELETE


def test_a_terminating_surplus_pod_holds_an_ordered_set_alone() -> None:
    """An ordered set waits until it is gone; a parallel one looks at the next."""
    assert condemned_step(stateful_set(0), pod(1, going=True), None, NOW) is Step.WAIT
    assert condemned_step(stateful_set(0, podManagementPolicy="Parallel"), pod(1, going=True), None, NOW) is Step.SKIP


def test_an_update_takes_the_highest_old_pod() -> None:
    """One at a time, from the top, old pods whether healthy or not."""
    assert outdated(stateful_set(), [pod(0, "old"), pod(1, "old"), pod(2, "old", ready=False)], "new", NOW)[0]["metadata"]["name"] == "web-2"
    assert outdated(stateful_set(), [pod(0, "old"), pod(1, "old"), pod(2)], "new", NOW)[0]["metadata"]["name"] == "web-1"


@pytest.mark.parametrize("above", [None, pod(2, ready=False), pod(2, going=True), pod(2, "old", going=True)])
def test_an_update_waits_for_what_is_above(above: object) -> None:
    """Nothing is deleted while a pod of a higher ordinal is missing, unready or going."""
    assert outdated(stateful_set(), [pod(0, "old"), pod(1, "old"), above], "new", NOW) == []  # type: ignore[list-item]


def test_an_update_stops_at_the_partition() -> None:
    """Pods below the partition keep their revision; a partition beyond the replicas holds everything."""
    owner = stateful_set(**PARTITION)
    assert outdated(owner, [pod(0, "old"), pod(1), pod(2)], "new", NOW) == []
    assert [each["metadata"]["name"] for each in outdated(owner, [pod(0, "old"), pod(1, "old"), pod(2)], "new", NOW)] == ["web-1"]


def test_new_pods_below_the_partition_are_old() -> None:
    """Below start + partition a pod is made from the current revision; without a rollingUpdate, below the current pods that are left; never under OnDelete."""
    owner = stateful_set(ordinals={"start": 2}, **PARTITION)
    assert [owner.from_current(each) for each in (2, 3)] == [True, False]
    without = stateful_set(updateStrategy={"type": "RollingUpdate"}, status={"currentReplicas": 2})
    assert [without.from_current(each) for each in (0, 1, 2)] == [True, True, False]
    assert not stateful_set(updateStrategy={"type": "OnDelete"}, status={"currentReplicas": 2}).from_current(0)


def test_a_budget_takes_several() -> None:
    """With maxUnavailable (a gate) an update takes as many as the budget leaves, less those that are down for other reasons."""
    rolling = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0, "maxUnavailable": 2}}}
    names = [each["metadata"]["name"] for each in outdated(stateful_set(4, **rolling), [pod(i, "old") for i in range(4)], "new", NOW, budgeted=True)]
    assert names == ["web-3", "web-2"]
    one_down = [pod(0, "old"), pod(1, "old"), pod(2, "old"), pod(3, ready=False)]
    assert [each["metadata"]["name"] for each in outdated(stateful_set(4, **rolling), one_down, "new", NOW, budgeted=True)] == ["web-2"]


@pytest.mark.parametrize("most, expected", [("25%", 2), ("1%", 1), (3, 3), (None, 1)])
def test_max_unavailable_rounds_down_to_one_at_least(most: int | str | None, expected: int) -> None:
    """Percentages round down, but never to nothing."""
    assert max_unavailable(stateful_set(10, updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": most}})) == expected
