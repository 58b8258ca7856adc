"""The event recorder: what controllers say about objects, correlated as client-go does.

Three stages, as in client-go's EventCorrelator: more than ten similar events (same object, type, reason) within ten minutes are combined into one; an
identical event is counted up by a patch instead of created again; and each source may say 25 things about one object, then one more every
five minutes. Writing is asynchronous: `event` never waits.

`acted` speaks the newer dialect of events.k8s.io, as the scheduler does: an action, a time with microseconds, no counts, and a *series* for what is
said again about the same version of an object within six minutes. Mirrors client-go's ``tools/events``.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from dataclasses import dataclass

from kubemini.api.resources import EVENTS
from kubemini.api.trees import Tree
from kubemini.machinery.errors import ApiStatus, NotFound
from kubemini.runtime.client import Client
from kubemini.runtime.env import Env

BURST = 25
REFILL_SECONDS = 300.0
SIMILAR_LIMIT = 10
SIMILAR_WINDOW = 600.0
REMEMBERED = 4096
NAME_LIMIT = 253
SERIES_SECONDS = 360.0
"""How long a series goes on after its last event."""

_log = logging.getLogger("kubemini.events")


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


@dataclass(slots=True)
class _Similar:
    messages: dict[str, None]
    at: float


@dataclass(slots=True)
class _Written:
    name: str
    namespace: str
    count: int
    first: str
    last: float = 0.0


@dataclass(frozen=True, slots=True)
class _Said:
    """Something that waits to be written; with an action in the newer dialect."""

    regarding: Tree
    type: str
    reason: str
    message: str
    action: str = ""
    related: Tree | None = None


class Recorder:
    """Records events of one component (``source.component``)."""

    def __init__(self, client: Client, env: Env, component: str) -> None:
        self.component = component
        self._client = client
        self._env = env
        self._pending: deque[_Said] = deque()
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()
        self._similar: OrderedDict[tuple[str, ...], _Similar] = OrderedDict()
        self._written: OrderedDict[tuple[str, ...], _Written] = OrderedDict()
        self._task: asyncio.Task[None] | None = None

    def event(self, obj: Tree, type_: str, reason: str, message: str) -> None:
        """Say something about an object; `type_` is Normal or Warning."""
        self.about(reference_to(obj), type_, reason, message)

    def acted(self, obj: Tree, type_: str, reason: str, message: str, *, action: str, related: Tree | None = None) -> None:
        """Say in the newer dialect what was done about an object; `related` is another object that it has to do with."""
        self._put(_Said(reference_to(obj), type_, reason, message[:1024], action, reference_to(related) if related is not None else None))

    def about(self, regarding: Tree, type_: str, reason: str, message: str) -> None:
        """The same for an object reference."""
        if not self._admit(regarding):
            return
        self._put(_Said(regarding, type_, reason, message[:1024]))

    def _put(self, said: _Said) -> None:
        self._pending.append(said)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._flush())

    def _admit(self, regarding: Tree) -> bool:
        now = self._env.now()
        uid = regarding.get("uid") or regarding["name"]
        bucket = self._buckets.get(uid)
        if bucket is None:
            bucket = self._buckets[uid] = _Bucket(float(BURST), now)
            if len(self._buckets) > REMEMBERED:
                self._buckets.popitem(last=False)
        bucket.tokens = min(float(BURST), bucket.tokens + (now - bucket.at) / REFILL_SECONDS)
        bucket.at = now
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True

    async def _flush(self) -> None:
        while self._pending:
            said = self._pending.popleft()
            try:
                if said.action:
                    await self._write_acted(said)
                else:
                    await self._write(said.regarding, said.type, said.reason, said.message)
            except ApiStatus as refused:
                _log.debug("event %s about %s was refused: %s", said.reason, said.regarding["name"], refused)
            if len(self._pending) % 64 == 0:
                await asyncio.sleep(0)
        self._task = None

    async def _write(self, regarding: Tree, type_: str, reason: str, message: str) -> None:
        message = self._combined(regarding, type_, reason, message)
        uid = regarding.get("uid") or regarding["name"]
        key = (uid, type_, reason, message)
        now = self._env.stamp()
        written = self._written.get(key)
        if written is not None:
            written.count += 1
            try:
                await self._client.patch(
                    EVENTS, written.name, {"count": written.count, "lastTimestamp": now, "message": message}, namespace=written.namespace
                )
            except NotFound:
                del self._written[key]
            else:
                return
        namespace = regarding.get("namespace") or "default"
        name = self._name(regarding)
        await self._client.create(
            EVENTS,
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"name": name, "namespace": namespace},
                "involvedObject": regarding,
                "reason": reason,
                "message": message,
                "source": {"component": self.component},
                "firstTimestamp": now,
                "lastTimestamp": now,
                "count": 1,
                "type": type_,
                "eventTime": None,
                "reportingComponent": self.component,
                "reportingInstance": "",
            },
        )
        self._written[key] = _Written(name, namespace, 1, now)
        if len(self._written) > REMEMBERED:
            self._written.popitem(last=False)

    async def _write_acted(self, said: _Said) -> None:
        regarding, related = said.regarding, said.related or {}
        key = (
            regarding.get("uid", ""),
            regarding.get("resourceVersion", ""),
            said.type,
            said.action,
            said.reason,
            related.get("uid", ""),
            said.message,
        )
        now = self._env.now()
        written = self._written.get(key)
        if written is not None and now - written.last <= SERIES_SECONDS:
            written.count += 1
            written.last = now
            series = {"count": written.count, "lastObservedTime": self._env.stamp_micro()}
            try:
                await self._client.patch(EVENTS, written.name, {"series": series}, namespace=written.namespace)
            except NotFound:
                del self._written[key]
            else:
                return
        namespace = regarding.get("namespace") or "default"
        name = self._name(regarding)
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": regarding,
            "reason": said.reason,
            "message": said.message,
            "source": {},
            "firstTimestamp": None,
            "lastTimestamp": None,
            "type": said.type,
            "eventTime": self._env.stamp_micro(),
            "action": said.action,
            "reportingComponent": self.component,
            "reportingInstance": f"{self.component}-kubemini",
        }
        if said.related is not None:
            event["related"] = said.related
        await self._client.create(EVENTS, event)
        self._written[key] = _Written(name, namespace, 1, "", now)
        if len(self._written) > REMEMBERED:
            self._written.popitem(last=False)

    def _name(self, regarding: Tree) -> str:
        """Return the name of a new event: the events of an object are listed in the order in which they came."""
        name = f"{regarding['name']}.{self._env.nanos():x}"
        return name if len(name) <= NAME_LIMIT else self._env.uid()

    def _combined(self, regarding: Tree, type_: str, reason: str, message: str) -> str:
        key = (regarding.get("uid") or regarding["name"], type_, reason)
        now = self._env.now()
        similar = self._similar.get(key)
        if similar is None or now - similar.at > SIMILAR_WINDOW:
            similar = self._similar[key] = _Similar({}, now)
            if len(self._similar) > REMEMBERED:
                self._similar.popitem(last=False)
        similar.at = now
        similar.messages[message] = None
        if len(similar.messages) <= SIMILAR_LIMIT:
            return message
        similar.messages.pop(next(iter(similar.messages)))
        return f"(combined from similar events): {message}"

    async def drained(self) -> None:
        """Return when everything said so far is written."""
        while self._task is not None:
            await asyncio.shield(self._task)


def reference_to(obj: Tree) -> Tree:
    """Return the reference to an object that an event carries."""
    meta = obj["metadata"]
    reference = {
        "kind": obj["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "apiVersion": obj["apiVersion"],
        "resourceVersion": meta["resourceVersion"],
    }
    if "namespace" in meta:
        reference["namespace"] = meta["namespace"]
    return reference
