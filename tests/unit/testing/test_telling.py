"""Commits in one line, with what they changed."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.store import Change, Record
from kubemini.testing.telling import told


def record(obj: dict[str, Any] | None) -> Record | None:
    """Return a record of an object."""
    return Record("default/a", obj, 7, 7) if obj is not None else None


@pytest.mark.parametrize(
    "old, new, line",
    [
        (None, {"spec": {}}, "create pods default/a"),
        ({"spec": {}}, None, "delete pods default/a"),
        ({"metadata": {"resourceVersion": "1"}}, {"metadata": {"resourceVersion": "2"}}, "update pods default/a"),
        ({"status": {"phase": "Pending"}}, {"status": {"phase": "Running"}}, "update pods default/a  status.phase: Pending → Running"),
        ({"spec": {"suspend": True}}, {"spec": {"replicas": 2}}, "update pods default/a  -spec.suspend, spec.replicas: 2"),
        (
            {"status": {}},
            {"status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "now"}]}},
            "update pods default/a  status.conditions[Ready]=True",
        ),
        (
            {"status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "now"}]}},
            {"status": {"conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "later"}]}},
            "update pods default/a  status.conditions[Ready].status: True → False",
        ),
        ({"a": {}}, {"a": {str(n): n for n in range(6)}}, "update pods default/a  a.0: 0, a.1: 1, a.2: 2, a.3: 3, and 2 more"),
        ({"note": "n" * 60}, {"note": "m"}, f"update pods default/a  note: {'n' * 47}… → m"),
    ],
)
def test_a_commit_in_a_line(old: dict[str, Any] | None, new: dict[str, Any] | None, line: str) -> None:
    """Fields that changed stand by their path; conditions and containers by their name."""
    assert told("pods", Change(7, "default/a", record(old), record(new))) == line


def test_an_event() -> None:
    """Events are told as kubectl tells them."""
    event = {"involvedObject": {"kind": "Job", "name": "w"}, "reason": "Created", "message": "Created pod: w-1"}
    assert told("events", Change(7, "default/a", None, record(event))) == "event  Job/w Created: Created pod: w-1"
