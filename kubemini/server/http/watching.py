"""Watch streams: newline-delimited events over a chunked response, or one event per WebSocket message."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import orjson
from aiohttp import WSMsgType, web

from kubemini.api.trees import Tree
from kubemini.machinery.errors import ApiStatus, Expired
from kubemini.server.http import answers, forms
from kubemini.server.http.metrics import RequestMetrics
from kubemini.server.http.negotiation import Accepted
from kubemini.server.options import ListOptions
from kubemini.server.reading import WatchStart
from kubemini.server.registry import Served
from kubemini.server.requests import ApiServer
from kubemini.store import Compacted, Record, WatchEvent

BOOKMARK_SECONDS = 60.0
BATCH = 500
"""Commits that one write to a client carries at most."""

_OPEN = {
    "ADDED": b'{"type":"ADDED","object":',
    "MODIFIED": b'{"type":"MODIFIED","object":',
    "DELETED": b'{"type":"DELETED","object":',
    "BOOKMARK": b'{"type":"BOOKMARK","object":',
    "ERROR": b'{"type":"ERROR","object":',
}
_CLOSE = b"}\n"


@dataclass(slots=True)
class _Encoder:
    """Encodes events in one form. Plain events share the record's bytes between all watchers."""

    served: Served
    accept: Accepted
    include: str
    now: Callable[[], float]
    columns_sent: bool = field(default=False)

    def event(self, type_: str, record: Record) -> bytes:
        """Return one event line."""
        if not self.accept.as_:
            return _OPEN[type_] + forms.encode(record, self.served) + _CLOSE
        return _OPEN[type_] + orjson.dumps(self._shown(self.served.from_storage(record.obj))) + _CLOSE

    def _shown(self, obj: Tree) -> Tree:
        version = self.accept.version
        if self.accept.as_ != "Table":
            return forms.partial(obj, version)
        meta = {"resourceVersion": obj["metadata"]["resourceVersion"]}
        body = forms.table_body([obj], self.served, meta, include=self.include, now=self.now(), version=version, with_columns=not self.columns_sent)
        self.columns_sent = True
        return body

    def bookmark(self, revision: int, *, initial_end: bool = False) -> bytes:
        """Return a BOOKMARK line."""
        obj = forms.bookmark(self.served.kind, self.served.api_version, revision, initial_end=initial_end)
        if self.accept.as_ == "Table":
            row = {"cells": [None] * len(forms.table_of(self.served).columns), "object": forms.partial(obj, self.accept.version)}
            meta = {"resourceVersion": str(revision)}
            obj = {"kind": "Table", "apiVersion": f"meta.k8s.io/{self.accept.version}", "metadata": meta, "columnDefinitions": None, "rows": [row]}
        elif self.accept.as_:
            obj = forms.partial(obj, self.accept.version)
        return _OPEN["BOOKMARK"] + orjson.dumps(obj) + _CLOSE


def error_line(problem: ApiStatus) -> bytes:
    """Return an ERROR event."""
    return _OPEN["ERROR"] + orjson.dumps(problem.to_status()) + _CLOSE


def opened(server: ApiServer, served: Served, namespace: str, options: ListOptions) -> WatchStart | Expired:
    """Open a watch before anything is answered: what is wrong with the request is an HTTP error, a lost history an ERROR event. Raise `Invalid`, `BadRequest`."""
    try:
        return server.watch(served, namespace, options)
    except Expired as gone:
        return gone


Send = Callable[[list[bytes]], Awaitable[None]]


class Stream:
    """The events of one watch, until it times out."""

    def __init__(
        self,
        server: ApiServer,
        served: Served,
        start: WatchStart | Expired,
        options: ListOptions,
        accept: Accepted,
        include: str,
        timeout: float,
        metrics: RequestMetrics,
    ) -> None:
        self._server = server
        self._served = served
        self._start = start
        self._options = options
        self._encoder = _Encoder(served, accept, include, server.env.now)
        self._timeout = timeout
        self._metrics = metrics
        self._stopped = False

    def stop(self) -> None:
        """End the stream: the client sees its regular end."""
        self._stopped = True
        if not isinstance(self._start, Expired):
            self._start.cursor.close()

    async def run(self, send: Send) -> None:
        """Send the events; `send` takes the lines of one flush."""
        start = self._start
        if isinstance(start, Expired):
            await send([error_line(start)])
            return
        try:
            await self._initial(start, send)
            await self._follow(start, send)
        except Compacted:
            oldest = self._server.store.table(self._served.kind.storage).log.compacted + 1
            await send([error_line(Expired(f"too old resource version: {start.cursor.revision} ({oldest})"))])
        finally:
            start.cursor.close()

    async def _initial(self, start: WatchStart, send: Send) -> None:
        records, encoder = start.initial, self._encoder
        for position in range(0, len(records), BATCH):
            batch = records[position : position + BATCH]
            self._count(len(batch))
            await send([encoder.event("ADDED", record) for record in batch])
        if start.mark_initial:
            await send([encoder.bookmark(start.revision, initial_end=True)])

    async def _follow(self, start: WatchStart, send: Send) -> None:
        loop = asyncio.get_running_loop()
        cursor, encoder, bookmarks = start.cursor, self._encoder, self._options.bookmarks
        end = loop.time() + self._timeout
        bookmark_at = loop.time() + BOOKMARK_SECONDS if self._timeout > BOOKMARK_SECONDS else end
        while not self._stopped:
            events = cursor.poll(BATCH)
            if events:
                self._count(len(events))
                await send([_line(encoder, event) for event in events])
                continue
            if cursor.ready:
                await asyncio.sleep(0)
                continue
            now = loop.time()
            if now >= end:
                return
            if bookmarks and now >= bookmark_at:
                await send([encoder.bookmark(cursor.revision)])
                bookmark_at = now + BOOKMARK_SECONDS
            pause = min(end, bookmark_at if bookmarks and bookmark_at > now else end) - now
            try:
                async with asyncio.timeout(pause):
                    await cursor.wait()
            except TimeoutError:
                pass

    def _count(self, events: int) -> None:
        kind = self._served.kind
        self._metrics.delivered(kind.group, self._served.version.name, kind.kind, events)


def _line(encoder: _Encoder, event: WatchEvent) -> bytes:
    change = event.change
    if encoder.accept.as_ or change is None or not encoder.served.stored_as_is:
        return encoder.event(event.type, event.record)
    frames = change.frames
    if frames is None:
        frames = change.frames = {}
    line = frames.get(event.type)
    if line is None:
        line = frames[event.type] = encoder.event(event.type, event.record)
    return line


async def respond_http(request: web.BaseRequest, stream: Stream, warnings: Sequence[str] = ()) -> web.StreamResponse:
    """Answer a watch over a chunked response."""
    response = web.StreamResponse(headers={"Content-Type": "application/json", "Cache-Control": "no-cache, private"})
    answers.warn(response, warnings)
    response.enable_chunked_encoding()
    await response.prepare(request)
    # The headers must be on the wire before the first event: clients wait for them
    await response.write(b"")

    async def send(lines: list[bytes]) -> None:
        await response.write(b"".join(lines))

    try:
        await stream.run(send)
        await response.write_eof()
    except (ConnectionError, asyncio.CancelledError):
        pass
    return response


async def respond_websocket(request: web.BaseRequest, stream: Stream) -> web.StreamResponse:
    """Answer a watch over a WebSocket: one event per text message."""
    socket = web.WebSocketResponse(autoping=True)
    await socket.prepare(request)

    async def send(lines: list[bytes]) -> None:
        for line in lines:
            await socket.send_str(line.rstrip(b"\n").decode())

    async def listen() -> None:
        async for message in socket:
            if message.type in (WSMsgType.CLOSE, WSMsgType.ERROR):
                break

    tasks = {asyncio.ensure_future(stream.run(send)), asyncio.ensure_future(listen())}
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:  # order-free: each ends on its own
            task.cancel()
    await socket.close()
    return socket
