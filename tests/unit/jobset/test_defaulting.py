"""Defaults of a new JobSet."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.controllers.jobset.defaulting import defaulted
from kubemini.controllers.jobset.webhook import MUTATING

CONTAINER = {"name": "main", "image": "pause"}


def bare(**spec: object) -> Tree:
    """Return a JobSet as a user writes it, the schema's defaults filled in."""
    template = {"spec": {"template": {"spec": {"containers": [CONTAINER]}}}}
    return {
        "metadata": {"name": "js"},
        "spec": {"replicatedJobs": [{"name": "w", "replicas": 1, "groupName": "default", "template": template}], **spec},
    }


def test_defaults() -> None:
    """Policies, network, completion mode and restart policy are filled in; parallelism and the like are the Job's affair."""
    spec = defaulted(bare())["spec"]
    assert spec["successPolicy"] == {"operator": "All"}
    assert spec["startupPolicy"] == {"startupPolicyOrder": "AnyOrder"}
    assert spec["network"] == {"enableDNSHostnames": True, "publishNotReadyAddresses": True}
    assert "failurePolicy" not in spec
    assert "suspend" not in spec
    job = spec["replicatedJobs"][0]["template"]["spec"]
    assert (job["completionMode"], job["template"]["spec"]["restartPolicy"]) == ("Indexed", "OnFailure")
    assert "parallelism" not in job


def test_what_go_always_writes() -> None:
    """A Go webhook leaves empty structs where there were none; what a user wrote stays, even empty."""
    template = defaulted(bare())["spec"]["replicatedJobs"][0]["template"]
    assert template["metadata"] == {}
    assert template["spec"]["template"]["metadata"] == {}
    assert template["spec"]["template"]["spec"]["containers"] == [{**CONTAINER, "resources": {}}]


def test_given_values_stay() -> None:
    """A default never replaces what is there."""
    js = bare(successPolicy={"operator": "Any"}, network={"enableDNSHostnames": False, "subdomain": "mesh"})
    js["spec"]["replicatedJobs"][0]["template"]["spec"] |= {"completionMode": "NonIndexed"}
    js["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    spec = defaulted(js)["spec"]
    assert spec["successPolicy"] == {"operator": "Any"}
    assert spec["network"] == {"enableDNSHostnames": False, "subdomain": "mesh", "publishNotReadyAddresses": True}
    job = spec["replicatedJobs"][0]["template"]["spec"]
    assert (job["completionMode"], job["template"]["spec"]["restartPolicy"]) == ("NonIndexed", "Never")


def test_rules_are_named_by_position() -> None:
    """A rule without a name gets one from its index."""
    rules = [{"action": "FailJobSet"}, {"name": "mine", "action": "RestartJobSet"}, {"action": "RestartJobSet"}]
    spec = defaulted(bare(failurePolicy={"rules": rules}))["spec"]
    assert [rule["name"] for rule in spec["failurePolicy"]["rules"]] == ["failurePolicyRule0", "mine", "failurePolicyRule2"]


def test_claims_are_deleted_by_default() -> None:
    """A claim policy without retention goes with the JobSet."""
    policies = [{"templates": [{"metadata": {"name": "a"}, "spec": {}}]}, {"templates": [], "retentionPolicy": {"whenDeleted": "Retain"}}]
    spec = defaulted(bare(volumeClaimPolicies=policies))["spec"]
    assert [policy["retentionPolicy"]["whenDeleted"] for policy in spec["volumeClaimPolicies"]] == ["Delete", "Retain"]
    assert spec["volumeClaimPolicies"][0]["templates"][0] == {"metadata": {"name": "a"}, "spec": {"resources": {}}, "status": {}}


def test_a_missing_template_is_an_empty_one() -> None:
    """A role without a template gets the defaults in an empty one, so that what is refused is its missing containers."""
    (role,) = defaulted({"metadata": {"name": "js"}, "spec": {"replicatedJobs": [{"name": "a"}]}})["spec"]["replicatedJobs"]
    pod = {"metadata": {}, "spec": {"restartPolicy": "OnFailure"}}
    assert role == {"name": "a", "template": {"metadata": {}, "spec": {"completionMode": "Indexed", "template": pod}}}


def test_texts_that_go_always_writes_are_empty_rather_than_missing() -> None:
    """Required texts that are missing come back from the webhook as empty ones, which the schema then refuses as no value of their enumeration."""
    given: Tree = {
        "replicatedJobs": [None, {"dependsOn": [{"name": "a"}]}],
        "successPolicy": {"targetReplicatedJobs": []},
        "startupPolicy": {},
        "coordinator": {},
        "failurePolicy": {"rules": [{}, {"name": "x", "action": "FailJobSet"}]},
    }
    spec = defaulted({"metadata": {"name": "js"}, "spec": given})["spec"]
    assert [role["name"] for role in spec["replicatedJobs"]] == ["", ""]
    assert spec["replicatedJobs"][1]["dependsOn"] == [{"name": "a", "status": ""}]
    assert spec["successPolicy"] == {"targetReplicatedJobs": [], "operator": ""}
    assert (spec["startupPolicy"], spec["coordinator"]) == ({"startupPolicyOrder": ""}, {"replicatedJob": ""})
    assert [(rule["name"], rule["action"]) for rule in spec["failurePolicy"]["rules"]] == [("failurePolicyRule0", ""), ("x", "FailJobSet")]


def test_claim_templates_are_not_made_up() -> None:
    """A claim policy without templates gets no empty list of them, and what was given is not changed."""
    policy: Tree = {}
    spec = defaulted(bare(volumeClaimPolicies=[policy]))["spec"]
    assert spec["volumeClaimPolicies"] == [{"retentionPolicy": {"whenDeleted": "Delete"}}]
    assert policy == {}


def test_nothing_is_needed() -> None:
    """A JobSet without roles, or without a spec, is defaulted too."""
    assert "replicatedJobs" not in defaulted({"metadata": {"name": "js"}})["spec"]


def test_twice_is_once() -> None:
    """Defaulting what is defaulted changes nothing, and the argument stays as it was."""
    js = bare(failurePolicy={"rules": [{"action": "FailJobSet"}]})
    before = repr(js)
    once = defaulted(js)
    assert repr(js) == before
    assert defaulted(once) == once


def test_defaults_are_for_creations() -> None:
    """An update is not defaulted: whoever applies a part of the spec would be told of a difference for ever."""
    assert MUTATING.operations == ("CREATE",)
