"""Match conditions: CEL that a webhook or policy adds to its rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery.cel import CelError, Program
from kubemini.server.policies.scopes import SCOPE


class ConditionFailed(Exception):
    """A match condition has no value; the failure policy decides."""


def conditions_hold(conditions: Iterable[Tree], variables: Mapping[str, Any]) -> bool:
    """Tell whether every match condition is true. Raise `ConditionFailed` where one has no value and none is false."""
    failure: CelError | None = None
    for condition in conditions:
        try:
            if Program.compile(condition["expression"], SCOPE).evaluate(variables) is not True:
                return False
        except CelError as problem:
            failure = failure or problem
    if failure is not None:
        raise ConditionFailed(str(failure))
    return True
