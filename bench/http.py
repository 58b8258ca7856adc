"""The HTTP facade under load from a client in another process: GET, LIST, create, watch deliveries."""

from __future__ import annotations

import asyncio
import time

from kubemini.benchmarks.client import Requests, answer, request
from kubemini.benchmarks.scenario import Figure, scenario
from kubemini.benchmarks.server import server

PODS, CONFIG_MAPS = "/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/configmaps"


@scenario("http", "HTTP from another process over plain loopback: GET, create, LIST 10,000 pods, 1,000 watchers")
def http(scale: float) -> list[Figure]:
    """Measure a server process with a raw client."""
    with server(controllers="namespaces,service-accounts") as port:
        return asyncio.run(_load(port, scale))


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
    listed = requests.middle("GET", PODS)
    delivered = await _watchers(port, max(int(1000 * scale), 10), max(int(100 * scale), 10))
    return [
        Figure("create", created, "per s", 2500.0, "higher"),
        Figure("GET", got, "per s", 10_000.0, "higher"),
        Figure(f"LIST {pods} pods", listed * 1e3, "ms", 60.0 * scale),
        Figure("watch deliveries", delivered, "per s", 100_000.0, "higher"),
    ]


class _Watcher(asyncio.Protocol):
    """A client that counts events without reading them: what is measured is the server."""

    def __init__(self, tally: _Tally) -> None:
        self._tally = tally
        self._open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for the watch."""
        assert isinstance(transport, asyncio.Transport)
        transport.write(request("GET", f"{CONFIG_MAPS}?watch=true&labelSelector=bench"))

    def data_received(self, data: bytes) -> None:
        """Count."""
        if not self._open:
            self._open = True
            self._tally.opened.release()
        self._tally.count(data.count(b'"type":"ADDED"'))


class _Tally:
    """How many events all watchers have seen."""

    def __init__(self, wanted: int) -> None:
        self._left = wanted
        self.opened = asyncio.Semaphore(0)
        self.done = asyncio.Event()

    def count(self, events: int) -> None:
        """Count events."""
        self._left -= events
        if self._left <= 0:
            self.done.set()


async def _watchers(port: int, watchers: int, writes: int) -> float:
    """Open watches on config maps, write, and count events until every watcher has seen every write."""
    tally = _Tally(watchers * writes)
    loop = asyncio.get_running_loop()
    transports = [(await loop.create_connection(lambda: _Watcher(tally), "127.0.0.1", port))[0] for _ in range(watchers)]
    for _ in transports:
        await tally.opened.acquire()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    began = time.perf_counter()
    for number in range(writes):
        body = {"metadata": {"name": f"w-{number}", "labels": {"bench": "1"}}, "data": {"k": "v"}}
        writer.write(request("POST", CONFIG_MAPS, body))
        await answer(reader)
    async with asyncio.timeout(120):
        await tally.done.wait()
    rate = watchers * writes / (time.perf_counter() - began)
    for each in transports:
        each.close()
    return rate
