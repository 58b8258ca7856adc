"""Texts of ``Warning`` headers about Services and their endpoints: legal, but hardly meant. Mirrors ``pkg/api/service`` and its kin (1.36)."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from functools import lru_cache

from kubemini.api.trees import Tree
from kubemini.api.wellknown import kubernetes as names
from kubemini.server.kinds.core.formats import is_ipv4

_MANAGED_BY = "endpoints.kubernetes.io/managed-by"
_HINTS = "service.kubernetes.io/topology-aware-hints"
_HINTS_NOW = "service.kubernetes.io/topology-mode"
_WRITTEN_BY_CONTROLLERS = ("endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io")
"""Their addresses are fine: nobody looks."""

Warnings = Iterator[str]


@lru_cache(4096)
def _canonical(value: str) -> str | None:
    """Return how an IPv6 address or range should be written; None for what is fine, or no address."""
    try:
        found = ipaddress.ip_network(value, strict=False) if "/" in value else ipaddress.ip_address(value)
    except ValueError:
        return None
    return str(found) if found.version == 6 and str(found) != value else None


def address_warnings(value: str, path: str, kind: str = "address") -> Warnings:
    """Yield what is odd about an address (or, of `kind` ``CIDR value``, a range) that is valid."""
    if not is_ipv4(value) and (better := _canonical(value)) is not None:
        yield f'{path}: IPv6 {kind} "{value}" should be in RFC 5952 canonical format ("{better}")'


def service_warnings(service: Tree) -> Warnings:
    """Yield the warnings about a Service, new or changed."""
    spec: Tree = service.get("spec") or {}
    kind, address = spec.get("type"), spec.get("clusterIP")
    if _HINTS in (service["metadata"].get("annotations") or {}):
        yield f"annotation {_HINTS} is deprecated, please use {_HINTS_NOW} instead"
    if address and address != "None":
        for index, each in enumerate(spec.get("clusterIPs") or ()):
            yield from address_warnings(each, f"spec.clusterIPs[{index}]")
    if kind == "ClusterIP" and address == "None":
        ignored = {
            "loadBalancerIP": bool(spec.get("loadBalancerIP")),
            "externalIPs": bool(spec.get("externalIPs")),
            "SessionAffinity": spec.get("sessionAffinity") != "None",
        }
        yield from (f"spec.{name} is ignored for headless services" for name, given in ignored.items() if given)
    for index, each in enumerate(spec.get("externalIPs") or ()):
        yield from address_warnings(each, f"spec.externalIPs[{index}]")
    if spec.get("loadBalancerIP"):
        yield from address_warnings(spec["loadBalancerIP"], "spec.loadBalancerIP")
    for index, each in enumerate(spec.get("loadBalancerSourceRanges") or ()):
        yield from address_warnings(each, f"spec.loadBalancerSourceRanges[{index}]", "CIDR value")
    if kind == "ExternalName" and spec.get("externalIPs"):
        yield 'spec.externalIPs is ignored when spec.type is "ExternalName"'
    if kind != "ExternalName" and spec.get("externalName"):
        yield 'spec.externalName is ignored when spec.type is not "ExternalName"'
    if spec.get("trafficDistribution") == "PreferClose":
        yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'


def endpoints_warnings(endpoints: Tree) -> Warnings:
    """Yield the warnings about Endpoints that were written by hand."""
    if (endpoints["metadata"].get("labels") or {}).get(_MANAGED_BY) == "endpoint-controller":
        return
    for index, subset in enumerate(endpoints.get("subsets") or ()):
        for key in ("addresses", "notReadyAddresses"):
            for at, each in enumerate(subset.get(key) or ()):
                yield from address_warnings(each.get("ip", ""), f"subsets[{index}].{key}[{at}].ip")


def slice_warnings(slice_: Tree) -> Warnings:
    """Yield the warnings about an EndpointSlice that was written by hand."""
    if slice_.get("addressType") == "FQDN":
        # There is no spec: upstream's slip
        yield "spec.addressType: FQDN endpoints are deprecated"
        return
    if (slice_["metadata"].get("labels") or {}).get(names.MANAGED_BY_SLICE) in _WRITTEN_BY_CONTROLLERS:
        return
    for index, endpoint in enumerate(slice_.get("endpoints") or ()):
        for at, each in enumerate(endpoint.get("addresses") or ()):
            yield from address_warnings(each, f"endpoints[{index}].addresses[{at}]")
