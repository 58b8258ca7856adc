"""Conversion between kueue.x-k8s.io/v1beta1 and v1beta2 (the storage version), on trees.

`to_v1beta2` and `to_v1beta1` are pure: they share every subtree that is the same in both versions. What a version does not know is lost,
as upstream loses it. Mirrors kueue's ``apis/kueue/v1beta1/*_conversion.go``, and for kinds without one the pruning by the other schema.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kubemini.api.kueue import GROUP
from kubemini.api.kueue.assignments import Domain, decode, encode
from kubemini.api.trees import Tree, drop_in, get_in, set_in

V1BETA1 = f"{GROUP}/v1beta1"
V1BETA2 = f"{GROUP}/v1beta2"

_WORKLOAD_CLASS = "kueue.x-k8s.io/workloadpriorityclass"
_POD_CLASS = "scheduling.k8s.io/priorityclass"
_CLASSES = {_WORKLOAD_CLASS: ("kueue.x-k8s.io", "WorkloadPriorityClass"), _POD_CLASS: ("scheduling.k8s.io", "PriorityClass")}
_SOURCES = {reference: source for source, reference in _CLASSES.items()}


def to_v1beta2(tree: Tree) -> Tree:
    """Return a v1beta1 object of any of Kueue's kinds in v1beta2."""
    convert = _UP.get(tree["kind"])
    return {**(convert(tree) if convert else tree), "apiVersion": V1BETA2}


def to_v1beta1(tree: Tree) -> Tree:
    """Return a v1beta2 object of any of Kueue's kinds in v1beta1."""
    convert = _DOWN.get(tree["kind"])
    return {**(convert(tree) if convert else tree), "apiVersion": V1BETA1}


# ------------------------------------------------------------------------------------------------- queues


def _cluster_queue_up(tree: Tree) -> Tree:
    spec = get_in(tree, "spec")
    if isinstance(spec, dict):
        spec = _renamed(spec, "cohort", "cohortName")
        if "admissionChecks" in spec:
            names = spec["admissionChecks"]
            spec = {key: value for key, value in spec.items() if key != "admissionChecks"}
            if names:
                spec["admissionChecksStrategy"] = {"admissionChecks": [{"name": name} for name in names]}
        for field, old in (("whenCanBorrow", "Borrow"), ("whenCanPreempt", "Preempt")):
            if get_in(spec, "flavorFungibility", field) == old:
                spec = set_in(spec, ("flavorFungibility", field), "MayStopSearch")
        tree = {**tree, "spec": spec}
    tree = drop_in(tree, ("status", "pendingWorkloadsStatus"))
    return drop_in(tree, ("status", "fairSharing", "admissionFairSharingStatus"))


def _cluster_queue_down(tree: Tree) -> Tree:
    tree = drop_in(tree, ("spec", "concurrentAdmissionPolicy"))
    return _renamed_in(tree, "spec", "cohortName", "cohort")


def _cohort_up(tree: Tree) -> Tree:
    return drop_in(tree, ("status", "fairSharing", "admissionFairSharingStatus"))


def _local_queue_up(tree: Tree) -> Tree:
    return _renamed_in(drop_in(tree, ("status", "flavors")), "status", "flavorUsage", "flavorsUsage")


def _local_queue_down(tree: Tree) -> Tree:
    return _renamed_in(tree, "status", "flavorsUsage", "flavorUsage")


# ------------------------------------------------------------------------------------------------- checks


def _admission_check_up(tree: Tree) -> Tree:
    return drop_in(tree, ("spec", "retryDelayMinutes"))


def _multi_kueue_config_down(tree: Tree) -> Tree:
    return drop_in(tree, ("spec", "quotaManagement"))


def _multi_kueue_cluster_up(tree: Tree) -> Tree:
    spec = get_in(tree, "spec")
    if not isinstance(spec, dict):
        return tree
    source: Tree = {}
    if get_in(spec, "kubeConfig", "location"):
        source["kubeConfig"] = spec["kubeConfig"]
    if spec.get("clusterProfileRef"):
        source["clusterProfileRef"] = spec["clusterProfileRef"]
    rest = {key: value for key, value in spec.items() if key not in {"kubeConfig", "clusterProfileRef"}}
    return {**tree, "spec": {**rest, "clusterSource": source}}


def _multi_kueue_cluster_down(tree: Tree) -> Tree:
    spec = get_in(tree, "spec")
    if not isinstance(spec, dict):
        return tree
    source = spec.get("clusterSource") or {}
    rest = {key: value for key, value in spec.items() if key != "clusterSource"}
    # The field is no pointer in v1beta1: without a kubeconfig it is there, and empty.
    rest["kubeConfig"] = source.get("kubeConfig") or {"location": "", "locationType": ""}
    if source.get("clusterProfileRef"):
        rest["clusterProfileRef"] = source["clusterProfileRef"]
    return {**tree, "spec": rest}


# ------------------------------------------------------------------------------------------------- workloads


def _workload_up(tree: Tree) -> Tree:
    spec = get_in(tree, "spec")
    if isinstance(spec, dict) and ("priorityClassName" in spec or "priorityClassSource" in spec):
        reference = _CLASSES.get(spec.get("priorityClassSource", ""))
        name = spec.get("priorityClassName", "")
        spec = {key: value for key, value in spec.items() if key not in {"priorityClassName", "priorityClassSource"}}
        if reference is not None:
            spec["priorityClassRef"] = {"group": reference[0], "kind": reference[1], "name": name}
        tree = {**tree, "spec": spec}
    tree = _renamed_in(tree, "status", "accumulatedPastExexcutionTimeSeconds", "accumulatedPastExecutionTimeSeconds")
    return _with_assignments(tree, "domains", _assignment_up)


def _workload_down(tree: Tree) -> Tree:
    spec = get_in(tree, "spec")
    if isinstance(spec, dict):
        reference = spec.get("priorityClassRef")
        if reference is not None:
            spec = drop_in(spec, ("priorityClassRef",))
            source = _SOURCES.get((reference.get("group"), reference.get("kind")))
            if source is not None:
                spec = {**spec, "priorityClassName": reference.get("name", ""), "priorityClassSource": source}
        spec = drop_in(spec, ("preemptionGates",))
        pod_sets = spec.get("podSets") or []
        if any("podsetSliceRequiredTopologyConstraints" in (each.get("topologyRequest") or {}) for each in pod_sets):
            path = ("topologyRequest", "podsetSliceRequiredTopologyConstraints")
            spec = {**spec, "podSets": [drop_in(each, path) for each in pod_sets]}
        tree = {**tree, "spec": spec}
    tree = drop_in(tree, ("status", "preemptionGates"))
    tree = _renamed_in(tree, "status", "accumulatedPastExecutionTimeSeconds", "accumulatedPastExexcutionTimeSeconds")
    return _with_assignments(tree, "slices", _assignment_down)


def _with_assignments(tree: Tree, marker: str, convert: Callable[[Tree], Tree]) -> Tree:
    """Convert every topology assignment that has the field `marker`."""
    pod_sets = get_in(tree, "status", "admission", "podSetAssignments")
    if not pod_sets or not any(marker in (each.get("topologyAssignment") or {}) for each in pod_sets):
        return tree
    converted = [
        {**each, "topologyAssignment": convert(each["topologyAssignment"])} if marker in (each.get("topologyAssignment") or {}) else each
        for each in pod_sets
    ]
    return set_in(tree, ("status", "admission", "podSetAssignments"), converted)


def _assignment_up(assignment: Tree) -> Tree:
    return encode(assignment["levels"], [Domain(tuple(each["values"]), each["count"]) for each in assignment["domains"]])


def _assignment_down(assignment: Tree) -> Tree:
    domains = [{"values": list(each.values), "count": each.pods} for each in decode(assignment)]
    return {"levels": assignment["levels"], "domains": domains}


# ------------------------------------------------------------------------------------------------- common


def _renamed(tree: Tree, old: str, new: str) -> Tree:
    """Return a copy with one key renamed in its place; the same tree where it is absent."""
    return {new if key == old else key: value for key, value in tree.items()} if old in tree else tree


def _renamed_in(tree: Tree, parent: str, old: str, new: str) -> Tree:
    inner = tree.get(parent)
    return {**tree, parent: _renamed(inner, old, new)} if isinstance(inner, dict) and old in inner else tree


_UP: Mapping[str, Callable[[Tree], Tree]] = {
    "AdmissionCheck": _admission_check_up,
    "ClusterQueue": _cluster_queue_up,
    "Cohort": _cohort_up,
    "LocalQueue": _local_queue_up,
    "MultiKueueCluster": _multi_kueue_cluster_up,
    "Workload": _workload_up,
}
_DOWN: Mapping[str, Callable[[Tree], Tree]] = {
    "ClusterQueue": _cluster_queue_down,
    "LocalQueue": _local_queue_down,
    "MultiKueueCluster": _multi_kueue_cluster_down,
    "MultiKueueConfig": _multi_kueue_config_down,
    "Workload": _workload_down,
}
