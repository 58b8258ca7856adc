"""Who asks: bearer token, client certificate, impersonation. Everybody who knows the token is an administrator."""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from kubemini.machinery.errors import Unauthorized
from kubemini.server.options import ADMIN, Caller

ANONYMOUS = ("system:anonymous", ("system:unauthenticated",))
OPEN_PATHS = ("/version", "/healthz", "/livez", "/readyz")
"""Paths that need no credentials, as on a real cluster."""


class Authenticator:
    """Checks credentials. Without a token everybody is let in (plain HTTP on loopback)."""

    def __init__(self, token: str = "") -> None:
        self._token = token
        self._callers: dict[str, Caller] = {}

    def caller(self, headers: Mapping[str, str], path: str) -> Caller:
        """Return who asks. Raise `Unauthorized` for credentials that are wrong or missing."""
        agent = headers.get("User-Agent", "")
        if self._token:
            scheme, _, credentials = headers.get("Authorization", "").partition(" ")
            if scheme.lower() == "bearer":
                if not hmac.compare_digest(credentials.strip(), self._token):
                    raise Unauthorized("Unauthorized")
            elif not path.startswith(OPEN_PATHS):
                raise Unauthorized("Unauthorized")
        user = headers.get("Impersonate-User")
        if user:
            groups = tuple(headers.getall("Impersonate-Group", ())) if hasattr(headers, "getall") else ()
            return Caller(user=user, groups=(*groups, "system:authenticated"), agent=agent)
        found = self._callers.get(agent)
        if found is None:
            if len(self._callers) > 256:
                self._callers.clear()
            found = self._callers[agent] = Caller(user=ADMIN.user, groups=ADMIN.groups, agent=agent)
        return found
