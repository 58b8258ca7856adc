"""Defaults as data: where they hold, and that they are of the types they stand in."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.api.schemas.defaults import PLAIN, RULES
from kubemini.api.trees import Tree
from kubemini.machinery.schema.builtin import builtin_schemas


def spec_of(group: str, kind: str, spec: Tree, version: str = "v1") -> Tree:
    """Return the decoded spec of an object."""
    clean: Tree = builtin_schemas().codec(group, version, kind).decode({"spec": spec}).tree["spec"]
    return clean


def test_every_default_has_its_field() -> None:
    """No default names a type or field that the data lack (of kinds that only other versions have, none is checked)."""
    schemas = builtin_schemas()
    known = set(schemas.names())
    for place in [*PLAIN, *RULES]:
        owner, _, field = place.rpartition(".")
        name = place
        if owner in known and field in schemas.type(owner).fields:
            name = schemas.type(owner).fields[field].type
        if name.rpartition(".")[0] in {each.rpartition(".")[0] for each in known}:
            fields = schemas.type(name).fields if name in known else {}
            wanted = {*PLAIN.get(place, {}), *(each for rule in RULES.get(place, ()) for each in (*rule.fields, *rule.when, *rule.alone))}
            assert wanted <= fields.keys() or name not in known, place


@pytest.mark.parametrize(
    "strategy, clean",
    [
        ({}, {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}),
        ({"rollingUpdate": {"maxSurge": 1}}, {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "25%"}}),
        ({"type": "Recreate"}, {"type": "Recreate"}),
        ({"type": "", "rollingUpdate": None}, {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}),
    ],
)
def test_deployment_strategy(strategy: Tree, clean: Tree) -> None:
    """A rolling update gets its parameters, another strategy none."""
    assert spec_of("apps", "Deployment", {"strategy": strategy})["strategy"] == clean


@pytest.mark.parametrize(
    "strategy, clean",
    [
        ({}, {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}),
        ({"type": "RollingUpdate"}, {"type": "RollingUpdate"}),
        ({"type": "OnDelete"}, {"type": "OnDelete"}),
        ({"rollingUpdate": {"partition": 3}}, {"type": "RollingUpdate", "rollingUpdate": {"partition": 3}}),
    ],
)
def test_stateful_set_strategy(strategy: Tree, clean: Tree) -> None:
    """Parameters are added only where the type was absent too."""
    assert spec_of("apps", "StatefulSet", {"updateStrategy": strategy})["updateStrategy"] == clean


def test_claim_templates_of_a_stateful_set_say_their_kind() -> None:
    """Claims inside a StatefulSet carry apiVersion and kind, and a phase."""
    claim = spec_of("apps", "StatefulSet", {"volumeClaimTemplates": [{"metadata": {"name": "data"}}]})["volumeClaimTemplates"][0]
    assert claim == {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {"resources": {}, "volumeMode": "Filesystem"},
        "status": {"phase": "Pending"},
    }


def test_jobs_are_defaulted_and_their_templates_in_cron_jobs_are_not() -> None:
    """A CronJob's job template stays as it was written."""
    job = spec_of("batch", "Job", {})
    assert (job["backoffLimit"], job["completionMode"], job["podReplacementPolicy"], job["suspend"]) == (
        6,
        "NonIndexed",
        "TerminatingOrFailed",
        False,
    )
    assert "completions" not in job
    cron = spec_of("batch", "CronJob", {})
    assert cron["jobTemplate"]["spec"].keys() == {"template"}
    assert (cron["concurrencyPolicy"], cron["failedJobsHistoryLimit"], cron["successfulJobsHistoryLimit"]) == ("Allow", 1, 3)


@pytest.mark.parametrize(
    "given, field, value",
    [
        ({"backoffLimitPerIndex": 0}, "backoffLimit", 2**31 - 1),
        ({"backoffLimitPerIndex": 0, "backoffLimit": 1}, "backoffLimit", 1),
        ({"podFailurePolicy": {"rules": []}}, "podReplacementPolicy", "Failed"),
    ],
)
def test_defaults_of_a_job_that_follow_from_others(given: Tree, field: str, value: Any) -> None:
    """The back-off limit and the replacement policy depend on their neighbours."""
    assert spec_of("batch", "Job", given)[field] == value


def test_service_links_are_a_pods_affair() -> None:
    """Pods get enableServiceLinks, templates do not."""
    assert spec_of("", "Pod", {})["enableServiceLinks"] is True
    assert "enableServiceLinks" not in spec_of("apps", "ReplicaSet", {"template": {"spec": {}}})["template"]["spec"]


def test_a_volume_without_a_source_is_empty() -> None:
    """A name alone means emptyDir; any source means itself, with its defaults."""
    volumes = spec_of("", "Pod", {"volumes": [{"name": "a"}, {"name": "b", "hostPath": {"path": "/"}}, {"name": "c", "configMap": {}}]})["volumes"]
    assert volumes == [
        {"name": "a", "emptyDir": {}},
        {"name": "b", "hostPath": {"path": "/", "type": ""}},
        {"name": "c", "configMap": {"defaultMode": 420}},
    ]


def test_autoscaling_behaviour_is_completed() -> None:
    """Any behaviour gets rules for both directions, and no metrics mean CPU."""
    spec = spec_of("autoscaling", "HorizontalPodAutoscaler", {"behavior": {"scaleUp": {"selectPolicy": "Min"}}}, "v2")
    assert spec["behavior"]["scaleUp"]["selectPolicy"] == "Min"
    assert spec["behavior"]["scaleUp"]["stabilizationWindowSeconds"] == 0
    assert spec["behavior"]["scaleDown"] == {"policies": [{"periodSeconds": 15, "type": "Percent", "value": 100}], "selectPolicy": "Max"}
    assert spec["metrics"][0]["resource"]["target"] == {"averageUtilization": 80, "type": "Utilization"}
    assert "behavior" not in spec_of("autoscaling", "HorizontalPodAutoscaler", {}, "v2")


@pytest.mark.parametrize("egress, types", [([], ["Ingress"]), ([{}], ["Ingress", "Egress"])])
def test_policy_types_of_a_network_policy(egress: list[Tree], types: list[str]) -> None:
    """Rules for traffic out make it a policy for that too."""
    assert spec_of("networking.k8s.io", "NetworkPolicy", {"podSelector": {}, "egress": egress})["policyTypes"] == types


def test_subjects_know_their_group() -> None:
    """Users and groups are of RBAC's group, service accounts of none."""
    binding = {
        "subjects": [{"kind": "User", "name": "u"}, {"kind": "Group", "name": "g"}, {"kind": "ServiceAccount", "name": "s"}],
        "roleRef": {"kind": "Role"},
    }
    clean = builtin_schemas().codec("rbac.authorization.k8s.io", "v1", "RoleBinding").decode(binding).tree
    assert [each.get("apiGroup") for each in clean["subjects"]] == ["rbac.authorization.k8s.io", "rbac.authorization.k8s.io", None]
    assert clean["roleRef"]["apiGroup"] == "rbac.authorization.k8s.io"


def test_declared_defaults_come_with_the_fields() -> None:
    """What OpenAPI declares as a default is filled: ports speak TCP, a gRPC probe has an empty service."""
    container = {"name": "c", "ports": [{"containerPort": 1}], "livenessProbe": {"grpc": {"port": 1}}}
    clean = spec_of("", "Pod", {"containers": [container]})["containers"][0]
    assert clean["ports"] == [{"containerPort": 1, "protocol": "TCP"}]
    assert clean["livenessProbe"]["grpc"] == {"port": 1, "service": ""}
