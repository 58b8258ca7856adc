"""The annotation ``kueue.x-k8s.io/admission-gated-by`` on jobs and Workloads."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.machinery import names as rules
from kubemini.machinery.errors import FieldError, duplicate, forbidden, invalid

PATH = f"metadata.annotations[{names.ADMISSION_GATED_BY}]"


def _value(obj: Tree) -> str:
    found: str = (obj["metadata"].get("annotations") or {}).get(names.ADMISSION_GATED_BY, "")
    return found


def gate_errors(new: Tree, old: Tree | None) -> list[FieldError]:
    """Return what is wrong with the gates, and with how they changed: they may only go."""
    value = _value(new)
    before = _value(old) if old is not None else ""
    found: list[FieldError] = []
    if value:
        seen: set[str] = set()
        for name in value.split(","):
            if not name:
                found.append(invalid(PATH, value, "admission gate names must not be empty"))
                continue
            found += rules.domain_prefixed_path(PATH, name)
            if name in seen:
                found.append(duplicate(PATH, name))
            seen.add(name)
    if old is not None and value != before:
        if not before:
            found.append(forbidden(PATH, "cannot add admission gate after creation"))
        elif value and set(value.split(",")) - set(before.split(",")):
            found.append(forbidden(PATH, "can only remove gates, not add new ones"))
    return found
