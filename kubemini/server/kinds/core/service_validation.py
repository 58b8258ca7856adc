"""Rules of Services: ports, types, addresses, and what of them may change. Mirrors ``ValidateService`` (1.36)."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.machinery import labels, names
from kubemini.machinery.errors import duplicate, forbidden, invalid, not_supported, required
from kubemini.server.kinds.core.formats import Errors, cidr, ip, not_address, one_of, ordinary_ip, port_number, port_or_name, wrong
from kubemini.server.kinds.core.service_allocation import addresses
from kubemini.server.kinds.core.service_shape import externally_accessible, is_headless, needs_cluster_ip, needs_health_check

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_TRAFFIC = ("Cluster", "Local")
_ONLY_BALANCERS = "may only be used when `type` is 'LoadBalancer'"
_DISTRIBUTIONS = ("PreferClose", "PreferSameNode", "PreferSameZone")
_MAX_AFFINITY_SECONDS = 86400


def service(spec: Tree) -> Errors:
    """Check the spec of a Service."""
    kind, ports, headless = spec.get("type", ""), spec.get("ports") or [], is_headless(spec)
    if not ports and not headless and kind != "ExternalName":
        yield required("spec.ports")
    if kind in ("LoadBalancer", "NodePort") and headless:
        yield invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services")
    if kind == "ExternalName":
        yield from _external_name(spec)
    yield from _ports(ports)
    yield from labels.validate_labels(spec.get("selector"), "spec.selector")
    yield from _affinity(spec)
    yield from addresses(spec)
    for index, address in enumerate(spec.get("externalIPs") or ()):
        here = f"spec.externalIPs[{index}]"
        problems = list(ip(address, here))
        yield from problems or ordinary_ip(address, here)
    yield from one_of(kind, _TYPES, "spec.type")
    yield from _unique_ports(ports, kind)
    yield from _balancer(spec)
    yield from _traffic(spec)


def _external_name(spec: Tree) -> Errors:
    for key in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(key):
            yield forbidden(f"spec.{key}", "may not be set for ExternalName services")
    name = spec.get("externalName", "").removesuffix(".")
    if name:
        yield from wrong(names.dns1123_subdomain, name, "spec.externalName")
    else:
        yield required("spec.externalName")


def _ports(ports: list[Tree]) -> Errors:
    seen: set[str] = set()
    for index, port in enumerate(ports):
        here, name = f"spec.ports[{index}]", port.get("name", "")
        if name:
            yield from wrong(names.dns1123_label, name, f"{here}.name")
            if name in seen:
                yield duplicate(f"{here}.name", name)
            seen.add(name)
        elif len(ports) > 1:
            yield required(f"{here}.name")
        yield from port_number(port.get("port", 0), f"{here}.port")
        yield from one_of(port.get("protocol"), _PROTOCOLS, f"{here}.protocol")
        yield from port_or_name(port.get("targetPort", 0), f"{here}.targetPort")
        if port.get("appProtocol") is not None:
            yield from wrong(names.qualified_name, port["appProtocol"], f"{here}.appProtocol")


def _unique_ports(ports: list[Tree], kind: str) -> Errors:
    if kind == "ClusterIP":
        for index, port in enumerate(ports):
            if port.get("nodePort"):
                yield forbidden(f"spec.ports[{index}].nodePort", "may not be used when `type` is 'ClusterIP'")
    seen: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        key = (port.get("protocol", ""), port.get("nodePort", 0))
        if key[1] and key in seen:
            yield duplicate(f"spec.ports[{index}].nodePort", key[1])
        seen.add(key)
    seen = set()
    for index, port in enumerate(ports):
        key = (port.get("protocol", ""), port.get("port", 0))
        if key in seen:
            shown = {"Name": "", "Protocol": key[0], "AppProtocol": None, "Port": key[1], "TargetPort": 0, "NodePort": 0}
            yield duplicate(f"spec.ports[{index}]", shown)
        seen.add(key)


def _affinity(spec: Tree) -> Errors:
    kind, config, path = spec.get("sessionAffinity", ""), spec.get("sessionAffinityConfig"), "spec.sessionAffinityConfig"
    yield from one_of(kind, ("ClientIP", "None"), "spec.sessionAffinity")
    if kind == "ClientIP":
        seconds = ((config or {}).get("clientIP") or {}).get("timeoutSeconds")
        if seconds is None:
            yield required(f"{path}.clientIP.timeoutSeconds", "when session affinity type is ClientIP")
        elif not 0 < seconds <= _MAX_AFFINITY_SECONDS:
            yield invalid(f"{path}.clientIP.timeoutSeconds", seconds, f"must be greater than 0 and less than {_MAX_AFFINITY_SECONDS}")
    elif kind == "None" and config is not None:
        yield forbidden(path, "must not be set when session affinity is None")


def _balancer(spec: Tree) -> Errors:
    balancer = spec.get("type") == "LoadBalancer"
    ranges = spec.get("loadBalancerSourceRanges") or ()
    if ranges and not balancer:
        yield forbidden("spec.LoadBalancerSourceRanges", _ONLY_BALANCERS)
    for index, value in enumerate(ranges):
        yield from cidr(value.strip(), f"spec.LoadBalancerSourceRanges[{index}]")
    if spec.get("allocateLoadBalancerNodePorts") is not None and not balancer:
        yield forbidden("spec.allocateLoadBalancerNodePorts", _ONLY_BALANCERS)
    if spec.get("loadBalancerClass") is not None:
        if balancer:
            yield from wrong(names.qualified_name, spec["loadBalancerClass"], "spec.loadBalancerClass")
        else:
            yield forbidden("spec.loadBalancerClass", _ONLY_BALANCERS)


def _traffic(spec: Tree) -> Errors:
    outside, inside = spec.get("externalTrafficPolicy", ""), spec.get("internalTrafficPolicy")
    if externally_accessible(spec):
        yield from one_of(outside, _TRAFFIC, "spec.externalTrafficPolicy")
    elif outside:
        yield invalid("spec.externalTrafficPolicy", outside, "may only be set for externally-accessible services")
    port = spec.get("healthCheckNodePort", 0)
    if not needs_health_check(spec):
        if port:
            text = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
            yield invalid("spec.healthCheckNodePort", port, text)
    elif port:
        yield from port_number(port, "spec.healthCheckNodePort")
    else:
        yield required("spec.healthCheckNodePort")
    if inside is None:
        if needs_cluster_ip(spec):
            yield required("spec.internalTrafficPolicy")
    elif inside not in _TRAFFIC:
        yield not_supported("spec.internalTrafficPolicy", inside, _TRAFFIC)
    if spec.get("trafficDistribution") not in (None, *_DISTRIBUTIONS):
        yield not_supported("spec.trafficDistribution", spec["trafficDistribution"], _DISTRIBUTIONS)


# ------------------------------------------------------------------------------------------------------ changes


def service_update(new: Tree, old: Tree) -> Errors:
    """Check what may change between two specs."""
    if "ExternalName" not in (new.get("type"), old.get("type")):
        yield from _changed(new, old, "clusterIPs", "clusterIP", free=is_headless(new) and is_headless(old))
        yield from _changed(new, old, "ipFamilies", "ipFamily", free=is_headless(new) or is_headless(old))
    if new.get("type") == old.get("type") == "LoadBalancer" and new.get("loadBalancerClass") != old.get("loadBalancerClass"):
        yield invalid("spec.loadBalancerClass", new.get("loadBalancerClass"), "may not change once set")
    if needs_health_check(old) and needs_health_check(new) and new.get("healthCheckNodePort") != old.get("healthCheckNodePort"):
        yield forbidden("spec.healthCheckNodePort", "field is immutable")


def _changed(new: Tree, old: Tree, key: str, word: str, *, free: bool) -> Errors:
    """Check a list whose first value stays and whose second may come and go."""
    now, before = new.get(key) or [], old.get(key) or []
    if free:
        return
    if len(now) == len(before):
        for index, value in enumerate(before):
            if now[index] != value:
                yield invalid(f"spec.{key}[{index}]", now, "may not change once set")
    elif len(now) < len(before):
        if not now:
            yield invalid(f"spec.{key}[0]", now, f"primary {word} can not be unset")
        elif now[0] != before[0]:
            yield invalid(f"spec.{key}[0]", now, "may not change once set")
        if len(now) == 1 and new.get("ipFamilyPolicy") != "SingleStack":
            yield invalid("spec.ipFamilyPolicy", new.get("ipFamilyPolicy"), f"must be set to 'SingleStack' when releasing the secondary {word}")
    elif before and now[0] != before[0]:
        yield invalid(f"spec.{key}[0]", now, "may not change once set")


def balancer_status(service: Tree) -> Errors:
    """Check the addresses that a load balancer reports; other types of Services have none."""
    ingress = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    if ingress and service["spec"].get("type") != "LoadBalancer":
        yield forbidden("status.loadBalancer.ingress", 'may only be used when `spec.type` is "LoadBalancer"')
        return
    for index, each in enumerate(ingress):
        here = f"status.loadBalancer.ingress[{index}]"
        address, mode, host = each.get("ip", ""), each.get("ipMode"), each.get("hostname", "")
        if address:
            yield from ip(address, f"{here}.ip")
            if mode is None:
                yield required(f"{here}.ipMode", "must be specified when `ip` is set")
            elif mode not in ("Proxy", "VIP"):
                yield not_supported(f"{here}.ipMode", mode, ("Proxy", "VIP"))
        elif mode is not None:
            yield forbidden(f"{here}.ipMode", "may not be specified when `ip` is not set")
        if host:
            yield from wrong(names.dns1123_subdomain, host, f"{here}.hostname")
            yield from not_address(host, f"{here}.hostname")
