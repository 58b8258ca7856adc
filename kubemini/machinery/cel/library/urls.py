"""URLs (apiserver ``pkg/cel/library/urls.go``): absolute URIs and absolute paths, as Go's net/url reads them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import quote, unquote, unquote_plus

from kubemini.machinery.cel.errors import CelEvaluationError
from kubemini.machinery.cel.overloads import OPAQUE, function
from kubemini.machinery.cel.values import Opaque
from kubemini.machinery.gotext import is_decimal

_bad_escape = re.compile(r"%(?![0-9A-Fa-f]{2})").search
_scheme = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL).fullmatch
_port = re.compile(r":[0-9]*|").fullmatch


@dataclass(frozen=True, slots=True)
class Url(Opaque):
    """A parsed URL."""

    text: str = field(compare=False)
    scheme: str
    host: str
    path: str
    query: str
    user: str = ""

    type_name = OPAQUE["URL"]


@function("url(string) -> URL", "string_to_url")
def parse(text: str) -> Url:
    """Parse a URL."""
    found = _parsed(text)
    if found is None:
        raise CelEvaluationError(f'URL parse error during conversion from string: parse "{text}": invalid URI for request')
    return found


@function("isURL(string) -> bool", "is_url_string")
def is_url(text: str) -> bool:
    """Tell whether a text is an absolute URI or an absolute path."""
    return _parsed(text) is not None


def _parsed(text: str) -> Url | None:
    if not text or any(char <= " " or char == "\x7f" for char in text):
        return None
    found = _scheme(text)
    scheme, rest = (found.group(1).lower(), found.group(2)) if found else ("", text)
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        return Url(text, scheme, "", "", query) if scheme and rest else None
    host = user = ""
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, tail = rest[2:].partition("/")
        rest = slash + tail
        user, _, host = authority.rpartition("@")
        if not _good_host(host):
            return None
    return None if _bad_escape(rest) else Url(text, scheme, unquote(host), rest, query, user)


def _good_host(host: str) -> bool:
    if host.startswith("["):
        _, bracket, port = host.partition("]")
        return bool(bracket) and _port(port) is not None
    _, colon, port = host.rpartition(":")
    return not re.search(r"[^A-Za-z0-9\-._~%!$&'()*+,;=:\[\]<>\"\u0080-\U0010ffff]", host) and (not colon or is_decimal(port) or not port)


@function("(URL).getScheme() -> string", "url_get_scheme")
def scheme(url: Url) -> str:
    """Return the scheme, "" for a path."""
    return url.scheme


@function("(URL).getHost() -> string", "url_get_host")
def host(url: Url) -> str:
    """Return host and port."""
    return url.host


@function("(URL).getHostname() -> string", "url_get_hostname")
def hostname(url: Url) -> str:
    """Return the host without port and brackets."""
    if url.host.startswith("["):
        return url.host[1 : url.host.find("]")]
    return url.host.partition(":")[0]


@function("(URL).getPort() -> string", "url_get_port")
def port(url: Url) -> str:
    """Return the port as written."""
    rest = url.host.rpartition("]")[2] if url.host.startswith("[") else url.host
    return rest.rpartition(":")[2] if ":" in rest else ""


@function("(URL).getEscapedPath() -> string", "url_get_escaped_path")
def escaped_path(url: Url) -> str:
    """Return the path with escapes."""
    return quote(url.path, safe="/%!$&'()*+,;=:@-._~")


@function("(URL).getQuery() -> map(string, list(string))", "url_get_query")
def query(url: Url) -> dict[str, list[str]]:
    """Return the values by key."""
    out: dict[str, list[str]] = {}
    for part in url.query.partition("#")[0].split("&"):
        if part and ";" not in part and not _bad_escape(part):
            key, _, value = part.partition("=")
            out.setdefault(unquote_plus(key), []).append(unquote_plus(value))
    return out
