"""What objects count against a ResourceQuota, and which quotas they count against.

Used by admission, which refuses what would exceed a quota, and by the controller that reports what is used. Mirrors
``pkg/quota/v1`` (1.36).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from kubemini.api.trees import Tree
from kubemini.machinery import pod_requests, quantity
from kubemini.machinery.pod_requests import Amounts, qos_class

ONE: Final = quantity.NANO
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
LEGACY_COUNTS: Final = ("configmaps", "secrets", "replicationcontrollers", "resourcequotas", "services", "persistentvolumeclaims", "pods")
"""Kinds that can be counted under their bare plural."""
_CLASS = ".storageclass.storage.k8s.io/"


def usage(resource: str, obj: Tree, now: float) -> Amounts:
    """Return what an object of a storage resource (``pods``, ``jobs.batch``) counts for; `now` in Unix seconds."""
    counted = {f"count/{resource}": ONE}
    match resource:
        case "pods":
            return {**counted, **_pod(obj)} if pod_counts(obj, now) else counted
        case "services":
            return {**counted, **_service(obj)}
        case "persistentvolumeclaims":
            return {**counted, **_claim(obj)}
        case _:
            return {**counted, resource: ONE} if resource in LEGACY_COUNTS else counted


def pod_counts(pod: Tree, now: float) -> bool:
    """Tell whether a pod uses resources: it has not ended, and is not long past its deletion."""
    if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return False
    metadata = pod["metadata"]
    stamp = metadata.get("deletionTimestamp")
    return stamp is None or now <= datetime.fromisoformat(stamp).timestamp()


def _pod(pod: Tree) -> Amounts:
    spec = pod["spec"]
    requests, limits = pod_requests.of_pod(spec, "requests"), pod_requests.of_pod(spec, "limits")
    found: Amounts = {"pods": ONE}
    for name, size in requests.items():
        if name in _COMPUTE or name.startswith("hugepages-"):
            found[name] = found[f"requests.{name}"] = size
        elif "/" in name and "kubernetes.io/" not in name:
            found[f"requests.{name}"] = size
    for name, size in limits.items():
        if name in _COMPUTE:
            found[f"limits.{name}"] = size
    return found


def _service(service: Tree) -> Amounts:
    spec = service.get("spec") or {}
    kind, ports = spec.get("type"), len(spec.get("ports") or ())
    found: Amounts = {"services": ONE, "services.loadbalancers": 0, "services.nodeports": 0}
    if kind == "NodePort":
        found["services.nodeports"] = ports * ONE
    elif kind == "LoadBalancer":
        found["services.loadbalancers"] = ONE
        allocated = spec.get("allocateLoadBalancerNodePorts", True)
        found["services.nodeports"] = (ports if allocated else sum(bool(each.get("nodePort")) for each in spec.get("ports") or ())) * ONE
    return found


def _claim(claim: Tree) -> Amounts:
    spec = claim.get("spec") or {}
    size = quantity.nano(((spec.get("resources") or {}).get("requests") or {}).get("storage", "0"))
    found: Amounts = {"persistentvolumeclaims": ONE, "requests.storage": size}
    name = spec.get("storageClassName")
    if name:
        found[f"{name}{_CLASS}persistentvolumeclaims"] = ONE
        found[f"{name}{_CLASS}requests.storage"] = size
    return found


# ------------------------------------------------------------------------------------------------------ which quotas


def concerns(quota: Tree, resource: str, amounts: Mapping[str, int]) -> list[str]:
    """Return the limited resources of a quota for which an object of some usage counts."""
    hard = (quota.get("spec") or {}).get("hard") or {}
    return [name for name in hard if name in amounts]


def matches(quota: Tree, resource: str, obj: Tree) -> bool:
    """Tell whether an object lies in all scopes of a quota."""
    spec = quota.get("spec") or {}
    requirements = [{"scopeName": scope, "operator": "Exists"} for scope in spec.get("scopes") or ()]
    requirements += (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    return all(_in_scope(each, resource, obj) for each in requirements)


def _in_scope(requirement: Tree, resource: str, obj: Tree) -> bool:
    scope = requirement.get("scopeName")
    if resource == "persistentvolumeclaims":
        return scope == "VolumeAttributesClass" and _selects(requirement, (obj.get("spec") or {}).get("volumeAttributesClassName") or "")
    if resource != "pods":
        return False
    spec = obj["spec"]
    match scope:
        case "Terminating":
            return spec.get("activeDeadlineSeconds") is not None
        case "NotTerminating":
            return spec.get("activeDeadlineSeconds") is None
        case "BestEffort":
            return qos_class(spec) == "BestEffort"
        case "NotBestEffort":
            return qos_class(spec) != "BestEffort"
        case "PriorityClass":
            return _selects(requirement, spec.get("priorityClassName") or "")
        case "CrossNamespacePodAffinity":
            return _crosses(spec.get("affinity") or {})
        case _:
            return False


def _selects(requirement: Tree, value: str) -> bool:
    match requirement.get("operator"):
        case "In":
            return value in (requirement.get("values") or ())
        case "NotIn":
            return value not in (requirement.get("values") or ())
        case "Exists":
            return bool(value)
        case "DoesNotExist":
            return not value
        case _:
            return False


def _crosses(affinity: Tree) -> bool:
    for key in ("podAffinity", "podAntiAffinity"):
        tree: Any = affinity.get(key) or {}
        terms = [*(tree.get("requiredDuringSchedulingIgnoredDuringExecution") or ())]
        terms += [each.get("podAffinityTerm") or {} for each in tree.get("preferredDuringSchedulingIgnoredDuringExecution") or ()]
        if any(each.get("namespaces") or each.get("namespaceSelector") is not None for each in terms):
            return True
    return False


# ------------------------------------------------------------------------------------------------------ sums and texts


def used(quota: Tree, objects: Iterable[tuple[str, Tree]], now: float) -> Amounts:
    """Return what is used of each limited resource of a quota by objects, given with their storage resources."""
    sums: Amounts = dict.fromkeys((quota.get("spec") or {}).get("hard") or {}, 0)
    for resource, obj in objects:
        amounts = usage(resource, obj, now)
        if any(name in sums for name in amounts) and matches(quota, resource, obj):
            for name, size in amounts.items():
                if name in sums:
                    sums[name] += size
    return sums


def resources_of(quota: Tree) -> set[str]:
    """Return the storage resources that can count against a quota."""
    found: set[str] = set()
    for name in (quota.get("spec") or {}).get("hard") or ():
        if name.startswith("count/"):
            found.add(name.removeprefix("count/").removesuffix("."))
        elif name.startswith("services"):
            found.add("services")
        elif ("storage" in name and "ephemeral" not in name) or name == "persistentvolumeclaims" or _CLASS in name:
            found.add("persistentvolumeclaims")
        elif name in LEGACY_COUNTS:
            found.add(name)
        else:
            found.add("pods")
    return found


def shown(name: str, size: int) -> str:
    """Return an amount of a quota's resource as text: bytes in binary units, the rest in decimal ones."""
    family: quantity.Family = "BinarySI" if "memory" in name or "storage" in name or "hugepages" in name else "DecimalSI"
    return quantity.shown(size, family)


def missing_requests(pod: Tree, hard: Iterable[str]) -> str:
    """Return which containers do not say what a quota makes them say (``requests.cpu for: a,b; limits.cpu for: c``); "" when all do."""
    spec = pod["spec"]
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    found: dict[str, list[str]] = {}
    for name in sorted(hard):
        kind, _, resource = name.rpartition(".") if name.startswith(("requests.", "limits.")) else ("requests", "", name)
        if resource not in _COMPUTE:
            continue
        if resource in ((spec.get("resources") or {}).get(kind) or {}):
            continue
        lacking = [each.get("name", "") for each in containers if resource not in ((each.get("resources") or {}).get(kind) or {})]
        if lacking:
            found[name] = sorted(lacking)
    return "; ".join(f"{name} for: {','.join(each)}" for name, each in found.items())
