"""The rules of ``metav1.Condition`` lists. Mirrors apimachinery's ``pkg/apis/meta/v1/validation`` (1.36)."""

from __future__ import annotations

from typing import Final

from kubemini.api.trees import Tree
from kubemini.machinery import names
from kubemini.machinery.errors import duplicate, invalid, not_supported, required, too_long
from kubemini.server.kinds.core.formats import Errors, wrong

STATUSES: Final = ("False", "True", "Unknown")
MAX_REASON: Final = 1024
MAX_MESSAGE: Final = 32 * 1024


def validate_conditions(conditions: list[Tree] | None, path: str) -> Errors:
    """Check a list of conditions; each type may be there once."""
    seen: set[str] = set()
    for index, condition in enumerate(conditions or ()):
        kind = condition.get("type") or ""
        if kind in seen:
            yield duplicate(f"{path}[{index}].type", kind)
        seen.add(kind)
        yield from _condition(condition, f"{path}[{index}]")


def _condition(condition: Tree, path: str) -> Errors:
    yield from wrong(names.qualified_name, condition.get("type") or "", f"{path}.type")
    status, generation = condition.get("status") or "", condition.get("observedGeneration") or 0
    if status not in STATUSES:
        yield not_supported(f"{path}.status", status, STATUSES)
    if generation < 0:
        yield invalid(f"{path}.observedGeneration", generation, "must be greater than or equal to zero")
    if not condition.get("lastTransitionTime"):
        yield required(f"{path}.lastTransitionTime", "must be set")
    reason, message = condition.get("reason") or "", condition.get("message") or ""
    if not reason:
        yield required(f"{path}.reason", "must be set")
    else:
        yield from wrong(names.condition_reason, reason, f"{path}.reason")
        if len(reason) > MAX_REASON:
            yield too_long(f"{path}.reason", MAX_REASON)
    if len(message) > MAX_MESSAGE:
        yield too_long(f"{path}.message", MAX_MESSAGE)
