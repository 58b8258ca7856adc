"""Semantic versions (apiserver ``pkg/cel/library/semverlib.go``)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kubemini.machinery.cel.errors import CelEvaluationError
from kubemini.machinery.cel.overloads import OPAQUE, function
from kubemini.machinery.cel.values import Opaque

_NUMBER = "(0|[1-9][0-9]*)"
_semver = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?").fullmatch


@dataclass(frozen=True, slots=True)
class Semver(Opaque):
    """A version; build metadata does not count."""

    core: tuple[int, int, int]
    pre: tuple[str, ...]

    type_name = OPAQUE["Semver"]


@function("semver(string) -> Semver", "string_to_semver")
@function("semver(string, bool) -> Semver", "string_bool_to_semver")
def parse(text: str, normalize: bool = False) -> Semver:
    """Parse a version; `normalize` forgives a leading v, missing parts and leading zeros."""
    found = _parsed(text, normalize=normalize)
    if found is None:
        raise CelEvaluationError("No Major.Minor.Patch elements found" if text.count(".") < 2 else f"Invalid character(s) found in version {text!r}")
    return found


@function("isSemver(string) -> bool", "is_semver_string")
@function("isSemver(string, bool) -> bool", "is_semver_string_bool")
def is_semver(text: str, normalize: bool = False) -> bool:
    """Tell whether a text is a version."""
    return _parsed(text, normalize=normalize) is not None


def _parsed(text: str, *, normalize: bool) -> Semver | None:
    found = _semver(_normalized(text) if normalize else text)
    if found is None:
        return None
    pre = tuple(found.group(4).split(".")) if found.group(4) else ()
    if any(each.isdigit() and len(each) > 1 and each[0] == "0" for each in pre):
        return None
    return Semver((int(found.group(1)), int(found.group(2)), int(found.group(3))), pre)


def _normalized(text: str) -> str:
    text = text.removeprefix("v")
    cut = re.search(r"[-+]", text)
    core, rest = (text[: cut.start()], text[cut.start() :]) if cut else (text, "")
    parts = [part.lstrip("0") or "0" for part in core.split(".")]
    if len(parts) < 3 and not rest:
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts) + rest


@function("(Semver).compareTo(Semver) -> int", "semver_compare_to")
def compare(a: Semver, b: Semver) -> int:
    """Return -1, 0 or 1."""
    if a.core != b.core:
        return -1 if a.core < b.core else 1
    left, right = (tuple(map(_rank, each.pre)) for each in (a, b))
    if left == right:
        return 0
    if not left or not right:
        return 1 if not left else -1
    return -1 if left < right else 1


def _rank(part: str) -> tuple[int, int, str]:
    return (0, int(part), "") if part.isdigit() else (1, 0, part)


@function("(Semver).isGreaterThan(Semver) -> bool", "semver_is_greater_than")
def is_greater(a: Semver, b: Semver) -> bool:
    """Compare."""
    return compare(a, b) > 0


@function("(Semver).isLessThan(Semver) -> bool", "semver_is_less_than")
def is_less(a: Semver, b: Semver) -> bool:
    """Compare."""
    return compare(a, b) < 0


@function("(Semver).major() -> int", "semver_major")
def major(value: Semver) -> int:
    """Return the first number."""
    return value.core[0]


@function("(Semver).minor() -> int", "semver_minor")
def minor(value: Semver) -> int:
    """Return the second number."""
    return value.core[1]


@function("(Semver).patch() -> int", "semver_patch")
def patch(value: Semver) -> int:
    """Return the third number."""
    return value.core[2]
