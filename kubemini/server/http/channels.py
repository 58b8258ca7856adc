"""The ``channel.k8s.io`` protocols: several byte streams in one WebSocket, for exec and attach.

Each binary message begins with the number of its channel. Version 5 adds the closing of a channel; from version 4 on the outcome is a Status on the error
channel. Mirrors ``k8s.io/streaming`` (``wsstream``) and the kubelet's ``remotecommand`` (1.36).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import orjson
from aiohttp import WSMsgType, web

from kubemini.api.trees import Tree
from kubemini.machinery.errors import BadRequest, ServerError

PROTOCOLS: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io")
STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255

SUCCESS: Final[Tree] = {"metadata": {}, "status": "Success"}


def exited(code: int) -> Tree:
    """Return the Status of a command that ended."""
    if not code:
        return SUCCESS
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def check_upgrade(request: web.BaseRequest) -> None:
    """Raise an `ApiStatus` for a request that does not ask for a WebSocket."""
    wanted = request.headers.get("Upgrade", "").lower()
    if wanted == "websocket":
        return
    if wanted.startswith("spdy"):
        raise ServerError("SPDY is not served; use a client that speaks WebSocket, such as kubectl 1.31 or newer")
    raise BadRequest("Upgrade request required")


class Channels:
    """The server's end. `stdin` is what the client sends, to its end of file."""

    def __init__(self, request: web.BaseRequest, *, terminal: bool) -> None:
        self._request = request
        self._socket = web.WebSocketResponse(protocols=PROTOCOLS, autoping=True)
        self.stdin = asyncio.StreamReader()
        self._terminal = _Terminal(self) if terminal else None

    async def serve(self, run: Callable[[], Awaitable[Tree]], first: int) -> web.StreamResponse:
        """Shake hands, do `run` while its client listens, and end with the Status that it returns. `first` is the channel that tells the client that all is set up."""
        socket = self._socket
        await socket.prepare(self._request)
        await socket.send_bytes(bytes([first]))
        reading = asyncio.ensure_future(self._read())
        running = asyncio.ensure_future(run())
        try:
            await asyncio.wait({reading, running}, return_when=asyncio.FIRST_COMPLETED)
            if running.done() or not socket.closed:
                status = await running
                if self._socket.ws_protocol in PROTOCOLS[:2]:
                    await socket.send_bytes(bytes([ERROR]) + orjson.dumps(status))
                elif status is not SUCCESS:
                    await socket.send_bytes(bytes([ERROR]) + str(status.get("message", "")).encode())
        except ConnectionError:
            pass
        finally:
            for task in (reading, running):
                task.cancel()
        await socket.close()
        return socket

    async def _read(self) -> None:
        """Take what the client sends, until it closes."""
        async for message in self._socket:
            if message.type is not WSMsgType.BINARY or not message.data:
                continue
            channel, data = message.data[0], message.data[1:]
            if channel == STDIN and data:
                if self._terminal is not None:
                    await self._terminal.typed(data)
                else:
                    self.stdin.feed_data(data)
            elif channel == CLOSE and data[:1] == bytes([STDIN]):
                self.stdin.feed_eof()
        self.stdin.feed_eof()

    async def out(self, data: bytes) -> None:
        """Send to the client's standard output."""
        await self._send(STDOUT, data)

    async def err(self, data: bytes) -> None:
        """Send to the client's standard error; a terminal has only one output."""
        await self._send(STDERR if self._terminal is None else STDOUT, data)

    async def _send(self, channel: int, data: bytes) -> None:
        if self._terminal is not None:
            data = data.replace(b"\n", b"\r\n")
        await self._socket.send_bytes(bytes([channel]) + data)


class _Terminal:
    """A line discipline: echoes what is typed, hands over whole lines, knows backspace, Ctrl-C, Ctrl-D and Ctrl-U."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels
        self._line = b""

    async def typed(self, data: bytes) -> None:
        """Take keystrokes."""
        channels = self._channels
        for each in data:
            key = bytes([each])
            if key in b"\r\n":
                await channels.out(b"\n")
                channels.stdin.feed_data(self._line + b"\n")
                self._line = b""
            elif key in b"\x7f\b":
                if self._line:
                    self._line = self._line[:-1]
                    await channels.out(b"\b \b")
            elif key in b"\x03\x15":
                self._line = b""
                await channels.out(b"^C\n" if key == b"\x03" else b"\r\x1b[K")
                if key == b"\x03":
                    channels.stdin.feed_data(b"\n")
            elif key == b"\x04":
                if not self._line:
                    channels.stdin.feed_eof()
                    return
            else:
                self._line += key
                await channels.out(key)
