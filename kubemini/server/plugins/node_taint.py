"""TaintNodesByCondition: a new node takes no pods before it is known to be ready."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.server.admission import Admission, AdmissionRequest

NOT_READY: Tree = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


class TaintNodesByCondition(Admission):
    """Adds the not-ready taint to new nodes."""

    name = "TaintNodesByCondition"
    operations = ("CREATE",)
    resources = ("nodes",)

    def mutate(self, request: AdmissionRequest) -> Tree | None:
        """Return the node with the taint."""
        node = request.obj or {}
        spec = node.get("spec") or {}
        taints = spec.get("taints") or []
        if any(each.get("key") == NOT_READY["key"] and each.get("effect") == NOT_READY["effect"] for each in taints):
            return None
        return {**node, "spec": {**spec, "taints": [*taints, NOT_READY]}}
