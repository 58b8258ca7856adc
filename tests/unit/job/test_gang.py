"""Jobs as gangs (gate WorkloadWithJob): the Workload and the PodGroup that are made for one, and what its pods have of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kubemini.api.resources import EVENTS, JOBS, NODES, POD_GROUPS, PODS, RESOURCE_QUOTAS, SCHEDULING_WORKLOADS
from kubemini.api.trees import Tree
from kubemini.controllers.job.gang import group_name, is_gang, is_new, workload_name, workload_of
from kubemini.controllers.job.view import JobView
from kubemini.machinery.errors import Forbidden
from kubemini.sim.cluster import SimCluster, simulate
from kubemini.sim.faults import PERFECT, Faults
from tests.unit.job.test_runs import job, view

GATES = {"GenericWorkload": True, "GangScheduling": True, "WorkloadWithJob": True}
CONTROLLERS = "namespaces,service-accounts,garbage-collector,job,pod-groups,nodes,scheduler,kubelet"
SPACE = "default"
GROUP: Tree = {"podGroupName": "theirs"}


def gang(pods: int = 3, **spec: Any) -> Tree:
    """Return a Job that is a gang."""
    made = job(parallelism=pods, completions=pods, completionMode="Indexed", **spec)
    made["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    return made


def play(scenario: Callable[[SimCluster], Awaitable[None]], *, gates: dict[str, bool] | None = None, faults: Faults = PERFECT, seed: int = 0) -> None:
    """Play a scenario in a cluster of two nodes of two CPUs each."""

    async def main(cluster: SimCluster) -> None:
        for number in range(2):
            status = {"allocatable": {"cpu": "2", "memory": "8Gi", "pods": "10"}}
            await cluster.client.create(NODES, {"metadata": {"name": f"n-{number}"}, "spec": {}, "status": status})
        await cluster.settle(30)
        await scenario(cluster)

    simulate(
        main,
        faults=faults,
        seed=seed,
        controllers=CONTROLLERS,
        program=lambda pod: {"run_for": 3600.0},
        feature_gates=GATES if gates is None else gates,
    )


async def made(cluster: SimCluster) -> tuple[list[Tree], list[Tree], list[Tree]]:
    """Return what there is: Workloads, PodGroups, pods."""
    workloads, groups, pods = [list(await cluster.client.list(resource, SPACE)) for resource in (SCHEDULING_WORKLOADS, POD_GROUPS, PODS)]
    return workloads, groups, pods


def groups_of(pods: list[Tree]) -> list[str | None]:
    """Return the groups that pods name."""
    return [(pod["spec"].get("schedulingGroup") or {}).get("podGroupName") for pod in pods]


async def workload(cluster: SimCluster, name: str, of: str = "j", owner: Tree | None = None, templates: int = 1) -> Tree:
    """Make a Workload for a Job, controlled by `owner`."""
    owners = [{"apiVersion": "batch/v1", "kind": "Job", "name": of, "uid": owner["metadata"]["uid"], "controller": True}] if owner is not None else []
    spec = {
        "controllerRef": {"apiGroup": "batch", "kind": "Job", "name": of},
        "podGroupTemplates": [{"name": f"t-{number}", "schedulingPolicy": {"gang": {"minCount": 2}}} for number in range(templates)],
    }
    return await cluster.client.create(
        SCHEDULING_WORKLOADS, {"metadata": {"name": name, "namespace": SPACE, "ownerReferences": owners}, "spec": spec}
    )


# ----------------------------------------------------------------------------------------------- rules


@pytest.mark.parametrize(
    "spec, expected",
    [
        ({}, True),
        ({"parallelism": 2, "completions": 2}, True),
        ({"parallelism": 1, "completions": 1}, False),
        ({"parallelism": 0, "completions": 0}, False),
        ({"parallelism": 2}, False),
        ({"completions": None}, False),
        ({"completionMode": "NonIndexed"}, False),
        ({"completionMode": None}, False),
    ],
)
def test_which_jobs_are_gangs(spec: Tree, expected: bool) -> None:
    """A gang is Indexed, has more than one pod, and all of them at once."""
    base = {"parallelism": 4, "completions": 4, "completionMode": "Indexed", **spec}
    assert is_gang(view(**{key: value for key, value in base.items() if value is not None})) is expected


@pytest.mark.parametrize("named", [GROUP, {}])
def test_a_job_that_names_a_group_is_left_alone(named: Tree) -> None:
    """Whoever names a schedulingGroup in the template looks after it."""
    found = gang()
    found["spec"]["template"]["spec"]["schedulingGroup"] = named
    assert not is_gang(JobView({**found, "metadata": {**found["metadata"], "uid": "u"}}))


@pytest.mark.parametrize(
    "status, pods, expected",
    [
        ({}, 0, True),
        ({"active": 0}, 0, True),
        ({}, 1, False),
        ({"startTime": "2026-01-01T00:00:00Z"}, 0, False),
        ({"succeeded": 1}, 0, False),
        ({"failed": 1}, 0, False),
        ({"conditions": [{"type": "Suspended", "status": "False"}]}, 0, False),
    ],
)
def test_which_jobs_are_new(status: Tree, pods: int, expected: bool) -> None:
    """A Job that has begun, or was looked at while it was suspended, is not new."""
    found = gang()
    assert is_new(JobView({**found, "metadata": {**found["metadata"], "uid": "u"}, "status": status}), [{}] * pods) is expected


@pytest.mark.parametrize(
    "uid, expected", [("my-job-uid", "j-67d7bb7f64"), ("0c5f5f3e-1111-4222-8333-444455556666", "j-f5d9fd945"), ("", "j-69ddf977d7")]
)
def test_the_hash_in_a_workloads_name(uid: str, expected: str) -> None:
    """The hash is upstream's: of the uid with its Go type."""
    assert workload_name("j", uid) == expected


@pytest.mark.parametrize(
    "names, kept", [((250, 3), (None, 3)), ((2, 250), (2, None)), ((200, 200), None), ((121, 200), None), ((200, 122), None), ((5, 6), (5, 6))]
)
def test_long_names_are_cut(names: tuple[int, int], kept: tuple[int | None, int | None] | None) -> None:
    """A name has at most 253 characters: what is long gets what the other leaves, and half of it where both are; the odd one is the Workload's."""
    first, second, tail = group_name("w" * names[0], "t" * names[1]).split("-")
    room = 253 - len(tail) - 2
    one, other = kept if kept is not None else (room - room // 2, room // 2)
    assert (len(first), len(second)) == (room - (other or 0) if one is None else one, room - (one or 0) if other is None else other)
    assert len(workload_name("a" * 300, "u")) == 253


# ----------------------------------------------------------------------------------------------- lives


def test_what_is_made_for_a_gang() -> None:
    """A Workload, then its PodGroup, then the pods: each refers to the one before, and all belong to the Job."""

    async def scenario(cluster: SimCluster) -> None:
        created = await cluster.client.create(JOBS, gang())
        await cluster.settle(20)
        (load,), (group,), pods = await made(cluster)
        uid = created["metadata"]["uid"]
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": uid, "controller": True, "blockOwnerDeletion": True}
        assert load["metadata"]["name"] == workload_name("j", uid)
        assert load["metadata"]["ownerReferences"] == [owner]
        assert load["spec"]["controllerRef"] == {"apiGroup": "batch", "kind": "Job", "name": "j"}
        (template,) = load["spec"]["podGroupTemplates"]
        assert (template["name"], template["schedulingPolicy"]) == ("j-pgt-0", {"gang": {"minCount": 3}})
        about = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "Workload", "name": load["metadata"]["name"], "uid": load["metadata"]["uid"]}
        assert group["metadata"]["name"] == group_name(load["metadata"]["name"], "j-pgt-0")
        assert group["metadata"]["ownerReferences"] == [owner, about]
        assert group["metadata"]["finalizers"] == ["scheduling.k8s.io/podgroup-protection"]
        assert group["spec"]["podGroupTemplateRef"] == {"workload": {"workloadName": load["metadata"]["name"], "podGroupTemplateName": "j-pgt-0"}}
        assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}
        assert not {"labels", "annotations"} & {*load["metadata"], *group["metadata"]}
        assert groups_of(pods) == [group["metadata"]["name"]] * 3
        assert [pod["metadata"]["ownerReferences"] for pod in pods] == [[owner]] * 3
        assert {pod["status"]["phase"] for pod in pods} == {"Running"}
        ages = [[each["metadata"]["creationTimestamp"] for each in found] for found in ([load], [group], pods)]
        assert ages[0] <= ages[1] <= ages[2][:1]
        told = [(each["type"], each["message"]) for each in await cluster.client.list(EVENTS, SPACE) if each["reason"] == "WorkloadCreated"]
        assert told == [("Normal", f"Created Workload {load['metadata']['name']} for Job j")]

    play(scenario)


@pytest.mark.parametrize("missing", ["GenericWorkload", "WorkloadWithJob"])
def test_without_its_gates_a_job_is_no_gang(missing: str) -> None:
    """Both gates are needed: with one alone nothing is made, and pods name no group."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(JOBS, gang())
        await cluster.settle(20)
        pods = await cluster.client.list(PODS, SPACE)
        assert groups_of(list(pods)) == [None] * 3
        if missing != "GenericWorkload":
            assert not list(await cluster.client.list(SCHEDULING_WORKLOADS, SPACE))

    play(scenario, gates={**GATES, missing: False})


def test_other_jobs_are_scheduled_pod_by_pod() -> None:
    """Nothing is made for a Job that is no gang, or whose pods name a group already: they keep that."""

    async def scenario(cluster: SimCluster) -> None:
        named = gang(2)
        named["spec"]["template"]["spec"]["schedulingGroup"] = GROUP
        named["metadata"]["name"] = "named"
        for each in (job(parallelism=2), job("one", parallelism=1, completions=1, completionMode="Indexed"), named):
            await cluster.client.create(JOBS, each)
        await cluster.settle(20)
        workloads, groups, pods = await made(cluster)
        assert (workloads, groups) == ([], [])
        assert sorted(map(str, groups_of(pods))) == ["None"] * 3 + ["theirs"] * 2

    play(scenario)


def test_a_gang_is_placed_as_a_whole() -> None:
    """No pod of a gang is bound while there is no room for all; then all are."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(JOBS, gang(5))
        await cluster.settle(60)
        _, (group,), pods = await made(cluster)
        assert len(pods) == 5
        assert not any(pod["spec"].get("nodeName") for pod in pods)
        assert [each["status"] for each in group["status"]["conditions"] if each["type"] == "PodGroupScheduled"] == ["False"]
        status = {"allocatable": {"cpu": "2", "memory": "8Gi", "pods": "10"}}
        await cluster.client.create(NODES, {"metadata": {"name": "more"}, "spec": {}, "status": status})
        await cluster.settle(600)
        _, _, pods = await made(cluster)
        assert all(pod["spec"].get("nodeName") for pod in pods)

    play(scenario)


def test_a_suspended_gang_keeps_its_objects() -> None:
    """Both objects are made while a Job is suspended, and stay the same through suspensions; its pods are always in that group."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(JOBS, gang(suspend=True))
        await cluster.settle(20)
        (load,), (group,), pods = await made(cluster)
        assert pods == []
        for suspend in (False, True, False):
            await cluster.client.patch(JOBS, "j", {"spec": {"suspend": suspend}}, namespace=SPACE)
            await cluster.settle(120)
            loads, groups, pods = await made(cluster)
            assert [each["metadata"]["uid"] for each in (*loads, *groups)] == [load["metadata"]["uid"], group["metadata"]["uid"]]
            assert groups_of(pods) == ([] if suspend else [group["metadata"]["name"]] * 3)

    play(scenario)


def test_a_replacement_joins_the_gang() -> None:
    """The pod that comes for a failed one is in the group too, also after a restart of the controller."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(JOBS, gang())
        await cluster.settle(20)
        _, (group,), pods = await made(cluster)
        await cluster.restart("kube-controller-manager")
        await cluster.fail_pod(SPACE, pods[0]["metadata"]["name"])
        await cluster.settle(120)
        _, groups, pods = await made(cluster)
        assert [each["metadata"]["uid"] for each in groups] == [group["metadata"]["uid"]]
        assert groups_of(pods) == [group["metadata"]["name"]] * 4
        assert sum(pod["status"]["phase"] == "Running" for pod in pods) == 3

    play(scenario)


def test_a_job_that_has_begun_is_made_no_gang() -> None:
    """A Workload that goes while its Job runs does not come again, and new pods are in no group."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(JOBS, gang())
        await cluster.settle(20)
        (load,), _, pods = await made(cluster)
        await cluster.client.delete(SCHEDULING_WORKLOADS, load["metadata"]["name"], namespace=SPACE)
        await cluster.settle(20)
        await cluster.fail_pod(SPACE, pods[0]["metadata"]["name"])
        await cluster.settle(120)
        loads, _, after = await made(cluster)
        assert loads == []
        known = {pod["metadata"]["uid"] for pod in pods}
        assert groups_of([pod for pod in after if pod["metadata"]["uid"] not in known]) == [None]

    play(scenario)


def test_a_group_that_is_missing_is_made_again() -> None:
    """The PodGroup of a Workload that is there is made whenever it is missing, also for a Job that has begun."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(JOBS, gang(suspend=True))
        await cluster.settle(20)
        (load,), (group,), _ = await made(cluster)
        name = group["metadata"]["name"]
        await cluster.client.delete(POD_GROUPS, name, namespace=SPACE)
        await cluster.settle(20)
        await cluster.client.patch(JOBS, "j", {"spec": {"suspend": False}}, namespace=SPACE)
        await cluster.settle(60)
        loads, (again,), pods = await made(cluster)
        assert [each["metadata"]["uid"] for each in loads] == [load["metadata"]["uid"]]
        assert again["metadata"]["uid"] != group["metadata"]["uid"]
        assert groups_of(pods) == [name] * 3
        assert all(pod["spec"].get("nodeName") for pod in pods)

    play(scenario)


async def _resumed(cluster: SimCluster) -> list[str | None]:
    """Resume the Job, and return the groups of its pods."""
    await cluster.client.patch(JOBS, "j", {"spec": {"suspend": False}}, namespace=SPACE)
    await cluster.settle(60)
    return groups_of((await made(cluster))[2])


@pytest.mark.parametrize("kind", ["theirs", "another job's", "two", "templates"])
def test_workloads_that_are_not_used(kind: str) -> None:
    """A Job for which somebody else made a Workload, or that has several, or one with two templates, runs without a group, and no other is made."""

    async def scenario(cluster: SimCluster) -> None:
        created = await cluster.client.create(JOBS, gang(suspend=True))
        other = await cluster.client.create(JOBS, job("other", suspend=True))
        await cluster.settle(20)
        (load,), (group,), _ = await made(cluster)
        for resource, obj in ((POD_GROUPS, group), (SCHEDULING_WORKLOADS, load)):
            await cluster.client.delete(resource, obj["metadata"]["name"], namespace=SPACE)
        owner = {"theirs": None, "another job's": other}.get(kind, created)
        for number in range(2 if kind == "two" else 1):
            await workload(cluster, f"w-{number}", owner=owner, templates=2 if kind == "templates" else 1)
        await cluster.settle(20)
        assert await _resumed(cluster) == [None] * 3
        loads, groups, _ = await made(cluster)
        assert [each["metadata"]["name"][:2] for each in loads] == ["w-"] * len(loads)
        assert groups == []

    play(scenario)


def test_a_workload_of_the_user_comes_first() -> None:
    """A Job for which there is a Workload already is not given another one."""

    async def scenario(cluster: SimCluster) -> None:
        await workload(cluster, "theirs")
        await cluster.client.create(JOBS, gang())
        await cluster.settle(60)
        loads, groups, pods = await made(cluster)
        assert ([each["metadata"]["name"] for each in loads], groups, groups_of(pods)) == (["theirs"], [], [None] * 3)

    play(scenario)


@pytest.mark.parametrize("number", [1, 2])
def test_groups_that_are_not_used(number: int) -> None:
    """A Workload with a PodGroup of somebody else, or with several, leaves the pods without one."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(JOBS, gang(suspend=True))
        await cluster.settle(20)
        _, (group,), _ = await made(cluster)
        if number == 1:
            await cluster.client.delete(POD_GROUPS, group["metadata"]["name"], namespace=SPACE)
        spec = {key: group["spec"][key] for key in ("podGroupTemplateRef", "schedulingPolicy")}
        await cluster.client.create(POD_GROUPS, {"metadata": {"name": "theirs", "namespace": SPACE}, "spec": spec})
        await cluster.settle(20)
        assert await _resumed(cluster) == [None] * 3

    play(scenario)


def test_a_name_that_is_taken() -> None:
    """While an object that is not about the Job has the name that its PodGroup would have, no pod is made; once it has gone, all are."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(JOBS, gang(suspend=True))
        await cluster.settle(20)
        _, (group,), _ = await made(cluster)
        name = group["metadata"]["name"]
        await cluster.client.delete(POD_GROUPS, name, namespace=SPACE)
        await cluster.settle(20)
        await cluster.client.create(POD_GROUPS, {"metadata": {"name": name, "namespace": SPACE}, "spec": {"schedulingPolicy": {"basic": {}}}})
        await cluster.client.patch(JOBS, "j", {"spec": {"suspend": False}}, namespace=SPACE)
        await asyncio.sleep(100)
        assert not list(await cluster.client.list(PODS, SPACE))
        await cluster.client.delete(POD_GROUPS, name, namespace=SPACE)
        await asyncio.sleep(100)
        _, (again,), pods = await made(cluster)
        assert again["spec"]["podGroupTemplateRef"] is not None
        assert groups_of(pods) == [name] * 3

    play(scenario)


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_nothing_is_left_of_a_gang(propagation: str) -> None:
    """With the Job go its pods, its PodGroup once they have ended, and its Workload."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(JOBS, gang())
        await cluster.settle(20)
        await cluster.client.delete(JOBS, "j", namespace=SPACE, propagation=propagation)
        await cluster.settle(300)
        assert await made(cluster) == ([], [], [])

    play(scenario)


@pytest.mark.parametrize("seed", range(4))
def test_a_cache_that_lags_does_not_cost_pods_their_group(seed: int) -> None:
    """Every pod is in the one group, also those that come while the caches do not show yet what was made for it."""

    async def scenario(cluster: SimCluster) -> None:
        quota = {"metadata": {"name": "q", "namespace": SPACE}, "spec": {"hard": {"count/pods": "1"}}}
        await cluster.client.create(RESOURCE_QUOTAS, quota)
        await cluster.settle(20)
        await cluster.client.create(JOBS, gang())
        await asyncio.sleep(3)
        await cluster.client.delete(RESOURCE_QUOTAS, "q", namespace=SPACE)
        await cluster.settle(300)
        loads, (group,), pods = await made(cluster)
        assert len(loads) == 1
        assert groups_of(pods) == [group["metadata"]["name"]] * 3

    play(scenario, faults=Faults(watch_delay=8.0), seed=seed)


# ----------------------------------------------------------------------------------------------- parallelism


def test_a_gang_keeps_its_size() -> None:
    """The parallelism of a Job whose pods are a gang is not changed, whoever made the group; anything else is."""

    async def scenario(cluster: SimCluster) -> None:
        for name, policy in (("strict", {"gang": {"minCount": 2}}), ("loose", {"basic": {}})):
            await cluster.client.create(POD_GROUPS, {"metadata": {"name": name, "namespace": SPACE}, "spec": {"schedulingPolicy": policy}})
            named = job(f"in-{name}", parallelism=2)
            named["spec"]["template"]["spec"]["schedulingGroup"] = {"podGroupName": name}
            await cluster.client.create(JOBS, named)
        missing = job("in-none", parallelism=2)
        missing["spec"]["template"]["spec"]["schedulingGroup"] = GROUP
        for each in (missing, job("plain", parallelism=2), gang()):
            await cluster.client.create(JOBS, each)
        await cluster.settle(20)

        async def refusal(name: str, **spec: Any) -> str:
            try:
                await cluster.client.patch(JOBS, name, {"spec": spec}, namespace=SPACE)
            except Forbidden as refused:
                return str(refused)
            return ""

        (group,) = [each["metadata"]["name"] for each in await cluster.client.list(POD_GROUPS, SPACE) if each["spec"]["podGroupTemplateRef"]]
        text = 'jobs.batch "{}" is forbidden: cannot change parallelism for a Job referencing gang-scheduled PodGroup "{}"'
        assert await refusal("j", parallelism=2, completions=2) == text.format("j", group)
        assert await refusal("in-strict", parallelism=1) == text.format("in-strict", "strict")
        for name in ("in-loose", "in-none", "plain"):
            assert await refusal(name, parallelism=1) == ""
        assert await refusal("j", suspend=True) == ""

    play(scenario)


def test_a_workload_has_one_template() -> None:
    """The one template has the Job's parallelism as its minCount."""
    (template,) = workload_of(view(parallelism=8, completions=8, completionMode="Indexed"))["spec"]["podGroupTemplates"]
    assert template == {"name": "j-pgt-0", "schedulingPolicy": {"gang": {"minCount": 8}}}
