"""The entry of the facade: authenticate, authorize, route, answer, count.

The URL space of Kubernetes is regular, so a path is parsed rather than routed: what names a resource goes to `Resources`, a subresource that is no object
(log, exec, …) to its `Special`, and the rest are documents.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import orjson
from aiohttp import web

from kubemini.api.trees import Tree
from kubemini.machinery.errors import ApiStatus, BadRequest, InternalError, NotFound
from kubemini.machinery.schema.builtin import BuiltinSchemas
from kubemini.server.exec import Lookup
from kubemini.server.http import aggregated, answers, authorization, bodies
from kubemini.server.http.auth import Authenticator
from kubemini.server.http.authorization import Authorizer
from kubemini.server.http.bodies import Query
from kubemini.server.http.discovery import AGGREGATED, Discovery
from kubemini.server.http.metrics import Labels, RequestMetrics
from kubemini.server.http.negotiation import accepted, choose
from kubemini.server.http.paths import ResourcePath, parse
from kubemini.server.http.resources import BODY_LIMIT, Asked, Resources
from kubemini.server.kinds.groups.authorizing import Attributes
from kubemini.server.options import Caller, WriteOptions
from kubemini.server.requests import ApiServer
from kubemini.server.subresources.answers import admitted
from kubemini.server.subresources.token import TokenSubresource

Page = Callable[[web.BaseRequest, Caller], Awaitable[web.StreamResponse]]
Special = Callable[[Asked], Awaitable[web.StreamResponse]]
Interceptor = Callable[[web.BaseRequest, Caller], Awaitable[ApiStatus | None]]

_NO_QUERY: Final[Query] = {}
_LABELS: Final = {
    "get": "GET",
    "list": "LIST",
    "watch": "WATCH",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETECOLLECTION",
}
_READS: Final = frozenset(("GET", "HEAD"))
CLIENT_GONE: Final = 499
"""The code under which a request is counted whose client did not wait for the answer."""

CONNECTED: Final = frozenset(("attach", "exec", "portforward", "proxy"))
"""Subresources that are connected to."""

_log = logging.getLogger("kubemini.http")


class Facade:
    """Answers HTTP requests for one `ApiServer`.

    `pages` are documents outside the resource space by path (``/version``, ``/healthz``, …), `prefixes` those of whole folders; `specials` are subresources that are
    no objects (log, exec, attach, portforward, proxy) by (storage name, subresource). `interceptors` are asked first, once it is known who asks: each may wait, and
    may return a refusal to be sent instead of an answer.
    """

    def __init__(self, server: ApiServer, schemas: BuiltinSchemas, *, token: str = "") -> None:
        self.server = server
        self.schemas = schemas
        self.metrics = RequestMetrics(server.store)
        self.resources = Resources(server, schemas, self.metrics)
        tokens = server.subresources.find("serviceaccounts", "token")
        self.issuer = tokens.issuer if isinstance(tokens, TokenSubresource) else None
        self.auth = Authenticator(token, issuer=self.issuer, reader=server.reader)
        self.authorizer = Authorizer(server.store, server.reader)
        self.discovery = Discovery(server.registry)
        self.pages: dict[str, Page] = {}
        self.prefixes: dict[str, Page] = {}
        self.specials: dict[tuple[str, str], Special] = {}
        self.interceptors: list[Interceptor] = []
        self.late: dict[str, Callable[[], None]] = {}
        """What brings the objects that the server keeps of a resource up to date, called when somebody asks for it, by storage name."""
        self.address = ""
        """``host:port`` as clients see it."""
        self.lookup: Lookup = lambda name, _namespace: (name, ())
        """The cluster's DNS, as programs in pods ask it."""

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request, whatever goes wrong."""
        clock = asyncio.get_running_loop().time
        began = clock()
        method = request.method
        query: Query = request.query if request.query_string else _NO_QUERY
        where = parse(request.path)
        if where is None:
            wanted = authorization.of_path(method, request.path)
            labels: Labels = (method, "", "", "", "", "")
        else:
            wanted = authorization.of_resource(method, where, query)
            scope = "resource" if where.name or method == "POST" else "namespace" if where.namespace else "cluster"
            labels = (_LABELS.get(wanted.verb, method), where.group, where.version, where.plural, where.subresource, scope)
        inflight = "readOnly" if method in _READS else "mutating"
        self.metrics.begin(labels, inflight)
        code = CLIENT_GONE
        try:
            response = await self._answer(request, where, query, wanted)
            code = response.status
            if answers.for_people(request.headers, query):
                answers.indent(response)
        finally:
            self.metrics.end(labels, inflight, code, clock() - began)
        return response

    async def _answer(self, request: web.BaseRequest, where: ResourcePath | None, query: Query, wanted: Attributes) -> web.StreamResponse:
        try:
            caller = self.auth.caller(request.headers, self.authorizer.allowed)
            if "timeout" in query and wanted.verb != "watch":
                bodies.timeout(query)
            self.authorizer.check(caller, wanted)
            for interceptor in self.interceptors:
                refusal = await interceptor(request, caller)
                if refusal is not None:
                    return answers.failure(request.headers, refusal)
            return await (self._document(request, caller) if where is None else self._resource(request, where, query, caller))
        except ApiStatus as problem:
            return answers.failure(request.headers, problem)
        except (ConnectionError, asyncio.CancelledError):
            raise
        except RecursionError:
            return answers.failure(request.headers, BadRequest("exceeded max depth"))
        except Exception as problem:  # noqa: BLE001  a defect of ours must not look like a broken connection
            _log.exception("%s %s failed", request.method, request.path_qs)
            return answers.failure(request.headers, InternalError(f"Internal error occurred: {problem!r}"))

    async def _resource(self, request: web.BaseRequest, where: ResourcePath, query: Query, caller: Caller) -> web.StreamResponse:
        served = self.server.registry.served(where.group, where.version, where.plural)
        if served is None:
            other = aggregated.read(self.discovery.apis(), request.method, where, query)
            return answers.no_page() if other is None else answers.tree(other, choose(request.headers.get("Accept"), collection=False, table=False))
        kind = served.kind
        self.make(kind.storage)
        if kind.namespaced and where.name and where.namespace is None:
            raise NotFound.path()
        if where.namespace is not None and not kind.namespaced:
            raise NotFound.path()
        asked = Asked(request, where, served, query, caller)
        if where.subresource and (special := self.specials.get((kind.storage, where.subresource))) is not None:
            if where.subresource in CONNECTED:
                await self._connect(asked)
            return await special(asked)
        return await self.resources.answer(asked)

    async def _connect(self, asked: Asked) -> None:
        """Ask admission about a connection into a pod, node or service. Raise what refuses it."""
        where, kind = asked.where, asked.served.kind
        sub = kind.subresource(where.subresource)
        shown: Tree = {"kind": sub.kind if sub is not None else kind.kind, "apiVersion": asked.served.api_version}
        for key in ("stdin", "stdout", "stderr", "tty"):
            if bodies.truth(asked.query, key):
                shown[key] = True
        shown |= {key: asked.query[key] for key in ("container", "path") if asked.query.get(key)}
        shown |= {key: asked.all(key) for key in ("command", "ports") if key in asked.query}
        await admitted(
            self.server, kind, asked.namespace, where.name, where.subresource, shown, WriteOptions(caller=asked.caller), operation="CONNECT"
        )

    def make(self, storage: str) -> None:
        """Bring the objects that the server keeps of a resource up to date."""
        make = self.late.get(storage)
        if make is not None:
            make()

    async def _document(self, request: web.BaseRequest, caller: Caller) -> web.StreamResponse:
        path = request.path
        bare = path.rstrip("/") or "/"
        page = self.pages.get(bare)
        if page is not None:
            return await page(request, caller)
        if bare in ("/api", "/apis"):
            return self._discover(request.headers, bare)
        document = self.discovery.document(bare)
        if document is not None:
            return answers.json_bytes(document)
        for prefix, answer in self.prefixes.items():
            if path.startswith(prefix):
                return await answer(request, caller)
        if bare.startswith(("/api/", "/apis/")):
            raise NotFound.path()
        return answers.no_page()

    def _discover(self, headers: Mapping[str, str], path: str) -> web.Response:
        for one in accepted(headers.get("Accept", "")):
            if one.as_ == "APIGroupDiscoveryList" and one.group == "apidiscovery.k8s.io" and one.version == "v2":
                body, tag = self.discovery.aggregated(path[1:])
                known = {"ETag": tag, "Vary": "Accept", "Cache-Control": "public"}
                if headers.get("If-None-Match") == tag:
                    return web.Response(status=304, headers=known)
                return web.Response(body=body, headers={**known, "Content-Type": AGGREGATED})
            if not one.as_:
                break
        if path == "/api":
            address = [{"clientCIDR": "0.0.0.0/0", "serverAddress": self.address}]
            return answers.json_bytes(orjson.dumps({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": address}))
        return answers.json_bytes(self.discovery.document("/apis") or b"{}")

    def close(self) -> None:
        """End every open watch: their clients see the end of the stream, and come back."""
        self.resources.close()


__all__ = ["BODY_LIMIT", "Facade", "Interceptor", "Page", "Special"]
