"""The controller contract, and what a controller is given.

A controller is level-triggered: `reconcile(key)` looks at the world as its caches show it and takes the steps that
bring it nearer to the wish; it is called again after any change. It must be idempotent and restartable: all state is in objects.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kubemini.api.resources import Resource
from kubemini.api.trees import Tree
from kubemini.machinery.aggregation import AggregatedApi
from kubemini.runtime.client import Client
from kubemini.runtime.env import Env
from kubemini.runtime.gates import FeatureGates
from kubemini.runtime.informer import Informer, Informers
from kubemini.runtime.keys import controller_of
from kubemini.runtime.recorder import Recorder
from kubemini.runtime.telemetry import Families
from kubemini.runtime.workqueue import WorkQueue


@dataclass(slots=True)
class Context:
    """Everything a controller may touch."""

    env: Env
    client: Client
    informers: Informers
    recorder: Recorder
    gates: FeatureGates
    config: dict[str, Any] = field(default_factory=dict)
    """Settings by controller name (Kueue's Configuration under ``kueue``)."""

    def informer(self, resource: Resource) -> Informer:
        """Return the shared informer of a resource."""
        return self.informers.of(resource)


class Controller:
    """One control loop. Subclass, set `name`, wire informers in `setup`, and write `reconcile`."""

    name = ""
    measured_as = ""
    """Upstream's name for it, or for its work queue, on ``/metrics``, where that is another."""
    workers = 1
    families: Families = ()
    """What it counts about itself for ``/metrics``."""
    apis: tuple[AggregatedApi, ...] = ()
    """What it serves of its own."""

    def __init__(self) -> None:
        self.queue: WorkQueue[str] = WorkQueue()

    def setup(self, ctx: Context) -> None:
        """Take the context and register informers, indexes and handlers. Called once, before anything runs."""
        raise NotImplementedError

    async def reconcile(self, key: str) -> float | None:
        """Bring one object nearer to its wish; return seconds after which to look again, or None. Raise to be called again with back-off."""
        raise NotImplementedError

    async def started(self) -> None:
        """Called once when every cache is in sync, before the first reconcile."""

    def decision_about(self, resource: Resource, key: str) -> Tree | None:
        """Return how its last decision about an object came out, and why; None for kinds that it does not decide about and objects that it has not met."""
        return None

    def enqueue_owner(self, resource: Resource) -> Any:
        """Return a change handler that enqueues the controlling owner (of `resource`'s group and kind) of what changed."""
        kind, group, add = resource.kind, resource.group, self.queue.add

        def handler(old: Tree | None, new: Tree | None) -> None:
            for obj in (new, old):
                if obj is None:
                    continue
                owner = controller_of(obj)
                if owner is not None and owner["kind"] == kind and owner["apiVersion"].partition("/")[0] == (group or owner["apiVersion"]):
                    namespace = obj["metadata"].get("namespace")
                    add(f"{namespace}/{owner['name']}" if namespace else owner["name"])
                    if obj is new and (old is None or old["metadata"].get("ownerReferences") is obj["metadata"].get("ownerReferences")):
                        return

        return handler
