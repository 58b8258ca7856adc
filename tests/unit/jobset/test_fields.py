"""Every field of a JobSet's spec, as the API server takes an update of it: what is frozen, what stays open, and what may come and go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kubemini.api.embedded import EmbeddedTypes, expanded
from kubemini.api.operators import OWNED_KINDS
from kubemini.api.owned import crd_of
from kubemini.api.resources import JOB_SETS
from kubemini.api.trees import Tree
from kubemini.machinery.errors import ApiStatus
from kubemini.sim.cluster import SimCluster, simulate

OPEN = ""
RULE = "Value is immutable"
"""What the schema says of a field that may come and go, but never changes."""
WEBHOOK = "field is immutable"
"""What the webhook says of roles and the manager."""
POD = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "pause"}]}
OPAQUE = ("replicatedJobs[].template", "volumeClaimPolicies[].templates[].spec", "volumeClaimPolicies[].templates[].status")
"""Fields that hold a whole Kubernetes type."""


def role(name: str = "a", **own: Any) -> Tree:
    """Return a role."""
    return {"name": name, "template": {"spec": {"backoffLimit": 0, "template": {"spec": POD}}}, **own}


def job(**more: Any) -> Tree:
    """Return a spec whose role has more in its Job."""
    spec: Tree = {"backoffLimit": 0, "template": {"spec": POD}, **more}
    return {"replicatedJobs": [{"name": "a", "template": {"spec": spec}}]}


def failing(**more: Any) -> Tree:
    """Return a spec with a failure policy."""
    return {"failurePolicy": {"maxRestarts": 1, **more}}


def ruled(**more: Any) -> Tree:
    """Return a spec with a failure policy of one rule."""
    return failing(rules=[{"name": "one", "action": "FailJobSet", **more}])


def claimed(policy: Tree | None = None, meta: Tree | None = None, **template: Any) -> Tree:
    """Return a spec with a claim that its pods mount."""
    mounting = {**POD, "containers": [{"name": "main", "image": "pause", "volumeMounts": [{"name": "data", "mountPath": "/d"}]}]}
    made = {"metadata": {"name": "data", **(meta or {})}, "spec": {"accessModes": ["ReadWriteOnce"]}, **template}
    return {
        "replicatedJobs": [{"name": "a", "template": {"spec": {"template": {"spec": mounting}}}}],
        "volumeClaimPolicies": [{"templates": [made], **(policy or {})}],
    }


def depending(name: str = "a", status: str = "Ready") -> Tree:
    """Return a spec of three roles whose last depends on another."""
    return {"replicatedJobs": [role("a"), role("b"), role("c", dependsOn=[{"name": name, "status": status}])]}


INDEXED = job(completions=2, parallelism=2)
FIELDS: dict[str, tuple[Tree, Tree, str]] = {
    "coordinator.jobIndex": ({"coordinator": {"replicatedJob": "a"}} | INDEXED, {"coordinator": {"replicatedJob": "a", "jobIndex": 7}}, OPEN),
    "coordinator.podIndex": ({"coordinator": {"replicatedJob": "a"}} | INDEXED, {"coordinator": {"replicatedJob": "a", "podIndex": 7}}, OPEN),
    "coordinator.replicatedJob": ({"coordinator": {"replicatedJob": "a"}} | INDEXED, {"coordinator": {"replicatedJob": "nobody"}}, OPEN),
    "failurePolicy.maxRestarts": (failing(), failing(maxRestarts=2), RULE),
    "failurePolicy.restartStrategy": (failing(), failing(restartStrategy="BlockingRecreate"), RULE),
    "failurePolicy.rules[].action": (ruled(), ruled(action="RestartJobSet"), RULE),
    "failurePolicy.rules[].name": (ruled(), ruled(name="two"), RULE),
    "failurePolicy.rules[].onJobFailureMessagePatterns[]": (ruled(), ruled(onJobFailureMessagePatterns=["x"]), RULE),
    "failurePolicy.rules[].onJobFailureReasons[]": (ruled(), ruled(onJobFailureReasons=["BackoffLimitExceeded"]), RULE),
    "failurePolicy.rules[].targetReplicatedJobs[]": (ruled(), ruled(targetReplicatedJobs=["a"]), RULE),
    "managedBy": ({}, {"managedBy": "example.com/other"}, WEBHOOK),
    "network.enableDNSHostnames": ({}, {"network": {"enableDNSHostnames": False, "publishNotReadyAddresses": True}}, RULE),
    "network.publishNotReadyAddresses": ({}, {"network": {"enableDNSHostnames": True, "publishNotReadyAddresses": False}}, RULE),
    "network.subdomain": ({}, {"network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True, "subdomain": "sub"}}, RULE),
    "replicatedJobs[].dependsOn[].name": (depending(), depending("b"), RULE),
    "replicatedJobs[].dependsOn[].status": (depending(), depending(status="Complete"), RULE),
    "replicatedJobs[].groupName": ({}, {"replicatedJobs": [role(groupName="other")]}, WEBHOOK),
    "replicatedJobs[].name": ({}, {"replicatedJobs": [role("b")]}, WEBHOOK),
    "replicatedJobs[].replicas": ({}, {"replicatedJobs": [role(replicas=2)]}, WEBHOOK),
    "replicatedJobs[].template": ({}, job(backoffLimit=1), WEBHOOK),
    "startupPolicy.startupPolicyOrder": (
        {"startupPolicy": {"startupPolicyOrder": "AnyOrder"}},
        {"startupPolicy": {"startupPolicyOrder": "InOrder"}},
        RULE,
    ),
    "successPolicy.operator": ({}, {"successPolicy": {"operator": "Any"}}, RULE),
    "successPolicy.targetReplicatedJobs[]": ({}, {"successPolicy": {"operator": "All", "targetReplicatedJobs": ["a"]}}, RULE),
    "suspend": ({"suspend": True}, {"suspend": False}, OPEN),
    "ttlSecondsAfterFinished": ({"ttlSecondsAfterFinished": 1}, {"ttlSecondsAfterFinished": 2}, OPEN),
    "volumeClaimPolicies[].retentionPolicy.whenDeleted": (claimed(), claimed({"retentionPolicy": {"whenDeleted": "Retain"}}), RULE),
    "volumeClaimPolicies[].templates[].apiVersion": (claimed(), claimed(apiVersion="v1"), RULE),
    "volumeClaimPolicies[].templates[].kind": (claimed(), claimed(kind="PersistentVolumeClaim"), RULE),
    "volumeClaimPolicies[].templates[].metadata.annotations": (claimed(), claimed(meta={"annotations": {"x": "y"}}), RULE),
    "volumeClaimPolicies[].templates[].metadata.finalizers[]": (claimed(), claimed(meta={"finalizers": ["x.io/y"]}), RULE),
    "volumeClaimPolicies[].templates[].metadata.labels": (claimed(), claimed(meta={"labels": {"x": "y"}}), RULE),
    "volumeClaimPolicies[].templates[].metadata.name": (claimed(), claimed(meta={"name": "other"}), RULE),
    "volumeClaimPolicies[].templates[].metadata.namespace": (claimed(), claimed(meta={"namespace": ""}), RULE),
    "volumeClaimPolicies[].templates[].spec": (claimed(), claimed(spec={"accessModes": ["ReadOnlyMany"]}), RULE),
    "volumeClaimPolicies[].templates[].status": (claimed(), claimed(status={"phase": "Bound"}), RULE),
}
COMING_AND_GOING: dict[str, Tree] = {
    "coordinator": {"coordinator": {"replicatedJob": "a"}} | INDEXED,
    "failurePolicy": failing(),
    "startupPolicy": {"startupPolicy": {"startupPolicyOrder": "InOrder"}},
    "suspend": {"suspend": True},
    "ttlSecondsAfterFinished": {"ttlSecondsAfterFinished": 1},
    "volumeClaimPolicies": claimed(),
    "network": {},
    "successPolicy": {},
}


def leaves(schema: Tree, path: str = "") -> Iterator[str]:
    """Yield the fields of a schema that hold no further ones; those of a list end in []."""
    if "items" in schema:
        yield from leaves(schema["items"], f"{path}[]")
    elif path in OPAQUE or not schema.get("properties"):
        yield path
    else:
        for name, each in schema["properties"].items():
            yield from leaves(each, f"{path}.{name}" if path else name)


def test_every_field_is_here() -> None:
    """The tables name each field of the spec."""
    schema = expanded(
        crd_of(next(kind for kind in OWNED_KINDS if kind.kind == "JobSet"))["spec"]["versions"][0]["schema"]["openAPIV3Schema"], EmbeddedTypes()
    )
    spec = schema["properties"]["spec"]
    assert sorted(leaves(spec)) == sorted(FIELDS)
    assert set(COMING_AND_GOING) == set(spec["properties"]) - {"managedBy", "replicatedJobs"}


def overlaid(tree: Any, change: Any) -> Any:
    """Return a tree with changes, by key and by place in lists that are as long."""
    if isinstance(tree, dict) and isinstance(change, dict):
        return {**tree, **{key: overlaid(tree.get(key), value) for key, value in change.items()}}
    if isinstance(tree, list) and isinstance(change, list) and len(tree) == len(change):
        return [overlaid(*pair) for pair in zip(tree, change, strict=True)]
    return change


def answer(given: Tree, change: Tree, *removed: str) -> str:
    """Return what the API server says to an update of a new JobSet's spec, "" if it takes it."""
    said: list[str] = []

    async def run(cluster: SimCluster) -> None:
        meta = {"name": "js", "namespace": "default"}
        spec = {"replicatedJobs": [role()], **given}
        made = await cluster.client.create(JOB_SETS, {"apiVersion": JOB_SETS.api_version, "kind": "JobSet", "metadata": meta, "spec": spec})
        kept = {name: value for name, value in made["spec"].items() if name not in removed}
        wanted = {**made, "spec": overlaid(kept, change)}
        try:
            updated = await cluster.client.update(JOB_SETS, wanted)
        except ApiStatus as refusal:
            said.append(str(refusal))
        else:
            said.append("")
            assert updated["metadata"]["generation"] == 2
            assert not set(removed) & set(updated["spec"])

    simulate(run, controllers=("namespaces", "jobset"))
    return said[0]


@pytest.mark.parametrize("field", FIELDS)
def test_updates(field: str) -> None:
    """A field is open, frozen by the schema's rule, or by the webhook."""
    before, after, expected = FIELDS[field]
    said = answer(before, after)
    assert said == "" if expected == OPEN else f": {expected}" in said, said


@pytest.mark.parametrize("field", COMING_AND_GOING)
def test_any_field_but_the_roles_and_the_manager_can_be_taken_away(field: str) -> None:
    """The rules of the schema compare a field with itself: one that goes is not compared."""
    assert answer(COMING_AND_GOING[field], {}, field) == ""


@pytest.mark.parametrize("field", sorted(set(COMING_AND_GOING) - {"network", "startupPolicy", "successPolicy"}))
def test_and_come(field: str) -> None:
    """Nor is one that comes; the network and two policies are there by default."""
    given = COMING_AND_GOING[field]
    assert answer({name: value for name, value in given.items() if name != field}, {field: given[field]}) == ""


def test_dependencies_are_the_webhooks() -> None:
    """A role's dependencies, which the schema's rule would let go, stay with their role."""
    assert WEBHOOK in answer(depending(), {"replicatedJobs": [{}, {}, {"dependsOn": None}]})
    assert WEBHOOK in answer({"replicatedJobs": [role("a"), role("b"), role("c")]}, depending())
