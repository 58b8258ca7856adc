"""What a TLS port says to those who speak no TLS."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Coroutine
from typing import Any

import pytest

from kubemini.serving import ServedCluster

ANSWER = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"


def _on_asyncio(main: Coroutine[Any, Any, bytes]) -> bytes:
    return asyncio.run(main)


def _on_uvloop(main: Coroutine[Any, Any, bytes]) -> bytes:
    import uvloop

    return uvloop.run(main)


LOOPS = [
    _on_asyncio,
    pytest.param(_on_uvloop, marks=pytest.mark.skipif(importlib.util.find_spec("uvloop") is None, reason="pip install uvloop")),
]


async def said_to(data: bytes) -> bytes:
    """Send bytes to a TLS port; return what comes back until the server closes."""
    async with ServedCluster(controllers="namespaces", seed=1) as cluster:
        reader, writer = await asyncio.open_connection("127.0.0.1", cluster.listener.port)
        writer.write(data)
        try:
            return await asyncio.wait_for(reader.read(), 30)
        finally:
            writer.close()


@pytest.mark.parametrize("run", LOOPS)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "OPTIONS"])
def test_plain_http_is_told_so(run: Any, method: str) -> None:
    """A plain HTTP request to a TLS port is answered with 400 in Go's words, and the connection ends."""
    assert run(said_to(f"{method} /version HTTP/1.1\r\nHost: x\r\n\r\n".encode())) == ANSWER


@pytest.mark.parametrize("run", LOOPS)
def test_something_else_is_closed(run: Any) -> None:
    """What is neither TLS nor begins as a usual request is not answered as HTTP, as with Go's server."""
    assert b"HTTP" not in run(said_to(b"DELETE /version HTTP/1.1\r\n\r\n"))
