"""One client's connection: requests in, one after the other, answers out."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time  # real-time: the Date of answers is the wall clock's
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from typing import Final

from kubemini.server.http.wire.messages import Answer, Request, Response
from kubemini.server.http.wire.parsing import HEAD_LIMIT, Head, Malformed, dechunked
from kubemini.server.http.wire.streams import Disconnected

Handler = Callable[[Request], Awaitable[Answer]]

READ_AHEAD: Final = 1 << 18
"""Bytes of further requests that are read while one is answered."""

_log = logging.getLogger("kubemini.http")
_numbers = itertools.count(1)


class Connection(asyncio.Protocol):
    """Serves a client with `handler`. `body_limit` is the most bytes of a body; `too_large` answers what is over it. `members` holds every open connection."""

    __slots__ = (
        "_answering", "_body_limit", "_buffer", "_drain", "_handler", "_head", "_loop", "_members", "_number", "_reading", "_too_large", "_transport",
        "_upgraded", "close_after", "task",
    )  # fmt: skip

    def __init__(self, handler: Handler, members: dict[int, Connection], *, body_limit: int, too_large: Callable[[Request], Response]) -> None:
        self._handler = handler
        self._members = members
        self._body_limit = body_limit
        self._too_large = too_large
        self._loop = asyncio.get_running_loop()
        self._number = next(_numbers)
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._head: Head | None = None
        self.task: asyncio.Task[None] | None = None
        """Who answers the current request; None between requests."""
        self._answering = False
        """Whether an answer has begun whose head is on the wire."""
        self._reading = True
        self._drain: asyncio.Future[None] | None = None
        self._upgraded: Callable[[bytes], None] | None = None
        self.close_after = False
        """Whether the connection ends with the answer."""

    # ------------------------------------------------------------------ the protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        self._transport = transport  # type: ignore[assignment]
        self._members[self._number] = self

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the client: whoever answers it is cancelled, as nobody listens any more."""
        self._members.pop(self._number, None)
        self._transport = None
        if self._drain is not None and not self._drain.done():
            self._drain.set_exception(Disconnected("the client is gone"))
            self._drain.exception()  # nobody may be waiting
        upgraded, self._upgraded = self._upgraded, None
        if upgraded is not None:
            upgraded(b"")
        if self.task is not None:
            self.task.cancel()

    def data_received(self, data: bytes) -> None:
        """Take bytes."""
        if self._upgraded is not None:
            self._upgraded(data)
            return
        self._buffer += data
        if self.task is None:
            self._next()
        elif len(self._buffer) > READ_AHEAD and self._reading and self._transport is not None:
            self._reading = False
            self._transport.pause_reading()

    def pause_writing(self) -> None:
        """The client takes too slowly."""
        if self._drain is None:
            self._drain = self._loop.create_future()

    def resume_writing(self) -> None:
        """The client caught up."""
        drain, self._drain = self._drain, None
        if drain is not None and not drain.done():
            drain.set_result(None)

    # ------------------------------------------------------------------ requests

    def _next(self) -> None:
        """Begin the next request that is there in full."""
        try:
            request = self._parsed()
        except Malformed as problem:
            self.close_after = True
            self._respond(Response(f"{problem}\n".encode(), status=problem.status, headers=(("Content-Type", "text/plain; charset=utf-8"),)), "")
            self._finish()
            return
        if request is not None:
            self.task = self._loop.create_task(self._answer(request))

    def _parsed(self) -> Request | None:
        buffer, head = self._buffer, self._head
        if head is None:
            while buffer.startswith(b"\r\n"):  # tolerated between requests
                del buffer[:2]
            end = buffer.find(b"\r\n\r\n", 0, HEAD_LIMIT)
            if end < 0:
                if len(buffer) >= HEAD_LIMIT:
                    raise Malformed("the request's head is too large", 431)
                return None
            head = self._head = Head(bytes(buffer[:end]))
            del buffer[: end + 4]
            if head.length <= self._body_limit and "expect" in head.headers and len(buffer) < max(head.length, 1):
                self.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request = Request(head.method, head.target, head.headers, version=head.version, connection=self)
        if head.length > self._body_limit:
            self._oversized(request)
            return None
        if head.chunked:
            body, taken, complete = dechunked(buffer)
            if len(body) > self._body_limit or len(buffer) > 2 * self._body_limit:
                self._oversized(request)
                return None
            if not complete:
                return None
            request.body = body
            del buffer[:taken]
        elif head.length:
            if len(buffer) < head.length:
                return None
            request.body = bytes(buffer[: head.length])
            del buffer[: head.length]
        self._head = None
        self.close_after = head.close
        return request

    def _oversized(self, request: Request) -> None:
        """Refuse a request by its head: its body is not waited for, and so the connection cannot go on."""
        self.close_after = True
        self._respond(self._too_large(request), request.method)
        self._head = None
        self._finish()

    async def _answer(self, request: Request) -> None:
        self._answering = False
        try:
            answer = await self._handler(request)
            if isinstance(answer, Response):
                self._respond(answer, request.method)
        except Disconnected:
            self.close_after = True
        except asyncio.CancelledError:
            self.close_after = True
            if self._transport is not None:
                raise
        except Exception:  # noqa: BLE001  the connection must end, whatever is wrong
            _log.exception("%s %s failed", request.method, request.target)
            self.close_after = True
            if not self._answering:
                self._respond(Response(status=500), request.method)
        self.task = None
        if self.close_after or self._upgraded is not None:
            self._finish()
            return
        if not self._reading and self._transport is not None:
            self._reading = True
            self._transport.resume_reading()
        if self._buffer and self._transport is not None:
            self._next()

    # ------------------------------------------------------------------ answers

    def _respond(self, response: Response, method: str) -> None:
        head = response.head(self.extra())
        body = b"" if method == "HEAD" or response.status in (204, 304) else response.body
        if len(body) < 65536:
            self.write(head + body)
        else:
            self.write(head)
            self.write(body)

    def extra(self) -> str:
        """Return the header fields that every answer has."""
        return f"Date: {_date()}\r\nConnection: close\r\n" if self.close_after else f"Date: {_date()}\r\n"

    def begin(self, head: bytes) -> None:
        """Send the head of an answer that its handler sends itself. Raise `Disconnected`."""
        if self._transport is None:
            raise Disconnected("the client is gone")
        self._answering = True
        self._transport.write(head)

    def write(self, data: bytes) -> None:
        """Send bytes, if somebody is there to take them."""
        if self._transport is not None:
            self._transport.write(data)

    @property
    def backlog(self) -> int:
        """Bytes on their way."""
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    async def drained(self) -> None:
        """Return when the client takes bytes again. Raise `Disconnected`."""
        if self._transport is None:
            raise Disconnected("the client is gone")
        if self._drain is not None:
            await asyncio.shield(self._drain)

    def upgrade(self, feed: Callable[[bytes], None]) -> None:
        """Hand all further bytes to `feed`; it is called with none when the client is gone."""
        self._upgraded = feed
        if self._buffer:
            data, self._buffer = bytes(self._buffer), bytearray()
            feed(data)

    # ------------------------------------------------------------------ the end

    def _finish(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def close(self) -> None:
        """Close when the answer that is under way is sent, at once where there is none."""
        self.close_after = True
        if self.task is None:
            self._finish()

    def abort(self) -> None:
        """Close now."""
        if self.task is not None:
            self.task.cancel()
        if self._transport is not None:
            self._transport.abort()


_dated = (0, "")


def _date() -> str:
    """Return the time for the Date field."""
    global _dated  # noqa: PLW0603  one text a second serves every answer
    second = int(time.time())
    if _dated[0] != second:
        _dated = (second, formatdate(second, usegmt=True))
    return _dated[1]
