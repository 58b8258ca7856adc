"""Requests as a handler sees them, and answers of known length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import parse_qsl, unquote

if TYPE_CHECKING:
    from kubemini.server.http.wire.connection import Connection

REASONS: Final = {status.value: status.phrase for status in HTTPStatus}


class Answer(Protocol):
    """What a handler returns: a `Response`, or a stream that it has already sent."""

    status: int


class Headers(Mapping[str, str]):
    """Header fields by name, whatever its case. A field that came more than once shows its first value; `getall` has all."""

    __slots__ = ("_first", "_more")

    def __init__(self, fields: Iterable[tuple[str, str]] = ()) -> None:
        self._first: dict[str, str] = {}
        self._more: dict[str, list[str]] | None = None
        for name, value in fields:
            self.add(name, value)

    def add(self, name: str, value: str) -> None:
        """Take one more field."""
        name = name.lower()
        if name not in self._first:
            self._first[name] = value
            return
        if self._more is None:
            self._more = {}
        self._more.setdefault(name, []).append(value)

    def __getitem__(self, name: str) -> str:
        return self._first[name.lower()]

    def get(self, name: str, default: str = "") -> str:  # type: ignore[override]
        """Return a field's value, "" (or `default`) where there is none."""
        return self._first.get(name.lower(), default)

    def getall(self, name: str) -> list[str]:
        """Return all values of a field, in order."""
        name = name.lower()
        if name not in self._first:
            return []
        return [self._first[name], *(self._more or {}).get(name, ())]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._first

    def __iter__(self) -> Iterator[str]:
        """Iterate over names, in lower case."""
        return iter(self._first)

    def __len__(self) -> int:
        return len(self._first)


class Query(Mapping[str, str]):
    """Query parameters; one that came more than once shows its first value, `getall` has all."""

    __slots__ = ("_values",)

    def __init__(self, text: str = "") -> None:
        self._values: dict[str, list[str]] = {}
        if text:
            for name, value in parse_qsl(text, keep_blank_values=True):
                self._values.setdefault(name, []).append(value)

    def __getitem__(self, name: str) -> str:
        return self._values[name][0]

    def getall(self, name: str) -> list[str]:
        """Return all values of a parameter, in order."""
        return self._values.get(name, [])

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


NO_QUERY: Final = Query()


class Request:
    """One request, body and all."""

    __slots__ = ("body", "connection", "headers", "method", "path", "query", "target", "version")

    def __init__(self, method: str, target: str, headers: Headers, *, version: str = "1.1", connection: Connection | None = None) -> None:
        self.method = method
        self.target = target
        """Path and query as they came."""
        path, mark, query = target.partition("?")
        self.path = unquote(path) if "%" in path else path
        self.query = Query(query) if mark else NO_QUERY
        self.headers = headers
        self.body = b""
        self.version = version
        self.connection = connection
        """Where it came from, for answers that are streams; None in tests of handlers."""


class Response:
    """An answer whose bytes are all there."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, body: bytes = b"", *, status: int = 200, headers: Iterable[tuple[str, str]] = ()) -> None:
        self.status = status
        self.headers = list(headers)
        self.body = body

    def head(self, more: str) -> bytes:
        """Return status line and header fields, with `more` fields (each ended by CRLF) behind."""
        fields = "".join([f"{name}: {value}\r\n" for name, value in self.headers])
        return f"HTTP/1.1 {self.status} {REASONS.get(self.status, '')}\r\n{fields}Content-Length: {len(self.body)}\r\n{more}\r\n".encode(
            "latin-1", "replace"
        )
