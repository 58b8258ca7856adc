"""A Dask cluster plays lives as well as a process does."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubemini.testing.exploring import Progress, explore
from kubemini.testing.sources import Source

distributed = pytest.importorskip("distributed", reason="needs the extra `dask`")

JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: work, namespace: default}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}
"""


def test_a_dask_cluster_plays(tmp_path: Path) -> None:
    """Its workers play the same lives, in the same batches."""
    path = tmp_path / "job.yaml"
    path.write_text(JOB)
    source = Source.of([str(path)])
    alone: list[Progress] = []
    assert explore(source, lives=30, seed=2, report=alone.append) is None
    together: list[Progress] = []
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert explore(source, lives=30, seed=2, executor=client.get_executor(), report=together.append) is None
    assert together == alone
