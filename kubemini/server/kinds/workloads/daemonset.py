"""apps/v1 DaemonSet: the strategy. Mirrors ``pkg/registry/apps/daemonset`` and ``pkg/apis/apps/{v1,validation}`` (1.36)."""

from __future__ import annotations

from typing import Final

from kubemini.api.trees import Tree
from kubemini.machinery.errors import FieldError, invalid, not_supported, required
from kubemini.machinery.labels import validate_label_selector
from kubemini.server.kinds import tables
from kubemini.server.kinds.core.formats import Errors
from kubemini.server.kinds.internal_types import Struct
from kubemini.server.kinds.workloads.rules import (
    at_most_all,
    bare_number,
    collision_count,
    counts,
    immutable,
    int_or_percent,
    is_empty_selector,
    mismatch,
)
from kubemini.server.kinds.workloads.template_strategy import TemplateStrategy, serving_template
from kubemini.server.strategy import WriteContext

TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
"""The annotation that counts changes of the pod template; only the server writes it."""

_STRATEGY: Final = Struct(Type="", RollingUpdate=Struct(MaxUnavailable=0, MaxSurge=0))
_STATUS_COUNTS = (
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
    "observedGeneration",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
    "collisionCount",
)


class DaemonSetStrategy(TemplateStrategy):
    """The rules of DaemonSets."""

    metadata_again = "before"
    table = tables.DAEMON_SET
    advises_on_name = False

    def initial_status(self, obj: Tree) -> Tree:
        """Return a status that counts nothing."""
        return {"currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0}

    def prepare_for_create(self, obj: Tree, ctx: WriteContext) -> Tree:
        """Start counting templates (a count that the user brings is kept)."""
        return _counted(obj, max(_template_generation(obj), 1))

    def prepare_for_update(self, new: Tree, old: Tree, ctx: WriteContext) -> Tree:
        """Count a changed template."""
        changed = new["spec"].get("template") != old["spec"].get("template")
        return _counted(new, _template_generation(old) + changed)

    def validate_create(self, obj: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check a new DaemonSet."""
        return list(_daemon_set_spec(obj["spec"]))

    def validate_update(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check a changed DaemonSet; the selector stays."""
        return [*_daemon_set_spec(new["spec"]), *immutable(new["spec"].get("selector"), old["spec"].get("selector"), "spec.selector")]

    def validate_status(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """Refuse negative counts."""
        status = new.get("status") or {}
        return [*counts(status, _STATUS_COUNTS, "status"), *collision_count(status, old.get("status") or {})]


def _template_generation(obj: Tree) -> int:
    text = (obj["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION) or ""
    return int(text) if text.isascii() and text.isdigit() else 0


def _counted(obj: Tree, count: int) -> Tree:
    annotations: Tree = obj["metadata"].get("annotations") or {}
    if annotations.get(TEMPLATE_GENERATION) == str(count):
        return obj
    return {**obj, "metadata": {**obj["metadata"], "annotations": {**annotations, TEMPLATE_GENERATION: str(count)}}}


def _daemon_set_spec(spec: Tree) -> Errors:
    selector: Tree | None = spec.get("selector")
    template: Tree = spec.get("template") or {}
    yield from validate_label_selector(selector, "spec.selector")
    yield from mismatch(selector, template, "spec.template")
    if selector is not None and is_empty_selector(selector):
        yield invalid("spec.selector", selector, "empty selector is invalid for daemonset")
    yield from serving_template(template, "spec.template", "DaemonSet")
    yield from counts(spec, ("minReadySeconds",), "spec")
    yield from _update_strategy(spec.get("updateStrategy") or {}, "spec.updateStrategy")
    yield from counts(spec, ("revisionHistoryLimit",), "spec")


def _update_strategy(strategy: Tree, path: str) -> Errors:
    kind = strategy.get("type") or ""
    if kind == "RollingUpdate":
        rolling = strategy.get("rollingUpdate")
        if rolling is None:
            yield required(f"{path}.rollingUpdate")
        else:
            yield from _rolling_update(rolling, f"{path}.rollingUpdate")
    elif kind != "OnDelete":
        yield not_supported(path, _STRATEGY.shown(strategy), ("RollingUpdate", "OnDelete"))


def _rolling_update(rolling: Tree, path: str) -> Errors:
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    for check in (int_or_percent, at_most_all):
        yield from check(unavailable, f"{path}.maxUnavailable")
        yield from check(surge, f"{path}.maxSurge")
    if bare_number(unavailable) and bare_number(surge):
        yield invalid(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero")
    elif not bare_number(unavailable) and not bare_number(surge):
        yield required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")
