"""Policies of Jobs as pure functions: when some indexes are enough, when a pod ended, what its annotations count."""

from __future__ import annotations

import pytest

from kubemini.api.trees import Tree
from kubemini.controllers.job import success_policy
from kubemini.controllers.job.pods import FAILURE_COUNT, counter, finished_at
from kubemini.runtime.env import from_stamp


@pytest.mark.parametrize(
    "rule, completed, met",
    [
        ({"succeededIndexes": "0,2"}, {0}, False),
        ({"succeededIndexes": "0,2"}, {0, 2}, True),
        ({"succeededIndexes": "0-2", "succeededCount": 2}, {0, 2}, True),
        ({"succeededIndexes": "0-2", "succeededCount": 2}, {0, 3, 4}, False),
        ({"succeededIndexes": "0", "succeededCount": 0}, {1}, True),
        ({"succeededIndexes": "0", "succeededCount": 0}, set(), False),
        ({"succeededIndexes": "", "succeededCount": 0}, {1}, False),
        ({"succeededCount": 0}, {1}, True),
        ({"succeededCount": 0}, set(), False),
    ],
)
def test_when_some_indexes_are_enough(rule: Tree, completed: set[int], met: bool) -> None:
    """A rule asks for all of its indexes or so many of them; one that asks for none is met by the first success, of whatever index."""
    never: Tree = {"succeededIndexes": "9"}
    assert success_policy.met({"rules": [never, rule]}, completed) == ("Matched rules at index 1" if met else "")


def container(name: str, end: str | None) -> Tree:
    """Return the status of a container that ended at a minute, or runs."""
    return {"name": name, "state": {"terminated": {"finishedAt": f"2026-01-01T00:{end}:00Z"}} if end else {"running": {}}}


@pytest.mark.parametrize(
    "main, sidecar, minute",
    [("10", "12", "12"), ("12", "10", "12"), ("10", None, "20"), (None, "12", "12"), (None, None, "20")],
)
def test_sidecars_tell_when_a_pod_ended(main: str | None, sidecar: str | None, minute: str) -> None:
    """The back-off counts from the end of the last container, sidecars among them; other init containers tell nothing. Else from when the pod was no longer ready."""
    spec = {"initContainers": [{"name": "first"}, {"name": "side", "restartPolicy": "Always"}], "containers": [{"name": "m"}]}
    status = {
        "initContainerStatuses": [container("first", "30"), container("side", sidecar)],
        "containerStatuses": [container("m", main)],
        "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:20:00Z"}],
    }
    meta = {"creationTimestamp": "2026-01-01T00:00:00Z"}
    assert finished_at({"metadata": meta, "spec": spec, "status": status}) == from_stamp(f"2026-01-01T00:{minute}:00Z")


@pytest.mark.parametrize("text, number", [("7", 7), ("2147483647", 2147483647), ("2147483648", 0), ("-1", 0), ("many", 0)])
def test_counts_that_cannot_be_are_none(text: str, number: int) -> None:
    """A counting annotation that somebody spoiled counts nothing."""
    assert counter({"metadata": {"annotations": {FAILURE_COUNT: text}}}, FAILURE_COUNT) == number
