"""The StatefulSet of one group's workers: made once for a leader, of that leader's revision, and gone with it."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.api.wellknown import lws as names
from kubemini.controllers.lws import tpu
from kubemini.controllers.lws.revisions import key_of, restored
from kubemini.controllers.lws.view import LwsView, claims_of, is_shared, merged, sub_group_annotations, with_metadata
from kubemini.runtime.keys import owner_reference


def worker_set(owner: LwsView, leader: Tree, revision: Tree, domain: tuple[str, str] | None) -> Tree:
    """Return the workers' StatefulSet. Templates, size, subgroups, network and claims are the revision's, metadata is the live one's.

    `domain` is the label of the topology domain that an exclusive group keeps to.
    """
    part = restored(revision["data"])
    template = part["leaderWorkerTemplate"]
    labels = leader["metadata"].get("labels") or {}
    name: str = leader["metadata"]["name"]
    group = {names.GROUP_INDEX: labels.get(names.GROUP_INDEX, ""), names.NAME: owner.name, names.GROUP_KEY: labels.get(names.GROUP_KEY, "")}
    marked = {**group, names.REVISION: key_of(leader)}
    annotations: Tree = {names.SIZE: str(template.get("size", 1)), names.LEADER_NAME: name}
    if owner.exclusive_topology:
        annotations[names.EXCLUSIVE_TOPOLOGY] = owner.exclusive_topology
    annotations |= sub_group_annotations(template, owner.annotations)
    if tpu.pod_requests(leader["spec"]):
        annotations[names.LEADER_REQUESTS_TPUS] = "true"
    pods = with_metadata(template["workerTemplate"], marked, annotations)
    if domain is not None:
        key, value = domain
        pods = {**pods, "spec": {**pods["spec"], "nodeSelector": {**(pods["spec"].get("nodeSelector") or {}), key: value}}}
    meta: Tree = {
        "name": name,
        "namespace": owner.namespace,
        "labels": merged(owner.labels, marked),
        "ownerReferences": [owner_reference({**leader, "apiVersion": "v1", "kind": "Pod"})],
    }
    if owner.annotations:
        meta["annotations"] = owner.annotations
    spec: Tree = {
        "serviceName": owner.name if is_shared(part["networkConfig"]) else name,
        "replicas": template.get("size", 1) - 1,
        "podManagementPolicy": "Parallel",
        "template": pods,
        "ordinals": {"start": 1},
        "selector": {"matchLabels": group},
        **claims_of(template, owner.namespace),
    }
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": meta, "spec": spec}
