"""DaemonSets under virtual time."""

from __future__ import annotations

from kubemini.api.resources import CONFIG_MAPS, DAEMON_SETS, PODS
from kubemini.sim.cluster import SimCluster, simulate

CONTROLLERS = "service-accounts,nodes,kubelet,scheduler,daemon-set,garbage-collector"


def test_a_pod_that_somebody_lets_go_is_adopted() -> None:
    """A pod that loses its controller is adopted by the DaemonSet that selects it, without anything else happening."""
    labels = {"x": "y"}
    pod_spec = {"containers": [{"name": "m", "image": "i"}]}

    async def scenario(cluster: SimCluster) -> list[str]:
        owner = await cluster.client.create(CONFIG_MAPS, {"metadata": {"name": "cm", "namespace": "default"}})
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "cm", "uid": owner["metadata"]["uid"], "controller": True}
        meta = {"name": "loose", "namespace": "default", "labels": labels, "ownerReferences": [reference]}
        await cluster.client.create(PODS, {"metadata": meta, "spec": pod_spec})
        spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod_spec}}
        await cluster.client.create(DAEMON_SETS, {"metadata": {"name": "d", "namespace": "default"}, "spec": spec})
        await cluster.settle(30)
        assert len(await cluster.list("pod")) == 2
        await cluster.client.patch(PODS, "loose", {"metadata": {"ownerReferences": None}}, namespace="default")
        await cluster.settle(30)
        return [owner["name"] for pod in await cluster.list("pod") for owner in pod["metadata"].get("ownerReferences") or [{"name": "nobody"}]]

    assert simulate(scenario, fleet="cpu:1", controllers=CONTROLLERS) == ["d"]
