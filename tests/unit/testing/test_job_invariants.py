"""The promises of Jobs: each is broken by some write, or some state at rest."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.api.resources import JOBS, PODS
from kubemini.api.trees import Tree, set_in
from kubemini.controllers.job.pods import PodFactory
from kubemini.store import Store
from kubemini.testing.invariants import Checker, InvariantViolation
from kubemini.testing.invariants.job import job_invariants
from kubemini.testing.invariants.job_exact import Excuses, exact_job_invariants

LABELS = {"batch.kubernetes.io/controller-uid": "u"}
EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"


def job(status: Tree | None = None, *, meta: Tree | None = None, **spec: Any) -> Tree:
    """Return a Job as it is stored."""
    template = {"metadata": {"labels": LABELS}, "spec": {"restartPolicy": "Never", "containers": [{"name": "m"}]}}
    body = {"parallelism": 2, "completions": 2, "backoffLimit": 0, "selector": {"matchLabels": LABELS}, "template": template, **spec}
    return {"metadata": {"name": "j", "namespace": "default", "uid": "u", **(meta or {})}, "spec": body, "status": status or {}}


INDEXED: Tree = {"completionMode": "Indexed"}


def pod(of: Tree, index: int | None = None, *, uid: str = "p", made: str = EARLY, phase: str = "Running", **changes: Any) -> Tree:
    """Return a pod as the controller makes it, with changes by dotted path."""
    found = PodFactory.of(of).make(index)
    found = {**found, "metadata": {**found["metadata"], "name": uid, "uid": uid, "creationTimestamp": made}, "status": {"phase": phase}}
    for path, value in changes.items():
        found = set_in(found, tuple(path.split("__")), value)
    return found


def condition(type_: str, reason: str = "R") -> Tree:
    """Return a condition that is True."""
    return {"type": type_, "status": "True", "reason": reason, "message": "", "lastTransitionTime": EARLY}


def done(**status: Any) -> Tree:
    """Return the status of a complete Job."""
    conditions = [condition("SuccessCriteriaMet"), condition("Complete")]
    return {"succeeded": 2, "startTime": EARLY, "completionTime": EARLY, "conditions": conditions, **status}


def violated(*trees: Tree, exact: bool = False, rest: bool = False) -> str:
    """Return the name of the invariant that the last of these writes breaks, or at rest the state that they lead to."""
    store = Store()
    checker = Checker(store, [*job_invariants(), *(exact_job_invariants(Excuses()) if exact else ())])

    def put(tree: Tree) -> None:
        table = store.table(JOBS.storage if "backoffLimit" in tree["spec"] else PODS.storage)
        key = f"default/{tree['metadata']['name']}"
        (table.create if table.get(key) is None else table.update)(key, tree)

    for tree in trees[: len(trees) if rest else -1]:
        put(tree)
    with pytest.raises(InvariantViolation) as caught:
        checker.at_rest() if rest else put(trees[-1])
    return caught.value.invariant


@pytest.mark.parametrize(
    "name, trees",
    [
        ("job counters", [job({"failed": 1}), job({})]),
        ("job counters", [job({"succeeded": 1}), job({})]),
        ("job counters", [job({"active": 1, "ready": 2})]),
        ("job counters", [job({"uncountedTerminatedPods": {"succeeded": ["a"], "failed": ["a"]}})]),
        ("job counters", [job(done(active=1))]),
        ("job counters", [job(done(completionTime=EARLY, startTime=LATE))]),
        ("job counters", [job(done(startTime=None))]),
        ("job conditions", [job(done(conditions=[condition("Complete")]))]),
        ("job conditions", [job({"conditions": [condition("FailureTarget", "A"), condition("Failed", "B")]})]),
        ("job conditions", [job({"conditions": [condition("FailureTarget"), condition("SuccessCriteriaMet")]})]),
        ("job conditions", [job({"conditions": [condition("FailureTarget")]}), job({})]),
        ("job indexes", [job({"completedIndexes": "0,1,2", "succeeded": 3}, completions=3, **INDEXED)]),
        ("job indexes", [job({"failedIndexes": "0,1,2"}, completions=3, **INDEXED)]),
        ("job indexes", [job({"completedIndexes": "0", "succeeded": 1, "failedIndexes": "0"}, **INDEXED)]),
        ("job indexes", [job({"completedIndexes": "0", "succeeded": 2}, **INDEXED)]),
        ("job indexes", [job({"completedIndexes": "0,1", "succeeded": 2}, **INDEXED), job({"completedIndexes": "1", "succeeded": 1}, **INDEXED)]),
        ("job creations", [job(done()), pod(job())]),
        ("job creations", [job(managedBy="a.b/c"), pod(job())]),
        ("job creations", [job({"conditions": [condition("FailureTarget")]}), pod(job())]),
        ("job creations", [job({"failed": 1}), pod(job())]),
        ("job creations", [job(), pod(job(), metadata__labels={})]),
        ("job creations", [job(), pod(job(), metadata__finalizers=[])]),
        ("job creations", [job(**INDEXED), pod(job(), metadata__uid="x")]),
        ("job creations", [job(**INDEXED), pod(job(**INDEXED), 0, spec__hostname="x")]),
        ("job creations", [job(**INDEXED), pod(job(**INDEXED), 0, metadata__labels=LABELS)]),
        ("job creations", [job(**INDEXED), pod(job(**INDEXED), 0, spec__containers=[{"name": "m"}])]),
        ("job creations", [job({"completedIndexes": "0", "succeeded": 1}, **INDEXED), pod(job(**INDEXED), 0)]),
        ("job finality", [job(done()), job(done(failed=1))]),
    ],
)
def test_commits_that_break_a_promise(name: str, trees: list[Tree]) -> None:
    """The checker names the promise that a write breaks."""
    assert violated(*trees) == name


def test_what_an_elastic_job_may_lose() -> None:
    """A completed index that a scale-down leaves out may go, and only such a one."""
    before = job({"completedIndexes": "0,3", "succeeded": 2}, completions=4, **INDEXED)
    store = Store()
    Checker(store, job_invariants())
    table = store.table(JOBS.storage)
    table.create("default/j", before)
    table.update("default/j", job({"completedIndexes": "0", "succeeded": 1}, completions=2, **INDEXED))
    assert violated(before, job({"completedIndexes": "3", "succeeded": 1}, completions=4, **INDEXED)) == "job indexes"


MANAGED = [{"manager": "m", "time": EARLY}]


@pytest.mark.parametrize(
    "name, trees",
    [
        ("job unwanted", [job(suspend=True, meta={"managedFields": MANAGED}), pod(job(), made=LATE)]),
        ("job unwanted", [job(meta={"deletionTimestamp": EARLY}), pod(job(), made=LATE)]),
        ("job crowd", [job(parallelism=1), pod(job(), uid="a"), pod(job(), uid="b")]),
        ("job ledger", [job(), pod(job(), phase="Failed"), job({"failed": 2})]),
        ("job ledger", [job(), pod(job()), job({"succeeded": 1})]),
        ("job survivors", [job(), pod(job()), job(done(succeeded=0))]),
    ],
)
def test_commits_that_break_an_exact_promise(name: str, trees: list[Tree]) -> None:
    """The same for promises that stand on what became of every pod."""
    assert violated(*trees, exact=True) == name


@pytest.mark.parametrize(
    "trees",
    [
        [job({"active": 1})],
        [job({"active": 1}), pod(job(), phase="Running"), pod(job(), uid="q", phase="Failed")],
        [job({"active": 1}, **INDEXED), pod(job(completions=9, **INDEXED), 8)],
        [job({"active": 2}, **INDEXED), pod(job(**INDEXED), 0), pod(job(**INDEXED), 0, uid="q")],
        [job({"startTime": EARLY}, suspend=True)],
        [job({"startTime": EARLY})],
    ],
)
def test_states_at_rest_that_break_a_promise(trees: list[Tree]) -> None:
    """Counts that are not true, pods that are not counted, indexes twice or out of range, and Jobs that neither run nor end."""
    assert violated(*trees, rest=True) == "settled jobs"


def test_a_pod_that_loses_its_labels() -> None:
    """At rest a pod that the Job controls is one that it selects."""
    mine = pod(job())
    assert violated(job({"active": 1}), mine, {**mine, "metadata": {**mine["metadata"], "labels": {}}}, rest=True) == "settled jobs"
