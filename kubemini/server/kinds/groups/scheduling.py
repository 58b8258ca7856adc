"""coordination.k8s.io, scheduling.k8s.io and node.k8s.io: leases, priority classes, runtime classes, pod groups."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.machinery import names
from kubemini.machinery.errors import duplicate, forbidden, invalid, required
from kubemini.server.kinds.core.formats import IMMUTABLE, POSITIVE, Errors, one_of, same, wrong
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


# ------------------------------------------------------------------------------------------------------ gangs


def _policy(policy: Tree | None, path: str) -> Errors:
    """Check that a pod group has exactly one policy."""
    found = [key for key in ("basic", "gang") if (policy or {}).get(key) is not None]
    if len(found) != 1:
        shown = ", ".join(f'"{each}"' for each in found)
        if found:
            yield invalid(path, f"{{{shown}}}".replace('"', ""), "must specify exactly one of: `basic`, `gang`")
        else:
            yield invalid(path, "", "must specify one of: `basic`, `gang`")
    gang = (policy or {}).get("gang")
    if gang is not None:
        count = gang.get("minCount", 0)
        if not count:
            yield required(f"{path}.gang.minCount")
        elif count < 1:
            yield invalid(f"{path}.gang.minCount", count, POSITIVE)


def pod_group(obj: Tree) -> Errors:
    """Check a PodGroup."""
    spec = obj.get("spec") or {}
    yield from _policy(spec.get("schedulingPolicy"), "spec.schedulingPolicy")
    reference = spec.get("podGroupTemplateRef")
    if reference is not None:
        workload = reference.get("workload") or reference
        for key in ("workloadName", "podGroupTemplateName"):
            if workload.get(key):
                yield from wrong(names.dns1123_subdomain, workload[key], f"spec.podGroupTemplateRef.workload.{key}")


def pod_group_change(new: Tree, old: Tree) -> Errors:
    """A PodGroup's spec stays as it is."""
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    for key in sorted({**spec, **before}):
        if not same(spec.get(key), before.get(key)):
            yield invalid(f"spec.{key}", spec.get(key), IMMUTABLE)


def workload(obj: Tree) -> Errors:
    """Check a Workload of scheduling.k8s.io."""
    spec = obj.get("spec") or {}
    templates = spec.get("podGroupTemplates") or []
    if not templates:
        yield required("spec.podGroupTemplates")
    seen: set[str] = set()
    for index, template in enumerate(templates):
        here, name = f"spec.podGroupTemplates[{index}]", template.get("name", "")
        if name:
            yield from wrong(names.dns1123_label, name, f"{here}.name")
        else:
            yield required(f"{here}.name")
        if name in seen:
            yield duplicate(here, template)
        seen.add(name)
        yield from _policy(template.get("schedulingPolicy"), f"{here}.schedulingPolicy")


def workload_change(new: Tree, old: Tree) -> Errors:
    """The groups of a Workload stay."""
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    if not same(spec.get("podGroupTemplates"), before.get("podGroupTemplates")):
        yield invalid("spec.podGroupTemplates", spec.get("podGroupTemplates"), IMMUTABLE)
    if before.get("controllerRef") is not None and not same(spec.get("controllerRef"), before["controllerRef"]):
        yield invalid("spec.controllerRef", spec.get("controllerRef"), IMMUTABLE)
