"""ClusterQueues, Cohorts and ResourceFlavors. Mirrors ``pkg/webhooks``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.controllers.kueue.finalizers import with_finalizer
from kubemini.machinery import names as rules
from kubemini.machinery.errors import FieldError, duplicate, invalid, not_supported
from kubemini.machinery.labels import validate_label_selector, validate_labels
from kubemini.machinery.quantity import canonical, compare, nano
from kubemini.runtime.gates import FeatureGates
from kubemini.runtime.webhooks import Denied, Webhook, WebhookRequest

NEGATIVE = "must be greater than or equal to 0"
MOST_FLAVORS = MOST_RESOURCES = 256
MOST_PAIRS = 512
_QUANTITIES = ("nominalQuota", "borrowingLimit", "lendingLimit")


def _refuse(errors: list[FieldError]) -> None:
    if errors:
        raise Denied.fields(errors)


def _keep(request: WebhookRequest) -> Tree | None:
    """Add the finalizer that keeps an object while it is used."""
    obj = request.obj
    if obj is None:
        return None
    kept = with_finalizer(obj, names.RESOURCE_IN_USE)
    if "spec" not in kept:
        kept = {**kept, "spec": {}}
    groups = kept["spec"].get("resourceGroups")
    if groups:
        kept = {**kept, "spec": {**kept["spec"], "resourceGroups": [_written(group or {}) for group in groups]}}
    return None if kept is obj or kept == obj else kept


def _written(group: Tree) -> Tree:
    """Return a resource group as Go writes it again: quantities are text in their canonical form."""
    flavors = [each or {} for each in group.get("flavors") or ()]
    return {**group, "flavors": [{**each, "resources": [_quota(quota or {}) for quota in each.get("resources") or ()]} for each in flavors]}


def _quota(quota: Tree) -> Tree:
    return {key: canonical(value) if key in _QUANTITIES and value is not None else value for key, value in quota.items()}


# ---------------------------------------------------------------------------------------------- groups


def resource_groups(groups: list[Tree], path: str, *, owner: str, lending_within: bool) -> Iterator[FieldError]:
    """Yield what is wrong with resource groups. `owner` is the cohort or parent ("" = none), `lending_within` whether lending may not exceed nominal."""
    seen_resources: set[str] = set()
    seen_flavors: set[str] = set()
    for number, group in enumerate(groups):
        here = f"{path}[{number}]"
        for position, resource in enumerate(group.get("coveredResources") or ()):
            at = f"{here}.coveredResources[{position}]"
            yield from rules.errors(at, resource, rules.qualified_name(resource))
            if resource in seen_resources:
                yield duplicate(at, resource)
            seen_resources.add(resource)
        for position, flavor in enumerate(group.get("flavors") or ()):
            at = f"{here}.flavors[{position}]"
            yield from _flavor_quotas(flavor, group.get("coveredResources") or [], at, owner, lending_within)
            if flavor["name"] in seen_flavors:
                yield duplicate(f"{at}.name", flavor["name"])
            seen_flavors.add(flavor["name"])


def _totals(groups: list[Tree], path: str) -> Iterator[FieldError]:
    """Yield what is too much in all groups of a ClusterQueue together."""
    flavors = sum(len(group.get("flavors") or ()) for group in groups)
    if flavors > MOST_FLAVORS:
        yield invalid(path, flavors, f"total number of flavors across all resourceGroups must be ≤ {MOST_FLAVORS}, got {flavors}")
    covered = sum(len(group.get("coveredResources") or ()) for group in groups)
    if covered > MOST_RESOURCES:
        yield invalid(path, covered, f"total number of covered resources across all resourceGroups must be ≤ {MOST_RESOURCES}, got {covered}")
    for number, group in enumerate(groups):
        pairs = sum(len(flavor.get("resources") or ()) for flavor in group.get("flavors") or ())
        if pairs > MOST_PAIRS:
            yield invalid(
                f"{path}[{number}]", pairs, f"number of flavor-resource combinations in a resourceGroup must be ≤ {MOST_PAIRS}, got {pairs}"
            )


def _flavor_quotas(flavor: Tree, covered: list[str], path: str, owner: str, lending_within: bool) -> Iterator[FieldError]:
    empty = "must be nil when cohort is empty" if lending_within else "must be nil when parent is empty"
    for position, (quota, name) in enumerate(zip(flavor.get("resources") or (), covered, strict=False)):
        at = f"{path}.resources[{position}]"
        if quota["name"] != name:
            yield invalid(f"{at}.name", quota["name"], "must match the name in coveredResources")
        yield from _not_negative(quota["nominalQuota"], f"{at}.nominalQuota")
        borrowing, lending = quota.get("borrowingLimit"), quota.get("lendingLimit")
        if borrowing is not None:
            if not owner:
                yield invalid(f"{at}.borrowingLimit", canonical(borrowing), empty)
            yield from _not_negative(borrowing, f"{at}.borrowingLimit")
        if lending is not None:
            yield from _not_negative(lending, f"{at}.lendingLimit")
            if not owner:
                yield invalid(f"{at}.lendingLimit", canonical(lending), empty)
            if lending_within and compare(lending, quota["nominalQuota"]) > 0:
                yield invalid(f"{at}.lendingLimit", canonical(lending), "must be less than or equal to the nominalQuota")


def _not_negative(value: Any, path: str) -> Iterator[FieldError]:
    if nano(value) < 0:
        yield invalid(path, canonical(value), NEGATIVE)


def _fair_sharing(spec: Tree, path: str = "spec.fairSharing") -> Iterator[FieldError]:
    weight = (spec.get("fairSharing") or {}).get("weight")
    if weight is None:
        return
    yield from _not_negative(weight, path)
    if 0 < nano(weight) <= 1:
        yield invalid(path, canonical(weight), "When not 0, weight must be > 10e-9")


# ---------------------------------------------------------------------------------------------- kinds


def cluster_queue_errors(new: Tree, old: Tree | None, gates: FeatureGates) -> list[FieldError]:
    """Return what is wrong with a ClusterQueue."""
    spec = new["spec"]
    groups = spec.get("resourceGroups") or []
    found = list(resource_groups(groups, "spec.resourceGroups", owner=spec.get("cohortName", ""), lending_within=True))
    found += validate_label_selector(spec.get("namespaceSelector"), "spec.namespaceSelector")
    found += _fair_sharing(spec)
    found += _totals(groups, "spec.resourceGroups")
    found += _checks(spec, {} if old is None or gates.enabled("RejectUpdatesToCQWithInvalidOnFlavors") else old["spec"])
    if old is not None and old["spec"].get("concurrentAdmissionPolicy") != spec.get("concurrentAdmissionPolicy"):
        found.append(invalid("spec.concurrentAdmissionPolicy", spec.get("concurrentAdmissionPolicy"), "field is immutable"))
    return found


def _flavor_names(spec: Tree) -> list[str]:
    return [flavor["name"] for group in spec.get("resourceGroups") or () for flavor in group.get("flavors") or ()]


def _on_flavors(spec: Tree) -> dict[str, list[str]]:
    return {check["name"]: sorted(check.get("onFlavors") or ()) for check in (spec.get("admissionChecksStrategy") or {}).get("admissionChecks") or ()}


def _checks(spec: Tree, old: Tree) -> Iterator[FieldError]:
    """Yield flavors of checks that the queue lacks; what was so before passes while the flavors stay the same."""
    known = _flavor_names(spec)
    before = _on_flavors(old) if sorted(_flavor_names(old)) == sorted(known) else {}
    for position, check in enumerate((spec.get("admissionChecksStrategy") or {}).get("admissionChecks") or ()):
        if before.get(check["name"]) == sorted(check.get("onFlavors") or ()):
            continue
        for number, flavor in enumerate(check.get("onFlavors") or ()):
            if flavor not in known:
                yield not_supported(f"spec.admissionChecksStrategy.admissionChecks[{position}].onFlavors[{number}]", flavor, known)


def cohort_errors(new: Tree) -> list[FieldError]:
    """Return what is wrong with a Cohort."""
    spec = new.get("spec") or {}
    found = list(_fair_sharing(spec))
    return found + list(
        resource_groups(spec.get("resourceGroups") or [], "spec.resourceGroups", owner=spec.get("parentName", ""), lending_within=False)
    )


def flavor_errors(new: Tree) -> list[FieldError]:
    """Return what is wrong with a ResourceFlavor."""
    spec = new.get("spec") or {}
    found = validate_labels(spec.get("nodeLabels"), "spec.nodeLabels")
    seen: set[tuple[str, str]] = set()
    for position, taint in enumerate(spec.get("nodeTaints") or ()):
        at = f"spec.nodeTaints[{position}]"
        found += rules.errors(f"{at}.key", taint.get("key", ""), rules.qualified_name(taint.get("key", "")))
        problem = rules.label_value(taint.get("value", ""))
        if problem:
            found.append(invalid(f"{at}.value", taint["value"], problem.replace("\n", ";")))
        pair = (taint.get("key", ""), taint.get("effect", ""))
        if pair in seen:
            body = duplicate(at, taint)
            found.append(FieldError(body.reason, body.field, f"{body.body}: taints must be unique by key and effect pair"))
        seen.add(pair)
    for position, toleration in enumerate(spec.get("tolerations") or ()):
        if toleration.get("key"):
            found += rules.errors(f"spec.tolerations[{position}].key", toleration["key"], rules.qualified_name(toleration["key"]))
    return found


def _validated(check: Any) -> Any:
    def validate(request: WebhookRequest) -> None:
        if request.obj is not None and "deletionTimestamp" not in request.obj["metadata"]:
            _refuse(check(request.obj, request.old, request.gates))

    return validate


def webhooks() -> list[Webhook]:
    """Return the webhooks of these kinds."""
    return [
        Webhook("mclusterqueue.kb.io", ("clusterqueues.kueue.x-k8s.io",), ("CREATE",), mutate=_keep),
        Webhook("vclusterqueue.kb.io", ("clusterqueues.kueue.x-k8s.io",), validate=_validated(cluster_queue_errors)),
        Webhook("vcohort.kb.io", ("cohorts.kueue.x-k8s.io",), validate=_validated(lambda new, old, gates: cohort_errors(new))),
        Webhook("mresourceflavor.kb.io", ("resourceflavors.kueue.x-k8s.io",), ("CREATE",), mutate=_keep),
        Webhook("vresourceflavor.kb.io", ("resourceflavors.kueue.x-k8s.io",), validate=_validated(lambda new, old, gates: flavor_errors(new))),
    ]
