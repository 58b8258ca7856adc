"""What the API server makes of Deployments, ReplicaSets, StatefulSets, DaemonSets and their kin."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
import yaml

from kubemini.api.trees import Tree
from kubemini.machinery.errors import Invalid
from kubemini.server.kinds.workloads.statefulset import FROZEN_TEXT, StatefulSetStrategy, with_claim_volumes
from tests.unit.workloads.bench import Bench

TEMPLATE: Tree = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}


def controller(kind: str, api_version: str = "apps/v1", **spec: Any) -> Tree:
    """Return a small object of a kind with a pod template."""
    given = {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE, **spec}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, "spec": given}


def why(error: pytest.ExceptionInfo[Invalid]) -> list[str]:
    """Return the field errors of a refusal."""
    return [f"{each['field']}: {each['message']}" for each in error.value.details["causes"]]


@pytest.mark.parametrize(
    "kind,status",
    [
        ("Deployment", {}),
        ("ReplicaSet", {"replicas": 0}),
        ("StatefulSet", {"replicas": 0, "availableReplicas": 0}),
        ("DaemonSet", {"currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0}),
    ],
)
def test_status_of_a_new_object(bench: Bench, kind: str, status: Tree) -> None:
    """A new object has the status in which nothing was counted, whatever it brings."""
    made = bench.create({**controller(kind), "status": {"observedGeneration": 9}})
    assert made["status"] == status
    assert made["metadata"]["generation"] == 1


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "DaemonSet"])
def test_the_selector_is_frozen(bench: Bench, kind: str) -> None:
    """The selector of Deployments, ReplicaSets and DaemonSets may not change, even together with the template."""
    bench.create(controller(kind))
    labels = {"app": "a", "more": "x"}
    with pytest.raises(Invalid) as error:
        bench.patch(kind, "a", {"spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}}}})
    assert why(error) == ['spec.selector: Invalid value: {"matchLabels":{"app":"a","more":"x"}}: field is immutable']


@pytest.mark.parametrize(
    "kind,also", [("Deployment", ": invalid label selector"), ("ReplicaSet", ": invalid label selector"), ("StatefulSet", ""), ("DaemonSet", None)]
)
@pytest.mark.parametrize(
    "requirement,text",
    [
        ({"key": "app", "operator": "In"}, "values: Required value: must be specified when `operator` is 'In' or 'NotIn'"),
        ({"key": "app", "operator": "Is"}, 'operator: Invalid value: "Is": not a valid selector operator'),
    ],
)
def test_a_selector_that_cannot_be_read_is_not_held_against_the_template(
    bench: Bench, kind: str, also: str | None, requirement: Tree, text: str
) -> None:
    """It is wrong as a whole too, but for a DaemonSet's; the template, wrong or not, is looked at by DaemonSets only."""
    selector = {"matchExpressions": [requirement]}
    with pytest.raises(Invalid) as error:
        bench.create(controller(kind, selector=selector, template={"metadata": {"labels": {"app": "b"}}, "spec": {"containers": []}}))
    whole = f"spec.selector: Invalid value: {orjson.dumps(selector).decode()}{also}"
    expected = [f"spec.selector.matchExpressions[0].{text}", "spec.template.spec.containers: Required value" if also is None else whole]
    assert why(error) == expected


@pytest.mark.parametrize(
    "spec,text",
    [
        ({"updateStrategy": {"type": "Blue"}}, 'spec.updateStrategy: Invalid value: {"Type":"Blue","RollingUpdate":null}: must be'),
        (
            {"updateStrategy": {"type": "OnDelete", "rollingUpdate": {"partition": 2}}},
            'spec.updateStrategy.rollingUpdate: Invalid value: {"Partition":2,"MaxUnavailable":null}: only allowed',
        ),
    ],
)
def test_a_bad_strategy_is_shown_under_internal_names(bench: Bench, spec: Tree, text: str) -> None:
    """Errors show Go's own types, with all their fields."""
    with pytest.raises(Invalid) as error:
        bench.create(controller("StatefulSet", **spec))
    assert why(error)[0].startswith(text)


@pytest.mark.parametrize("kind,field", [("Deployment", "strategy"), ("DaemonSet", "updateStrategy")])
def test_a_bad_strategy_of_other_kinds_is_shown_so_too(bench: Bench, kind: str, field: str) -> None:
    """With the numbers of a rolling update."""
    spec: Tree = {field: {"type": "Blue", "rollingUpdate": {"maxSurge": "5%", "maxUnavailable": 0}}}
    with pytest.raises(Invalid) as error:
        bench.create(controller(kind, **spec))
    shown = '{"Type":"Blue","RollingUpdate":{"MaxUnavailable":0,"MaxSurge":"5%"}}'
    assert why(error)[0].startswith(f"spec.{field}: Unsupported value: {shown}: supported values: ")


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"])
def test_pods_must_run_for_ever(bench: Bench, kind: str) -> None:
    """A template that restarts otherwise than Always, or has a deadline, is refused."""
    pod = {**TEMPLATE["spec"], "restartPolicy": "OnFailure", "activeDeadlineSeconds": 5}
    with pytest.raises(Invalid) as error:
        bench.create(controller(kind, template={**TEMPLATE, "spec": pod}))
    owner = "ReplicaSet" if kind == "Deployment" else kind
    assert why(error) == [
        'spec.template.spec.restartPolicy: Unsupported value: "OnFailure": supported values: "Always"',
        f"spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in {owner} is not Supported",
    ]


def test_the_generation_of_a_deployment_follows_annotations(bench: Bench) -> None:
    """A changed annotation raises the generation of a Deployment; a changed label does not."""
    bench.create(controller("Deployment"))
    assert bench.patch("Deployment", "a", {"metadata": {"labels": {"x": "y"}}})["metadata"]["generation"] == 1
    assert bench.patch("Deployment", "a", {"metadata": {"annotations": {"x": "y"}}})["metadata"]["generation"] == 2


@pytest.mark.parametrize(
    "numbers,text",
    [
        ({"maxSurge": 0, "maxUnavailable": 0}, "maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0"),
        ({"maxSurge": "x"}, 'maxSurge: Invalid value: "x": a valid percent string must be a numeric string'),
        ({"maxSurge": -1}, "maxSurge: Invalid value: -1: must be greater than or equal to 0"),
        ({"maxUnavailable": "101%"}, 'maxUnavailable: Invalid value: "101%": must not be greater than 100%'),
    ],
)
def test_surge_and_unavailability_are_checked(bench: Bench, numbers: Tree, text: str) -> None:
    """Numbers of a rolling update are counts or percentages, not both zero, and no more than all pods may be unavailable."""
    with pytest.raises(Invalid) as error:
        bench.create(controller("Deployment", strategy={"rollingUpdate": numbers}))
    assert why(error)[0].startswith(f"spec.strategy.rollingUpdate.{text}")


def test_a_surge_above_all_is_fine(bench: Bench) -> None:
    """maxSurge may exceed 100 %."""
    made = bench.create(controller("Deployment", strategy={"rollingUpdate": {"maxSurge": "200%"}}))
    assert made["spec"]["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "200%", "maxUnavailable": "25%"}}


@pytest.mark.parametrize(
    "numbers,text",
    [
        ({"maxSurge": 1, "maxUnavailable": 1}, "maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero"),
        ({"maxSurge": 0, "maxUnavailable": 0}, "maxUnavailable: Required value: cannot be 0 when maxSurge is 0"),
    ],
)
def test_a_daemon_set_surges_or_goes_without(bench: Bench, numbers: Tree, text: str) -> None:
    """Exactly one of maxSurge and maxUnavailable of a DaemonSet is not zero."""
    with pytest.raises(Invalid) as error:
        bench.create(controller("DaemonSet", updateStrategy={"rollingUpdate": numbers}))
    assert why(error) == [f"spec.updateStrategy.rollingUpdate.{text}"]


def test_a_daemon_set_counts_its_templates(bench: Bench) -> None:
    """The deprecated annotation counts changes of the template, and cannot be taken away or set."""
    key = "deprecated.daemonset.template.generation"
    assert bench.create(controller("DaemonSet"))["metadata"]["annotations"] == {key: "1"}
    assert bench.patch("DaemonSet", "a", {"metadata": {"annotations": {key: "7"}}})["metadata"]["annotations"] == {key: "1"}
    assert bench.patch("DaemonSet", "a", {"metadata": {"annotations": None}})["metadata"]["annotations"] == {key: "1"}
    changed = bench.patch("DaemonSet", "a", {"spec": {"template": {"metadata": {"labels": {"x": "y"}}}}})
    assert (changed["metadata"]["annotations"], changed["metadata"]["generation"]) == ({key: "2"}, 2)


def test_a_replication_controller_takes_labels_from_its_template(bench: Bench) -> None:
    """Selector and labels of a ReplicationController come from the template where they are not given."""
    made = bench.create({"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "a"}, "spec": {"template": TEMPLATE}})
    assert (made["spec"]["selector"], made["metadata"]["labels"], made["spec"]["replicas"]) == ({"app": "a"}, {"app": "a"}, 1)


@pytest.mark.parametrize(
    "spec,expected",
    [
        ({}, {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}),
        ({"type": "RollingUpdate"}, {"type": "RollingUpdate"}),
        ({"type": "RollingUpdate", "rollingUpdate": {}}, {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}),
        ({"rollingUpdate": {"partition": 3}}, {"type": "RollingUpdate", "rollingUpdate": {"partition": 3}}),
        ({"type": "OnDelete"}, {"type": "OnDelete"}),
        ({"rollingUpdate": {"maxUnavailable": 2}}, {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}),
    ],
)
def test_update_strategy_of_a_stateful_set(bench: Bench, spec: Tree, expected: Tree) -> None:
    """The partition is filled in except where a type was given without numbers; maxUnavailable is dropped while its gate is off."""
    assert bench.create(controller("StatefulSet", updateStrategy=spec))["spec"]["updateStrategy"] == expected


def test_most_of_a_stateful_set_is_frozen(bench: Bench) -> None:
    """Only the listed fields of a StatefulSet may change, and one error at `spec` says which."""
    bench.create(controller("StatefulSet", serviceName="s"))
    bench.patch("StatefulSet", "a", {"spec": {"replicas": 3, "minReadySeconds": 1, "ordinals": {"start": 1}, "revisionHistoryLimit": 3}})
    with pytest.raises(Invalid) as error:
        bench.patch("StatefulSet", "a", {"spec": {"serviceName": "other"}})
    assert why(error) == [f"spec: Forbidden: {FROZEN_TEXT}"]


def test_names_of_stateful_sets_are_labels() -> None:
    """The name of a StatefulSet goes into hostnames, so it is a DNS label."""
    strategy = StatefulSetStrategy()
    assert strategy.validate_name("a-1") is None
    assert strategy.validate_name("a-", prefix=True) is None
    assert strategy.validate_name("a.b") == "must not contain dots"


def test_mounts_may_name_claim_templates(bench: Bench) -> None:
    """A volume mount is found among the claim templates; one that is found nowhere is refused."""
    claims = [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]
    pod = {"containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": "data", "mountPath": "/d"}]}]}
    template = {**TEMPLATE, "spec": pod}
    with pytest.raises(Invalid, match=r'volumeMounts\[0\]\.name: Not found: "data"'):
        bench.create(controller("StatefulSet", template=template))
    made = bench.create(controller("StatefulSet", template=template, volumeClaimTemplates=claims))
    (claim,) = made["spec"]["volumeClaimTemplates"]
    assert (claim["kind"], claim["spec"]["volumeMode"], claim["status"]) == ("PersistentVolumeClaim", "Filesystem", {"phase": "Pending"})
    assert "volumes" not in made["spec"]["template"]["spec"]


def test_a_claim_template_replaces_a_volume_of_its_name() -> None:
    """For validation a claim template stands in place of a template volume of the same name."""
    template = {"spec": {"volumes": [{"name": "data", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}]}}
    volumes = with_claim_volumes(template, [{"metadata": {"name": "data"}}])["spec"]["volumes"]
    assert volumes == [{"name": "tmp", "emptyDir": {}}, {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]


@pytest.mark.parametrize(
    "kind,status,text",
    [
        ("StatefulSet", {"replicas": 1, "readyReplicas": 2}, "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas"),
        (
            "StatefulSet",
            {"replicas": 2, "availableReplicas": 1},
            "status.availableReplicas: Invalid value: 1: cannot be greater than status.readyReplicas",
        ),
        ("Deployment", {"replicas": 1, "updatedReplicas": 2}, "status.updatedReplicas: Invalid value: 2: cannot be greater than status.replicas"),
        ("ReplicaSet", {"fullyLabeledReplicas": 1}, "status.fullyLabeledReplicas: Invalid value: 1: cannot be greater than status.replicas"),
        ("DaemonSet", {"numberReady": -1}, "status.numberReady: Invalid value: -1: must be greater than or equal to 0"),
    ],
)
def test_counts_of_a_status_fit_together(bench: Bench, kind: str, status: Tree, text: str) -> None:
    """Parts are not greater than the whole, and nothing is negative."""
    bench.create(controller(kind))
    with pytest.raises(Invalid) as error:
        bench.patch(kind, "a", {"status": status}, subresource="status")
    assert text in why(error)


def test_collisions_are_only_counted_up(bench: Bench) -> None:
    """The collision count of a status does not fall, nor vanish."""
    bench.create(controller("StatefulSet"))
    bench.patch("StatefulSet", "a", {"status": {"collisionCount": 2}}, subresource="status")
    for count in (1, None):
        with pytest.raises(Invalid, match=r"status\.collisionCount: Invalid value: \d: cannot be decremented"):
            bench.patch("StatefulSet", "a", {"status": {"collisionCount": count}}, subresource="status")


def test_scale_moves_the_parent(bench: Bench) -> None:
    """A written Scale changes spec.replicas and the generation, and reads back with the selector as text."""
    bench.create(controller("ReplicaSet"))
    scale = bench.patch("ReplicaSet", "a", {"spec": {"replicas": 4}}, subresource="scale")
    assert (scale["kind"], scale["spec"], scale["status"]) == ("Scale", {"replicas": 4}, {"replicas": 0, "selector": "app=a"})
    parent = bench.get("ReplicaSet", "a")
    assert (parent["spec"]["replicas"], parent["metadata"]["generation"]) == (4, 2)


def test_data_of_a_revision_is_written_once(bench: Bench) -> None:
    """The data of a ControllerRevision is an object that never changes; its number may."""
    revision = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "a"}, "revision": 1, "data": {"spec": 1}}
    bench.create(revision)
    assert bench.patch("ControllerRevision", "a", {"revision": 5})["revision"] == 5
    with pytest.raises(Invalid, match=r"data: Invalid value: .*field is immutable"):
        bench.patch("ControllerRevision", "a", {"data": {"spec": 2}})
    with pytest.raises(Invalid, match="data: Required value: data is mandatory"):
        bench.create({**{key: value for key, value in revision.items() if key != "data"}, "metadata": {"name": "b"}})


def test_pod_templates_are_checked(bench: Bench) -> None:
    """A PodTemplate keeps the rules of pod templates and counts its changes."""
    manifest = yaml.safe_load("{apiVersion: v1, kind: PodTemplate, metadata: {name: a}, template: {spec: {containers: [{name: c}]}}}")
    with pytest.raises(Invalid, match=r"template\.spec\.containers\[0\]\.image: Required value"):
        bench.create(manifest)
    bench.create({**manifest, "template": TEMPLATE})
    changed = bench.patch("PodTemplate", "a", {"template": {"metadata": {"labels": {"x": "y"}}}})
    assert changed["metadata"]["generation"] == 2


@pytest.mark.parametrize(
    "spec,text",
    [
        ({"minAvailable": 1, "maxUnavailable": 1}, "minAvailable and maxUnavailable cannot be both set"),
        ({"minAvailable": "150%"}, 'spec.minAvailable: Invalid value: "150%": must not be greater than 100%'),
        ({"maxUnavailable": -1}, "spec.maxUnavailable: Invalid value: -1: must be greater than or equal to 0"),
        (
            {"unhealthyPodEvictionPolicy": "Never"},
            'spec.unhealthyPodEvictionPolicy: Unsupported value: "Never": supported values: "AlwaysAllow", "IfHealthyBudget"',
        ),
        ({"selector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}}, "not a valid selector operator"),
    ],
)
def test_disruption_budgets_are_checked(bench: Bench, spec: Tree, text: str) -> None:
    """A budget names one number, a legal policy and a legal selector."""
    with pytest.raises(Invalid) as error:
        bench.create({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "a"}, "spec": spec})
    assert text in why(error)[0]


def test_conditions_of_a_budget_are_checked(bench: Bench) -> None:
    """Conditions of a budget's status are complete, and each type is there once."""
    bench.create({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "a"}, "spec": {}})
    good = {"type": "DisruptionAllowed", "status": "True", "reason": "SufficientPods", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    bench.patch("PodDisruptionBudget", "a", {"status": {"conditions": [good]}}, subresource="status")
    with pytest.raises(Invalid) as error:
        bench.patch("PodDisruptionBudget", "a", {"status": {"conditions": [good, {**good, "status": "Yes", "reason": "1"}]}}, subresource="status")
    fields = [each.partition(": ")[0] for each in why(error)]
    assert fields == ["status.conditions[1].type", "status.conditions[1].status", "status.conditions[1].reason"]


def test_the_scale_of_a_replication_controller(bench: Bench) -> None:
    """The plain selector of a ReplicationController shows in its Scale too."""
    bench.create({"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "a"}, "spec": {"template": TEMPLATE}})
    scale = bench.patch("ReplicationController", "a", {"spec": {"replicas": 2}}, subresource="scale")
    assert (scale["spec"]["replicas"], scale["status"]["selector"]) == (2, "app=a")
