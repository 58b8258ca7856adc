"""A group's template as Go writes it: what the revision hash of a role is made of."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.machinery.schema.go_order import CLAIM_SPEC, METADATA, POD_TEMPLATE, in_order
from kubemini.machinery.schema.roundtrip import go_form


def group_template(template: Tree) -> Tree:
    """Return a LeaderWorkerTemplate as Go writes it."""
    pod, claim = go_form("core/v1.PodTemplateSpec"), go_form("core/v1.PersistentVolumeClaim")
    found: Tree = {}
    for key in ("leaderTemplate", "workerTemplate"):
        if template.get(key) is not None:
            found[key] = in_order(POD_TEMPLATE, pod(template[key]))
    for key, fields in (("size", ()), ("restartPolicy", ()), ("subGroupPolicy", ("subGroupPolicyType", "subGroupSize"))):
        if template.get(key) is not None:
            value = template[key]
            found[key] = {name: value[name] for name in fields if value.get(name) is not None} if fields else value
    if template.get("volumeClaimTemplates"):
        found["volumeClaimTemplates"] = [_claim(claim(each)) for each in template["volumeClaimTemplates"]]
    policy = template.get("persistentVolumeClaimRetentionPolicy")
    if policy is not None:
        found["persistentVolumeClaimRetentionPolicy"] = {name: policy[name] for name in ("whenDeleted", "whenScaled") if policy.get(name)}
    return found


def _claim(claim: Tree) -> Tree:
    kinds = {"kind": "", "apiVersion": "", "metadata": METADATA, "spec": CLAIM_SPEC, "status": ""}
    return {key: in_order(kind, claim[key]) for key, kind in kinds.items() if key in claim}
