"""What happens to a cluster when, for properties that play plans."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from kubemini.machinery.errors import ApiStatus
from kubemini.sim.cluster import SimCluster
from kubemini.sim.faults import Faults

ROUGH = Faults(watch_delay=0.3, request_delay=0.03, lost_before=0.02, lost_after=0.02, conflict=0.03)
PROCESSES = ("kube-scheduler", "kubelet", "kube-controller-manager")
Step = Callable[[SimCluster, str, int], Awaitable[None]]


async def take(cluster: SimCluster, began: float, steps: Iterable[tuple[int, str, int]], step: Step) -> None:
    """Take each step (seconds after `began`, what, which one) at its time; one that the API refuses did not happen."""
    for at, what, which in sorted(steps):
        await asyncio.sleep(max(began + at - cluster.loop.time(), 0.0))
        try:
            await step(cluster, what, which)
        except ApiStatus:
            continue
