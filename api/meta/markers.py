"""Facts of a Kubernetes schema that a Python type cannot say, attached to fields with ``Annotated``.

They mean the same as kubebuilder's markers (``+listType``, ``+kubebuilder:validation:XValidation``, …). pydantic passes over those that it
does not know; `kubemini.api.openapi` reads them all. Bounds use annotated-types and pydantic's own constraints
(``Ge``, ``Le``, ``MinLen``, ``MaxLen``, ``StringConstraints``), so that construction in Python is checked by them too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

ABSENT = "x-kubemini-absent"
"""Key of the schema extra that `absent` leaves on a field."""


@dataclass(frozen=True, slots=True)
class Format:
    """OpenAPI ``format`` of a number or string: ``int32``, ``int64``, ``date-time``."""

    name: str


@dataclass(frozen=True, slots=True)
class IntOrStringType:
    """An integer or a string (``x-kubernetes-int-or-string``); with a `pattern` for quantities."""

    pattern: str = ""


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """The subtree has a built-in type and stays a plain JSON tree; `definition` is its OpenAPI name."""

    definition: str


@dataclass(frozen=True, slots=True)
class ListType:
    """How server-side apply merges a list: ``atomic``, ``set``, or ``map`` by `keys`."""

    type: Literal["atomic", "set", "map"]
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MapType:
    """How server-side apply merges an object or map: ``atomic`` = owned as a whole."""

    type: Literal["atomic", "granular"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One CEL rule of ``x-kubernetes-validations`` and the message of its violation."""

    rule: str
    message: str


@dataclass(frozen=True, slots=True)
class RequiredInSchema:
    """The schema lists the field as required although it has a default (upstream has such fields; the default always satisfies it)."""


ATOMIC = ListType("atomic")
SET = ListType("set")
ATOMIC_MAP = MapType("atomic")
REQUIRED = RequiredInSchema()
IMMUTABLE = Rule("self == oldSelf", "Value is immutable")
IMMUTABLE_FIELD = Rule("self == oldSelf", "field is immutable")


def by(*keys: str) -> ListType:
    """Return the list type of a list whose elements are told apart by `keys`."""
    return ListType("map", keys)


def absent(zero: Any | Callable[[], Any]) -> Any:
    """Return a field whose absence reads as `zero` in Python, while the schema has no default (Go's zero value behind omitempty).

    `zero` is the value, or a function that makes it.
    """
    if callable(zero):
        return Field(default_factory=zero, json_schema_extra={ABSENT: True})
    return Field(default=zero, json_schema_extra={ABSENT: True})
