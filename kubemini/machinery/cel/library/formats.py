"""Named formats: ``format.dns1123Label().validate(x)`` (apiserver ``pkg/cel/library/format.go``)."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable
from dataclasses import dataclass, field

from kubemini.machinery import names
from kubemini.machinery.cel import times
from kubemini.machinery.cel.errors import CelEvaluationError
from kubemini.machinery.cel.library import urls
from kubemini.machinery.cel.overloads import OPAQUE, declare_overload, function
from kubemini.machinery.cel.values import NONE, Opaque, Optional, some

Check = Callable[[str], list[str]]

_uuid = re.compile(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE).fullmatch


@dataclass(frozen=True, slots=True)
class Format(Opaque):
    """A format by its name; `faults` returns what is wrong with a text."""

    name: str
    faults: Check = field(compare=False)

    type_name = OPAQUE["Format"]


def _named(rule: names.NameRule, *, prefix: bool = False) -> Check:
    return lambda text: names.faults(rule(text, prefix=prefix) if prefix else rule(text))


def _uri(text: str) -> list[str]:
    return [] if urls.is_url(text) else [f'parse "{text}": invalid URI for request']


def _is_uuid(text: str) -> list[str]:
    return [] if _uuid(text) else ["does not match the UUID format"]


def _byte(text: str) -> list[str]:
    try:
        b64decode(text, validate=True)
    except (Base64Error, ValueError):
        return ["invalid base64"]
    return []


def _date(text: str) -> list[str]:
    try:
        times.date(text)
    except CelEvaluationError:
        return ["invalid date"]
    return []


def _datetime(text: str) -> list[str]:
    return [] if times.is_date_time(text) else ["invalid datetime"]


_FORMATS = {
    each.name: each
    for each in (
        Format("dns1123Label", _named(names.dns1123_label)),
        Format("dns1123Subdomain", _named(names.dns1123_subdomain)),
        Format("dns1035Label", _named(names.dns1035_label)),
        Format("qualifiedName", _named(names.qualified_name)),
        Format("dns1123LabelPrefix", _named(names.dns1123_label, prefix=True)),
        Format("dns1123SubdomainPrefix", _named(names.dns1123_subdomain, prefix=True)),
        Format("dns1035LabelPrefix", _named(names.dns1035_label, prefix=True)),
        Format("labelValue", _named(names.label_value)),
        Format("uri", _uri),
        Format("uuid", _is_uuid),
        Format("byte", _byte),
        Format("date", _date),
        Format("datetime", _datetime),
    )
}


def _constant(value: Format) -> Callable[[], Format]:
    return lambda: value


for _format in _FORMATS.values():
    declare_overload(f"format.{_format.name}() -> Format", f"format.{_format.name}", _constant(_format))


@function("format.named(string) -> optional(Format)", "format-named")
def named(name: str) -> Optional:
    """Return a format by name, if there is one."""
    found = _FORMATS.get(name)
    return NONE if found is None else some(found)


@function("(Format).validate(string) -> optional(list(string))", "format-validate")
def validate(form: Format, text: str) -> Optional:
    """Return what is wrong with a text, nothing when it is fine."""
    faults = form.faults(text)
    return some(faults) if faults else NONE
