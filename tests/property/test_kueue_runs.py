"""Kueue under arbitrary queues, jobs, disturbances and faults: what it promises holds at every commit, and all work gets done."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from kubemini.api.resources import CLUSTER_QUEUES, JOBS, LOCAL_QUEUES, NODES, RESOURCE_FLAVORS, WORKLOADS
from kubemini.api.trees import Tree
from kubemini.machinery.errors import Conflict, NotFound
from kubemini.sim.cluster import SimCluster, simulate
from kubemini.sim.faults import PERFECT, Faults
from kubemini.testing.invariants import Checker
from kubemini.testing.invariants.kueue import condition, kueue_invariants

CONTROLLERS = ("namespaces", "service-accounts", "garbage-collector", "job", "nodes", "kubelet", "kueue")
ROUGH = Faults(watch_delay=0.5, request_delay=0.05, lost_before=0.03, lost_after=0.03, conflict=0.05)
HORIZON = 7200.0


@dataclass
class Work:
    """One job: pods of one cpu each."""

    queue: int = 0
    pods: int = 1
    priority: int = 0
    run_for: int = 10


@dataclass
class Step:
    """Something that happens after some seconds."""

    after: int
    what: str
    which: int = 0


@dataclass
class Life:
    """A whole run: two ClusterQueues, in one cohort or not."""

    work: list[Work]
    cohort: bool = False
    preempt: bool = False
    strict: bool = False
    steps: list[Step] = field(default_factory=list)
    seed: int = 0


def cluster_queue(number: int, life: Life) -> Tree:
    """Return a ClusterQueue of four cpus."""
    spec: Tree = {
        "namespaceSelector": {},
        "queueingStrategy": "StrictFIFO" if life.strict else "BestEffortFIFO",
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{"name": "rf", "resources": [{"name": "cpu", "nominalQuota": "4"}]}]}],
    }
    if life.cohort:
        spec["cohortName"] = "co"
    if life.preempt:
        spec["preemption"] = {"withinClusterQueue": "LowerPriority", **({"reclaimWithinCohort": "Any"} if life.cohort else {})}
    return {"metadata": {"name": f"cq-{number}"}, "spec": spec}


def job(number: int, work: Work) -> Tree:
    """Return a Job whose pods are pinned to the only node."""
    pod: dict[str, Any] = {"nodeName": "n-0", "restartPolicy": "Never", "priorityClassName": f"p{work.priority}" if work.priority else ""}
    pod["containers"] = [{"name": "m", "image": "x", "resources": {"requests": {"cpu": "1"}}}]
    if not work.priority:
        del pod["priorityClassName"]
    return {
        "metadata": {"name": f"j{number}", "namespace": "default", "labels": {"kueue.x-k8s.io/queue-name": f"lq-{work.queue}"}},
        "spec": {
            "parallelism": work.pods,
            "completions": work.pods,
            "backoffLimit": 1000,
            "template": {"metadata": {"annotations": {"kubemini.dev/run-for": f"{work.run_for}s"}}, "spec": pod},
        },
    }


async def disturb(cluster: SimCluster, step: Step) -> None:
    """Do what a step says."""
    name = f"cq-{step.which % 2}"
    with suppress(NotFound, Conflict):
        if step.what in ("Hold", "HoldAndDrain", "None"):
            await cluster.client.patch(CLUSTER_QUEUES, name, {"spec": {"stopPolicy": step.what}})
        elif step.what == "restart":
            await cluster.restart("kueue-controller-manager")
        elif step.what == "delete-job":
            await cluster.client.delete(JOBS, f"j{step.which}", namespace="default", propagation="Background")
        elif step.what == "delete-workload":
            found = await cluster.client.list(WORKLOADS)
            if found:
                await cluster.client.delete(WORKLOADS, found[step.which % len(found)]["metadata"]["name"], namespace="default")
        elif step.what in ("deactivate", "activate"):
            found = await cluster.client.list(WORKLOADS)
            if found:
                chosen = found[step.which % len(found)]["metadata"]["name"]
                await cluster.client.patch(WORKLOADS, chosen, {"spec": {"active": step.what == "activate"}}, namespace="default")


def play(life: Life, faults: Faults) -> None:
    """Live through a run with every commit checked, set all queues free at the end, and look at what is left."""
    from kubemini.api.resources import PRIORITY_CLASSES

    async def scenario(cluster: SimCluster) -> None:
        client = cluster.client
        checker = Checker(cluster.store, kueue_invariants())
        capacity = {"cpu": "1000", "memory": "1Ti", "pods": "1000"}
        await client.create(NODES, {"metadata": {"name": "n-0"}, "spec": {}, "status": {"capacity": capacity, "allocatable": capacity}})
        await client.create(RESOURCE_FLAVORS, {"metadata": {"name": "rf"}, "spec": {}})
        for value in (1, 2):
            await client.create(PRIORITY_CLASSES, {"metadata": {"name": f"p{value}"}, "value": value})
        for number in range(2):
            await client.create(CLUSTER_QUEUES, cluster_queue(number, life))
            await client.create(
                LOCAL_QUEUES, {"metadata": {"name": f"lq-{number}", "namespace": "default"}, "spec": {"clusterQueue": f"cq-{number}"}}
            )
        for number, work in enumerate(life.work):
            await client.create(JOBS, job(number, work))
        for step in life.steps:
            await cluster.env.sleep(step.after)
            await disturb(cluster, step)
        for number in range(2):
            await client.patch(CLUSTER_QUEUES, f"cq-{number}", {"spec": {"stopPolicy": "None"}})
        for workload in await client.list(WORKLOADS):
            if workload["spec"].get("active") is False:
                await cluster.settle(60)
                with suppress(NotFound):
                    await client.patch(WORKLOADS, workload["metadata"]["name"], {"spec": {"active": True}}, namespace="default")
        assert await cluster.settle(HORIZON)
        checker.at_rest()
        for each in await client.list(JOBS):
            number = int(each["metadata"]["name"][1:])
            limit = 8 if life.cohort else 4
            if life.work[number].pods <= limit and not life.strict:
                assert condition(each, "Complete") == "True", f"{each['metadata']['name']} was never done"
        if all(condition(each, "Complete") == "True" for each in await client.list(JOBS)):
            for queue in await client.list(CLUSTER_QUEUES):
                assert queue["status"]["reservingWorkloads"] == 0
                assert queue["status"]["flavorsReservation"][0]["resources"][0]["total"] == "0"

    simulate(scenario, seed=life.seed, faults=faults, controllers=CONTROLLERS)


WORKS = st.builds(Work, queue=st.integers(0, 1), pods=st.integers(1, 5), priority=st.integers(0, 2), run_for=st.integers(1, 60))
STEPS = st.builds(
    Step,
    after=st.integers(0, 30),
    what=st.sampled_from(["Hold", "HoldAndDrain", "None", "restart", "delete-job", "delete-workload", "deactivate", "activate"]),
    which=st.integers(0, 5),
)
LIVES = st.builds(
    Life,
    work=st.lists(WORKS, min_size=1, max_size=6),
    cohort=st.booleans(),
    preempt=st.booleans(),
    strict=st.booleans(),
    steps=st.lists(STEPS, max_size=5),
    seed=st.integers(0, 2**16),
)


@settings(deadline=None, max_examples=20)
@given(LIVES)
def test_promises_hold_in_calm(life: Life) -> None:
    """Without faults every commit keeps the promises and all work gets done."""
    play(life, PERFECT)


LOSING_TO_ONE_THAT_WAITS = Life(
    work=[Work(1, 2, 1, 47), Work(0, 3, 1, 32), Work(0, 2, 0, 45), Work(0, 2, 2, 24), Work(1, 3, 2, 4), Work(0, 4, 2, 45)],
    cohort=True,
    preempt=True,
    strict=False,
    steps=[Step(12, "None", 4), Step(14, "restart", 3)],
    seed=10550,
)
"""One head loses its quota to another that waits for its victims: once it was tried again for ever, and time stood still."""

STOPPED_AS_IT_ENDS = Life(
    work=[Work(0, 1, 0, 1), Work(1, 1, 0, 1), Work(1, 4, 0, 4)], steps=[Step(6, "Hold", 0), Step(5, "delete-workload", 1)], seed=1
)
"""A Workload is deleted as its Job ends: once Kueue tried for ever to take the start time from a Job that is done."""


@settings(deadline=None, max_examples=20)
@given(LIVES)
@example(LOSING_TO_ONE_THAT_WAITS)
@example(STOPPED_AS_IT_ENDS)
def test_promises_hold_under_faults(life: Life) -> None:
    """With stale caches, conflicts and lost answers too."""
    play(life, ROUGH)
