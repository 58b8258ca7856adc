"""Pods with devices and volumes under random load and faults: no device is given twice, a pod has one claim for each that it asks for, and nothing is left of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from kubemini.api.resources import (
    DEVICE_CLASSES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    PRIORITY_CLASSES,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    STORAGE_CLASSES,
)
from kubemini.sim.cluster import SimCluster, simulate
from kubemini.sim.faults import PERFECT, Faults
from kubemini.testing.invariants import Checker
from kubemini.testing.invariants.scheduler import scheduler_invariants
from tests.property.timed_steps import PROCESSES, ROUGH, take

Tree = dict[str, Any]
CONTROLLERS = ("namespaces", "service-accounts", "garbage-collector", "nodes", "scheduler", "kubelet", "volumes", "resource-claims")
DRIVER = "gpu.example.com"
KINDS = ("plain", "one", "two", "shared", "local", "late", "only")


@dataclass(frozen=True)
class Plan:
    """A run: pods that come (kind, priority), and what happens to the cluster when."""

    pods: tuple[tuple[str, str], ...]
    steps: tuple[tuple[int, str, int], ...]


PLANS = st.builds(
    Plan,
    pods=st.lists(st.tuples(st.sampled_from(KINDS), st.sampled_from(("low", "high"))), min_size=1, max_size=10).map(tuple),
    steps=st.lists(
        st.tuples(st.integers(0, 60), st.sampled_from(("delete", "cordon", "uncordon", "restart", "slice", "volume")), st.integers(0, 20)), max_size=6
    ).map(tuple),
)


def slice_of(name: str, number: int, devices: int) -> Tree:
    """Return the devices of a node."""
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": f"n-{number}", "pool": pool, "devices": [{"name": f"g{each}"} for each in range(devices)]}
    return {"metadata": {"name": name}, "spec": spec}


def volume(name: str, number: int) -> Tree:
    """Return a volume that is on one node."""
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [f"n-{number}"]}]}
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "local",
        "persistentVolumeReclaimPolicy": "Retain",
        "local": {"path": "/d"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
    }
    return {"metadata": {"name": name}, "spec": spec}


def claim(name: str, class_: str, mode: str = "ReadWriteOnce") -> Tree:
    """Return a claim for a volume."""
    spec = {"accessModes": [mode], "storageClassName": class_, "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


def asking(count: int) -> Tree:
    """Return the spec of a claim for devices."""
    exactly = {"deviceClassName": DRIVER, "allocationMode": "ExactCount", "count": count}
    return {"devices": {"requests": [{"name": "g", "exactly": exactly}]}}


def pod(number: int, kind: str, priority: str) -> Tree:
    """Return a pod of some kind."""
    container: Tree = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    spec: Tree = {"containers": [container], "priorityClassName": priority, "restartPolicy": "Never"}
    if kind in ("one", "two", "shared"):
        source = {"resourceClaimName": "shared"} if kind == "shared" else {"resourceClaimTemplateName": kind}
        spec["resourceClaims"] = [{"name": "d", **source}]
        container["resources"]["claims"] = [{"name": "d"}]
    elif kind != "plain":
        name = {"local": f"local-{number % 3}", "late": f"late-{number}", "only": "only"}[kind]
        spec["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]
    return {"metadata": {"name": f"p-{number}", "namespace": "default"}, "spec": spec}


async def prepare(cluster: SimCluster, plan: Plan) -> None:
    """Make nodes, devices, volumes and their classes."""
    client = cluster.client
    await cluster.settle(60.0)
    for name, value in (("low", 1), ("high", 100)):
        await client.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})
    for number in range(3):
        status = {"allocatable": {"cpu": "4", "memory": "16Gi", "pods": "5"}}
        await client.create(
            NODES, {"metadata": {"name": f"n-{number}", "labels": {"kubernetes.io/hostname": f"n-{number}"}}, "spec": {}, "status": status}
        )
        await client.create(PERSISTENT_VOLUMES, volume(f"v-{number}", number))
        await client.create(PERSISTENT_VOLUME_CLAIMS, claim(f"local-{number}", "local"))
    selector = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    await client.create(DEVICE_CLASSES, {"metadata": {"name": DRIVER}, "spec": {"selectors": [selector]}})
    for number in range(2):
        await client.create(RESOURCE_SLICES, slice_of(f"s-{number}", number, number + 1))
    for name, count in (("one", 1), ("two", 2)):
        await client.create(RESOURCE_CLAIM_TEMPLATES, {"metadata": {"name": name, "namespace": "default"}, "spec": {"spec": asking(count)}})
    await client.create(RESOURCE_CLAIMS, {"metadata": {"name": "shared", "namespace": "default"}, "spec": asking(1)})
    for name, provisioner in (("local", "kubernetes.io/no-provisioner"), ("late", "kubemini.dev/simulated")):
        await client.create(STORAGE_CLASSES, {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"})
    await client.create(PERSISTENT_VOLUME_CLAIMS, claim("only", "late", "ReadWriteOncePod"))
    for number, (kind, _) in enumerate(plan.pods):
        if kind == "late":
            await client.create(PERSISTENT_VOLUME_CLAIMS, claim(f"late-{number}", "late"))


async def step(cluster: SimCluster, what: str, which: int) -> None:
    """Let one thing happen."""
    if what == "delete":
        await cluster.delete_pod("default", f"p-{which}")
    elif what in ("cordon", "uncordon"):
        await cluster.client.patch(NODES, f"n-{which % 3}", {"spec": {"unschedulable": what == "cordon" or None}})
    elif what == "slice":
        await cluster.client.create(RESOURCE_SLICES, slice_of(f"x-{which}", which % 3, 1))
    elif what == "volume":
        await cluster.client.create(PERSISTENT_VOLUMES, volume(f"x-{which}", which % 3))
    else:
        await cluster.restart(PROCESSES[which % len(PROCESSES)])


async def made_claims(cluster: SimCluster) -> list[tuple[str, str]]:
    """Return the pods and entries that claims were made for."""
    claims = [each["metadata"] for each in await cluster.client.list(RESOURCE_CLAIMS) if each["metadata"]["name"] != "shared"]
    return sorted((meta["ownerReferences"][0]["name"], meta["annotations"]["resource.kubernetes.io/pod-claim-name"]) for meta in claims)


async def nodes_of(cluster: SimCluster) -> dict[str, str]:
    """Return each pod's node."""
    return {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in await cluster.client.list(PODS)}


def run_plan(plan: Plan, seed: int, faults: Faults) -> int:
    """Play a plan to rest with all promises checked, and take all pods away; return how many commits were looked at."""

    async def scenario(cluster: SimCluster) -> int:
        checker = Checker(cluster.store, scheduler_invariants(lossless=not faults.lost_before))
        await prepare(cluster, plan)
        began = cluster.loop.time()
        for number, each in enumerate(plan.pods):
            await cluster.client.create(PODS, pod(number, *each))
        await take(cluster, began, plan.steps, step)
        await cluster.settle(3600.0)
        checker.at_rest()
        before = await nodes_of(cluster)
        asked = sorted((each, "d") for each in before if plan.pods[int(each[2:])][0] in ("one", "two"))
        assert await made_claims(cluster) == asked
        # A scheduler that knows of no earlier failure finds nothing to do
        await cluster.restart("kube-scheduler")
        await cluster.settle(3600.0)
        assert await nodes_of(cluster) == before
        for name in before:
            await cluster.delete_pod("default", name)
        await cluster.settle(3600.0)
        assert await made_claims(cluster) == []
        (shared,) = await cluster.client.list(RESOURCE_CLAIMS)
        assert {"reservedFor", "allocation"}.isdisjoint(shared.get("status") or {})
        return checker.checked

    return simulate(scenario, seed=seed, faults=faults, controllers=CONTROLLERS)


@settings(max_examples=15)
@given(plan=PLANS, seed=st.integers(0, 2**32 - 1))
def test_devices_and_volumes_on_good_days(plan: Plan, seed: int) -> None:
    """Without faults, every promise holds at every commit, and nothing is left of pods that are gone."""
    assert run_plan(plan, seed, PERFECT) > 10


UNANSWERED = Plan(
    tuple(zip(("one", "local", "two", "late", "late"), ("low", "low", "high", "high", "high"), strict=True)),
    ((3, "slice", 17), (9, "cordon", 1), (18, "cordon", 15)),
)
"""The answer about a new claim is lost: once a second one was made."""


@settings(max_examples=25)
@given(plan=PLANS, seed=st.integers(0, 2**32 - 1))
@example(plan=UNANSWERED, seed=115)
def test_devices_and_volumes_on_bad_days(plan: Plan, seed: int) -> None:
    """With late watches, lost requests, conflicts and restarts as well."""
    assert run_plan(plan, seed, ROUGH) > 10
