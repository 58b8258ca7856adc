"""String formats of OpenAPI schemas, as kube-openapi's ``strfmt`` judges them. Formats that CRDs do not know are ignored."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_interface

from kubemini.machinery import names
from kubemini.machinery.gotext import is_decimal

Check = Callable[[str], bool]

INTEGER_FORMATS: Mapping[str, tuple[int, int]] = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
NUMBER_FORMATS = frozenset({"float", "double"})
FLOAT_MAX = 3.4028234663852886e38


def _matching(pattern: str) -> Check:
    matches = re.compile(pattern, re.ASCII).fullmatch
    return lambda text: matches(text) is not None


def _date_time(text: str) -> bool:
    from kubemini.machinery.cel.times import is_date_time

    return is_date_time(text)


def _duration(text: str) -> bool:
    from kubemini.machinery.cel.times import is_duration

    return is_duration(text)


def _date(text: str) -> bool:
    return len(text) == 10 and _date_time(f"{text}T00:00:00Z")


def _byte(text: str) -> bool:
    try:
        b64decode(text, validate=True)
    except (Base64Error, ValueError):
        return False
    return True


def _uri(text: str) -> bool:
    from kubemini.machinery.cel.library.urls import is_url

    return is_url(text)


def _ipv4(text: str) -> bool:
    try:
        IPv4Address(text)
    except ValueError:
        return False
    return True


def _ipv6(text: str) -> bool:
    try:
        IPv6Address(text)
    except ValueError:
        return False
    return "%" not in text


def _cidr(text: str) -> bool:
    try:
        ip_interface(text)
    except ValueError:
        return False
    return "/" in text and is_decimal(text.rpartition("/")[2])


def _is_hostname(text: str) -> bool:
    labels = text.removesuffix(".").split(".")
    return bool(text) and len(text) <= 255 and all(0 < len(label) <= 63 and _label(label) for label in labels)


_label = _matching(r"[a-zA-Z0-9_]([a-zA-Z0-9_\-]*[a-zA-Z0-9_])?|[a-zA-Z0-9_]")
_address = _matching(r"(?:.*<)?[^\s<>@\"]+@[^\s<>@]+>?|(?:.*<)?\"[^\"]+\"@[^\s<>@]+>?")


def _isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch(r"\d{9}[\dXx]", digits, re.ASCII):
        return False
    return sum((place + 1) * (10 if char in "Xx" else int(char)) for place, char in enumerate(digits)) % 11 == 0


def _isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch(r"\d{13}", digits, re.ASCII):
        return False
    return sum(int(char) * (3 if place % 2 else 1) for place, char in enumerate(digits)) % 10 == 0


def _credit_card(text: str) -> bool:
    digits = re.sub(r"[^0-9]+", "", text)
    if not _card(digits):
        return False
    total = 0
    for place, char in enumerate(reversed(digits)):
        value = int(char) * (2 if place % 2 else 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


_card = _matching(
    r"(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|(222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}|"
    r"6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11}|6[27][0-9]{14})"
)
_HEX = "[0-9a-fA-F]"
_RGB = r"\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*"

_FORMATS: Mapping[str, Check] = {
    "bsonobjectid": _matching(f"{_HEX}{{24}}"),
    "uri": _uri,
    "email": _address,
    "hostname": _is_hostname,
    "ipv4": _ipv4,
    "ipv6": _ipv6,
    "cidr": _cidr,
    "mac": _matching(
        rf"({_HEX}{{2}}[:-]){{5}}{_HEX}{{2}}|({_HEX}{{2}}[:-]){{7}}{_HEX}{{2}}|({_HEX}{{4}}\.){{2}}{_HEX}{{4}}|({_HEX}{{4}}\.){{3}}{_HEX}{{4}}"
    ),
    "uuid": _matching(f"{_HEX}{{8}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{12}}"),
    "uuid3": _matching(f"{_HEX}{{8}}-?{_HEX}{{4}}-?3{_HEX}{{3}}-?{_HEX}{{4}}-?{_HEX}{{12}}"),
    "uuid4": _matching(f"{_HEX}{{8}}-?{_HEX}{{4}}-?4{_HEX}{{3}}-?[89abAB]{_HEX}{{3}}-?{_HEX}{{12}}"),
    "uuid5": _matching(f"{_HEX}{{8}}-?{_HEX}{{4}}-?5{_HEX}{{3}}-?[89abAB]{_HEX}{{3}}-?{_HEX}{{12}}"),
    "isbn": lambda text: _isbn10(text) or _isbn13(text),
    "isbn10": _isbn10,
    "isbn13": _isbn13,
    "creditcard": _credit_card,
    "ssn": _matching(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "hexcolor": _matching(f"#?({_HEX}{{3}}|{_HEX}{{6}})"),
    "rgbcolor": _matching(rf"rgb\({_RGB},{_RGB},{_RGB}\)"),
    "byte": _byte,
    "password": lambda text: True,
    "date": _date,
    "duration": _duration,
    "datetime": _date_time,
    "k8sshortname": lambda text: names.dns1123_label(text) is None,
    "k8slongname": lambda text: names.dns1123_subdomain(text) is None,
}


def string_format(name: str) -> Check | None:
    """Return the check of a string format, dashes ignored (``date-time``); None for one that CRDs do not know.

    >>> check = string_format("date-time")
    >>> check("2026-01-01T00:00:00Z"), check("yesterday")
    (True, False)
    """
    return _FORMATS.get(name.replace("-", ""))


def is_recognized(name: str, type_: str) -> bool:
    """Tell whether a format means anything for a type in a CRD; others are ignored with a warning."""
    if type_ in {"", "string"}:
        return string_format(name) is not None
    if type_ == "integer":
        return name in INTEGER_FORMATS
    return type_ == "number" and name in NUMBER_FORMATS
