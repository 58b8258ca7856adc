"""`ServedCluster`: a `Cluster` behind the HTTP facade, for real clients."""

from __future__ import annotations

from typing import Any

from kubemini.cluster import Cluster
from kubemini.machinery.schema.builtin import builtin_schemas
from kubemini.server.http import pages
from kubemini.server.http.app import Facade
from kubemini.server.http.serving import Listener


class ServedCluster(Cluster):
    """A cluster that listens. Further arguments are `Cluster`'s."""

    def __init__(self, *, host: str = "127.0.0.1", port: int = 0, tls: bool = True, token: str = "", dns: int | None = None, **more: Any) -> None:
        super().__init__(**more)
        version = self.settings.kubernetes_version
        self.token = token
        self.facade = Facade(self.server, builtin_schemas(version), token=token)
        pages.install(self.facade, version=version, patch="0", ready=lambda: self.ready)
        self.listener = Listener(self.facade, host=host, port=port, tls=tls)
        self._dns_port = dns

    async def start(self) -> None:
        """Listen, then start the control plane; ``/readyz`` turns 200 when every cache is in sync."""
        await self.listener.start()
        try:
            await super().start()
        except BaseException:
            await self.listener.stop()
            raise

    async def stop(self) -> None:
        """Stop the controllers and the listener."""
        await super().stop()
        await self.listener.stop()

    def kubeconfig(self) -> dict[str, object]:
        """Return a kubeconfig for this cluster."""
        return self.listener.kubeconfig(self.token)
