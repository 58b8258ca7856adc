"""Quantities: values, canonical texts, arithmetic; durations and ages."""

from __future__ import annotations

import pytest

from kubemini.machinery import duration, quantity
from kubemini.machinery.human import age, human_duration, short_human_duration


@pytest.mark.parametrize(
    "text,canonical,nano",
    [
        ("0", "0", 0),
        ("0.0", "0", 0),
        ("00m", "0", 0),
        ("1", "1", 10**9),
        ("1000m", "1", 10**9),
        ("0.5", "500m", 5 * 10**8),
        (".5", "500m", 5 * 10**8),
        ("1500m", "1500m", 15 * 10**8),
        ("100000k", "100M", 10**17),
        ("1.5Gi", "1536Mi", 1536 * 2**20 * 10**9),
        ("1024Mi", "1Gi", 2**30 * 10**9),
        ("1025Mi", "1025Mi", 1025 * 2**20 * 10**9),
        ("0.5Ki", "512", 512 * 10**9),
        ("1.1Ki", "1126400m", 1126400 * 10**6),
        ("1e3", "1e3", 10**12),
        ("1E4", "10e3", 10**13),
        ("12e-1", "1200e-3", 12 * 10**8),
        ("1n", "1n", 1),
        ("0.1n", "1n", 1),
        ("-0.1n", "-1n", -1),
        ("-1500m", "-1500m", -15 * 10**8),
        ("10Ei", str(2**63 - 1), (2**63 - 1) * 10**9),
        # Texts that upstream's fast parser takes for canonical stay as written.
        ("+1", "+1", 10**9),
        ("1.500", "1.500", 15 * 10**8),
        # Numbers of JSON.
        (2, "2", 2 * 10**9),
        (0.25, "250m", 25 * 10**7),
        (3.0, "3", 3 * 10**9),
    ],
)
def test_values_and_canonical_texts(text: quantity.Text, canonical: str, nano: int) -> None:
    """A quantity is exact, and is written back in the family it came in."""
    assert (quantity.canonical(text), quantity.nano(text)) == (canonical, nano)


@pytest.mark.parametrize(
    "text,problem",
    [
        ("", quantity.WRONG_FORMAT),
        ("1.1.1", quantity.WRONG_FORMAT),
        ("aoeu", quantity.WRONG_FORMAT),
        ("1 Gi", quantity.WRONG_FORMAT),
        ("1K", quantity.WRONG_SUFFIX),
        ("1i", quantity.WRONG_SUFFIX),
        ("1-5", quantity.WRONG_SUFFIX),
        ("1e", quantity.WRONG_SUFFIX),
        ("1e99999999", quantity.WRONG_SUFFIX),
    ],
)
def test_texts_that_are_no_quantities(text: str, problem: str) -> None:
    """A malformed text is refused in upstream's words."""
    with pytest.raises(quantity.QuantityError) as refused:
        quantity.parse(text)
    assert str(refused.value) == problem
    assert not quantity.is_quantity(text)


def test_rounding_is_away_from_zero() -> None:
    """Who asks for a little gets a little."""
    assert (quantity.milli("1u"), quantity.units("1m"), quantity.units("-1m"), quantity.units("2")) == (1, 1, -1, 2)


def test_arithmetic_keeps_the_family() -> None:
    """Sums and differences print like the left operand, like the right one where the left is zero."""
    assert quantity.add("1Gi", "1Mi") == "1025Mi"
    assert quantity.add("0", "1Gi") == "1Gi"
    assert quantity.add("1", "1Gi") == "1073741825"
    assert quantity.subtract("1", "1500m") == "-500m"
    assert quantity.subtract("1Gi", "1Gi") == "0"
    assert quantity.from_units(0, "BinarySI") == "0"
    assert quantity.from_milli(250) == "250m"


def test_equality_is_of_values() -> None:
    """Quantities are equal however they are written."""
    assert quantity.equal("1000m", "1")
    assert quantity.equal("1024Mi", "1Gi")
    assert not quantity.equal("1", "1001m")
    assert not quantity.is_quantity(value=True)


@pytest.mark.parametrize(
    "text,nanoseconds,shown",
    [
        ("0", 0, "0s"),
        ("1h30m", 5_400 * 10**9, "1h30m0s"),
        ("90s", 90 * 10**9, "1m30s"),
        ("1.5s", 1_500_000_000, "1.5s"),
        (".5ms", 500_000, "500µs"),
        ("1us", 1_000, "1µs"),
        ("-2m", -120 * 10**9, "-2m0s"),
        ("1m0.001s", 60_001 * 10**6, "1m0.001s"),
        ("+1ns", 1, "1ns"),
    ],
)
def test_go_durations(text: str, nanoseconds: int, shown: str) -> None:
    """Durations are read and written as Go does."""
    assert (duration.parse(text), duration.shown(nanoseconds), duration.canonical(text)) == (nanoseconds, shown, shown)


@pytest.mark.parametrize(
    "text,problem",
    [
        ("", 'time: invalid duration ""'),
        ("3", 'time: missing unit in duration "3"'),
        ("3d", 'time: unknown unit "d" in duration "3d"'),
        ("s", 'time: invalid duration "s"'),
        ("9999999h", 'time: invalid duration "9999999h"'),
    ],
)
def test_texts_that_are_no_durations(text: str, problem: str) -> None:
    """A malformed duration is refused in Go's words."""
    with pytest.raises(duration.DurationError) as refused:
        duration.parse(text)
    assert str(refused.value) == problem


@pytest.mark.parametrize(
    "seconds,shown",
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (119, "119s"),
        (120, "2m"),
        (599, "9m59s"),
        (600, "10m"),
        (10_799, "179m"),
        (10_800, "3h"),
        (28_799, "7h59m"),
        (28_800, "8h"),
        (172_799, "47h"),
        (172_800, "2d"),
        (176_400, "2d1h"),
        (691_200, "8d"),
        (729 * 86_400, "729d"),
        (730 * 86_400, "2y"),
        (731 * 86_400, "2y1d"),
        (8 * 365 * 86_400, "8y"),
    ],
)
def test_ages(seconds: float, shown: str) -> None:
    """Ages have two or three significant figures, with upstream's limits between units."""
    assert human_duration(seconds) == shown
    assert age(1000.0, 1000.0 + seconds) == shown


def test_short_ages_and_unknown_ones() -> None:
    """The short form has one unit; an object without creation time has no age."""
    assert [short_human_duration(each) for each in (0, 60, 86_399, 86_400, 365 * 86_400)] == ["0s", "1m", "23h", "1d", "1y"]
    assert age(None, 5.0) == "<unknown>"
