"""Faults at the seams between controllers and the API: what goes wrong in a run, as a short explicit plan.

A plan and a seed name a run. Rates are probabilities per request, drawn from the environment's seeded source; delays are upper bounds in virtual
seconds of uniformly drawn ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Generator, Sequence
from dataclasses import dataclass
from types import coroutine
from typing import Any

from kubemini.api.resources import Resource
from kubemini.api.trees import Tree
from kubemini.machinery.errors import ApiStatus, Conflict, InternalError
from kubemini.runtime.client import Client, Sink, Subscription
from kubemini.runtime.env import Env


@dataclass(frozen=True, slots=True)
class Faults:
    """What the controllers' connections suffer. The default is a fast, perfect network."""

    watch_delay: float = 0.0
    """Seconds that a watch event may take to reach an informer (order within one informer is kept)."""
    request_delay: float = 0.0
    """Seconds that a request may take on its way, and its answer on the way back."""
    lost_before: float = 0.0
    """Probability that a write fails before it took effect."""
    lost_after: float = 0.0
    """Probability that a write takes effect but its answer is lost."""
    conflict: float = 0.0
    """Probability that an update is answered with a conflict although there is none."""


PERFECT = Faults()


@coroutine
def _turn() -> Generator[None, None, None]:
    """Let others run once, as ``asyncio.sleep(0)`` does with two coroutines more."""
    yield


class LostRequest(InternalError):
    """The connection broke: the writer cannot know whether its write took effect."""

    def __init__(self) -> None:
        super().__init__("the connection to the server was lost")


class FaultyClient:
    """A client over another one, with the faults of a plan in between. Every request is an await point: other tasks run in the middle of a reconcile."""

    def __init__(self, inner: Client, faults: Faults, env: Env) -> None:
        self._inner = inner
        self.faults = faults
        self._env = env

    def _way(self) -> Awaitable[None]:
        """Return what a request or its answer waits for: at least one turn of the loop."""
        delay = self.faults.request_delay
        return self._env.sleep(self._env.random.uniform(0, delay)) if delay else _turn()

    def _happens(self, probability: float) -> bool:
        return probability > 0 and self._env.random.random() < probability

    async def _read(self, verb: str, *args: Any, **more: Any) -> Any:
        await self._way()
        return await getattr(self._inner, verb)(*args, **more)

    async def _write(self, verb: str, resource: Resource, *args: Any, **more: Any) -> Any:
        await self._way()
        faults = self.faults
        if faults.lost_before and self._happens(faults.lost_before):
            raise LostRequest
        if faults.conflict and verb.startswith("update") and self._happens(faults.conflict):
            raise Conflict.modified(resource.plural, resource.group, args[0]["metadata"]["name"])
        try:
            answer = await getattr(self._inner, verb)(resource, *args, **more)
        except ApiStatus:
            await self._way()
            raise
        await self._way()
        if self.faults.lost_after and self._happens(self.faults.lost_after):
            raise LostRequest
        return answer

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Tree:
        """See `Client.get`."""
        found: Tree = await self._read("get", resource, name, namespace)
        return found

    async def list(self, resource: Resource, namespace: str = "", *, label_selector: str = "", field_selector: str = "") -> Sequence[Tree]:
        """See `Client.list`."""
        found: Sequence[Tree] = await self._read("list", resource, namespace, label_selector=label_selector, field_selector=field_selector)
        return found

    async def create(self, resource: Resource, obj: Tree, **more: Any) -> Tree:
        """See `Client.create`."""
        made: Tree = await self._write("create", resource, obj, **more)
        return made

    async def update(self, resource: Resource, obj: Tree, **more: Any) -> Tree:
        """See `Client.update`."""
        made: Tree = await self._write("update", resource, obj, **more)
        return made

    async def update_status(self, resource: Resource, obj: Tree, **more: Any) -> Tree:
        """See `Client.update_status`."""
        made: Tree = await self._write("update_status", resource, obj, **more)
        return made

    async def patch(self, resource: Resource, name: str, patch: object, *, namespace: str = "", type: str = "merge", subresource: str = "") -> Tree:
        """See `Client.patch`."""
        made: Tree = await self._write("patch", resource, name, patch, namespace=namespace, type=type, subresource=subresource)
        return made

    async def apply(self, resource: Resource, obj: Tree, *, manager: str, force: bool = True, subresource: str = "") -> Tree:
        """See `Client.apply`."""
        made: Tree = await self._write("apply", resource, obj, manager=manager, force=force, subresource=subresource)
        return made

    async def delete(self, resource: Resource, name: str, **more: Any) -> None:
        """See `Client.delete`."""
        await self._write("delete", resource, name, **more)

    async def delete_collection(self, resource: Resource, namespace: str = "", **more: Any) -> None:
        """See `Client.delete_collection`."""
        await self._write("delete_collection", resource, namespace, **more)

    async def act(self, resource: Resource, name: str, subresource: str, body: Tree, *, namespace: str = "") -> Tree:
        """See `Client.act`."""
        made: Tree = await self._write("act", resource, name, subresource, body, namespace=namespace)
        return made

    async def scale(self, resource: Resource, name: str, namespace: str = "") -> Tree:
        """See `Client.scale`."""
        found: Tree = await self._read("scale", resource, name, namespace)
        return found

    def resources(self) -> Sequence[Resource]:
        """See `Client.resources`."""
        return self._inner.resources()

    def watch(self, resource: Resource, sink: Sink) -> Subscription:
        """See `Client.watch`; each event is late by its own drawn delay, order kept."""
        return self._inner.watch(resource, _LateSink(sink, self) if self.faults.watch_delay else sink)


class _LateSink:
    """Hands events on later, in order."""

    def __init__(self, sink: Sink, client: FaultyClient) -> None:
        self._sink = sink
        self._client = client
        self._free_at = 0.0
        self._line: deque[tuple[Any, tuple[Any, ...]]] = deque()

    def _later(self, call: Any, *args: Any) -> None:
        import asyncio

        client = self._client
        loop = asyncio.get_running_loop()
        delay = client._env.random.uniform(0, client.faults.watch_delay)  # noqa: SLF001  one seam in two classes
        self._free_at = max(self._free_at, loop.time() + delay)
        # Several may be due at one moment, and the loop runs those in any order: each takes the oldest
        self._line.append((call, args))
        loop.call_at(self._free_at, self._deliver)

    def _deliver(self) -> None:
        call, args = self._line.popleft()
        call(*args)

    def replace(self, objects: Sequence[Tree]) -> None:
        """Hand a snapshot on later."""
        self._later(self._sink.replace, objects)

    def change(self, type_: str, obj: Tree) -> None:
        """Hand a change on later."""
        self._later(self._sink.change, type_, obj)
