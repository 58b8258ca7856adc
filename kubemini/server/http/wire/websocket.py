"""The server's side of a WebSocket (RFC 6455): whole messages in and out, pings answered, the close handshake kept."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections import deque
from collections.abc import AsyncIterator, Sequence
from hashlib import sha1
from typing import Final

from kubemini.server.http.wire.connection import Connection
from kubemini.server.http.wire.messages import Request
from kubemini.server.http.wire.streams import Disconnected

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
MESSAGE_LIMIT: Final = 3 * 1024 * 1024
GOING_AWAY, PROTOCOL_ERROR, TOO_BIG = 1001, 1002, 1009

_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Refused(Exception):
    """The request is no WebSocket handshake that can be answered."""


def wanted(request: Request) -> bool:
    """Tell whether a request asks for a WebSocket."""
    return request.headers.get("upgrade").lower() == "websocket"


class WebSocket:
    """A connection that has become a WebSocket. Iterate over it for messages as (kind, data), until the client closes."""

    def __init__(self, request: Request, protocols: Sequence[str] = ()) -> None:
        """Shake hands; of what the client offers, the first of our `protocols` is spoken. Raise `Refused`, `Disconnected`."""
        connection, headers = request.connection, request.headers
        key = headers.get("sec-websocket-key")
        if connection is None or request.method != "GET" or not key or headers.get("sec-websocket-version") != "13":
            raise Refused("the request is no WebSocket handshake of version 13")
        offered = [each.strip() for line in headers.getall("sec-websocket-protocol") for each in line.split(",")]
        self.protocol = next((each for each in offered if each in protocols), "")
        """The subprotocol that is spoken, "" for none."""
        if protocols and offered and not self.protocol:
            raise Refused(f"none of the protocols {', '.join(offered)} is spoken here; these are: {', '.join(protocols)}")
        self.status = 101
        self._connection: Connection = connection
        self._buffer = bytearray()
        self._messages: deque[tuple[int, bytes]] = deque()
        self._fragments: list[bytes] = []
        self._kind = 0
        self._arrived: asyncio.Future[None] | None = None
        self.closed = False
        """Whether no more messages come in, or go out."""
        accept = b64encode(sha1(key.encode("latin-1") + _GUID).digest()).decode()  # noqa: S324  the protocol's own hash
        spoken = f"Sec-WebSocket-Protocol: {self.protocol}\r\n" if self.protocol else ""
        head = f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n{spoken}\r\n"
        connection.begin(head.encode("latin-1"))
        connection.upgrade(self._feed)

    # ------------------------------------------------------------------ out

    def send_text(self, text: str) -> None:
        """Send a text message. Raise `Disconnected`."""
        self._send(TEXT, text.encode())

    def send_bytes(self, data: bytes) -> None:
        """Send a binary message. Raise `Disconnected`."""
        self._send(BINARY, data)

    def _send(self, kind: int, data: bytes) -> None:
        if self.closed:
            raise Disconnected("the WebSocket is closed")
        self._connection.write(_frame(kind, data))

    async def drained(self) -> None:
        """Return when the client has taken most of what was sent. Raise `Disconnected`."""
        await self._connection.drained()

    @property
    def backlog(self) -> int:
        """Bytes that the client has not taken yet."""
        return self._connection.backlog

    def close(self, code: int = 1000) -> None:
        """Say goodbye; the connection ends with the answer."""
        if not self.closed:
            self._connection.write(_frame(CLOSE, code.to_bytes(2, "big")))
            self._ended()

    # ------------------------------------------------------------------ in

    async def __aiter__(self) -> AsyncIterator[tuple[int, bytes]]:
        while True:
            while self._messages:
                yield self._messages.popleft()
            if self.closed:
                return
            self._arrived = asyncio.get_running_loop().create_future()
            await self._arrived

    def _feed(self, data: bytes) -> None:
        if not data:
            self._ended()
            return
        self._buffer += data
        while not self.closed and self._frame_taken():
            pass

    def _ended(self) -> None:
        self.closed = True
        self._wake()

    def _wake(self) -> None:
        arrived, self._arrived = self._arrived, None
        if arrived is not None and not arrived.done():
            arrived.set_result(None)

    def _frame_taken(self) -> bool:
        """Take one frame off the buffer; tell whether there was one in full."""
        buffer = self._buffer
        if len(buffer) < 2:
            return False
        first, second = buffer[0], buffer[1]
        size, position = second & 0x7F, 2
        if size >= 126:
            position = 4 if size == 126 else 10
            if len(buffer) < position:
                return False
            size = int.from_bytes(buffer[2:position], "big")
        if first & 0x70 or not second & 0x80:
            self.close(PROTOCOL_ERROR)
            return False
        if size > MESSAGE_LIMIT:
            self.close(TOO_BIG)
            return False
        end = position + 4 + size
        if len(buffer) < end:
            return False
        data = _unmasked(bytes(buffer[position + 4 : end]), bytes(buffer[position : position + 4]))
        del buffer[:end]
        self._frame(first & 0x0F, data, final=bool(first & 0x80))
        return True

    def _frame(self, kind: int, data: bytes, *, final: bool) -> None:
        if kind == CLOSE:
            self.close(int.from_bytes(data[:2], "big") if len(data) >= 2 else 1000)
        elif kind == PING:
            self._connection.write(_frame(PONG, data))
        elif kind in (TEXT, BINARY, 0) and (kind == 0) == bool(self._kind):
            self._kind = self._kind or kind
            self._fragments.append(data)
            if sum(map(len, self._fragments)) > MESSAGE_LIMIT:
                self.close(TOO_BIG)
            elif final:
                self._messages.append((self._kind, b"".join(self._fragments)))
                self._kind, self._fragments = 0, []
                self._wake()
        elif kind != PONG:
            self.close(PROTOCOL_ERROR)


def _frame(kind: int, data: bytes) -> bytes:
    size = len(data)
    if size < 126:
        return bytes((0x80 | kind, size)) + data
    if size < 65536:
        return bytes((0x80 | kind, 126)) + size.to_bytes(2, "big") + data
    return bytes((0x80 | kind, 127)) + size.to_bytes(8, "big") + data


def _unmasked(data: bytes, key: bytes) -> bytes:
    size = len(data)
    pad = (key * (size // 4 + 1))[:size]
    return (int.from_bytes(data, "big") ^ int.from_bytes(pad, "big")).to_bytes(size, "big")
