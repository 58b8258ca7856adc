"""Groups that are recreated when one of their pods goes."""

from __future__ import annotations

import pytest

from kubemini.api.resources import LEADER_WORKER_SETS, PODS
from kubemini.api.trees import Tree
from kubemini.sim.cluster import SimCluster, simulate
from kubemini.sim.faults import PERFECT, Faults

FLEET = [{"count": 2, "name": "n-{i}", "cpu": 64, "memory": "256Gi"}]


def lws(*, grace: int) -> Tree:
    """Return two groups of a leader and two workers."""
    spec = {"terminationGracePeriodSeconds": grace, "containers": [{"name": "c", "image": "pause:3.10"}]}
    template = {"size": 3, "restartPolicy": "RecreateGroupOnPodRestart", "workerTemplate": {"spec": spec}}
    meta = {"name": "web", "namespace": "default"}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": meta,
        "spec": {"replicas": 2, "leaderWorkerTemplate": template},
    }


@pytest.mark.parametrize("grace", [0, 1, 30])
@pytest.mark.parametrize("faults", [PERFECT, Faults(watch_delay=0.4)], ids=["calm", "late"])
def test_a_deleted_worker_takes_its_group_along(grace: int, faults: Faults) -> None:
    """Also one that is gone before the controller looks, as a pod without a grace period is; the other group stays as it is."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(LEADER_WORKER_SETS, lws(grace=grace))
        await cluster.settle(60)
        before = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in await cluster.list("pod")}
        assert len(before) == 6
        await cluster.client.delete(PODS, "web-0-2", namespace="default")
        await cluster.env.sleep(120)
        after = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in await cluster.list("pod")}
        assert after.keys() == before.keys()
        assert {name for name in before if before[name] == after[name]} == {"web-1", "web-1-1", "web-1-2"}

    simulate(scenario, seed=1, faults=faults, fleet=FLEET)
