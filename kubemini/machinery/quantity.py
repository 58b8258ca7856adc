"""Kubernetes quantities (``100m``, ``1Gi``, ``1e3``): exact, as integers of nano-units, and their canonical texts.

Everything is memoised by the text, so that reading the requests of 10,000 pods of one template costs dictionary
look-ups. Numbers of JSON are taken like their texts. Mirrors apimachinery's ``pkg/api/resource`` (1.36), its habits
included: a text that already is canonical is kept as written, smaller parts than nano are rounded away from zero,
binary quantities are capped at 2⁶³-1.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

Family = Literal["DecimalSI", "BinarySI", "DecimalExponent"]
"""How a quantity prints: ``1500m``, ``1536Mi``, ``15e2``."""

Text = str | int | float
"""A quantity as it stands in a tree: mostly a string, a number where the client sent one."""

NANO = 10**9
MILLI = 10**6

WRONG_FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
WRONG_NUMBER = "unable to parse numeric part of quantity"
WRONG_SUFFIX = "unable to parse quantity's suffix"

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_BINARY_SUFFIX = ["", *_BINARY]
_MAX = 2**63 - 1
_MAX_EXPONENT = 4096
_parts = re.compile(r"([+-]?)([0-9]*)(?:(\.)([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII).fullmatch


class QuantityError(ValueError):
    """A text is no quantity; the message is upstream's."""


class Quantity(NamedTuple):
    """A parsed quantity: its value in nano-units, how it prints, and its canonical text."""

    nano: int
    family: Family
    text: str

    @property
    def milli(self) -> int:
        """The value in thousandths, rounded away from zero."""
        return _rounded(self.nano, MILLI)

    @property
    def units(self) -> int:
        """The value in whole units, rounded away from zero."""
        return _rounded(self.nano, NANO)


ZERO = Quantity(0, "DecimalSI", "0")

_PARSED: dict[str, Quantity] = {"0": ZERO}
_PARSED_LIMIT = 16384


def parse(text: Text) -> Quantity:
    """Return the quantity of a text or number. Raise `QuantityError`.

    >>> parse("1500m")
    Quantity(nano=1500000000, family='DecimalSI', text='1500m')
    >>> parse("1024Mi").text
    '1Gi'
    """
    found = _PARSED.get(text) if type(text) is str else None
    if found is None:
        plain = _plain(text)
        found = _PARSED.get(plain)
        if found is None:
            found = _parse(plain)
            if len(_PARSED) >= _PARSED_LIMIT:
                _PARSED.clear()
            _PARSED[plain] = found
    return found


def is_quantity(value: object) -> bool:
    """Tell whether a JSON value is a quantity."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return False
    try:
        parse(value)
    except QuantityError:
        return False
    return True


def canonical(text: Text) -> str:
    """Return a quantity as the API server stores it, in the family it was written in.

    >>> canonical("0.5"), canonical("1000m"), canonical("1.5Gi"), canonical("1e4")
    ('500m', '1', '1536Mi', '10e3')
    """
    return parse(text).text


def nano(text: Text) -> int:
    """Return a quantity in nano-units, exact."""
    return parse(text).nano


def milli(text: Text) -> int:
    """Return a quantity in thousandths, rounded up (away from zero): how CPU is counted.

    >>> milli("0.5"), milli("1Ki"), milli("1u")
    (500, 1024000, 1)
    """
    return _rounded(parse(text).nano, MILLI)


def units(text: Text) -> int:
    """Return a quantity in whole units, rounded up (away from zero): how memory and devices are counted.

    >>> units("1Gi"), units("1100m"), units("-1100m")
    (1073741824, 2, -2)
    """
    return _rounded(parse(text).nano, NANO)


def compare(left: Text, right: Text) -> int:
    """Return -1, 0 or 1 for smaller, equal or greater.

    >>> compare("1024Mi", "1Gi"), compare("1", "1001m")
    (0, -1)
    """
    a, b = parse(left).nano, parse(right).nano
    return (a > b) - (a < b)


def equal(left: Text, right: Text) -> bool:
    """Tell whether two quantities have the same value, however they are written."""
    return left == right or parse(left).nano == parse(right).nano


def add(left: Text, right: Text) -> str:
    """Return the sum, printed in the family of `left` (of `right` where left is zero).

    >>> add("1Gi", "512Mi"), add("0", "1Ki"), add("900m", "100m")
    ('1536Mi', '1Ki', '1')
    """
    a, b = parse(left), parse(right)
    return shown(a.nano + b.nano, a.family if a.nano else b.family)


def subtract(left: Text, right: Text) -> str:
    """Return the difference, printed in the family of `left` (of `right` where left is zero)."""
    a, b = parse(left), parse(right)
    return shown(a.nano - b.nano, a.family if a.nano else b.family)


def from_milli(value: int, family: Family = "DecimalSI") -> str:
    """Return the text of so many thousandths."""
    return shown(value * MILLI, family)


def from_units(value: int, family: Family = "DecimalSI") -> str:
    """Return the text of so many whole units.

    >>> from_units(2 * 1024**3, "BinarySI"), from_units(1500)
    ('2Gi', '1500')
    """
    return shown(value * NANO, family)


def shown(value: int, family: Family = "DecimalSI") -> str:
    """Return the canonical text of so many nano-units.

    Binary quantities that are small or no whole number print as decimal ones.

    >>> shown(NANO * 1000, "BinarySI"), shown(NANO * 1025, "BinarySI"), shown(NANO * 1000)
    ('1k', '1025', '1k')
    """
    if value == 0:
        return "0"
    if family == "BinarySI" and value % NANO == 0 and abs(value) >= 1024 * NANO:
        return _binary(value // NANO)
    return _decimal(value, "DecimalSI" if family == "BinarySI" else family)


# ----------------------------------------------------------------------------------------------- how it is done


def _plain(text: Text) -> str:
    if isinstance(text, str):
        return text.strip()
    if isinstance(text, float) and text.is_integer():
        return str(int(text))
    return repr(text)


def _rounded(value: int, unit: int) -> int:
    return -(-value // unit) if value >= 0 else value // unit


def _parse(text: str) -> Quantity:
    """Parse a text that is not known yet."""
    found = _parts(text)
    if not text or found is None:
        raise QuantityError(WRONG_FORMAT)
    sign, whole, _point, fraction, suffix = found.groups(default="")
    whole = whole.lstrip("0") or "0"
    base, exponent, family = _suffix(suffix)
    digits = int(whole + fraction)
    if base == 2:
        value, rest = divmod((digits << exponent) * NANO, 10 ** len(fraction))
    else:
        power = exponent - len(fraction) + 9
        value, rest = (digits * 10**power, 0) if power >= 0 else divmod(digits, 10**-power)
    if rest:
        value += 1
    if family == "BinarySI":
        value = min(value, _MAX * NANO)
        if value < NANO:
            family = "DecimalSI"
    signed = -value if sign == "-" else value
    return Quantity(signed, family, text if _kept(whole, fraction, exponent, family) else shown(signed, family))


def _suffix(suffix: str) -> tuple[int, int, Family]:
    """Return base, exponent and family of a suffix."""
    exponent = _DECIMAL.get(suffix)
    if exponent is not None:
        return 10, exponent, "DecimalSI"
    exponent = _BINARY.get(suffix)
    if exponent is not None:
        return 2, exponent, "BinarySI"
    if suffix[0] in "eE":
        try:
            exponent = int(suffix[1:])
        except ValueError:
            raise QuantityError(WRONG_SUFFIX) from None
        if abs(exponent) <= _MAX_EXPONENT:
            return 10, exponent, "DecimalExponent"
    raise QuantityError(WRONG_SUFFIX)


def _kept(whole: str, fraction: str, exponent: int, family: Family) -> bool:
    """Tell whether upstream's fast path takes a text for canonical and keeps it as written (``1.500``, ``+1``)."""
    digits = whole + fraction
    if family == "BinarySI":
        small = 15 - len(whole) - int(exponent * 3 / 10) - 1 >= 0
        return small and not fraction and int(whole) & 7 != 0
    scale = exponent - len(fraction)
    return len(digits) <= 18 and scale >= -9 and scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"


def _decimal(value: int, family: Family) -> str:
    exponent = -9
    while value % 1000 == 0 and (exponent < 18 or family == "DecimalExponent"):
        value //= 1000
        exponent += 3
    if family == "DecimalExponent":
        return f"{value}e{exponent}" if exponent else str(value)
    return f"{value}{_DECIMAL_SUFFIX[exponent]}"


def _binary(value: int) -> str:
    times = 0
    while value % 1024 == 0 and times < 6:
        value //= 1024
        times += 1
    return f"{value}{_BINARY_SUFFIX[times]}"
