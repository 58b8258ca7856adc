"""What Go's decoder says of objects of the kinds that we own, and that their webhooks say it before anything else is looked at."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.api.resources import CLUSTER_QUEUES, JOB_SETS, WORKLOADS, Resource
from kubemini.api.trees import Tree
from kubemini.machinery.errors import ApiStatus
from kubemini.machinery.quantity import WRONG_FORMAT
from kubemini.machinery.schema.go_objects import undecodable
from kubemini.sim.cluster import SimCluster, simulate


def role(job: Tree | None = None, pod: Tree | None = None, **more: Any) -> Tree:
    """Return the spec of a JobSet of one role."""
    pod_spec = {"containers": [{"name": "m", "image": "i", **(pod or {})}]}
    return {"replicatedJobs": [{"name": "a", "template": {"spec": {"template": {"spec": pod_spec}, **(job or {})}}, **more}]}


def queue(quota: Any) -> Tree:
    """Return the spec of a ClusterQueue of one quota."""
    flavors = [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": quota}]}]
    return {"namespaceSelector": {}, "resourceGroups": [{"coveredResources": ["cpu"], "flavors": flavors}]}


UNFIT = "json: cannot unmarshal {} into Go struct field {} of type {}".format


@pytest.mark.parametrize(
    "spec,expected",
    [
        (role(), ""),
        (role(replicas=-1), ""),
        ({"successPolicy": {"operator": "Some"}}, ""),
        (role(replicas="2"), UNFIT("string", "ReplicatedJob.spec.replicatedJobs.replicas", "int32")),
        (role(replicas=1.5), UNFIT("number 1.5", "ReplicatedJob.spec.replicatedJobs.replicas", "int32")),
        (role(replicas=3_000_000_000), UNFIT("number 3000000000", "ReplicatedJob.spec.replicatedJobs.replicas", "int32")),
        (role({"parallelism": "x"}), UNFIT("string", "JobSpec.spec.replicatedJobs.template.spec.parallelism", "int32")),
        (role(pod={"image": 5}), UNFIT("number", "Container.spec.replicatedJobs.template.spec.template.spec.containers.image", "string")),
        (role(pod={"resources": {"limits": {"cpu": "x"}}}), WRONG_FORMAT),
        ({"suspend": "true"}, UNFIT("string", "JobSetSpec.spec.suspend", "bool")),
        ({"network": []}, UNFIT("array", "JobSetSpec.spec.network", "v1alpha2.Network")),
        ({"replicatedJobs": {}}, UNFIT("object", "JobSetSpec.spec.replicatedJobs", "[]v1alpha2.ReplicatedJob")),
        ({"coordinator": {"replicatedJob": "a", "jobIndex": "0"}}, UNFIT("string", "Coordinator.spec.coordinator.jobIndex", "int")),
        ({"suspend": 1, "managedBy": 1}, UNFIT("number", "JobSetSpec.spec.managedBy", "string")),
        ({"unknown": 1, "network": None}, ""),
    ],
)
def test_what_go_says_of_a_jobset(spec: Tree, expected: str) -> None:
    """The first value in the order of names that does not fit its Go type is named with its place; bounds and enumerations are no matter of types."""
    assert undecodable("jobset.x-k8s.io", "JobSet", {"spec": spec}) == expected


def test_what_go_says_of_quantities() -> None:
    """A quantity is a number or a text of its form; other kinds than our own are not looked at."""
    assert [undecodable("kueue.x-k8s.io", "ClusterQueue", {"spec": queue(each)}) for each in (1, "1.5", "x", True)] == [
        "",
        "",
        WRONG_FORMAT,
        WRONG_FORMAT,
    ]
    assert undecodable("", "Pod", {"spec": 5}) == ""


def test_gaps_do_not_break_a_webhook() -> None:
    """Nulls in lists and parts that the schema lets be missing are refused for what they lack, and break nothing."""
    groups = [{"coveredResources": ["cpu"], "flavors": [None, {"name": "f", "resources": [None]}]}]
    workload = {"podSets": [{"name": "main", "count": 1, "template": {}}]}

    async def scenario(cluster: SimCluster) -> list[int]:
        codes = []
        for resource, spec in ((CLUSTER_QUEUES, {"resourceGroups": groups}), (JOB_SETS, {"replicatedJobs": [None]}), (WORKLOADS, workload)):
            namespace = "default" if resource.namespaced else ""
            try:
                await cluster.client.create(resource, {"metadata": {"name": "x"}, "spec": spec}, namespace=namespace)
            except ApiStatus as refused:
                codes.append(refused.code)
            else:
                codes.append(201)
        return codes

    assert simulate(scenario)[:2] == [422, 422]


def test_a_webhook_refuses_what_it_cannot_read() -> None:
    """Wrong types in a custom resource with a mutating webhook are that webhook's refusal (400), whatever else the schema finds."""

    async def scenario(cluster: SimCluster) -> list[tuple[int, str]]:
        async def refused(resource: Resource, spec: Tree, namespace: str = "") -> tuple[int, str]:
            with pytest.raises(ApiStatus) as error:
                await cluster.client.create(resource, {"metadata": {"name": "x"}, "spec": spec}, namespace=namespace)
            return error.value.code, error.value.message

        return [
            await refused(CLUSTER_QUEUES, queue("x")),
            await refused(JOB_SETS, role(replicas="2", groupName=None, dependsOn=[{"name": "b", "status": "x"}]), "default"),
            await refused(JOB_SETS, role(replicas=-1), "default"),
        ]

    queue_answer, typed, bounds = simulate(scenario)
    assert queue_answer == (400, f'admission webhook "mclusterqueue.kb.io" denied the request: {WRONG_FORMAT}')
    assert typed == (
        400,
        'admission webhook "mjobset.kb.io" denied the request: ' + UNFIT("string", "ReplicatedJob.spec.replicatedJobs.replicas", "int32"),
    )
    assert bounds[0] == 422
