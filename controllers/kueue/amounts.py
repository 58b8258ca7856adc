"""Amounts of resources: cpu in thousandths, everything else in whole units, saturating at the largest int64 as upstream's do."""

from __future__ import annotations

from collections.abc import Mapping

from kubemini.machinery.quantity import from_milli, from_units, milli, units

MAX = 2**63 - 1
"""The largest amount. Sums and products stop here (huge requests stay pending instead of wrapping round)."""

FlavorResource = tuple[str, str]
"""(flavor, resource): what quota is counted by."""
Usage = dict[FlavorResource, int]

BINARY = ("memory", "ephemeral-storage")


def amount(resource: str, text: str | int) -> int:
    """Return a quantity as an integer, rounded up.

    >>> amount("cpu", "500m"), amount("memory", "1Ki")
    (500, 1024)
    """
    return min(MAX, milli(text) if resource == "cpu" else units(text))


def amounts(resources: Mapping[str, str | int] | None) -> dict[str, int]:
    """Return a resource list as integers."""
    return {name: amount(name, text) for name, text in (resources or {}).items()}


def shown(resource: str, value: int) -> str:
    """Return an amount as the quantity that is written into objects and messages.

    >>> shown("cpu", 1500), shown("memory", 2048), shown("nvidia.com/gpu", 4)
    ('1500m', '2Ki', '4')
    """
    if resource == "cpu":
        return from_milli(value)
    binary = resource in BINARY or resource.startswith("hugepages-")
    return from_units(value, "BinarySI" if binary else "DecimalSI")


def times(value: int, count: int) -> int:
    """Return the product, saturated."""
    return min(MAX, value * count)


def add_to(total: dict[str, int], more: Mapping[str, int]) -> None:
    """Add amounts in place, saturated."""
    for name, value in more.items():
        total[name] = min(MAX, total.get(name, 0) + value)


def raise_to(total: dict[str, int], other: Mapping[str, int]) -> None:
    """Take the larger of each amount in place."""
    for name, value in other.items():
        if value > total.get(name, 0):
            total[name] = value
