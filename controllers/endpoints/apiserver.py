"""The endpoints of ``default/kubernetes``: the API server enters itself, and puts the entry back when it is changed.

Mirrors the API server's endpoint reconciler: an Endpoints object and an EndpointSlice of the name ``kubernetes``, which the mirroring controller leaves alone.
"""

from __future__ import annotations

from kubemini.api.resources import ENDPOINT_SLICES, ENDPOINTS, SERVICES, Resource
from kubemini.api.trees import Tree
from kubemini.api.wellknown import kubernetes as names
from kubemini.controllers.endpoints.mirroring import SKIP
from kubemini.machinery.errors import Conflict, NotFound
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.informer import Informer
from kubemini.runtime.keys import key_of

KEY = "default/kubernetes"
ADDRESS, PORT = "172.18.0.2", 6443
"""Where a control plane usually listens. Nothing listens there: endpoints may not be loopback addresses, and clients use their kubeconfig."""


class ApiServerEndpoints(Controller):
    """The one key is the Service ``default/kubernetes``."""

    name = "kubernetes-endpoints"
    component = "kube-apiserver"

    def setup(self, ctx: Context) -> None:
        """Follow the Service and its two objects."""
        self._ctx = ctx
        self._services = ctx.informer(SERVICES)
        self._endpoints = ctx.informer(ENDPOINTS)
        self._slices = ctx.informer(ENDPOINT_SLICES)
        for informer in (self._services, self._endpoints, self._slices):
            informer.on_change(self._on_change)

    def _on_change(self, old: Tree | None, new: Tree | None) -> None:
        obj = new if new is not None else old
        if obj is not None and obj["metadata"]["name"] == "kubernetes" and key_of(obj) == KEY:
            self.queue.add(KEY)

    async def reconcile(self, key: str) -> float | None:
        """Put both objects right."""
        service = self._services.get_key(KEY)
        if service is None:
            return None
        ports = [(port.get("name", ""), port.get("targetPort", PORT)) for port in service["spec"].get("ports") or ()]
        await self._keep(
            self._endpoints,
            ENDPOINTS,
            {SKIP: "true"},
            {"subsets": [{"addresses": [{"ip": ADDRESS}], "ports": [{"name": name, "port": number, "protocol": "TCP"} for name, number in ports]}]},
        )
        await self._keep(
            self._slices,
            ENDPOINT_SLICES,
            {names.SERVICE_NAME: "kubernetes"},
            {
                "addressType": "IPv4",
                "endpoints": [{"addresses": [ADDRESS], "conditions": {"ready": True}}],
                "ports": [{"name": name, "protocol": "TCP", "port": number} for name, number in ports],
            },
        )
        return None

    async def _keep(self, informer: Informer, resource: Resource, labels: Tree, body: Tree) -> None:
        current = informer.get_key(KEY)
        try:
            if current is None:
                meta = {"name": "kubernetes", "namespace": "default", "labels": labels}
                await self._ctx.client.create(resource, {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, **body})
            elif any(current.get(name) != value for name, value in body.items()):
                await self._ctx.client.update(resource, {**current, **body})
        except (Conflict, NotFound):
            # The cache is behind: its event brings us back
            return
