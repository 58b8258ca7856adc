"""Documents outside the resource space: version, the root, OpenAPI, metrics, OpenID. Health has a module of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

import orjson
from aiohttp import web

from kubemini.machinery.errors import NotAcceptable
from kubemini.server.http import answers, executing, health, logs, proxies
from kubemini.server.http.app import Facade
from kubemini.server.http.health import Check
from kubemini.server.http.metrics import CONTENT_TYPE
from kubemini.server.options import Caller
from kubemini.server.registry import Kind
from kubemini.server.subresources.token import ISSUER, TokenIssuer

if TYPE_CHECKING:
    from kubemini.machinery.openapi import OpenApiDocuments

_JSON_ONLY: Final = ("application/json", "*/*", "application/*")
_SWAGGER_PROTOBUF: Final = (
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
)
"""The media type, and its old spelling, which clients still send."""

_Made = TypeVar("_Made")


def install(facade: Facade, *, version: str, patch: str, ready: Check) -> None:
    """Serve the documents of a cluster that emulates Kubernetes `version` (``1.36``) and is `ready` when its caches are in sync."""
    described = _version(version, patch)

    async def version_page(request: web.BaseRequest, caller: Caller) -> web.StreamResponse:
        return answers.indented(described)

    async def root(request: web.BaseRequest, caller: Caller) -> web.StreamResponse:
        return answers.indented({"paths": _paths(facade)})

    async def metrics(request: web.BaseRequest, caller: Caller) -> web.StreamResponse:
        return web.Response(body=facade.metrics.text(), headers={"Content-Type": CONTENT_TYPE})

    facade.pages["/version"] = version_page
    facade.pages["/"] = root
    facade.pages["/metrics"] = metrics
    health.install(facade, ready)
    logs.install(facade)
    executing.install(facade)
    proxies.install(facade)
    _openapi(facade)
    if facade.issuer is not None:
        _openid(facade, facade.issuer)


def _version(version: str, patch: str) -> dict[str, str]:
    major, _, minor = version.partition(".")
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(int(minor) - 1),
        "gitVersion": f"v{version}.{patch}",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z",
        "goVersion": "go1.25",
        "compiler": "gc",
        "platform": "linux/amd64",
    }


def _paths(facade: Facade) -> list[str]:
    paths = {each.rstrip("/") for each in (*facade.pages, *facade.prefixes) if each != "/"}
    for group, versions in facade.discovery.groups().items():
        root = f"/apis/{group}" if group else "/api"
        paths |= {root, *(f"{root}/{each}" for each in versions)}
    return sorted({*paths, "/apis"})


# ------------------------------------------------------------------------------------------------ OpenAPI


def _openapi(facade: Facade) -> None:
    documents = _Documents(facade)

    async def index(request: web.BaseRequest, caller: Caller) -> web.StreamResponse:
        body, tag = await documents.made(lambda known: known.index())
        return _tagged(request, body, tag)

    async def group_version(request: web.BaseRequest, caller: Caller) -> web.StreamResponse:
        _accepted(request, _JSON_ONLY)
        path = request.path.removeprefix("/openapi/v3/").rstrip("/")
        found = await documents.made(lambda known: known.group_version(path))
        if found is None:
            return answers.no_page()
        body, digest = found
        asked = request.query.get("hash")
        if asked is not None and asked != digest:
            return web.Response(status=301, headers={"Location": f"/openapi/v3/{path}?hash={digest}"})
        extra = {"Cache-Control": "public, immutable", "Expires": "Fri, 01 Jan 2100 00:00:00 GMT"} if asked else {}
        return _tagged(request, body, f'"{digest}"', extra)

    async def swagger(request: web.BaseRequest, caller: Caller) -> web.StreamResponse:
        if _accepted(request, (*_JSON_ONLY, *_SWAGGER_PROTOBUF)) in _SWAGGER_PROTOBUF:
            body, tag = await documents.made(_protobuf)
            return _tagged(request, body, tag, {"Content-Type": _SWAGGER_PROTOBUF[0]})
        body, tag = await documents.made(lambda known: known.swagger())
        return _tagged(request, body, tag)

    facade.pages["/openapi/v3"] = index
    facade.prefixes["/openapi/v3/"] = group_version
    facade.pages["/openapi/v2"] = swagger


class _Documents:
    """The OpenAPI documents, made beside the event loop: the first one takes half a second, in which watches and controllers go on."""

    def __init__(self, facade: Facade) -> None:
        self._facade = facade
        self._lock = asyncio.Lock()

    async def made(self, make: Callable[[OpenApiDocuments], _Made]) -> _Made:
        """Return what `make` makes of the documents."""
        async with self._lock:
            served = tuple(self._facade.server.registry)  # as of now: it may change while the documents are made
            return await asyncio.to_thread(self._make, served, make)

    def _make(self, served: tuple[Kind, ...], make: Callable[[OpenApiDocuments], _Made]) -> _Made:
        from kubemini.machinery.openapi import OpenApiDocuments

        return make(OpenApiDocuments(served, self._facade.schemas))


def _protobuf(documents: OpenApiDocuments) -> tuple[bytes, str]:
    from kubemini.machinery.openapi.protobuf import encode

    body, tag = documents.swagger()
    return encode(orjson.loads(body)), tag


def _accepted(request: web.BaseRequest, offered: Sequence[str]) -> str:
    """Return the first media type accepted that is offered. Raise `NotAcceptable`."""
    for part in request.headers.get("Accept", "*/*").split(","):
        media = part.partition(";")[0].strip()
        if media in offered:
            return media
    raise NotAcceptable(f"406: Not Acceptable\n\nAvailable representations: {', '.join(each for each in offered if '*' not in each)}\n")


def _tagged(request: web.BaseRequest, body: bytes, tag: str, extra: dict[str, str] | None = None) -> web.Response:
    headers = {"Content-Type": "application/json", "ETag": tag, "Vary": "Accept", **(extra or {})}
    if request.headers.get("If-None-Match") == tag:
        return web.Response(status=304, headers=headers)
    return web.Response(body=body, headers=headers)


# ------------------------------------------------------------------------------------------------ OpenID


def _openid(facade: Facade, issuer: TokenIssuer) -> None:
    """Serve what others need to verify the tokens of service accounts."""

    async def configuration(request: web.BaseRequest, caller: Caller) -> web.StreamResponse:
        described = {
            "issuer": ISSUER,
            "jwks_uri": f"https://{facade.address}/openid/v1/jwks",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        }
        return web.Response(body=orjson.dumps(described), headers={"Content-Type": "application/json"})

    async def keys(request: web.BaseRequest, caller: Caller) -> web.StreamResponse:
        return web.Response(body=orjson.dumps({"keys": [issuer.public_jwk]}), headers={"Content-Type": "application/jwk-set+json"})

    facade.pages["/.well-known/openid-configuration"] = configuration
    facade.pages["/openid/v1/jwks"] = keys
