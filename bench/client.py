"""A raw HTTP/1.1 client: fast enough that it is the server that is measured."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Sequence
from typing import Any

from kubemini.api.trees import Tree

CONNECTIONS = 16
READ = 1 << 20
"""Bytes that are read at once."""
TYPES = {"POST": "application/json", "PATCH": "application/merge-patch+json", "DELETE": "application/json"}


class Requests:
    """Requests to a server on loopback without TLS."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def send(self, method: str, path: str, body: Tree | None = None) -> tuple[int, bytes]:
        """Send one request on a connection of its own; return the status and the body of the answer."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 26)
        writer.write(request(method, path, body))
        found = await answer(reader)
        writer.close()
        return found

    async def one(self, method: str, path: str, body: Tree | None = None) -> Tree:
        """Send one request; return the object in the answer. Raises RuntimeError when it is refused."""
        code, text = await self.send(method, path, body)
        if code >= 300:
            raise RuntimeError(f"{method} {path}: {code} {text[:500]!r}")
        parsed: Tree = json.loads(text)
        return parsed

    async def there(self, path: str) -> bool:
        """Tell whether an object is there."""
        return (await self.send("GET", path))[0] != 404

    def middle(self, method: str, path: str, times: int = 5) -> float:
        """Return the median time of a request, to the last byte of its answer, in seconds. Read without asyncio: its streams take longer than the server."""
        found = []
        for _ in range(times):
            began = time.perf_counter()
            _drained(self._port, request(method, path))
            found.append(time.perf_counter() - began)
        return sorted(found)[times // 2]

    async def rate(self, method: str, requests: Sequence[tuple[str, Tree | None]]) -> float:
        """Send requests over some connections at once, each one after the other; return how many were answered per second."""
        ready = iter([request(method, path, body) for path, body in requests])

        async def worker() -> None:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
            for each in ready:
                writer.write(each)
                code, text = await answer(reader)
                if code >= 300:
                    raise RuntimeError(f"{method}: {code} {text[:500]!r}")
            writer.close()

        began = time.perf_counter()
        await asyncio.gather(*(worker() for _ in range(CONNECTIONS)))
        return len(requests) / (time.perf_counter() - began)


def request(method: str, path: str, body: Any = None) -> bytes:
    """Return a request as it goes over the wire."""
    if body is None:
        return f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    data = json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {TYPES[method]}\r\nContent-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


async def answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Read one answer that states its length; return its status and body."""
    head = await reader.readuntil(b"\r\n\r\n")
    return int(head.split(b" ", 2)[1]), await reader.readexactly(_length(head))


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


def _drained(port: int, asked: bytes) -> None:
    """Send a request on a connection of its own and read the answer, of which nothing is kept. Raises RuntimeError when it is refused or cut short."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(asked)
        got = connection.recv(READ)
        while b"\r\n\r\n" not in got:
            more = connection.recv(READ)
            if not more:
                raise RuntimeError(f"no answer: {got!r}")
            got += more
        head, _, body = got.partition(b"\r\n\r\n")
        if int(head.split(b" ", 2)[1]) >= 300:
            raise RuntimeError(f"refused: {got[:500]!r}")
        left, buffer = _length(head) - len(body), bytearray(READ)
        while left > 0:
            count = connection.recv_into(buffer, min(left, READ))
            if not count:
                raise RuntimeError(f"{left} bytes of the answer are missing")
            left -= count
