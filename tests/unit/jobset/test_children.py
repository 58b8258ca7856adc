"""Sorting child Jobs into attempts and outcomes, and what the counts say."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.api.trees import Tree
from kubemini.controllers.jobset.children import Child, Children, count, matters, sort_out
from kubemini.controllers.jobset.errors import Stalled
from tests.unit.jobset.samples import job, role, view

SINGLE = "jobset.sigs.k8s.io/job-restart-attempt"


def sorted_out(jobs: list[Tree], *, restart_job: bool = False, **more: Any) -> Children:
    """Sort the Jobs of a JobSet with one role of three."""
    return sort_out(view(role(replicas=3), **more), jobs, {}, restart_job=restart_job)


def test_buckets() -> None:
    """Jobs are previous, finished one way or the other, or active; one that is about to finish or being deleted is active."""
    deleting = job("js-w-3", attempt=1)
    deleting["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    about_to_fail = job("js-w-4", attempt=1, end="FailureTarget")
    found = sorted_out(
        [job("js-w-0"), job("js-w-1", attempt=1, end="Complete"), job("js-w-2", attempt=1, end="Failed"), deleting, about_to_fail],
        status={"restarts": 1},
    )
    assert [each.name for each in found.previous] == ["js-w-0"]
    assert [each.name for each in found.successful] == ["js-w-1"]
    assert [each.name for each in found.failed] == ["js-w-2"]
    assert [each.name for each in found.active] == ["js-w-3", "js-w-4"]
    assert sorted(found.by_name) == [f"js-w-{index}" for index in range(5)]
    assert found.newest == 1


@pytest.mark.parametrize("attempt", ["x", None, "", "1_0", "²", " 1"])
def test_an_unreadable_attempt_stalls(attempt: str | None) -> None:
    """A Job whose attempt label is gone or no number stalls its JobSet."""
    with pytest.raises(Stalled):
        sorted_out([job(labels={"jobset.sigs.k8s.io/restart-attempt": attempt})])


def test_single_restarts_make_a_job_previous() -> None:
    """With the gate a Job is previous once its own restarts have gone past it; a Job made before the gate is current."""
    status = {"replicatedJobsStatus": [{"name": "w", "jobRestarts": [1, 1, 0]}]}
    jobs = [
        job("js-w-0", index=0, labels={SINGLE: "0"}),
        job("js-w-1", index=1, labels={SINGLE: "1"}),
        job("js-w-2", index=2, labels={SINGLE: "0"}),
        job("js-w-0b", index=0),
    ]
    found = sorted_out(jobs, restart_job=True, status=status)
    assert [each.name for each in found.previous] == ["js-w-0"]
    assert [each.name for each in sorted_out(jobs, status=status).previous] == []


@pytest.mark.parametrize("labels", [{"jobset.sigs.k8s.io/job-index": "3", SINGLE: "0"}, {"jobset.sigs.k8s.io/replicatedjob-name": None}])
def test_single_restarts_need_sound_labels(labels: Tree) -> None:
    """With the gate an index out of range, or a missing role, stalls."""
    with pytest.raises(Stalled):
        sorted_out([job(labels=labels)], restart_job=True)


def test_a_revision_is_read_once() -> None:
    """What a pass asked of a Job is used again by the next one as long as the Job is the same revision."""
    tree = job()
    first = sorted_out([tree])
    again = sort_out(view(role(replicas=3)), [tree], first.by_name, restart_job=False)
    assert again.by_name["js-w-0"] is first.by_name["js-w-0"]
    other = sort_out(view(role(replicas=3)), [job()], first.by_name, restart_job=False)
    assert other.by_name["js-w-0"] is not first.by_name["js-w-0"]


@pytest.mark.parametrize(
    "spec, status, ready",
    [
        ({"parallelism": 2, "completions": 4}, {"ready": 1}, False),
        ({"parallelism": 2, "completions": 4}, {"ready": 1, "succeeded": 1}, True),
        ({"parallelism": 4, "completions": 2}, {"ready": 2}, True),
        ({"parallelism": 2}, {"ready": 2}, True),
    ],
)
def test_ready_is_the_whole_job(spec: Tree, status: dict[str, Any], ready: bool) -> None:
    """A Job is ready when as many of its pods are ready or done as run at a time."""
    tree = job(**status)
    assert Child({**tree, "spec": {"template": {}, **spec}}).ready is ready


def test_counts() -> None:
    """Every role has its counts; previous Jobs and Jobs of unknown roles count nowhere."""
    js = view(role("a", 2), role("b"), status={"restarts": 1})
    jobs = [
        job("js-a-0", role="a", attempt=1, ready=1, active=1),
        job("js-a-1", role="a", attempt=1, end="Complete"),
        job("js-b-0", role="b", end="Failed"),
        job("js-x-0", role="x", attempt=1, end="Failed"),
        job("js-y-0", role="", attempt=1, ready=1),
    ]
    found = count(js, sort_out(js, jobs, {}, restart_job=False), restart_job=False)
    assert {name: (each.ready, each.succeeded, each.failed, each.active, each.suspended) for name, each in found.items()} == {
        "a": (1, 1, 0, 1, 0),
        "b": (0, 0, 0, 0, 0),
    }


def test_suspended_jobs_are_counted() -> None:
    """A suspended active Job is counted as such."""
    js = view()
    assert count(js, sort_out(js, [job(suspend=True)], {}, restart_job=False), restart_job=False)["w"].suspended == 1


@pytest.mark.parametrize(
    "changed, expected",
    [
        (job(uncountedTerminatedPods={"failed": ["u"]}), False),
        (job(ready=1), True),
        (job(active=1), True),
        (job(end="Complete"), True),
        (job(attempt=1), True),
        (job(attempt="x"), True),
        (job("js-w-1"), True),
    ],
)
def test_which_changes_matter(changed: Tree, expected: bool) -> None:
    """A change of a Job wakes its JobSet only where a pass would read it."""
    assert matters(job(), changed) is expected
