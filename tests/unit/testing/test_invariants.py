"""The checker and the invariants: they see every commit, and each of them can fail."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from kubemini.api.resources import JOB_SETS, JOBS, NODES, PERSISTENT_VOLUME_CLAIMS, PODS, SERVICES, Resource
from kubemini.api.trees import Tree, set_in
from kubemini.controllers.jobset.blueprint import Blueprint
from kubemini.controllers.jobset.view import JobSetView
from kubemini.store import Change, Store
from kubemini.testing.invariants import Checker, InvariantViolation, View
from kubemini.testing.invariants.jobset import jobset_invariants
from tests.unit.jobset.samples import jobset, role

DOMAIN = "jobset.sigs.k8s.io/"


class World:
    """A store under the checker, written by hand."""

    def __init__(self, checked: bool = True) -> None:
        self.store = Store()
        self.checker = Checker(self.store, jobset_invariants()) if checked else None

    def put(self, resource: Resource, obj: Tree) -> Tree:
        """Create or replace an object."""
        meta = obj["metadata"]
        key = f"{meta['namespace']}/{meta['name']}" if "namespace" in meta else meta["name"]
        table = self.store.table(resource.storage)
        return (table.create if table.get(key) is None else table.update)(key, obj).obj

    def at_rest(self) -> None:
        """Check what holds at rest."""
        assert self.checker is not None
        self.checker.at_rest()


def child(js: Tree, index: int = 0, *, of: str = "w", status: Tree | None = None, **changes: Any) -> Tree:
    """Return a Job as the controller would make it, with changes by dotted path."""
    view = JobSetView(js)
    found = view.role(of)
    assert found is not None
    job = Blueprint.of(view, found).make(index, attempt=view.restarts, suspended=view.suspended)
    job = {**job, "metadata": {**job["metadata"], "uid": f"uid-{job['metadata']['name']}-{view.restarts}"}, "status": status or {}}
    for path, value in changes.items():
        job = set_in(job, tuple(path.split("__")), value)
    return job


def ended(type_: str = "Completed", **status: Any) -> Tree:
    """Return the status of a JobSet that has ended."""
    return {"restarts": 0, "terminalState": type_, "conditions": [condition(type_)], **status}


def condition(type_: str, status: str = "True") -> Tree:
    """Return a condition."""
    return {"type": type_, "status": status, "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}


def violation(*writes: tuple[Resource, Tree], rest: bool = False) -> InvariantViolation:
    """Return what the last of these writes violates, or the state that they lead to."""
    world = World()
    for resource, obj in writes[: len(writes) if rest else -1]:
        world.put(resource, obj)
    with pytest.raises(InvariantViolation) as caught:
        world.at_rest() if rest else world.put(*writes[-1])
    return caught.value


# ----------------------------------------------------------------------------------------------- the checker


class Odd:
    """An invariant of the test: no object is called odd; at rest there is at least one."""

    name = "odd"

    def __init__(self) -> None:
        self.seen: list[int] = []

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Look at a name."""
        self.seen.append(change.revision)
        return ["it is odd"] if change.key == "odd" else []

    def at_rest(self, view: View) -> Iterable[str]:
        """Count the nodes."""
        return [] if view.list(NODES) else ["there is nothing"]


def test_the_checker_sees_every_commit_once() -> None:
    """What was there before counts as made; from then on each commit is shown to each invariant, deletions too."""
    store, odd = Store(), Odd()
    nodes = store.table("nodes")
    nodes.create("a", {"metadata": {"name": "a"}})
    checker = Checker(store, [odd])
    nodes.update("a", {"metadata": {"name": "a", "labels": {}}})
    nodes.delete("a")
    assert len(odd.seen) == checker.checked == 3
    checker.close()
    nodes.create("odd", {"metadata": {"name": "odd"}})
    assert checker.checked == 3


def test_a_violation_names_invariant_and_revision() -> None:
    """The write that breaks a promise raises; and so does the end, since whoever wrote may have swallowed it."""
    store = Store()
    checker = Checker(store, [Odd()])
    with pytest.raises(InvariantViolation, match=r"odd does not hold at revision \d+: it is odd") as caught:
        store.table("nodes").create("odd", {"metadata": {"name": "odd"}})
    assert caught.value.revision == store.revision
    store.table("nodes").create("even", {"metadata": {"name": "even"}})
    with pytest.raises(InvariantViolation, match="at revision"):
        checker.at_rest()


def test_what_holds_at_rest_is_asked_at_rest() -> None:
    """Promises for quiescence are checked on demand."""
    with pytest.raises(InvariantViolation, match="odd does not hold at rest: there is nothing"):
        Checker(Store(), [Odd()]).at_rest()


# ----------------------------------------------------------------------------------------------- JobSets


JS = jobset(role(replicas=2))
TWO = jobset(role("a"), role("b"))
IN_ORDER = jobset(role("a"), role("b"), startupPolicy={"startupPolicyOrder": "InOrder"})
DEPENDENT = jobset(role("a"), role("b", dependsOn=[{"name": "a", "status": "Complete"}]))
SPREAD = jobset(role("a", groupName="g"), role("b", groupName="g"))
OWNED = child(JS)["metadata"]["ownerReferences"]
SELECTS = {"clusterIP": "None", "selector": {DOMAIN + "jobset-name": "js"}}
CLAIMS = [{"templates": [{"metadata": {"name": "d"}}], "retentionPolicy": {"whenDeleted": "Retain"}}]
SERVICE = {"metadata": {"name": "js", "namespace": "default"}, "spec": {}}


def test_a_sound_life_passes() -> None:
    """What the controller does is no violation."""
    world = World()
    js = jobset(role(replicas=2), failurePolicy={"maxRestarts": 1, "restartStrategy": "BlockingRecreate"})
    world.put(JOB_SETS, js)
    world.put(SERVICES, SERVICE)
    for index in range(2):
        world.put(JOBS, child(js, index))
    world.put(JOB_SETS, {**js, "status": {"restarts": 1, "restartsCountTowardsMax": 1, "conditions": [condition("RestartingJobSet")]}})
    for index in range(2):
        world.store.table(JOBS.storage).delete(f"default/js-w-{index}")
    again = {**js, "status": {"restarts": 1, "restartsCountTowardsMax": 1}}
    for index in range(2):
        world.put(JOBS, child(again, index))
    world.at_rest()


@pytest.mark.parametrize(
    "name, writes",
    [
        ("jobset-child-names", [(JOB_SETS, JS), (JOBS, child(JS, metadata__name="js-x-0"))]),
        ("jobset-child-names", [(JOB_SETS, JS), (JOBS, child(JS, 2))]),
        ("jobset-child-names", [(JOB_SETS, jobset(managedBy="a.b/c")), (JOBS, child(jobset(managedBy="a.b/c")))]),
        ("jobset-child-labels", [(JOB_SETS, JS), (JOBS, child(JS, spec__template__metadata__labels={}))]),
        ("jobset-child-labels", [(JOB_SETS, TWO), (JOBS, child(TWO, of="a")), (JOBS, child(jobset(role("b"), role("a")), of="b"))]),
        ("jobset-attempts", [(JOB_SETS, JS), (JOBS, child({**JS, "status": {"restarts": 1}}))]),
        (
            "jobset-attempts",
            [
                (JOB_SETS, jobset(role(replicas=2), failurePolicy={"restartStrategy": "BlockingRecreate", "maxRestarts": 1})),
                (JOBS, child(JS, 0)),
                (
                    JOB_SETS,
                    jobset(
                        role(replicas=2),
                        failurePolicy={"restartStrategy": "BlockingRecreate", "maxRestarts": 1},
                        status={"restarts": 1, "restartsCountTowardsMax": 1},
                    ),
                ),
                (JOBS, child({**JS, "status": {"restarts": 1}}, 1)),
            ],
        ),
        ("jobset-start-order", [(JOB_SETS, IN_ORDER), (JOBS, child(IN_ORDER, of="a")), (JOBS, child(IN_ORDER, of="b"))]),
        ("jobset-start-order", [(JOB_SETS, DEPENDENT), (JOBS, child(DEPENDENT, of="a", status={"ready": 1})), (JOBS, child(DEPENDENT, of="b"))]),
        ("jobset-counters", [(JOB_SETS, {**JS, "status": {"restarts": 1, "restartsCountTowardsMax": 1}})]),
        ("jobset-counters", [(JOB_SETS, {**JS, "status": {"restarts": 1}}), (JOB_SETS, {**JS, "status": {"restarts": 3}})]),
        ("jobset-counters", [(JOB_SETS, {**JS, "status": {"restarts": 1}}), (JOB_SETS, {**JS, "status": {"restarts": 0}})]),
        ("jobset-counters", [(JOB_SETS, {**JS, "status": ended()}), (JOB_SETS, {**JS, "status": {**ended(), "restarts": 1}})]),
        ("jobset-counters", [(JOB_SETS, JS), (JOB_SETS, set_in(JS, ("metadata", "generation"), 2))]),
        ("jobset-conditions", [(JOB_SETS, {**JS, "status": ended(conditions=[condition("Completed"), condition("Failed")])})]),
        ("jobset-conditions", [(JOB_SETS, {**JS, "status": ended()}), (JOB_SETS, {**JS, "status": {"restarts": 0}})]),
        ("jobset-conditions", [(JOB_SETS, {**JS, "status": {"restarts": 0, "conditions": [condition("Completed")]}})]),
        (
            "jobset-conditions",
            [(JOB_SETS, {**JS, "status": {"conditions": [condition("StartupPolicyInProgress"), condition("StartupPolicyCompleted")]}})],
        ),
        ("jobset-conditions", [(JOB_SETS, {**JS, "status": {"restarts": 0, "conditions": [condition("RestartingJobSet")]}})]),
        ("jobset-role-counts", [(JOB_SETS, {**JS, "status": {"replicatedJobsStatus": [{"name": "x"}]}})]),
        (
            "jobset-role-counts",
            [
                (
                    JOB_SETS,
                    {**JS, "status": {"replicatedJobsStatus": [{"name": "w", "ready": 2, "succeeded": 1, "failed": 0, "active": 0, "suspended": 0}]}},
                )
            ],
        ),
        ("jobset-finished", [(JOB_SETS, {**JS, "status": ended()}), (JOBS, child(JS))]),
        (
            "jobset-belongings",
            [
                (JOB_SETS, JS),
                (
                    SERVICES,
                    {
                        "metadata": {**SERVICE["metadata"], "ownerReferences": child(JS)["metadata"]["ownerReferences"]},
                        "spec": {"selector": {"a": "b"}},
                    },
                ),
            ],
        ),
        (
            "jobset-belongings",
            [
                (JOB_SETS, jobset(volumeClaimPolicies=[{"templates": [{"metadata": {"name": "d"}}], "retentionPolicy": {"whenDeleted": "Delete"}}])),
                (PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": "d-js", "namespace": "default", "labels": {DOMAIN + "jobset-name": "js"}}}),
            ],
        ),
        (
            "jobset-belongings",
            [
                (JOB_SETS, JS),
                (SERVICES, {"metadata": {**SERVICE["metadata"], "ownerReferences": OWNED}, "spec": SELECTS}),
                (SERVICES, {"metadata": {**SERVICE["metadata"], "ownerReferences": OWNED}, "spec": {**SELECTS, "selector": {}}}),
            ],
        ),
        (
            "jobset-belongings",
            [
                (JOB_SETS, jobset(managedBy="a.b/c", volumeClaimPolicies=CLAIMS)),
                (PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": "d-js", "namespace": "default", "labels": {DOMAIN + "jobset-name": "js"}}}),
            ],
        ),
        ("jobset-unchanging", [(JOB_SETS, jobset(network={"subdomain": "a"})), (JOB_SETS, jobset(network={"subdomain": "b"}))]),
        ("jobset-unchanging", [(JOB_SETS, jobset()), (JOB_SETS, jobset(managedBy="a.b/c"))]),
        ("jobset-unchanging", [(JOB_SETS, jobset(role(replicas=1))), (JOB_SETS, jobset(role(replicas=2)))]),
        (
            "jobset-child-labels",
            [(JOB_SETS, SPREAD), (JOBS, child(SPREAD, of="a")), (JOBS, child(jobset(role("z", groupName="x"), role("b", groupName="g")), of="b"))],
        ),
    ],
)
def test_commits_that_break_a_promise(name: str, writes: list[tuple[Resource, Tree]]) -> None:
    """Each promise is broken by some write, and the checker names it."""
    assert violation(*writes).invariant == name


def pod(index: int, job: str, node: str = "", **spec: Any) -> Tree:
    """Return an exclusive pod that has all keys."""
    keys = dict.fromkeys(child(JS)["metadata"]["labels"], "0") | {DOMAIN + "job-key": job, DOMAIN + "jobset-uid": "other"}
    annotations = {**keys, "alpha.jobset.sigs.k8s.io/exclusive-topology": "rack", "batch.kubernetes.io/job-completion-index": str(index)}
    meta = {"name": f"{job}-{index}", "namespace": "default", "labels": keys, "annotations": annotations}
    return {"metadata": meta, "spec": {"nodeName": node, **spec}, "status": {"phase": "Running"}}


def node(name: str, rack: str) -> tuple[Resource, Tree]:
    """Return a node in a rack."""
    return NODES, {"metadata": {"name": name, "labels": {"rack": rack}}}


def test_a_follower_without_a_domain() -> None:
    """A follower's node selector names a domain, never nothing."""
    assert violation((PODS, pod(1, "k"))).invariant == "jobset-placement"
    assert violation((PODS, pod(1, "k", nodeSelector={"rack": ""}))).invariant == "jobset-placement"


@pytest.mark.parametrize(
    "name, writes",
    [
        ("jobset-finished", [(JOB_SETS, JS), (JOBS, child(JS)), (JOB_SETS, {**JS, "status": ended()})]),
        ("jobset-settled", [(JOB_SETS, JS), (SERVICES, SERVICE), (JOBS, child(JS))]),
        ("jobset-settled", [(JOB_SETS, jobset(suspend=True)), (SERVICES, SERVICE), (JOBS, child(jobset(suspend=True)))]),
        ("jobset-settled", [(JOB_SETS, jobset()), (SERVICES, SERVICE), (JOBS, child(jobset(suspend=True)))]),
        ("jobset-settled", [(JOB_SETS, jobset()), (SERVICES, SERVICE), (JOBS, child(jobset())), (JOB_SETS, jobset(status={"restarts": 1}))]),
        ("jobset-conditions", [(JOB_SETS, jobset(suspend=True, status={"restarts": 1, "conditions": [condition("RestartingJobSet")]}))]),
        ("jobset-belongings", [(JOB_SETS, jobset()), (JOBS, child(jobset()))]),
        ("jobset-belongings", [(JOB_SETS, jobset(managedBy="a.b/c", status={"restarts": 0}))]),
        ("jobset-placement", [node("n-0", "r0"), (PODS, pod(0, "k", "n-0")), (PODS, pod(0, "l", "n-0"))]),
        (
            "jobset-placement",
            [node("n-0", "r0"), node("n-1", "r1"), (PODS, pod(0, "k", "n-0")), (PODS, pod(1, "k", "n-1", nodeSelector={"rack": "r0"}))],
        ),
    ],
)
def test_ends_that_break_a_promise(name: str, writes: list[tuple[Resource, Tree]]) -> None:
    """Each promise for rest is broken by some state, and the checker names it."""
    assert violation(*writes, rest=True).invariant == name
