"""What feature gates of Kubernetes change in the Job controller."""

from __future__ import annotations

import asyncio

import pytest

from kubemini.api.resources import JOBS
from kubemini.api.trees import Tree
from kubemini.sim.cluster import SimCluster, simulate
from kubemini.sim.faults import PERFECT, Faults
from tests.unit.job.test_known_bugs import status_of
from tests.unit.job.test_runs import CONTROLLERS, counted, job


@pytest.mark.parametrize("on", [True, False])
def test_a_suspended_job_keeps_its_start_time_without_the_gate_of_directives(on: bool) -> None:
    """With MutableSchedulingDirectivesForSuspendedJobs a suspended Job has no start time; without it keeps the old one until it is resumed."""

    async def scenario(cluster: SimCluster) -> list[Tree]:
        await cluster.client.create(JOBS, job())
        await cluster.settle(20)
        found = [await status_of(cluster)]
        for suspend in (True, False):
            await cluster.client.patch(JOBS, "j", {"spec": {"suspend": suspend}}, namespace="default")
            await asyncio.sleep(5)
            found.append(await status_of(cluster))
        return found

    gates = {"MutableSchedulingDirectivesForSuspendedJobs": on}
    ran, suspended, resumed = simulate(
        scenario, faults=PERFECT, fleet="cpu:1", controllers=CONTROLLERS, program=lambda pod: {"run_for": 3600.0}, feature_gates=gates
    )
    assert suspended.get("startTime") == (None if on else ran["startTime"])
    assert resumed["startTime"] > ran["startTime"]


@pytest.mark.parametrize("on", [True, False])
def test_passes_over_stale_jobs_are_skipped_with_the_gate_of_consistency(on: bool) -> None:
    """With StaleControllerConsistencyJob no pass is taken before the cache shows the controller's own last write, and those that were skipped are counted."""

    async def scenario(cluster: SimCluster) -> list[tuple[str, str]]:
        await cluster.client.create(JOBS, job(parallelism=4, completions=12))
        await cluster.settle(600)
        return list(counted(cluster)["stale_sync_skips_total"])

    skipped = simulate(
        scenario,
        faults=Faults(watch_delay=2.0),
        fleet="cpu:1",
        controllers=CONTROLLERS,
        program=lambda pod: {"run_for": 3.0},
        feature_gates={"StaleControllerConsistencyJob": on},
    )
    assert skipped == ([("batch", "jobs")] if on else [])
