"""Addresses and node ports of Services.

What is taken is read from the stored Services whenever something is to be allocated, so there is no second truth that could
drift. Mirrors ``pkg/registry/core/service/storage/alloc.go`` (1.36) for a cluster with IPv4 only.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable

from kubemini.api.trees import Tree
from kubemini.machinery.errors import FieldError, duplicate, invalid, not_supported
from kubemini.server.kinds.core.formats import ip
from kubemini.server.kinds.core.service_shape import HEADLESS, is_headless, needs_cluster_ip, needs_health_check, needs_node_port
from kubemini.server.strategy import WriteContext

RANGE = ipaddress.ip_network("10.96.0.0/16")
API_ADDRESS = "10.96.0.1"
"""The address of the Service ``default/kubernetes``: the first of the range."""
MANAGED_BY, ALLOCATOR = "ipaddress.kubernetes.io/managed-by", "ipallocator.k8s.io"
"""The label of the IPAddresses of Services, and its value."""
NODE_PORTS = range(30000, 32768)
_FAMILIES = ("IPv4", "IPv6")
_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")


class Refused(Exception):
    """Something asked for cannot be allocated."""

    def __init__(self, errors: list[FieldError]) -> None:
        super().__init__(errors)
        self.errors = errors


def allocated(spec: Tree, old: Tree | None, ctx: WriteContext) -> Tree:
    """Return the spec with families, addresses and node ports filled; `old` is the former spec on an update. Raise `Refused`."""
    spec = with_families(spec)
    if needs_cluster_ip(spec) and not is_headless(spec) and (old is None or not needs_cluster_ip(old) or is_headless(old)):
        spec = _with_address(spec, ctx)
    if needs_node_port(spec) or needs_health_check(spec):
        spec = _with_node_ports(spec, old, ctx)
    return spec


# ------------------------------------------------------------------------------------------------------ families


def with_families(spec: Tree) -> Tree:
    """Return the spec with IP families and their policy filled. Raise `Refused`."""
    if spec.get("type") == "ExternalName":
        return spec
    errors = addresses(spec)
    if errors:
        raise Refused(errors)
    policy = spec.get("ipFamilyPolicy")
    families: list[str] = list(spec.get("ipFamilies") or ())
    if not policy and (len(spec.get("clusterIPs") or ()) == 2 or len(families) == 2):
        policy = "RequireDualStack"
    if is_headless(spec) and not spec.get("selector"):
        # Nobody needs the cluster's own families for endpoints that are kept by hand.
        policy = policy or "RequireDualStack"
        families = families or ["IPv4"]
        if len(families) == 1 and policy != "SingleStack":
            families.append("IPv6" if families[0] == "IPv4" else "IPv4")
    else:
        policy = policy or "SingleStack"
        problems = [
            invalid(f"spec.ipFamilies[{index}]", each, "not configured on this cluster") for index, each in enumerate(families) if each != "IPv4"
        ]
        if policy == "RequireDualStack":
            problems.append(invalid("spec.ipFamilyPolicy", policy, "this cluster is not configured for dual-stack services"))
        if problems:
            raise Refused(problems)
        families = families or ["IPv4"]
    return {**spec, "ipFamilies": families, "ipFamilyPolicy": policy}


def addresses(spec: Tree) -> list[FieldError]:
    """Return what is wrong with ``clusterIP``, ``clusterIPs``, ``ipFamilies`` and ``ipFamilyPolicy`` together."""
    if spec.get("type") == "ExternalName":
        return []
    errors: list[FieldError] = []
    one, many, families = spec.get("clusterIP", ""), spec.get("clusterIPs") or [], spec.get("ipFamilies") or []
    if one and many and many[0] != one:
        errors.append(invalid("spec.clusterIPs", many, "first value must match `clusterIP`"))
    elif not one and many:
        errors.append(invalid("spec.clusterIPs", many, "must be empty when `clusterIP` is not specified"))
    for index, family in enumerate(families):
        if family not in _FAMILIES:
            errors.append(not_supported(f"spec.ipFamilies[{index}]", family, _FAMILIES))
        if family in families[:index]:
            errors.append(duplicate(f"spec.ipFamilies[{index}]", family))
    if spec.get("ipFamilyPolicy") not in (None, "", *_POLICIES):
        errors.append(not_supported("spec.ipFamilyPolicy", spec["ipFamilyPolicy"], _POLICIES))
    broken: list[FieldError] = []
    for index, address in enumerate(many):
        if index == 0 and address == HEADLESS:
            if len(many) > 1:
                broken.append(invalid("spec.clusterIPs", many, "'None' must be the first and only value"))
        else:
            broken += ip(address, f"spec.clusterIPs[{index}]")
    errors += broken
    if len(many) > 2:
        errors.append(invalid("spec.clusterIPs", many, "may only hold up to 2 values"))
    if broken:
        return errors
    if len(many) > 1 and len({":" in each for each in many}) == 1:
        errors.append(invalid("spec.clusterIPs", many, "may specify no more than one IP for each IP family"))
    if not is_headless(spec):
        for index, (address, family) in enumerate(zip(many, families, strict=False)):
            if family in _FAMILIES and (family == "IPv6") != (":" in address):
                errors.append(invalid(f"spec.clusterIPs[{index}]", address, f"expected an {family} value as indicated by `ipFamilies[{index}]`"))
    return errors


# ------------------------------------------------------------------------------------------------------ addresses and ports


def _taken(ctx: WriteContext, of: Callable[[Tree], Iterable[str | int]]) -> set[str | int]:
    return {each for service in ctx.reader.list("services") for each in of(service.get("spec") or {})}


def _addresses(spec: Tree) -> Iterable[str]:
    return spec.get("clusterIPs") or ()


def _node_ports(spec: Tree) -> Iterable[int]:
    found = [each["nodePort"] for each in spec.get("ports") or () if each.get("nodePort")]
    return [*found, spec["healthCheckNodePort"]] if spec.get("healthCheckNodePort") else found


def _with_address(spec: Tree, ctx: WriteContext) -> Tree:
    taken = _taken(ctx, _addresses) | set(_reserved(ctx))
    asked = spec.get("clusterIP", "")
    if asked:
        _checked(asked, spec["clusterIPs"], taken)
        return spec
    first, size = int(RANGE.network_address), RANGE.num_addresses
    while True:
        address = str(ipaddress.ip_address(first + ctx.env.random.randrange(2, size - 1)))
        if address not in taken:
            return {**spec, "clusterIP": address, "clusterIPs": [address]}


def _reserved(ctx: WriteContext) -> Iterable[str]:
    """Yield the addresses that somebody took by making an IPAddress."""
    for each in ctx.reader.list("ipaddresses.networking.k8s.io"):
        if (each["metadata"].get("labels") or {}).get(MANAGED_BY) != ALLOCATOR:
            yield each["metadata"]["name"]


def _checked(asked: str, shown: list[str], taken: set[str | int]) -> None:
    """Raise `Refused` for an address outside the range, or one that is taken."""
    if ipaddress.ip_address(asked) not in RANGE:
        why = "the provided network does not match the current range"
    elif asked in taken:
        why = "provided IP is already allocated"
    else:
        return
    raise Refused([invalid("spec.clusterIPs", shown, f"failed to allocate IP {asked}: {why}")])


def _with_node_ports(spec: Tree, old: Tree | None, ctx: WriteContext) -> Tree:
    own = set(_node_ports(old)) if old is not None else set()
    taken = _taken(ctx, _node_ports) - own
    ports: list[Tree] = list(spec.get("ports") or ())
    changes: Tree = {}
    if needs_node_port(spec):
        for index, port in enumerate(ports):
            if port.get("nodePort"):
                _claim(port["nodePort"], f"spec.ports[{index}].nodePort", taken)
        used = taken | {each["nodePort"] for each in ports if each.get("nodePort")}
        by_number: dict[int, int] = {each.get("port", 0): each["nodePort"] for each in ports if each.get("nodePort")}
        for index, port in enumerate(ports):
            if not port.get("nodePort"):
                # The same port in another protocol shares the node port.
                number = by_number.get(port.get("port", 0)) or _drawn(used, ctx)
                by_number.setdefault(port.get("port", 0), number)
                used.add(number)
                ports[index] = {**port, "nodePort": number}
        changes["ports"] = ports
        taken = used
    if needs_health_check(spec):
        asked = spec.get("healthCheckNodePort", 0)
        if asked:
            _claim(asked, "spec.healthCheckNodePort", taken)
        else:
            changes["healthCheckNodePort"] = _drawn(taken, ctx)
    return {**spec, **changes}


def _claim(number: int, path: str, taken: set[str | int]) -> None:
    if number not in NODE_PORTS:
        text = f"provided port is not in the valid range. The range of valid ports is {NODE_PORTS[0]}-{NODE_PORTS[-1]}"
        raise Refused([invalid(path, number, text)])
    if number in taken:
        raise Refused([invalid(path, number, "provided port is already allocated")])


def _drawn(used: set[str | int], ctx: WriteContext) -> int:
    if all(each in used for each in NODE_PORTS):
        raise Refused([invalid("spec.ports", 0, "range is full")])
    while True:
        number = ctx.env.random.randrange(NODE_PORTS.start, NODE_PORTS.stop)
        if number not in used:
            return number
