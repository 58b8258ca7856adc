"""The annotation ``kueue.x-k8s.io/admission-gated-by`` on jobs and Workloads."""

from __future__ import annotations

from collections.abc import Iterator

from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.machinery import names as rules
from kubemini.machinery.errors import FieldError, forbidden, invalid, too_long

PATH = f"metadata.annotations[{names.ADMISSION_GATED_BY}]"
LONGEST = 63


def _value(obj: Tree) -> str:
    found: str = (obj["metadata"].get("annotations") or {}).get(names.ADMISSION_GATED_BY, "")
    return found


def gate_errors(new: Tree, old: Tree | None) -> list[FieldError]:
    """Return what is wrong with the gates, and with how they changed: they may only go."""
    value = _value(new)
    before = _value(old) if old is not None else ""
    found: list[FieldError] = []
    if old is not None and value and not before:
        found.append(forbidden(PATH, "cannot add admission gate after creation"))
    if value and before and set(split(value)) - set(split(before)):
        found.append(forbidden(PATH, "can only remove gates, not add new ones"))
    return found + list(_format(value))


def split(value: str) -> list[str]:
    """Return the gates of a list as it is written, with blanks around each or not."""
    return [each.strip() for each in value.split(",")] if value.strip() else []


def _format(value: str) -> Iterator[FieldError]:
    seen: set[str] = set()
    for name in split(value):
        if not name:
            yield invalid(PATH, value, "cannot contain empty gate names")
        elif name in seen:
            yield invalid(PATH, value, f"duplicate gate name: {name}")
        else:
            seen.add(name)
            yield from rules.domain_prefixed_path(PATH, name)
            if len(name) > LONGEST:
                yield too_long(PATH, LONGEST)
