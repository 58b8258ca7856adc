"""Control loops in process: fresh clusters, one large JobSet, its gang restart, simulated lives."""

from __future__ import annotations

import asyncio
import gc
import time

from kubemini.api.resources import JOB_SETS, PODS
from kubemini.api.trees import Tree
from kubemini.benchmarks.scenario import Figure, scenario
from kubemini.cluster import Cluster
from kubemini.sim.cluster import SimCluster, simulate


def job_set(name: str, *, replicas: int, parallelism: int, restarts: int = 0, annotations: dict[str, str] | None = None, queue: str = "") -> Tree:
    """Return a JobSet of `replicas` Jobs of `parallelism` pods."""
    meta: Tree = {"name": name, "namespace": "default"}
    if queue:
        meta["labels"] = {"kueue.x-k8s.io/queue-name": queue}
    template = {
        "metadata": {"annotations": annotations or {}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "w", "image": "worker:1", "resources": {"requests": {"cpu": "500m"}}}]},
    }
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": meta,
        "spec": {
            "failurePolicy": {"maxRestarts": restarts, "restartStrategy": "BlockingRecreate"},
            "replicatedJobs": [
                {
                    "name": "w",
                    "replicas": replicas,
                    "template": {"spec": {"parallelism": parallelism, "completions": parallelism, "backoffLimit": 0, "template": template}},
                }
            ],
        },
    }


@scenario("fresh", "a fresh in-process cluster with all controllers: time and memory")
def fresh(scale: float) -> list[Figure]:
    """Measure starting and stopping clusters."""
    from kubemini.benchmarks.processes import own_memory

    count = max(int(100 * scale), 5)

    async def one() -> None:
        async with Cluster(seed=1):
            pass

    async def many() -> tuple[float, float]:
        await one()
        gc.collect()
        began = time.perf_counter()
        for _ in range(count):
            await one()
        each = (time.perf_counter() - began) / count
        before = own_memory()
        kept = [Cluster(seed=number) for number in range(20)]
        for cluster in kept:
            await cluster.start()
        grown = (own_memory() - before) / len(kept)
        for cluster in kept:
            await cluster.stop()
        return each, grown

    each, grown = asyncio.run(many())
    return [Figure("start and stop", each * 1e3, "ms", 2.0), Figure("memory", grown, "MiB", 1.0)]


@scenario("gang", "one JobSet of 10,000 pods on 100 nodes: to all Running, and its gang restart")
def gang(scale: float) -> list[Figure]:
    """Measure in real time, in process."""
    pods = max(int(10_000 * scale), 100)

    async def measure() -> tuple[float, float]:
        async with Cluster(fleet=f"cpu:{pods // 100 + 2}", seed=1) as cluster:
            await asyncio.sleep(0.1)
            gc.collect()
            gc.freeze()
            ready = f"jsonpath={{.status.replicatedJobsStatus[0].ready}}={10}"
            began = time.perf_counter()
            await cluster.client.create(JOB_SETS, job_set("big", replicas=10, parallelism=pods // 10, restarts=1))
            await cluster.wait("jobset/big", ready, timeout=600)
            running = time.perf_counter() - began
            victim = (await cluster.list("pod"))[pods // 2]
            again = _Running(cluster, "1")
            began = time.perf_counter()
            await cluster.client.patch(PODS, victim["metadata"]["name"], {"status": {"phase": "Failed"}}, namespace="default", subresource="status")
            await again.reached(pods)
            return running, time.perf_counter() - began

    running, restarted = asyncio.run(measure())
    gc.unfreeze()
    return [
        Figure("to all Running", running, "s", 2.0 * scale),
        Figure("pods to Running", pods / running, "pods/s", 5000.0, "higher"),
        Figure("gang restart", restarted, "s", 4.0 * scale),
    ]


class _Running:
    """Counts the pods of an attempt that run, and those of others that are left, from the changes alone: looking at all pods would be measured too."""

    def __init__(self, cluster: Cluster, attempt: str) -> None:
        self._attempt = attempt
        table = cluster.store.table("pods")
        self._cursor = table.watch()
        self._others = {record.key: None for record in table.values()}
        self._running: dict[str, None] = {}

    async def reached(self, count: int) -> None:
        """Return when so many run and no others are left."""
        while len(self._running) < count or self._others:
            for event in self._cursor.poll():
                key, pod = event.record.key, event.record.obj
                if event.type == "DELETED":
                    self._others.pop(key, None)
                    self._running.pop(key, None)
                elif pod["metadata"]["labels"].get("jobset.sigs.k8s.io/restart-attempt") == self._attempt and pod["status"].get("phase") == "Running":
                    self._running[key] = None
            await asyncio.sleep(0.01)


@scenario("lives", "simulated lives under virtual time: 8-pod gang admitted by Kueue, started, one failure, gang restart, complete")
def lives(scale: float) -> list[Figure]:
    """Measure whole simulations, a fresh cluster for each."""
    count = max(int(40 * scale), 3)
    simulate(one_life, seed=0, fleet="cpu:2")
    began = time.perf_counter()
    for seed in range(count):
        simulate(one_life, seed=seed, fleet="cpu:2")
    return [Figure("lives", count / (time.perf_counter() - began), "per s", 150.0, "higher")]


QUEUE = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: default}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: cq}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: default, resources: [{name: cpu, nominalQuota: 100}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: lq, namespace: default}
spec: {clusterQueue: cq}
"""


async def one_life(cluster: SimCluster) -> None:
    """One gang from the queue to success."""
    await cluster.apply(QUEUE)
    gang_of_eight = job_set("g", replicas=1, parallelism=8, restarts=1, annotations={"kubemini.dev/run-for": "60s"}, queue="lq")
    await cluster.client.create(JOB_SETS, gang_of_eight)
    await cluster.wait("jobset/g", "jsonpath={.status.replicatedJobsStatus[0].ready}=1")
    await cluster.fail_pod("default", (await cluster.list("pod"))[3]["metadata"]["name"])
    await cluster.wait("jobset/g", "jsonpath={.status.restarts}=1")
    await cluster.wait("jobset/g", "condition=Completed")
