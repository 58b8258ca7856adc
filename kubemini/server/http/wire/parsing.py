"""Reading requests from bytes: heads, and bodies of known length or in chunks (RFC 9112, strictly)."""

from __future__ import annotations

import re
from typing import Final

from kubemini.server.http.wire.messages import Headers

HEAD_LIMIT: Final = 1 << 16
"""Bytes of a request's head at most."""

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?\r\n")


class Malformed(Exception):
    """The bytes are no HTTP request; `status` is what to answer before the connection is closed."""

    def __init__(self, why: str, status: int = 400) -> None:
        super().__init__(why)
        self.status = status


class Head:
    """The head of a request."""

    __slots__ = ("chunked", "close", "headers", "length", "method", "target", "version")

    def __init__(self, data: bytes) -> None:
        """Parse a head without its empty line. Raise `Malformed`."""
        first, *lines = data.decode("latin-1").split("\r\n")
        parts = first.split(" ")
        if len(parts) != 3 or not parts[2].startswith("HTTP/1.") or not _TOKEN.fullmatch(parts[0]):
            raise Malformed("malformed request line", 505 if len(parts) == 3 and parts[2].startswith("HTTP/") else 400)
        self.method, target, protocol = parts
        if not target.startswith("/"):
            # The form for proxies: scheme and host are ours
            _, mark, rest = target.partition("://")
            target = f"/{rest.partition('/')[2]}" if mark else target
        self.target = target
        self.version = protocol.removeprefix("HTTP/")
        self.headers = headers = Headers()
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon or not _TOKEN.fullmatch(name):
                raise Malformed("malformed header field")
            headers.add(name, value.strip(" \t"))
        connection = headers.get("connection").lower() if "connection" in headers else ""
        self.close = "close" in connection or (self.version == "1.0" and "keep-alive" not in connection)
        self.chunked = False
        self.length = 0
        if "transfer-encoding" in headers:
            if headers.get("transfer-encoding").lower() != "chunked" or "content-length" in headers:
                raise Malformed("unsupported transfer encoding", 501)
            self.chunked = True
        elif "content-length" in headers:
            text = headers.get("content-length")
            if not text.isascii() or not text.isdigit() or len(set(headers.getall("content-length"))) > 1:
                raise Malformed("malformed content length")
            self.length = int(text)


def dechunked(buffer: bytearray) -> tuple[bytes, int, bool]:
    """Return what a chunked body holds so far, how many bytes of the buffer it takes, and whether it is complete. Raise `Malformed`."""
    parts: list[bytes] = []
    position = 0
    while True:
        match = _SIZE.match(buffer, position)
        if match is None:
            if buffer.find(b"\r\n", position, position + 1024) >= 0 or len(buffer) - position > 1024:
                raise Malformed("malformed chunk")
            return b"".join(parts), position, False
        size, start = int(match[1], 16), match.end()
        if not size:
            end = buffer.find(b"\r\n", start)
            while end > start:  # trailer fields, which nobody asked for
                start = end + 2
                end = buffer.find(b"\r\n", start)
            return b"".join(parts), end + 2 if end >= 0 else position, end >= 0
        if len(buffer) < start + size + 2:
            return b"".join(parts), position, False
        if not buffer.startswith(b"\r\n", start + size):
            raise Malformed("malformed chunk")
        parts.append(bytes(buffer[start : start + size]))
        position = start + size + 2
