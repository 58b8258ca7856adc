"""The event recorder: what controllers say about objects, correlated as client-go does.

Three stages, as in client-go's EventCorrelator: of similar events (same object, type, reason) that follow one another within ten minutes, nine stand for
themselves and all further ones are combined into one; an identical event is counted up by a patch instead of created again; and each source may say
25 things about one object, then one more every five minutes. Writing is asynchronous: `event` never waits.

`acted` speaks the newer dialect of events.k8s.io, as the scheduler does: an action, a time with microseconds, no counts, and a *series* for what is
said again within six minutes about the same version of an object, for the same reason, with the same action: the words do not count, so of several
texts the first one stays. A series is written when it begins, every half hour, and when it ends. Mirrors client-go's ``tools/events``.
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
"""The first event that no longer stands for itself."""
SIMILAR_WINDOW = 600.0
REMEMBERED = 4096
NAME_LIMIT = 253
NOTE_LIMIT = 1024
"""How many bytes an event of the newer dialect may say."""
SERIES_SECONDS = 360.0
"""How long a series goes on after its last event."""
SERIES_REFRESH = 1800.0
"""Seconds between writes of a series that goes on."""

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
    """An event, and how often the like was said since."""

    name: str
    first: str
    count: int = 0


@dataclass(slots=True)
class _Series:
    """An event of the newer dialect, and how often the like was said."""

    name: str
    namespace: str
    last: float
    """When it was said last."""
    stamp: str = ""
    count: int = 1
    written: float = 0.0


@dataclass(slots=True)
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
        self._series: OrderedDict[tuple[str, ...], _Series] = OrderedDict()
        """From the one said longest ago to the last."""
        self._task: asyncio.Task[None] | None = None

    def event(self, obj: Tree, type_: str, reason: str, message: str) -> None:
        """Say something about an object; `type_` is Normal or Warning."""
        self.about(reference_to(obj), type_, reason, message)

    def acted(self, obj: Tree, type_: str, reason: str, message: str, *, action: str, related: Tree | None = None) -> None:
        """Say in the newer dialect what was done about an object; `related` is another object that it has to do with.

        The API refuses a text that is longer than `NOTE_LIMIT` bytes, and nobody tries again: it is not said at all.
        """
        if len(message) <= NOTE_LIMIT and (message.isascii() or len(message.encode()) <= NOTE_LIMIT):
            self._put(_Said(reference_to(obj), type_, reason, message, action, reference_to(related) if related is not None else None))

    def about(self, regarding: Tree, type_: str, reason: str, message: str) -> None:
        """The same for an object reference. In this dialect a text may be of any length."""
        self._put(_Said(regarding, type_, reason, message))

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
        about = (regarding.get("uid") or regarding["name"], type_, reason)
        combined = self._is_one_of_many(about, message)
        key = about if combined else (*about, regarding.get("fieldPath", ""), message)
        if combined:
            message = f"(combined from similar events): {message}"
        now = self._env.stamp()
        written = self._written.get(key)
        if written is None:
            written = self._written[key] = _Written(self._name(regarding), now)
            if len(self._written) > REMEMBERED:
                self._written.popitem(last=False)
        written.count += 1
        if not self._admit(regarding):
            return
        namespace = regarding.get("namespace") or "default"
        if written.count > 1:
            try:
                await self._client.patch(
                    EVENTS, written.name, {"count": written.count, "lastTimestamp": now, "message": message}, namespace=namespace
                )
            except NotFound:
                pass
            else:
                return
        await self._client.create(
            EVENTS,
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"name": written.name, "namespace": namespace},
                "involvedObject": regarding,
                "reason": reason,
                "message": message,
                "source": {"component": self.component},
                "firstTimestamp": written.first,
                "lastTimestamp": now,
                "count": written.count,
                "type": type_,
                "eventTime": None,
                "reportingComponent": "" if combined else self.component,
                "reportingInstance": "",
            },
            canonical=True,
        )

    def _is_one_of_many(self, about: tuple[str, ...], message: str) -> bool:
        """Tell whether an event is combined with those like it: too many texts came for one reason, none of them long after the one before."""
        now = self._env.now()
        similar = self._similar.get(about)
        if similar is None or now - similar.at > SIMILAR_WINDOW:
            similar = self._similar[about] = _Similar({}, now)
            if len(self._similar) > REMEMBERED:
                self._similar.popitem(last=False)
        similar.at = now
        similar.messages[message] = None
        if len(similar.messages) < SIMILAR_LIMIT:
            return False
        similar.messages.pop(next(iter(similar.messages)))
        return True

    async def _write_acted(self, said: _Said) -> None:
        regarding = said.regarding
        key = (said.type, said.action, said.reason, *_identity(regarding), *_identity(said.related or {}))
        now = self._env.now()
        while self._series and now - next(iter(self._series.values())).last > SERIES_SECONDS:
            await self._end_oldest_series(now)
        series = self._series.get(key)
        if series is not None:
            series.count += 1
            series.last, series.stamp = now, self._env.stamp_micro()
            self._series.move_to_end(key)
            if (series.count > 2 and now - series.written < SERIES_REFRESH) or await self._write_series(series, now):
                return
            del self._series[key]
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
        await self._client.create(EVENTS, event, canonical=True)
        self._series[key] = _Series(name, namespace, now)
        if len(self._series) > REMEMBERED:
            self._series.popitem(last=False)

    async def _end_oldest_series(self, now: float) -> None:
        """Forget what was not said for long, and write how often it was; done when something is said next."""
        _, series = self._series.popitem(last=False)
        if series.count > 2:
            await self._write_series(series, now)

    async def _write_series(self, series: _Series, now: float) -> bool:
        """Write a count. Tell whether the event is still there."""
        patch = {"series": {"count": series.count, "lastObservedTime": series.stamp}}
        series.written = now
        try:
            await self._client.patch(EVENTS, series.name, patch, namespace=series.namespace)
        except NotFound:
            return False
        return True

    def _name(self, regarding: Tree) -> str:
        """Return the name of a new event: the events of an object are listed in the order in which they came."""
        name = f"{regarding['name']}.{self._env.nanos():x}"
        return name if len(name) <= NAME_LIMIT else self._env.uid()

    async def drained(self) -> None:
        """Return when everything said so far is written."""
        while self._task is not None:
            await asyncio.shield(self._task)


def _identity(reference: Tree) -> tuple[str, str]:
    return reference.get("uid", ""), reference.get("resourceVersion", "")


def shortened(message: str) -> str:
    """Return a text that fits into an event, for those who see to it themselves."""
    return message if len(message) <= NOTE_LIMIT else f"{message[: NOTE_LIMIT - 4]} ..."


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
