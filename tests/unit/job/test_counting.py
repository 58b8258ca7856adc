"""Counting a Job's pods: what is remembered from pass to pass changes nothing, and bounds what a pass costs."""

from random import Random
from typing import Any

import pytest

from kubemini.api.trees import Tree
from kubemini.controllers.job import counting
from kubemini.controllers.job.counting import Counts, Look, Looks, count
from kubemini.controllers.job.managing import plan
from kubemini.controllers.job.pods import FAILURE_COUNT, FINALIZER, INDEX, counter, index_of
from kubemini.controllers.job.view import JobView


def job(completions: int) -> JobView:
    """Return an Indexed Job."""
    spec: Tree = {"completionMode": "Indexed", "completions": completions, "parallelism": completions, "template": {"spec": {}}}
    return JobView({"metadata": {"name": "j", "namespace": "default", "uid": "job"}, "spec": spec})


def pod(uid: str, index: int, phase: str = "Pending", *, ready: bool = False, deleting: bool = False, tracked: bool = True) -> Tree:
    """Return a pod."""
    meta: Tree = {"name": uid, "uid": uid, "annotations": {INDEX: str(index)}, "creationTimestamp": "2026-01-01T00:00:00Z"}
    if deleting:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    if tracked:
        meta["finalizers"] = [FINALIZER]
    return {
        "metadata": meta,
        "spec": {},
        "status": {"phase": phase, "conditions": [{"type": "Ready", "status": str(ready), "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
    }


def shown(counts: Counts) -> dict[str, Any]:
    """Return counts with uids in place of pods."""
    return {
        name: [each["metadata"]["uid"] if isinstance(each, dict) else each for each in value]
        if isinstance(value := getattr(counts, name), list)
        else value
        for name in Counts.__slots__
    }


@pytest.mark.parametrize("seed", range(20))
def test_what_is_remembered_changes_no_count(seed: int) -> None:
    """However pods come, change and go, a pass that remembers the last one counts as one that looks at everything."""
    random = Random(seed)
    view, pods, looks = job(8), dict[str, Tree](), Looks()
    for step in range(60):
        uid = f"u{random.randrange(12)}"
        if random.random() < 0.2:
            pods.pop(uid, None)
        else:
            phase = random.choice(["Pending", "Running", "Succeeded", "Failed"])
            pods[uid] = pod(
                uid, random.randrange(10), phase, ready=random.random() < 0.5, deleting=random.random() < 0.2, tracked=random.random() < 0.8
            )
        removing: dict[str, None] = {f"u{step % 12}": None}
        assert shown(count(view, list(pods.values()), removing, looks)) == shown(count(view, list(pods.values()), removing))


def test_a_pass_looks_only_at_pods_that_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a first pass over 2,000 pods, a pass with three changed pods looks at three."""
    seen: list[str] = []

    def look(tree: Tree, *values: Any) -> Look:
        seen.append(tree["metadata"]["uid"])
        return Look(tree, *values)

    monkeypatch.setattr(counting, "Look", look)
    pods = [pod(f"u{number}", number) for number in range(2000)]
    view, looks = job(2000), Looks()
    count(view, list(pods), {}, looks)
    assert len(seen) == 2000
    for number in (5, 77, 1999):
        pods[number] = pod(f"u{number}", number, "Running", ready=True)
    seen.clear()
    assert count(view, pods, {}, looks).ready == 3
    assert sorted(seen) == ["u1999", "u5", "u77"]


def test_memory_of_pods_that_are_gone_is_bounded() -> None:
    """A Job that makes pod after pod does not remember them all."""
    view, looks = job(10), Looks()
    for generation in range(200):
        count(view, [pod(f"u{generation}-{number}", number) for number in range(10)], {}, looks)
    assert len(looks) < 200


def test_pods_of_one_index_are_found_out() -> None:
    """Of two active pods of one index the less advanced one goes."""
    pods = [pod("a", 0), pod("b", 0, "Running", ready=True), pod("c", 1)]
    counts = count(job(2), pods, {})
    found = plan(job(2), counts, succeeded=0, completed=[], failed_indexes=None, ignored=(), wait=0.0, now=0.0)
    assert [each["metadata"]["uid"] for each in found.delete] == ["a"]


@pytest.mark.parametrize("text, index", [("3", 3), ("²", None), ("１", None), ("x", None), ("-1", None), ("", None)])
def test_indexes_are_digits(text: str, index: int | None) -> None:
    """An annotation that is no row of digits is no index and counts nothing, whatever else calls itself a digit."""
    annotated: Tree = {"metadata": {"annotations": {INDEX: text, FAILURE_COUNT: text}}}
    assert (index_of(annotated), counter(annotated, FAILURE_COUNT)) == (index, index or 0)
