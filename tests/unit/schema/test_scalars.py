"""Times and base64 as Go reads them, with its texts for what it refuses."""

from __future__ import annotations

import pytest

from kubemini.machinery.schema.mismatch import Mismatch
from kubemini.machinery.schema.scalars import octets
from kubemini.machinery.schema.times import canonical_time

SECONDS = '"2006-01-02T15:04:05Z07:00"'
MICROS = '"2006-01-02T15:04:05.000000Z07:00"'


@pytest.mark.parametrize(
    "text, canonical",
    [
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04:05.999999999Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04:05,9Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02T3:04:05Z", "2026-01-02T03:04:05Z"),
        ("2024-02-29T23:30:00-01:00", "2024-03-01T00:30:00Z"),
        ("0000-02-29T00:00:00Z", "0000-02-29T00:00:00Z"),
    ],
)
def test_times(text: str, canonical: str) -> None:
    """Any RFC 3339 text becomes whole seconds in UTC, truncated."""
    assert canonical_time(text) == canonical


@pytest.mark.parametrize(
    "text, problem",
    [
        ("yesterday", f'parsing time "yesterday" as {SECONDS}: cannot parse "yesterday" as "2006"'),
        ("", f'parsing time "" as {SECONDS}: cannot parse "" as "2006"'),
        ("2026-01-02 03:04:05Z", f'parsing time "2026-01-02 03:04:05Z" as {SECONDS}: cannot parse " 03:04:05Z" as "T"'),
        ("2026-01-02T03:04:05", f'parsing time "2026-01-02T03:04:05" as {SECONDS}: cannot parse "" as "Z07:00"'),
        ("2026-13-02T03:04:05Z", 'parsing time "2026-13-02T03:04:05Z": month out of range'),
        ("2026-02-30T03:04:05Z", 'parsing time "2026-02-30T03:04:05Z": day out of range'),
        ("2026-01-02T24:04:05Z", 'parsing time "2026-01-02T24:04:05Z": hour out of range'),
        ("2026-01-02T03:04:05+25:00", 'parsing time "2026-01-02T03:04:05+25:00": time zone offset hour out of range'),
        ("2026-01-02T03:04:05Zz", 'parsing time "2026-01-02T03:04:05Zz": extra text: "z"'),
        ('a"é', f'parsing time "a\\"\\xc3\\xa9" as {SECONDS}: cannot parse "a\\"\\xc3\\xa9" as "2006"'),
    ],
)
def test_no_times(text: str, problem: str) -> None:
    """Go says which part of the layout could not be read, or what is out of range."""
    with pytest.raises(Mismatch) as refused:
        canonical_time(text)
    assert refused.value.text() == problem


@pytest.mark.parametrize("text", ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.5Z", "2026-01-02T03:04:05.1234567Z"])
def test_micro_times_have_six_decimals(text: str) -> None:
    """A micro time takes exactly six decimals."""
    with pytest.raises(Mismatch) as refused:
        canonical_time(text, micro=True)
    assert refused.value.text().startswith(f'parsing time "{text}" as {MICROS}: cannot parse "')
    assert canonical_time("2026-01-02T03:04:05.120000+01:00", micro=True) == "2026-01-02T02:04:05.120000Z"


@pytest.mark.parametrize("text, canonical", [("YQ==", "YQ=="), ("YWE=\n", "YWE="), ("YW\r\nFh", "YWFh"), ("YR==", "YQ=="), ("", "")])
def test_base64(text: str, canonical: str) -> None:
    """Line breaks are skipped and unused bits cleared."""
    assert octets(text) == canonical


@pytest.mark.parametrize(
    "text, at", [("!!", 0), ("YQ", 0), ("YWFhY", 4), ("YQ=", 3), ("YQ=x", 2), ("Y==", 1), (" YQ==", 0), ("YQ==x", 4), ("YQ-_", 2)]
)
def test_no_base64(text: str, at: int) -> None:
    """Go says at which byte of the input it gave up."""
    with pytest.raises(Mismatch) as refused:
        octets(text)
    assert refused.value.text() == f"illegal base64 data at input byte {at}"
