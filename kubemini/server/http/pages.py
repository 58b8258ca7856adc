"""Documents outside the resource space: version, health, OpenAPI, metrics, the root."""

from __future__ import annotations

from collections.abc import Callable

import orjson
from aiohttp import web

from kubemini.machinery.errors import NotAcceptable
from kubemini.server.http.app import Facade
from kubemini.server.options import Caller

HEALTH = ("/healthz", "/livez", "/readyz")


def install(facade: Facade, *, version: str, patch: str, ready: Callable[[], bool]) -> None:
    """Serve the documents of a cluster that emulates Kubernetes `version` (``1.36``) and is `ready` when its caches are in sync."""
    major, _, minor = version.partition(".")
    described = orjson.dumps(
        {
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
    )

    async def version_page(request: web.BaseRequest, caller: Caller) -> web.StreamResponse:
        return web.Response(body=described, content_type="application/json")

    async def root(request: web.BaseRequest, caller: Caller) -> web.StreamResponse:
        groups = facade.discovery.groups()
        paths = ["/api", *(f"/api/{each}" for each in groups.get("", ())), "/apis"]
        for group, versions in groups.items():
            if group:
                paths += [f"/apis/{group}", *(f"/apis/{group}/{each}" for each in versions)]
        paths += [*HEALTH, "/metrics", "/openapi/v2", "/openapi/v3", "/version"]
        return web.Response(body=orjson.dumps({"paths": sorted(paths)}), content_type="application/json")

    def health(name: str) -> None:
        checks = ["ping", "log", "etcd", "informer-sync", "poststarthook/start-kubemini-controllers", *(["shutdown"] if name == "/readyz" else [])]

        async def page(request: web.BaseRequest, caller: Caller) -> web.StreamResponse:
            fine = ready() or name == "/livez"
            if fine and "verbose" not in request.query:
                return web.Response(text="ok")
            lines = [f"[+]{check} ok" if fine or not check.startswith(("informer", "poststart")) else f"[-]{check} failed: reason withheld" for check in checks]
            lines.append(f"{name[1:]} check {'passed' if fine else 'failed'}")
            return web.Response(text="\n".join(lines) + "\n", status=200 if fine else 500)

        async def one(request: web.BaseRequest, caller: Caller) -> web.StreamResponse:
            check = request.path.removeprefix(name + "/")
            if check not in checks:
                return web.Response(status=404, text="404 page not found\n")
            fine = ready() or not check.startswith(("informer", "poststart"))
            return web.Response(text="ok" if fine else f"[-]{check} failed: reason withheld\n", status=200 if fine else 500)

        facade.pages[name] = page
        facade.prefixes[name + "/"] = one

    facade.pages["/version"] = version_page
    facade.pages["/"] = root
    for name in HEALTH:
        health(name)
    _openapi(facade)


def _openapi(facade: Facade) -> None:
    from kubemini.machinery.openapi import OpenApiDocuments

    cached: tuple[int, OpenApiDocuments | None] = (-1, None)

    def documents() -> OpenApiDocuments:
        nonlocal cached
        generation = facade.server.registry.generation
        if cached[0] != generation or cached[1] is None:
            cached = (generation, OpenApiDocuments(facade.server.registry, facade.schemas))
        found = cached[1]
        assert found is not None
        return found

    def refuse_protobuf(request: web.BaseRequest) -> None:
        accept = request.headers.get("Accept", "*/*")
        if not any(part.partition(";")[0].strip() in ("*/*", "application/json", "application/*") for part in accept.split(",")):
            raise NotAcceptable("406: Not Acceptable\n\nAvailable representations: application/json\n")

    async def index(request: web.BaseRequest, caller: Caller) -> web.StreamResponse:
        body, tag = documents().index()
        return _tagged(request, body, tag)

    async def group_version(request: web.BaseRequest, caller: Caller) -> web.StreamResponse:
        refuse_protobuf(request)
        path = request.path.removeprefix("/openapi/v3/")
        found = documents().group_version(path)
        if found is None:
            return web.Response(status=404, text="404 page not found\n")
        body, digest = found
        asked = request.query.get("hash")
        if asked is not None and asked != digest:
            return web.Response(status=301, headers={"Location": f"/openapi/v3/{path}?hash={digest}"})
        extra = {"Cache-Control": "public, immutable", "Expires": "Fri, 01 Jan 2100 00:00:00 GMT"} if asked else {}
        return _tagged(request, body, f'"{digest}"', extra)

    async def swagger(request: web.BaseRequest, caller: Caller) -> web.StreamResponse:
        refuse_protobuf(request)
        body, tag = documents().swagger()
        return _tagged(request, body, tag)

    facade.pages["/openapi/v3"] = index
    facade.prefixes["/openapi/v3/"] = group_version
    facade.pages["/openapi/v2"] = swagger


def _tagged(request: web.BaseRequest, body: bytes, tag: str, extra: dict[str, str] | None = None) -> web.Response:
    headers = {"ETag": tag, "Vary": "Accept", **(extra or {})}
    if request.headers.get("If-None-Match") == tag:
        return web.Response(status=304, headers=headers)
    return web.Response(body=body, content_type="application/json", headers=headers)
