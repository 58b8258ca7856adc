"""The rules of Services on the write path."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.machinery import names
from kubemini.machinery.errors import FieldError, Invalid
from kubemini.server.kinds.core import service_shape, service_validation
from kubemini.server.kinds.core.network_warnings import service_warnings
from kubemini.server.kinds.core.service_allocation import Refused, allocated
from kubemini.server.kinds.tables import SERVICE
from kubemini.server.strategy import Strategy, WriteContext


def _cluster_ip(service: Tree) -> str:
    return str(service["spec"].get("clusterIP") or "")


def _type(service: Tree) -> str:
    return str(service["spec"].get("type") or "")


SERVICE_FIELDS = {"spec.clusterIP": _cluster_ip, "spec.type": _type}


class ServiceStrategy(Strategy):
    """Services. Addresses and node ports are allocated before validation, as upstream does, so what cannot be had is the only error then."""

    metadata_again = "after"
    has_status = True
    create_on_update = True
    returns_deleted = True
    table = SERVICE
    fields = SERVICE_FIELDS

    def validate_name(self, name: str, *, prefix: bool = False) -> str | None:
        """Names are DNS-1123 labels."""
        return names.dns1123_label(name, prefix=prefix)

    def default(self, obj: Tree, ctx: WriteContext) -> Tree:
        """Fill target ports, policies, affinity timeouts."""
        spec = obj.get("spec") or {}
        new = service_shape.default_service(spec)
        return obj if new is obj.get("spec") else {**obj, "spec": new}

    def initial_status(self, obj: Tree) -> Tree:
        """No load balancer yet."""
        return {"loadBalancer": {}}

    def prepare_for_create(self, obj: Tree, ctx: WriteContext) -> Tree:
        """Allocate addresses and ports. Raise `Invalid`."""
        return _allocated(obj, service_shape.synced_addresses(obj["spec"], None), None, ctx)

    def prepare_for_update(self, new: Tree, old: Tree, ctx: WriteContext) -> Tree:
        """Keep what was allocated, drop what another type had (also its load balancer), allocate what is missing. Raise `Invalid`."""
        before = old["spec"]
        spec = service_shape.synced_addresses(new["spec"], before)
        spec = service_shape.kept_allocations(spec, before)
        spec = service_shape.without_leftovers(spec, before)
        status: Tree = new.get("status") or {}
        if status.get("loadBalancer") and spec.get("type") != "LoadBalancer":
            new = {**new, "status": {**status, "loadBalancer": {}}}
        return _allocated(new, spec, before, ctx)

    def prepare_for_status(self, new: Tree, old: Tree, ctx: WriteContext) -> Tree:
        """Fill how an address of a load balancer is reached."""
        balancer = (new.get("status") or {}).get("loadBalancer") or {}
        ingress = balancer.get("ingress") or ()
        if not any(each.get("ip") and each.get("ipMode") is None for each in ingress):
            return new
        filled = [{**each, "ipMode": "VIP"} if each.get("ip") and each.get("ipMode") is None else each for each in ingress]
        return {**new, "status": {**new["status"], "loadBalancer": {**balancer, "ingress": filled}}}

    def validate_create(self, obj: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check the spec."""
        return list(service_validation.service(obj["spec"]))

    def validate_update(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check what changed, then the spec."""
        return [*service_validation.service_update(new["spec"], old["spec"]), *service_validation.service(new["spec"])]

    def warnings(self, new: Tree, old: Tree | None, ctx: WriteContext) -> list[str]:
        """Advise on what is ignored, or goes out of use."""
        return list(service_warnings(new))

    def validate_status(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check the load balancer's addresses."""
        return list(service_validation.balancer_status(new))


def _allocated(obj: Tree, spec: Tree, old: Tree | None, ctx: WriteContext) -> Tree:
    try:
        return {**obj, "spec": allocated(spec, old, ctx)}
    except Refused as refused:
        raise Invalid.of("Service", "", obj["metadata"].get("name", ""), refused.errors) from None
