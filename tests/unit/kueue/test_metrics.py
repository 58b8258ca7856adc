"""What ``/metrics`` says of Kueue: counts, times and gauges by upstream's names and labels."""

from __future__ import annotations

import asyncio
import math

import pytest

from kubemini import SimCluster
from kubemini.api.trees import Tree
from kubemini.runtime.telemetry import Counter, Gauge, Histogram
from tests.unit.kueue.test_lives import KUEUE, active_check, answer, job, node, play, queues, the_workload

Samples = dict[tuple[str, ...], float]


def families(cluster: SimCluster) -> dict[str, Counter | Histogram | Gauge]:
    """Return all measures by name."""
    found = [each for manager in cluster.managers.values() for controller in manager.controllers for each in controller.families]
    assert len({each.name for each in found}) == len(found)
    return {each.name: each for each in found}


def shown(cluster: SimCluster, name: str) -> Samples:
    """Return what a counter or gauge shows; of a histogram, the sums."""
    family = families(cluster)[f"kueue_{name}"]
    if isinstance(family, Gauge):
        return dict(family.read())
    if isinstance(family, Histogram):
        return {values: total for values, (_, (total,)) in family.samples.items()}
    return dict(family.samples)


def without_zeros(samples: Samples) -> Samples:
    """Leave out what is 0."""
    return {key: value for key, value in samples.items() if value}


def test_a_job_from_queue_to_end() -> None:
    """A job that waits for a check, runs and ends is counted by its ClusterQueue and its LocalQueue, and so are the times."""

    async def scenario(cluster: SimCluster) -> None:
        await node(cluster)
        await cluster.apply([*queues("ac"), {"apiVersion": KUEUE, "kind": "WorkloadPriorityClass", "metadata": {"name": "p"}, "value": 9}])
        await active_check(cluster, "ac")
        await cluster.settle(20)
        await cluster.apply(job("a", priority_class="p"))
        await asyncio.sleep(5)
        in_queue, in_local = ("cq", "p", "leader"), ("lq", "default", "p", "leader")
        assert shown(cluster, "quota_reserved_workloads_total") == {in_queue: 1}
        assert shown(cluster, "local_queue_quota_reserved_workloads_total") == {in_local: 1}
        assert shown(cluster, "admitted_workloads_total") == {}
        assert shown(cluster, "reserving_active_workloads") == {("cq", "leader"): 1}
        assert shown(cluster, "admitted_active_workloads") == {("cq", "leader"): 0}
        assert shown(cluster, "unadmitted_workloads") == {("cq", "UnsatisfiedAdmissionChecks", "", "leader"): 1}
        await answer(cluster, await the_workload(cluster), ac={"state": "Ready"})
        await asyncio.sleep(5)
        assert shown(cluster, "admitted_workloads_total") == {in_queue: 1}
        assert shown(cluster, "local_queue_admitted_active_workloads") == {("lq", "default", "leader"): 1}
        assert 4 <= shown(cluster, "admission_checks_wait_time_seconds")[in_queue] <= 7
        assert 4 <= shown(cluster, "local_queue_admission_wait_time_seconds")[in_local] <= 7
        assert shown(cluster, "quota_reserved_wait_time_seconds")[in_queue] <= 2
        assert shown(cluster, "unadmitted_workloads") == {}
        assert in_queue in shown(cluster, "ready_wait_time_seconds")
        assert shown(cluster, "admission_attempts_total") == {("success", "leader"): 1}
        await asyncio.sleep(10)
        running = await the_workload(cluster)
        ended = {"type": "Finished", "status": "True", "reason": "Succeeded", "message": "", "lastTransitionTime": cluster.env.stamp()}
        status = {"status": {"conditions": [*running["status"]["conditions"], ended]}}
        await cluster.patch(f"workload.kueue.x-k8s.io/{running['metadata']['name']}", status, subresource="status")
        await cluster.settle(20)
        assert shown(cluster, "finished_workloads_total") == {in_queue: 1}
        assert shown(cluster, "finished_workloads") == {("cq", "leader"): 1}
        assert shown(cluster, "local_queue_finished_workloads") == {("lq", "default", "leader"): 1}
        assert 14 <= shown(cluster, "execution_time_seconds")[in_queue] <= 17
        assert shown(cluster, "reserving_active_workloads") == {("cq", "leader"): 0}

    play(scenario)


def test_who_waits_and_who_had_to_go() -> None:
    """Preemption counts for the preemptor's queue and as an eviction; pending Workloads are told apart by whether they may be tried."""

    async def scenario(cluster: SimCluster) -> None:
        await node(cluster)
        built = queues(cpu="1", preemption={"withinClusterQueue": "LowerPriority"})
        await cluster.apply([*built, {"apiVersion": KUEUE, "kind": "WorkloadPriorityClass", "metadata": {"name": "p"}, "value": 9}])
        await cluster.settle(20)
        await cluster.apply(job("low"))
        await asyncio.sleep(5)
        await cluster.apply(job("high", priority_class="p"))
        await asyncio.sleep(30)
        assert shown(cluster, "preempted_workloads_total") == {("cq", "InClusterQueue", "leader"): 1}
        assert shown(cluster, "evicted_workloads_total") == {("cq", "Preempted", "", "", "leader"): 1}
        assert shown(cluster, "evicted_workloads_once_total") == {("cq", "Preempted", "", "", "leader"): 1}
        assert shown(cluster, "local_queue_evicted_workloads_total") == {("lq", "default", "Preempted", "", "", "leader"): 1}
        assert ("cq", "Preempted", "leader") in shown(cluster, "workload_eviction_latency_seconds")
        assert without_zeros(shown(cluster, "pending_workloads")) == {("cq", "inadmissible", "leader"): 1}
        assert without_zeros(shown(cluster, "local_queue_pending_workloads")) == {("lq", "default", "inadmissible", "leader"): 1}
        assert without_zeros(shown(cluster, "cluster_queue_status")) == {("cq", "active", "leader"): 1}
        assert without_zeros(shown(cluster, "local_queue_status")) == {("lq", "default", "True", "leader"): 1}
        await cluster.patch("clusterqueue/cq", {"spec": {"stopPolicy": "Hold"}})
        await cluster.settle(20)
        assert without_zeros(shown(cluster, "cluster_queue_status")) == {("cq", "pending", "leader"): 1}

    play(scenario)


def test_quota_is_shown_on_request() -> None:
    """``enableClusterQueueResources`` shows quota and usage, cpu in cores; without a limit the limit is infinite."""

    async def scenario(cluster: SimCluster) -> None:
        await node(cluster)
        await cluster.apply(queues(cpu="4", cohortName="team"))
        await cluster.apply(job("a"))
        await asyncio.sleep(5)
        place = ("team", "cq", "rf", "cpu", "standalone")
        assert shown(cluster, "cluster_queue_nominal_quota") == {place: 4.0}
        assert shown(cluster, "cluster_queue_borrowing_limit") == {place: math.inf}
        assert shown(cluster, "cluster_queue_resource_usage") == shown(cluster, "cluster_queue_resource_reservation") == {place: 1.0}
        assert shown(cluster, "cohort_subtree_quota") == {("team", "rf", "cpu", "standalone"): 4.0}
        assert shown(cluster, "cohort_subtree_resource_reservations") == {("team", "rf", "cpu", "standalone"): 1.0}
        assert shown(cluster, "cohort_subtree_admitted_workloads_total") == {("team", "", "standalone"): 1}
        assert shown(cluster, "cohort_subtree_admitted_active_workloads") == {("team", "standalone"): 1}
        assert shown(cluster, "cluster_queue_info") == {("cq", "team", "team", "standalone"): 1}
        assert shown(cluster, "cohort_info") == {("team", "", "team", "standalone"): 1}
        assert "kueue_local_queue_pending_workloads" not in families(cluster)
        assert shown(cluster, "local_queue_admitted_workloads_total") == {}

    settings: Tree = {
        "metrics": {"enableClusterQueueResources": True, "localQueueMetrics": {"enable": False}},
        "leaderElection": {"leaderElect": False},
    }
    play(scenario, kueue=settings)


def test_the_page_has_them() -> None:
    """Gauges come out in the format of the page."""
    core = pytest.importorskip("prometheus_client")
    from kubemini.controller_metrics import ControllerMetrics

    async def scenario(cluster: SimCluster) -> None:
        await cluster.apply(queues())
        await cluster.settle(20)
        registry = core.CollectorRegistry()
        registry.register(ControllerMetrics(cluster.managers.values))
        text = core.generate_latest(registry).decode()
        assert 'kueue_cluster_queue_status{cluster_queue="cq",replica_role="leader",status="active"} 1.0' in text
        assert "# TYPE kueue_pending_workloads gauge" in text

    play(scenario)
