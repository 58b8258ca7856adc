"""Kueue under load, in virtual time: cohorts of queues that borrow from each other, and thousands of workloads of three sizes.

The shape is that of Kueue's own baseline of scalability: five cohorts of six ClusterQueues, each with 20 CPUs of its own and up to 100 borrowed; into each
queue come 350 small, 100 medium and 50 large workloads, the larger the rarer, the longer and the more important, so that large ones preempt small ones.
Workloads are written as controllers of jobs write them, without managed fields, and have no pods: what would run is ended by the scenario itself once it was
admitted for its time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from kubemini.api.resources import CLUSTER_QUEUES, LOCAL_QUEUES, NAMESPACES, RESOURCE_FLAVORS, WORKLOADS
from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.benchmarks.scenario import Figure, scenario
from kubemini.controllers.kueue import reservation
from kubemini.controllers.kueue.conditions import Draft, is_true
from kubemini.inprocess import InProcessClient
from kubemini.runtime.client import Client
from kubemini.sim.cluster import SimCluster, simulate

COHORTS, QUEUES = 5, 6


@dataclass(frozen=True, slots=True)
class Size:
    """One size of workload: how many come into each queue, how often (seconds), what they ask for and for how long (seconds)."""

    name: str
    count: int
    every: float
    cpus: int
    priority: int
    runs: float


SIZES = (
    Size("small", 350, 0.1, 1, 50, 0.2),
    Size("medium", 100, 0.5, 5, 100, 0.5),
    Size("large", 50, 1.2, 20, 200, 1.0),
)


@scenario("kueue", "Kueue, virtual time: 15,000 workloads of three sizes through 30 ClusterQueues in 5 cohorts, with borrowing and preemption")
def kueue(scale: float) -> list[Figure]:
    """Measure one simulation from the first workload to the last one's end."""
    total = sum(max(int(size.count * scale), 1) for size in SIZES) * COHORTS * QUEUES
    began = time.perf_counter()
    virtual = simulate(lambda cluster: _baseline(cluster, scale), seed=1, controllers="kueue")
    spent = time.perf_counter() - began
    return [
        Figure(f"{total} workloads", spent, "s", 15.0 * scale),
        Figure("workloads", total / spent, "per s", 1000.0, "higher"),
        Figure("virtual time", virtual, "s"),
    ]


async def _baseline(cluster: SimCluster, scale: float) -> float:
    client = cluster.client
    await client.create(RESOURCE_FLAVORS, {"apiVersion": RESOURCE_FLAVORS.api_version, "kind": RESOURCE_FLAVORS.kind, "metadata": {"name": "rf"}})
    places: list[str] = []
    for cohort in range(COHORTS):
        for number in range(QUEUES):
            name = f"cohort-{cohort}-queue-{number}"
            await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
            await client.create(CLUSTER_QUEUES, _cluster_queue(name, f"cohort-{cohort}"))
            await client.create(LOCAL_QUEUES, _local_queue(name))
            places.append(name)
    began = cluster.loop.time()
    jobs = InProcessClient(cluster.server)
    counts = {size.name: max(int(size.count * scale), 1) for size in SIZES}
    owners = _Owners(cluster, jobs, sum(counts.values()) * len(places))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(owners.play())
        for size in SIZES:
            for namespace in places:
                tasks.create_task(_submit(jobs, size, counts[size.name], namespace))
    return cluster.loop.time() - began


async def _submit(jobs: Client, size: Size, count: int, namespace: str) -> None:
    for number in range(count):
        await jobs.create(WORKLOADS, _workload(size, f"{size.name}-{number}", namespace))
        await asyncio.sleep(size.every)


class _Owners:
    """Plays the jobs that the workloads stand for: each runs for its time once it is admitted, and gives its quota back when it is evicted."""

    def __init__(self, cluster: SimCluster, client: Client, total: int) -> None:
        self._cluster = cluster
        self._client = client
        self._left = total
        self._runs: dict[str, asyncio.TimerHandle] = {}

    async def play(self) -> None:
        """Return when every workload has ended."""
        cursor = self._cluster.store.table(WORKLOADS.storage).watch()
        async with asyncio.TaskGroup() as tasks:
            while self._left:
                for event in cursor.poll():
                    self._look(event.record.key, event.record.obj, tasks)
                if self._left:
                    await cursor.wait()

    def _look(self, key: str, workload: Tree, tasks: asyncio.TaskGroup) -> None:
        evicted = is_true(workload, names.EVICTED)
        if evicted or not is_true(workload, names.ADMITTED) or is_true(workload, names.FINISHED):
            running = self._runs.pop(key, None)
            if running is not None:
                running.cancel()
            if evicted and is_true(workload, names.QUOTA_RESERVED):
                tasks.create_task(self._yield(key))
        elif key not in self._runs:
            size = next(size for size in SIZES if workload["metadata"]["name"].startswith(size.name))
            self._runs[key] = self._cluster.loop.call_later(size.runs, lambda: tasks.create_task(self._end(key)))

    async def _write(self, key: str, change: Callable[[Draft], object]) -> None:
        namespace, _, name = key.partition("/")
        draft = Draft(await self._client.get(WORKLOADS, name, namespace), self._cluster.env.stamp())
        change(draft)
        await self._client.update_status(WORKLOADS, draft.tree())

    async def _yield(self, key: str) -> None:
        def change(draft: Draft) -> None:
            if draft.is_true(names.EVICTED):
                reservation.refuse(draft, "Pending", "preempted")
                draft.mark(names.ADMITTED, False, names.NO_RESERVATION, "The workload has no reservation")

        await self._write(key, change)

    async def _end(self, key: str) -> None:
        def change(draft: Draft) -> None:
            if draft.is_true(names.ADMITTED) and not draft.is_true(names.EVICTED):
                draft.mark(names.FINISHED, True, "Succeeded", "the time is over")
                self._left -= 1

        await self._write(key, change)


def _cluster_queue(name: str, cohort: str) -> Tree:
    return {
        "apiVersion": CLUSTER_QUEUES.api_version,
        "kind": CLUSTER_QUEUES.kind,
        "metadata": {"name": name},
        "spec": {
            "cohortName": cohort,
            "namespaceSelector": {},
            "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
            "resourceGroups": [
                {
                    "coveredResources": ["cpu"],
                    "flavors": [{"name": "rf", "resources": [{"name": "cpu", "nominalQuota": "20", "borrowingLimit": "100"}]}],
                }
            ],
        },
    }


def _local_queue(name: str) -> Tree:
    return {
        "apiVersion": LOCAL_QUEUES.api_version,
        "kind": LOCAL_QUEUES.kind,
        "metadata": {"name": "lq", "namespace": name},
        "spec": {"clusterQueue": name},
    }


def _workload(size: Size, name: str, namespace: str) -> Tree:
    return {
        "apiVersion": WORKLOADS.api_version,
        "kind": WORKLOADS.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "queueName": "lq",
            "priority": size.priority,
            "podSets": [
                {
                    "name": "main",
                    "count": 1,
                    "template": {"spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": str(size.cpus)}}}]}},
                }
            ],
        },
    }
