"""Workloads. Mirrors ``pkg/webhooks/workload_webhook.go``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.controllers.kueue import conditions
from kubemini.controllers.kueue.amounts import amount
from kubemini.controllers.kueue.webhooks.gates import gate_errors
from kubemini.controllers.kueue.workloads import pod_sets_of
from kubemini.controllers.kueue.writing import round_tripped
from kubemini.machinery import names as rules
from kubemini.machinery.errors import FieldError, forbidden, invalid, not_found, required
from kubemini.machinery.labels import validate_labels
from kubemini.machinery.memo import IdentityMemo
from kubemini.machinery.quantity import nano
from kubemini.runtime.gates import FeatureGates
from kubemini.runtime.webhooks import Denied, Webhook, WebhookRequest

RESERVED_RESOURCE = "pods"
IMMUTABLE = "field is immutable"


def _default(request: WebhookRequest) -> Tree | None:
    """Name the only pod set, and drop a minimum that changes nothing."""
    obj = request.obj
    if obj is None:
        return None
    pod_sets = pod_sets_of(obj)
    if len(pod_sets) == 1 and not pod_sets[0].get("name"):
        return {**obj, "spec": {**obj["spec"], "podSets": [{**pod_sets[0], "name": names.DEFAULT_POD_SET}]}}
    return None


def workload_errors(new: Tree, old: Tree | None, gates: FeatureGates) -> list[FieldError]:
    """Return what is wrong with a Workload."""
    found = _pod_sets(new, gates)
    found += list(_status(new, old))
    if gates.enabled("AdmissionGatedBy"):
        found += gate_errors(new, old)
    if old is not None:
        found += list(_update(new, old, gates))
    return found


_SOUND: IdentityMemo[tuple[bool, bool]] = IdentityMemo()
"""Pod sets that were found good: of Workloads for elastic jobs or not, with or without slices looked at."""


def _pod_sets(new: Tree, gates: FeatureGates) -> list[FieldError]:
    pod_sets = pod_sets_of(new)
    how = ((new["metadata"].get("annotations") or {}).get(names.ELASTIC_JOB) == "true", gates.enabled("TASValidateWorkloadSliceSize"))
    if _SOUND.get(pod_sets) == how:
        return []
    found = list(_spec(new, gates))
    if pod_sets and not found:
        _SOUND.put(pod_sets, how)
    return found


def _spec(new: Tree, gates: FeatureGates) -> Iterator[FieldError]:
    pod_sets = pod_sets_of(new)
    elastic = (new["metadata"].get("annotations") or {}).get(names.ELASTIC_JOB) == "true"
    variable = 0
    for number, pod_set in enumerate(pod_sets):
        path = f"spec.podSets[{number}]"
        variable += 1 if pod_set.get("minCount") is not None else 0
        if elastic and pod_set.get("minCount") is not None:
            yield forbidden(f"{path}.minCount", "cannot be used with elastic jobs")
        template = pod_set["template"]
        for field in ("initContainers", "containers"):
            for position, container in enumerate(template["spec"].get(field) or ()):
                resources: Any = container.get("resources") or {}
                for kind in ("requests", "limits"):
                    at = f"{path}.template.spec.{field}[{position}].resources.{kind}"
                    for name, value in (resources.get(kind) or {}).items():
                        if name == RESERVED_RESOURCE:
                            yield invalid(f"{at}[{name}]", name, "the key is reserved for internal kueue use")
                        if kind == "requests" and nano(value) < 0:
                            yield invalid(f"{at}[{name}]", str(value), "must be greater than or equal to 0")
        meta = template.get("metadata") or {}
        yield from validate_labels(meta.get("labels"), f"{path}.template.metadata.labels")
        yield from _annotations(meta.get("annotations"), f"{path}.template.metadata.annotations")
        if gates.enabled("TASValidateWorkloadSliceSize"):
            yield from _slices(pod_set.get("topologyRequest") or {}, f"{path}.topologyRequest")
    if variable > 1:
        yield invalid("spec.podSets", variable, "at most one podSet can use minCount")


def _annotations(annotations: dict[str, str] | None, path: str) -> Iterator[FieldError]:
    for key in annotations or {}:
        yield from rules.errors(path, key, rules.qualified_name(key.lower()))


def _slices(request: Tree, path: str) -> Iterator[FieldError]:
    level, size = request.get("podSetSliceRequiredTopology"), request.get("podSetSliceSize")
    if level is not None and size is None:
        yield required(f"{path}.podSetSliceSize", "must be set when podSetSliceRequiredTopology is specified")
    if size is not None and level is None:
        yield forbidden(f"{path}.podSetSliceSize", "may not be set when podSetSliceRequiredTopology is not specified")
    if size is not None and size <= 0:
        yield invalid(f"{path}.podSetSliceSize", size, "must be greater than 0")


def _status(new: Tree, old: Tree | None) -> Iterator[FieldError]:
    status = new.get("status") or {}
    if not status:
        return
    pod_sets = {each["name"]: each for each in pod_sets_of(new)}
    admission = status.get("admission")
    reserved = conditions.reserved(new)
    if reserved and admission is None and not (old is not None and conditions.reserved(old)):
        yield invalid("status.admission", None, "must be set while the QuotaReserved condition is true")
    if admission is not None:
        for number, each in enumerate(admission.get("podSetAssignments") or ()):
            path = f"status.admission.podSetAssignments[{number}]"
            if each["name"] not in pod_sets:
                yield not_found(f"{path}.name", each["name"])
            count = each.get("count", 0)
            for resource, value in _used(each).items():
                if count > 0 and amount(resource, value) % count:
                    yield invalid(f"{path}.resourceUsage[{resource}]", str(value), f"is not a multiple of {count}")
    for number, check in enumerate(status.get("admissionChecks") or ()):
        yield from _updates(check, pod_sets, f"status.admissionChecks[{number}].podSetUpdates")
    for number, each in enumerate(status.get("reclaimablePods") or ()):
        at = f"status.reclaimablePods[{number}]"
        pod_set = pod_sets.get(each["name"])
        if pod_set is None:
            yield FieldError(
                "FieldValueNotSupported", f"{at}.name", f'Unsupported value: "{each["name"]}": supported values: {", ".join(sorted(pod_sets))}'
            )
        elif each["count"] > pod_set["count"]:
            yield invalid(f"{at}.count", each["count"], f"should be less or equal to {pod_set['count']}")


def _used(assignment: Tree) -> dict[str, str]:
    found: dict[str, str] = assignment.get("resourceUsage") or {}
    return found


def _updates(check: Tree, pod_sets: dict[str, Tree], path: str) -> Iterator[FieldError]:
    for number, update in enumerate(check.get("podSetUpdates") or ()):
        at = f"{path}[{number}]"
        if update["name"] not in pod_sets:
            yield not_found(f"{at}.name", update["name"])
        yield from validate_labels(update.get("labels"), f"{at}.labels")
        yield from _annotations(update.get("annotations"), f"{at}.annotations")
        yield from validate_labels(update.get("nodeSelector"), f"{at}.nodeSelector")
        for position, toleration in enumerate(update.get("tolerations") or ()):
            if toleration.get("key"):
                yield from rules.errors(f"{at}.tolerations[{position}].key", toleration["key"], rules.qualified_name(toleration["key"]))


def _update(new: Tree, old: Tree, gates: FeatureGates) -> Iterator[FieldError]:
    held = conditions.reserved(old)
    if held and conditions.reserved(new) and _typed(new) != _typed(old) and not _scaled_down(new, old, gates):
        yield invalid("spec.podSets", "…", IMMUTABLE)
    before, after = (old.get("status") or {}).get("admission"), (new.get("status") or {}).get("admission")
    if before is not None and after is not None and _fixed(before) != _fixed(after):
        yield invalid("status.admission", "…", IMMUTABLE)
    if held and conditions.reserved(new):
        counts = {each["name"]: each["count"] for each in (new.get("status") or {}).get("reclaimablePods") or ()}
        for each in (old.get("status") or {}).get("reclaimablePods") or ():
            if each["name"] not in counts:
                yield required(f"status.reclaimablePods[{each['name']}]", "cannot be removed")
            elif counts[each["name"]] < each["count"]:
                yield invalid(f"status.reclaimablePods[{each['name']}].count", counts[each["name"]], f"cannot be less then {each['count']}")
    known = {check["name"]: check for check in (old.get("status") or {}).get("admissionChecks") or ()}
    for number, check in enumerate((new.get("status") or {}).get("admissionChecks") or ()):
        was = known.get(check["name"])
        if was is not None and was["state"] == check["state"] == "Ready" and was.get("podSetUpdates") != check.get("podSetUpdates"):
            yield invalid(f"status.admissionChecks[{number}].podSetUpdates", "…", IMMUTABLE)
    name = (new.get("status") or {}).get("clusterName")
    nominated = (old.get("status") or {}).get("nominatedClusterNames")
    if name and nominated is not None and not (old.get("status") or {}).get("clusterName") and name not in nominated:
        yield invalid("status.clusterName", name, "when setting clusterName it must be one of the nominatedClusterNames")


def _typed(workload: Tree) -> Any:
    """Return the pod sets as a typed client sees them: no metadata of a template is the same as empty metadata."""
    return round_tripped(workload)["spec"].get("podSets")


def _scaled_down(new: Tree, old: Tree, gates: FeatureGates) -> bool:
    if not gates.enabled("ElasticJobsViaWorkloadSlices") or (new["metadata"].get("annotations") or {}).get(names.ELASTIC_JOB) != "true":
        return False
    a, b = new["spec"]["podSets"], old["spec"]["podSets"]
    return len(a) == len(b) and all({**x, "count": 0} == {**y, "count": 0} and x["count"] <= y["count"] for x, y in zip(a, b, strict=True))


def _fixed(admission: Tree) -> Tree:
    """Return an admission without the parts that may change: topology, and usage of scaled-down slices."""
    changing = ("topologyAssignment", "delayedTopologyRequest")
    return {
        **admission,
        "podSetAssignments": [{k: v for k, v in each.items() if k not in changing} for each in admission.get("podSetAssignments") or ()],
    }


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
        Webhook("mworkload.kb.io", ("workloads.kueue.x-k8s.io",), ("CREATE",), mutate=_default),
        Webhook("vworkload.kb.io", ("workloads.kueue.x-k8s.io",), subresources=("", "status"), validate=_validate),
    ]
