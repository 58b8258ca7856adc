"""The verbs on resources: from a routed request to a call of the request path, and from its outcome to an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson
from aiohttp import web

from kubemini.api.trees import Tree
from kubemini.machinery.errors import ApiStatus, BadRequest, MethodNotAllowed, NotFound, Timeout, TooLarge
from kubemini.machinery.gotext import parse_uint
from kubemini.machinery.schema.builtin import BuiltinSchemas
from kubemini.server.deleting import deletion_warnings
from kubemini.server.http import answers, bodies, forms, watching
from kubemini.server.http.bodies import Query
from kubemini.server.http.metrics import RequestMetrics
from kubemini.server.http.negotiation import JSON, Accepted, choose, choose_watch
from kubemini.server.http.paths import ResourcePath
from kubemini.server.options import Caller, ListOptions, Outcome, Patch, WriteOptions
from kubemini.server.registry import Served
from kubemini.server.requests import ApiServer
from kubemini.server.strategy import WriteContext
from kubemini.server.subresources import ScaleSubresource

BODY_LIMIT: Final = 3 * 1024 * 1024
WATCH_SECONDS: Final = (1800.0, 3600.0)
"""Bounds of a watch's length where the client names none."""
FUTURE_WAIT: Final = 3.0
"""Seconds that a read waits for a resourceVersion that has not happened yet."""


@dataclass(slots=True)
class Asked:
    """A request whose path names something that is served."""

    request: web.BaseRequest
    where: ResourcePath
    served: Served
    query: Query
    caller: Caller

    @property
    def headers(self) -> Mapping[str, str]:
        """The request's headers."""
        return self.request.headers

    @property
    def namespace(self) -> str:
        """The namespace of the path, "" for none."""
        return self.where.namespace or ""

    def accept(self, *, collection: bool = False, table: bool = True) -> Accepted:
        """Return the form of the answer. Raise `NotAcceptable`."""
        return choose(self.request.headers.get("Accept"), collection=collection, table=table)

    def all(self, name: str) -> list[str]:
        """Return every value of a query parameter."""
        return list(self.request.query.getall(name, [])) if name in self.query else []

    @property
    def deprecation(self) -> list[str]:
        """The warning that the version is deprecated, where it is."""
        text = self.served.version.deprecation
        return [text] if text else []


class Resources:
    """Answers requests for resources of one `ApiServer`."""

    def __init__(self, server: ApiServer, schemas: BuiltinSchemas, metrics: RequestMetrics) -> None:
        self.server = server
        self.schemas = schemas
        self.metrics = metrics
        self._pushes: dict[int, watching.Push] = {}
        self._line = watching.Line()

    def close(self) -> None:
        """End every open watch."""
        for push in tuple(self._pushes.values()):
            push.stop()

    async def answer(self, asked: Asked) -> web.StreamResponse:
        """Do what the method says. Raise any `ApiStatus`."""
        method, where = asked.request.method, asked.where
        try:
            if method in ("GET", "HEAD"):
                return await (self._get(asked) if where.name and not where.watch else self._list_or_watch(asked))
            if method == "POST":
                return await (self._act(asked) if where.subresource else self._create(asked))
            if method == "DELETE":
                return await (self._delete(asked) if where.name else self._delete_collection(asked))
            if where.name and method == "PUT":
                return await self._update(asked)
            if where.name and method == "PATCH":
                return await self._patch(asked)
            raise MethodNotAllowed
        except ApiStatus as refusal:
            refusal.warned(asked.deprecation)
            raise

    # ------------------------------------------------------------------ get

    async def _get(self, asked: Asked) -> web.StreamResponse:
        accept = asked.accept()
        served, where = asked.served, asked.where
        kind = served.kind
        if kind.handler is not None:
            if "get" not in kind.verbs:
                raise MethodNotAllowed
            obj = kind.handler.get(asked.namespace, where.name, self._context(asked.caller))
            if obj is None:
                raise NotFound.of(kind.plural, kind.group, where.name)
            return self._object(asked, served.from_storage(obj), accept)
        wanted = asked.query.get("resourceVersion", "")
        if wanted:
            await self._reached(wanted)
        record = self.server.get(served, asked.namespace, where.name, resource_version=wanted)
        if where.subresource:
            behaviour = self.server.subresource(served, where.subresource)
            if isinstance(behaviour, ScaleSubresource):
                return self._object(asked, behaviour.shown(kind, served.from_storage(record.obj)), accept, warnings=asked.deprecation)
            declared = kind.subresource(where.subresource)
            if declared is not None and "get" not in declared.verbs:
                raise MethodNotAllowed
        if accept.plain:
            return answers.json_bytes(forms.encode(record, served), 200, asked.deprecation)
        return self._object(asked, served.from_storage(record.obj), accept, warnings=asked.deprecation)

    async def _reached(self, asked: str) -> None:
        """Wait a little for a revision that has not happened yet: another client may have it in hand already. Raise `Timeout`."""
        store = self.server.store
        try:
            revision = parse_uint(asked)
        except ValueError:
            return
        if revision > store.revision:
            try:
                async with asyncio.timeout(FUTURE_WAIT):
                    await store.reached(revision)
            except TimeoutError:
                raise Timeout.future_revision(revision, store.revision) from None

    # ------------------------------------------------------------------ list and watch

    async def _list_or_watch(self, asked: Asked) -> web.StreamResponse:
        where, kind = asked.where, asked.served.kind
        options = bodies.list_options(asked.query)
        if where.name:
            options = _of_name(options, where.name)
        if where.watch or (asked.query and bodies.truth(asked.query, "watch")):
            if "watch" not in kind.verbs:
                raise MethodNotAllowed
            return await self._watch(asked, options)
        if "list" not in kind.verbs:
            raise MethodNotAllowed
        accept = asked.accept(collection=True)
        if kind.handler is not None:
            return self._virtual_list(asked, options, accept)
        if options.resource_version and not options.continue_token:
            await self._reached(options.resource_version)
        return self._list(asked, options, accept)

    def _list(self, asked: Asked, options: ListOptions, accept: Accepted) -> web.Response:
        served = asked.served
        listing = self.server.list(served, asked.namespace, options)
        if accept.plain:
            return answers.json_bytes(b"".join(forms.list_body(listing, served)), 200, asked.deprecation)
        if not accept.as_:
            tree: Tree = orjson.loads(b"".join(forms.list_body(listing, served)))
        elif accept.as_ == "Table":
            objects = [served.from_storage(record.obj) for record in listing.records]
            tree = self._table(asked, objects, forms.list_meta(listing), accept)
        else:
            tree = forms.partial_list(listing, accept.version)
        return answers.tree(tree, accept, 200, asked.deprecation)

    def _virtual_list(self, asked: Asked, options: ListOptions, accept: Accepted) -> web.Response:
        served, handler = asked.served, asked.served.kind.handler
        if handler is None:
            raise MethodNotAllowed
        predicate, _ = self.server.selection(served, options)
        items = [obj for obj in handler.list(asked.namespace, self._context(asked.caller)) if predicate is None or predicate(obj)]
        meta: Tree = {"resourceVersion": str(self.server.store.revision)}
        if accept.as_ == "Table":
            return answers.tree(self._table(asked, items, meta, accept), accept)
        shown = [forms.partial(item, accept.version) for item in items] if accept.as_ else items
        kind = "PartialObjectMetadataList" if accept.as_ else served.kind.list_kind
        return answers.tree({"kind": kind, "apiVersion": served.api_version, "metadata": meta, "items": shown}, accept)

    def _table(self, asked: Asked, objects: list[Tree], meta: Tree, accept: Accepted) -> Tree:
        include = asked.query.get("includeObject", "")
        return forms.table_body(objects, asked.served, meta, include=include, now=self.server.env.now(), version=accept.version)

    async def _watch(self, asked: Asked, options: ListOptions) -> web.StreamResponse:
        accept = choose_watch(asked.headers.get("Accept"))
        timeout = options.timeout
        if not timeout:
            timeout = self.server.env.random.uniform(*WATCH_SECONDS)
        if options.resource_version and options.send_initial_events:
            await self._reached(options.resource_version)
        start = watching.opened(self.server, asked.served, asked.namespace, options)
        feed = watching.Feed(self.server, asked.served, start, options, accept, asked.query.get("includeObject", ""), self.metrics)
        opened: list[watching.Push] = []

        def register(push: watching.Push) -> None:
            opened.append(push)
            self._pushes[id(push)] = push

        try:
            if asked.headers.get("Upgrade", "").lower() == "websocket":
                return await watching.respond_websocket(asked.request, feed, timeout, self._line, register)
            return await watching.respond_http(asked.request, feed, timeout, self._line, register, asked.deprecation)
        finally:
            feed.close()
            for push in opened:
                del self._pushes[id(push)]

    # ------------------------------------------------------------------ writes

    async def _create(self, asked: Asked) -> web.StreamResponse:
        served, where = asked.served, asked.where
        if where.name:
            raise MethodNotAllowed
        accept = asked.accept(table=served.kind.handler is None)
        if served.kind.namespaced and where.namespace is None and served.kind.handler is None:
            raise MethodNotAllowed
        body = await self._body(asked)
        options = bodies.write_options(asked.query, asked.caller, "CreateOptions", dry=asked.all("dryRun"), duplicates=body.duplicates)
        outcome = await self.server.create(served, asked.namespace, _object_of(body, served), options)
        return self._outcome(asked, outcome, accept)

    async def _act(self, asked: Asked) -> web.StreamResponse:
        where = asked.where
        accept = asked.accept(table=False)
        body = bodies.parse(await read(asked.request), bodies.media_type(asked.headers.get("Content-Type")), self.schemas)
        options = bodies.write_options(asked.query, asked.caller, "CreateOptions", dry=asked.all("dryRun"))
        tree = body.value if body.value is not None else {}
        if not isinstance(tree, dict):
            raise BadRequest("the body must be an object")
        outcome = await self.server.act(asked.served, asked.namespace, where.name, where.subresource, tree, options)
        return answers.tree(outcome.obj, accept, outcome.code, outcome.warnings)

    async def _update(self, asked: Asked) -> web.StreamResponse:
        where, served = asked.where, asked.served
        accept = asked.accept()
        body = await self._body(asked)
        options = bodies.write_options(asked.query, asked.caller, "UpdateOptions", dry=asked.all("dryRun"), duplicates=body.duplicates)
        outcome = await self.server.update(served, asked.namespace, where.name, _object_of(body, served), options, subresource=where.subresource)
        return self._outcome(asked, outcome, accept)

    async def _patch(self, asked: Asked) -> web.StreamResponse:
        where, served = asked.where, asked.served
        accept = asked.accept()
        media = bodies.media_type(asked.headers.get("Content-Type"))
        type_, body = bodies.parse_patch(await read(asked.request), media, custom=served.kind.custom)
        options = bodies.write_options(asked.query, asked.caller, "PatchOptions", dry=asked.all("dryRun"), patch_type=type_)
        if body.duplicates and options.field_validation == "Strict":
            raise BadRequest(f"error strict decoding patch: {', '.join(body.duplicates)}")
        patch = Patch(type_, body.value)
        duplicates = body.duplicates if options.field_validation == "Warn" else []
        try:
            outcome = await self.server.patch(served, asked.namespace, where.name, patch, options, subresource=where.subresource)
        except ApiStatus as refusal:
            refusal.warned(duplicates)
            raise
        outcome.warnings[:0] = duplicates
        return self._outcome(asked, outcome, accept)

    # ------------------------------------------------------------------ deletes

    async def _delete(self, asked: Asked) -> web.StreamResponse:
        accept = asked.accept(table=False)
        body = await self._delete_body(asked)
        if asked.where.subresource:
            raise MethodNotAllowed
        options = bodies.delete_options(body, asked.query, asked.caller, asked.all("dryRun"))
        outcome = await self.server.delete(asked.served, asked.namespace, asked.where.name, options)
        obj = outcome.obj
        if accept.as_ and obj.get("kind") != "Status":
            obj = forms.partial(obj, accept.version)
        return answers.tree(obj, accept, outcome.code, [*asked.deprecation, *outcome.warnings])

    async def _delete_collection(self, asked: Asked) -> web.StreamResponse:
        served = asked.served
        accept = asked.accept(collection=True, table=False)
        if served.kind.namespaced and asked.where.namespace is None:
            raise MethodNotAllowed
        body = await self._delete_body(asked)
        options = bodies.delete_options(body, asked.query, asked.caller, asked.all("dryRun"))
        found = await self.server.delete_collection(served, asked.namespace, bodies.list_options(asked.query), options)
        warnings = [*asked.deprecation, *deletion_warnings(served.kind, options)]
        meta = {"resourceVersion": str(self.server.store.revision)}
        if accept.as_:
            return answers.tree(
                {
                    "kind": "PartialObjectMetadataList",
                    "apiVersion": f"meta.k8s.io/{accept.version}",
                    "metadata": meta,
                    "items": [forms.partial(item, accept.version) for item in found],
                },
                accept,
                warnings=warnings,
            )
        items = found if served.kind.custom else [{key: value for key, value in item.items() if key not in ("apiVersion", "kind")} for item in found]
        listed = {"kind": served.kind.list_kind, "apiVersion": served.api_version, "metadata": meta, "items": items}
        return answers.tree(listed, accept, warnings=warnings)

    async def _delete_body(self, asked: Asked) -> Tree | None:
        data = await read(asked.request)
        if not data:
            return None
        body = bodies.parse(data, bodies.media_type(asked.headers.get("Content-Type")), self.schemas)
        if body.value is not None and not isinstance(body.value, dict):
            raise BadRequest("the body must be a DeleteOptions object")
        return body.value

    # ------------------------------------------------------------------ bodies and answers

    async def _body(self, asked: Asked) -> bodies.Body:
        media = bodies.media_type(asked.headers.get("Content-Type"))
        return bodies.parse(await read(asked.request), media, None if asked.served.kind.custom else self.schemas)

    def _context(self, caller: Caller) -> WriteContext:
        return self.server.context(WriteOptions(caller=caller))

    def _outcome(self, asked: Asked, outcome: Outcome, accept: Accepted) -> web.Response:
        warnings = [*asked.deprecation, *outcome.warnings]
        if outcome.record is not None and accept.plain and asked.served.stored_as_is:
            return answers.json_bytes(outcome.record.bytes, outcome.code, warnings)
        return self._object(asked, outcome.obj, accept, outcome.code, warnings)

    def _object(self, asked: Asked, obj: Tree, accept: Accepted, code: int = 200, warnings: list[str] | None = None) -> web.Response:
        if accept.as_ == "Table":
            meta = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
            if obj.get("kind") == "Scale" and asked.served.kind.kind != "Scale":
                obj = forms.scale_table(obj, meta, self.server.env.now(), accept.version)
            else:
                obj = self._table(asked, [obj], meta, accept)
        elif accept.as_:
            obj = forms.partial(obj, accept.version)
        return answers.tree(obj, accept, code, warnings or ())


async def read(request: web.BaseRequest) -> bytes:
    """Return a request's body. Raise `TooLarge`."""
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise TooLarge(f"Request entity too large: limit is {BODY_LIMIT}") from None


def _of_name(options: ListOptions, name: str) -> ListOptions:
    fields = f"{options.field_selector},metadata.name={name}" if options.field_selector else f"metadata.name={name}"
    return replace(options, field_selector=fields)


def _object_of(body: bodies.Body, served: Served) -> Tree:
    """Return a body that must be an object. Raise `BadRequest`."""
    tree = body.value
    kind, version = served.kind.kind, served.version.name
    if isinstance(tree, dict):
        return tree
    if tree is None:
        raise BadRequest("Object 'Kind' is missing in ''" if not served.kind.custom else "unable to decode an empty body")
    raise BadRequest(
        f'{kind} in version "{version}" cannot be handled as a {kind}: json: cannot unmarshal {_json_type(tree)} into Go value of type {version}.{kind}'
    )


def _json_type(value: Any) -> str:
    return {bool: "bool", str: "string", int: "number", float: "number", list: "array"}.get(type(value), "object")


__all__ = ["BODY_LIMIT", "JSON", "Asked", "Resources", "read"]
