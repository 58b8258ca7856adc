"""Workloads. Mirrors ``pkg/webhooks/workload_webhook.go``."""

from __future__ import annotations

from collections.abc import Iterator

from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.controllers.kueue import conditions
from kubemini.controllers.kueue.amounts import amount
from kubemini.controllers.kueue.webhooks.gates import gate_errors
from kubemini.controllers.kueue.webhooks.numbers import read_int
from kubemini.controllers.kueue.workloads import pod_sets_of, shrunk_pod_sets
from kubemini.controllers.kueue.writing import round_tripped
from kubemini.machinery import names as rules
from kubemini.machinery.errors import FieldError, forbidden, invalid, not_found, not_supported, required
from kubemini.machinery.labels import validate_labels
from kubemini.machinery.memo import IdentityMemo
from kubemini.machinery.metadata import validate_annotations
from kubemini.machinery.quantity import canonical, nano
from kubemini.machinery.schema.go_order import POD_TEMPLATE, in_order
from kubemini.runtime.gates import FeatureGates
from kubemini.runtime.webhooks import Denied, Webhook, WebhookRequest

RESERVED_RESOURCE = "pods"
IMMUTABLE = "field is immutable"


def _default(request: WebhookRequest) -> Tree | None:
    """Drop minimal counts where partial admission is switched off."""
    obj = request.obj
    if obj is None or request.gates.enabled("PartialAdmission"):
        return None
    pod_sets = pod_sets_of(obj)
    if not any("minCount" in each for each in pod_sets):
        return None
    whole = [{key: value for key, value in each.items() if key != "minCount"} for each in pod_sets]
    return {**obj, "spec": {**obj["spec"], "podSets": whole}}


def workload_errors(new: Tree, old: Tree | None, gates: FeatureGates) -> list[FieldError]:
    """Return what is wrong with a Workload."""
    found = _pod_sets(new, gates)
    found += list(_status(new, old, gates))
    if gates.enabled("AdmissionGatedBy"):
        found += gate_errors(new, old)
    if gates.enabled("PriorityBoost"):
        found += list(_boost(new))
    if old is not None:
        found += list(_update(new, old, gates))
    return found


_SOUND: IdentityMemo[tuple[bool, ...]] = IdentityMemo()
"""Pod sets that were found good, with what the answer depends on besides."""
_ASKED = ("TASValidateWorkloadSliceSize", "WorkloadValidationForPodSetMetadata", "WorkloadValidateResourcesAreNonNegative")


def _elastic(workload: Tree, gates: FeatureGates) -> bool:
    marked = (workload["metadata"].get("annotations") or {}).get(names.ELASTIC_JOB) == "true"
    return marked and gates.enabled("ElasticJobsViaWorkloadSlices")


def _pod_sets(new: Tree, gates: FeatureGates) -> list[FieldError]:
    pod_sets = pod_sets_of(new)
    how = (_elastic(new, gates), *(gates.enabled(each) for each in _ASKED))
    if _SOUND.get(pod_sets) == how:
        return []
    found = list(_spec(new, gates))
    if pod_sets and not found:
        _SOUND.put(pod_sets, how)
    return found


def _spec(new: Tree, gates: FeatureGates) -> Iterator[FieldError]:
    pod_sets = pod_sets_of(new)
    for number, pod_set in enumerate(pod_sets):
        yield from _pod_set(pod_set, f"spec.podSets[{number}]", gates)
    variable = sum(each.get("minCount") is not None for each in pod_sets)
    if variable > 1:
        yield invalid("spec.podSets", variable, "at most one podSet can use minCount")
    if variable and _elastic(new, gates):
        yield invalid("spec.podSets", variable, "partial admission and elastic job cannot be used together")


def _pod_set(pod_set: Tree, path: str, gates: FeatureGates) -> Iterator[FieldError]:
    template = pod_set["template"]
    if gates.enabled("WorkloadValidationForPodSetMetadata"):
        meta = template.get("metadata") or {}
        yield from validate_labels(meta.get("labels"), f"{path}.template.metadata.labels")
        yield from validate_annotations(meta.get("annotations"), f"{path}.template.metadata.annotations")
    spec = template.get("spec") or {}
    signed = gates.enabled("WorkloadValidateResourcesAreNonNegative")
    for field in ("initContainers", "containers"):
        for position, container in enumerate(spec.get(field) or ()):
            yield from _resources(container.get("resources"), f"{path}.template.spec.{field}[{position}].resources", signed)
    yield from _resources(spec.get("resources"), f"{path}.template.spec.resources", signed)
    if gates.enabled("TASValidateWorkloadSliceSize"):
        yield from _slices(pod_set.get("topologyRequest") or {}, f"{path}.topologyRequest")


def _resources(resources: Tree | None, path: str, signed: bool) -> Iterator[FieldError]:
    for kind in ("requests", "limits"):
        for name, value in ((resources or {}).get(kind) or {}).items():
            at = f"{path}.{kind}[{name}]"
            if name == RESERVED_RESOURCE:
                yield invalid(at, name, "the key is reserved for internal kueue use")
            if signed and nano(value) < 0:
                yield invalid(at, canonical(value), "must be greater than or equal to 0")


def _slices(request: Tree, path: str) -> Iterator[FieldError]:
    level, size = request.get("podSetSliceRequiredTopology"), request.get("podSetSliceSize")
    if level is not None and size is None:
        yield required(f"{path}.podSetSliceSize", "must be set when podSetSliceRequiredTopology is specified")
    if level is not None and size is not None and size <= 0:
        yield invalid(f"{path}.podSetSliceSize", size, "must be greater than 0")
    if size is not None and level is None:
        yield forbidden(f"{path}.podSetSliceSize", "may not be set when podSetSliceRequiredTopology is not specified")
    layers: list[Tree] = request.get("podsetSliceRequiredTopologyConstraints") or []
    for number, layer in enumerate(layers):
        if layer.get("size", 0) <= 0:
            yield invalid(f"{path}.podsetSliceRequiredTopologyConstraints[{number}].size", layer.get("size", 0), "must be greater than 0")


def _boost(new: Tree) -> Iterator[FieldError]:
    value = (new["metadata"].get("annotations") or {}).get(names.PRIORITY_BOOST)
    at = f"metadata.annotations[{names.PRIORITY_BOOST}]"
    if value == "":
        yield invalid(at, value, 'must be a valid signed integer; use "0" explicitly, empty string is not allowed')
    elif value is not None and read_int(value, bits=32) is None:
        yield invalid(at, value, "must be a valid signed integer")


# ---------------------------------------------------------------------------------------------- status


def _status(new: Tree, old: Tree | None, gates: FeatureGates) -> Iterator[FieldError]:
    status = new.get("status") or {}
    if not status:
        return
    pod_sets = {each["name"]: each for each in pod_sets_of(new)}
    if conditions.reserved(new):
        yield from _admission(status.get("admission"), pod_sets, old)
    yield from _reclaimable(new, old, gates)
    for number, check in enumerate(status.get("admissionChecks") or ()):
        yield from _updates(check, pod_sets, f"status.admissionChecks[{number}].podSetUpdates")


def _admission(admission: Tree | None, pod_sets: dict[str, Tree], old: Tree | None) -> Iterator[FieldError]:
    if admission is None:
        if not (old is not None and conditions.reserved(old) and not (old.get("status") or {}).get("admission")):
            yield required("status.admission", "must be set while the QuotaReserved condition is true")
        return
    assignments: list[Tree] = admission.get("podSetAssignments") or []
    for number, each in enumerate(assignments):
        path = f"status.admission.podSetAssignments[{number}]"
        if each["name"] not in pod_sets:
            yield not_found(f"{path}.name", each["name"])
        count = each.get("count") or 0
        used: dict[str, str] = each.get("resourceUsage") or {}
        for resource, value in used.items():
            if count > 0 and amount(resource, value) % count:
                yield invalid(f"{path}.resourceUsage[{resource}]", canonical(value), f"is not a multiple of {count}")


def _reclaimed(workload: Tree) -> dict[str, int]:
    return {each["name"]: each.get("count", 0) for each in (workload.get("status") or {}).get("reclaimablePods") or ()}


def _reclaimable(new: Tree, old: Tree | None, gates: FeatureGates) -> Iterator[FieldError]:
    """More pods than there are may stand there where an elastic job has shrunk since, until it is said anew."""
    sizes = {each["name"]: each.get("count", 0) for each in pod_sets_of(new)}
    before: dict[str, int] = _reclaimed(old) if old is not None and _elastic(new, gates) else {}
    for name, count in _reclaimed(new).items():
        at = f"status.reclaimablePods[{name}]"
        if name not in sizes:
            yield not_supported(f"{at}.name", name, list(sizes))
        elif count > sizes[name] and before.get(name) != count:
            yield invalid(f"{at}.count", count, f"should be less or equal to {sizes[name]}")


def _updates(check: Tree, pod_sets: dict[str, Tree], path: str) -> Iterator[FieldError]:
    for number, update in enumerate(check.get("podSetUpdates") or ()):
        at = f"{path}[{number}]"
        if update["name"] not in pod_sets:
            yield not_supported(f"{at}.name", update["name"], sorted(pod_sets))
        for position, toleration in enumerate(update.get("tolerations") or ()):
            if toleration.get("key"):
                yield from rules.errors(f"{at}.tolerations[{position}].key", toleration["key"], rules.qualified_name(toleration["key"]))
        yield from validate_annotations(update.get("annotations"), f"{at}.annotations")
        yield from validate_labels(update.get("nodeSelector"), f"{at}.nodeSelector")
        yield from validate_labels(update.get("labels"), f"{at}.labels")


# ---------------------------------------------------------------------------------------------- updates


def _update(new: Tree, old: Tree, gates: FeatureGates) -> Iterator[FieldError]:
    held = conditions.reserved(old)
    if held:
        yield from _same_pod_sets(new, old, gates)
    if held and conditions.reserved(new):
        yield from _only_more_reclaimed(new, old, gates)
    status, was = new.get("status") or {}, old.get("status") or {}
    before, after = was.get("admission"), status.get("admission")
    if before is not None and after is not None and before is not after and _fixed(before, gates) != _fixed(after, gates):
        yield invalid("status.admission", after, IMMUTABLE)
    checks = {check["name"]: check for check in status.get("admissionChecks") or ()}
    for number, check in enumerate(was.get("admissionChecks") or ()):
        now = checks.get(check["name"])
        if now is not None and now["state"] == check["state"] == "Ready" and now.get("podSetUpdates") != check.get("podSetUpdates"):
            yield invalid(f"status.admissionChecks[{number}].podSetUpdates", now.get("podSetUpdates"), IMMUTABLE)
    name = status.get("clusterName")
    if name and not was.get("clusterName") and not _replaces(new, gates) and name not in (was.get("nominatedClusterNames") or ()):
        yield invalid("status.clusterName", name, "when setting clusterName it must be one of the nominatedClusterNames")


def _replaces(workload: Tree, gates: FeatureGates) -> bool:
    """Tell whether a Workload is the next slice of an elastic job: it goes where the slice before it runs."""
    annotated = names.WORKLOAD_SLICE_REPLACEMENT_FOR in (workload["metadata"].get("annotations") or {})
    return annotated and gates.enabled("ElasticJobsViaWorkloadSlices")


def _same_pod_sets(new: Tree, old: Tree, gates: FeatureGates) -> Iterator[FieldError]:
    """Pod sets stay while quota is held, but with elastic jobs they may shrink."""
    after, before = pod_sets_of(new), pod_sets_of(old)
    if after is before:
        return
    after, before = pod_sets_of(round_tripped(new)), pod_sets_of(round_tripped(old))
    if len(after) != len(before):
        yield invalid("spec.podSets", [_printed(each) for each in after], IMMUTABLE)
        return
    may_shrink = gates.enabled("ElasticJobsViaWorkloadSlices")
    for number, (now, was) in enumerate(zip(after, before, strict=True)):
        shown = {**now, "count": was["count"]} if may_shrink and now["count"] < was["count"] else now
        if shown != was:
            yield invalid(f"spec.podSets.{number}", _printed(shown), IMMUTABLE)


def _printed(pod_set: Tree) -> Tree:
    """Return a pod set with its fields in the order of Go's struct."""
    fields = ("name", "template", "count", "minCount", "topologyRequest")
    return {name: in_order(POD_TEMPLATE, pod_set[name]) if name == "template" else pod_set[name] for name in fields if name in pod_set}


def _only_more_reclaimed(new: Tree, old: Tree, gates: FeatureGates) -> Iterator[FieldError]:
    after, before = _reclaimed(new), _reclaimed(old)
    if after == before:
        return
    shrunk = shrunk_pod_sets(new) if _elastic(new, gates) else frozenset[str]()
    for name, count in after.items():
        if count < before.get(name, 0) and name not in shrunk:
            yield invalid(f"status.reclaimablePods[{name}].count", count, f"cannot be less than {before[name]}")
    for name in before:
        if name not in after and name not in shrunk:
            yield required(f"status.reclaimablePods[{name}]", "cannot be removed")


def _fixed(admission: Tree, gates: FeatureGates) -> Tree:
    """Return an admission without the parts that may change: where the topology puts the pods."""
    if not gates.enabled("TopologyAwareScheduling"):
        return admission
    changing = ("topologyAssignment", "delayedTopologyRequest")
    kept = [{key: value for key, value in each.items() if key not in changing} for each in admission.get("podSetAssignments") or ()]
    return {**admission, "podSetAssignments": kept}


def _validate(request: WebhookRequest) -> None:
    new = request.obj
    if new is None or (request.old is not None and "deletionTimestamp" in new["metadata"]):
        return
    found = workload_errors(new, request.old, request.gates)
    if found:
        raise Denied.fields(found)


def webhooks() -> list[Webhook]:
    """Return the webhooks of Workloads."""
    return [
        Webhook("mworkload.kb.io", ("workloads.kueue.x-k8s.io",), ("CREATE",), mutate=_default, decodes=False),
        Webhook("vworkload.kb.io", ("workloads.kueue.x-k8s.io",), subresources=("", "status"), validate=_validate),
    ]
