"""IP addresses and CIDRs (apiserver ``pkg/cel/library/ip.go`` and ``cidr.go``)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network, ip_address, ip_interface

from kubemini.machinery.cel.errors import CelEvaluationError
from kubemini.machinery.cel.overloads import OPAQUE, function
from kubemini.machinery.cel.values import Opaque
from kubemini.machinery.gotext import is_decimal

_mapped = re.compile(r"::ffff:\d+\.\d+\.\d+\.\d+(?:/.*)?", re.IGNORECASE).match


@dataclass(frozen=True, slots=True)
class Ip(Opaque):
    """An address."""

    address: IPv4Address | IPv6Address

    type_name = OPAQUE["IP"]


@dataclass(frozen=True, slots=True)
class Cidr(Opaque):
    """An address with a prefix length."""

    interface: IPv4Interface | IPv6Interface

    type_name = OPAQUE["CIDR"]

    @property
    def network(self) -> IPv4Network | IPv6Network:
        """The network that the address is in."""
        return self.interface.network


def _ip(text: str) -> Ip:
    if _mapped(text):
        raise CelEvaluationError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
    if "%" in text:
        raise CelEvaluationError(f'IP address "{text}" with zone value is not allowed')
    try:
        return Ip(ip_address(text))
    except ValueError:
        raise CelEvaluationError(f'IP Address "{text}" parse error during conversion from string: ParseAddr("{text}"): unable to parse IP') from None


def _cidr(text: str) -> Cidr:
    address, slash, length = text.partition("/")
    if _mapped(address):
        raise CelEvaluationError(f'IPv4-mapped IPv6 address "{address}" is not allowed')
    fine = slash and "%" not in address and is_decimal(length) and (len(length) == 1 or length[0] != "0")
    try:
        return Cidr(ip_interface(text if fine else ""))
    except ValueError:
        raise CelEvaluationError(f'network address parse error during conversion from string: netip.ParsePrefix("{text}"): unable to parse') from None


@function("ip(string) -> IP", "string_to_ip")
def ip(text: str) -> Ip:
    """Parse an address."""
    return _ip(text)


@function("isIP(string) -> bool", "is_ip")
def is_ip(text: str) -> bool:
    """Tell whether a text is an address."""
    try:
        _ip(text)
    except CelEvaluationError:
        return False
    return True


@function("ip.isCanonical(string) -> bool", "ip_is_canonical")
def is_canonical(text: str) -> bool:
    """Tell whether an address is written the canonical way."""
    return str(_ip(text).address) == text


@function("string(IP) -> string", "ip_to_string")
def ip_text(value: Ip) -> str:
    """Print an address."""
    return str(value.address)


@function("(IP).family() -> int", "ip_family")
def family(value: Ip) -> int:
    """Return 4 or 6."""
    return value.address.version


@function("(IP).isUnspecified() -> bool", "ip_is_unspecified")
def is_unspecified(value: Ip) -> bool:
    """Tell whether it is all zeros."""
    return value.address.is_unspecified


@function("(IP).isLoopback() -> bool", "ip_is_loopback")
def is_loopback(value: Ip) -> bool:
    """Tell whether it is a loopback address."""
    return value.address.is_loopback


@function("(IP).isLinkLocalMulticast() -> bool", "ip_is_link_local_multicast")
def is_link_local_multicast(value: Ip) -> bool:
    """Tell whether it is 224.0.0.0/24 or ff02::/16."""
    packed = value.address.packed
    return packed[:3] == b"\xe0\x00\x00" if value.address.version == 4 else packed[0] == 0xFF and packed[1] & 0x0F == 2


@function("(IP).isLinkLocalUnicast() -> bool", "ip_is_link_local_unicast")
def is_link_local_unicast(value: Ip) -> bool:
    """Tell whether it is 169.254.0.0/16 or fe80::/10."""
    return value.address.is_link_local


@function("(IP).isGlobalUnicast() -> bool", "ip_is_global_unicast")
def is_global_unicast(value: Ip) -> bool:
    """Tell whether it is neither unspecified, loopback, multicast, link-local nor broadcast."""
    each = value.address
    broadcast = each.version == 4 and each.packed == b"\xff" * 4
    return not (broadcast or each.is_unspecified or each.is_loopback or each.is_multicast or each.is_link_local)


@function("cidr(string) -> CIDR", "string_to_cidr")
def cidr(text: str) -> Cidr:
    """Parse an address with a prefix length."""
    return _cidr(text)


@function("isCIDR(string) -> bool", "is_cidr")
def is_cidr(text: str) -> bool:
    """Tell whether a text is an address with a prefix length."""
    try:
        _cidr(text)
    except CelEvaluationError:
        return False
    return True


@function("string(CIDR) -> string", "cidr_to_string")
def cidr_text(value: Cidr) -> str:
    """Print it."""
    return str(value.interface)


@function("(CIDR).containsIP(string) -> bool", "cidr_contains_ip_string")
def contains_ip_text(value: Cidr, text: str) -> bool:
    """Tell whether an address is inside."""
    return contains_ip(value, _ip(text))


@function("(CIDR).containsIP(IP) -> bool", "cidr_contains_ip_ip")
def contains_ip(value: Cidr, address: Ip) -> bool:
    """Tell whether an address is inside."""
    return address.address in value.network


@function("(CIDR).containsCIDR(string) -> bool", "cidr_contains_cidr_string")
def contains_cidr_text(value: Cidr, text: str) -> bool:
    """Tell whether a network is inside."""
    return contains_cidr(value, _cidr(text))


@function("(CIDR).containsCIDR(CIDR) -> bool", "cidr_contains_cidr")
def contains_cidr(value: Cidr, other: Cidr) -> bool:
    """Tell whether a network is inside."""
    return other.interface.ip in value.network and other.network.prefixlen >= value.network.prefixlen


@function("(CIDR).ip() -> IP", "cidr_ip")
def cidr_ip(value: Cidr) -> Ip:
    """Return the address."""
    return Ip(value.interface.ip)


@function("(CIDR).prefixLength() -> int", "cidr_prefix_length")
def prefix_length(value: Cidr) -> int:
    """Return the prefix length."""
    return value.network.prefixlen


@function("(CIDR).masked() -> CIDR", "cidr_masked")
def masked(value: Cidr) -> Cidr:
    """Return it with the host bits cleared."""
    return Cidr(ip_interface(str(value.network)))
