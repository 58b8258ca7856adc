"""The mutating webhook of JobSets: defaults on create, and on create only: on updates they would fight with partial owners of the spec."""

from __future__ import annotations

from kubemini.api.schemas.records import DEFAULT_VERSION
from kubemini.api.trees import Tree
from kubemini.machinery.schema.roundtrip import go_written
from kubemini.runtime.webhooks import WebhookRequest


def default(request: WebhookRequest) -> Tree | None:
    """Return a new JobSet with its defaults."""
    return None if request.obj is None else defaulted(request.obj)


def defaulted(js: Tree, version: str = DEFAULT_VERSION) -> Tree:
    """Return a JobSet with defaults filled in, and what it embeds as a Go webhook hands it back."""
    spec: Tree = dict(js.get("spec") or {})
    spec["successPolicy"] = {"operator": "All"} if spec.get("successPolicy") is None else _written(spec["successPolicy"], "operator")
    spec["startupPolicy"] = (
        {"startupPolicyOrder": "AnyOrder"} if spec.get("startupPolicy") is None else _written(spec["startupPolicy"], "startupPolicyOrder")
    )
    if spec.get("coordinator") is not None:
        spec["coordinator"] = _written(spec["coordinator"], "replicatedJob")
    spec["network"] = {"enableDNSHostnames": True, "publishNotReadyAddresses": True, **(spec.get("network") or {})}
    if spec.get("replicatedJobs"):
        spec["replicatedJobs"] = [_role(role, version) for role in spec["replicatedJobs"]]
    rules = (spec.get("failurePolicy") or {}).get("rules")
    if rules:
        rules = [_written(rule, "action") for rule in rules]
        named = [rule if rule.get("name") else {**rule, "name": f"failurePolicyRule{index}"} for index, rule in enumerate(rules)]
        spec["failurePolicy"] = {**spec["failurePolicy"], "rules": named}
    if spec.get("volumeClaimPolicies"):
        spec["volumeClaimPolicies"] = [_claim_policy(policy, version) for policy in spec["volumeClaimPolicies"]]
    return {**js, "spec": spec}


def _written(tree: Tree | None, *fields: str) -> Tree:
    """Return an object with the texts that Go always writes: one that is missing is empty, not missing, from here on."""
    missing = {name: "" for name in fields if (tree or {}).get(name) is None}
    return {**(tree or {}), **missing} if missing or tree is None else tree


def _role(role: Tree | None, version: str) -> Tree:
    role = _written(role, "name")
    if role.get("dependsOn"):
        role = {**role, "dependsOn": [_written(each, "name", "status") for each in role["dependsOn"]]}
    given = role.get("template")
    if not isinstance(given, dict | None):
        return role
    # A template that is missing is an empty one to a Go webhook
    template = go_written("batch/v1.JobTemplateSpec", version)(given or {})
    job = template["spec"]
    pod = job["template"]["spec"]
    if pod.get("restartPolicy") and job.get("completionMode"):
        return role if template is given else {**role, "template": template}
    if not pod.get("restartPolicy"):
        pod = {**pod, "restartPolicy": "OnFailure"}
    job = {**job, "template": {**job["template"], "spec": pod}}
    if not job.get("completionMode"):
        job["completionMode"] = "Indexed"
    return {**role, "template": {**template, "spec": job}}


def _claim_policy(policy: Tree, version: str) -> Tree:
    written = go_written("core/v1.PersistentVolumeClaim", version)
    if policy.get("templates"):
        policy = {**policy, "templates": [written(template) for template in policy["templates"]]}
    if not policy.get("retentionPolicy"):
        policy = {**policy, "retentionPolicy": {"whenDeleted": "Delete"}}
    return policy
