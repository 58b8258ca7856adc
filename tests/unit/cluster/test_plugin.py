"""The pytest plugin: its fixtures as a user of kubemini has them."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.cluster import Cluster

JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: work}
spec:
  template:
    metadata: {annotations: {kubemini.dev/run-for: 10ms}}
    spec:
      restartPolicy: Never
      containers: [{name: c, image: i}]
"""


@pytest.mark.kubemini(fleet="cpu:1", seed=3)
async def test_cluster_fixture(cluster: Cluster) -> None:
    """The marker's arguments reach the cluster, and a Job runs on its fleet."""
    assert cluster.env.seed == 3
    await cluster.apply(JOB)
    job = await cluster.wait("job/work", "condition=Complete", timeout=30)
    assert job is not None
    assert job["status"]["succeeded"] == 1


@pytest.mark.kubemini(fleet="cpu:1")
def test_simulated_fixture(simulated: Any) -> None:
    """A scenario runs under virtual time and returns its result."""

    async def scenario(cluster: Any) -> float:
        await cluster.apply(JOB.replace("10ms", "1h"))
        await cluster.wait("job/work", "condition=Complete", timeout=7200)
        return float(cluster.loop.time())

    assert simulated(scenario, seed=5) >= 3600
