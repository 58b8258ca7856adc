"""A quantity as Go's deep printer shows the insides of ``resource.Quantity`` after parsing its text. Needed for hashes of templates only."""

from __future__ import annotations

import re
from functools import lru_cache

from kubemini.machinery.quantity import canonical

_TEXT = re.compile(r"([+-]?)0*(\d*)(?:\.(\d*))?(.*)")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_MOST_DIGITS = 18
_LARGEST = 2**63 - 1
_NANO = 9
_WORD = 2**64


@lru_cache(maxsize=4096)
def shown(text: str | int | None) -> str:
    """Return the dump of a quantity as it comes out of storage, in canonical form; an absent one is 0."""
    text = canonical(str(text)) if text is not None else "0"
    if text == "0":
        return _small(0, 0, "0", "DecimalSI")
    match = _TEXT.fullmatch(text)
    assert match is not None
    sign, num, denom, suffix = match[1], match[2] or "0", match[3] or "", match[4]
    if suffix in _BINARY:
        form, exponent, factor = "BinarySI", _BINARY[suffix], 1 << _BINARY[suffix]
        precision = 15 - len(num) - exponent * 3 // 10 - 1 if not denom else -1
        scale = 0
    else:
        form = "DecimalSI" if suffix in _DECIMAL else "DecimalExponent"
        exponent, factor = (_DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])), 1
        precision = _MOST_DIGITS - len(num) - len(denom)
        scale = exponent
    if precision >= 0 and scale - len(denom) >= -_NANO:
        scale -= len(denom)
        digits = num + denom
        value = int(digits) * factor
        if value <= _LARGEST:
            # Text that is canonical already is kept beside the number
            if form == "BinarySI":
                kept = exponent % 10 == 0 and int(digits) & 7 != 0
            else:
                kept = scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
            return _small(-value if sign == "-" else value, scale, text if kept else "", form)
    return _large(sign == "-", num, denom, exponent, form)


def _small(value: int, scale: int, text: str, form: str) -> str:
    amount = f"{{value:(int64){value} scale:(resource.Scale){scale}}}"
    return f"{{i:(resource.int64Amount){amount} d:(resource.infDecAmount){{Dec:(*inf.Dec)<nil>}} s:(string){text} Format:(resource.Format){form}}}"


def _large(negative: bool, num: str, denom: str, exponent: int, form: str) -> str:
    unscaled, scale = int(num + denom), len(denom)
    if form == "BinarySI":
        unscaled <<= exponent
    else:
        scale -= exponent
    if unscaled:
        # Rounded up to billionths: whoever asks for something gets something
        shift = _NANO - scale
        unscaled = unscaled * 10**shift if shift >= 0 else -(-unscaled // 10**-shift)
        scale = _NANO
    if form == "BinarySI":
        if unscaled > _LARGEST * 10**_NANO:
            unscaled, scale = _LARGEST, 0
        elif 0 < unscaled < 10**scale:
            form = "DecimalSI"
    words: list[str] = []
    while unscaled:
        unscaled, word = divmod(unscaled, _WORD)
        words.append(str(word))
    natural = f"[{' '.join(words)}]" if words else "<nil>"
    number = f"{{neg:(bool){'true' if negative else 'false'} abs:(big.nat){natural}}}"
    amount = f"{{unscaled:(big.Int){number} scale:(inf.Scale){scale}}}"
    zero = "{value:(int64)0 scale:(resource.Scale)0}"
    return f"{{i:(resource.int64Amount){zero} d:(resource.infDecAmount){{Dec:(*inf.Dec){amount}}} s:(string) Format:(resource.Format){form}}}"
