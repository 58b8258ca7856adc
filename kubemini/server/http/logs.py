"""``pods/log`` over HTTP: the text at once, or followed until the container ends."""

from __future__ import annotations

from aiohttp import web

from kubemini.machinery.errors import MethodNotAllowed
from kubemini.server.http.answers import TEXT
from kubemini.server.http.app import Facade
from kubemini.server.http.bodies import truth
from kubemini.server.http.resources import Asked
from kubemini.server.requests import ApiServer
from kubemini.server.subresources.log import Log, LogOptions
from kubemini.store import Watch


def install(facade: Facade) -> None:
    """Serve the logs of pods."""
    server = facade.server

    async def logs(asked: Asked) -> web.StreamResponse:
        if asked.request.method not in ("GET", "HEAD"):
            raise MethodNotAllowed
        pod = server.live(asked.served.kind, asked.namespace, asked.where.name).obj
        log = Log(pod, LogOptions.of(asked.query), server.env.now())
        if not (truth(asked.query, "follow") and log.running):
            return web.Response(body="".join(log.lines).encode(), headers=TEXT)
        return await _follow(server, asked, log)

    facade.specials["pods", "log"] = logs


async def _follow(server: ApiServer, asked: Asked, log: Log) -> web.StreamResponse:
    response = web.StreamResponse(headers=TEXT)
    cursor = follow_one(server, asked)
    try:
        await response.prepare(asked.request)
        await response.write("".join(log.lines).encode())
        while log.running:
            await cursor.wait()
            text = "".join(written(log, cursor))
            if text:
                await response.write(text.encode())
        await response.write_eof()
    except ConnectionError:
        pass
    finally:
        cursor.close()
    return response


def follow_one(server: ApiServer, asked: Asked) -> Watch:
    """Return a cursor on the one object that a request names, opened at the current revision."""
    name = asked.where.name
    table = server.store.table(asked.served.kind.storage)
    return table.watch(prefix=f"{asked.namespace}/", predicate=lambda obj: bool(obj["metadata"]["name"] == name))


def written(log: Log, cursor: Watch) -> list[str]:
    """Return what a log gained with the changes of its pod that `cursor` has not shown yet."""
    lines: list[str] = []
    for event in cursor.poll():
        lines += log.more(event.record.obj)
        if event.type == "DELETED":
            log.running = False
        if not log.running:
            break
    return lines
