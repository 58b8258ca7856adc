"""Training runs through the whole control plane: JobSets through Kueue, scheduler and kubelet, under faults, with promises checked at every commit."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from kubemini.api.resources import CLUSTER_QUEUES, JOB_SETS
from kubemini.machinery.errors import ApiStatus
from kubemini.sim.cluster import SimCluster, simulate
from kubemini.sim.faults import PERFECT, Faults
from kubemini.testing.invariants import Checker
from kubemini.testing.invariants.gangs import gang_invariants
from kubemini.testing.invariants.job import job_invariants
from kubemini.testing.invariants.jobset import jobset_invariants

ROUGH = Faults(watch_delay=0.3, request_delay=0.03, lost_before=0.02, lost_after=0.02, conflict=0.03)
PROCESSES = ("kube-controller-manager", "kube-scheduler", "kubelet", "jobset-controller-manager", "kueue-controller-manager")
GPUS = 8
FEWER = settings(max_examples=max(settings().max_examples // 2, 1))
"""A whole control plane each: fewer examples than a test of a function."""
NODES = 4
FLEET = [{"count": NODES, "name": "g-", "cpu": 64, "memory": "256Gi", "resources": {"nvidia.com/gpu": GPUS}}]


def queues(quota: int) -> str:
    """Return a flavor, a ClusterQueue with a GPU quota and a LocalQueue."""
    return f"""
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {{name: gpu}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {{name: cq}}
spec:
  namespaceSelector: {{}}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{{name: gpu, resources: [{{name: nvidia.com/gpu, nominalQuota: {quota}}}]}}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {{name: lq, namespace: default}}
spec: {{clusterQueue: cq}}
"""


def jobset(name: str, workers: int, *, restarts: int = 3, run_for: int = 60, in_order: bool = False) -> dict[str, Any]:
    """Return a leader and some workers, a whole node each, gated by the queue."""

    def role(role_name: str, replicas: int) -> dict[str, Any]:
        pod = {
            "metadata": {"annotations": {"kubemini.dev/run-for": f"{run_for}s"}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "t", "image": "t:1", "resources": {"limits": {"nvidia.com/gpu": GPUS}}}]},
        }
        return {
            "name": role_name,
            "replicas": replicas,
            "template": {"spec": {"parallelism": 1, "completions": 1, "backoffLimit": 0, "template": pod}},
        }

    spec: dict[str, Any] = {
        "failurePolicy": {"maxRestarts": restarts, "restartStrategy": "BlockingRecreate"},
        "replicatedJobs": [role("leader", 1), role("worker", workers)],
    }
    if in_order:
        spec["startupPolicy"] = {"startupPolicyOrder": "InOrder"}
    meta = {"name": name, "namespace": "default", "labels": {"kueue.x-k8s.io/queue-name": "lq"}}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": meta, "spec": spec}


@dataclass(frozen=True)
class Plan:
    """A run: gangs by their number of workers, and what happens to them when."""

    gangs: tuple[int, ...]
    steps: tuple[tuple[int, str, int], ...]
    quota: int
    seed: int


PLANS = st.builds(
    Plan,
    gangs=st.lists(st.integers(1, 3), min_size=1, max_size=3).map(tuple),
    steps=st.lists(
        st.tuples(st.integers(0, 40), st.sampled_from(["fail", "delete-pod", "delete-set", "restart", "lose", "shrink", "grow"]), st.integers(0, 7)),
        max_size=4,
    ).map(tuple),
    quota=st.sampled_from([NODES * GPUS, 2 * GPUS, GPUS]),
    seed=st.integers(0, 2**16),
)


async def disturb(cluster: SimCluster, what: str, which: int) -> None:
    """Do one thing; what is gone already is left alone."""
    pods = await cluster.list("pod")
    try:
        if what in ("fail", "delete-pod") and pods:
            name = pods[which % len(pods)]["metadata"]["name"]
            await (cluster.fail_pod if what == "fail" else cluster.delete_pod)("default", name)
        elif what == "delete-set":
            await cluster.delete(f"jobset/train-{which % 3}")
        elif what == "restart":
            await cluster.restart(PROCESSES[which % len(PROCESSES)])
        elif what == "lose":
            await cluster.lose_node(f"g-{which % NODES}")
            await cluster.settle(400)
            await cluster.recover_node(f"g-{which % NODES}")
        elif what in ("shrink", "grow"):
            quota = GPUS if what == "shrink" else NODES * GPUS
            flavors = [{"name": "gpu", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": str(quota)}]}]
            await cluster.client.patch(
                CLUSTER_QUEUES, "cq", {"spec": {"resourceGroups": [{"coveredResources": ["nvidia.com/gpu"], "flavors": flavors}]}}
            )
    except ApiStatus as refused:
        if refused.code not in (404, 409):
            raise


async def play(cluster: SimCluster, plan: Plan) -> None:
    """Play a plan; afterwards every gang has ended, and nothing is left when they are deleted."""
    checker = Checker(cluster.store, [*gang_invariants(), *jobset_invariants(), *job_invariants()])
    await cluster.settle(60)
    await cluster.apply(queues(plan.quota))
    for number, workers in enumerate(plan.gangs):
        await cluster.client.create(JOB_SETS, jobset(f"train-{number}", workers, in_order=number == 1))
    for after, what, which in plan.steps:
        await cluster.settle(after)
        await disturb(cluster, what, which)
    await disturb(cluster, "grow", 0)
    for node in range(NODES):
        await cluster.recover_node(f"g-{node}")
    await cluster.settle(20_000)
    checker.at_rest()
    for js in await cluster.list("jobset"):
        ended = [each["type"] for each in js["status"]["conditions"] if each["type"] in ("Completed", "Failed") and each["status"] == "True"]
        assert len(ended) == 1, (js["metadata"]["name"], js["status"])
        await cluster.delete(f"jobset/{js['metadata']['name']}", propagation="Foreground")
    await cluster.settle(2000)
    checker.at_rest()
    assert await cluster.list("pod") == []
    assert await cluster.list("job") == []
    assert await cluster.list("workload") == []


@FEWER
@given(plan=PLANS)
def test_gangs_keep_their_promises(plan: Plan) -> None:
    """On a perfect network: all-or-nothing admission, capacity, one attempt at a time, nothing left after deletion."""
    simulate(lambda cluster: play(cluster, plan), seed=plan.seed, faults=PERFECT, fleet=FLEET, debug=True)


DECIDED_BEFORE = Plan(gangs=(1, 1), steps=((0, "shrink", 0), (1, "fail", 0)), quota=32, seed=3725)
"""Quota is reserved just after it was taken away: it had been decided before."""


@FEWER
@given(plan=PLANS)
@example(plan=DECIDED_BEFORE)
def test_gangs_keep_their_promises_under_faults(plan: Plan) -> None:
    """With late events, lost requests, conflicts and restarts too."""
    simulate(lambda cluster: play(cluster, plan), seed=plan.seed, faults=ROUGH, fleet=FLEET, debug=True)


EXAMPLE = Plan(gangs=(3, 2), steps=((20, "fail", 1), (10, "restart", 3), (5, "delete-pod", 2)), quota=NODES * GPUS, seed=7)


def digest() -> str:
    """Return a digest of the whole trace of one faulty run."""

    async def scenario(cluster: SimCluster) -> str:
        trace = cluster.trace()
        await play(cluster, EXAMPLE)
        return f"{len(trace.lines)} {sha256(trace.bytes).hexdigest()}"

    return simulate(scenario, seed=EXAMPLE.seed, faults=ROUGH, fleet=FLEET)


def test_the_same_seed_gives_the_same_trace_in_any_process() -> None:
    """Two processes with different hash seeds write the same bytes."""
    code = "import runpy, sys; print(runpy.run_path(sys.argv[1])['digest']())"
    outputs = [
        subprocess.run(
            [sys.executable, "-c", code, __file__], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1]
    assert int(outputs[0].split()[0]) > 100
