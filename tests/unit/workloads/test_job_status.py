"""What a write of a Job's status must keep, rule by rule."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.api.trees import Tree
from kubemini.server.kinds.workloads.job_status import validate_job_status

START, LATER = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"
DONE = {"startTime": START, "completionTime": LATER, "succeeded": 1}


def true(*types: str) -> list[Tree]:
    """Return conditions that are True."""
    return [{"type": each, "status": "True"} for each in types]


COMPLETE = {**DONE, "conditions": true("SuccessCriteriaMet", "Complete")}
FAILED = {"startTime": START, "failed": 1, "conditions": true("FailureTarget", "Failed")}
INDEXED = {"completionMode": "Indexed", "completions": 5, "parallelism": 2}


def problems(new: Tree, old: Tree | None = None, spec: Tree | None = None) -> list[str]:
    """Return the broken rules of a transition as texts."""
    spec = spec or {"completions": 1, "parallelism": 1}
    return [str(each) for each in validate_job_status({"spec": spec, "status": new}, {"spec": spec, "status": old or {}})]


@pytest.mark.parametrize(
    "new,old",
    [
        ({"startTime": START, "active": 1, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {}}, {}),
        (COMPLETE, {"startTime": START, "active": 1}),
        (FAILED, {"startTime": START, "active": 1}),
        ({**FAILED, "conditions": true("FailureTarget")}, {"startTime": START}),
        ({"active": 0}, {"startTime": START, "active": 2}),
    ],
)
def test_what_the_controller_writes_is_accepted(new: Tree, old: Tree) -> None:
    """Starting, completing, failing and counting down are legal; so is taking back startTime while suspended."""
    spec = {"completions": 1, "parallelism": 1, "suspend": "startTime" not in new}
    assert problems(new, old, spec) == []


@pytest.mark.parametrize(
    "new,text",
    [
        ({"active": -1}, "status.active: Invalid value: -1: must be greater than or equal to 0"),
        ({"terminating": -1}, "status.terminating: Invalid value: -1: must be greater than or equal to 0"),
        ({"active": 1, "ready": 2}, "status.ready: Invalid value: 2: cannot set more ready pods than active"),
        (
            {"uncountedTerminatedPods": {"succeeded": ["a"], "failed": ["a", ""]}},
            'status.uncountedTerminatedPods.failed[0]: Duplicate value: "a"',
        ),
        (
            {"completedIndexes": "0"},
            'status.completedIndexes: Invalid value: "0": cannot set non-empty completedIndexes when non-indexed completion mode',
        ),
        ({"failedIndexes": ""}, 'status.failedIndexes: Invalid value: "": cannot set non-null failedIndexes when backoffLimitPerIndex is null'),
        (
            {"completionTime": LATER},
            f'status.completionTime: Invalid value: "{LATER}": cannot set completionTime when there is no Complete=True condition',
        ),
        (
            {**COMPLETE, "completionTime": None},
            "status.completionTime: Required value: completionTime is required for Complete jobs",
        ),
        ({**COMPLETE, "startTime": None}, "status.startTime: Required value: startTime is required for finished job"),
        ({**COMPLETE, "active": 1}, "status.active: Invalid value: 1: active>0 is invalid for finished job"),
        ({**COMPLETE, "terminating": 1}, "status.terminating: Invalid value: 1: terminating>0 is invalid for finished job"),
        (
            {**COMPLETE, "uncountedTerminatedPods": {"failed": ["u"]}},
            'status.uncountedTerminatedPods: Invalid value: {"Succeeded":null,"Failed":["u"]}: must be empty for finished job',
        ),
        (
            {**COMPLETE, "startTime": LATER, "completionTime": START},
            f'status.completionTime: Invalid value: "{START}": must be equal to or after `startTime`',
        ),
        (
            {**DONE, "conditions": true("Complete")},
            "status.conditions: Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
        ),
        (
            {"startTime": START, "conditions": true("Failed")},
            "status.conditions: Invalid value: cannot set Failed=True condition without the FailureTarget=true condition",
        ),
        (
            {**DONE, "conditions": true("SuccessCriteriaMet", "Complete", "FailureTarget", "Failed")},
            "status.conditions: Invalid value: cannot set Complete=True and Failed=true conditions",
        ),
        (
            {"conditions": true("SuccessCriteriaMet", "FailureTarget")},
            "status.conditions: Invalid value: cannot set SuccessCriteriaMet=True and FailureTarget=true conditions",
        ),
    ],
)
def test_contradictions_are_refused(new: Tree, text: str) -> None:
    """A status that contradicts itself is refused with the rule that it breaks."""
    assert text in problems(new)


@pytest.mark.parametrize(
    "new,old,text",
    [
        ({**COMPLETE, "conditions": []}, COMPLETE, "status.conditions: Invalid value: cannot disable the terminal Complete=True condition"),
        (
            {**FAILED, "conditions": true("Failed")},
            FAILED,
            "status.conditions: Invalid value: cannot disable the terminal FailureTarget=True condition",
        ),
        ({}, {"conditions": true("SuccessCriteriaMet")}, "status.conditions: Invalid value: cannot disable the SuccessCriteriaMet=True condition"),
        ({"failed": 1}, {"failed": 2}, "status.failed: Invalid value: 1: cannot decrease the failed counter"),
        ({"succeeded": 1}, {"succeeded": 2}, "status.succeeded: Invalid value: 1: cannot decrease the succeeded counter"),
        (
            {**COMPLETE, "completionTime": "2026-01-01T02:00:00Z"},
            COMPLETE,
            'status.completionTime: Invalid value: "2026-01-01T02:00:00Z": field is immutable',
        ),
        (
            {"startTime": LATER},
            {"startTime": START},
            f'status.startTime: Invalid value: "{LATER}": field is immutable for unsuspended job once set',
        ),
    ],
)
def test_what_was_reached_stays(new: Tree, old: Tree, text: str) -> None:
    """Terminal conditions, counters and times do not go back."""
    assert text in problems(new, old)


def test_success_criteria_go_with_two_refusals() -> None:
    """Who takes SuccessCriteriaMet from a Complete Job is told that it stays, and that Complete needs it; with failedIndexes the same is asked of Failed."""
    assert problems({**COMPLETE, "conditions": true("Complete")}, COMPLETE) == [
        "status.conditions: Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
        "status.conditions: Invalid value: cannot disable the SuccessCriteriaMet=True condition",
    ]
    old = {"startTime": START, "conditions": true("Failed"), "failedIndexes": "0"}
    found = problems({**old, "failedIndexes": "0,1"}, old, {**INDEXED, "backoffLimitPerIndex": 0})
    assert found == ["status.conditions: Invalid value: cannot set Failed=True condition without the FailureTarget=true condition"]


@pytest.mark.parametrize("suspend,completions,refused", [(True, 0, False), (False, 0, True), (True, 1, True), (True, None, True)])
def test_a_suspended_job_without_completions_ends_without_a_start(suspend: bool, completions: int | None, refused: bool) -> None:
    """An end needs a startTime, but for a Job that has nothing to run and is suspended."""
    found = problems({**COMPLETE, "startTime": None}, None, {"completions": completions, "parallelism": 1, "suspend": suspend})
    assert found == (["status.startTime: Required value: startTime is required for finished job"] if refused else [])


def test_an_elastic_job_may_lose_successes() -> None:
    """`succeeded` may fall with the indexes of an Indexed Job whose completions equal its parallelism."""
    elastic = {"completionMode": "Indexed", "completions": 2, "parallelism": 2}
    assert problems({"succeeded": 1}, {"succeeded": 2}, elastic) == []
    assert problems({"succeeded": 1}, {"succeeded": 2}, INDEXED) != []


def test_resuming_sets_a_new_start() -> None:
    """The write that turns Suspended from True to False may move startTime."""
    old = {"startTime": START, "conditions": [{"type": "Suspended", "status": "True"}]}
    new = {"startTime": LATER, "conditions": [{"type": "Suspended", "status": "False"}]}
    assert problems(new, old) == []


@pytest.mark.parametrize(
    "status,text",
    [
        ({"completedIndexes": "0,5"}, 'status.completedIndexes: Invalid value: "0,5": error parsing completedIndexes: too large index: "5"'),
        (
            {"completedIndexes": "0-2", "failedIndexes": "2,4"},
            'status.failedIndexes: Invalid value: "2,4": failedIndexes and completedIndexes overlap at index: 2',
        ),
    ],
)
def test_index_lists_are_checked(status: Tree, text: str) -> None:
    """Index lists stay below completions, and no index has both completed and failed."""
    assert text in problems(status, {}, {**INDEXED, "backoffLimitPerIndex": 1})


def test_rules_look_at_what_changed() -> None:
    """A write that leaves an index list alone passes although the list no longer fits the spec."""
    stale: dict[str, Any] = {"completedIndexes": "0-4", "succeeded": 5}
    shrunk = {"completionMode": "Indexed", "completions": 2, "parallelism": 2}
    assert problems({**stale, "active": 1}, stale, shrunk) == []
    assert problems({**stale, "completedIndexes": "0-3"}, stale, shrunk) != []
