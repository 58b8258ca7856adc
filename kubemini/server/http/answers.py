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
_TRUE: Final = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_PEOPLE: Final = ("curl", "Wget", "Mozilla/5.0")
_JSON_HEADERS: Final = {"Content-Type": JSON, "Cache-Control": "no-cache, private"}
_YAML_HEADERS: Final = {"Content-Type": YAML, "Cache-Control": "no-cache, private"}


def json_bytes(body: bytes, code: int = 200, warnings: Iterable[str] = ()) -> web.Response:
    """Return an answer whose JSON is encoded already; it ends with a newline, as Go's encoder ends it."""
    response = web.Response(body=body + b"\n", status=code, headers=_JSON_HEADERS)
    if warnings:
        warn(response, warnings)
    return response


def tree(obj: Any, accept: Accepted, code: int = 200, warnings: Iterable[str] = ()) -> web.Response:
    """Return a tree as JSON or YAML, as the client accepts it."""
    if accept.media == YAML:
        from kubemini.server.http.yaml_text import dump

        response = web.Response(body=dump(obj), status=code, headers=_YAML_HEADERS)
        if warnings:
            warn(response, warnings)
        return response
    if accept.pretty:
        response = indented(obj, code)
        if warnings:
            warn(response, warnings)
        return response
    return json_bytes(orjson.dumps(obj), code, warnings)


def indented(obj: Any, code: int = 200) -> web.Response:
    """Return a tree as JSON for people to read; without a newline at its end, as Go writes it."""
    return web.Response(body=orjson.dumps(obj, option=orjson.OPT_INDENT_2), status=code, headers=_JSON_HEADERS)


def for_people(headers: Mapping[str, str], query: Mapping[str, str]) -> bool:
    """Tell whether JSON is to be indented: by the parameter ``pretty`` (Go's ParseBool), or because a browser or a command line asks."""
    said = query.get("pretty") if query else ""
    if said:
        return said in _TRUE
    return headers.get("User-Agent", "").startswith(_PEOPLE)


def indent(response: web.StreamResponse) -> None:
    """Indent the JSON of an answer that is not sent yet."""
    if isinstance(response, web.Response) and response.content_type == JSON and isinstance(response.body, bytes):
        response.body = orjson.dumps(orjson.loads(response.body), option=orjson.OPT_INDENT_2)


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
    response = tree(problem.to_status(), Accepted(media), problem.code, problem.warnings)
    if problem.retry_after:
        response.headers["Retry-After"] = str(problem.retry_after)
    return response
