"""Models parse trees strictly, keep built-in subtrees as they are, and give back what was set."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from pydantic import ValidationError

from kubemini.api.jobset.v1alpha2 import FailurePolicy, JobSet, JobSetSpec, Network, ReplicatedJob
from kubemini.api.kueue.v1beta2 import ClusterQueue, Workload
from kubemini.api.leaderworkerset.v1 import LeaderWorkerSet
from kubemini.api.meta.model import Model, camel
from kubemini.api.meta.v1 import ApiObject, ObjectMeta
from kubemini.api.operators import OWNED_KINDS
from kubemini.api.trees import Tree

TEMPLATE: Tree = {"spec": {"template": {"spec": {"containers": [{"name": "c"}], "volumes": [{"name": "v", "emptyDir": None}]}}}}


def job_set() -> Tree:
    """Return a JobSet as a user writes it."""
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "train", "labels": {"a": "b"}},
        "spec": {
            "network": {"enableDNSHostnames": True},
            "replicatedJobs": [{"name": "w", "replicas": 4, "template": TEMPLATE, "dependsOn": [{"name": "l", "status": "Ready"}]}],
            "failurePolicy": {"maxRestarts": 3},
        },
    }


def test_round_trip() -> None:
    """Parsing and giving back changes nothing: no defaults come in, and nulls of a template stay."""
    assert JobSet.from_tree(job_set()).to_tree() == job_set()


def test_defaults_are_read() -> None:
    """What is absent reads as the schema's default, or as Go's zero value."""
    parsed = JobSet.from_tree(job_set())
    assert parsed.spec.replicated_jobs[0].group_name == "default"
    assert parsed.spec.failure_policy is not None
    assert parsed.spec.failure_policy.restart_strategy == "Recreate"
    assert parsed.status.restarts == 0
    assert parsed.spec.suspend is None


def test_templates_are_the_same_objects() -> None:
    """A built-in subtree is not copied: work memoised by its identity is shared."""
    tree = job_set()
    assert JobSet.from_tree(tree).spec.replicated_jobs[0].template is tree["spec"]["replicatedJobs"][0]["template"]


def test_construction_by_attribute_names() -> None:
    """An object built in Python gives the tree that a manifest would, with apiVersion and kind."""
    built = JobSet(
        metadata=ObjectMeta(name="train"),
        spec=JobSetSpec(network=Network(enable_dns_hostnames=False), replicated_jobs=[ReplicatedJob(name="w", template=TEMPLATE)]),
    )
    assert built.to_tree() == {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "train"},
        "spec": {"network": {"enableDNSHostnames": False}, "replicatedJobs": [{"name": "w", "template": TEMPLATE}]},
    }


@pytest.mark.parametrize(
    "model,tree,where",
    [
        (FailurePolicy, {"maxRestarts": "3"}, "maxRestarts"),
        (FailurePolicy, {"maxRestarts": True}, "maxRestarts"),
        (FailurePolicy, {"restartStrategy": "Sometimes"}, "restartStrategy"),
        (ReplicatedJob, {"name": "w"}, "template"),
        (ReplicatedJob, {"name": "w", "template": []}, "template"),
        (ReplicatedJob, {"name": "w", "template": {}, "replicas": -1}, "replicas"),
        (ReplicatedJob, {"name": "w", "template": {}, "replicaCount": 1}, "replicaCount"),
        (LeaderWorkerSet, {"spec": {"replicas": 1000001, "leaderWorkerTemplate": {"workerTemplate": {}}}}, "spec.replicas"),
        (LeaderWorkerSet, {"kind": "JobSet"}, "kind"),
        (ClusterQueue, {"apiVersion": "kueue.x-k8s.io/v1beta1"}, "apiVersion"),
        (ClusterQueue, {"spec": {"cohortName": "Not A Name"}}, "spec.cohortName"),
        (ClusterQueue, {"spec": {"fairSharing": {"weight": "much"}}}, "spec.fairSharing.weight"),
    ],
)
def test_refusals(model: type[Model], tree: Tree, where: str) -> None:
    """Wrong types, enums, bounds, patterns, missing and unknown fields are refused, and the error names the field."""
    with pytest.raises(ValidationError) as problem:
        model.model_validate(tree)
    paths = {".".join(str(part) for part in each["loc"]) for each in problem.value.errors()}
    assert any(path.startswith(where) for path in paths)


def test_trees_of_a_newer_server() -> None:
    """`from_tree` passes over fields that the model does not know; wrong types remain errors."""
    tree = job_set()
    tree["spec"] = {**tree["spec"], "invented": 1}
    assert JobSet.from_tree(tree).metadata.name == "train"
    with pytest.raises(ValidationError):
        JobSet.model_validate(tree)


def test_models_do_not_change() -> None:
    """A parsed object is shared by all who read it, so an assignment is an error."""
    parsed = JobSet.from_tree(job_set())
    with pytest.raises(ValidationError):
        parsed.spec.suspend = True  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]


def test_quantities_as_written() -> None:
    """A quantity keeps its form: a number stays a number, a text a text."""
    tree = {"spec": {"podSets": [{"template": {}}]}, "status": {"resourceRequests": [{"name": "main", "resources": {"cpu": 2, "memory": "1Gi"}}]}}
    assert Workload.from_tree(tree).status.resource_requests[0].resources == {"cpu": 2, "memory": "1Gi"}


def models() -> list[Any]:
    """Return the model of every version of every kind."""
    found = []
    for kind in OWNED_KINDS:
        for version in kind.versions:
            module, _, name = version.model.partition(":")
            found.append(pytest.param(kind, version.name, getattr(import_module(module), name), id=f"{kind.kind}-{version.name}"))
    return found


@pytest.mark.parametrize("kind,version,model", models())
def test_catalogue_names_the_right_model(kind: Any, version: str, model: type[ApiObject]) -> None:
    """The catalogue's model of a version has that apiVersion and kind."""
    assert model.model_fields["api_version"].default == f"{kind.group}/{version}"
    assert model.model_fields["kind"].default == kind.kind


@pytest.mark.parametrize(
    "attribute,name",
    [("api_version", "apiVersion"), ("enable_dns_hostnames", "enableDNSHostnames"), ("hpa_pod_selector", "hpaPodSelector"), ("uid", "uid")],
)
def test_json_names(attribute: str, name: str) -> None:
    """JSON names are camelCase, with upstream's capitals."""
    assert camel(attribute) == name
