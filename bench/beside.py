"""The same work as a real control plane was measured with: requests over HTTP, and pods of Jobs, JobSets and LeaderWorkerSets until they run.

The figures beside which these stand were measured on Kubernetes 1.36 with etcd, JobSet, LeaderWorkerSet, Kueue and a kubelet simulator on a machine of two cores, the client on
the same machine.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from kubemini.api.trees import Tree
from kubemini.benchmarks.client import Requests
from kubemini.benchmarks.scenario import Figure, scenario

PODS = "/api/v1/namespaces/default/pods"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
JOB_SETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"
GROUPS = "/apis/leaderworkerset.x-k8s.io/v1/namespaces/default/leaderworkersets"
POLL_SECONDS = 0.02
JOBS_OF_A_SET, SIZE = 10, 5


@scenario("beside", "what a real control plane was measured with on two cores (its figure as budget), against a served cluster with every controller")
def beside(scale: float) -> list[Figure]:
    """Measure a server process from another process."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(there,))
    process.start()
    try:
        port = here.recv()
        return asyncio.run(_measure(port, scale))
    finally:
        here.send("stop")
        process.join(10)
        if process.is_alive():
            process.kill()


def _serve(pipe: Connection) -> None:
    from kubemini.serving import ServedCluster

    async def main() -> None:
        fleet = [{"count": 40, "name": "n-{i}", "cpu": 64, "memory": "256Gi", "pods": 110}]
        cluster = ServedCluster(tls=False, seed=1, fleet=fleet)
        await cluster.start()
        pipe.send(cluster.listener.port)
        await asyncio.get_running_loop().run_in_executor(None, pipe.recv)
        await cluster.stop()

    asyncio.run(main())


async def _measure(port: int, scale: float) -> list[Figure]:
    requests = Requests(port)
    count = max(int(3_000 * scale), 60)
    names = [f"p-{number}" for number in range(count)]
    body = {"spec": {"schedulerName": "nobody", "containers": [{"name": "c", "image": "worker:1"}]}}
    created = await requests.rate("POST", [(PODS, {**body, "metadata": {"name": name}}) for name in names])
    got = await requests.rate("GET", [(f"{PODS}/{name}", None) for name in names * 2])
    patched = await requests.rate("PATCH", [(f"{PODS}/{name}", {"metadata": {"labels": {"a": "b"}}}) for name in names])
    listed = await requests.middle("GET", PODS)
    figures = [
        Figure("create", created, "per s", 800.0, "higher"),
        Figure("GET", got, "per s", 2_200.0, "higher"),
        Figure("patch", patched, "per s", 580.0, "higher"),
        Figure(f"LIST {count} pods", listed * 1e3, "ms", 69.0 * scale),
    ]
    pods = max(int(1_000 * scale), 20)
    for name, path, make, ready, beaten in (
        ("Job", JOBS, _job, _ready_of_job, 132.0),
        ("JobSet", JOB_SETS, _job_set, _ready_of_job_set, 56.0),
        ("LeaderWorkerSet", GROUPS, _groups, _ready_of_groups, 40.0),
    ):
        rate = await _to_running(requests, path, make(pods), ready, pods)
        figures.append(Figure(f"{name}, {pods} pods", rate, "pods/s", beaten, "higher"))
    return figures


async def _to_running(requests: Requests, path: str, body: Tree, ready: Callable[[Tree], int], pods: int) -> float:
    """Create a set, wait until its status counts every pod as ready, delete it; return pods per second."""
    began = time.perf_counter()
    await requests.one("POST", path, body)
    own = f"{path}/{body['metadata']['name']}"
    async with asyncio.timeout(120):
        while ready((await requests.one("GET", own)).get("status") or {}) < pods:  # noqa: ASYNC110  over HTTP there is only asking again
            await asyncio.sleep(POLL_SECONDS)
    rate = pods / (time.perf_counter() - began)
    await requests.one("DELETE", own, {"propagationPolicy": "Foreground"})
    async with asyncio.timeout(120):
        while await requests.there(own):  # noqa: ASYNC110  over HTTP there is only asking again
            await asyncio.sleep(POLL_SECONDS)
    return rate


TEMPLATE: dict[str, Any] = {
    "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": "worker:1"}]}
}


def _job(pods: int) -> Tree:
    return {"metadata": {"name": "job"}, "spec": {"parallelism": pods, "completions": pods, "completionMode": "Indexed", "template": TEMPLATE}}


def _ready_of_job(status: Tree) -> int:
    return int(status.get("ready") or 0)


def _job_set(pods: int) -> Tree:
    """Return a JobSet of some Jobs."""
    job = {"spec": _job(pods // JOBS_OF_A_SET)["spec"]}
    return {"metadata": {"name": "set"}, "spec": {"replicatedJobs": [{"name": "w", "replicas": JOBS_OF_A_SET, "template": job}]}}


def _ready_of_job_set(status: Tree) -> int:
    """Count whole Jobs, as a JobSet does: it is ready when all its pods are."""
    return 1 << 30 if sum(each.get("ready") or 0 for each in status.get("replicatedJobsStatus") or ()) == JOBS_OF_A_SET else 0


def _groups(pods: int) -> Tree:
    """Return groups of a leader and its workers."""
    template = {"spec": {**TEMPLATE["spec"], "restartPolicy": "Always"}}
    spec = {"replicas": pods // SIZE, "leaderWorkerTemplate": {"size": SIZE, "workerTemplate": template}}
    return {"metadata": {"name": "groups"}, "spec": spec}


def _ready_of_groups(status: Tree) -> int:
    return int(status.get("readyReplicas") or 0) * SIZE
