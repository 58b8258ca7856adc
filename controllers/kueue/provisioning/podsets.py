"""Which pod sets of a Workload a ProvisioningRequest is about, and the PodTemplates that describe their pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.controllers.kueue.integrations.framework import PodSetInfo, merged
from kubemini.controllers.kueue.requests import adjusted
from kubemini.controllers.kueue.workloads import assignments, pod_sets_of
from kubemini.runtime.keys import owner_reference

IDENTICAL_TEMPLATES, IDENTICAL_REQUIREMENTS = "IdenticalPodTemplates", "IdenticalWorkloadSchedulingRequirements"
_SPREADING = ("resources", "nodeSelector", "tolerations", "affinity", "resourceClaims")
"""What decides where pods can go, beside what their containers request."""


@dataclass(slots=True)
class Asked:
    """Pod sets that are asked for as one: the first of them, its assignment, and the pods of all."""

    pod_set: Tree
    assignment: Tree
    count: int


def wanted(workload: Tree, config: Tree) -> list[Asked]:
    """Return what a Workload with quota asks the autoscaler for, merged as its configuration says; [] = no request is needed."""
    managed: Sequence[str] = config["spec"].get("managedResources") or ()
    policy = config["spec"].get("podSetMergePolicy") or ""
    given = {each["name"]: each for each in assignments(workload)}
    found: list[Asked] = []
    for pod_set in pod_sets_of(workload):
        assignment = given.get(pod_set["name"])
        if assignment is None or pod_set.get("count", 0) <= 0 or (managed and not uses(pod_set["template"]["spec"], managed)):
            continue
        count: int = assignment["count"] if "count" in assignment else pod_set["count"]
        if count <= 0:
            continue
        twin = next((each for each in found if alike(each.pod_set["template"], pod_set["template"], policy)), None)
        if twin is not None:
            twin.count += count
        else:
            found.append(Asked(pod_set, assignment, count))
    return found


def uses(spec: Tree, managed: Iterable[str]) -> bool:
    """Tell whether some container of a pod names one of these resources."""
    named = {
        name
        for field in ("initContainers", "containers")
        for container in spec.get(field) or ()
        for kind in ("requests", "limits")
        for name in (container.get("resources") or {}).get(kind) or ()
    }
    return any(name in named for name in managed)


def alike(one: Tree, other: Tree, policy: str) -> bool:
    """Tell whether pods of two templates are asked for as one under a ``podSetMergePolicy`` ("" = never)."""
    if policy == IDENTICAL_TEMPLATES:
        return one == other
    if policy != IDENTICAL_REQUIREMENTS:
        return False
    left, right = one["spec"], other["spec"]
    return all(_requests(left, field) == _requests(right, field) for field in ("containers", "initContainers")) and all(
        (left.get(field) or None) == (right.get(field) or None) for field in _SPREADING
    )


def _requests(spec: Tree, field: str) -> list[Tree]:
    return [(container.get("resources") or {}).get("requests") or {} for container in spec.get(field) or ()]


def pod_template(name: str, workload: Tree, asked: Asked, flavors: Mapping[str, Tree]) -> Tree:
    """Return the PodTemplate of a pod set as it will run on its flavors; limits stand in for missing requests. Raise `Permanent` on contradictions."""
    assignment = asked.assignment
    info = PodSetInfo(assignment["name"], asked.count)
    for flavor in dict.fromkeys((assignment.get("flavors") or {}).values()):
        spec = flavors[flavor]["spec"] if flavor in flavors else {}
        info.node_selector.update(spec.get("nodeLabels") or {})
        info.tolerations += [each for each in spec.get("tolerations") or () if each not in info.tolerations]
    if assignment.get("topologyAssignment") is not None:
        info.gates.append({"name": names.TOPOLOGY_GATE})
        request = asked.pod_set.get("topologyRequest") or {}
        if not any(key in request for key in ("required", "preferred", "unconstrained")):
            info.annotations[names.UNCONSTRAINED_TOPOLOGY] = "true"
    template = merged(asked.pod_set["template"], info)
    return {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": {
            "name": name,
            "namespace": workload["metadata"]["namespace"],
            "labels": {names.MANAGED: "true"},
            "ownerReferences": [owner_reference(workload)],
        },
        "template": {**template, "spec": adjusted(template["spec"], (), None)},
    }
