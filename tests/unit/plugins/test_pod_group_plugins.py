"""Pod groups with gate GenericWorkload: what admission makes of them, and how long they stay."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini import SimCluster
from kubemini.api.resources import JOB_SETS, JOBS, POD_GROUPS, PODS, PRIORITY_CLASSES, SCHEDULING_WORKLOADS
from kubemini.api.trees import Tree
from kubemini.machinery.errors import Forbidden, NotFound
from kubemini.sim.cluster import simulate

GATES = {"GenericWorkload": True, "GangScheduling": True}
PREEMPTION = {**GATES, "WorkloadAwarePreemption": True}
POLICY = {"gang": {"minCount": 1}}
EVERYTHING: Tree = {
    "schedulingPolicy": POLICY,
    "schedulingConstraints": {"topology": [{"key": "rack"}]},
    "resourceClaims": [{"name": "c", "resourceClaimName": "x"}],
    "disruptionMode": "PodGroup",
    "priorityClassName": "high",
}


def group(name: str = "g", **spec: Any) -> Tree:
    """Return a PodGroup."""
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": POLICY, **spec},
    }


def pod(**meta: Any) -> Tree:
    """Return a pod of the group."""
    spec = {"restartPolicy": "Never", "schedulingGroup": {"podGroupName": "g"}, "containers": [{"name": "m", "image": "i"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default", **meta}, "spec": spec}


async def _class(cluster: SimCluster, name: str, value: int, **more: Any) -> None:
    await cluster.client.create(
        PRIORITY_CLASSES, {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value, **more}
    )


@pytest.mark.parametrize(
    "gates, kept",
    [
        (GATES, {"schedulingPolicy": POLICY, "disruptionMode": "Pod"}),
        ({**GATES, "TopologyAwareWorkloadScheduling": True}, {"schedulingConstraints": EVERYTHING["schedulingConstraints"], "disruptionMode": "Pod"}),
        ({**GATES, "DRAWorkloadResourceClaims": True}, {"resourceClaims": EVERYTHING["resourceClaims"], "disruptionMode": "Pod"}),
        (PREEMPTION, {"disruptionMode": "PodGroup", "priorityClassName": "high", "priority": 7}),
    ],
)
def test_fields_of_gates_that_are_off_are_dropped(gates: dict[str, bool], kept: Tree) -> None:
    """Of a group and of a template stays what is on; a group's disruption mode is Pod by default, and its priority is that of its class."""

    async def scenario(cluster: SimCluster) -> None:
        await _class(cluster, "high", 7)
        made = await cluster.client.create(POD_GROUPS, group(**EVERYTHING))
        assert made["spec"] == {"podGroupTemplateRef": None, "schedulingPolicy": POLICY, **kept}
        workload = {**group("w"), "kind": "Workload", "spec": {"podGroupTemplates": [{"name": "t", **EVERYTHING}]}}
        (template,) = (await cluster.client.create(SCHEDULING_WORKLOADS, workload))["spec"]["podGroupTemplates"]
        assert template == {
            "name": "t",
            "schedulingPolicy": POLICY,
            "schedulingConstraints": None,
            **{name: value for name, value in kept.items() if name != "priority" and value != "Pod"},
        }

    simulate(scenario, controllers=("namespaces", "pod-groups"), feature_gates=gates)


def test_the_priority_of_a_group() -> None:
    """A group without a class has the default class's priority, or none; an unknown class is refused."""

    async def scenario(cluster: SimCluster) -> None:
        assert (await cluster.client.create(POD_GROUPS, group("a")))["spec"]["priority"] == 0
        await _class(cluster, "usual", 5, globalDefault=True)
        spec = (await cluster.client.create(POD_GROUPS, group("b")))["spec"]
        assert (spec["priority"], spec["priorityClassName"]) == (5, "usual")
        with pytest.raises(Forbidden) as refused:
            await cluster.client.create(POD_GROUPS, group("c", priorityClassName="nope"))
        assert str(refused.value) == 'podgroups.scheduling.k8s.io "c" is forbidden: no PriorityClass with name nope was found'

    simulate(scenario, controllers=("namespaces", "pod-groups"), feature_gates=PREEMPTION)


def test_a_group_of_a_template_that_is_not_there() -> None:
    """A group names a Workload that exists, is not being deleted, and has the template."""

    async def scenario(cluster: SimCluster) -> None:
        async def refusal(workload: str, template: str) -> str:
            reference = {"workload": {"workloadName": workload, "podGroupTemplateName": template}}
            with pytest.raises(Forbidden) as refused:
                await cluster.client.create(POD_GROUPS, group(podGroupTemplateRef=reference))
            return str(refused.value).removeprefix('podgroups.scheduling.k8s.io "g" is forbidden: PodGroup rejected: ')

        for name, finalizers in (("w", []), ("going", ["example.com/hold"])):
            spec = {"podGroupTemplates": [{"name": "t", "schedulingPolicy": POLICY}]}
            meta = {"name": name, "namespace": "default", "finalizers": finalizers}
            await cluster.client.create(SCHEDULING_WORKLOADS, {**group(), "kind": "Workload", "metadata": meta, "spec": spec})
        await cluster.client.delete(SCHEDULING_WORKLOADS, "going", namespace="default")
        assert await refusal("nope", "t") == 'Workload "nope" not found'
        assert await refusal("going", "t") == 'Workload "going" is being deleted'
        assert await refusal("w", "nope") == 'PodGroupTemplate "nope" not found in Workload "w"'
        await cluster.client.create(POD_GROUPS, group(podGroupTemplateRef={"workload": {"workloadName": "w", "podGroupTemplateName": "t"}}))

    simulate(scenario, controllers=("namespaces", "pod-groups"), feature_gates=GATES)


@pytest.mark.parametrize("how", ["ended", "deleted"])
def test_a_group_stays_until_its_pods_have_ended(how: str) -> None:
    """A group that is deleted goes at once without pods, else with the end of the last pod that names it."""

    async def scenario(cluster: SimCluster) -> None:
        made = await cluster.client.create(POD_GROUPS, group())
        assert made["metadata"]["finalizers"] == ["scheduling.k8s.io/podgroup-protection"]
        running = await cluster.client.create(PODS, pod())
        await cluster.client.delete(POD_GROUPS, "g", namespace="default")
        await cluster.settle(60)
        assert "deletionTimestamp" in (await cluster.client.get(POD_GROUPS, "g", "default"))["metadata"]
        if how == "ended":
            await cluster.client.update_status(PODS, {**running, "status": {"phase": "Succeeded"}})
        else:
            await cluster.client.delete(PODS, "p", namespace="default", grace=0)
        await cluster.settle(60)
        with pytest.raises(NotFound):
            await cluster.client.get(POD_GROUPS, "g", "default")
        await cluster.client.create(POD_GROUPS, group("alone"))
        await cluster.client.delete(POD_GROUPS, "alone", namespace="default")
        await cluster.settle(60)
        assert await cluster.client.list(POD_GROUPS) == []

    simulate(scenario, controllers=("namespaces", "service-accounts", "pod-groups"), feature_gates=GATES)


def test_a_gang_of_a_jobset() -> None:
    """The pods of a JobSet that name a group are placed together, through a restart too; the group goes after the JobSet."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(POD_GROUPS, group(schedulingPolicy={"gang": {"minCount": 4}}))
        pods = {"schedulingGroup": {"podGroupName": "g"}, "restartPolicy": "Never", "containers": [{"name": "m", "image": "i"}]}
        job = {"parallelism": 2, "completions": 2, "backoffLimit": 0, "template": {"spec": pods}}
        spec = {"failurePolicy": {"maxRestarts": 1}, "replicatedJobs": [{"name": "w", "replicas": 2, "template": {"spec": job}}]}
        js = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "js", "namespace": "default"}, "spec": spec}
        await cluster.client.create(JOB_SETS, js)
        await cluster.settle(60)
        first = await cluster.client.list(PODS)
        assert [each["status"]["phase"] for each in first] == ["Running"] * 4
        await cluster.fail_pod("default", first[0]["metadata"]["name"])
        await cluster.settle(600)
        assert [each["status"]["phase"] for each in await cluster.client.list(PODS)] == ["Running"] * 4
        assert (await cluster.client.get(JOB_SETS, "js", "default"))["status"]["restarts"] == 1
        await cluster.client.delete(POD_GROUPS, "g", namespace="default")
        await cluster.settle(60)
        assert len(await cluster.client.list(POD_GROUPS)) == 1
        await cluster.client.delete(JOB_SETS, "js", namespace="default", propagation="Foreground")
        await cluster.settle(60)
        assert await cluster.client.list(JOBS) == await cluster.client.list(POD_GROUPS) == []

    simulate(scenario, fleet=[{"count": 2, "cpu": "8", "memory": "8Gi"}], feature_gates=GATES)
