"""The smaller policies: success, start-up order, dependencies, in-place restart, TTL, elasticity."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.api.trees import Tree
from kubemini.controllers.jobset import depends_on, elastic, in_place_restart, startup_policy, success_policy, ttl
from kubemini.controllers.jobset.children import RoleCounts
from kubemini.controllers.jobset.errors import Stalled
from kubemini.controllers.jobset.in_place_restart import Attempts
from kubemini.controllers.jobset.view import Role
from kubemini.runtime.env import from_stamp
from tests.unit.jobset.samples import NOW, child, role, view

# ----------------------------------------------------------------------------------------------- success


@pytest.mark.parametrize(
    "policy, done, met",
    [
        ({"operator": "All"}, ["a", "b"], False),
        ({"operator": "All"}, ["a", "b", "b"], True),
        ({"operator": "All", "targetReplicatedJobs": ["a"]}, ["b"], False),
        ({"operator": "All", "targetReplicatedJobs": ["a"]}, ["a"], True),
        ({"operator": "All", "targetReplicatedJobs": ["z"]}, ["b"], True),
        ({"operator": "Any"}, ["b"], True),
        ({"operator": "Any", "targetReplicatedJobs": ["a"]}, ["b", "b"], False),
        ({"operator": "Any", "targetReplicatedJobs": ["a", "b"]}, ["b"], True),
    ],
)
def test_success(policy: Tree, done: list[str], met: bool) -> None:
    """All wants every Job of the target roles, Any one of them; All over a role without replicas is met by any success."""
    js = view(role("a"), role("b", 2), role("z", 0), successPolicy=policy)
    assert success_policy.met(js, [child(f"js-{name}-{index}", role=name, end="Complete") for index, name in enumerate(done)]) is met


# ----------------------------------------------------------------------------------------------- start-up


def counts(**entries: dict[str, Any]) -> dict[str, RoleCounts]:
    """Return counts by role."""
    return {name: RoleCounts(name, **entry) for name, entry in entries.items()}


def turn(found: startup_policy.Turn) -> tuple[list[str], bool]:
    """Return the names of the roles whose turn it is, and whether the next one waits."""
    return [each.name for each in found.roles], found.waiting


IN_ORDER = {"startupPolicy": {"startupPolicyOrder": "InOrder"}}


def test_any_order_takes_all() -> None:
    """Without an order every role's turn is now."""
    assert turn(startup_policy.turn(view(role("a"), role("b")), counts(a={}, b={}))) == (["a", "b"], False)


@pytest.mark.parametrize(
    "a, expected",
    [
        ({}, (["a"], True)),
        ({"active": 2}, (["a"], True)),
        ({"ready": 1}, (["a"], True)),
        ({"ready": 2}, (["b"], True)),
        ({"ready": 1, "failed": 1}, (["b"], True)),
        ({"succeeded": 2}, (["b"], True)),
    ],
)
def test_in_order_waits_for_the_whole_role(a: dict[str, Any], expected: tuple[list[str], bool]) -> None:
    """A role has started when all its Jobs are ready, done or failed."""
    assert turn(startup_policy.turn(view(role("a", 2), role("b"), **IN_ORDER), counts(a=a, b={}))) == expected


def test_in_order_ends() -> None:
    """Once all have started nobody waits; a role without replicas has started from the beginning."""
    found = startup_policy.turn(view(role("z", 0), role("b"), **IN_ORDER), counts(z={}, b={"ready": 1}))
    assert turn(found) == ([], False)
    assert [each.name for each in found.started] == ["z", "b"]


def test_a_suspended_jobset_has_no_order() -> None:
    """While suspended all Jobs are made, in no order."""
    assert turn(startup_policy.turn(view(role("a"), role("b"), suspend=True, **IN_ORDER), counts(a={}, b={}))) == (["a", "b"], False)


@pytest.mark.parametrize("suspend", [False, True])
def test_dependencies_hold_while_suspended_too(suspend: bool) -> None:
    """A dependent waits whether the JobSet runs or not."""
    js = view(role("a"), role("b", dependsOn=[{"name": "a", "status": "Ready"}]), suspend=suspend)
    assert turn(startup_policy.turn(js, counts(a={}, b={}))) == (["a"], False)
    assert turn(startup_policy.turn(js, counts(a={"ready": 1}, b={}))) == (["a", "b"], False)


@pytest.mark.parametrize(
    "status, theirs, reached",
    [
        ("Ready", {"ready": 1}, False),
        ("Ready", {"ready": 1, "succeeded": 1}, True),
        ("Ready", {"failed": 2}, True),
        ("Complete", {"ready": 2}, False),
        ("Complete", {"succeeded": 1, "failed": 1}, False),
        ("Complete", {"succeeded": 2}, True),
    ],
)
def test_how_far_a_dependency_must_be(status: str, theirs: dict[str, Any], reached: bool) -> None:
    """Ready counts what has at least become ready, Complete only what has succeeded."""
    dependent = Role(role("b", dependsOn=[{"name": "a", "status": status}]))
    assert depends_on.reached(dependent, {"a": 2, "b": 1}, counts(a=theirs, b={})) is reached


def test_all_dependencies_are_needed() -> None:
    """One dependency that has not come far enough keeps the role waiting; an unknown one for ever."""
    both = Role(role("c", dependsOn=[{"name": "a", "status": "Ready"}, {"name": "b", "status": "Complete"}]))
    assert not depends_on.reached(both, {"a": 1, "b": 1}, counts(a={"ready": 1}, b={"ready": 1}))
    assert depends_on.reached(both, {"a": 1, "b": 1}, counts(a={"ready": 1}, b={"succeeded": 1}))
    assert not depends_on.reached(Role(role("c", dependsOn=[{"name": "x", "status": "Ready"}])), {}, counts(c={}))


# ----------------------------------------------------------------------------------------------- in-place restart


def agent(attempt: int | str | None, *, phase: str = "Running", restarts: int = 0) -> Tree:
    """Return a pod whose agent reports an attempt."""
    annotations = {} if attempt is None else {"jobset.sigs.k8s.io/in-place-restart-attempt": str(attempt)}
    return {"metadata": {"annotations": annotations}, "status": {"phase": phase, "containerStatuses": [{"restartCount": restarts}]}}


def in_place(pods: list[Tree], *, limit: int = 3, **status: Any) -> Attempts:
    """Judge a JobSet of three pods."""
    return in_place_restart.judge(
        view(role(replicas=3), failurePolicy={"maxRestarts": limit, "restartStrategy": "InPlaceRestart"}, status=status), pods
    )


def test_equal_attempts_of_all_lift_the_barrier() -> None:
    """When every pod reports the same attempt it is the current one."""
    assert in_place([agent(2)] * 3) == Attempts(current=2)
    assert in_place([agent(0)] * 3) == Attempts(current=0)


def test_pods_that_lag_are_left_behind() -> None:
    """Different attempts make all but the highest previous; the value never falls."""
    assert in_place([agent(2), agent(1), agent(1)]) == Attempts(previous=1)
    assert in_place([agent(1), agent(0)], previousInPlaceRestartAttempt=4) == Attempts(previous=4)


def test_not_all_have_reported() -> None:
    """At first nobody waits for anybody; later a missing report leaves the others' attempt behind."""
    assert in_place([agent(0), agent(None), agent(None)]) == Attempts()
    assert in_place([]) == Attempts()
    assert in_place([agent(1), agent(1), agent(None)]) == Attempts(previous=0)


def test_failed_pods_do_not_report() -> None:
    """A failed pod stays beside its successor and is not counted."""
    assert in_place([agent(1), agent(1), agent(1), agent(0, phase="Failed")]) == Attempts(current=1)


@pytest.mark.parametrize("pods", [[agent(0, restarts=4)], [agent(4), agent(0)]])
def test_too_many_in_place_restarts(pods: list[Tree]) -> None:
    """More container restarts, or a higher attempt, than are allowed fail the JobSet."""
    assert in_place(pods).failed


def test_uncounted_restarts_are_on_the_house() -> None:
    """Global restarts that did not count towards the limit do not count for attempts either."""
    assert in_place([agent(5)] * 3, restarts=2) == Attempts(current=5)
    assert in_place([agent(5)] * 3, restarts=2, restartsCountTowardsMax=2).failed


@pytest.mark.parametrize("attempt", ["x", "-1", "1.5", ""])
def test_an_unreadable_attempt_stalls(attempt: str) -> None:
    """An attempt that is no natural number is an error."""
    with pytest.raises(Stalled):
        in_place([agent(attempt)])


def test_a_role_without_a_fixed_size_stalls() -> None:
    """In-place restart needs to know how many pods there are."""
    js = view(role(completions=None), failurePolicy={"maxRestarts": 1})
    with pytest.raises(Stalled, match="completions == jobTemplate"):
        in_place_restart.judge(js, [])


# ----------------------------------------------------------------------------------------------- TTL and size


def test_time_left() -> None:
    """A finished JobSet has its TTL from the moment it finished; an unfinished one, or one without TTL, has no end."""
    ended = {"conditions": [{"type": "Completed", "status": "True", "lastTransitionTime": NOW}]}
    now = from_stamp(NOW) + 4
    assert ttl.left(view(ttlSecondsAfterFinished=10, status=ended), now) == 6
    assert ttl.left(view(ttlSecondsAfterFinished=0, status=ended), now) == -4
    assert ttl.left(view(ttlSecondsAfterFinished=10, status={}), now) is None
    assert ttl.left(view(status=ended), now) is None


def test_a_changed_size_reaches_the_job() -> None:
    """A Job whose size differs from its role's gets both numbers; one that agrees is left alone."""
    grown = Role(role(parallelism=3, completions=3))
    patch = elastic.patch(child(), grown)
    assert patch is not None
    assert patch["spec"] == {"parallelism": 3, "completions": 3}
    assert elastic.patch(child(spec={"parallelism": 3, "completions": 3}), grown) is None


def test_only_one_size_is_elastic() -> None:
    """A role with different numbers, or none, changes nothing."""
    assert elastic.patch(child(), Role(role(parallelism=1, completions=5))) is None
    assert elastic.patch(child(), Role(role(parallelism=None, completions=None))) is None
