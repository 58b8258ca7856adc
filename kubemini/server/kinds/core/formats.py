"""Checks of single values that many kinds share, as generators of field errors.

The text formats themselves are in `kubemini.machinery.names`; a value can break several rules at once, and each is a
cause of its own.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from kubemini.machinery import names
from kubemini.machinery.errors import FieldError, invalid, not_supported, required, shown

Errors = Iterator[FieldError]
Rule = Callable[[str], str | None]
IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

NOT_NEGATIVE = "must be greater than or equal to 0"
POSITIVE = "must be greater than zero"
INTEGER = "must be an integer"
IMMUTABLE = "field is immutable"

_underscored = re.compile(r"[a-z0-9_]([-_a-z0-9]*[a-z0-9_])?(\.[a-z0-9_]([-_a-z0-9]*[a-z0-9_])?)*").fullmatch


def wrong(rule: Rule, value: str, path: str) -> Errors:
    """Yield one `Invalid value` per fault that a rule of `names` finds."""
    problem = rule(value)
    if problem is not None:
        for each in problem.split("\n"):
            yield invalid(path, value, each)


def name_prefix(value: str) -> str | None:
    """Check the start of a subdomain: a trailing ``-`` is fine."""
    return names.dns1123_subdomain(value, prefix=True)


def search_path(value: str) -> str | None:
    """Check a DNS search path: a subdomain that may hold underscores."""
    if len(value) <= 253 and _underscored(value):
        return None
    text = names.pattern_text(
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-', '_' or '.', "
        "and must start and end with an alphanumeric character",
        r"[a-z0-9_]([-_a-z0-9]*[a-z0-9_])?(\.[a-z0-9_]([-_a-z0-9]*[a-z0-9_])?)*",
        "example.com",
    )
    return names.too_long_text(253) if _underscored(value) else text


def one_of(value: str | None, supported: tuple[str, ...], path: str, *, needed: bool = True) -> Errors:
    """Check an enumeration; with `needed` an empty value is `Required`, otherwise it is fine."""
    if not value:
        if needed:
            yield required(path)
    elif value not in supported:
        yield not_supported(path, value, supported)


def at_least_zero(value: int | None, path: str) -> Errors:
    """Yield an error for a negative number."""
    if value is not None and value < 0:
        yield invalid(path, value, NOT_NEGATIVE)


def port_number(value: int, path: str) -> Errors:
    """Check a port number."""
    problem = names.port_number(value)
    if problem is not None:
        yield invalid(path, value, problem)


def port_or_name(value: int | str, path: str) -> Errors:
    """Check a port given as a number or by name."""
    if isinstance(value, str):
        yield from wrong(names.port_name, value, path)
    else:
        yield from port_number(value, path)


def user_or_group(value: int | None, path: str) -> Errors:
    """Check a uid or gid."""
    if value is not None and not 0 <= value <= 2147483647:
        yield invalid(path, value, names.between_text(0, 2147483647))


_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_IPV4 = re.compile(rf"{_OCTET}(?:\.{_OCTET}){{3}}", re.ASCII).fullmatch
"""An ordinary address, found ordinary without building one: every status of a pod has some."""
_PADDED = re.compile(rf"0*{_OCTET}(?:\.0*{_OCTET}){{3}}", re.ASCII).fullmatch
"""One with zeros in front of its numbers, which some read as octal."""


def is_ipv4(value: str) -> bool:
    """Tell whether a text is an ordinary IPv4 address."""
    return _IPV4(value) is not None


def ip(value: str, path: str) -> Errors:
    """Check an IP address, as strictly as the gate StrictIPCIDRValidation (on since 1.36) has it."""
    if _IPV4(value):
        return
    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        padded = _PADDED(value) is not None
        yield invalid(path, value, "must not have leading 0s" if padded else "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")
        return
    if _is_mapped(address):
        yield invalid(path, value, "must not be an IPv4-mapped IPv6 address")


def _is_mapped(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    return isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None


def cidr(value: str, path: str) -> Errors:
    """Check a CIDR, as strictly as the gate StrictIPCIDRValidation (on since 1.36) has it."""
    start, _, bits = value.partition("/")
    network = parsed_cidr(value)
    if network is None:
        yield invalid(path, value, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")
    elif start != _unpadded(start) or bits != str(int(bits)):
        yield invalid(path, value, "must not have leading 0s in IP or prefix length")
    elif _is_mapped(network.network_address):
        yield invalid(path, value, "must not have an IPv4-mapped IPv6 address")
    elif ipaddress.ip_address(start) != network.network_address:
        yield invalid(path, value, "must not have bits set beyond the prefix length")


def not_address(host: str, path: str) -> Errors:
    """Refuse an address where a name is meant."""
    try:
        ipaddress.ip_address(_unpadded(host))
    except ValueError:
        return
    yield invalid(path, host, "must be a DNS name, not an IP address")


def parsed_cidr(value: str) -> IPNetwork | None:
    """Return the range that a text means, however it is written; None for what is none."""
    start, slash, bits = value.partition("/")
    try:
        return ipaddress.ip_network(f"{_unpadded(start)}/{int(bits)}", strict=False) if slash and bits.isascii() and bits.isdigit() else None
    except ValueError:
        return None


def canonical_ip(value: str, path: str) -> Errors:
    """Check an IP address of a newer field: it is written in the one usual way."""
    yield from _canonical(ip, value, path, ipaddress.ip_address)


def canonical_cidr(value: str, path: str) -> Errors:
    """Check a CIDR of a newer field: it is written in the one usual way."""
    yield from _canonical(cidr, value, path, ipaddress.ip_network)


def _canonical(check: Callable[[str, str], Errors], value: str, path: str, read: Callable[[str], object]) -> Errors:
    faults = list(check(value, path))
    yield from faults
    if not faults and (usual := str(read(value))) != value:
        yield invalid(path, value, f'must be in canonical form ("{usual}")')


def _unpadded(address: str) -> str:
    """Return an IPv4 address without zeros in front of its numbers; any other text as it is."""
    return ".".join(str(int(each)) for each in address.split(".")) if _PADDED(address) else address


_SPECIAL: Final = ("0.", "127.", "169.254.", "224.")


def ordinary_ip(value: str, path: str) -> Errors:
    """Refuse addresses that no endpoint can have: unspecified, loopback, link-local."""
    if _IPV4(value) and not value.startswith(_SPECIAL):
        return
    try:
        address = ipaddress.ip_address(_unpadded(value))
    except ValueError:
        yield invalid(path, value, "must be a valid IP address")
        return
    if address.is_unspecified:
        yield invalid(path, value, f"may not be unspecified ({value})")
    if address.is_loopback:
        yield invalid(path, value, "may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if address.is_link_local:
        yield invalid(path, value, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    if address.is_multicast and (value.startswith("224.0.0.") or address in ipaddress.ip_network("ff02::/16")):
        yield invalid(path, value, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")


def no_backsteps(value: str, path: str) -> Errors:
    """Refuse ``..`` as an element of a path."""
    if ".." in value and ".." in value.split("/"):
        yield invalid(path, value, "must not contain '..'")


def descending_path(value: str, path: str) -> Errors:
    """Check a relative path that stays inside."""
    if value.startswith("/"):
        yield invalid(path, value, "must be a relative path")
    yield from no_backsteps(value, path)


def local_path(value: str, path: str) -> Errors:
    """Check a relative path that stays inside and does not start with ``..``."""
    yield from descending_path(value, path)
    if value.startswith("..") and not value.startswith("../"):
        yield invalid(path, value, "must not start with '..'")


# ------------------------------------------------------------------------------------------------------ comparing


def same(one: Any, other: Any) -> bool:
    """Tell whether two values mean the same: absent and empty are equal, as upstream's semantic comparison has it."""
    if one is other or one == other:
        return True
    if isinstance(one, dict) and isinstance(other, dict):
        return all(same(one.get(key), other.get(key)) for key in {**one, **other})
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return not one and not other and not (isinstance(one, int) and isinstance(other, int))


def difference(old: Any, new: Any, path: str = "") -> str:
    """Return the differences of two trees, one line each for what was and what is (for messages only)."""
    if isinstance(old, dict) and isinstance(new, dict):
        return "".join(
            difference(old.get(key), new.get(key), f"{path}.{key}") for key in sorted({**old, **new}) if not same(old.get(key), new.get(key))
        )
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return "".join(difference(one, other, f"{path}[{index}]") for index, (one, other) in pairs if not same(one, other))
    return f"- \t{path}: {shown(old)}\n+ \t{path}: {shown(new)}\n"
