"""What the API server makes of HorizontalPodAutoscalers, in both versions."""

from __future__ import annotations

import orjson
import pytest

from kubemini.api.trees import Tree
from kubemini.machinery.errors import Invalid
from kubemini.server.kinds.workloads.hpa_conversion import to_v1, to_v2
from tests.unit.workloads.bench import Bench

TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
PODS = {"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": "100"}}}


def autoscaler(**spec: object) -> Tree:
    """Return a v2 autoscaler."""
    given = {"maxReplicas": 3, "scaleTargetRef": TARGET, **spec}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"}, "spec": given}


def why(error: pytest.ExceptionInfo[Invalid]) -> list[str]:
    """Return the field errors of a refusal."""
    return [f"{each['field']}: {each['message']}" for each in error.value.details["causes"]]


def cpu(share: int) -> Tree:
    """Return a metric of CPU utilization."""
    return {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": share}}}


def test_an_unknown_type_of_metric_is_told_twice(bench: Bench) -> None:
    """Once for the type and once for the source that it should have; what a container does not have is refused."""
    unknown = 'spec.metrics[0].type: Unsupported value: "Odd": supported values: "ContainerResource", "External", "Object", "Pods", "Resource"'
    part = {"container": "c", "name": "pods", "target": {"type": "Utilization", "averageUtilization": 1}}
    found: list[list[str]] = []
    for metric in ({"type": "Odd"}, {"type": "ContainerResource", "containerResource": part}):
        with pytest.raises(Invalid) as refusal:
            bench.create(autoscaler(metrics=[metric]))
        found.append(why(refusal))
    assert found == [[unknown] * 2, ['spec.metrics[0].containerResource.name: Invalid value: "pods": must be a standard resource for containers']]


def test_defaults(bench: Bench) -> None:
    """Without metrics 80 % of CPU is meant; the status starts with nothing seen."""
    made = bench.create(autoscaler())
    assert (made["spec"]["minReplicas"], made["spec"]["metrics"]) == (1, [cpu(80)])
    assert made["status"] == {"currentMetrics": None, "desiredReplicas": 0}


@pytest.mark.parametrize(
    "spec,text",
    [
        ({"minReplicas": 0}, "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1"),
        ({"minReplicas": 5}, "spec.maxReplicas: Invalid value: 3: must be greater than or equal to `minReplicas`"),
        ({"scaleTargetRef": {"kind": "Deployment", "name": "a/b"}}, "spec.scaleTargetRef.name: Invalid value: \"a/b\": may not contain '/'"),
        ({"metrics": [{"type": "Pods"}]}, "spec.metrics[0].pods: Required value: must populate information for the given metric source"),
        (
            {"metrics": [{**PODS, "type": "Odd"}]},
            'spec.metrics[0].type: Unsupported value: "Odd": supported values: "ContainerResource", "External", "Object"',
        ),
        (
            {"metrics": [{**PODS, "resource": cpu(1)["resource"]}]},
            "spec.metrics[0].resource: Forbidden: must populate the given metric source only",
        ),
        (
            {"metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}]},
            "spec.metrics[0].resource.target.averageUtilization: Required value: must set either a target raw value or a target utilization",
        ),
        (
            {"metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Half", "averageValue": "0"}}}]},
            'spec.metrics[0].resource.target.averageValue: Invalid value: "0": must be positive',
        ),
        (
            {"behavior": {"scaleUp": {"stabilizationWindowSeconds": 3601}}},
            "spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600",
        ),
        (
            {"behavior": {"scaleDown": {"policies": [{"type": "Pods", "value": 0, "periodSeconds": 1801}]}}},
            "spec.behavior.scaleDown.policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to 1800",
        ),
        (
            {"behavior": {"scaleDown": {"selectPolicy": "Most"}}},
            'spec.behavior.scaleDown.selectPolicy: Unsupported value: "Most": supported values: "Disabled", "Max", "Min"',
        ),
    ],
)
def test_refusals(bench: Bench, spec: Tree, text: str) -> None:
    """Bounds, references, metrics and behavior are checked, each at its own path."""
    with pytest.raises(Invalid) as error:
        bench.create(autoscaler(**spec))
    assert any(each.startswith(text) for each in why(error)), why(error)


def test_v1_shows_the_cpu_share_and_annotates_the_rest(bench: Bench) -> None:
    """Through v1 an autoscaler has its CPU target as a number, and other metrics and the behavior in annotations."""
    bench.create(autoscaler(metrics=[PODS, cpu(70)], behavior={"scaleDown": {"stabilizationWindowSeconds": 60}}))
    seen = bench.get("HorizontalPodAutoscaler", "a", "autoscaling/v1")
    assert seen["apiVersion"] == "autoscaling/v1"
    assert seen["spec"] == {"maxReplicas": 3, "minReplicas": 1, "scaleTargetRef": TARGET, "targetCPUUtilizationPercentage": 70}
    assert seen["status"] == {"currentReplicas": 0, "desiredReplicas": 0}
    annotations = seen["metadata"]["annotations"]
    assert orjson.loads(annotations["autoscaling.alpha.kubernetes.io/metrics"]) == [
        {"type": "Pods", "pods": {"metricName": "rps", "targetAverageValue": "100"}}
    ]
    behavior = orjson.loads(annotations["autoscaling.alpha.kubernetes.io/behavior"])
    assert behavior["ScaleDown"]["StabilizationWindowSeconds"] == 60


def test_v1_creates_are_stored_as_v2(bench: Bench) -> None:
    """A v1 autoscaler reads back through v2 with its CPU target as a metric; without one 80 % is meant."""
    old = {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"}}
    bench.create({**old, "spec": {"maxReplicas": 3, "scaleTargetRef": TARGET, "targetCPUUtilizationPercentage": 55}})
    assert bench.get("HorizontalPodAutoscaler", "a")["spec"]["metrics"] == [cpu(55)]
    bench.create({**old, "metadata": {"name": "b"}, "spec": {"maxReplicas": 3, "scaleTargetRef": TARGET}})
    assert bench.get("HorizontalPodAutoscaler", "b")["spec"]["metrics"] == [cpu(80)]


METRICS = [
    PODS,
    {
        "type": "Object",
        "object": {
            "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "s"},
            "metric": {"name": "hits", "selector": {"matchLabels": {"a": "b"}}},
            "target": {"type": "Value", "value": "2k"},
        },
    },
    {"type": "External", "external": {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "30"}}},
    {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}},
    {
        "type": "ContainerResource",
        "containerResource": {"name": "cpu", "container": "app", "target": {"type": "Utilization", "averageUtilization": 60}},
    },
]


@pytest.mark.parametrize("metric", METRICS, ids=lambda each: each["type"])
def test_nothing_is_lost_through_v1(metric: Tree) -> None:
    """An autoscaler that is read and written back through v1 is the same."""
    condition = {"type": "AbleToScale", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "ReadyForNewScale", "message": "ok"}
    behavior = {"scaleUp": {"selectPolicy": "Max", "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}], "stabilizationWindowSeconds": 0}}
    obj = autoscaler(minReplicas=1, metrics=[metric, cpu(70)], behavior=behavior)
    obj["metadata"] = {"name": "a", "annotations": {"mine": "x"}}
    obj["status"] = {
        "observedGeneration": 1,
        "desiredReplicas": 2,
        "currentReplicas": 1,
        "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 10, "averageValue": "10m"}}}],
        "conditions": [condition],
    }
    seen = to_v1(obj)
    assert seen["status"]["currentCPUUtilizationPercentage"] == 10
    assert to_v2(seen) == obj


def test_annotations_that_cannot_be_read_are_passed_over() -> None:
    """A broken round-trip annotation of a v1 object is dropped, and the rest is converted."""
    obj = {
        "apiVersion": "autoscaling/v1",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "a", "annotations": {"autoscaling.alpha.kubernetes.io/metrics": "{", "mine": "x"}},
        "spec": {"maxReplicas": 1, "scaleTargetRef": TARGET, "targetCPUUtilizationPercentage": 50},
    }
    new = to_v2(obj)
    assert (new["spec"]["metrics"], new["metadata"]["annotations"]) == ([cpu(50)], {"mine": "x"})
