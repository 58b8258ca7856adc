"""What a DisaggregatedSet makes: a LeaderWorkerSet for each role, a Service beside it, a scaler for each role that is scaled from outside."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.api.wellknown import lws as names
from kubemini.controllers.disaggregated_set.naming import label, labels_of, scaler_name, set_name
from kubemini.controllers.disaggregated_set.placement import placed
from kubemini.runtime.keys import owner_reference


def role_set(ds: Tree, role: Tree, slice_: int, revision: str, replicas: int) -> Tree:
    """Return the LeaderWorkerSet of a role."""
    meta, policy = ds["metadata"], ds["spec"].get("placementPolicy")
    base: str = meta["name"]
    labels = labels_of(base, slice_, revision, role["name"])
    spec: Tree = dict(role.get("spec") or {})
    group: Tree = dict(spec.get("leaderWorkerTemplate") or {})
    for key in ("leaderTemplate", "workerTemplate"):
        if group.get(key) is not None:
            group[key] = placed(_labelled(group[key], labels), base, slice_, policy)
    about: Tree = role.get("metadata") or {}
    made: Tree = {
        "name": set_name(base, slice_, revision, role["name"]),
        "namespace": meta["namespace"],
        "labels": {**(about.get("labels") or {}), **labels},
        "ownerReferences": [owner_reference(ds, block=False)],
    }
    if about.get("annotations"):
        made["annotations"] = about["annotations"]
    spec |= {"replicas": replicas, "leaderWorkerTemplate": group}
    return {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": made, "spec": spec}


def _labelled(template: Tree, labels: Tree) -> Tree:
    about: Tree = template.get("metadata") or {}
    return {**template, "metadata": {**about, "labels": {**(about.get("labels") or {}), **labels}}}


def service(ds: Tree, lws: Tree) -> Tree:
    """Return the headless Service of a LeaderWorkerSet's pods, selected by the labels that it has itself."""
    meta = ds["metadata"]
    selector = {names.DS_NAME: meta["name"], names.DS_ROLE: label(lws, names.DS_ROLE), names.DS_REVISION: label(lws, names.DS_REVISION)}
    if label(lws, names.DS_SLICE):
        selector[names.DS_SLICE] = label(lws, names.DS_SLICE)
    about = {
        "name": f"{lws['metadata']['name']}-prv",
        "namespace": meta["namespace"],
        "labels": selector,
        "ownerReferences": [owner_reference(ds, block=False)],
    }
    return {"apiVersion": "v1", "kind": "Service", "metadata": about, "spec": {"clusterIP": "None", "selector": selector}}


def scaler(ds: Tree, role: str, replicas: int) -> Tree:
    """Return the scaler of a role, which starts from `replicas`."""
    meta = ds["metadata"]
    about = {
        "name": scaler_name(meta["name"], role),
        "namespace": meta["namespace"],
        "labels": {names.DS_NAME: meta["name"], names.DS_ROLE: role},
        "ownerReferences": [owner_reference(ds)],
    }
    return {"apiVersion": "disaggregatedset.x-k8s.io/v1", "kind": "DisaggregatedSetRoleScaler", "metadata": about, "spec": {"replicas": replicas}}
