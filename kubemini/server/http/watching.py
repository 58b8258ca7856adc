"""Watch streams: newline-delimited events over a chunked response, or one event per WebSocket message.

A `Feed` says what comes next. Over HTTP it is pushed by callbacks straight onto the transport: a commit that a thousand clients watch is encoded and framed
once, and costs each of them one write. A slow client is never waited for: what it has not taken stays in the log, and when the log forgets it, the client is
told 410.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import orjson
from aiohttp import HttpVersion11, WSMsgType, web

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
BACKLOG = 1 << 20
"""Bytes on their way to one client beyond which it gets no more until it has taken some."""
PAUSE = 0.02
"""Seconds after which a slow client is looked at again."""

SLICE = 0.002
"""Seconds of sending after which requests have their turn."""

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


class Feed:
    """What one watch has to send. Call `take` until `ready` is false, then wait for `on_ready`; once `over` nothing follows."""

    def __init__(
        self,
        server: ApiServer,
        served: Served,
        start: WatchStart | Expired,
        options: ListOptions,
        accept: Accepted,
        include: str,
        metrics: RequestMetrics,
    ) -> None:
        self._server = server
        self._served = served
        self._start = start
        self._encoder = _Encoder(served, accept, include, server.env.now)
        self._shared = not accept.as_ and served.stored_as_is
        self._metrics = metrics
        self._sent = 0
        self._unmarked = not isinstance(start, Expired) and start.mark_initial
        self.bookmarks = options.bookmarks
        self.over = False

    def take(self) -> list[bytes]:
        """Return the next events, each as one chunk of a chunked response; at most about `BATCH`."""
        start = self._start
        if isinstance(start, Expired):
            return self._end(start)
        if self._sent < len(start.initial):
            records = start.initial[self._sent : self._sent + BATCH]
            self._sent += len(records)
            self._count(len(records))
            return [_chunk(self._encoder.event("ADDED", record)) for record in records]
        if self._unmarked:
            self._unmarked = False
            return [_chunk(self._encoder.bookmark(start.revision, initial_end=True))]
        cursor = start.cursor
        try:
            events = cursor.poll(BATCH)
        except Compacted:
            oldest = self._server.store.table(self._served.kind.storage).log.compacted + 1
            return self._end(Expired(f"too old resource version: {cursor.revision} ({oldest})"))
        if not events:
            return []
        self._count(len(events))
        return [self._frame(event) for event in events]

    def _end(self, gone: Expired) -> list[bytes]:
        self.over = True
        return [_chunk(error_line(gone))]

    def _frame(self, event: WatchEvent) -> bytes:
        change = event.change
        if not self._shared or change is None:
            return _chunk(self._encoder.event(event.type, event.record))
        frames = change.frames
        if frames is None:
            frames = change.frames = {}
        frame = frames.get(event.type)
        if frame is None:
            frame = frames[event.type] = _chunk(self._encoder.event(event.type, event.record))
        return frame

    def bookmark(self) -> bytes:
        """Return a BOOKMARK at the revision up to which everything was taken, as one chunk."""
        start = self._start
        return b"" if isinstance(start, Expired) else _chunk(self._encoder.bookmark(start.cursor.revision))

    @property
    def ready(self) -> bool:
        """Whether `take` has something to look at."""
        start = self._start
        return isinstance(start, Expired) or self._sent < len(start.initial) or self._unmarked or start.cursor.ready

    def on_ready(self, callback: Callable[[], None]) -> None:
        """Have `callback` called once at the next commit."""
        if not isinstance(self._start, Expired):
            self._start.cursor.on_ready(callback)

    def close(self) -> None:
        """Let go of the store."""
        if not isinstance(self._start, Expired):
            self._start.cursor.close()

    def _count(self, events: int) -> None:
        kind = self._served.kind
        self._metrics.delivered(kind.group, self._served.version.name, kind.kind, events)


def _chunk(line: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(line), line)


def _lines(chunks: Sequence[bytes]) -> list[str]:
    """Return the events of chunks without framing."""
    return [chunk[chunk.index(b"\r\n") + 2 : -3].decode() for chunk in chunks]


class Line:
    """The pushes of a server that have something to send, first come, first served.

    After a slice of them it is others' turn: requests are answered while a thousand watchers are told, and what is committed meanwhile goes out with what
    those at the end of the line still wait for. So the more there is to tell, the less it costs to tell each.
    """

    def __init__(self) -> None:
        self._pushes: deque[Push] = deque()
        self._running = False

    def add(self, push: Push) -> None:
        """Let a push send in its turn."""
        self._pushes.append(push)
        if not self._running:
            self._running = True
            asyncio.get_running_loop().call_soon(self._run)

    def _run(self) -> None:
        loop = asyncio.get_running_loop()
        pushes, until = self._pushes, loop.time() + SLICE
        try:
            while pushes:
                pushes.popleft().flush()
                if loop.time() >= until:
                    break
        finally:
            self._running = bool(pushes)
            if pushes:
                loop.call_soon(self._run)


class Push:
    """Sends a feed as it comes until it is over, `stop` is called, or `timeout` seconds have passed."""

    def __init__(self, feed: Feed, timeout: float, line: Line, write: Callable[[list[bytes]], None], backlog: Callable[[], int]) -> None:
        self._feed = feed
        self._timeout = timeout
        self._line = line
        self._write = write
        self._backlog = backlog
        self._loop = asyncio.get_running_loop()
        self._done: asyncio.Future[None] = self._loop.create_future()
        self._scheduled = False

    async def run(self) -> None:
        """Send until the end."""
        timers = [self._loop.call_later(self._timeout, self.stop)]
        if self._feed.bookmarks and self._timeout > BOOKMARK_SECONDS:
            timers.append(self._loop.call_later(BOOKMARK_SECONDS, self._bookmark, timers))
        try:
            self.flush()
            await self._done
        finally:
            for timer in timers:
                timer.cancel()
            self._feed.close()

    def stop(self) -> None:
        """End the stream: the client sees its regular end."""
        if not self._done.done():
            self._done.set_result(None)

    def _wake(self) -> None:
        """Called at a commit: what is committed in one go is sent in one go."""
        if not self._scheduled:
            self._scheduled = True
            self._line.add(self)

    def flush(self) -> None:
        """Send what there is, and come again at the next commit."""
        self._scheduled = False
        if self._done.done():
            return
        feed = self._feed
        if self._backlog() > BACKLOG:
            self._scheduled = True
            self._loop.call_later(PAUSE, self.flush)
            return
        chunks = feed.take()
        if chunks:
            self._write(chunks)
        if feed.over:
            self.stop()
        elif feed.ready:
            self._wake()
        else:
            feed.on_ready(self._wake)

    def _bookmark(self, timers: list[asyncio.TimerHandle]) -> None:
        if not self._feed.ready:
            self._write([self._feed.bookmark()])
        timers[1] = self._loop.call_later(BOOKMARK_SECONDS, self._bookmark, timers)


Register = Callable[[Push], None]


async def respond_http(
    request: web.BaseRequest, feed: Feed, timeout: float, line: Line, register: Register, warnings: Sequence[str] = ()
) -> web.StreamResponse:
    """Answer a watch over a chunked response; to a client of HTTP/1.0, over one that ends with the connection."""
    response = web.StreamResponse(headers={"Content-Type": "application/json", "Cache-Control": "no-cache, private"})
    answers.warn(response, warnings)
    chunked = request.version >= HttpVersion11
    if chunked:
        response.enable_chunked_encoding()
    await response.prepare(request)
    # The headers must be on the wire before the first event: clients wait for them
    await response.write(b"")
    transport = request.transport
    if transport is None:
        return response
    write = transport.write

    def send(chunks: list[bytes]) -> None:
        if not chunked:
            write("".join(f"{line}\n" for line in _lines(chunks)).encode())
        else:
            write(chunks[0] if len(chunks) == 1 else b"".join(chunks))

    push = Push(feed, timeout, line, send, transport.get_write_buffer_size)
    register(push)
    await push.run()
    with suppress(ConnectionError):
        await response.write_eof()
    return response


async def respond_websocket(request: web.BaseRequest, feed: Feed, timeout: float, line: Line, register: Register) -> web.StreamResponse:
    """Answer a watch over a WebSocket: one event per text message."""
    socket = web.WebSocketResponse(autoping=True)
    await socket.prepare(request)
    waiting: asyncio.Queue[list[bytes]] = asyncio.Queue()
    push = Push(feed, timeout, line, waiting.put_nowait, lambda: waiting.qsize() * BACKLOG)
    register(push)

    async def send() -> None:
        while True:
            for text in _lines(await waiting.get()):
                await socket.send_str(text)
            waiting.task_done()

    async def listen() -> None:
        async for message in socket:
            if message.type is WSMsgType.ERROR:
                break

    async def follow() -> None:
        await push.run()
        await waiting.join()

    tasks = [asyncio.ensure_future(each) for each in (send(), listen(), follow())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
    await socket.close()
    return socket
