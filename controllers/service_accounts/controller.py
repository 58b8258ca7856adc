"""Keeps one object of a fixed name in every live namespace, and makes it again when it is deleted."""

from __future__ import annotations

from kubemini.api.resources import CONFIG_MAPS, NAMESPACES, SERVICE_ACCOUNTS, Resource
from kubemini.api.trees import Tree
from kubemini.machinery.errors import AlreadyExists, Forbidden, NotFound
from kubemini.runtime.controller import Context, Controller


class _OnePerNamespace(Controller):
    """Keys are namespaces."""

    resource: Resource
    object_name: str

    def body(self) -> Tree:
        """Return the object's fields beside its metadata."""
        return {}

    def setup(self, ctx: Context) -> None:
        """Follow namespaces and the objects."""
        self._ctx = ctx
        self._namespaces = ctx.informer(NAMESPACES)
        self._objects = ctx.informer(self.resource)
        self._namespaces.on_change(lambda old, new: self.queue.add(new["metadata"]["name"]) if new is not None else None)
        self._objects.on_change(self._on_object)

    def _on_object(self, old: Tree | None, new: Tree | None) -> None:
        obj = new if new is not None else old
        if obj is not None and obj["metadata"]["name"] == self.object_name and (new is None or old is not None):
            self.queue.add(obj["metadata"]["namespace"])

    async def reconcile(self, key: str) -> float | None:
        """Create the object where it is missing, put its content back where it was changed."""
        namespace = self._namespaces.get(key)
        if namespace is None or (namespace.get("status") or {}).get("phase") != "Active":
            return None
        found = self._objects.get(self.object_name, key)
        body = self.body()
        if found is None:
            obj = {
                "apiVersion": self.resource.api_version,
                "kind": self.resource.kind,
                "metadata": {"name": self.object_name, "namespace": key},
                **body,
            }
            try:
                await self._ctx.client.create(self.resource, obj)
            except (AlreadyExists, Forbidden, NotFound):
                return None
        elif any(found.get(name) != value for name, value in body.items()):
            await self._ctx.client.update(self.resource, {**found, **body})
        return None


class ServiceAccountsController(_OnePerNamespace):
    """The ServiceAccount that pods run as when they name none."""

    name = "serviceaccount"
    component = "service-account-controller"
    resource = SERVICE_ACCOUNTS
    object_name = "default"


class RootCertificates(_OnePerNamespace):
    """The certificate authority that pods trust."""

    name = "root-ca-certificate-publisher"
    measured_as = "root_ca_cert_publisher"
    component = "root-ca-cert-publisher"
    resource = CONFIG_MAPS
    object_name = "kube-root-ca.crt"

    def __init__(self, certificate: str) -> None:
        super().__init__()
        self._certificate = certificate

    def body(self) -> Tree:
        """Return the published certificate."""
        return {"data": {"ca.crt": self._certificate}}
