"""Revisions: hashes as recorded on a real control plane, order, equality, what may go."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubemini.api.trees import Tree
from kubemini.controllers.revisions.hashing import revision_hash
from kubemini.controllers.revisions.history import alike, historic, in_order, next_number, revision_name, same
from tests.conftest import CONFORMANCE


def recorded() -> Iterator[Tree]:
    """Yield the recorded revisions of StatefulSets and LeaderWorkerSets whose data is whole."""
    for file in sorted(Path(CONFORMANCE, "golden").glob("*/*.json")):
        for each in json.loads(file.read_text())["objects"]:
            if each["kind"] != "ControllerRevision":
                continue
            owner = (each["metadata"].get("ownerReferences") or [{"kind": ""}])[0]["kind"]
            text = json.dumps(each["data"])
            if owner in ("StatefulSet", "LeaderWorkerSet") and "<" not in text and "*" not in text:
                yield {**each, "owner": owner}


@pytest.mark.skipif(not CONFORMANCE.exists(), reason="recorded end states are not at hand")
def test_hashes_are_those_of_the_real_controllers() -> None:
    """Every recorded revision is named by the hash that we make of its data."""
    found = list(recorded())
    assert len(found) > 50
    for each in found:
        hashed = revision_hash(each["data"], 0 if each["owner"] == "StatefulSet" else None)
        assert f"-{hashed}" in each["metadata"]["uid"]


def revision(name: str, number: int, data: int = 0, created: str = "1970-01-01T00:00:00Z") -> Tree:
    """Return a revision."""
    return {"metadata": {"name": name, "creationTimestamp": created}, "revision": number, "data": {"spec": data}}


def test_order_is_total() -> None:
    """By number, then by age, then by name; the next number follows the newest."""
    found = in_order([revision("c", 2), revision("b", 1, created="1970-01-01T00:00:01Z"), revision("z", 1), revision("a", 1)])
    assert [each["metadata"]["name"] for each in found] == ["a", "z", "b", "c"]
    assert next_number(found) == 3
    assert next_number([]) == 1


def test_the_newest_dead_revisions_are_kept() -> None:
    """Revisions that nothing names go, oldest first, beyond the limit; none with a negative limit."""
    found = [revision(name, number) for number, name in enumerate("abcd", 1)]
    assert [each["metadata"]["name"] for each in historic(found, {"d"}, 1)] == ["a", "b"]
    assert [each["metadata"]["name"] for each in historic(found, {"a"}, 0)] == ["b", "c", "d"]
    assert historic(found, {"d"}, -1) == []


def test_equality() -> None:
    """Equal data is equal, unless two numeric hash labels differ; null spelled out means the same as nothing."""
    one, other = revision("a", 1), revision("b", 2)
    assert same(one, other)
    numeric = [
        {**each, "metadata": {**each["metadata"], "labels": {"controller.kubernetes.io/hash": text}}} for each, text in ((one, "5"), (other, "6"))
    ]
    assert not same(*numeric)
    spelled = {**one, "data": {"spec": {"a": 1, "creationTimestamp": None}}}
    plain = {**one, "data": {"spec": {"a": 1}}}
    assert not same(spelled, plain)
    assert alike(spelled, plain)


def test_long_names_are_cut() -> None:
    """The owner's part of a name has at most 223 characters."""
    assert revision_name("x" * 300, "h") == "x" * 223 + "-h"
