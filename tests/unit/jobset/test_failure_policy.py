"""Failure policy: which rule decides about which failed Job, and what each action does."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.api.trees import Tree
from kubemini.controllers.jobset import failure_policy
from kubemini.controllers.jobset.children import count, sort_out
from kubemini.controllers.jobset.errors import Stalled
from kubemini.controllers.jobset.failure_policy import Fail, Restart, RestartJob, decide
from kubemini.controllers.jobset.status import StatusDraft
from tests.unit.jobset.samples import NOW, child, job, role, view

EARLIER = "2026-01-01T00:09:00Z"


def rules(*entries: Tree, limit: int = 3) -> dict[str, Any]:
    """Return a failure policy as an argument of `view`."""
    return {"failurePolicy": {"maxRestarts": limit, "rules": [{"name": f"rule{index}", **entry} for index, entry in enumerate(entries)]}}


def test_without_a_policy_the_first_failure_ends_it() -> None:
    """Without a failure policy the JobSet fails, naming the Job that failed first."""
    decision = decide(view(), [child("js-w-1", end="Failed"), child("js-w-0", end="Failed", at=EARLIER)], restart_job=False)
    assert decision == Fail("FailedJobs", "jobset failed due to one or more job failures (first failed job: js-w-0)")


def test_of_failures_in_one_second_the_first_listed_is_named() -> None:
    """Times have a resolution of a second; ties go to the order of the list."""
    failed = [child("js-w-1", end="Failed"), child("js-w-0", end="Failed")]
    assert "js-w-1" in decide(view(), failed, restart_job=False).message


def test_an_empty_policy_allows_no_restart() -> None:
    """A failure policy without numbers fails at the limit, not for want of a policy."""
    decision = decide(view(failurePolicy={}), [child(end="Failed")], restart_job=False)
    assert decision == Fail("ReachedMaxRestarts", "jobset failed due to reaching max number of restarts (first failed job: js-w-0)")


def test_no_matching_rule_restarts_and_counts() -> None:
    """The default action is a counted restart, with a reason of its own."""
    decision = decide(view(**rules({"action": "FailJobSet", "onJobFailureReasons": ["DeadlineExceeded"]})), [child(end="Failed")], restart_job=False)
    message = "applying RestartJobSet failure policy action (first failed job: js-w-0)"
    assert decision == Restart("DefaultFailurePolicy", "RestartJobSetFailurePolicyAction", message, counted=True)


@pytest.mark.parametrize(
    "rule, matches",
    [
        ({}, True),
        ({"onJobFailureReasons": ["PodFailurePolicy", "BackoffLimitExceeded"]}, True),
        ({"onJobFailureReasons": ["PodFailurePolicy"]}, False),
        ({"onJobFailureMessagePatterns": ["backoff"]}, True),
        ({"onJobFailureMessagePatterns": ["^limit"]}, False),
        ({"onJobFailureMessagePatterns": ["("]}, False),
        ({"onJobFailureMessagePatterns": ["(", "limit$"]}, True),
        ({"onJobFailureMessagePatterns": [r"(?i)\bJOB\b"]}, True),
        ({"targetReplicatedJobs": ["w"]}, True),
        ({"targetReplicatedJobs": ["other"]}, False),
        ({"onJobFailureReasons": ["BackoffLimitExceeded"], "targetReplicatedJobs": ["other"]}, False),
    ],
)
def test_what_a_rule_matches(rule: Tree, matches: bool) -> None:
    """All parts of a rule must match; an empty part matches anything, a pattern that does not compile nothing."""
    decision = decide(view(**rules({"action": "FailJobSet", **rule})), [child(end="Failed")], restart_job=False)
    assert isinstance(decision, Fail) is matches


def test_the_first_rule_that_matches_any_job_decides() -> None:
    """Rules go before times: a rule for a later failure wins over a later rule for the first one."""
    failed = [child("js-w-0", end="Failed", at=EARLIER), child("js-d-0", role="d", end="Failed")]
    policy = rules({"action": "FailJobSet", "targetReplicatedJobs": ["d"]}, {"action": "RestartJobSet", "targetReplicatedJobs": ["w"]})
    decision = decide(view(role(), role("d"), **policy), failed, restart_job=False)
    assert decision == Fail("FailJobSetFailurePolicyAction", "applying FailJobSet failure policy action (first failed job: js-d-0)")


def test_a_job_without_a_role_matches_no_rule() -> None:
    """A Job whose role label is gone falls to the default action."""
    decision = decide(view(**rules({"action": "FailJobSet"})), [child(end="Failed", role="")], restart_job=False)
    assert isinstance(decision, Restart)


@pytest.mark.parametrize("counted, allowed", [(0, True), (2, True), (3, False)])
def test_counted_restarts_end_at_the_limit(counted: int, allowed: bool) -> None:
    """RestartJobSet restarts as long as fewer restarts counted than are allowed."""
    js = view(**rules({"action": "RestartJobSet"}), status={"restarts": 9, "restartsCountTowardsMax": counted})
    assert isinstance(decide(js, [child(end="Failed", attempt=9)], restart_job=False), Restart) is allowed


def test_free_restarts_know_no_limit() -> None:
    """RestartJobSetAndIgnoreMaxRestarts restarts beyond the limit and does not count."""
    js = view(**rules({"action": "RestartJobSetAndIgnoreMaxRestarts"}, limit=0), status={"restarts": 9})
    decision = decide(js, [child(end="Failed", attempt=9)], restart_job=False)
    assert isinstance(decision, Restart)
    assert (decision.reason, decision.counted) == ("FailurePolicy_rule0", False)


def test_single_restarts_share_the_limit() -> None:
    """With the gate, restarts of single Jobs and of the whole use up one budget."""
    entry = {"name": "w", "ready": 0, "succeeded": 0, "failed": 1, "active": 0, "suspended": 0, "jobRestartsCountTowardsMax": [1, 1]}
    status = {"restarts": 1, "restartsCountTowardsMax": 1, "replicatedJobsStatus": [entry]}
    failed = [child(end="Failed", attempt=1)]
    for action, expected in (("RestartJob", Fail), ("RestartJobSet", Fail), ("RestartJobAndIgnoreMaxRestarts", RestartJob)):
        assert isinstance(decide(view(role(replicas=2), **rules({"action": action}), status=status), failed, restart_job=True), expected)
    assert isinstance(decide(view(role(replicas=2), **rules({"action": "RestartJobSet"}), status=status), failed, restart_job=False), Restart)


def test_single_restarts_need_their_gate() -> None:
    """With the gate off a RestartJob rule stalls the JobSet instead of doing something else."""
    with pytest.raises(Stalled, match="feature gate RestartJob is disabled"):
        decide(view(**rules({"action": "RestartJob"})), [child(end="Failed")], restart_job=False)


@pytest.mark.parametrize("index", ["2", "x", "-1"])
def test_an_index_out_of_range_stalls(index: str) -> None:
    """A failed Job whose index label is none of its role's cannot be restarted alone."""
    failed = [child(end="Failed", labels={"jobset.sigs.k8s.io/job-index": index})]
    with pytest.raises(Stalled):
        decide(view(role(replicas=2), **rules({"action": "RestartJob"})), failed, restart_job=True)


def test_a_restart_in_the_status() -> None:
    """A restart counts up once however many Jobs failed, and tells of it in two events."""
    js = view(role(replicas=2), **rules({"action": "RestartJobSet"}))
    failed = [child("js-w-0", end="Failed"), child("js-w-1", end="Failed", index=1)]
    draft = StatusDraft(js, NOW)
    failure_policy.apply(decide(js, failed, restart_job=False), draft)
    assert (draft.restarts, draft.restarts_counted, draft.changed) == (1, 1, True)
    assert [event.reason for event in draft.events] == ["FailurePolicy_rule0", "RestartJobSetFailurePolicyAction"]
    assert [each["type"] for each in draft.conditions] == ["RestartingJobSet"]


def test_a_single_restart_in_the_status() -> None:
    """A single restart counts for one Job only; the lists appear with the first one, as long as the role."""
    js = view(role(replicas=3), **rules({"action": "RestartJob"}))
    failed = [job("js-w-1", end="Failed", index=1)]
    children = sort_out(js, failed, {}, restart_job=True)
    draft = StatusDraft(js, NOW)
    draft.count(count(js, children, restart_job=True))
    failure_policy.apply(decide(js, children.failed, restart_job=True), draft)
    (entry,) = draft.render()["replicatedJobsStatus"]
    assert (entry["jobRestarts"], entry["jobRestartsCountTowardsMax"]) == ([0, 1, 0], [0, 1, 0])
    assert draft.render()["restarts"] == 0
    assert [event.reason for event in draft.events] == ["RestartJobFailurePolicyAction"]
