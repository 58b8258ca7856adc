"""TLS for a listener: who sends plain HTTP is told so, as Go's server does (``net/http``), and not left with a broken connection."""

from __future__ import annotations

import ssl
from typing import Any, Final

_LOOKS_PLAIN: Final = frozenset((b"GET /", b"HEAD ", b"POST ", b"PUT /", b"OPTIO"))
"""How the requests begin that Go recognizes in place of a TLS record."""
_ANSWER: Final = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"


class Context(ssl.SSLContext):
    """A server's context."""

    def __init__(self, *_: Any) -> None:
        super().__init__()
        self.sslobject_class = _Object

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *args: Any, **more: Any) -> ssl.SSLObject:
        """Return the TLS end of a connection, which looks at what comes in first."""
        made = super().wrap_bio(incoming, outgoing, *args, **more)
        if isinstance(made, _Object):
            made.buffers = (incoming, outgoing)
        return made


class _Object(ssl.SSLObject):
    buffers: tuple[ssl.MemoryBIO, ssl.MemoryBIO] | None = None
    """What comes in and goes out, until something came in."""
    refused = False
    """Whether the connection ended with the answer: to its reader it is at its end."""

    def do_handshake(self) -> None:
        if self.buffers is not None:
            incoming, outgoing = self.buffers
            head = incoming.read()
            if head:
                self.buffers = None
                incoming.write(head)
            if head[:5] in _LOOKS_PLAIN:
                outgoing.write(_ANSWER)
                self.refused = True
                return
        super().do_handshake()

    def read(self, len: int = 1024, buffer: Any = None) -> Any:
        if self.refused:
            return b"" if buffer is None else 0
        return super().read(len, buffer)

    def unwrap(self) -> None:
        if not self.refused:
            super().unwrap()

    def getpeercert(self, binary_form: bool = False) -> Any:
        return None if self.refused else super().getpeercert(binary_form)
