"""What the controllers of sets, autoscalers and endpoints count about themselves, as /metrics shows it."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.api.resources import DAEMON_SETS, DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, NODES, PODS, REPLICA_SETS, SERVICES, Resource
from kubemini.api.trees import Tree
from kubemini.controllers.autoscaling.metrics import Monitor
from kubemini.controllers.endpoints.metrics import Metrics as EndpointMetrics
from kubemini.controllers.endpoints.planning import Identity, Plan, Ports, identity, plan
from kubemini.controllers.replica_set.metrics import Metrics as SetMetrics
from kubemini.runtime.consistency import StatusWrites
from kubemini.runtime.env import to_stamp
from kubemini.runtime.telemetry import Family, Gauge, Histogram
from kubemini.sim.cluster import SimCluster, simulate
from tests.unit.controllers.test_autoscaling import CONTROLLERS, Run, autoscaler


def families(cluster: SimCluster) -> dict[str, Family]:
    """Return the families of all controllers by name."""
    return {family.name: family for loop in cluster.managers["kube-controller-manager"].controllers for family in loop.families}


def samples(family: Family) -> dict[tuple[str, ...], float]:
    """Return a family's samples, of a histogram how many values there were."""
    if isinstance(family, Gauge):
        return dict(family.read())
    if isinstance(family, Histogram):
        return {labels: sum(counts) for labels, (counts, _) in family.samples.items()}
    return dict(family.samples.items())


# ----------------------------------------------------------------------------------------------- autoscalers

HPA = "horizontal_pod_autoscaler_controller_"


def test_looks_are_counted_by_what_they_did() -> None:
    """A load that comes scales up: so say the look, the metric, and the wanted size, until the autoscaler goes."""

    async def scenario(cluster: SimCluster) -> None:
        run = Run(cluster)
        await run.begin(autoscaler(), cpu="300m")
        await cluster.env.sleep(17)
        found = families(cluster)
        up = ("scale_up", "none")
        assert samples(found[HPA + "reconciliations_total"]) == {up: 1}
        assert samples(found[HPA + "reconciliation_duration_seconds"]) == {up: 1}
        assert samples(found[HPA + "metric_computation_total"]) == {(*up, "Resource"): 1}
        assert samples(found[HPA + "metric_computation_duration_seconds"]) == {(*up, "Resource"): 1}
        assert samples(found[HPA + "desired_replicas"]) == {("default", "h"): 4}
        assert samples(found[HPA + "num_horizontal_pod_autoscalers"]) == {(): 1}
        await run.client.delete(HORIZONTAL_POD_AUTOSCALERS, "h", namespace="default")
        await cluster.settle()
        assert samples(found[HPA + "desired_replicas"]) == {}
        assert samples(found[HPA + "num_horizontal_pod_autoscalers"]) == {(): 0}

    simulate(scenario, seed=1, controllers=CONTROLLERS)


def test_looks_are_counted_by_what_went_wrong() -> None:
    """No metrics and no target are internal errors; a version that is none is the autoscaler's own."""

    async def scenario(cluster: SimCluster) -> None:
        run = Run(cluster)
        lost, odd = autoscaler("lost"), autoscaler("odd")
        lost["spec"]["scaleTargetRef"] = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "none"}
        odd["spec"]["scaleTargetRef"] = {"apiVersion": "a/b/c", "kind": "Deployment", "name": "d"}
        await run.begin(autoscaler(), lost, odd)
        await cluster.env.sleep(17)
        found = families(cluster)
        assert samples(found[HPA + "reconciliations_total"]) == {("none", "internal"): 2, ("none", "spec"): 1}
        assert (await run.status("odd"))["conditions"][0]["message"] == (
            "the HPA controller was unable to get the target's current scale: unexpected GroupVersion string: a/b/c"
        )
        assert samples(found[HPA + "metric_computation_total"]) == {("none", "internal", "Resource"): 1}
        assert samples(found[HPA + "desired_replicas"]) == {}

    simulate(scenario, seed=1, controllers=CONTROLLERS)


def test_every_family_of_autoscalers_has_its_labels() -> None:
    """Names and labels are upstream's."""
    assert {each.name.removeprefix(HPA): each.labels for each in Monitor(lambda: 0).all()} == {
        "reconciliations_total": ("action", "error"),
        "reconciliation_duration_seconds": ("action", "error"),
        "metric_computation_total": ("action", "error", "metric_type"),
        "metric_computation_duration_seconds": ("action", "error", "metric_type"),
        "desired_replicas": ("namespace", "hpa_name"),
        "num_horizontal_pod_autoscalers": (),
    }


# ----------------------------------------------------------------------------------------------- sets


def aged(name: str, age: float, *, ready: bool = True) -> Tree:
    """Return a pod that is `age` seconds old at 1000."""
    conditions = [{"type": "Ready", "status": str(ready), "lastTransitionTime": to_stamp(1000 - age)}]
    return {
        "metadata": {"name": name, "uid": name, "creationTimestamp": to_stamp(1000 - age)},
        "status": {"phase": "Running", "conditions": conditions},
    }


def test_the_ages_of_victims_are_measured_by_the_youngest() -> None:
    """Each Ready victim counts with its age over that of the youngest Ready pod, in whole numbers."""
    metrics = SetMetrics()
    old, young, unready = aged("old", 700), aged("young", 200), aged("unready", 100, ready=False)
    metrics.chose([old, unready], [old, young, unready], 1000.0)
    counts, (total,) = metrics.ratios.samples[()]
    assert (counts, total) == ([0, 0, 0, 0, 1, 0, 0], 3.0)
    metrics.chose([unready], [unready], 1000.0)
    assert sum(metrics.ratios.samples[()][0]) == 1


def test_only_a_choice_is_measured() -> None:
    """Scaling down to some pods chooses, scaling to none does not; syncs on a stale cache are told apart."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.settle()
        await cluster.client.create(NODES, {"metadata": {"name": "n-0"}, "spec": {}})
        template = {"metadata": {"labels": {"app": "x"}}, "spec": {"nodeName": "n-0", "containers": [{"name": "c", "image": "i"}]}}
        owner = {
            "metadata": {"name": "r", "namespace": "default"},
            "spec": {"replicas": 4, "selector": {"matchLabels": {"app": "x"}}, "template": template},
        }
        await cluster.client.create(REPLICA_SETS, owner)
        await cluster.env.sleep(60)
        ratios = families(cluster)["replicaset_controller_sorting_deletion_age_ratio"]
        seen = []
        for replicas in (3, 0):
            await cluster.client.patch(REPLICA_SETS, "r", {"spec": {"replicas": replicas}}, namespace="default")
            await cluster.settle()
            seen.append(samples(ratios))
        assert seen == [{(): 1}, {(): 1}]
        assert "replicaset_controller_stale_sync_skips_total" in families(cluster)

    simulate(scenario, seed=1, controllers=CONTROLLERS)


@pytest.mark.parametrize(
    "loop, resource, change",
    [("replicaset", REPLICA_SETS, {"replicas": 2}), ("daemonset", DAEMON_SETS, {"template": {"spec": {"nodeSelector": None}}})],
)
def test_a_set_is_not_looked_at_before_its_last_status_shows(loop: str, resource: Resource, change: Tree) -> None:
    """A pass on a cache that is behind the controller's own status write is skipped and counted; the set still comes to rest."""

    async def scenario(cluster: SimCluster) -> Any:
        client = cluster.client
        await cluster.settle()
        (ahead,) = (each for each in cluster.managers["kube-controller-manager"].controllers if each.name == loop)
        writes: StatusWrites = vars(ahead)["_status_writes"]
        template = {"metadata": {"labels": {"app": "x"}}, "spec": {"nodeSelector": {"a": "b"}, "containers": [{"name": "c", "image": "i"}]}}
        owner = {"metadata": {"name": "r", "namespace": "default"}, "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": template}}
        await client.create(NODES, {"metadata": {"name": "n"}})
        made = await client.create(resource, owner)
        await cluster.settle()
        before = len(await client.list(PODS, "default"))
        writes.note("default/r", {"metadata": {"resourceVersion": str(int(made["metadata"]["resourceVersion"]) + 1000)}})
        await client.patch(resource, "r", {"spec": change}, namespace="default")
        await cluster.env.sleep(1)
        skipped = samples(families(cluster)[f"{loop}_controller_stale_sync_skips_total"])
        kept = len(await client.list(PODS, "default"))
        writes.forget("default/r")
        await cluster.settle()
        return skipped, kept - before, len(await client.list(PODS, "default")) > before

    assert simulate(scenario, seed=1, controllers=CONTROLLERS + ",daemon-set") == ({("apps", resource.plural): 1}, 0, True)


# ----------------------------------------------------------------------------------------------- endpoints

SLICES = "endpoint_slice_controller_"


def endpoints(*numbers: int) -> dict[tuple[Any, ...], Tree]:
    """Return endpoints by identity."""
    made = [
        {"addresses": [f"10.0.{number // 250}.{number % 250}"], "targetRef": {"namespace": "default", "name": f"p{number}"}} for number in numbers
    ]
    return {identity(each): each for each in made}


def planned(existing: list[Tree], *numbers: int) -> Plan:
    """Return the plan for endpoints of one set of ports."""
    key: Ports = (("", "TCP", 80, None),)
    ports = [{"name": "", "protocol": "TCP", "port": 80}]
    skeleton = {"metadata": {"labels": {}, "ownerReferences": [{"uid": "u"}]}, "addressType": "IPv4", "endpoints": [], "ports": []}
    wanted: dict[Ports, dict[Identity, Tree]] = {key: endpoints(*numbers)} if numbers else {}
    return plan(existing, wanted, {key: ports} if numbers else {}, owner_uid="u", skeleton=skeleton, labels={})


def slice_of(name: str, *numbers: int) -> Tree:
    """Return a slice that holds endpoints."""
    meta = {"name": name, "labels": {}, "ownerReferences": [{"uid": "u"}]}
    return {
        "metadata": meta,
        "addressType": "IPv4",
        "endpoints": list(endpoints(*numbers).values()),
        "ports": [{"name": "", "protocol": "TCP", "port": 80}],
    }


@pytest.mark.parametrize(
    "before, after, moved, held",
    [
        ((), (1, 2), (2, 0), (2, 1)),
        ((1, 2, 3), (3, 4), (1, 2), (2, 1)),
        ((1, 2), (1, 2), (0, 0), (2, 1)),
        ((1,), tuple(range(250)), (249, 0), (250, 3)),
        ((1, 2), (), (0, 0), (0, 1)),
    ],
)
def test_a_plan_counts_what_it_moves(before: tuple[int, ...], after: tuple[int, ...], moved: tuple[int, int], held: tuple[int, int]) -> None:
    """Endpoints that come and go in slices of wanted ports, and how many there are in how many slices; without any, one empty slice."""
    step = planned([slice_of("a", *before)] if before else [], *after)
    assert (step.added, step.removed) == moved
    assert list(step.held.values()) == [held]


def test_slices_that_could_be_fewer_are_told() -> None:
    """Half empty slices count as they are, and as they would be if they were full."""
    metrics = EndpointMetrics()
    metrics.planned("default/s", planned([slice_of("a", *range(60)), slice_of("b", *range(100, 130))], *range(60), *range(100, 130)), "PreferClose")
    found = {each.name.removeprefix(SLICES): each for each in metrics.all()}
    gauges = {name: samples(each) for name, each in found.items() if isinstance(each, Gauge)}
    assert gauges == {
        "endpoints_desired": {(): 90},
        "num_endpoint_slices": {(): 2},
        "desired_endpoint_slices": {(): 1},
        "services_count_by_traffic_distribution": {("PreferClose",): 1},
    }
    metrics.forget("default/s")
    assert [samples(each) for each in metrics.all() if isinstance(each, Gauge)] == [{(): 0}, {(): 0}, {(): 0}, {}]


def test_syncs_and_changes_of_slices_are_counted() -> None:
    """A Service whose pods come and go: syncs, slices created and updated, by topology and distribution, until the Service goes."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.settle()
        await cluster.client.create(NODES, {"metadata": {"name": "n-0"}, "spec": {}})
        service = {
            "metadata": {"name": "s", "namespace": "default"},
            "spec": {"selector": {"app": "x"}, "ports": [{"port": 80}], "trafficDistribution": "PreferClose"},
        }
        await cluster.client.create(SERVICES, service)
        await cluster.settle()
        found = families(cluster)
        pod = {
            "metadata": {"name": "p", "namespace": "default", "labels": {"app": "x"}},
            "spec": {"nodeName": "n-0", "containers": [{"name": "c", "image": "i"}]},
        }
        await cluster.client.create(PODS, pod)
        await cluster.settle()
        changes = samples(found[SLICES + "changes"])
        assert (changes["create",], changes["update",] >= 1) == (1, True)
        assert samples(found[SLICES + "syncs"])["success",] >= 2
        assert samples(found[SLICES + "endpointslices_changed_per_sync"]).keys() == {("Disabled", "PreferClose")}
        assert samples(found[SLICES + "endpoints_desired"]) == {(): 1}
        (added,) = (each for name, each in found.items() if name == SLICES + "endpoints_added_per_sync")
        assert isinstance(added, Histogram)
        assert added.samples[()][1] == [1.0]
        await cluster.client.delete(SERVICES, "s", namespace="default")
        await cluster.settle()
        assert samples(found[SLICES + "num_endpoint_slices"]) == {(): 0}

    simulate(scenario, seed=1, controllers=f"{CONTROLLERS},endpoints,garbage-collector")


def test_families_are_shown_once() -> None:
    """No two controllers count under one name, ReplicationControllers included."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.settle()
        names = [family.name for loop in cluster.managers["kube-controller-manager"].controllers for family in loop.families]
        assert len(names) == len(set(names))
        assert await cluster.client.list(DEPLOYMENTS) == []

    simulate(scenario, seed=1)
