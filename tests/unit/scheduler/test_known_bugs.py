"""Defects that were found upstream, each as a small cluster under virtual time that must not show it. The numbers are those of public issues."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from kubemini.api.resources import EVENTS, NODES, POD_GROUPS, PODS, PRIORITY_CLASSES
from kubemini.sim.cluster import SimCluster, simulate
from kubemini.testing.invariants import Checker
from kubemini.testing.invariants.scheduler import scheduler_invariants

Tree = dict[str, Any]
CONTROLLERS = ("namespaces", "service-accounts", "garbage-collector", "nodes", "scheduler", "kubelet")
GATES = {"GenericWorkload": True, "GangScheduling": True, "TopologyAwareWorkloadScheduling": True}


def play(scenario: Callable[[SimCluster], Awaitable[None]], *, nodes: int = 1, cpu: str = "4", seed: int = 1) -> None:
    """Run a scenario on some nodes, with all promises of scheduling checked."""

    async def whole(cluster: SimCluster) -> None:
        checker = Checker(cluster.store, scheduler_invariants())
        await cluster.settle(60.0)
        for name, value in (("low", 1), ("mid", 50), ("high", 100)):
            await cluster.client.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})
        for number in range(nodes):
            labels = {"kubernetes.io/hostname": f"n-{number}", "rack": f"r{number // 2}"}
            resources = {"cpu": cpu, "memory": "64Gi", "pods": "110"}
            await cluster.client.create(
                NODES, {"metadata": {"name": f"n-{number}", "labels": labels}, "spec": {}, "status": {"allocatable": resources}}
            )
        await cluster.settle(60.0)
        await scenario(cluster)
        checker.at_rest()

    simulate(whole, seed=seed, controllers=CONTROLLERS, feature_gates=GATES)


def pod(name: str, cpu: str = "1", *, annotations: Tree | None = None, gang: str = "", **spec: Any) -> Tree:
    """Return a pod."""
    if gang:
        spec["schedulingGroup"] = {"podGroupName": gang}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    meta = {"name": name, "namespace": "default", "annotations": {f"kubemini.dev/{key}": value for key, value in (annotations or {}).items()}}
    return {"metadata": meta, "spec": {"containers": [container], "restartPolicy": "Never", **spec}}


def gang(name: str, minimum: int, *, topology: str = "") -> Tree:
    """Return a PodGroup."""
    spec: Tree = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
    if topology:
        spec["schedulingConstraints"] = {"topology": [{"key": topology}]}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


async def get(cluster: SimCluster, name: str) -> Tree:
    """Return a pod."""
    return await cluster.client.get(PODS, name, "default")


async def bound(cluster: SimCluster) -> list[str]:
    """Return the names of the pods that have a node and have not ended."""
    pods = await cluster.client.list(PODS)
    return [each["metadata"]["name"] for each in pods if each["spec"].get("nodeName") and each["status"]["phase"] in ("Pending", "Running")]


# ----------------------------------------------------------------------------------------------- nominations


def test_a_nomination_is_known_at_once() -> None:
    """72124: nobody of lower priority takes the room that a preemptor has just won, though the victim goes only later."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(PODS, pod("victim", "4", priorityClassName="low"))
        await cluster.settle(60.0)
        await cluster.client.create(PODS, pod("winner", "4", priorityClassName="high"))
        await cluster.client.create(PODS, pod("thief", "4", priorityClassName="mid"))
        await cluster.settle(600.0)
        assert await bound(cluster) == ["winner"]

    play(scenario)


def test_a_nomination_ends_with_the_binding() -> None:
    """86942: once the preemptor is bound its nomination blocks no capacity, in memory or on the object."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(PODS, pod("victim", "4", priorityClassName="low"))
        await cluster.settle(60.0)
        await cluster.client.create(PODS, pod("winner", "3", priorityClassName="high"))
        await cluster.settle(600.0)
        assert "nominatedNodeName" not in (await get(cluster, "winner"))["status"]
        await cluster.client.create(PODS, pod("late", "1"))
        await cluster.settle(60.0)
        assert await bound(cluster) == ["late", "winner"]

    play(scenario)


def test_the_preemptor_waits_for_its_victims() -> None:
    """93505: one preemption, one victim: the preemptor does not preempt again while the first victim is on its way out."""

    async def scenario(cluster: SimCluster) -> None:
        for name in ("a", "b"):
            await cluster.client.create(PODS, pod(name, "2", priorityClassName="low"))
        await cluster.settle(60.0)
        for name in ("a", "b"):
            found = await get(cluster, name)
            await cluster.client.update(PODS, {**found, "metadata": {**found["metadata"], "finalizers": ["example.com/slow"]}})
        await cluster.client.create(PODS, pod("winner", "2", priorityClassName="high"))
        await asyncio.sleep(120)
        going = [name for name in ("a", "b") if "deletionTimestamp" in (await get(cluster, name))["metadata"]]
        assert len(going) == 1
        found = await get(cluster, going[0])
        await cluster.client.update(PODS, {**found, "metadata": {key: value for key, value in found["metadata"].items() if key != "finalizers"}})
        await cluster.settle(600.0)
        assert "winner" in await bound(cluster)

    play(scenario)


# ----------------------------------------------------------------------------------------------- pod life


def test_the_end_is_final() -> None:
    """58711, 126341, 117019: a pod that has ended stays as it ended, over a restart of its kubelet and while a finalizer holds it."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(PODS, pod("done", annotations={"run-for": "1s", "exit-code": "3"}))
        await cluster.settle(60.0)
        found = await get(cluster, "done")
        assert found["status"]["phase"] == "Failed"
        await cluster.client.update(PODS, {**found, "metadata": {**found["metadata"], "finalizers": ["example.com/slow"]}})
        await cluster.client.delete(PODS, "done", namespace="default")
        await cluster.restart("kubelet")
        await cluster.settle(600.0)
        after = await get(cluster, "done")
        assert {**after["status"], "observedGeneration": 0} == {**found["status"], "observedGeneration": 0}

    play(scenario)


def test_no_change_no_write() -> None:
    """53515: the kubelet does not write the status of a terminating pod that a finalizer holds over and over."""

    async def scenario(cluster: SimCluster) -> None:
        made = pod("held")
        made["metadata"]["finalizers"] = ["example.com/slow"]
        await cluster.client.create(PODS, made)
        await cluster.settle(60.0)
        await cluster.client.delete(PODS, "held", namespace="default")
        await cluster.settle(60.0)
        before = (await get(cluster, "held"))["metadata"]["resourceVersion"]
        await cluster.restart("kubelet")
        await asyncio.sleep(600)
        assert (await get(cluster, "held"))["metadata"]["resourceVersion"] == before

    play(scenario)


def test_a_full_node_refuses_who_came_past_the_scheduler() -> None:
    """A pod that names its node is refused by the kubelet when there is no room, and stays Failed."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(PODS, pod("first", "3", nodeName="n-0"))
        await cluster.settle(60.0)
        await cluster.client.create(PODS, pod("second", "2", nodeName="n-0"))
        await cluster.settle(60.0)
        found = (await get(cluster, "second"))["status"]
        assert (found["phase"], found["reason"]) == ("Failed", "OutOfcpu")
        assert await bound(cluster) == ["first"]

    play(scenario)


# ----------------------------------------------------------------------------------------------- gangs


def test_all_or_nothing() -> None:
    """kube-batch 158: of a gang that does not fit whole, nothing is bound; another that fits is not held up."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(POD_GROUPS, gang("big", 3))
        for number in range(3):
            await cluster.client.create(PODS, pod(f"big-{number}", "2", gang="big"))
        await cluster.client.create(POD_GROUPS, gang("small", 2))
        for number in range(2):
            await cluster.client.create(PODS, pod(f"small-{number}", "2", gang="small"))
        await cluster.settle(600.0)
        assert await bound(cluster) == ["small-0", "small-1"]
        found = await cluster.client.get(POD_GROUPS, "big", "default")
        assert [(each["type"], each["status"], each["reason"]) for each in found["status"]["conditions"]] == [
            ("PodGroupScheduled", "False", "Unschedulable")
        ]

    play(scenario)


def test_two_gangs_do_not_hold_each_other() -> None:
    """koordinator 872: two gangs that fit one at a time are not both half placed; the second starts when the first has ended."""

    async def scenario(cluster: SimCluster) -> None:
        for name in ("a", "b"):
            await cluster.client.create(POD_GROUPS, gang(name, 3))
        for number in range(3):
            for name in ("a", "b"):
                await cluster.client.create(PODS, pod(f"{name}-{number}", "2", gang=name, annotations={"run-for": "60s"}))
        await asyncio.sleep(30)
        assert len(await bound(cluster)) == 3
        await cluster.settle(600.0)
        assert {each["status"]["phase"] for each in await cluster.client.list(PODS)} == {"Succeeded"}

    play(scenario, nodes=2)


def test_finished_members_count() -> None:
    """142330: a replacement in a gang some of whose members have succeeded is scheduled: those count towards the quorum."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(POD_GROUPS, gang("g", 2))
        await cluster.client.create(PODS, pod("done", gang="g", annotations={"run-for": "5s"}))
        await cluster.client.create(PODS, pod("lost", gang="g"))
        await asyncio.sleep(20)
        await cluster.client.delete(PODS, "lost", namespace="default")
        await cluster.client.create(PODS, pod("replacement", gang="g"))
        await cluster.settle(600.0)
        assert await bound(cluster) == ["replacement"]

    play(scenario)


def test_bound_siblings_count() -> None:
    """scheduler-plugins 358, 364: a member made anew joins its running gang, whose bound members count."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(POD_GROUPS, gang("g", 3))
        for number in range(3):
            await cluster.client.create(PODS, pod(f"g-{number}", gang="g"))
        await cluster.settle(60.0)
        await cluster.client.delete(PODS, "g-1", namespace="default")
        await cluster.settle(60.0)
        await cluster.client.create(PODS, pod("g-1", gang="g"))
        await cluster.settle(600.0)
        assert await bound(cluster) == ["g-0", "g-1", "g-2"]

    play(scenario)


def test_a_gang_stays_in_its_domain() -> None:
    """A gang with a topology goes into the one rack that holds all of it, and a late member follows it there."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(PODS, pod("fill", "3", nodeSelector={"kubernetes.io/hostname": "n-0"}))
        await cluster.settle(60.0)
        await cluster.client.create(POD_GROUPS, gang("g", 3, topology="rack"))
        for number in range(3):
            await cluster.client.create(PODS, pod(f"g-{number}", "2", gang="g"))
        await cluster.settle(60.0)
        await cluster.client.create(PODS, pod("g-late", "1", gang="g"))
        await cluster.settle(60.0)
        nodes = {each["spec"]["nodeName"] for each in await cluster.client.list(PODS) if each["metadata"]["name"].startswith("g-")}
        assert nodes == {"n-2", "n-3"}

    play(scenario, nodes=4)


def test_a_gang_preempts_as_one() -> None:
    """A gang of higher priority evicts only if that lets enough of it start, and waits as a whole meanwhile."""

    async def scenario(cluster: SimCluster) -> None:
        for number in range(2):
            await cluster.client.create(PODS, pod(f"low-{number}", "3", priorityClassName="low"))
        await cluster.settle(60.0)
        await cluster.client.create(POD_GROUPS, gang("never", 3))
        for number in range(3):
            await cluster.client.create(PODS, pod(f"never-{number}", "4", gang="never", priorityClassName="high"))
        await cluster.settle(600.0)
        assert await bound(cluster) == ["low-0", "low-1"]
        await cluster.client.create(POD_GROUPS, gang("fits", 2))
        for number in range(2):
            await cluster.client.create(PODS, pod(f"fits-{number}", "4", gang="fits", priorityClassName="high"))
        await cluster.settle(600.0)
        assert await bound(cluster) == ["fits-0", "fits-1"]

    play(scenario, nodes=2)


# ----------------------------------------------------------------------------------------------- events and determinism


def test_the_same_failure_is_one_event() -> None:
    """What is said again about the same version of a pod is a series, not an event of its own."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(PODS, pod("big", "9"))
        await cluster.settle(60.0)
        for number in range(3):
            await cluster.client.create(PODS, pod(f"small-{number}", "1"))
            await asyncio.sleep(20)
            await cluster.client.delete(PODS, f"small-{number}", namespace="default")
            await asyncio.sleep(40)
        events = [each for each in await cluster.client.list(EVENTS) if each["reason"] == "FailedScheduling"]
        assert len(events) == 2
        assert sorted((each.get("series") or {}).get("count", 1) for each in events) == [1, 2]

    play(scenario)


def test_one_seed_one_placement() -> None:
    """The same seed gives the same bindings."""

    def placements() -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []

        async def scenario(cluster: SimCluster) -> None:
            for number in range(12):
                await cluster.client.create(PODS, pod(f"p-{number}", str(number % 3 + 1)))
            await cluster.settle(600.0)
            found.extend((each["metadata"]["name"], each["spec"].get("nodeName", "")) for each in await cluster.client.list(PODS))

        play(scenario, nodes=3, seed=7)
        return found

    assert placements() == placements()
