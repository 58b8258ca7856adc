"""``pods/exec`` and ``pods/attach``: a small shell inside simulated containers, and their output as it comes."""

from __future__ import annotations

from aiohttp import web

from kubemini.api.trees import Tree
from kubemini.machinery.errors import BadRequest, InternalError, NotFound
from kubemini.server.exec import Disks, Inside, NotExecutable, Shell
from kubemini.server.http import channels
from kubemini.server.http.app import Facade
from kubemini.server.http.bodies import truth
from kubemini.server.http.channels import Channels
from kubemini.server.http.logs import follow_one, written
from kubemini.server.http.resources import Asked
from kubemini.server.requests import ApiServer
from kubemini.server.subresources.log import Log, LogOptions, chosen_container


def install(facade: Facade) -> None:
    """Serve exec and attach."""
    server = facade.server
    disks = Disks(server.reader)

    async def execute(asked: Asked) -> web.StreamResponse:
        pod, container = _running(server, asked)
        command = asked.all("command")
        if not command:
            raise BadRequest("you must specify at least 1 command for the container")
        stream, first = _channels(asked)
        inside = Inside(pod, container, server.reader)
        shell = Shell(
            inside,
            disks.of(inside),
            out=stream.out,
            err=stream.err,
            stdin=stream.stdin if _wants(asked, "stdin") else None,
            now=server.env.now,
            sleep=server.env.sleep,
            lookup=facade.lookup,
        )

        async def run() -> Tree:
            try:
                return channels.exited(await shell.start(command, terminal=_wants(asked, "tty")))
            except NotExecutable:
                why = f'exec: "{command[0]}": executable file not found in $PATH'
                text = f"error executing command in container: failed to exec in container: unable to start container process: {why}: unknown"
                return InternalError(f"Internal error occurred: {text}").to_status()

        return await stream.serve(run, first)

    async def attach(asked: Asked) -> web.StreamResponse:
        pod, container = _running(server, asked)
        stream, first = _channels(asked)
        log = Log(pod, LogOptions(container=container), server.env.now())

        async def run() -> Tree:
            cursor = follow_one(server, asked)
            try:
                while log.running:
                    await cursor.wait()
                    for line in written(log, cursor):
                        await stream.out(line.encode())
            finally:
                cursor.close()
            return channels.SUCCESS

        return await stream.serve(run, first)

    facade.specials["pods", "exec"] = execute
    facade.specials["pods", "attach"] = attach


def _channels(asked: Asked) -> tuple[Channels, int]:
    """Return the streams of a request, and the first that it wants to hear of. Raise `BadRequest`."""
    wanted = [channel for name, channel in (("stdout", channels.STDOUT), ("stderr", channels.STDERR)) if _wants(asked, name)]
    if not wanted and not _wants(asked, "stdin"):
        raise BadRequest("you must specify at least 1 of stdin, stdout, stderr")
    channels.check_upgrade(asked.request)
    return Channels(asked.request, terminal=_wants(asked, "tty")), (wanted or [channels.ERROR])[0]


def _wants(asked: Asked, name: str) -> bool:
    return bool(truth(asked.query, name))


def _running(server: ApiServer, asked: Asked) -> tuple[Tree, str]:
    """Return the pod and the container that a request is for. Raise `NotFound`, `BadRequest` where it does not run."""
    pod = server.live(asked.served.kind, asked.namespace, asked.where.name).obj
    container = chosen_container(pod, asked.query.get("container", ""))
    if not pod["spec"].get("nodeName"):
        raise BadRequest(f"pod {asked.where.name} does not have a host assigned")
    status: Tree = pod.get("status") or {}
    statuses = [each for key in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses") for each in status.get(key) or ()]
    state: Tree = next((each.get("state") or {} for each in statuses if each.get("name") == container), {})
    # A status written from outside need not tell of containers
    if "running" not in state and (statuses or status.get("phase") != "Running"):
        raise NotFound(f'container not found ("{container}")')
    return pod, container
