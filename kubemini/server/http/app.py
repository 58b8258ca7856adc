"""The request handler: authenticate, route, decode, call the request path, answer.

It is one function per verb over aiohttp's low-level server; the URL space of Kubernetes is regular, so a router would only cost time.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
import yaml
from aiohttp import web

from kubemini.api.trees import Tree
from kubemini.machinery.errors import ApiStatus, BadRequest, InternalError, MethodNotAllowed, NotFound, TooLarge
from kubemini.machinery.schema.builtin import BuiltinSchemas
from kubemini.server.http import bodies, forms, watching
from kubemini.server.http.auth import Authenticator
from kubemini.server.http.bodies import Query
from kubemini.server.http.discovery import AGGREGATED, Discovery
from kubemini.server.http.negotiation import JSON, YAML, Accepted, accepted, choose, choose_watch
from kubemini.server.http.paths import ResourcePath, parse
from kubemini.server.options import Caller, ListOptions, Outcome, Patch
from kubemini.server.registry import Served
from kubemini.server.requests import ApiServer
from kubemini.server.subresources import ScaleSubresource

BODY_LIMIT = 3 * 1024 * 1024
WATCH_SECONDS = (1800.0, 3600.0)
"""Bounds of a watch's length where the client names none."""
FUTURE_WAIT = 3.0
"""Seconds that a read waits for a resourceVersion that has not happened yet."""

Extra = Callable[[web.BaseRequest, Caller], Awaitable[web.StreamResponse]]
Special = Callable[[web.BaseRequest, ResourcePath, Served, Caller], Awaitable[web.StreamResponse]]

_log = logging.getLogger("kubemini.http")


class Facade:
    """Answers HTTP requests for one `ApiServer`.

    `pages` are documents outside the resource space by path (``/version``, ``/healthz``, …); `specials` are subresources that are no objects (log, exec,
    attach, portforward, proxy) by (storage name, subresource).
    """

    def __init__(self, server: ApiServer, schemas: BuiltinSchemas, *, token: str = "") -> None:
        self.server = server
        self.schemas = schemas
        self.auth = Authenticator(token)
        self.discovery = Discovery(server.registry)
        self.pages: dict[str, Extra] = {}
        self.prefixes: dict[str, Extra] = {}
        self.specials: dict[tuple[str, str], Special] = {}
        self.address = ""
        """``host:port`` as clients see it."""

    # ------------------------------------------------------------------ the entry

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        try:
            return await self._route(request)
        except ApiStatus as problem:
            return _failure(request, problem)
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception as problem:
            _log.exception("%s %s failed", request.method, request.path_qs)
            return _failure(request, InternalError(f"Internal error occurred: {problem!r}"))

    async def _route(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        caller = self.auth.caller(request.headers, path)
        where = parse(path)
        if where is None:
            return await self._document(request, path, caller)
        served = self.server.registry.served(where.group, where.version, where.plural)
        if served is None:
            document = self.discovery.document(path)
            if document is not None:
                return _json(document)
            return web.Response(status=404, text="404 page not found\n")
        query: Query = request.query if request.query_string else {}
        kind = served.kind
        if kind.namespaced and where.name and where.namespace is None:
            raise NotFound.path()
        if where.namespace is not None and not kind.namespaced:
            raise NotFound.path()
        if where.subresource and (special := self.specials.get((kind.storage, where.subresource))) is not None:
            return await special(request, where, served, caller)
        return await self._verb(request, where, served, query, caller)

    async def _verb(self, request: web.BaseRequest, where: ResourcePath, served: Served, query: Query, caller: Caller) -> web.StreamResponse:
        method = request.method
        if method in ("GET", "HEAD"):
            if where.name and not where.watch:
                return await self._get(request, where, served, query, caller)
            return await self._list_or_watch(request, where, served, query, caller)
        if method == "POST":
            return await self._create(request, where, served, query, caller)
        if not where.name and method != "DELETE":
            raise MethodNotAllowed
        if method == "PUT":
            return await self._update(request, where, served, query, caller)
        if method == "PATCH":
            return await self._patch(request, where, served, query, caller)
        if method == "DELETE":
            return await self._delete(request, where, served, query, caller)
        raise MethodNotAllowed

    # ------------------------------------------------------------------ documents

    async def _document(self, request: web.BaseRequest, path: str, caller: Caller) -> web.StreamResponse:
        bare = path.rstrip("/") or "/"
        page = self.pages.get(bare)
        if page is not None:
            return await page(request, caller)
        if bare in ("/api", "/apis"):
            return self._discover(request, bare)
        document = self.discovery.document(bare)
        if document is not None:
            return _json(document)
        for prefix, answer in self.prefixes.items():
            if path.startswith(prefix):
                return await answer(request, caller)
        if bare.startswith(("/api/", "/apis/")):
            raise NotFound.path()
        return web.Response(status=404, text="404 page not found\n")

    def _discover(self, request: web.BaseRequest, path: str) -> web.Response:
        for one in accepted(request.headers.get("Accept", "")):
            if one.as_ == "APIGroupDiscoveryList" and one.group == "apidiscovery.k8s.io" and one.version == "v2":
                body, tag = self.discovery.aggregated(path[1:])
                headers = {"ETag": tag, "Vary": "Accept", "Cache-Control": "public"}
                if request.headers.get("If-None-Match") == tag:
                    return web.Response(status=304, headers=headers)
                return web.Response(body=body, headers={**headers, "Content-Type": AGGREGATED})
            if not one.as_:
                break
        if path == "/api":
            address = [{"clientCIDR": "0.0.0.0/0", "serverAddress": self.address}]
            return _json(orjson.dumps({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": address}))
        return _json(self.discovery.document("/apis") or b"{}")

    # ------------------------------------------------------------------ reads

    async def _get(self, request: web.BaseRequest, where: ResourcePath, served: Served, query: Query, caller: Caller) -> web.StreamResponse:
        accept = choose(request.headers.get("Accept"), collection=False)
        kind = served.kind
        if kind.handler is not None:
            if "get" not in kind.verbs:
                raise MethodNotAllowed
            obj = kind.handler.get(where.namespace or "", where.name, self._context(caller))
            if obj is None:
                raise NotFound.of(kind.plural, kind.group, where.name)
            return self._object(served, served.from_storage(obj), accept, query, 200, [])
        wanted = query.get("resourceVersion", "")
        if wanted.isdigit():
            await self._reached(int(wanted))
        record = self.server.get(served, where.namespace or "", where.name, resource_version=wanted)
        warnings = [served.version.deprecation] if served.version.deprecation else []
        if where.subresource:
            behaviour = self.server.subresource(served, where.subresource)
            if isinstance(behaviour, ScaleSubresource):
                return self._object(served, behaviour.shown(kind, served.from_storage(record.obj)), accept, query, 200, warnings)
            declared = kind.subresource(where.subresource)
            if declared is not None and "get" not in declared.verbs:
                raise MethodNotAllowed
        if not accept.as_ and accept.media == JSON:
            return _json(forms.encode(record, served), 200, warnings)
        return self._object(served, served.from_storage(record.obj), accept, query, 200, warnings)

    async def _reached(self, revision: int) -> None:
        """Wait a little for a revision that has not happened yet: another client may have it in hand already."""
        deadline = asyncio.get_running_loop().time() + FUTURE_WAIT
        while revision > self.server.store.revision and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.05)

    async def _list_or_watch(self, request: web.BaseRequest, where: ResourcePath, served: Served, query: Query, caller: Caller) -> web.StreamResponse:
        options = bodies.list_options(query)
        if where.name:
            options = _of_name(options, where.name)
        if where.watch or bodies.truth(query, "watch"):
            if "watch" not in served.kind.verbs:
                raise MethodNotAllowed
            return await self._watch(request, where, served, query, options)
        if "list" not in served.kind.verbs:
            raise MethodNotAllowed
        accept = choose(request.headers.get("Accept"), collection=True)
        namespace = where.namespace or ""
        if served.kind.handler is not None:
            return self._virtual_list(served, namespace, options, accept, query, caller)
        if options.resource_version.isdigit() and not options.continue_token:
            await self._reached(int(options.resource_version))
        listing = self.server.list(served, namespace, options)
        warnings = [served.version.deprecation] if served.version.deprecation else []
        if not accept.as_:
            pieces = forms.list_body(listing, served)
            if accept.media == JSON:
                return _json(b"".join(pieces), 200, warnings)
            return _yaml(orjson.loads(b"".join(pieces)), 200, warnings)
        if accept.as_ == "Table":
            meta: Tree = {"resourceVersion": str(listing.revision)}
            if listing.continue_token:
                meta["continue"] = listing.continue_token
                if listing.remaining:
                    meta["remainingItemCount"] = listing.remaining
            objects = [served.from_storage(record.obj) for record in listing.records]
            tree = forms.table_body(objects, served, meta, include=query.get("includeObject", ""), now=self.server.env.now(), version=accept.version)
        else:
            tree = forms.partial_list(listing, accept.version)
        return _tree(tree, accept, 200, warnings)

    def _virtual_list(self, served: Served, namespace: str, options: ListOptions, accept: Accepted, query: Query, caller: Caller) -> web.Response:
        handler = served.kind.handler
        if handler is None:
            raise MethodNotAllowed
        predicate, _ = self.server.selection(served, options)
        items = [obj for obj in handler.list(namespace, self._context(caller)) if predicate is None or predicate(obj)]
        meta: Tree = {"resourceVersion": str(self.server.store.revision)}
        if accept.as_ == "Table":
            tree = forms.table_body(items, served, meta, include=query.get("includeObject", ""), now=self.server.env.now(), version=accept.version)
        else:
            shown = [forms.partial(item, accept.version) for item in items] if accept.as_ else items
            kind = "PartialObjectMetadataList" if accept.as_ else served.kind.list_kind
            tree = {"kind": kind, "apiVersion": served.api_version, "metadata": meta, "items": shown}
        return _tree(tree, accept, 200, [])

    async def _watch(self, request: web.BaseRequest, where: ResourcePath, served: Served, query: Query, options: ListOptions) -> web.StreamResponse:
        accept = choose_watch(request.headers.get("Accept"))
        timeout = options.timeout
        if timeout is None or timeout <= 0:
            timeout = self.server.env.random.uniform(*WATCH_SECONDS)
        include = query.get("includeObject", "")
        upgrade = request.headers.get("Upgrade", "").lower() == "websocket"
        respond = watching.respond_websocket if upgrade else watching.respond_http
        start = watching.opened(self.server, served, where.namespace or "", options)
        return await respond(request, self.server, served, start, options, accept, include, timeout)

    # ------------------------------------------------------------------ writes

    async def _create(self, request: web.BaseRequest, where: ResourcePath, served: Served, query: Query, caller: Caller) -> web.StreamResponse:
        if where.name and not where.subresource:
            raise MethodNotAllowed
        if where.subresource:
            return await self._act(request, where, served, query, caller)
        accept = choose(request.headers.get("Accept"), collection=False)
        if served.kind.namespaced and where.namespace is None and served.kind.handler is None:
            raise MethodNotAllowed
        body = await self._body(request, served)
        options = bodies.write_options(query, caller, "CreateOptions", dry=_all(request, "dryRun"), duplicates=body.duplicates)
        tree = _object_of(body, served)
        outcome = await self.server.create(served, where.namespace or "", tree, options)
        return self._outcome(served, outcome, accept, query)

    async def _act(self, request: web.BaseRequest, where: ResourcePath, served: Served, query: Query, caller: Caller) -> web.StreamResponse:
        accept = choose(request.headers.get("Accept"), collection=False)
        body = bodies.parse(await _read(request), bodies.media_type(request.headers.get("Content-Type")), self.schemas)
        options = bodies.write_options(query, caller, "CreateOptions", dry=_all(request, "dryRun"))
        tree = body.value if body.value is not None else {}
        if not isinstance(tree, dict):
            raise BadRequest("the body must be an object")
        outcome = await self.server.act(served, where.namespace or "", where.name, where.subresource, tree, options)
        return _tree(outcome.obj, accept, outcome.code, outcome.warnings)

    async def _update(self, request: web.BaseRequest, where: ResourcePath, served: Served, query: Query, caller: Caller) -> web.StreamResponse:
        accept = choose(request.headers.get("Accept"), collection=False)
        body = await self._body(request, served)
        options = bodies.write_options(query, caller, "UpdateOptions", dry=_all(request, "dryRun"), duplicates=body.duplicates)
        tree = _object_of(body, served)
        outcome = await self.server.update(served, where.namespace or "", where.name, tree, options, subresource=where.subresource)
        return self._outcome(served, outcome, accept, query)

    async def _patch(self, request: web.BaseRequest, where: ResourcePath, served: Served, query: Query, caller: Caller) -> web.StreamResponse:
        accept = choose(request.headers.get("Accept"), collection=False)
        media = bodies.media_type(request.headers.get("Content-Type"))
        type_, body = bodies.parse_patch(await _read(request), media, custom=served.kind.custom)
        options = bodies.write_options(query, caller, "PatchOptions", dry=_all(request, "dryRun"), patch_type=type_)
        if body.duplicates and options.field_validation == "Strict":
            raise BadRequest(f"error strict decoding patch: {', '.join(body.duplicates)}")
        outcome = await self.server.patch(served, where.namespace or "", where.name, Patch(type_, body.value), options, subresource=where.subresource)
        if options.field_validation == "Warn":
            outcome.warnings[:0] = body.duplicates
        return self._outcome(served, outcome, accept, query)

    async def _delete(self, request: web.BaseRequest, where: ResourcePath, served: Served, query: Query, caller: Caller) -> web.StreamResponse:
        accept = choose(request.headers.get("Accept"), collection=False, table=False)
        data = await _read(request)
        body = bodies.parse(data, bodies.media_type(request.headers.get("Content-Type")), self.schemas) if data else bodies.Body()
        if body.value is not None and not isinstance(body.value, dict):
            raise BadRequest("the body must be a DeleteOptions object")
        options = bodies.delete_options(body.value, query, caller, _all(request, "dryRun"))
        if where.name:
            if where.subresource:
                raise MethodNotAllowed
            outcome = await self.server.delete(served, where.namespace or "", where.name, options)
            return _tree(outcome.obj, accept, outcome.code, outcome.warnings)
        if served.kind.namespaced and where.namespace is None:
            raise MethodNotAllowed
        found = await self.server.delete_collection(served, where.namespace or "", bodies.list_options(query), options)
        items = found if served.kind.custom else [{key: value for key, value in item.items() if key not in ("apiVersion", "kind")} for item in found]
        meta = {"resourceVersion": str(self.server.store.revision)}
        return _tree({"kind": served.kind.list_kind, "apiVersion": served.api_version, "metadata": meta, "items": items}, accept, 200, [])

    # ------------------------------------------------------------------ bodies and answers

    async def _body(self, request: web.BaseRequest, served: Served) -> bodies.Body:
        media = bodies.media_type(request.headers.get("Content-Type"))
        return bodies.parse(await _read(request), media, None if served.kind.custom else self.schemas)

    def _context(self, caller: Caller) -> Any:
        from kubemini.server.options import WriteOptions

        return self.server.context(WriteOptions(caller=caller))

    def _outcome(self, served: Served, outcome: Outcome, accept: Accepted, query: Query) -> web.Response:
        warnings = list(outcome.warnings)
        if served.version.deprecation:
            warnings.insert(0, served.version.deprecation)
        if outcome.record is not None and not accept.as_ and accept.media == JSON and served.stored_as_is:
            return _json(outcome.record.bytes, outcome.code, warnings)
        return self._object(served, outcome.obj, accept, query, outcome.code, warnings)

    def _object(self, served: Served, obj: Tree, accept: Accepted, query: Query, code: int, warnings: list[str]) -> web.Response:
        if accept.as_ == "Table":
            meta = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
            include, now = query.get("includeObject", ""), self.server.env.now()
            if obj.get("kind") == "Scale" and served.kind.kind != "Scale":
                obj = _scale_table(obj, meta, now, accept.version)
            else:
                obj = forms.table_body([obj], served, meta, include=include, now=now, version=accept.version)
        elif accept.as_:
            obj = forms.partial(obj, accept.version)
        return _tree(obj, accept, code, warnings)


def _scale_table(scale: Tree, meta: Tree, now: float, version: str) -> Tree:
    from kubemini.machinery.human import age

    columns = [("Name", "string", "name"), ("Desired", "integer", ""), ("Available", "integer", ""), ("Age", "string", "")]
    cells = [scale["metadata"]["name"], scale["spec"].get("replicas", 0), scale["status"].get("replicas", 0), age(scale["metadata"].get("creationTimestamp"), now)]
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": meta,
        "columnDefinitions": [{"name": name, "type": type_, "format": format_, "description": "", "priority": 0} for name, type_, format_ in columns],
        "rows": [{"cells": cells, "object": forms.partial(scale, version)}],
    }


def _of_name(options: ListOptions, name: str) -> ListOptions:
    from dataclasses import replace

    fields = f"{options.field_selector},metadata.name={name}" if options.field_selector else f"metadata.name={name}"
    return replace(options, field_selector=fields)


def _all(request: web.BaseRequest, name: str) -> list[str]:
    return list(request.query.getall(name, [])) if request.query_string and name in request.query_string else []


async def _read(request: web.BaseRequest) -> bytes:
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise TooLarge(f"Request entity too large: limit is {BODY_LIMIT}") from None


def _object_of(body: bodies.Body, served: Served) -> Tree:
    """Return a body that must be an object. Raise `BadRequest`."""
    tree = body.value
    kind, version = served.kind.kind, served.version.name
    if isinstance(tree, dict):
        return tree
    if tree is None:
        raise BadRequest("Object 'Kind' is missing in ''" if not served.kind.custom else "unable to decode an empty body")
    raise BadRequest(f'{kind} in version "{version}" cannot be handled as a {kind}: json: cannot unmarshal {_json_type(tree)} into Go value of type {version}.{kind}')


def _json_type(value: object) -> str:
    return {bool: "bool", str: "string", int: "number", float: "number", list: "array"}.get(type(value), "object")


def _json(body: bytes, code: int = 200, warnings: list[str] | None = None) -> web.Response:
    response = web.Response(body=body, status=code, headers=_HEADERS)
    if warnings:
        _warn(response, warnings)
    return response


def _yaml(tree: Any, code: int, warnings: list[str]) -> web.Response:
    text = yaml.safe_dump(tree, sort_keys=False, default_flow_style=False)
    response = web.Response(body=text.encode(), status=code, headers={**_HEADERS, "Content-Type": YAML})
    _warn(response, warnings)
    return response


_HEADERS = {"Content-Type": JSON, "Cache-Control": "no-cache, private", "Audit-Id": "00000000-0000-4000-8000-000000000000"}


def _tree(tree: Any, accept: Accepted, code: int, warnings: list[str]) -> web.Response:
    if accept.media == YAML:
        return _yaml(tree, code, warnings)
    return _json(orjson.dumps(tree), code, warnings)


def _warn(response: web.Response, warnings: list[str]) -> None:
    for text in dict.fromkeys(warnings):
        response.headers.add("Warning", f"299 - {json.dumps(text)}")


def _failure(request: web.BaseRequest, problem: ApiStatus) -> web.Response:
    media = next((one.media for one in accepted(request.headers.get("Accept", "")) if one.media), JSON)
    tree = problem.to_status()
    response = _yaml(tree, problem.code, []) if media == YAML else _json(orjson.dumps(tree), problem.code)
    if problem.retry_after:
        response.headers["Retry-After"] = str(problem.retry_after)
    return response
