"""Answers of unknown length, in chunks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kubemini.server.http.wire.messages import REASONS

if TYPE_CHECKING:
    from kubemini.server.http.wire.connection import Connection
    from kubemini.server.http.wire.messages import Request


class Disconnected(ConnectionError):
    """The client is gone."""


class Stream:
    """A chunked response that has begun: the head is on the wire. A client that speaks HTTP/1.0 gets the bytes unframed, to the end of the connection."""

    __slots__ = ("_connection", "_framed", "status")

    def __init__(self, request: Request, headers: Iterable[tuple[str, str]], *, status: int = 200) -> None:
        connection = request.connection
        if connection is None:
            raise Disconnected("a stream needs a connection")
        self.status = status
        self._connection: Connection = connection
        self._framed = request.version != "1.0"
        fields = "".join([f"{name}: {value}\r\n" for name, value in headers])
        how = "Transfer-Encoding: chunked\r\n" if self._framed else ""
        connection.begin(f"HTTP/1.1 {status} {REASONS.get(status, '')}\r\n{fields}{how}{connection.extra()}\r\n".encode("latin-1", "replace"))

    def send(self, data: bytes) -> None:
        """Send bytes as one chunk. Nothing waits: see `backlog` and `drained`."""
        if data:
            self._connection.write(b"%x\r\n%b\r\n" % (len(data), data) if self._framed else data)

    def send_chunks(self, chunks: bytes) -> None:
        """Send bytes that are framed as chunks already."""
        self._connection.write(chunks if self._framed else unframed(chunks))

    @property
    def backlog(self) -> int:
        """Bytes that the client has not taken yet."""
        return self._connection.backlog

    async def drained(self) -> None:
        """Return when the client has taken most of what was sent. Raise `Disconnected`."""
        await self._connection.drained()

    def end(self) -> None:
        """Send the end."""
        if self._framed:
            self._connection.write(b"0\r\n\r\n")
        else:
            self._connection.close_after = True


def framed(data: bytes) -> bytes:
    """Return bytes as one chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def unframed(chunks: bytes) -> bytes:
    """Return what chunks hold."""
    parts: list[bytes] = []
    position = 0
    while position < len(chunks):
        start = chunks.index(b"\r\n", position) + 2
        size = int(chunks[position : start - 2], 16)
        parts.append(chunks[start : start + size])
        position = start + size + 2
    return b"".join(parts)
