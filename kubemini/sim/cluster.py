"""A whole cluster under virtual time: `SimCluster`, and `simulate`, which runs a scenario on it.

    def scenario(cluster): ...
    simulate(scenario, seed=7, faults=Faults(watch_delay=0.5))

Each upstream process has its own caches behind its own connection, so stale reads, conflicts and restarts are ordinary.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from kubemini.cluster import Cluster
from kubemini.inprocess import InProcessClient
from kubemini.runtime.client import Client
from kubemini.runtime.env import Env
from kubemini.server.options import Caller
from kubemini.sim.faults import PERFECT, Faults, FaultyClient
from kubemini.sim.loop import SimLoop, run
from kubemini.sim.trace import Trace

T = TypeVar("T")


class SimCluster(Cluster):
    """A cluster on a `SimLoop`. Arguments beside `faults` and `seed` are `Cluster`'s."""

    def __init__(self, *, seed: int = 0, faults: Faults = PERFECT, **more: Any) -> None:
        self.loop = _sim_loop()
        self.faults = faults
        super().__init__(env=Env.virtual(self.loop, seed), separate=True, **more)

    def controller_client(self, process: str) -> Client:
        """Put the plan's faults between a controller process and the server."""
        caller = Caller(user=f"system:{process}", agent=process)
        return FaultyClient(InProcessClient(self.server, caller), self.faults, self.env)

    def trace(self) -> Trace:
        """Record every commit from now on."""
        return Trace(self.store, self.env)

    async def settle(self, seconds: float = 3600.0) -> bool:
        """Let the cluster run until nothing will ever happen any more, at most for so many virtual seconds. Tell whether it came to rest."""
        loop = self.loop
        deadline = loop.time() + seconds
        while True:
            await loop.settled()
            due = loop.next_timer()
            if due == math.inf:
                return True
            if due > deadline:
                return False
            await asyncio.sleep(due - loop.time())


def _sim_loop() -> SimLoop:
    loop = asyncio.get_running_loop()
    if not isinstance(loop, SimLoop):
        raise TypeError("a SimCluster lives on a virtual-time loop: use kubemini.sim.simulate, or Cluster for real time")
    return loop


def simulate(scenario: Callable[[SimCluster], Awaitable[T]], *, seed: int = 0, faults: Faults = PERFECT, **cluster: Any) -> T:
    """Run a scenario on a fresh cluster under virtual time and return its result. Raise what it raises."""

    async def main() -> T:
        async with SimCluster(seed=seed, faults=faults, **cluster) as sim:
            result = await scenario(sim)
            if sim.failures:
                name, key, problem = sim.failures[0]
                raise AssertionError(f"controller {name} failed on {key}: {problem!r}") from problem
            return result

    return run(main(), seed=seed)
