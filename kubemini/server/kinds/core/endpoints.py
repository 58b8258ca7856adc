"""The rules of Endpoints and of EndpointSlices (discovery.k8s.io)."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Sequence

from kubemini.api.trees import Tree
from kubemini.machinery import names
from kubemini.machinery.errors import FieldError, duplicate, invalid, not_supported, required, too_many
from kubemini.machinery.memo import by_identity
from kubemini.server.kinds.core.formats import IMMUTABLE, Errors, ip, is_ipv4, one_of, ordinary_ip, port_number, wrong
from kubemini.server.kinds.core.network_warnings import endpoints_warnings, slice_warnings
from kubemini.server.kinds.core.pod_containers import PROTOCOLS
from kubemini.server.kinds.tables import ENDPOINT_SLICE, ENDPOINTS
from kubemini.server.strategy import Strategy, WriteContext

_ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")
KEPT = 32768
"""Endpoints and addresses that are known to be sound, by identity."""
_MAX_ENDPOINTS, _MAX_ADDRESSES, _MAX_PORTS, _MAX_HINTS = 1000, 100, 20000, 8


class EndpointsStrategy(Strategy):
    """Endpoints."""

    create_on_update = True
    table = ENDPOINTS

    def validate_create(self, obj: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check addresses and ports."""
        return list(_subsets(obj))

    def warnings(self, new: Tree, old: Tree | None, ctx: WriteContext) -> list[str]:
        """Advise on addresses."""
        return list(endpoints_warnings(new))


def _subsets(obj: Tree) -> Errors:
    for index, subset in enumerate(obj.get("subsets") or ()):
        here = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            yield required(here, "must specify `addresses` or `notReadyAddresses`")
        for key in ("addresses", "notReadyAddresses"):
            for at, address in enumerate(subset.get(key) or ()):
                if not _sound_address(address):
                    yield from _address(address, f"{here}.{key}[{at}]")
        ports = subset.get("ports") or ()
        for at, port in enumerate(ports):
            there = f"{here}.ports[{at}]"
            if port.get("name"):
                yield from wrong(names.dns1123_label, port["name"], f"{there}.name")
            elif len(ports) > 1:
                yield required(f"{there}.name")
            yield from port_number(port.get("port", 0), f"{there}.port")
            yield from one_of(port.get("protocol"), PROTOCOLS, f"{there}.protocol")
            if port.get("appProtocol") is not None:
                yield from wrong(names.qualified_name, port["appProtocol"], f"{there}.appProtocol")


@by_identity(KEPT)
def _sound_address(address: Tree) -> bool:
    """Tell whether nothing is wrong with an address: most of an object's were there before."""
    return not any(True for _ in _address(address, ""))


def _address(address: Tree, path: str) -> Errors:
    yield from ip(address.get("ip", ""), f"{path}.ip")
    if address.get("hostname"):
        yield from wrong(names.dns1123_label, address["hostname"], f"{path}.hostname")
    if address.get("nodeName") is not None:
        yield from wrong(names.dns1123_subdomain, address["nodeName"], f"{path}.nodeName")
    yield from ordinary_ip(address.get("ip", ""), f"{path}.ip")


class EndpointSliceStrategy(Strategy):
    """EndpointSlices. Their generation follows endpoints and ports."""

    has_generation = True
    table = ENDPOINT_SLICE

    def spec_changed(self, new: Tree, old: Tree) -> bool:
        """There is no spec: endpoints and ports count."""
        return any(new.get(key) != old.get(key) for key in ("endpoints", "ports"))

    def prepare_for_create(self, obj: Tree, ctx: WriteContext) -> Tree:
        """Drop what only v1beta1 could write."""
        return _without_topology(obj)

    def prepare_for_update(self, new: Tree, old: Tree, ctx: WriteContext) -> Tree:
        """Drop what only v1beta1 could write."""
        return _without_topology(new)

    def validate_create(self, obj: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check addresses and ports."""
        kind = obj.get("addressType", "")
        errors = list(one_of(kind, _ADDRESS_TYPES, "addressType"))
        return [*errors, *_endpoints(obj.get("endpoints") or (), kind), *_ports(obj.get("ports") or ())]

    def validate_update(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check the same, and that the type of addresses stays."""
        errors = self.validate_create(new, ctx)
        if new.get("addressType") != old.get("addressType"):
            errors.append(invalid("addressType", new.get("addressType"), IMMUTABLE))
        return errors

    def warnings(self, new: Tree, old: Tree | None, ctx: WriteContext) -> list[str]:
        """Advise on addresses."""
        return list(slice_warnings(new))


def _endpoints(endpoints: list[Tree] | tuple[()], kind: str) -> Errors:
    if len(endpoints) > _MAX_ENDPOINTS:
        yield too_many("endpoints", len(endpoints), _MAX_ENDPOINTS)
        return
    for index, endpoint in enumerate(endpoints):
        if _sound_for(endpoint) != kind:
            yield from _endpoint(endpoint, kind, f"endpoints[{index}]")


@by_identity(KEPT)
def _sound_for(endpoint: Tree) -> str:
    """Return the type of addresses with which nothing is wrong with an endpoint, "" for none: most of a slice's were there before."""
    return next((kind for kind in ("IPv4", "IPv6") if not any(True for _ in _endpoint(endpoint, kind, ""))), "")


def _endpoint(endpoint: Tree, kind: str, here: str) -> Errors:
    addresses = endpoint.get("addresses") or ()
    if not addresses:
        yield required(f"{here}.addresses", "must contain at least 1 endpoint")
    elif len(addresses) > _MAX_ADDRESSES:
        yield too_many(f"{here}.addresses", len(addresses), _MAX_ADDRESSES)
    for at, address in enumerate(addresses):
        yield from _slice_address(address, kind, f"{here}.addresses[{at}]")
    if endpoint.get("nodeName") is not None:
        yield from wrong(names.dns1123_subdomain, endpoint["nodeName"], f"{here}.nodeName")
    if endpoint.get("hostname") is not None:
        yield from wrong(names.dns1123_label, endpoint["hostname"], f"{here}.hostname")
    hints: Tree | None = endpoint.get("hints")
    if hints is not None:
        yield from _hints(hints.get("forZones") or (), names.label_value, f"{here}.hints.forZones")
        yield from _hints(hints.get("forNodes") or (), names.dns1123_subdomain, f"{here}.hints.forNodes")


def _hints(hints: Sequence[Tree], check: Callable[[str], str | None], path: str) -> Errors:
    if len(hints) > _MAX_HINTS:
        yield too_many(path, len(hints), _MAX_HINTS)
        return
    seen: set[str] = set()
    for index, each in enumerate(hints):
        here, name = f"{path}[{index}].name", each.get("name") or ""
        if name in seen:
            yield duplicate(here, name)
        seen.add(name)
        yield from wrong(check, name, here)


def _without_topology(obj: Tree) -> Tree:
    endpoints = obj.get("endpoints") or ()
    if not any("deprecatedTopology" in each for each in endpoints):
        return obj
    return {**obj, "endpoints": [{key: value for key, value in each.items() if key != "deprecatedTopology"} for each in endpoints]}


def _slice_address(address: str, kind: str, path: str) -> Errors:
    if kind == "FQDN":
        yield from wrong(names.dns1123_subdomain, address, path)
        if "." not in address:
            yield invalid(path, address, "should be a domain with at least two segments separated by dots")
        return
    if kind not in _ADDRESS_TYPES:
        return
    if _family(address) != kind:
        yield invalid(path, address, f"must be a valid {kind} address")
    yield from ordinary_ip(address, path)


def _family(address: str) -> str:
    if is_ipv4(address):
        return "IPv4"
    try:
        return f"IPv{ipaddress.ip_address(address).version}"
    except ValueError:
        return ""


def _ports(ports: list[Tree] | tuple[()]) -> Errors:
    if len(ports) > _MAX_PORTS:
        yield too_many("ports", len(ports), _MAX_PORTS)
        return
    seen: set[str] = set()
    for index, port in enumerate(ports):
        here, name = f"ports[{index}]", port.get("name") or ""
        if name:
            yield from wrong(names.dns1123_label, name, f"{here}.name")
        if name in seen:
            yield duplicate(f"{here}.name", name)
        seen.add(name)
        protocol = port.get("protocol")
        if not protocol:
            yield required(f"{here}.protocol")
        elif protocol not in PROTOCOLS:
            yield not_supported(f"{here}.protocol", protocol, PROTOCOLS)
        if port.get("appProtocol") is not None:
            yield from wrong(names.qualified_name, port["appProtocol"], f"{here}.appProtocol")
