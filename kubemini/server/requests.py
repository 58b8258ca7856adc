"""`ApiServer`: the request path that the HTTP facade and the in-process client share."""

from __future__ import annotations

from kubemini.machinery.errors import NotFound
from kubemini.server.deleting import Deleting
from kubemini.server.registry import Served


class ApiServer(Deleting):
    """Every verb on every kind: `get`, `list`, `watch` (reading), `create`, `update`, `patch`, `act` (writing), `delete`, `delete_collection` (deleting)."""

    def resolve(self, group: str, version: str, plural: str) -> Served:
        """Return what a URL names. Raise `NotFound`."""
        served = self.registry.served(group, version, plural)
        if served is None:
            raise NotFound.path()
        return served
