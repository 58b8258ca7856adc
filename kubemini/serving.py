"""`ServedCluster`: a `Cluster` behind the HTTP facade, for real clients."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kubemini.api.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, Resource
from kubemini.api.trees import Tree
from kubemini.cluster import Cluster
from kubemini.controller_metrics import ControllerMetrics
from kubemini.dns.zone import Zone
from kubemini.machinery.aggregation import AggregatedApi
from kubemini.machinery.errors import ConfigError
from kubemini.machinery.schema.builtin import builtin_schemas
from kubemini.server.http import pages
from kubemini.server.http.app import Facade
from kubemini.server.http.minting import Minted
from kubemini.server.http.serving import Listener, check_kubeconfig, write_kubeconfig
from kubemini.server.http.webhooks import UserWebhooks
from kubemini.server.kinds.catalogue import token_review_kind
from kubemini.server.kinds.groups.default_roles import default_cluster_role_bindings, default_cluster_roles
from kubemini.server.standing import Standing

if TYPE_CHECKING:
    from kubemini.dns.server import DnsServer


class ServedCluster(Cluster):
    """A cluster that listens. Further arguments are `Cluster`'s."""

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: bool = True,
        token: str = "",
        dns: int | None = None,
        minted: Callable[[], Minted] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(**more)
        version = self.settings.kubernetes_version
        self.token = token
        self._expiry: asyncio.TimerHandle | None = None
        self._began = self.env.stamp()
        self.facade = Facade(self.server, builtin_schemas(version), token=token)
        self.server.registry.add(token_review_kind(builtin_schemas(version).codec, self.facade.auth.review))
        self.facade.late.update(Standing(self.server, self._apis, self._began).makers())
        self.facade.discovery.apis = self._apis
        self.facade.metrics.collectors.append(ControllerMetrics(self.managers.values))
        self._webhooks = UserWebhooks(self.store, self.server.reader)
        self.server.chain.remote.append(self._webhooks)
        pages.install(self.facade, version=version, patch="0", ready=lambda: self.ready)
        self.listener = Listener(self.facade, host=host, port=port, tls=tls, minted=minted)
        self.settings = replace(self.settings, tokens=True, root_certificate=self.listener.tls.authority if self.listener.tls else "")
        zone = Zone(self.server.reader)
        self.facade.lookup = zone.find
        self.dns = _dns_server(zone, host, dns) if dns is not None else None

    def _apis(self) -> tuple[AggregatedApi, ...]:
        """Return what controllers serve of their own."""
        return tuple(api for manager in self.managers.values() for controller in manager.controllers for api in controller.apis)

    def bootstrap_objects(self) -> list[tuple[Resource, Tree]]:
        """Return what exists from the start; where callers are told apart, also the default roles and who has them."""
        roles = [(CLUSTER_ROLES, role) for role in default_cluster_roles()]
        return [*super().bootstrap_objects(), *roles, *((CLUSTER_ROLE_BINDINGS, binding) for binding in default_cluster_role_bindings())]

    def resource(self, kind: str) -> Resource:
        """Return the resource that a user means by a kind, as `Cluster.resource` does."""
        resource = super().resource(kind)
        self.facade.make(resource.storage)
        return resource

    async def start(self) -> None:
        """Listen, then start the control plane; ``/readyz`` turns 200 when every cache is in sync."""
        await self.listener.start()
        try:
            if self.dns is not None:
                await self.dns.start()
            await super().start()
        except BaseException:
            await self.stop()
            raise
        self._expire()

    def _expire(self) -> None:
        """Remove the events that are over, for those who watch them, and come back for the next."""
        self.events.expire()
        due, now = self.events.due, self.env.now()
        wait = self.events.seconds if due is None else max(due - now, 1.0)
        self._expiry = asyncio.get_running_loop().call_later(wait, self._expire)

    async def stop(self) -> None:
        """Stop the controllers and the listener."""
        if self._expiry is not None:
            self._expiry.cancel()
        await super().stop()
        await self.listener.stop()
        if self.dns is not None:
            await self.dns.stop()
        await self._webhooks.close()

    def kubeconfig(self) -> dict[str, object]:
        """Return a kubeconfig for this cluster."""
        return self.listener.kubeconfig(self.token)

    def write_kubeconfig(self, path: str | Path) -> None:
        """Write it to a file that only its owner may read. Raise `ConfigError` for what cannot be written, and for a file that holds something else."""
        check_kubeconfig(Path(path))
        write_kubeconfig(Path(path), self.kubeconfig())


def _dns_server(zone: Zone, host: str, port: int) -> DnsServer:
    try:
        from kubemini.dns.server import DnsServer
    except ImportError:
        raise ConfigError("--dns needs the package dnslib: pip install 'kubemini[dns]'") from None
    return DnsServer(zone, host=host, port=port)
