"""The rules of Nodes: taints, pod CIDRs, capacities, what is set once."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.machinery.errors import FieldError, duplicate, forbidden, invalid
from kubemini.server.kinds.core.formats import Errors, cidr
from kubemini.server.kinds.core.pod_resources import amount
from kubemini.server.kinds.core.pod_scheduling import taints
from kubemini.server.kinds.tables import NODE
from kubemini.server.strategy import Strategy, WriteContext


def _unschedulable(node: Tree) -> str:
    return "true" if (node.get("spec") or {}).get("unschedulable") else "false"


NODE_FIELDS = {"spec.unschedulable": _unschedulable}


_IDLE = {
    "configSource": "spec.configSource: the feature is removed",
    "externalID": "spec.externalID: this field is deprecated, and is unused by Kubernetes",
}
"""What is said of fields of the spec that do nothing."""


class NodeStrategy(Strategy):
    """Nodes. A node may bring its status along when it is created, as kubelets do."""

    metadata_again = "before"
    has_status = True
    table = NODE
    fields = NODE_FIELDS

    def default(self, obj: Tree, ctx: WriteContext) -> Tree:
        """Keep the two forms of the pod CIDR in step; the single one leads where they differ."""
        spec = obj.get("spec") or {}
        one, many = spec.get("podCIDR"), spec.get("podCIDRs") or []
        if one and (not many or many[0] != one):
            return {**obj, "spec": {**spec, "podCIDRs": [one]}}
        if many and not one:
            return {**obj, "spec": {**spec, "podCIDR": many[0]}}
        return obj

    def initial_status(self, obj: Tree) -> Tree | None:
        """Return the status that the node came with."""
        status: Tree | None = obj.get("status")
        return _with_allocatable(status) if status else status

    def prepare_for_status(self, new: Tree, old: Tree, ctx: WriteContext) -> Tree:
        """What is allocatable is the capacity, unless somebody says otherwise."""
        status = new.get("status")
        fresh = _with_allocatable(status) if status else status
        return new if fresh is status else {**new, "status": fresh}

    def warnings(self, new: Tree, old: Tree | None, ctx: WriteContext) -> list[str]:
        """Name fields that do nothing any more."""
        spec: Tree = new.get("spec") or {}
        return [text for key, text in _IDLE.items() if spec.get(key)]

    def validate_create(self, obj: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check taints, capacities and pod CIDRs."""
        return [*taints((obj.get("spec") or {}).get("taints"), "metadata.taints"), *_amounts(obj), *_pod_cidrs(obj)]

    def validate_update(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check the same, and what is set once."""
        if new.get("spec") is old.get("spec"):
            return []
        return [*_amounts(new), *_set_once(new, old), *taints((new.get("spec") or {}).get("taints"), "metadata.taints")]

    def validate_status(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check capacities and addresses."""
        errors = list(_amounts(new))
        seen: list[Tree] = []
        for index, address in enumerate((new.get("status") or {}).get("addresses") or ()):
            if address in seen:
                errors.append(duplicate(f"status.addresses[{index}]", address))
            seen.append(address)
        return errors


def _with_allocatable(status: Tree) -> Tree:
    if status.get("capacity") and status.get("allocatable") is None:
        return {**status, "allocatable": status["capacity"]}
    return status


def _amounts(node: Tree) -> Errors:
    status = node.get("status") or {}
    for key in ("capacity", "allocatable"):
        for name, value in (status.get(key) or {}).items():
            yield from amount(name, value, f"status.{key}.{name}")


def _pod_cidrs(node: Tree) -> Errors:
    values = (node.get("spec") or {}).get("podCIDRs") or []
    for index, value in enumerate(values):
        yield from cidr(value, f"spec.podCIDRs[{index}]")
    if len(values) > 1:
        if len(values) > 2 or len({":" in each for each in values}) == 1:
            yield invalid("spec.podCIDRs", values, "may specify no more than one CIDR for each IP family")
        for index, value in enumerate(values):
            if value in values[:index]:
                yield duplicate(f"spec.podCIDRs[{index}]", value)


def _set_once(new: Tree, old: Tree) -> Errors:
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    if before.get("podCIDRs") and spec.get("podCIDRs") != before["podCIDRs"]:
        yield forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid')
    if before.get("providerID") and spec.get("providerID") != before["providerID"]:
        yield forbidden("spec.providerID", 'node updates may not change providerID except from "" to valid')
    if spec.get("externalID") != before.get("externalID"):
        yield forbidden("spec.externalID", "may not be updated")
