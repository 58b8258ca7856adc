"""A served cluster in a process of its own, so that client and server do not share a core."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Generator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any


@contextmanager
def server(**options: Any) -> Generator[int]:
    """Serve over plain HTTP on loopback until the block ends; the value is the port, `options` are `ServedCluster`'s."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(there, options))
    process.start()
    try:
        yield here.recv()
    finally:
        here.send("stop")
        process.join(10)
        if process.is_alive():
            process.kill()


def _serve(pipe: Connection, options: dict[str, Any]) -> None:
    from kubemini.serving import ServedCluster

    async def main() -> None:
        cluster = ServedCluster(tls=False, seed=1, **options)
        await cluster.start()
        pipe.send(cluster.listener.port)
        await asyncio.get_running_loop().run_in_executor(None, pipe.recv)
        await cluster.stop()

    asyncio.run(main())
