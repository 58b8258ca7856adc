"""Responses: trees and bytes out, with the headers that every answer carries."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson
from aiohttp import web

from kubemini.machinery.errors import ApiStatus
from kubemini.server.http.negotiation import JSON, YAML, Accepted, accepted

TEXT: Final = {"Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-cache, private", "X-Content-Type-Options": "nosniff"}
_JSON_HEADERS: Final = {"Content-Type": JSON, "Cache-Control": "no-cache, private"}
_YAML_HEADERS: Final = {"Content-Type": YAML, "Cache-Control": "no-cache, private"}


def json_bytes(body: bytes, code: int = 200, warnings: Iterable[str] = ()) -> web.Response:
    """Return an answer whose JSON is encoded already."""
    response = web.Response(body=body, status=code, headers=_JSON_HEADERS)
    if warnings:
        warn(response, warnings)
    return response


def tree(obj: Any, accept: Accepted, code: int = 200, warnings: Iterable[str] = ()) -> web.Response:
    """Return a tree as JSON or YAML, as the client accepts it."""
    if accept.media == YAML:
        import yaml

        text: str = yaml.safe_dump(obj, sort_keys=False, default_flow_style=False)
        response = web.Response(body=text.encode(), status=code, headers=_YAML_HEADERS)
        if warnings:
            warn(response, warnings)
        return response
    return json_bytes(orjson.dumps(obj, option=orjson.OPT_INDENT_2 if accept.pretty else None), code, warnings)


def warn(response: web.StreamResponse, warnings: Iterable[str]) -> None:
    """Add ``Warning`` headers, each text once."""
    for text in dict.fromkeys(warnings):
        response.headers.add("Warning", f"299 - {json.dumps(text)}")


def text(body: str, code: int = 200) -> web.Response:
    """Return plain text."""
    return web.Response(body=body.encode(), status=code, headers=TEXT)


def no_page() -> web.Response:
    """Return the answer for a path outside of the API."""
    return text("404 page not found\n", 404)


def failure(headers: Mapping[str, str], problem: ApiStatus) -> web.Response:
    """Return a Status; its ``retryAfterSeconds`` is also a ``Retry-After`` header."""
    alternatives = accepted(headers.get("Accept", ""))
    media = alternatives[0].media if alternatives else JSON
    response = tree(problem.to_status(), Accepted(media), problem.code)
    if problem.retry_after:
        response.headers["Retry-After"] = str(problem.retry_after)
    return response
