"""The pytest plugin: its fixtures as a user of kubemini has them."""

from __future__ import annotations

from typing import Any
from urllib.request import urlopen

import pytest

from kubemini.cluster import Cluster
from kubemini.testing.plugin import Served

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


@pytest.mark.kubemini(controllers="namespaces", metrics_server=True, tls=False, feature_gates={"RestartJob": True, "InPlaceRestart": False})
def test_served_arguments(served_cluster: Served) -> None:
    """Flags and gates of the marker reach a server of its own too."""
    assert served_cluster.url.startswith("http://")
    assert urlopen(f"{served_cluster.url}/apis/metrics.k8s.io/v1beta1", timeout=30).status == 200
