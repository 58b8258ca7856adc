"""The manager: one "process" of controllers with its own informers, recorder and work queues.

Stopping a manager and building a new one is what a controller restart is: caches, queues, expectations and back-off are
gone, objects stay.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

from kubemini.machinery.errors import ApiStatus, Conflict
from kubemini.runtime.client import Client
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.env import Env
from kubemini.runtime.gates import FeatureGates
from kubemini.runtime.informer import Informers
from kubemini.runtime.recorder import Recorder
from kubemini.runtime.telemetry import Histogram
from kubemini.runtime.workqueue import QueueShutDown

SLICE = 0.002
"""Seconds of reconciling after which a worker lets others (HTTP requests, watches) run."""
START_RETRY = 1.0
"""Seconds after which a controller that could not take its first look tries again."""

# fmt: off
BOUNDS = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
    1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0,
)
# fmt: on
"""Upper bounds of the buckets for durations of reconciles, in seconds (controller-runtime's)."""
OUTCOMES = ("success", "error", "requeue_after", "requeue")
"""Results of reconciles as controller-runtime counts them: done, failed, to be taken up again after some time, and at once (here never). Two controllers never share a name."""

_log = logging.getLogger("kubemini.controllers")


class Manager:
    """Runs controllers. `slice_seconds` 0 yields after every reconcile (the simulation)."""

    def __init__(
        self,
        name: str,
        controllers: Sequence[Controller],
        *,
        client: Client,
        env: Env,
        gates: FeatureGates | None = None,
        config: dict[str, Any] | None = None,
        slice_seconds: float = SLICE,
        on_error: Callable[[Controller, str, Exception], None] | None = None,
    ) -> None:
        self.name = name
        self.controllers = list(controllers)
        self.client = client
        self.env = env
        self.informers = Informers()
        self.recorders: dict[str, Recorder] = {}
        self._gates = gates or FeatureGates()
        self._config = config or {}
        self._slice = slice_seconds
        self._on_error = on_error
        self._tasks: list[asyncio.Task[None]] = []
        self.outcomes: dict[str, dict[str, int]] = {each.name: dict.fromkeys(OUTCOMES, 0) for each in self.controllers}
        """How reconciles ended, by controller: see `OUTCOMES`."""
        self.durations = Histogram(
            "controller_runtime_reconcile_time_seconds", "Length of time per reconciliation per controller", ("controller",), BOUNDS
        )
        """How long they took."""
        for controller in self.controllers:
            component = getattr(controller, "component", None) or f"{controller.name}-controller"
            recorder = self.recorders.setdefault(component, Recorder(client, env, component))
            controller.setup(Context(env, client, self.informers, recorder, self._gates, self._config))

    async def start(self) -> None:
        """Start the informers, wait until every cache is in sync, then start the workers."""
        self.informers.start(self.client)
        await self.informers.wait_synced()
        for controller in self.controllers:
            await self._begin(controller)
        loop = asyncio.get_running_loop()
        for controller in self.controllers:
            for number in range(controller.workers):
                self._tasks.append(loop.create_task(self._work(controller), name=f"{controller.name}-{number}"))

    async def _begin(self, controller: Controller) -> None:
        """Let a controller take its first look, again and again until the API is there for it: a process that dies of it is started anew too."""
        while True:
            try:
                return await controller.started()
            except ApiStatus as refused:
                _log.debug("%s could not start: %s", controller.name, refused)
                await self.env.sleep(START_RETRY)

    async def _work(self, controller: Controller) -> None:
        queue = controller.queue
        loop = asyncio.get_running_loop()
        outcomes = self.outcomes[controller.name]
        name, measure = controller.name, self.durations.observe
        began = ended = loop.time()
        while True:
            key = queue.try_get()
            if key is None:
                try:
                    key = await queue.get()
                except QueueShutDown:
                    return
                began = ended = loop.time()
            try:
                again = await controller.reconcile(key)
            except Conflict:
                outcomes["error"] += 1
                queue.add_rate_limited(key)
            except ApiStatus as refused:
                outcomes["error"] += 1
                _log.debug("%s %s: %s", controller.name, key, refused)
                queue.add_rate_limited(key)
            except Exception as problem:  # noqa: BLE001  one broken reconcile must not end the loop; it is reported
                outcomes["error"] += 1
                _log.exception("%s %s failed", controller.name, key)
                if self._on_error is not None:
                    self._on_error(controller, key, problem)
                queue.add_rate_limited(key)
            else:
                queue.forget(key)
                if again is None:
                    outcomes["success"] += 1
                else:
                    outcomes["requeue_after"] += 1
                    queue.add_after(key, again)
            finally:
                queue.done(key)
            now = loop.time()
            measure(now - ended, name)
            ended = now
            if now - began >= self._slice:
                await asyncio.sleep(0)
                began = ended = loop.time()

    async def stop(self) -> None:
        """Stop at once, wherever the controllers are: as a crash does."""
        self.informers.stop()
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        for controller in self.controllers:
            controller.queue.shut_down()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def ready(self) -> bool:
        """Whether the workers run."""
        return bool(self._tasks) or not self.controllers
