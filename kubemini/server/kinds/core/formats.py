"""Checks of single values that many kinds share, as generators of field errors.

The text formats themselves are in `kubemini.machinery.names`; a value can break several rules at once, and each is a
cause of its own.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator
from typing import Any

from kubemini.machinery import names
from kubemini.machinery.errors import FieldError, forbidden, invalid, required, shown

Errors = Iterator[FieldError]
Rule = Callable[[str], str | None]

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


def unsupported(path: str, value: Any, supported: tuple[str, ...]) -> FieldError:
    """Return ``Unsupported value`` with the supported ones in the given order (upstream sorts only what it keeps in sets)."""
    listed = ", ".join(f'"{each}"' for each in supported)
    return FieldError("FieldValueNotSupported", path, f"Unsupported value: {shown(value)}: supported values: {listed}")


def one_of(value: str | None, supported: tuple[str, ...], path: str, *, needed: bool = True) -> Errors:
    """Check an enumeration; with `needed` an empty value is `Required`, otherwise it is fine."""
    if not value:
        if needed:
            yield required(path)
    elif value not in supported:
        yield unsupported(path, value, supported)


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


def ip(value: str, path: str) -> Errors:
    """Check an IP address."""
    try:
        ipaddress.ip_address(value)
    except ValueError:
        yield invalid(path, value, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")


def cidr(value: str, path: str) -> Errors:
    """Check a CIDR."""
    try:
        if "/" in value:
            ipaddress.ip_network(value, strict=False)
            return
    except ValueError:
        pass
    yield invalid(path, value, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")


def ordinary_ip(value: str, path: str) -> Errors:
    """Refuse addresses that no endpoint can have: unspecified, loopback, link-local."""
    try:
        address = ipaddress.ip_address(value)
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


def labels(values: dict[str, str] | None, path: str) -> Errors:
    """Check keys and values of a label map; both are reported at the map."""
    for key, value in (values or {}).items():
        yield from wrong(names.qualified_name, key, path)
        yield from wrong(names.label_value, value, path)


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


def label_selector(selector: dict[str, Any] | None, path: str) -> Errors:
    """Check a LabelSelector object."""
    if not selector:
        return
    yield from labels(selector.get("matchLabels"), f"{path}.matchLabels")
    for index, each in enumerate(selector.get("matchExpressions") or ()):
        here = f"{path}.matchExpressions[{index}]"
        operator, values = each.get("operator", ""), each.get("values") or []
        if operator in ("In", "NotIn"):
            if not values:
                yield required(f"{here}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                yield forbidden(f"{here}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
        else:
            yield invalid(f"{here}.operator", operator, "not a valid selector operator")
        yield from wrong(names.qualified_name, each.get("key", ""), f"{here}.key")
        for at, value in enumerate(values):
            yield from wrong(names.label_value, value, f"{here}.values[{at}]")
