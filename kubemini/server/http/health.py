"""``/healthz``, ``/livez`` and ``/readyz``: together, one check at a time, verbose, and with checks left out. Mirrors apiserver's healthz package (1.36)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from aiohttp import web

from kubemini.server.http import answers
from kubemini.server.http.app import Facade, Page
from kubemini.server.options import Caller

ENDPOINTS: Final = ("/healthz", "/livez", "/readyz")

Check = Callable[[], bool]


def install(facade: Facade, ready: Check) -> None:
    """Serve the health endpoints of a cluster that is `ready` when its caches are in sync."""

    def fine() -> bool:
        return True

    always: dict[str, Check] = dict.fromkeys(("ping", "log", "etcd"), fine)
    started: dict[str, Check] = dict.fromkeys(("informer-sync", "poststarthook/start-kubemini-controllers"), ready)
    _serve(facade, "/healthz", {**always, **started})
    _serve(facade, "/livez", always)
    _serve(facade, "/readyz", {**always, **started, "shutdown": fine})


def _serve(facade: Facade, path: str, checks: Mapping[str, Check]) -> None:
    async def together(request: web.BaseRequest, caller: Caller) -> web.StreamResponse:
        query = request.query
        body, code = _report(path[1:], checks, query.getall("exclude", []), verbose="verbose" in query)
        return answers.text(body, code)

    def alone(check: Check) -> Page:
        async def page(request: web.BaseRequest, caller: Caller) -> web.StreamResponse:
            return answers.text("ok") if check() else answers.text("internal server error: not ready\n", 500)

        return page

    facade.pages[path] = together
    for name, check in checks.items():
        facade.pages[f"{path}/{name}"] = alone(check)


def _report(name: str, checks: Mapping[str, Check], excluded: list[str], *, verbose: bool) -> tuple[str, int]:
    lines, failed = [], False
    for check, holds in checks.items():
        if check in excluded:
            lines.append(f"[+]{check} excluded: ok")
        elif holds():
            lines.append(f"[+]{check} ok")
        else:
            failed = True
            lines.append(f"[-]{check} failed: reason withheld")
    unknown = ", ".join(f'"{each}"' for each in dict.fromkeys(excluded) if each not in checks)
    if unknown:
        lines.append(f"warn: some health checks cannot be excluded: no matches for {unknown}")
    if failed:
        return "\n".join([*lines, f"{name} check failed", ""]), 500
    return ("\n".join([*lines, f"{name} check passed", ""]) if verbose else "ok"), 200
