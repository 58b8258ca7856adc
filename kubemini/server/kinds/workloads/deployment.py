"""apps/v1 Deployment: the strategy. Mirrors ``pkg/registry/apps/deployment`` and ``pkg/apis/apps/{v1,validation}`` (1.36)."""

from __future__ import annotations

from typing import Final

from kubemini.api.trees import Tree
from kubemini.machinery.errors import FieldError, forbidden, invalid, not_supported, required
from kubemini.server.kinds import tables
from kubemini.server.kinds.core.formats import Errors
from kubemini.server.kinds.internal_types import Struct
from kubemini.server.kinds.workloads.rules import (
    NOT_MORE_THAN_REPLICAS,
    at_most_all,
    bare_number,
    collision_count,
    counts,
    immutable,
    int_or_percent,
    is_empty_selector,
    is_readable,
    mismatch,
    not_more_than,
    required_selector,
)
from kubemini.server.kinds.workloads.template_strategy import TemplateStrategy, serving_template
from kubemini.server.strategy import Scale, WriteContext

_STRATEGY: Final = Struct(Type="", RollingUpdate=Struct(MaxUnavailable=0, MaxSurge=0))
_STATUS_COUNTS = (
    "observedGeneration",
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
    "terminatingReplicas",
    "collisionCount",
)


class DeploymentStrategy(TemplateStrategy):
    """The rules of Deployments."""

    table = tables.DEPLOYMENT
    scale = Scale(selector="spec.selector")

    def initial_status(self, obj: Tree) -> Tree:
        """Return the empty status."""
        return {}

    def validate_create(self, obj: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check a new Deployment."""
        return list(_deployment_spec(obj["spec"]))

    def validate_update(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check a changed Deployment; the selector stays."""
        return [*_deployment_spec(new["spec"]), *immutable(new["spec"].get("selector"), old["spec"].get("selector"), "spec.selector")]

    def validate_status(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check that the counts fit together."""
        return list(_deployment_status(new.get("status") or {}, old.get("status") or {}))

    def spec_changed(self, new: Tree, old: Tree) -> bool:
        """Tell whether the generation goes up: with the spec, and with the annotations, which the controller hands on to ReplicaSets."""
        return new.get("spec") != old.get("spec") or new["metadata"].get("annotations") != old["metadata"].get("annotations")


def _deployment_spec(spec: Tree) -> Errors:
    yield from counts(spec, ("replicas",), "spec")
    yield from selector_and_template(spec, "deployment")
    yield from _strategy(spec.get("strategy") or {}, "spec.strategy")
    yield from counts(spec, ("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"), "spec")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= (spec.get("minReadySeconds") or 0):
        yield invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def selector_and_template(spec: Tree, owner: str) -> Errors:
    """Check selector and pod template of a Deployment or ReplicaSet spec (upstream names both ``ReplicaSet`` in template errors)."""
    selector: Tree | None = spec.get("selector")
    template: Tree = spec.get("template") or {}
    yield from required_selector(selector, "spec.selector", owner, "invalid label selector")
    if not is_readable(selector):
        return
    if selector is None or not is_empty_selector(selector):
        yield from mismatch(selector, template, "spec.template")
    yield from serving_template(template, "spec.template", "ReplicaSet")


def _strategy(strategy: Tree, path: str) -> Errors:
    kind, rolling = strategy.get("type") or "", strategy.get("rollingUpdate")
    if kind == "Recreate":
        if rolling is not None:
            yield forbidden(f"{path}.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'")
    elif kind == "RollingUpdate":
        if rolling is None:
            yield required(f"{path}.rollingUpdate", "this should be defaulted and never be nil")
        else:
            yield from _rolling_update(rolling, f"{path}.rollingUpdate")
    else:
        yield not_supported(path, _STRATEGY.shown(strategy), ("Recreate", "RollingUpdate"))


def _rolling_update(rolling: Tree, path: str) -> Errors:
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    yield from int_or_percent(unavailable, f"{path}.maxUnavailable")
    yield from int_or_percent(surge, f"{path}.maxSurge")
    if bare_number(unavailable) == 0 and bare_number(surge) == 0:
        yield invalid(f"{path}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0")
    yield from at_most_all(unavailable, f"{path}.maxUnavailable")


def _deployment_status(status: Tree, before: Tree) -> Errors:
    yield from counts(status, _STATUS_COUNTS, "status")
    yield from not_more_than(status, ("updatedReplicas", "readyReplicas", "availableReplicas"), "replicas", NOT_MORE_THAN_REPLICAS)
    yield from not_more_than(status, ("availableReplicas",), "readyReplicas", "cannot be greater than readyReplicas")
    yield from collision_count(status, before)
