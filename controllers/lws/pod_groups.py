"""Gang scheduling with Volcano: one PodGroup for each group and revision. Mirrors ``pkg/schedulerprovider`` and is on only where it is configured."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.api.wellknown import lws as names
from kubemini.controllers.lws.revisions import key_of
from kubemini.controllers.lws.view import LwsView
from kubemini.machinery import pod_requests, quantity
from kubemini.runtime.keys import owner_reference

VOLCANO = "volcano"


def group_name(labels: Tree) -> str:
    """Return the name of the PodGroup of a pod with these labels."""
    return f"{labels.get(names.NAME, '')}-{labels.get(names.GROUP_INDEX, '')}-{labels.get(names.REVISION, '')}"


def pod_group(owner: LwsView, leader: Tree) -> Tree:
    """Return the PodGroup of a leader's group: all of its pods at once, or the leader alone where the workers wait for it; room for all in either case."""
    labels = leader["metadata"].get("labels") or {}
    meta: Tree = {
        "name": (leader["metadata"].get("annotations") or {}).get(names.VOLCANO_GROUP) or group_name(labels),
        "namespace": owner.namespace,
        "labels": {names.NAME: owner.name, names.GROUP_INDEX: labels.get(names.GROUP_INDEX, ""), names.REVISION: key_of(leader)},
        "ownerReferences": [owner_reference({**leader, "apiVersion": "v1", "kind": "Pod"})],
    }
    handed_on = {key: value for key, value in owner.annotations.items() if key.startswith(names.VOLCANO_PREFIX)}
    if handed_on:
        meta["annotations"] = handed_on
    spec: Tree = {"minMember": 1 if owner.leader_ready_first else owner.size, "minResources": _resources(owner)}
    queue = owner.annotations.get(names.VOLCANO_QUEUE)
    if queue is not None:
        spec["queue"] = queue
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": meta, "spec": spec}


def _resources(owner: LwsView) -> Tree:
    sums = dict(pod_requests.of_pod(owner.leader_template["spec"], "requests"))
    for name, amount in pod_requests.of_pod(owner.template["workerTemplate"]["spec"], "requests").items():
        sums[name] = sums.get(name, 0) + amount * (owner.size - 1)
    return {name: quantity.shown(amount, "BinarySI" if _in_bytes(name) else "DecimalSI") for name, amount in sums.items()}


def _in_bytes(resource: str) -> bool:
    return resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-")
