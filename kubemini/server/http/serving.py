"""A listening facade: socket, TLS, kubeconfig, orderly stop."""

from __future__ import annotations

import asyncio
import base64
import errno
import itertools
import logging
import os
import socket
import ssl
import tempfile
from collections.abc import Callable
from pathlib import Path

import yaml
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from kubemini.machinery.errors import ConfigError
from kubemini.runtime.env import Env
from kubemini.server.http.app import BODY_LIMIT, Facade
from kubemini.server.http.minting import Minted, mint, tls_hosts
from kubemini.server.http.tls import Context

LOOPBACK = ("127.0.0.1", "localhost", "::1")
STOP_SECONDS = 2.0
CLUSTER_NAME = "kubemini"
HEADER_LIMIT = 1 << 20
"""How long the first line and a header of a request may be: Go's default. Selectors and tokens can be longer than aiohttp's 8 KiB."""


def _is_ours(record: logging.LogRecord) -> bool:
    """Tell whether a message of the HTTP library is about us, and not about a client that speaks no HTTP."""
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


_connections = logging.getLogger("kubemini.http.connections")
_connections.addFilter(_is_ours)


def _context(minted: Minted) -> ssl.SSLContext:
    context = Context(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile() as file:  # OpenSSL reads certificates from files only
        file.write((minted.key + minted.chain).encode())
        file.flush()
        context.load_cert_chain(file.name)
    return context


class Listener:
    """A facade on a socket. With `tls` it has fresh certificates, made by `minted` where that is given."""

    def __init__(
        self, facade: Facade, *, host: str = "127.0.0.1", port: int = 0, tls: bool = True, minted: Callable[[], Minted] | None = None
    ) -> None:
        self.facade = facade
        self.host = host
        self.port = port
        self.tls = (minted() if minted is not None else mint(tls_hosts(host))) if tls else None
        self._runner: web.ServerRunner | None = None

    @property
    def url(self) -> str:
        """Where clients on this machine find it."""
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "::1": "[::1]"}.get(self.host, self.host)  # noqa: S104
        return f"http{'s' if self.tls else ''}://{host}:{self.port}"

    async def start(self) -> None:
        """Listen. Raise `ConfigError` when the address cannot be had."""
        server = web.Server(
            self.facade.handle,
            request_factory=_requests(self.facade),
            handler_cancellation=True,
            max_line_size=HEADER_LIMIT,
            max_field_size=HEADER_LIMIT,
            logger=_connections,
        )
        self._runner = web.ServerRunner(server, handle_signals=False, shutdown_timeout=STOP_SECONDS, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self.host, self.port, ssl_context=_context(self.tls) if self.tls else None, backlog=512)
        try:
            await site.start()
        except OSError as problem:
            await self._runner.cleanup()
            why = f"cannot listen on {self.host}:{self.port}: {problem.strerror or problem}"
            if isinstance(problem, socket.gaierror) or problem.errno == errno.EADDRNOTAVAIL:
                raise ConfigError(f"--host {self.host}: {why}; name an address of this machine") from None
            raise ConfigError(f"--port {self.port}: {why}; choose another port, or 0 for a free one") from None
        self.port = self._runner.addresses[0][1]
        self.facade.address = f"{self.host}:{self.port}"

    async def stop(self) -> None:
        """Stop listening; open watches end."""
        if self._runner is not None:
            self.facade.close()
            await self._runner.cleanup()
            self._runner = None

    def kubeconfig(self, token: str) -> dict[str, object]:
        """Return a kubeconfig for this listener."""
        cluster: dict[str, object] = {"server": self.url}
        if self.tls:
            cluster["certificate-authority-data"] = base64.b64encode(self.tls.authority.encode()).decode()
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": CLUSTER_NAME, "cluster": cluster}],
            "users": [{"name": "kubemini-admin", "user": {"token": token} if token else {}}],
            "contexts": [{"name": CLUSTER_NAME, "context": {"cluster": CLUSTER_NAME, "user": "kubemini-admin", "namespace": "default"}}],
            "current-context": CLUSTER_NAME,
            "preferences": {},
        }


def _requests(facade: Facade) -> Callable[..., web.BaseRequest]:
    """Return what makes a request of what came in. Its answer has the headers of an API server, and not those of a library."""
    # Ids of their own, for those of objects are to follow from a cluster's seed whoever asks for what in between
    first, count = Env(seed=facade.server.env.seed + 1).uid()[:24], itertools.count()

    class Request(web.BaseRequest):
        async def _prepare_hook(self, response: web.StreamResponse) -> None:
            headers = response.headers
            headers.pop("Server", None)
            headers["Audit-Id"] = self.headers.get("Audit-Id") or f"{first}{next(count):012x}"

    def made(message: object, payload: object, protocol: object, writer: object, task: object) -> web.BaseRequest:
        loop = asyncio.get_running_loop()
        return Request(message, payload, protocol, writer, task, loop, client_max_size=BODY_LIMIT)  # type: ignore[arg-type]

    return made


def check_kubeconfig(path: Path) -> None:
    """Raise `ConfigError` where writing a kubeconfig would destroy something: a file that holds other clusters, or no kubeconfig at all."""
    try:
        text = path.read_text() if path.is_file() else ""
        tree = yaml.safe_load(text)
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        tree = "unreadable"
    if tree is None:
        return
    clusters = tree.get("clusters") if isinstance(tree, dict) else None
    if not isinstance(clusters, list):
        raise ConfigError(f"--kubeconfig {path}: is no kubeconfig and will not be overwritten; name another file")
    others = [name for each in clusters if (name := each.get("name") if isinstance(each, dict) else "?") != CLUSTER_NAME]
    if others:
        raise ConfigError(f"--kubeconfig {path}: holds other clusters ({', '.join(map(str, others))}) and will not be overwritten; name another file")


def write_kubeconfig(path: Path, config: dict[str, object]) -> None:
    """Write a kubeconfig whole or not at all, readable by its owner only; devices and pipes are written to. Raise `ConfigError`."""
    try:
        path = path.resolve()
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file() and not path.is_dir():
            path.write_text(yaml.safe_dump(config, sort_keys=False))
            return
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mkstemp makes it 0600
        try:
            with os.fdopen(handle, "w") as file:
                yaml.safe_dump(config, file, sort_keys=False)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as problem:
        raise ConfigError(f"--kubeconfig {path}: cannot be written: {problem.strerror or problem}") from None
