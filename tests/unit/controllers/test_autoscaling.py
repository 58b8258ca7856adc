"""Autoscalers: sizes from metrics, windows and rates, and whole runs under virtual time."""

from typing import Any

import pytest

from kubemini.api.resources import CUSTOM_RESOURCE_DEFINITIONS, DEPLOYMENTS, EVENTS, HORIZONTAL_POD_AUTOSCALERS, NODES, PODS, Resource
from kubemini.controllers.autoscaling.behavior import History, limited, limited_by, stabilized, stabilized_by
from kubemini.controllers.autoscaling.replicas import Tolerance, by_average, by_utilization, by_value, by_value_per_pod, requests
from kubemini.controllers.autoscaling.sources import MetricError
from kubemini.machinery.errors import Invalid
from kubemini.machinery.pod_usage import container_usage, pod_usage
from kubemini.runtime.env import to_stamp
from kubemini.runtime.metrics import MetricQuery
from kubemini.sim.cluster import SimCluster, simulate

NEAR = Tolerance()


def pod(
    name: str, *, phase: str = "Running", ready: bool = True, started: float = 0.0, turned: float = 100.0, deleted: bool = False
) -> dict[str, Any]:
    """Return a pod that asks for 1000m."""
    conditions = [{"type": "Ready", "status": str(ready), "lastTransitionTime": to_stamp(turned)}]
    meta = {"name": name, **({"deletionTimestamp": "t"} if deleted else {})}
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}
    return {"metadata": meta, "spec": spec, "status": {"phase": phase, "startTime": to_stamp(started), "conditions": conditions}}


def pods(count: int) -> list[dict[str, Any]]:
    """Return settled pods."""
    return [pod(f"p{index}") for index in range(count)]


def utilization(some: list[dict[str, Any]], metrics: dict[str, int], target: int = 50, current: int | None = None, now: float = 1000.0) -> int:
    """Return the size for a share of requests."""
    size = len(some) if current is None else current
    return by_utilization(some, metrics, requests(some, "", "cpu"), target, size, NEAR, "cpu", now).replicas


def test_sizes_follow_the_ratio_to_the_target() -> None:
    """Rounded up, and unchanged where the ratio is near enough to 1."""
    some = pods(3)
    assert utilization(some, {"p0": 300, "p1": 500, "p2": 700}, target=30) == 5
    assert utilization(some, {"p0": 510, "p1": 530, "p2": 540}) == 3
    assert utilization(some, {"p0": 100, "p1": 100, "p2": 100}) == 1


def test_pods_without_metrics_damp_a_change() -> None:
    """Growing takes them as idle, shrinking as using all; where that turns the direction, nothing changes."""
    some = pods(4)
    assert utilization(some, {"p0": 1000, "p1": 1000}) == 4
    assert utilization(some, {"p0": 1000, "p1": 1000, "p2": 1000}) == 6
    assert utilization(some, {"p0": 100, "p1": 100, "p2": 100}) == 3
    assert utilization(some, {"p0": 100, "p1": 100}) == 4


def test_unready_pods_count_only_against_growing() -> None:
    """Pods that have not settled are idle where the size would grow, and left out where it would not."""
    some = [*pods(2), pod("young", ready=False, started=900.0)]
    assert utilization(some, {"p0": 900, "p1": 900, "young": 900}) == 4
    assert utilization(some, {"p0": 100, "p1": 100, "young": 900}) == 1
    # Unready from its start on, and one that was ready once and counts
    assert utilization([*pods(2), pod("never", ready=False, started=0.0, turned=10.0)], {"p0": 900, "p1": 900, "never": 900}) == 4
    assert utilization([*pods(2), pod("once", ready=False, started=0.0, turned=400.0)], {"p0": 900, "p1": 900, "once": 900}) == 6


def test_failed_and_leaving_pods_are_ignored() -> None:
    """And pending ones are unready."""
    some = [*pods(2), pod("failed", phase="Failed"), pod("leaving", deleted=True)]
    assert utilization(some, {each["metadata"]["name"]: 1000 for each in some}) == 4
    assert utilization([*pods(2), pod("pending", phase="Pending")], {"p0": 1000, "p1": 1000}, current=3) == 4


def test_what_cannot_be_calculated_is_told() -> None:
    """No pods, no metrics of settled pods, no requests."""
    with pytest.raises(MetricError, match="no pods returned by selector"):
        by_average([], {"x": 1}, 1, 1, NEAR, "", 0.0)
    with pytest.raises(MetricError, match="did not receive metrics for targeted pods"):
        by_average([pod("p", phase="Pending")], {"p": 1}, 1, 1, NEAR, "", 0.0)
    silent = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}
    with pytest.raises(MetricError, match="missing request for cpu in container c of Pod p"):
        requests([silent], "", "cpu")


def test_one_value_for_all_pods() -> None:
    """A value is met by ready pods in proportion, from nothing too; an average by the value alone."""
    assert by_value(pods(4), 300, 100, 4, NEAR).replicas == 12
    assert by_value([*pods(2), pod("x", ready=False)], 300, 100, 3, NEAR).replicas == 6
    assert by_value([], 300, 100, 0, NEAR).replicas == 3
    assert by_value(pods(4), 105, 100, 4, NEAR).replicas == 4
    found = by_value_per_pod(900, 100, 4, NEAR)
    assert (found.replicas, found.usage) == (9, 225)
    assert by_value_per_pod(410, 100, 4, NEAR).replicas == 4


def test_tolerances_may_differ_by_direction() -> None:
    """A tolerance for growing and one for shrinking."""
    uneven = Tolerance(down=0.0, up=0.5)
    assert by_average(pods(2), {"p0": 140, "p1": 140}, 100, 2, uneven, "", 0.0).replicas == 2
    assert by_average(pods(2), {"p0": 49, "p1": 49}, 100, 2, uneven, "", 0.0).replicas == 1


# ----------------------------------------------------------------------------------------------- windows and rates


def test_without_a_behavior_shrinking_waits_five_minutes() -> None:
    """The highest recommendation of the last 300 seconds counts; growing is at most doubling, or to 4."""
    history = History([(0.0, 10)])
    assert stabilized(history, 2, 100.0) == 10
    assert stabilized(history, 3, 301.0) == 3
    assert stabilized(history, 1, 401.0) == 3
    assert limited(1, 30, 1, 100) == limited(1, 4, 1, 100).__class__(
        4, "ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate"
    )
    assert (limited(10, 30, 1, 100).replicas, limited(10, 30, 1, 15).reason, limited(5, 0, 2, 9).reason) == (20, "TooManyReplicas", "TooFewReplicas")
    assert limited(5, 6, 1, 9).reason == "DesiredWithinRange"


RULES: dict[str, Any] = {
    "scaleUp": {
        "stabilizationWindowSeconds": 60,
        "policies": [{"type": "Pods", "value": 2, "periodSeconds": 60}, {"type": "Percent", "value": 50, "periodSeconds": 60}],
    },
    "scaleDown": {"stabilizationWindowSeconds": 120, "policies": [{"type": "Percent", "value": 10, "periodSeconds": 60}]},
}


def test_windows_hold_growing_and_shrinking() -> None:
    """Growing takes the lowest recommendation of its window, shrinking the highest of its own."""
    history = History([(0.0, 5)])
    assert (stabilized_by(history, RULES, 5, 9, 30.0).replicas, stabilized_by(history, RULES, 5, 9, 61.0).replicas) == (5, 9)
    assert stabilized_by(history, RULES, 9, 2, 100.0).replicas == 9
    assert stabilized_by(history, RULES, 9, 2, 200.0).replicas == 2


def test_policies_limit_the_rate() -> None:
    """The most that a policy allows counts, or the least with Min; what changed within a period counts against it."""
    history = History()
    assert limited_by(history, RULES, 10, 30, 1, 100, 0.0).replicas == 15
    assert limited_by(history, {**RULES, "scaleUp": {**RULES["scaleUp"], "selectPolicy": "Min"}}, 10, 30, 1, 100, 0.0).replicas == 12
    assert limited_by(history, {**RULES, "scaleUp": {**RULES["scaleUp"], "selectPolicy": "Disabled"}}, 10, 30, 1, 100, 0.0).replicas == 10
    history.scaled(0.0, 10, 15, RULES)
    assert limited_by(history, RULES, 15, 30, 1, 100, 30.0).replicas == 15
    assert limited_by(history, RULES, 15, 30, 1, 100, 61.0).replicas == 23
    down = History()
    assert limited_by(down, RULES, 20, 1, 1, 100, 0.0) == limited_by(down, RULES, 20, 18, 1, 100, 0.0).__class__(
        18, "ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate"
    )
    down.scaled(0.0, 20, 18, RULES)
    assert limited_by(down, RULES, 18, 1, 1, 100, 30.0).replicas == 18
    assert limited_by(History(), RULES, 20, 1, 19, 100, 0.0).reason == "TooFewReplicas"


def test_usage_is_read_from_annotations() -> None:
    """Of the whole pod, of one container, or of the others in equal shares."""
    containers = [{"name": "a"}, {"name": "b"}, {"name": "c"}]
    annotated = {
        "metadata": {"annotations": {"kubemini.dev/cpu-usage": "900m", "kubemini.dev/cpu-usage.a": "500m"}},
        "spec": {"containers": containers},
    }
    assert pod_usage(annotated, "cpu") == 900 * 10**6
    assert [container_usage(annotated, name, "cpu") for name in "abc"] == [500 * 10**6, 200 * 10**6, 200 * 10**6]
    assert (pod_usage(annotated, "memory"), container_usage(annotated, "a", "memory")) == (None, None)


# ----------------------------------------------------------------------------------------------- whole runs

CONTROLLERS = "service-accounts,nodes,kubelet,replica-set,deployment,autoscaling,customresources"


def deployment(replicas: int, annotations: dict[str, str]) -> dict[str, Any]:
    """Return a Deployment whose pods ask for 100m."""
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}]
    template = {"metadata": {"labels": {"app": "x"}, "annotations": annotations}, "spec": {"nodeName": "n-0", "containers": containers}}
    return {
        "metadata": {"name": "d", "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "x"}}, "template": template},
    }


def autoscaler(name: str = "h", **spec: Any) -> dict[str, Any]:
    """Return an autoscaler of the Deployment."""
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"maxReplicas": 10, "scaleTargetRef": reference, **spec}}


class Run:
    """Shorthand for what is asked in every run."""

    def __init__(self, cluster: SimCluster) -> None:
        self.cluster = cluster
        self.client = cluster.client

    async def begin(self, *autoscalers: dict[str, Any], replicas: int = 2, cpu: str = "") -> None:
        """Make a node, the Deployment and autoscalers."""
        await self.cluster.settle()
        await self.client.create(NODES, {"metadata": {"name": "n-0"}, "spec": {}})
        await self.client.create(DEPLOYMENTS, deployment(replicas, {"kubemini.dev/cpu-usage": cpu} if cpu else {}))
        for each in autoscalers:
            await self.client.create(HORIZONTAL_POD_AUTOSCALERS, each)

    async def size(self) -> int:
        """Return the size of the Deployment."""
        found: int = (await self.client.get(DEPLOYMENTS, "d", "default"))["spec"]["replicas"]
        return found

    async def status(self, name: str = "h") -> dict[str, Any]:
        """Return the status of an autoscaler."""
        found: dict[str, Any] = (await self.client.get(HORIZONTAL_POD_AUTOSCALERS, name, "default"))["status"]
        return found

    async def conditions(self, name: str = "h") -> dict[str, tuple[str, str]]:
        """Return status and reason of each condition."""
        return {each["type"]: (each["status"], each["reason"]) for each in (await self.status(name))["conditions"]}

    async def reasons(self, name: str = "h") -> set[str]:
        """Return the reasons of the events about an autoscaler."""
        return {each["reason"] for each in await self.client.list(EVENTS, "default", field_selector=f"involvedObject.name={name}")}


def test_a_load_comes_and_goes() -> None:
    """The size doubles step by step to what the load needs, stays while it lasts without any polling, and falls five minutes after it went."""

    async def scenario(cluster: SimCluster) -> None:
        run = Run(cluster)
        await run.begin(autoscaler(), cpu="300m")
        await cluster.env.sleep(17)
        assert await run.size() == 4
        assert await run.conditions() == {
            "AbleToScale": ("True", "SucceededRescale"),
            "ScalingActive": ("True", "ValidMetricFound"),
            "ScalingLimited": ("True", "ScaleUpLimit"),
        }
        assert await cluster.settle()
        assert await run.size() == 10
        status = await run.status()
        assert (status["currentReplicas"], status["desiredReplicas"]) == (10, 10)
        assert status["currentMetrics"][0]["resource"]["current"] == {"averageUtilization": 300, "averageValue": "300m"}
        assert (await run.conditions())["ScalingLimited"] == ("True", "TooManyReplicas")
        for each in await run.client.list(PODS, "default"):
            idle = {"metadata": {"annotations": {"kubemini.dev/cpu-usage": "8m"}}}
            await run.client.patch(PODS, each["metadata"]["name"], idle, namespace="default")
        await cluster.env.sleep(280)
        assert await run.size() == 10
        assert (await run.conditions())["AbleToScale"] == ("True", "ScaleDownStabilized")
        assert await cluster.settle()
        assert await run.size() == 1

    simulate(scenario, seed=1, controllers=CONTROLLERS)


def test_a_program_gives_all_kinds_of_metrics() -> None:
    """Of several metrics the largest size counts; the status shows them all."""

    def program(query: MetricQuery) -> Any:
        return {
            "Resource": 0.05,
            "ContainerResource": "40m",
            "Pods": 7,
            "Object": 12,
            "External": [10, 20.0],
        }[query.type]

    def metric(kind: str, field: str, **source: Any) -> dict[str, Any]:
        return {"type": kind, field: source}

    metrics = [
        metric("Resource", "resource", name="cpu", target={"type": "Utilization", "averageUtilization": 50}),
        metric("ContainerResource", "containerResource", name="cpu", container="c", target={"type": "AverageValue", "averageValue": "20m"}),
        metric("Pods", "pods", metric={"name": "rps"}, target={"type": "AverageValue", "averageValue": "7"}),
        metric(
            "Object",
            "object",
            metric={"name": "hits"},
            describedObject={"apiVersion": "v1", "kind": "Node", "name": "n-0"},
            target={"type": "Value", "value": "4"},
        ),
        metric(
            "External",
            "external",
            metric={"name": "queue", "selector": {"matchLabels": {"a": "b"}}},
            target={"type": "AverageValue", "averageValue": "10"},
        ),
    ]

    async def scenario(cluster: SimCluster) -> None:
        run = Run(cluster)
        await run.begin(autoscaler(metrics=metrics))
        await cluster.env.sleep(16)
        # Object: 12 / 4 × 2 pods; without a behavior at most to 4
        assert await run.size() == 4
        shown = [
            each.get(field, {}).get("current")
            for each, field in zip(
                (await run.status())["currentMetrics"], ("resource", "containerResource", "pods", "object", "external"), strict=True
            )
        ]
        assert shown == [
            {"averageUtilization": 50, "averageValue": "50m"},
            {"averageValue": "40m"},
            {"averageValue": "7"},
            {"value": "12"},
            {"averageValue": "15"},
        ]
        events = await run.client.list(EVENTS, "default", field_selector="involvedObject.name=h,reason=SuccessfulRescale")
        assert [each["message"] for each in events] == ["New size: 4; reason: Node metric hits above target"]

    simulate(scenario, seed=1, controllers=CONTROLLERS, metrics=program)


def test_a_behavior_paces_growth() -> None:
    """One pod every half minute, as the policy says."""
    rules = {"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 30}]}}

    async def scenario(cluster: SimCluster) -> None:
        run = Run(cluster)
        await run.begin(autoscaler(behavior=rules), cpu="1")
        sizes = []
        for _ in range(4):
            await cluster.env.sleep(30.5)
            sizes.append(await run.size())
        assert sizes == [3, 4, 5, 6]

    simulate(scenario, seed=1, controllers=CONTROLLERS)


def test_trouble_is_told() -> None:
    """No metrics, no target, no kind, two autoscalers on the same pods, and a target of size 0."""

    async def scenario(cluster: SimCluster) -> None:
        run = Run(cluster)
        lost = autoscaler("lost")
        lost["spec"]["scaleTargetRef"] = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "none"}
        odd = autoscaler("odd")
        odd["spec"]["scaleTargetRef"] = {"apiVersion": "x.y/v1", "kind": "Thing", "name": "none"}
        await run.begin(autoscaler(), lost, odd)
        await cluster.env.sleep(16)
        assert await run.conditions() == {"AbleToScale": ("True", "SucceededGetScale"), "ScalingActive": ("False", "FailedGetResourceMetric")}
        (active,) = [each for each in (await run.status())["conditions"] if each["type"] == "ScalingActive"]
        assert active["message"] == (
            "the HPA was unable to compute the replica count: failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics from "
            "resource metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)"
        )
        assert await run.reasons() == {"FailedGetResourceMetric", "FailedComputeMetricsReplicas"}
        assert (await run.status("lost"))["conditions"][0]["message"] == (
            'the HPA controller was unable to get the target\'s current scale: deployments.apps "none" not found'
        )
        assert (await run.status("odd"))["conditions"][0]["message"] == (
            'the HPA controller was unable to get the target\'s current scale: no matches for kind "Thing" in group "x.y"'
        )
        await run.client.create(HORIZONTAL_POD_AUTOSCALERS, autoscaler("twin"))
        await cluster.env.sleep(40)
        assert (await run.conditions("twin"))["ScalingActive"] == ("False", "AmbiguousSelector")
        await run.client.delete(HORIZONTAL_POD_AUTOSCALERS, "twin", namespace="default")
        await run.client.patch(DEPLOYMENTS, "d", {"spec": {"replicas": 0}}, namespace="default")
        await cluster.env.sleep(40)
        assert (await run.conditions())["ScalingActive"] == ("False", "ScalingDisabled")

    simulate(scenario, seed=1, controllers=CONTROLLERS)


def test_limits_hold_whatever_metrics_say() -> None:
    """A size out of the limits is brought back without a look at metrics."""

    async def scenario(cluster: SimCluster) -> None:
        run = Run(cluster)
        await run.begin(autoscaler(minReplicas=3, maxReplicas=4), replicas=9)
        await cluster.env.sleep(16)
        assert await run.size() == 4
        await run.client.patch(DEPLOYMENTS, "d", {"spec": {"replicas": 1}}, namespace="default")
        await cluster.env.sleep(16)
        assert await run.size() == 3
        events = await run.client.list(EVENTS, "default", field_selector="involvedObject.name=h,reason=SuccessfulRescale")
        assert {each["message"] for each in events} == {
            "New size: 4; reason: Current number of replicas above Spec.MaxReplicas",
            "New size: 3; reason: Current number of replicas below Spec.MinReplicas",
        }

    simulate(scenario, seed=1, controllers=CONTROLLERS)


def test_custom_kinds_with_a_scale_are_scaled() -> None:
    """A kind of a CustomResourceDefinition is scaled through its Scale; the pods of its selector are what counts."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"},
        },
    }
    names = {"plural": "gangs", "singular": "gang", "kind": "Gang", "listKind": "GangList"}
    definition = {"metadata": {"name": "gangs.x.dev"}, "spec": {"group": "x.dev", "scope": "Namespaced", "names": names, "versions": [version]}}
    gangs = Resource("x.dev", "v1", "gangs", "Gang")

    async def scenario(cluster: SimCluster) -> None:
        run = Run(cluster)
        scaled = autoscaler()
        scaled["spec"]["scaleTargetRef"] = {"apiVersion": "x.dev/v1", "kind": "Gang", "name": "g"}
        await run.begin(scaled, cpu="160m")
        await run.client.create(CUSTOM_RESOURCE_DEFINITIONS, definition)
        await cluster.env.sleep(1)
        gang = await run.client.create(
            gangs, {"apiVersion": "x.dev/v1", "kind": "Gang", "metadata": {"name": "g", "namespace": "default"}, "spec": {"replicas": 2}}
        )
        await run.client.update_status(gangs, {**gang, "status": {"replicas": 2, "selector": "app=x"}})
        await cluster.env.sleep(40)
        assert (await run.client.get(gangs, "g", "default"))["spec"]["replicas"] == 4

    simulate(scenario, seed=1, controllers=CONTROLLERS)


def test_with_its_gate_a_target_sleeps_and_is_woken() -> None:
    """HPAScaleToZero: without work the last pod goes too, and work brings pods back; a target that somebody else put to sleep stays asleep."""
    queue = {"type": "External", "external": {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "10"}}}

    async def scenario(cluster: SimCluster) -> None:
        run = Run(cluster)

        async def waiting(count: int) -> None:
            body = {"metadata": {"annotations": {"kubemini.dev/metric.queue": str(count)}}}
            await run.client.patch(HORIZONTAL_POD_AUTOSCALERS, "h", body, namespace="default")
            assert await cluster.settle()

        await run.begin(autoscaler(minReplicas=0, metrics=[queue]))
        await waiting(30)
        assert await run.size() == 3
        assert (await run.conditions())["ScaledToZero"] == ("False", "NotScaledToZero")
        await waiting(0)
        assert await run.size() == 0
        assert (await run.conditions())["ScaledToZero"] == ("True", "ScaledToZero")
        assert (await run.conditions())["ScalingActive"] == ("True", "ValidMetricFound")
        await waiting(20)
        assert await run.size() == 2
        assert (await run.conditions())["ScaledToZero"] == ("False", "NotScaledToZero")
        await run.client.patch(DEPLOYMENTS, "d", {"spec": {"replicas": 0}}, namespace="default")
        await waiting(50)
        assert await run.size() == 0
        assert (await run.conditions())["ScalingActive"] == ("False", "ScalingDisabled")

    simulate(scenario, seed=1, controllers=CONTROLLERS, feature_gates={"HPAScaleToZero": True})


def test_without_its_gate_a_minimum_of_zero_is_refused() -> None:
    """And no condition speaks of zero."""

    async def scenario(cluster: SimCluster) -> None:
        run = Run(cluster)
        with pytest.raises(Invalid, match="must be greater than or equal to 1"):
            await run.begin(autoscaler(minReplicas=0))
        await run.client.create(HORIZONTAL_POD_AUTOSCALERS, autoscaler("g"))
        await cluster.env.sleep(20)
        assert "ScaledToZero" not in await run.conditions("g")

    simulate(scenario, seed=1, controllers=CONTROLLERS)
