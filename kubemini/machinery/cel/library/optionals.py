"""Optional values (cel-go ``OptionalTypes``)."""

from __future__ import annotations

from typing import Any

from kubemini.machinery.cel.errors import CelEvaluationError
from kubemini.machinery.cel.overloads import function
from kubemini.machinery.cel.values import NONE, Duration, Optional, Timestamp, no_such_overload, some


@function("optional.of(V) -> optional(V)", "optional_of")
def of(value: Any) -> Optional:
    """Return an optional that holds a value."""
    return some(value)


@function("optional.ofNonZeroValue(V) -> optional(V)", "optional_ofNonZeroValue")
def of_non_zero(value: Any) -> Optional:
    """Return an optional that holds a value unless it is the zero of its type."""
    if isinstance(value, Timestamp):
        return some(value)
    zero = value.nanos == 0 if isinstance(value, Duration) else not value
    return NONE if zero else some(value)


@function("optional.none() -> optional(V)", "optional_none")
def none() -> Optional:
    """Return an empty optional."""
    return NONE


@function("(optional(V)).value() -> V", "optional_value")
def value(optional: Optional) -> Any:
    """Return what is held."""
    if not optional.present:
        raise CelEvaluationError("optional.none() dereference")
    return optional.value


@function("(optional(V)).hasValue() -> bool", "optional_hasValue")
def has_value(optional: Optional) -> bool:
    """Tell whether something is held."""
    return optional.present


@function("(optional(V)).or(optional(V)) -> optional(V)", "optional_or_optional")
def or_(optional: Optional, other: Optional) -> Optional:
    """Return the first of two that holds something."""
    return optional if optional.present else other


@function("(optional(V)).orValue(V) -> V", "optional_orValue_value")
def or_value(optional: Optional, other: Any) -> Any:
    """Return what is held, or `other`."""
    return optional.value if optional.present else other


@function("optional.unwrap(list(optional(V))) -> list(V)", "optional_unwrap")
@function("(list(optional(V))).unwrapOpt() -> list(V)", "optional_unwrapOpt")
def unwrap(optionals: list[Any]) -> list[Any]:
    """Return what the optionals of a list hold."""
    if not all(isinstance(each, Optional) for each in optionals):
        raise no_such_overload()
    return [each.value for each in optionals if each.present]
