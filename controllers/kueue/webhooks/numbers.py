"""Numbers and truth values in labels and annotations, read as Go's ``strconv`` reads them, with its words for what cannot be read."""

from __future__ import annotations

import re
from typing import Final

TRUE: Final = ("1", "t", "T", "true", "TRUE", "True")
FALSE: Final = ("0", "f", "F", "false", "FALSE", "False")
_DIGITS: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)


def read_int(text: str, *, bits: int = 64) -> int | None:
    """Return a decimal number of so many bits, or None."""
    value = int(text) if _DIGITS.fullmatch(text) else None
    return value if value is not None and -(1 << bits - 1) <= value < 1 << bits - 1 else None


def int_fault(text: str) -> str:
    """Return what ``strconv.Atoi`` says of a text that `read_int` cannot read."""
    return f'strconv.Atoi: parsing "{text}": {"value out of range" if _DIGITS.fullmatch(text) else "invalid syntax"}'
