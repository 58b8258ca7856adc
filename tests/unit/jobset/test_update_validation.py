"""Refusals of updates: what may change while suspended, and with elasticity."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.api.trees import Tree, set_in
from kubemini.controllers.jobset.update_validation import problems_of
from kubemini.runtime.gates import FeatureGates
from tests.unit.jobset.samples import NOW, jobset, role


def texts(new: Tree, old: Tree, **gates: bool) -> list[str]:
    """Return what is wrong with an update, without the values."""
    found = [str(each) for each in problems_of(new, old, FeatureGates(gates))]
    return [f"{text.partition(':')[0]}: {text.rpartition(': ')[2]}" for text in found]


def with_pod(js: Tree, *path: str, value: Any) -> Tree:
    """Return a JobSet with something changed in its first pod template."""
    first, *rest = js["spec"]["replicatedJobs"]
    changed = set_in(first, ("template", "spec", "template", *path), value)
    return {**js, "spec": {**js["spec"], "replicatedJobs": [changed, *rest]}}


def suspended(js: Tree, on: bool) -> Tree:
    """Return a JobSet with suspend set."""
    return {**js, "spec": {**js["spec"], "suspend": on}}


FROZEN = ["spec.replicatedJobs: field is immutable"]
OPEN = [
    (("metadata", "labels"), {"a": "b"}),
    (("metadata", "annotations"), {"a": "b"}),
    (("spec", "nodeSelector"), {"a": "b"}),
    (("spec", "tolerations"), [{"key": "a"}]),
    (("spec", "schedulingGates"), [{"name": "a"}]),
]


def test_the_same_again_passes() -> None:
    """A client that sends back what it read, or what it once created, is not refused."""
    old = jobset(role(meta={}, pod={"nodeSelector": {}}))
    assert texts(jobset(role(meta={}, pod={"nodeSelector": {}})), old) == []
    assert texts(jobset(role(meta={"labels": None})), old) == []


@pytest.mark.parametrize("on", [False, True])
@pytest.mark.parametrize("template", [{}, {"spec": {}}, {"spec": {"template": {}}}])
def test_a_template_that_is_taken_away_is_a_change(template: Tree, on: bool) -> None:
    """An update that leaves the Job spec or the pod template out is refused like any other change of it, suspended or not."""
    old = suspended(jobset(role()), on)
    (before,) = old["spec"]["replicatedJobs"]
    new = {**old, "spec": {**old["spec"], "replicatedJobs": [{**before, "template": template}]}}
    assert texts(new, old) == texts(new, old, ElasticJobSet=True) == FROZEN


def test_quantities_are_compared_by_value() -> None:
    """The same amount written otherwise is no change."""
    small = {"containers": [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}]}
    large = {"containers": [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "1000m"}}}]}
    assert texts(jobset(role(pod=large)), jobset(role(pod=small))) == []


@pytest.mark.parametrize("path, value", OPEN)
@pytest.mark.parametrize("before, after, allowed", [(False, False, False), (True, True, True), (True, False, True), (False, True, True)])
def test_scheduling_fields_are_open_while_suspended(path: tuple[str, ...], value: Any, before: bool, after: bool, allowed: bool) -> None:
    """What a queue sets may change when the JobSet is suspended before the write or after it, and then only."""
    old = suspended(jobset(), before)
    assert texts(suspended(with_pod(old, *path, value=value), after), old) == ([] if allowed else FROZEN)


@pytest.mark.parametrize("path, value", OPEN)
def test_taking_them_away_is_open_too(path: tuple[str, ...], value: Any) -> None:
    """On eviction a queue restores the template in the write that suspends."""
    old = with_pod(jobset(), *path, value=value)
    assert texts(suspended(jobset(), True), old) == []


@pytest.mark.parametrize(
    "new",
    [
        with_pod(jobset(), "spec", "containers", value=[{"name": "main", "image": "other"}]),
        with_pod(jobset(), "spec", "affinity", value={"nodeAffinity": {}}),
        with_pod(jobset(), "spec", "priorityClassName", value="high"),
        jobset(role(replicas=2)),
        jobset(role(parallelism=2)),
        jobset(role(), role("b")),
        jobset(role("b")),
        jobset(role(groupName="g")),
    ],
)
def test_the_rest_is_frozen_even_then(new: Tree) -> None:
    """Containers, sizes, roles and their order never change."""
    assert texts(suspended(new, True), suspended(jobset(), True)) == FROZEN


def test_the_order_of_roles_is_frozen() -> None:
    """Roles are matched by name for what is open, and compared in order."""
    assert texts(suspended(jobset(role("b"), role("a")), True), suspended(jobset(role("a"), role("b")), True)) == FROZEN


def test_the_manager_is_frozen() -> None:
    """managedBy can be set on create only."""
    assert texts(jobset(managedBy="acme.io/other"), jobset()) == ["spec.managedBy: field is immutable"]
    assert texts(jobset(managedBy="acme.io/other"), jobset(managedBy="acme.io/other")) == []


def test_everything_else_may_change() -> None:
    """TTL, suspend and the coordinator are open; so is the network, as far as the webhook is concerned."""
    new = jobset(ttlSecondsAfterFinished=5, suspend=True, coordinator={"replicatedJob": "nobody"}, network=None)
    assert texts(new, jobset()) == []


def sized(parallelism: int | None, completions: int | None, **more: Any) -> Tree:
    """Return a JobSet of one role of a size."""
    job: dict[str, Any] = {"parallelism": parallelism, "completions": completions}
    return jobset(role(**job, **more))


def test_elastic_sizes() -> None:
    """With the gate the size of an indexed role may change, in step and not below one."""
    size = "spec.replicatedJobs[0].template.spec"
    assert texts(sized(3, 3), sized(2, 2)) == FROZEN
    assert texts(sized(3, 3), sized(2, 2), ElasticJobSet=True) == []
    assert texts(sized(3, 2), sized(2, 2), ElasticJobSet=True) == [
        f"{size}.completions: completions must be equal to parallelism for Elastic Indexed Jobs"
    ]
    assert texts(sized(0, 0), sized(2, 2), ElasticJobSet=True) == [
        f"{size}.parallelism: parallelism must be >= 1",
        f"{size}.completions: completions must be >= 1",
    ]
    assert texts(sized(3, 3, completionMode="NonIndexed"), sized(2, 2, completionMode="NonIndexed"), ElasticJobSet=True) == FROZEN
    assert texts(jobset(role(replicas=2)), jobset(), ElasticJobSet=True) == FROZEN


def test_an_ended_jobset_is_not_elastic() -> None:
    """After its end a JobSet keeps its size."""
    old = {**sized(2, 2), "status": {"conditions": [{"type": "Failed", "status": "True", "lastTransitionTime": NOW}]}}
    message = "Cannot mutate parallelism or completions when JobSet is in a terminal state (Completed or Failed)"
    assert texts(sized(3, 3), old, ElasticJobSet=True) == [f"spec.replicatedJobs[0].template.spec: {message}"]
