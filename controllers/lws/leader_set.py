"""The StatefulSet of all leaders, as it is applied."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.api.wellknown import lws as names
from kubemini.controllers.lws.view import LwsView, claims_of, is_shared, merged, sub_group_annotations, with_metadata
from kubemini.machinery.schema.roundtrip import go_form
from kubemini.runtime.keys import owner_reference


def leader_set(owner: LwsView, partition: int, replicas: int, key: str) -> Tree:
    """Return what is applied: one pod for each group, all at once, updated down to `partition`."""
    meta: Tree = {
        "name": owner.name,
        "namespace": owner.namespace,
        "labels": merged(owner.labels, {names.NAME: owner.name, names.REVISION: key}),
        "annotations": merged(owner.annotations, {names.REPLICAS: str(owner.replicas)}),
        "ownerReferences": [owner_reference(owner.tree)],
    }
    rolling = {"maxUnavailable": max(1, owner.unavailable + owner.surge), "partition": partition}
    spec: Tree = {
        "serviceName": owner.name,
        "replicas": replicas,
        "podManagementPolicy": "Parallel",
        "template": _template(owner, key),
        "updateStrategy": {"type": (owner.spec.get("rolloutStrategy") or {}).get("type", "RollingUpdate"), "rollingUpdate": rolling},
        "selector": {"matchLabels": {names.NAME: owner.name, names.WORKER_INDEX: "0"}},
        **claims_of(owner.template, owner.namespace),
    }
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": meta, "spec": spec}


def _template(owner: LwsView, key: str) -> Tree:
    labels = {names.WORKER_INDEX: "0", names.NAME: owner.name, names.REVISION: key}
    annotations: Tree = {names.SIZE: str(owner.size)}
    if owner.exclusive_topology:
        annotations[names.EXCLUSIVE_TOPOLOGY] = owner.exclusive_topology
    annotations |= sub_group_annotations(owner.template, owner.annotations)
    if not is_shared(owner.spec.get("networkConfig")):
        annotations[names.SUBDOMAIN_POLICY] = "UniquePerReplica"
    return with_metadata(go_form("core/v1.PodTemplateSpec")(owner.leader_template), labels, annotations)
