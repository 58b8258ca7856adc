"""networking.k8s.io: ranges of Service addresses, and the addresses that are taken."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.machinery import names
from kubemini.machinery.errors import invalid, required, shown
from kubemini.server.kinds.core.formats import IMMUTABLE, Errors, canonical_cidr, canonical_ip, parsed_cidr, same, wrong
from kubemini.server.kinds.internal_types import Struct

_PARENT = Struct(Group="", Resource="", Namespace="", Name="")


def address_name(name: str, *, prefix: bool = False) -> str | None:
    """Check that a name is an address in its usual form."""
    return "\n".join(each.body.removeprefix(f"Invalid value: {shown(name)}: ") for each in canonical_ip(name, "")) or None


def ip_address(obj: Tree) -> Errors:
    """Check an IPAddress: it says whose it is."""
    parent, path = (obj.get("spec") or {}).get("parentRef"), "spec.parentRef"
    if parent is None:
        yield required(path)
        return
    if parent.get("group"):
        yield from wrong(names.dns1123_subdomain, parent["group"], f"{path}.group")
    for key in ("resource", "name"):
        if parent.get(key):
            yield from wrong(names.path_segment, parent[key], f"{path}.{key}")
        else:
            yield required(f"{path}.{key}")
    if parent.get("namespace"):
        yield from wrong(names.path_segment, parent["namespace"], f"{path}.namespace")


def ip_address_update(new: Tree, old: Tree) -> Errors:
    """Whose an address is stays."""
    now, before = (new.get("spec") or {}).get("parentRef"), (old.get("spec") or {}).get("parentRef")
    if not same(now, before):
        yield invalid("spec.parentRef", _PARENT.shown(now), IMMUTABLE)


def service_cidr(obj: Tree) -> Errors:
    """Check a ServiceCIDR: one range, or one of each family."""
    path, found = "spec.cidrs", (obj.get("spec") or {}).get("cidrs") or []
    ranges = [parsed_cidr(each) for each in found]
    if not found:
        yield required(path, "at least one CIDR required")
    elif len(found) > 2:
        yield invalid(path, {"CIDRs": found}, "may only hold up to 2 values")
    elif len(found) == 2 and {each and each.version for each in ranges} != {4, 6}:
        yield invalid(path, {"CIDRs": found}, "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64")
    else:
        for index, each in enumerate(found):
            yield from canonical_cidr(each, f"{path}[{index}]")


def service_cidr_update(new: Tree, old: Tree) -> Errors:
    """The ranges stay."""
    now, before = (new.get("spec") or {}).get("cidrs"), (old.get("spec") or {}).get("cidrs")
    if not same(now, before):
        yield invalid("spec.cidrs", now, IMMUTABLE)
