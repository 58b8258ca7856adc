"""Claims and volumes of a running cluster: they find each other, are made and given back, whatever the order of events and however late caches are."""

from typing import Any

import pytest

from kubemini.api.resources import EVENTS, NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, STORAGE_CLASSES
from kubemini.sim.cluster import SimCluster, simulate
from kubemini.sim.faults import Faults

CONTROLLERS = "service-accounts,nodes,kubelet,volumes,garbage-collector"
DELAYS = pytest.mark.parametrize("delay, seed", [(0.0, 1), (0.5, 2), (0.5, 3), (5.0, 4)])


def claim(name: str, **spec: Any) -> dict[str, Any]:
    """Return a claim for 1Gi."""
    body = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"}, "spec": body}


def volume(name: str, size: str = "1Gi", **spec: Any) -> dict[str, Any]:
    """Return a volume of no class."""
    body = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/data"},
        "persistentVolumeReclaimPolicy": "Retain",
        **spec,
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": body}


def storage_class(name: str, **more: Any) -> dict[str, Any]:
    """Return a class of the simulated provisioner."""
    return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}, "provisioner": "kubemini.dev/simulated", **more}


class Store:
    """Shorthand for what is asked in every test."""

    def __init__(self, cluster: SimCluster) -> None:
        self.cluster = cluster
        self.client = cluster.client

    async def rest(self) -> None:
        """Let the cluster come to rest."""
        assert await self.cluster.settle()

    async def claim(self, name: str) -> dict[str, Any]:
        """Return a claim."""
        return await self.client.get(PERSISTENT_VOLUME_CLAIMS, name, "default")

    async def volumes(self) -> dict[str, str]:
        """Return the phases of all volumes."""
        return {each["metadata"]["name"]: each["status"]["phase"] for each in await self.client.list(PERSISTENT_VOLUMES)}

    async def reasons(self, name: str) -> list[str]:
        """Return the reasons of the events about an object."""
        events = await self.client.list(EVENTS, "default", field_selector=f"involvedObject.name={name}")
        return [each["reason"] for each in sorted(events, key=lambda each: int(each["metadata"]["resourceVersion"]))]


def run(scenario: Any, *, delay: float, seed: int) -> None:
    """Run a scenario with the storage controllers."""

    async def main(cluster: SimCluster) -> None:
        store = Store(cluster)
        await store.rest()
        await scenario(store)

    simulate(main, seed=seed, faults=Faults(watch_delay=delay), controllers=CONTROLLERS)


@DELAYS
def test_a_claim_gets_a_volume_and_gives_it_back(delay: float, seed: int) -> None:
    """The default class makes a volume for each claim; it goes with the claim, and class Retain keeps it as Released."""

    async def scenario(store: Store) -> None:
        await store.client.create(STORAGE_CLASSES, storage_class("keep", reclaimPolicy="Retain"))
        await store.client.create(PERSISTENT_VOLUME_CLAIMS, claim("a"))
        await store.client.create(PERSISTENT_VOLUME_CLAIMS, claim("b", storageClassName="keep"))
        await store.rest()
        a, b = await store.claim("a"), await store.claim("b")
        assert a["status"] == {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
        assert a["spec"]["volumeName"] == f"pvc-{a['metadata']['uid']}"
        assert a["metadata"]["annotations"] == {
            "pv.kubernetes.io/bind-completed": "yes",
            "pv.kubernetes.io/bound-by-controller": "yes",
            "volume.beta.kubernetes.io/storage-provisioner": "kubemini.dev/simulated",
            "volume.kubernetes.io/storage-provisioner": "kubemini.dev/simulated",
        }
        made = await store.client.get(PERSISTENT_VOLUMES, a["spec"]["volumeName"])
        assert made["spec"]["claimRef"]["uid"] == a["metadata"]["uid"]
        assert made["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]
        assert sorted(await store.reasons("a")) == ["ExternalProvisioning", "Provisioning", "ProvisioningSucceeded"]
        await store.client.delete(PERSISTENT_VOLUME_CLAIMS, "a", namespace="default")
        await store.client.delete(PERSISTENT_VOLUME_CLAIMS, "b", namespace="default")
        await store.rest()
        assert await store.volumes() == {b["spec"]["volumeName"]: "Released"}
        assert await store.client.list(PERSISTENT_VOLUME_CLAIMS, "default") == []

    run(scenario, delay=delay, seed=seed)


@DELAYS
def test_the_smallest_volume_that_does(delay: float, seed: int) -> None:
    """Of the volumes of its class a claim takes the smallest that is large enough and matches its selector; each volume serves one claim only."""

    async def scenario(store: Store) -> None:
        for name, size in (("small", "500Mi"), ("large", "5Gi"), ("fit", "2Gi")):
            await store.client.create(PERSISTENT_VOLUMES, volume(name, size))
        labelled = volume("labelled", "1Gi")
        labelled["metadata"]["labels"] = {"kind": "x"}
        await store.client.create(PERSISTENT_VOLUMES, labelled)
        await store.client.create(PERSISTENT_VOLUME_CLAIMS, claim("x", storageClassName="", selector={"matchLabels": {"kind": "x"}}))
        await store.rest()
        for name in ("a", "b", "c"):
            await store.client.create(PERSISTENT_VOLUME_CLAIMS, claim(name, storageClassName=""))
        await store.rest()
        assert (await store.claim("x"))["spec"]["volumeName"] == "labelled"
        taken = {name: (await store.claim(name))["spec"].get("volumeName") for name in ("a", "b", "c")}
        assert sorted(filter(None, taken.values())) == ["fit", "large"]
        assert await store.volumes() == {"small": "Available", "large": "Bound", "fit": "Bound", "labelled": "Bound"}
        (left,) = (name for name, got in taken.items() if got is None)
        assert "FailedBinding" in await store.reasons(left)
        # A volume that comes later is found without anybody asking again
        await store.client.create(PERSISTENT_VOLUMES, volume("late", "1Gi"))
        await store.rest()
        assert (await store.claim(left))["status"]["capacity"] == {"storage": "1Gi"}

    run(scenario, delay=delay, seed=seed)


@DELAYS
def test_volumes_and_claims_that_name_each_other(delay: float, seed: int) -> None:
    """A volume reserved by name and a claim that names a volume are honoured; a claim for what is taken or too small waits with an event."""

    async def scenario(store: Store) -> None:
        await store.client.create(PERSISTENT_VOLUMES, volume("reserved", claimRef={"namespace": "default", "name": "a"}))
        await store.client.create(PERSISTENT_VOLUMES, volume("named"))
        await store.client.create(PERSISTENT_VOLUMES, volume("tiny", "1Mi"))
        await store.client.create(PERSISTENT_VOLUME_CLAIMS, claim("b", storageClassName="", volumeName="named"))
        await store.client.create(PERSISTENT_VOLUME_CLAIMS, claim("a", storageClassName=""))
        await store.rest()
        for name, wanted in (("c", "named"), ("d", "tiny")):
            await store.client.create(PERSISTENT_VOLUME_CLAIMS, claim(name, storageClassName="", volumeName=wanted))
        await store.rest()
        phases = {name: (await store.claim(name))["status"]["phase"] for name in "abcd"}
        assert phases == {"a": "Bound", "b": "Bound", "c": "Pending", "d": "Pending"}
        assert "pv.kubernetes.io/bound-by-controller" not in (await store.claim("b"))["metadata"]["annotations"]
        assert await store.reasons("c") == ["FailedBinding"]
        assert await store.reasons("d") == ["VolumeMismatch"]
        await store.client.delete(PERSISTENT_VOLUMES, "named")
        await store.rest()
        # In use: it waits for its claim
        assert (await store.client.get(PERSISTENT_VOLUMES, "named"))["metadata"]["deletionTimestamp"]
        await store.client.delete(PERSISTENT_VOLUME_CLAIMS, "b", namespace="default")
        await store.rest()
        assert "named" not in await store.volumes()

    run(scenario, delay=delay, seed=seed)


@DELAYS
def test_reclaim_policies(delay: float, seed: int) -> None:
    """Delete works for what can be deleted and fails visibly for what cannot; Recycle gives a volume back; Retain leaves it Released."""

    async def scenario(store: Store) -> None:
        plans = {"tmp": ("Delete", "/tmp/x"), "data": ("Delete", "/data"), "again": ("Recycle", "/data"), "keep": ("Retain", "/data")}
        for name, (policy, path) in plans.items():
            await store.client.create(PERSISTENT_VOLUMES, volume(name, persistentVolumeReclaimPolicy=policy, hostPath={"path": path}))
            await store.client.create(PERSISTENT_VOLUME_CLAIMS, claim(name, storageClassName="", volumeName=name))
        await store.rest()
        for name in plans:
            await store.client.delete(PERSISTENT_VOLUME_CLAIMS, name, namespace="default")
        await store.rest()
        assert await store.volumes() == {"data": "Failed", "again": "Available", "keep": "Released"}
        failed = await store.client.get(PERSISTENT_VOLUMES, "data")
        assert failed["status"]["message"] == "host_path deleter only supports /tmp/.+ but received provided /data"
        assert "VolumeFailedDelete" in await store.reasons("data")

    run(scenario, delay=delay, seed=seed)


@DELAYS
def test_waiting_for_the_first_consumer(delay: float, seed: int) -> None:
    """A class that waits makes nothing until the scheduler names a node; the volume is then tied to that node's topology."""

    async def scenario(store: Store) -> None:
        await store.client.create(NODES, {"metadata": {"name": "n-0", "labels": {"kubernetes.io/hostname": "n-0"}}, "spec": {}})
        wait = storage_class(
            "wait", volumeBindingMode="WaitForFirstConsumer", parameters={"topology": "kubernetes.io/hostname", "provision-after": "2s"}
        )
        await store.client.create(STORAGE_CLASSES, wait)
        await store.client.create(PERSISTENT_VOLUME_CLAIMS, claim("a", storageClassName="wait"))
        await store.rest()
        assert (await store.claim("a"))["status"] == {"phase": "Pending"}
        assert await store.reasons("a") == ["WaitForFirstConsumer"]
        marked = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n-0"}}}
        await store.client.patch(PERSISTENT_VOLUME_CLAIMS, "a", marked, namespace="default")
        await store.rest()
        bound = await store.claim("a")
        assert bound["status"]["phase"] == "Bound"
        made = await store.client.get(PERSISTENT_VOLUMES, bound["spec"]["volumeName"])
        term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n-0"]}]}
        assert made["spec"]["nodeAffinity"] == {"required": {"nodeSelectorTerms": [term]}}

    run(scenario, delay=delay, seed=seed)


@DELAYS
def test_claims_in_use_stay(delay: float, seed: int) -> None:
    """A deleted claim stays while a placed pod uses it, also a finished one, and goes with the last."""

    async def scenario(store: Store) -> None:
        await store.client.create(NODES, {"metadata": {"name": "n-0"}, "spec": {}})
        await store.client.create(PERSISTENT_VOLUME_CLAIMS, claim("a"))
        pods = {"runs": {}, "ends": {"kubemini.dev/run-for": "1s"}}
        for name, annotations in pods.items():
            spec = {
                "nodeName": "n-0",
                "restartPolicy": "Never",
                "containers": [{"name": "c", "image": "x"}],
                "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "a"}}],
            }
            meta = {"name": name, "namespace": "default", "annotations": annotations}
            await store.client.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
        await store.rest()
        await store.client.delete(PERSISTENT_VOLUME_CLAIMS, "a", namespace="default")
        for name in pods:
            await store.rest()
            assert (await store.claim("a"))["metadata"]["deletionTimestamp"]
            await store.client.delete(PODS, name, namespace="default")
        await store.rest()
        assert await store.client.list(PERSISTENT_VOLUME_CLAIMS, "default") == []
        assert await store.volumes() == {}

    run(scenario, delay=delay, seed=seed)


@DELAYS
def test_ephemeral_volumes_have_claims(delay: float, seed: int) -> None:
    """Each ephemeral volume of a pod gets a claim that is the pod's own and goes with it; a claim of somebody else in its place is told."""

    async def scenario(store: Store) -> None:
        await store.client.create(PERSISTENT_VOLUME_CLAIMS, claim("p-taken"))
        template = {"metadata": {"labels": {"x": "y"}}, "spec": claim("")["spec"]}
        volumes = [{"name": name, "ephemeral": {"volumeClaimTemplate": template}} for name in ("data", "taken")]
        spec = {"schedulerName": "none", "containers": [{"name": "c", "image": "x"}], "volumes": volumes}
        await store.client.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}, "spec": spec})
        await store.cluster.settle(60)
        made = await store.claim("p-data")
        assert (made["metadata"]["labels"], made["metadata"]["ownerReferences"][0]["kind"], made["status"]["phase"]) == ({"x": "y"}, "Pod", "Bound")
        assert "FailedBinding" in await store.reasons("p")
        await store.client.delete(PODS, "p", namespace="default")
        await store.cluster.settle(2000)
        assert [each["metadata"]["name"] for each in await store.client.list(PERSISTENT_VOLUME_CLAIMS, "default")] == ["p-taken"]

    run(scenario, delay=delay, seed=seed)


def test_volumes_grow() -> None:
    """A claim of a class that allows it may ask for more, and gets it."""

    async def scenario(store: Store) -> None:
        await store.client.create(STORAGE_CLASSES, storage_class("grow", allowVolumeExpansion=True))
        await store.client.create(PERSISTENT_VOLUME_CLAIMS, claim("a", storageClassName="grow"))
        await store.rest()
        more = {"spec": {"resources": {"requests": {"storage": "3Gi"}}}}
        await store.client.patch(PERSISTENT_VOLUME_CLAIMS, "a", more, namespace="default")
        await store.rest()
        grown = await store.claim("a")
        assert grown["status"]["capacity"] == {"storage": "3Gi"}
        assert (await store.client.get(PERSISTENT_VOLUMES, grown["spec"]["volumeName"]))["spec"]["capacity"] == {"storage": "3Gi"}

    run(scenario, delay=0.0, seed=1)


def test_a_failing_provisioner_says_so() -> None:
    """A class that fails, and one that does not exist, leave the claim Pending with a warning."""

    async def scenario(store: Store) -> None:
        await store.client.create(STORAGE_CLASSES, storage_class("bad", parameters={"fail": "out of space"}))
        await store.client.create(PERSISTENT_VOLUME_CLAIMS, claim("a", storageClassName="bad"))
        await store.client.create(PERSISTENT_VOLUME_CLAIMS, claim("b", storageClassName="none"))
        await store.cluster.env.sleep(10)
        events = await store.client.list(EVENTS, "default")
        texts = {each["involvedObject"]["name"]: each["message"] for each in events if each["reason"] == "ProvisioningFailed"}
        assert texts == {
            "a": 'failed to provision volume with StorageClass "bad": out of space',
            "b": 'storageclass.storage.k8s.io "none" not found',
        }

    run(scenario, delay=0.0, seed=1)
