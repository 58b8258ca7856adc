"""ProvisioningRequests come to the same end whenever Kueue or the autoscaler is killed, and whatever the network does: one try follows the other, nothing is left."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kubemini.api.trees import Tree
from kubemini.inprocess import InProcessClient
from kubemini.runtime.client import Client
from kubemini.server.options import Caller
from kubemini.sim.cluster import SimCluster
from kubemini.sim.faults import Faults, FaultyClient
from kubemini.sim.loop import run
from tests.unit.kueue.test_lives import CONTROLLERS, condition, node
from tests.unit.kueue.test_provisioning import asking, provisioned_queues

INTERRUPTED = ("kueue-provisioning-", "cluster-autoscaler")
SLOW = Faults(watch_delay=0.3, request_delay=0.05)
BAD = Faults(watch_delay=1.0, request_delay=0.1, lost_before=0.1, lost_after=0.1, conflict=0.1)


class Killed(SimCluster):
    """A cluster that kills the process of a controller of ours before or after its n-th way to the server or back."""

    def __init__(self, at: int, faults: Faults, **more: Any) -> None:
        self.at = at
        self.moments = 0
        self.running: list[asyncio.Task[None]] = []
        super().__init__(faults=faults, controllers=(*CONTROLLERS, "cluster-autoscaler"), fleet="none", **more)

    def controller_client(self, process: str) -> Client:
        """Count the ways of every request."""
        return _Counted(InProcessClient(self.server, Caller(user=f"system:{process}", agent=process)), self, process)

    async def moment(self, process: str) -> None:
        """Let one pass."""
        task = asyncio.current_task()
        if task is None or not task.get_name().startswith(INTERRUPTED):
            return
        self.moments += 1
        if self.moments == self.at:
            self.running.append(self.loop.create_task(self.restart(process)))
            await self.loop.create_future()


class _Counted(FaultyClient):
    def __init__(self, inner: Client, cluster: Killed, process: str) -> None:
        super().__init__(inner, cluster.faults, cluster.env)
        self._cluster, self._process = cluster, process

    async def _way(self) -> None:
        await super()._way()
        await self._cluster.moment(self._process)


def life(at: int, faults: Faults, seed: int = 0) -> int:
    """Play a Workload whose first request fails and whose second one is provisioned; check how it ends. Return how many moments there were."""

    async def main() -> int:
        async with Killed(at, faults, seed=seed) as cluster:
            await node(cluster)
            await cluster.apply([*provisioned_queues(), asking("failed,provisioned")])
            await cluster.settle(300)
            assert not cluster.failures, cluster.failures
            (workload,) = await cluster.list("workload.kueue.x-k8s.io")
            assert condition(workload, "Admitted")[0] == "True"
            (check,) = workload["status"]["admissionChecks"]
            assert (check["state"], check["retryCount"]) == ("Ready", 1)
            (request,) = await cluster.list("provisioningrequest")
            assert request["metadata"]["name"] == f"{workload['metadata']['name']}-prov-2"
            (template,) = await cluster.list("podtemplate")
            assert [each["uid"] for each in template["metadata"]["ownerReferences"]] == [request["metadata"]["uid"]]
            await end(cluster, workload)
            return cluster.moments

    async def end(cluster: SimCluster, workload: Tree) -> None:
        await cluster.patch(f"workload.kueue.x-k8s.io/{workload['metadata']['name']}", {"spec": {"active": False}})
        await cluster.settle(300)
        assert [await cluster.list(kind) for kind in ("provisioningrequest", "podtemplate", "pod")] == [[], [], []]

    return run(main(), seed=seed)


def test_killed_at_every_moment() -> None:
    """A kill before or after any request of the two controllers changes nothing about the end."""
    moments = life(0, SLOW)
    assert moments > 20
    for at in range(1, moments + 1):
        life(at, SLOW)


@pytest.mark.parametrize("seed", range(6))
def test_a_bad_network(seed: int) -> None:
    """Late events, lost requests and answers, and conflicts that are none change nothing about the end."""
    life(0, BAD, seed)


LATE = Faults(watch_delay=3.0, request_delay=0.05)


def late(seed: int, scenario: Callable[[SimCluster], Awaitable[None]]) -> None:
    """Play a scenario on a cluster whose controllers hear of everything late."""

    async def main() -> None:
        async with Killed(0, LATE, seed=seed) as cluster:
            await node(cluster)
            trace = cluster.trace()
            await scenario(cluster)
            assert not cluster.failures, cluster.failures
            made = [line.split()[3] for line in trace.lines if line.split()[2] == b"create"]
            assert made.count(b"podtemplates") == made.count(b"provisioningrequests.autoscaling.x-k8s.io") == 2

    run(main(), seed=seed)


@pytest.mark.parametrize("seed", range(8))
def test_a_try_does_not_live_on_the_request_of_the_one_before(seed: int) -> None:
    """A Workload that comes back while the cache still shows the request of its last try is given a new one, which is there as long as it is admitted."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.apply([*provisioned_queues(), asking("provisioned")])
        await cluster.settle(60)
        (before,) = await cluster.list("provisioningrequest")
        (workload,) = await cluster.list("workload.kueue.x-k8s.io")
        for active in (False, True):
            await cluster.patch(f"workload.kueue.x-k8s.io/{workload['metadata']['name']}", {"spec": {"active": active}})
            await cluster.wait(f"workload.kueue.x-k8s.io/{workload['metadata']['name']}", f"condition=QuotaReserved={active}")
        await cluster.settle(300)
        (workload,) = await cluster.list("workload.kueue.x-k8s.io")
        (after,) = await cluster.list("provisioningrequest")
        assert condition(workload, "Admitted")[0] == "True"
        assert after["metadata"]["uid"] != before["metadata"]["uid"]
        (template,) = await cluster.list("podtemplate")
        assert [each["uid"] for each in template["metadata"]["ownerReferences"]] == [after["metadata"]["uid"]]

    late(seed, scenario)


@pytest.mark.parametrize("seed", range(8))
def test_a_new_request_has_new_templates(seed: int) -> None:
    """A request that takes the name of one before it does not take templates that are about to be collected with that one, and none is made twice."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.apply([*provisioned_queues(), asking("pending")])
        await cluster.settle(60)
        await cluster.patch("provisioningrequestconfig/cfg", {"spec": {"parameters": {"kubemini.dev/provisioning": "provisioned"}}})
        await cluster.settle(300)
        (after,) = await cluster.list("provisioningrequest")
        (template,) = await cluster.list("podtemplate")
        assert [each["uid"] for each in template["metadata"]["ownerReferences"]] == [after["metadata"]["uid"]]
        (workload,) = await cluster.list("workload.kueue.x-k8s.io")
        assert condition(workload, "Admitted")[0] == "True"

    late(seed, scenario)
