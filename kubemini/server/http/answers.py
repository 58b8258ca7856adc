"""Responses: trees and bytes out, with the headers that every answer carries."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson

from kubemini.machinery.errors import ApiStatus
from kubemini.server.http.negotiation import JSON, YAML, Accepted, accepted
from kubemini.server.http.wire import Response

Fields = tuple[tuple[str, str], ...]

TEXT: Final[Fields] = (("Content-Type", "text/plain; charset=utf-8"), ("Cache-Control", "no-cache, private"), ("X-Content-Type-Options", "nosniff"))
JSON_FIELDS: Final[Fields] = (("Content-Type", JSON), ("Cache-Control", "no-cache, private"))
_YAML_FIELDS: Final[Fields] = (("Content-Type", YAML), ("Cache-Control", "no-cache, private"))


def json_bytes(body: bytes, code: int = 200, warnings: Iterable[str] = ()) -> Response:
    """Return an answer whose JSON is encoded already."""
    return Response(body, status=code, headers=(*JSON_FIELDS, *warned(warnings)) if warnings else JSON_FIELDS)


def tree(obj: Any, accept: Accepted, code: int = 200, warnings: Iterable[str] = ()) -> Response:
    """Return a tree as JSON or YAML, as the client accepts it."""
    if accept.media == YAML:
        import yaml

        shown: str = yaml.safe_dump(obj, sort_keys=False, default_flow_style=False)
        return Response(shown.encode(), status=code, headers=(*_YAML_FIELDS, *warned(warnings)))
    return json_bytes(orjson.dumps(obj, option=orjson.OPT_INDENT_2 if accept.pretty else None), code, warnings)


def warned(warnings: Iterable[str]) -> Fields:
    """Return ``Warning`` fields, each text once."""
    return tuple(("Warning", f"299 - {json.dumps(text)}") for text in dict.fromkeys(warnings))


def text(body: str, code: int = 200) -> Response:
    """Return plain text."""
    return Response(body.encode(), status=code, headers=TEXT)


def no_page() -> Response:
    """Return the answer for a path outside of the API."""
    return text("404 page not found\n", 404)


def failure(headers: Mapping[str, str], problem: ApiStatus) -> Response:
    """Return a Status; its ``retryAfterSeconds`` is also a ``Retry-After`` header."""
    alternatives = accepted(headers.get("Accept", ""))
    response = tree(problem.to_status(), Accepted(alternatives[0].media if alternatives else JSON), problem.code)
    if problem.retry_after:
        response.headers.append(("Retry-After", str(problem.retry_after)))
    return response
