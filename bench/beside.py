"""The same work as a real control plane was measured with: requests over HTTP, and pods of Jobs, JobSets and LeaderWorkerSets until they run.

The figures beside which these stand were measured on Kubernetes 1.36 with etcd, JobSet, LeaderWorkerSet, Kueue and a kubelet simulator on a machine of two cores, the client on
the same machine.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from kubemini.api.trees import Tree
from kubemini.benchmarks.client import Requests
from kubemini.benchmarks.scenario import Figure, scenario
from kubemini.benchmarks.server import server

PODS = "/api/v1/namespaces/default/pods"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
JOB_SETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"
GROUPS = "/apis/leaderworkerset.x-k8s.io/v1/namespaces/default/leaderworkersets"
POLL_SECONDS = 0.02
JOBS_OF_A_SET, SIZE = 10, 5
FLEET = [{"count": 40, "name": "n-{i}", "cpu": 64, "memory": "256Gi", "pods": 110}]


@scenario("beside", "what a real control plane was measured with on two cores (its figure as budget), against a served cluster with every controller")
def beside(scale: float) -> list[Figure]:
    """Measure a server process from another process."""
    with server(fleet=FLEET) as port:
        return asyncio.run(_measure(port, scale))


async def _measure(port: int, scale: float) -> list[Figure]:
    requests = Requests(port)
    count = max(int(3_000 * scale), 60)
    names = [f"p-{number}" for number in range(count)]
    body = {"spec": {"schedulerName": "nobody", "containers": [{"name": "c", "image": "worker:1"}]}}
    created = await requests.rate("POST", [(PODS, {**body, "metadata": {"name": name}}) for name in names])
    got = await requests.rate("GET", [(f"{PODS}/{name}", None) for name in names * 2])
    patched = await requests.rate("PATCH", [(f"{PODS}/{name}", {"metadata": {"labels": {"a": "b"}}}) for name in names])
    listed = requests.middle("GET", PODS)
    figures = [
        Figure("create", created, "per s", 800.0, "higher"),
        Figure("GET", got, "per s", 2_200.0, "higher"),
        Figure("patch", patched, "per s", 580.0, "higher"),
        Figure(f"LIST {count} pods", listed * 1e3, "ms", 69.0 * scale),
    ]
    pods = max(int(1_000 * scale), 20)
    for name, path, make, runs, beaten in (
        ("Job", JOBS, _job, _job_runs, 132.0),
        ("JobSet", JOB_SETS, _job_set, _job_set_runs, 56.0),
        ("LeaderWorkerSet", GROUPS, _groups, _groups_run, 40.0),
    ):
        rate = await _to_running(requests, path, make(pods), runs, pods)
        figures.append(Figure(f"{name}, {pods} pods", rate, "pods/s", beaten, "higher"))
    return figures


async def _to_running(requests: Requests, path: str, body: Tree, runs: Callable[[Tree, int], bool], pods: int) -> float:
    """Create a set, wait until its status counts every pod as ready, delete it; return pods per second."""
    began = time.perf_counter()
    await requests.one("POST", path, body)
    own = f"{path}/{body['metadata']['name']}"
    async with asyncio.timeout(120):
        while not runs((await requests.one("GET", own)).get("status") or {}, pods):  # noqa: ASYNC110  over HTTP there is only asking again
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


def _job_runs(status: Tree, pods: int) -> bool:
    return bool(status.get("ready") == pods)


def _job_set(pods: int) -> Tree:
    """Return a JobSet of some Jobs."""
    job = {"spec": _job(pods // JOBS_OF_A_SET)["spec"]}
    return {"metadata": {"name": "set"}, "spec": {"replicatedJobs": [{"name": "w", "replicas": JOBS_OF_A_SET, "template": job}]}}


def _job_set_runs(status: Tree, pods: int) -> bool:
    """Count whole Jobs, as a JobSet does: one is ready when all its pods are."""
    return sum(each.get("ready") or 0 for each in status.get("replicatedJobsStatus") or ()) == JOBS_OF_A_SET


def _groups(pods: int) -> Tree:
    """Return groups of a leader and its workers."""
    template = {"spec": {**TEMPLATE["spec"], "restartPolicy": "Always"}}
    spec = {"replicas": pods // SIZE, "leaderWorkerTemplate": {"size": SIZE, "workerTemplate": template}}
    return {"metadata": {"name": "groups"}, "spec": spec}


def _groups_run(status: Tree, pods: int) -> bool:
    return bool((status.get("readyReplicas") or 0) * SIZE == pods)
