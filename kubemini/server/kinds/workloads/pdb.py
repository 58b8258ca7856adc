"""policy/v1 PodDisruptionBudget: the strategy. Mirrors ``pkg/registry/policy/poddisruptionbudget`` and ``pkg/apis/policy/validation`` (1.36)."""

from __future__ import annotations

from typing import Final

from kubemini.api.trees import Tree
from kubemini.machinery.errors import FieldError, invalid, not_supported
from kubemini.machinery.labels import validate_label_selector
from kubemini.server.kinds import tables
from kubemini.server.kinds.core.formats import Errors
from kubemini.server.kinds.internal_types import LABEL_SELECTOR, Struct
from kubemini.server.kinds.workloads.conditions import validate_conditions
from kubemini.server.kinds.workloads.rules import at_most_all, counts, int_or_percent
from kubemini.server.strategy import Strategy, WriteContext

EVICTION_POLICIES: Final = ("AlwaysAllow", "IfHealthyBudget")

_SPEC: Final = Struct(MinAvailable=None, Selector=LABEL_SELECTOR, MaxUnavailable=None, UnhealthyPodEvictionPolicy=None)
_STATUS_COUNTS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")


class PodDisruptionBudgetStrategy(Strategy):
    """The rules of disruption budgets."""

    table = tables.POD_DISRUPTION_BUDGET
    has_status = True
    has_generation = True
    unconditional_update = False

    def initial_status(self, obj: Tree) -> Tree:
        """Return a status that allows nothing."""
        return dict.fromkeys(_STATUS_COUNTS, 0)

    def validate_create(self, obj: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check the budget."""
        return list(_budget(obj.get("spec") or {}))

    def validate_status(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check conditions and counts."""
        status = new.get("status") or {}
        return [*validate_conditions(status.get("conditions"), "status.conditions"), *counts(status, _STATUS_COUNTS, "status")]


def _budget(spec: Tree) -> Errors:
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if least is not None and most is not None:
        yield invalid("spec", _SPEC.shown(spec), "minAvailable and maxUnavailable cannot be both set")
    for field, value in (("minAvailable", least), ("maxUnavailable", most)):
        if value is not None:
            yield from int_or_percent(value, f"spec.{field}")
            yield from at_most_all(value, f"spec.{field}")
    yield from validate_label_selector(spec.get("selector"), "spec.selector")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in EVICTION_POLICIES:
        yield not_supported("spec.unhealthyPodEvictionPolicy", policy, EVICTION_POLICIES)
