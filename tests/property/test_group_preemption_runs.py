"""Groups of several priorities in a cluster that is too small for them, under faults: they preempt, and are preempted, as wholes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kubemini.api.resources import NODES, POD_GROUPS, PODS, PRIORITY_CLASSES
from kubemini.machinery.errors import ApiStatus
from kubemini.sim.cluster import SimCluster, simulate
from kubemini.sim.faults import PERFECT, Faults
from kubemini.testing.invariants import Checker
from kubemini.testing.invariants.pod_groups import pod_group_invariants
from kubemini.testing.invariants.scheduler import scheduler_invariants
from tests.property.timed_steps import ROUGH

Tree = dict[str, Any]
CONTROLLERS = ("namespaces", "service-accounts", "garbage-collector", "nodes", "scheduler", "kubelet")
GATES = {"GenericWorkload": True, "GangScheduling": True, "WorkloadAwarePreemption": True}
LEVELS = ("low", "mid", "high")


@dataclass(frozen=True)
class Band:
    """Pods that come together: a group, or (without a mode) as many single pods."""

    after: int
    """Seconds before they come."""
    size: int
    minimum: int
    priority: str
    mode: str
    cpu: int
    own: str
    """The priority of its pods themselves."""


BANDS = st.builds(
    Band,
    after=st.sampled_from((0, 0, 1, 5, 40)),
    size=st.integers(1, 4),
    minimum=st.integers(1, 3),
    priority=st.sampled_from(LEVELS),
    mode=st.sampled_from(("", "Pod", "PodGroup", "PodGroup")),
    cpu=st.integers(1, 4),
    own=st.sampled_from(LEVELS),
)


async def settled(cluster: SimCluster) -> dict[str, str]:
    """Let the cluster come to rest, and return each pod's node."""
    assert await cluster.settle(3600.0), "it never comes to rest"
    return {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in await cluster.client.list(PODS)}


async def come(cluster: SimCluster, number: int, band: Band) -> None:
    """Let a band come."""
    await asyncio.sleep(band.after)
    spec: Tree = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": str(band.cpu)}}}], "priorityClassName": band.own}
    if band.mode:
        minimum = min(band.minimum, band.size)
        wish: Tree = {"schedulingPolicy": {"gang": {"minCount": minimum}}, "priorityClassName": band.priority, "disruptionMode": band.mode}
        await cluster.client.create(POD_GROUPS, {"metadata": {"name": f"g-{number}", "namespace": "default"}, "spec": wish})
        spec["schedulingGroup"] = {"podGroupName": f"g-{number}"}
    for index in range(band.size):
        await cluster.client.create(PODS, {"metadata": {"name": f"p-{number}-{index}", "namespace": "default"}, "spec": spec})


def run_bands(bands: list[Band], seed: int, faults: Faults, restart: int = -1) -> int:
    """Play bands to rest with all promises checked, a scheduler killed before one of them; return how many commits were looked at."""

    async def scenario(cluster: SimCluster) -> int:
        lossless = not faults.lost_before
        whole = lossless and restart < 0
        checker = Checker(cluster.store, [*scheduler_invariants(lossless=lossless), *pod_group_invariants(lossless=whole)])
        await cluster.settle(60.0)
        for value, name in enumerate(LEVELS, 1):
            await cluster.client.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value * 10})
        for number in range(3):
            resources = {"cpu": "4", "memory": "16Gi", "pods": "8"}
            labels = {"kubernetes.io/hostname": f"n-{number}"}
            await cluster.client.create(NODES, {"metadata": {"name": f"n-{number}", "labels": labels}, "status": {"allocatable": resources}})
        for number, band in enumerate(bands):
            if number == restart:
                await cluster.restart("kube-scheduler")
            try:
                await come(cluster, number, band)
            except ApiStatus:
                continue
        before = await settled(cluster)
        checker.at_rest()
        # A scheduler that knows of no earlier failure tries everybody
        await cluster.restart("kube-scheduler")
        assert await settled(cluster) == before
        checker.at_rest()
        return checker.checked

    return simulate(scenario, seed=seed, faults=faults, controllers=CONTROLLERS, feature_gates=GATES)


@settings(max_examples=25)
@given(bands=st.lists(BANDS, min_size=1, max_size=6), seed=st.integers(0, 2**32 - 1))
def test_groups_preempt_as_wholes(bands: list[Band], seed: int) -> None:
    """Without faults every promise holds at every commit, it comes to rest, and a new scheduler finds nothing to do."""
    assert run_bands(bands, seed, PERFECT) > 10


@settings(max_examples=25)
@given(bands=st.lists(BANDS, min_size=1, max_size=6), seed=st.integers(0, 2**32 - 1), restart=st.integers(-1, 5))
def test_groups_preempt_under_faults(bands: list[Band], seed: int, restart: int) -> None:
    """With late watches, lost requests, conflicts and a killed scheduler it comes to rest as well, and nobody goes for one who is no more important."""
    assert run_bands(bands, seed, ROUGH, restart) > 10
