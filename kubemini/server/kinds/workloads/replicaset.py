"""apps/v1 ReplicaSet and v1 ReplicationController: the strategies.

Mirrors ``pkg/registry/{apps/replicaset,core/replicationcontroller}`` and their validation (1.36).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery.errors import FieldError, required
from kubemini.machinery.labels import validate_labels
from kubemini.server.kinds import tables
from kubemini.server.kinds.core.formats import Errors
from kubemini.server.kinds.workloads.deployment import selector_and_template
from kubemini.server.kinds.workloads.rules import NOT_MORE_THAN_REPLICAS, counts, immutable, mismatch, not_more_than, template_labels
from kubemini.server.kinds.workloads.template_strategy import TemplateStrategy, serving_template
from kubemini.server.strategy import Scale, WriteContext

_FIELDS: Mapping[str, Callable[[Tree], str]] = {"status.replicas": lambda obj: str((obj.get("status") or {}).get("replicas") or 0)}
_STATUS_COUNTS = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "terminatingReplicas", "observedGeneration")


class ReplicaSetStrategy(TemplateStrategy):
    """The rules of ReplicaSets."""

    metadata_again = "before"
    fields = _FIELDS
    table = tables.REPLICA_SET
    scale = Scale(selector="spec.selector")

    def initial_status(self, obj: Tree) -> Tree:
        """Return a status that counts nothing."""
        return {"replicas": 0}

    def validate_create(self, obj: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check a new ReplicaSet."""
        return list(_replica_set_spec(obj["spec"]))

    def validate_update(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check a changed ReplicaSet; the selector stays."""
        return [*_replica_set_spec(new["spec"]), *immutable(new["spec"].get("selector"), old["spec"].get("selector"), "spec.selector")]

    def validate_status(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check that the counts fit together."""
        return list(_replica_status(new.get("status") or {}))


def _replica_set_spec(spec: Tree) -> Errors:
    yield from counts(spec, ("replicas", "minReadySeconds"), "spec")
    yield from selector_and_template(spec, "deployment")


def _replica_status(status: Tree) -> Errors:
    yield from counts(status, _STATUS_COUNTS, "status")
    yield from not_more_than(status, ("fullyLabeledReplicas", "readyReplicas", "availableReplicas"), "replicas", NOT_MORE_THAN_REPLICAS)
    yield from not_more_than(status, ("availableReplicas",), "readyReplicas", "cannot be greater than readyReplicas")


class ReplicationControllerStrategy(TemplateStrategy):
    """The rules of ReplicationControllers: like ReplicaSets, with a plain label map as selector that may change."""

    metadata_again = "before"
    fields = _FIELDS
    table = tables.REPLICATION_CONTROLLER
    orphans_by_default = True
    scale = Scale(selector="spec.selector")

    def default(self, obj: Tree, ctx: WriteContext) -> Tree:
        """Take selector and labels from the pod template where they are not given."""
        obj = super().default(obj, ctx)
        spec: Tree = obj.get("spec") or {}
        labels = template_labels(spec.get("template") or {})
        if not labels:
            return obj
        fill: dict[str, Any] = {}
        if not spec.get("selector"):
            fill["spec"] = {**spec, "selector": labels}
        if not obj["metadata"].get("labels"):
            fill["metadata"] = {**obj["metadata"], "labels": labels}
        return {**obj, **fill} if fill else obj

    def initial_status(self, obj: Tree) -> Tree:
        """Return a status that counts nothing."""
        return {"replicas": 0}

    def validate_create(self, obj: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check a new ReplicationController."""
        return list(_replication_controller_spec(obj["spec"]))

    def validate_status(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check that the counts fit together."""
        return list(_replica_status(new.get("status") or {}))


def _replication_controller_spec(spec: Tree) -> Errors:
    yield from counts(spec, ("minReadySeconds",), "spec")
    selector: Tree = spec.get("selector") or {}
    if selector:
        yield from validate_labels(selector, "spec.selector")
    else:
        yield required("spec.selector")
    yield from counts(spec, ("replicas",), "spec")
    template = spec.get("template")
    if template is None:
        yield required("spec.template")
        return
    yield from mismatch({"matchLabels": selector}, template, "spec.template")
    yield from serving_template(template, "spec.template", "ReplicationController")
