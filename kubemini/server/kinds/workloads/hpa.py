"""autoscaling HorizontalPodAutoscaler: the strategy, on trees of v2 (the storage version; `hpa_conversion` has v1).

Mirrors ``pkg/registry/autoscaling/horizontalpodautoscaler`` and ``pkg/apis/autoscaling/{v2,validation}`` (1.36).
"""

from __future__ import annotations

from typing import Final

from kubemini.api.trees import Tree
from kubemini.machinery import quantity
from kubemini.machinery.errors import FieldError, forbidden, invalid, not_supported, required
from kubemini.server.kinds import tables
from kubemini.server.kinds.core.formats import Errors
from kubemini.server.kinds.workloads.hpa_metrics import object_reference, validate_metrics
from kubemini.server.kinds.workloads.rules import counts
from kubemini.server.strategy import Strategy, WriteContext

MAX_PERIOD: Final = 1800
MAX_STABILIZATION: Final = 3600
SELECT_POLICIES: Final = ("Disabled", "Max", "Min")
POLICY_TYPES: Final = ("Percent", "Pods")


class HorizontalPodAutoscalerStrategy(Strategy):
    """The rules of autoscalers. `to_zero`: the gate HPAScaleToZero is on."""

    table = tables.HORIZONTAL_POD_AUTOSCALER
    has_status = True
    has_generation = True

    def __init__(self, *, to_zero: bool = False) -> None:
        super().__init__()
        self._fewest = 0 if to_zero else 1

    def initial_status(self, obj: Tree) -> Tree:
        """Return a status that has seen nothing."""
        return {"currentMetrics": None, "desiredReplicas": 0}

    def validate_create(self, obj: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check a new autoscaler."""
        return list(_autoscaler(obj["spec"], fewest=self._fewest))

    def validate_update(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check a changed autoscaler; a minimum of 0 that was there may stay."""
        return list(_autoscaler(new["spec"], fewest=0 if old["spec"].get("minReplicas") == 0 else self._fewest))

    def validate_status(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """Refuse negative counts."""
        return list(counts(new.get("status") or {}, ("currentReplicas", "desiredReplicas"), "status"))


def _autoscaler(spec: Tree, *, fewest: int) -> Errors:
    low, high = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    if low is not None and low < fewest:
        yield invalid("spec.minReplicas", low, f"must be greater than or equal to {fewest}")
    if high < 1:
        yield invalid("spec.maxReplicas", high, "must be greater than 0")
    if low is not None and high < low:
        yield invalid("spec.maxReplicas", high, "must be greater than or equal to `minReplicas`")
    yield from object_reference(spec.get("scaleTargetRef") or {}, "spec.scaleTargetRef")
    metrics = spec.get("metrics") or []
    yield from validate_metrics(metrics, "spec.metrics")
    if low == 0 and not any(each.get("type") in {"Object", "External"} for each in metrics):
        yield forbidden("spec.metrics", "must specify at least one Object or External metric to support scaling to zero replicas")
    behavior: Tree = spec.get("behavior") or {}
    for field in ("scaleUp", "scaleDown"):
        if behavior.get(field) is not None:
            yield from _scaling_rules(behavior[field], f"spec.behavior.{field}")


def _scaling_rules(rules: Tree, path: str) -> Errors:
    window, select = rules.get("stabilizationWindowSeconds"), rules.get("selectPolicy")
    if window is not None and window < 0:
        yield invalid(f"{path}.stabilizationWindowSeconds", window, "must be greater than or equal to zero")
    if window is not None and window > MAX_STABILIZATION:
        yield invalid(f"{path}.stabilizationWindowSeconds", window, f"must be less than or equal to {MAX_STABILIZATION}")
    if select is not None and select not in SELECT_POLICIES:
        yield not_supported(f"{path}.selectPolicy", select, SELECT_POLICIES)
    policies = rules.get("policies") or ()
    if not policies:
        yield required(f"{path}.policies", "must specify at least one Policy")
    for index, policy in enumerate(policies):
        yield from _scaling_policy(policy, f"{path}.policies[{index}]")
    tolerance = rules.get("tolerance")
    if tolerance is not None and quantity.nano(tolerance) < 0:
        yield invalid(f"{path}.tolerance", tolerance, "must be greater than or equal to zero")


def _scaling_policy(policy: Tree, path: str) -> Errors:
    kind, value, period = policy.get("type") or "", policy.get("value") or 0, policy.get("periodSeconds") or 0
    if kind not in POLICY_TYPES:
        yield not_supported(f"{path}.type", kind, POLICY_TYPES)
    if value <= 0:
        yield invalid(f"{path}.value", value, "must be greater than zero")
    if period <= 0:
        yield invalid(f"{path}.periodSeconds", period, "must be greater than zero")
    if period > MAX_PERIOD:
        yield invalid(f"{path}.periodSeconds", period, f"must be less than or equal to {MAX_PERIOD}")
