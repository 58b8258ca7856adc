"""What a Workload that waits for quota says of itself, and how long it waited."""

from __future__ import annotations

import pytest

from kubemini.api.resources import CLUSTER_QUEUES
from kubemini.api.trees import Tree
from kubemini.sim.cluster import SimCluster, simulate

SETUP = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: f}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: q}
spec:
  namespaceSelector: {}
  stopPolicy: Hold
  resourceGroups:
  - coveredResources: [cpu]
    flavors:
    - {name: f, resources: [{name: cpu, nominalQuota: '2'}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: l, namespace: default}
spec: {clusterQueue: q}
---
apiVersion: batch/v1
kind: Job
metadata: {name: j, namespace: default, labels: {kueue.x-k8s.io/queue-name: l}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: c, image: pause, resources: {requests: {cpu: '1'}}}]
"""


async def only_workload(cluster: SimCluster) -> Tree:
    """Return the one Workload that there is."""
    (workload,) = await cluster.list("workload")
    return workload


def test_nobody_tries_a_workload_of_a_stopped_queue() -> None:
    """The reason is there and no attempt is: a stopped ClusterQueue is not asked, so nothing tells of requests."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.apply(SETUP)
        await cluster.settle(5)
        status = (await only_workload(cluster))["status"]
        reserved = next(each for each in status["conditions"] if each["type"] == "QuotaReserved")
        assert (reserved["status"], reserved["reason"], reserved["message"]) == ("False", "Suspended", "ClusterQueue q is inactive")
        assert "resourceRequests" not in status

    simulate(scenario, seed=1, fleet="none")


@pytest.mark.parametrize("wait, told", [(0.3, 1), (0.9, 1), (1.2, 2), (41.6, 42)])
def test_a_wait_is_told_in_begun_seconds(wait: float, told: int) -> None:
    """It is counted from the moment of creation, whatever the fraction of the second was, and rounded up."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.apply(SETUP)
        await cluster.env.sleep(wait)
        await cluster.client.patch(CLUSTER_QUEUES, "q", {"spec": {"stopPolicy": "None"}})
        await cluster.settle(5)
        (event,) = [each for each in await cluster.list("event") if each["reason"] == "QuotaReserved"]
        assert f"wait time since queued was {told}s" in event["message"]

    simulate(scenario, seed=1, fleet="none")
