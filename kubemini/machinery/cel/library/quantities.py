"""Kubernetes quantities (apiserver ``pkg/cel/library/quantity.go``)."""

from __future__ import annotations

from dataclasses import dataclass

from kubemini.machinery import quantity
from kubemini.machinery.cel.errors import CelEvaluationError
from kubemini.machinery.cel.overloads import OPAQUE, function
from kubemini.machinery.cel.values import INT_MAX, INT_MIN, Opaque


@dataclass(frozen=True, slots=True)
class CelQuantity(Opaque):
    """A quantity in nano-units."""

    nano: int

    type_name = OPAQUE["Quantity"]


@function("quantity(string) -> Quantity", "string_to_quantity")
def parse(text: str) -> CelQuantity:
    """Parse a quantity."""
    try:
        return CelQuantity(quantity.parse(text).nano)
    except quantity.QuantityError as error:
        raise CelEvaluationError(str(error)) from None


@function("isQuantity(string) -> bool", "is_quantity_string")
def is_quantity(text: str) -> bool:
    """Tell whether a text is a quantity."""
    return quantity.is_quantity(text)


@function("(Quantity).sign() -> int", "quantity_sign")
@function("sign(Quantity) -> int", "quantity_sign_function")
def sign(value: CelQuantity) -> int:
    """Return -1, 0 or 1."""
    return (value.nano > 0) - (value.nano < 0)


@function("(Quantity).isGreaterThan(Quantity) -> bool", "quantity_is_greater_than")
def is_greater(a: CelQuantity, b: CelQuantity) -> bool:
    """Compare."""
    return a.nano > b.nano


@function("(Quantity).isLessThan(Quantity) -> bool", "quantity_is_less_than")
def is_less(a: CelQuantity, b: CelQuantity) -> bool:
    """Compare."""
    return a.nano < b.nano


@function("(Quantity).compareTo(Quantity) -> int", "quantity_compare_to")
def compare(a: CelQuantity, b: CelQuantity) -> int:
    """Return -1, 0 or 1."""
    return (a.nano > b.nano) - (a.nano < b.nano)


@function("(Quantity).asApproximateFloat() -> double", "quantity_get_float")
def as_float(value: CelQuantity) -> float:
    """Return the nearest double."""
    return value.nano / quantity.NANO


@function("(Quantity).isInteger() -> bool", "quantity_is_integer")
def is_integer(value: CelQuantity) -> bool:
    """Tell whether it is a whole number of 64 bits."""
    return value.nano % quantity.NANO == 0 and INT_MIN <= value.nano // quantity.NANO <= INT_MAX


@function("(Quantity).asInteger() -> int", "quantity_get_int")
def as_integer(value: CelQuantity) -> int:
    """Return a whole number."""
    if not is_integer(value):
        raise CelEvaluationError("cannot convert value to integer")
    return value.nano // quantity.NANO


@function("(Quantity).add(Quantity) -> Quantity", "quantity_add")
def add(a: CelQuantity, b: CelQuantity) -> CelQuantity:
    """Return the sum."""
    return CelQuantity(a.nano + b.nano)


@function("(Quantity).add(int) -> Quantity", "quantity_add_int")
def add_int(a: CelQuantity, b: int) -> CelQuantity:
    """Return the sum with a whole number."""
    return CelQuantity(a.nano + b * quantity.NANO)


@function("(Quantity).sub(Quantity) -> Quantity", "quantity_sub")
def subtract(a: CelQuantity, b: CelQuantity) -> CelQuantity:
    """Return the difference."""
    return CelQuantity(a.nano - b.nano)


@function("(Quantity).sub(int) -> Quantity", "quantity_sub_int")
def subtract_int(a: CelQuantity, b: int) -> CelQuantity:
    """Return the difference to a whole number."""
    return CelQuantity(a.nano - b * quantity.NANO)
