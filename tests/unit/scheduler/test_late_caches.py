"""The scheduler when its caches are late: what refuses a binding is newer than all that it knows."""

from itertools import pairwise
from typing import Any

import pytest

from kubemini.api.resources import NODES, PODS
from kubemini.controllers.scheduler.waiting import Waiting
from kubemini.sim.cluster import SimCluster, simulate
from kubemini.sim.faults import Faults


def test_a_refused_binding_is_not_tried_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod that went while the scheduler still sees it fails once, and again only after its back-off, not in a loop."""
    times: list[float] = []
    failed = Waiting.failed

    def watched(self: Waiting, key: str, now: float, *rest: Any) -> None:
        times.append(now)
        # Ends a loop in which no time goes by
        assert times.count(now) < 3
        failed(self, key, now, *rest)

    monkeypatch.setattr(Waiting, "failed", watched)

    async def scenario(cluster: SimCluster) -> None:
        await cluster.settle()
        await cluster.client.create(NODES, {"metadata": {"name": "n-0"}, "spec": {}})
        await cluster.settle()
        spec = {"terminationGracePeriodSeconds": 0, "containers": [{"name": "m", "image": "x"}]}
        await cluster.client.create(PODS, {"metadata": {"name": "p", "namespace": "default"}, "spec": spec})
        await cluster.client.delete(PODS, "p", namespace="default")
        assert await cluster.settle()

    simulate(scenario, seed=2, faults=Faults(watch_delay=5.0), controllers="service-accounts,nodes,kubelet,scheduler")
    assert times
    assert all(later - earlier >= 1 for earlier, later in pairwise(times))
