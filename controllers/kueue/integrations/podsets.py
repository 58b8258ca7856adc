"""Pod sets of a Workload and of its job: whether they are the same, and what the pods get when they start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.controllers.kueue import conditions
from kubemini.controllers.kueue.integrations.framework import Permanent, PodSetInfo, info_of
from kubemini.controllers.kueue.workloads import assignments, pod_sets_of
from kubemini.machinery import names as dns


def same(pod_sets: Sequence[Tree], others: Sequence[Tree], *, tolerations: bool = True) -> bool:
    """Tell whether two lists of pod sets are alike in what a Workload stands for: counts, containers and tolerations."""
    return len(pod_sets) == len(others) and all(_same(a, b, tolerations) for a, b in zip(pod_sets, others, strict=True))


def _same(a: Tree, b: Tree, tolerations: bool) -> bool:
    if a["count"] != b["count"] or a.get("minCount") != b.get("minCount"):
        return False
    one, other = a["template"]["spec"], b["template"]["spec"]
    for field in ("containers", "initContainers"):
        left, right = one.get(field) or [], other.get(field) or []
        if left is not right and left != right and _plain(left) != _plain(right):
            return False
    return not tolerations or (one.get("tolerations") or []) == (other.get("tolerations") or [])


def _plain(value: Any) -> Any:
    """Drop empty values: the schema of Workloads and that of jobs keep them differently."""
    if isinstance(value, dict):
        return {key: new for key, each in value.items() if (new := _plain(each)) not in ({}, [], "", None)}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value


def running(workload: Tree, flavors: Mapping[str, Tree]) -> list[Tree] | None:
    """Return the pod sets as they run under a Workload's admission, or None where that cannot be told."""
    pod_sets = pod_sets_of(workload)
    try:
        infos = start_infos(workload, flavors)
    except Permanent:
        return None
    if len(infos) != len(pod_sets):
        return None
    found = []
    for pod_set, info in zip(pod_sets, infos, strict=True):
        spec = pod_set["template"]["spec"]
        tolerations: list[Tree] = list(spec.get("tolerations") or ())
        tolerations += [each for each in info.tolerations if each not in tolerations]
        found.append(
            {
                **pod_set,
                "count": info.count if "minCount" in pod_set else pod_set["count"],
                "template": {**pod_set["template"], "spec": {**spec, "tolerations": tolerations}},
            }
        )
    return found


def start_infos(workload: Tree, flavors: Mapping[str, Tree]) -> list[PodSetInfo]:
    """Return what each pod set gets when it starts: of its flavors, of Kueue, and of the admission checks. Raise `Permanent` on contradictions."""
    given = assignments(workload)
    pod_sets: dict[str, Tree] = {each["name"]: each for each in pod_sets_of(workload)}
    queue = workload["status"]["admission"]["clusterQueue"] if given else ""
    found = []
    for assignment in given:
        pod_set = pod_sets[assignment["name"]]
        info = PodSetInfo(assignment["name"], assignment["count"] if "count" in assignment else pod_set["count"])
        for flavor in dict.fromkeys((assignment.get("flavors") or {}).values()):
            tree = flavors.get(flavor)
            if tree is not None:
                try:
                    info.merge(
                        PodSetInfo(
                            flavor,
                            0,
                            node_selector=dict(tree["spec"].get("nodeLabels") or {}),
                            tolerations=list(tree["spec"].get("tolerations") or ()),
                        )
                    )
                except Permanent as problem:
                    raise Permanent(f"in flavor {flavor!r}: {problem}") from None
        info.labels[names.POD_SET] = info.name
        if workload["spec"].get("queueName"):
            info.labels[names.LOCAL_QUEUE] = workload["spec"]["queueName"]
        if queue and not dns.dns1123_label(queue):
            info.labels[names.CLUSTER_QUEUE] = queue
        info.annotations[names.WORKLOAD] = workload["metadata"]["name"]
        slice_name = (workload["metadata"].get("annotations") or {}).get(names.WORKLOAD_SLICE_NAME)
        if slice_name:
            info.annotations[names.WORKLOAD_SLICE_NAME] = slice_name
        if assignment.get("topologyAssignment") is not None or assignment.get("delayedTopologyRequest"):
            info.gates.append({"name": names.TOPOLOGY_GATE})
            request = pod_set.get("topologyRequest") or {}
            if not any(key in request for key in ("required", "preferred", "unconstrained")):
                info.annotations[names.UNCONSTRAINED_TOPOLOGY] = "true"
        _updates(workload, pod_set, info)
        found.append(info)
    return found


def _updates(workload: Tree, pod_set: Tree, info: PodSetInfo) -> None:
    """Add what admission checks ask for; against the pods' own values they may not contradict either."""
    for check in workload["status"].get("admissionChecks") or ():
        for update in check.get("podSetUpdates") or ():
            if update["name"] != info.name:
                continue
            addition = PodSetInfo(
                info.name,
                0,
                dict(update.get("labels") or {}),
                dict(update.get("annotations") or {}),
                dict(update.get("nodeSelector") or {}),
                list(update.get("tolerations") or ()),
            )
            try:
                info_of(info.name, 0, pod_set["template"]).merge(addition)
                info.merge(addition)
            except Permanent as problem:
                raise Permanent(f'in admission check "{check["name"]}": invalid admission check PodSetUpdate: {problem}') from None


def restore_infos(workload: Tree) -> list[PodSetInfo]:
    """Return what each pod set was before it started."""
    return [info_of(each["name"], each["count"], each["template"]) for each in pod_sets_of(workload)]


def equivalent(job_sets: Sequence[Tree], workload: Tree, flavors: Mapping[str, Tree], *, suspended: bool) -> bool:
    """Tell whether a job's pod sets are those that a Workload stands for: as they run with its admission, or (suspended) as they were submitted."""
    plain = pod_sets_of(workload)
    if conditions.reserved(workload):
        expected = running(workload, flavors)
        if expected is not None and same(_without_least(job_sets), _without_least(expected), tolerations=not conditions.admitted(workload)):
            return True
        return suspended and same(job_sets, plain)
    return same(job_sets, plain)


def _without_least(pod_sets: Sequence[Tree]) -> list[Tree]:
    return [{key: value for key, value in each.items() if key != "minCount"} for each in pod_sets]


def same_but_defaults(job_sets: Sequence[Tree], workload: Tree) -> bool:
    """Tell whether a Workload made beforehand fits a job whose template the API server has filled with defaults."""
    return same(job_sets, pod_sets_of(workload), tolerations=False)


def sanitised(pod_set: Tree) -> Tree:
    """Return a pod set in which each environment variable is named once: the last value, at the first place."""
    spec = pod_set["template"]["spec"]
    new = spec
    for field in ("containers", "initContainers"):
        containers = spec.get(field)
        if containers and any(_doubled(each) for each in containers):
            new = {**new, field: [_once(each) for each in containers]}
    return pod_set if new is spec else {**pod_set, "template": {**pod_set["template"], "spec": new}}


def _doubled(container: Tree) -> bool:
    env = container.get("env") or ()
    return len({each["name"] for each in env}) < len(env)


def _once(container: Tree) -> Tree:
    if not _doubled(container):
        return container
    values: dict[str, Tree] = {}
    for each in container["env"]:
        values[each["name"]] = each
    return {**container, "env": list(values.values())}
