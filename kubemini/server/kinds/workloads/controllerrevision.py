"""apps/v1 ControllerRevision and v1 PodTemplate: the strategies. Mirrors ``pkg/registry/{apps/controllerrevision,core/podtemplate}`` (1.36)."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.machinery.errors import FieldError, required
from kubemini.server.kinds import tables
from kubemini.server.kinds.core.formats import Errors, at_least_zero
from kubemini.server.kinds.core.pod_spec_validation import validate_pod_template
from kubemini.server.kinds.workloads.rules import immutable
from kubemini.server.kinds.workloads.template_strategy import TemplateStrategy
from kubemini.server.strategy import Strategy, WriteContext


class ControllerRevisionStrategy(Strategy):
    """The rules of ControllerRevisions: the data is written once, the number may move (a rollback raises it)."""

    table = tables.CONTROLLER_REVISION

    def validate_create(self, obj: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check a new revision."""
        return list(_revision(obj))

    def validate_update(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check a changed revision; the data stays."""
        return [*at_least_zero(new.get("revision"), "revision"), *immutable(new.get("data"), old.get("data"), "data")]


def _revision(obj: Tree) -> Errors:
    yield from at_least_zero(obj.get("revision"), "revision")
    data = obj.get("data")
    if data is None:
        yield required("data", "data is mandatory")
    elif not isinstance(data, dict):
        yield required("data", "data must be a valid JSON object")


class PodTemplateStrategy(TemplateStrategy):
    """The rules of PodTemplates."""

    table = tables.POD_TEMPLATE
    has_status = False
    template_path = ("template",)
    advises_on_name = False

    def validate_create(self, obj: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check the template."""
        return list(validate_pod_template(obj.get("template") or {}, "template"))

    def spec_changed(self, new: Tree, old: Tree) -> bool:
        """Tell whether the generation goes up: with the template."""
        return new.get("template") != old.get("template")
