"""Who owns the claims of a set's pods: the table of persistentVolumeClaimRetentionPolicy. Pure.

An owner reference makes the garbage collector delete a claim with its owner. So a claim that is to go with the set is the set's, one that is to go
with a pod that is scaled away is that pod's, and one that stays is nobody's.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubemini.api.trees import Tree
from kubemini.controllers.stateful_set.pods import ordinal_of
from kubemini.controllers.stateful_set.view import DELETE, SetView
from kubemini.runtime.keys import owner_reference


def references(claim: Tree) -> Sequence[Tree]:
    """Return a claim's owner references."""
    found: Sequence[Tree] = claim["metadata"].get("ownerReferences") or ()
    return found


def _names_set(reference: Tree, owner: SetView) -> bool:
    return bool(reference["kind"] == "StatefulSet" and reference["apiVersion"].startswith("apps/") and reference["name"] == owner.name)


def _names_pod(reference: Tree, pod_name: str) -> bool:
    return bool(reference["kind"] == "Pod" and reference["apiVersion"] == "v1" and reference["name"] == pod_name)


def waits_for(claim: Tree, pod_name: str) -> bool:
    """Tell whether a claim still belongs to an earlier pod of the name of one to be made, with which it will go."""
    return any(_names_pod(each, pod_name) for each in references(claim))


def has_other_controller(claim: Tree, owner: SetView, pod: Tree) -> bool:
    """Tell whether someone else manages a claim that our policy would manage: another controller, or an earlier set or pod of the same name."""
    if DELETE not in (owner.when_deleted, owner.when_scaled):
        return False
    name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
    for each in references(claim):
        if _names_set(each, owner):
            if each["uid"] != owner.uid:
                return True
        elif _names_pod(each, name):
            if each["uid"] != uid:
                return True
        elif each.get("controller"):
            return True
    return False


def wanted(owner: SetView, pod: Tree) -> tuple[bool, bool]:
    """Return (owned by the set, owned by the pod)."""
    condemned = not owner.wanted(ordinal_of(pod))
    by_pod = owner.when_scaled == DELETE and condemned
    return owner.when_deleted == DELETE and not by_pod, by_pod


def up_to_date(claim: Tree, owner: SetView, pod: Tree) -> bool:
    """Tell whether a claim's owners are as the policy wants them, or are not to be touched."""
    name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
    of_set = of_pod = False
    loose = False
    for each in references(claim):
        if (_names_set(each, owner) and each["uid"] != owner.uid) or (_names_pod(each, name) and each["uid"] != uid):
            return True
        mine, pods = each["uid"] == owner.uid, each["uid"] == uid
        of_set, of_pod = of_set or mine, of_pod or pods
        loose = loose or ((mine or pods) and not each.get("controller"))
    if has_other_controller(claim, owner, pod):
        return not (of_set or of_pod)
    return not loose and (of_set, of_pod) == wanted(owner, pod)


def corrected(claim: Tree, owner: SetView, pod: Tree) -> Tree:
    """Return a claim with the owners that the policy wants; where it has another controller, without ours."""
    name = pod["metadata"]["name"]
    kept = [each for each in references(claim) if not (_names_set(each, owner) or _names_pod(each, name))]
    if not has_other_controller(claim, owner, pod):
        by_set, by_pod = wanted(owner, pod)
        if by_set:
            kept.append(owner_reference(owner.tree))
        if by_pod:
            kept.append(owner_reference({**pod, "apiVersion": "v1", "kind": "Pod"}))
    return {**claim, "metadata": {**claim["metadata"], "ownerReferences": kept}}


def made(owner: SetView, template: Tree, name: str) -> Tree:
    """Return a new claim from a template: the selector's labels win over its own."""
    about = template["metadata"]
    labels = {**(about.get("labels") or {}), **((owner.spec.get("selector") or {}).get("matchLabels") or {})}
    meta: Tree = {"name": name, "namespace": owner.namespace, "labels": labels}
    for key in ("annotations", "finalizers"):
        if about.get(key):
            meta[key] = about[key]
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": template["spec"]}
