"""What is to be done about a pod's claims and a claim's pods: pure decisions."""

from __future__ import annotations

from collections.abc import Callable

from kubemini.api.trees import Tree

POD_CLAIM = "resource.kubernetes.io/pod-claim-name"
FINALIZER = "resource.kubernetes.io/delete-protection"
TERMINAL = ("Succeeded", "Failed")


def ended(pod: Tree | None) -> bool:
    """Tell whether a pod needs its claims no longer: it is gone, has ended, or is going without ever having run."""
    if pod is None:
        return True
    if (pod.get("status") or {}).get("phase") in TERMINAL:
        return True
    return "deletionTimestamp" in pod["metadata"] and not pod["spec"].get("nodeName")


def wanted_claims(pod: Tree) -> list[Tree]:
    """Return the entries of a pod that are made from templates and have no claim in the pod's status yet."""
    known = {each["name"]: None for each in (pod.get("status") or {}).get("resourceClaimStatuses") or ()}
    return [each for each in pod["spec"].get("resourceClaims") or () if each.get("resourceClaimTemplateName") and each["name"] not in known]


def claim_from(template: Tree, pod: Tree, entry: str) -> Tree:
    """Return the claim that a template makes for an entry of a pod."""
    meta, spec = pod["metadata"], template["spec"]
    given: Tree = spec.get("metadata") or {}
    metadata: Tree = {
        "generateName": f"{meta['name']}-{entry}-",
        "namespace": meta["namespace"],
        "annotations": {**(given.get("annotations") or {}), POD_CLAIM: entry},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"], "controller": True}],
    }
    if given.get("labels"):
        metadata["labels"] = given["labels"]
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata, "spec": spec["spec"]}


def still_reserved(claim: Tree, pod_by_uid: Callable[[str, str], Tree | None]) -> list[Tree]:
    """Return the reservations of a claim that stand: those of pods that still need it, and all of other kinds. `pod_by_uid` takes a name and a uid."""
    kept: list[Tree] = []
    for each in (claim.get("status") or {}).get("reservedFor") or ():
        if each.get("resource") != "pods" or each.get("apiGroup") or not ended(pod_by_uid(each["name"], each["uid"])):
            kept.append(each)
    return kept


def settled_status(claim: Tree, reserved: list[Tree]) -> Tree:
    """Return a claim's status with these reservations; without any, its devices are freed."""
    status = {key: value for key, value in (claim.get("status") or {}).items() if key != "reservedFor"}
    if reserved:
        status["reservedFor"] = reserved
    else:
        status.pop("allocation", None)
        status.pop("devices", None)
    return status


def owner_pod(claim: Tree) -> Tree | None:
    """Return the reference to the pod that a claim was made for, or None for a claim of its own."""
    for owner in claim["metadata"].get("ownerReferences") or ():
        if owner.get("controller") and owner["kind"] == "Pod" and owner["apiVersion"] == "v1":
            found: Tree = owner
            return found
    return None
