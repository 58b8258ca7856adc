"""The HTTP facade under load from a client in another process: GET, LIST, create, watch deliveries."""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from multiprocessing.connection import Connection

from kubemini.benchmarks.client import Requests, answer, request
from kubemini.benchmarks.scenario import Figure, scenario

PODS, CONFIG_MAPS = "/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/configmaps"


@scenario("http", "HTTP from another process over plain loopback: GET, create, LIST 10,000 pods, 1,000 watchers")
def http(scale: float) -> list[Figure]:
    """Measure a server process with a raw client."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(there,))
    process.start()
    try:
        port = here.recv()
        return asyncio.run(_load(port, scale))
    finally:
        here.send("stop")
        process.join(10)
        if process.is_alive():
            process.kill()


def _serve(pipe: Connection) -> None:
    from kubemini.serving import ServedCluster

    async def main() -> None:
        cluster = ServedCluster(tls=False, seed=1, controllers="namespaces,service-accounts")
        await cluster.start()
        pipe.send(cluster.listener.port)
        await asyncio.get_running_loop().run_in_executor(None, pipe.recv)
        await cluster.stop()

    asyncio.run(main())


async def _load(port: int, scale: float) -> list[Figure]:
    pods = max(int(10_000 * scale), 100)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "spec": {
            "schedulerName": "nobody",
            "containers": [{"name": "c", "image": "registry.example.com/worker:1", "env": [{"name": "A", "value": "1"}]}],
        },
    }

    requests = Requests(port)
    created = await requests.rate(
        "POST", [(PODS, {**pod, "metadata": {"name": f"p-{number}", "labels": {"app": "bench"}}}) for number in range(pods)]
    )
    got = await requests.rate("GET", [(f"{PODS}/p-{number % pods}", None) for number in range(max(int(20_000 * scale), 200))])
    listed = await requests.middle("GET", PODS)
    delivered = await _watchers(port, max(int(1000 * scale), 10), max(int(100 * scale), 10))
    return [
        Figure("create", created, "per s", 2500.0, "higher"),
        Figure("GET", got, "per s", 10_000.0, "higher"),
        Figure(f"LIST {pods} pods", listed * 1e3, "ms", 60.0 * scale),
        Figure("watch deliveries", delivered, "per s", 100_000.0, "higher"),
    ]


async def _watchers(port: int, watchers: int, writes: int) -> float:
    """Open watches on config maps, write, and count events until every watcher has seen every write."""
    seen = 0
    total = watchers * writes
    done = asyncio.Event()

    async def watch() -> None:
        nonlocal seen
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request("GET", f"{CONFIG_MAPS}?watch=true&labelSelector=bench"))
        await reader.readuntil(b"\r\n\r\n")
        opened.release()
        while True:
            data = await reader.read(1 << 16)
            if not data:
                return
            seen += data.count(b'"type":"ADDED"')
            if seen >= total:
                done.set()

    opened = asyncio.Semaphore(0)
    tasks = [asyncio.create_task(watch()) for _ in range(watchers)]
    for _ in range(watchers):
        await opened.acquire()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    began = time.perf_counter()
    for number in range(writes):
        body = {"metadata": {"name": f"w-{number}", "labels": {"bench": "1"}}, "data": {"k": "v"}}
        writer.write(request("POST", CONFIG_MAPS, body))
        await answer(reader)
    async with asyncio.timeout(120):
        await done.wait()
    rate = total / (time.perf_counter() - began)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return rate
