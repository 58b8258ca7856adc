"""coordination.k8s.io, scheduling.k8s.io and node.k8s.io: leases, priority classes, runtime classes."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.machinery import names
from kubemini.machinery.errors import forbidden, invalid, required
from kubemini.server.kinds.core.formats import IMMUTABLE, Errors, one_of, wrong
from kubemini.server.kinds.core.pod_resources import requirements
from kubemini.server.kinds.core.pod_scheduling import tolerations

HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def lease(obj: Tree) -> Errors:
    """Check a Lease."""
    spec = obj.get("spec") or {}
    seconds = spec.get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        yield invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")
    if spec.get("leaseTransitions") is not None and spec["leaseTransitions"] < 0:
        yield invalid("spec.leaseTransitions", spec["leaseTransitions"], "must be greater than or equal to 0")
    strategy = spec.get("strategy")
    if strategy is not None:
        if "/" in strategy:
            yield from wrong(names.qualified_name, strategy, "spec.strategy")
        elif strategy != "OldestEmulationVersion":
            yield from one_of(strategy, ("OldestEmulationVersion",), "spec.strategy")
    if spec.get("preferredHolder") and not strategy:
        yield forbidden("spec.preferredHolder", "may only be specified if `strategy` is defined")


def priority_class(obj: Tree) -> Errors:
    """Check a PriorityClass."""
    name, value = obj["metadata"].get("name", ""), obj.get("value", 0)
    if name.startswith("system-"):
        if SYSTEM_CLASSES.get(name) != value or obj.get("globalDefault"):
            yield forbidden("metadata.name", "priority class names with 'system-' prefix are reserved for system use only")
    elif value > HIGHEST_USER_PRIORITY:
        yield forbidden("value", f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}")
    if obj.get("preemptionPolicy") is not None:
        yield from one_of(obj["preemptionPolicy"], ("PreemptLowerPriority", "Never"), "preemptionPolicy")


def priority_class_change(new: Tree, old: Tree) -> Errors:
    """The number stays, and so does the preemption policy."""
    if new.get("value", 0) != old.get("value", 0):
        yield forbidden("value", "may not be changed in an update.")
    if new.get("preemptionPolicy") != old.get("preemptionPolicy"):
        yield invalid("preemptionPolicy", new.get("preemptionPolicy"), IMMUTABLE)


def runtime_class(obj: Tree) -> Errors:
    """Check a RuntimeClass."""
    handler = obj.get("handler", "")
    if handler:
        yield from wrong(names.dns1123_label, handler, "handler")
    else:
        yield required("handler")
    fixed = (obj.get("overhead") or {}).get("podFixed")
    if fixed:
        yield from requirements({"limits": fixed}, "overhead.podFixed", ())
    scheduling: Tree = obj.get("scheduling") or {}
    for key, value in (scheduling.get("nodeSelector") or {}).items():
        yield from wrong(names.qualified_name, key, "scheduling.nodeSelector")
        yield from wrong(names.label_value, value, "scheduling.nodeSelector")
    yield from tolerations(scheduling.get("tolerations"), "scheduling.tolerations")


def runtime_class_change(new: Tree, old: Tree) -> Errors:
    """The handler stays."""
    if new.get("handler") != old.get("handler"):
        yield invalid("handler", new.get("handler"), IMMUTABLE)
