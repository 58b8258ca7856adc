"""Nodes that join while pods are bound to them."""

from kubemini.api.resources import NODES, PODS
from kubemini.sim.cluster import SimCluster, simulate
from kubemini.sim.faults import Faults


def test_a_node_refuses_nothing_before_it_is_measured() -> None:
    """A pod made with its node waits until the node says what it can hold; only what does not fit in that is refused."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.settle()
        await cluster.client.create(NODES, {"metadata": {"name": "n-0"}, "spec": {}})
        for name, cpu in (("fits", "1"), ("large", "1k")):
            containers = [{"name": "m", "image": "x", "resources": {"requests": {"cpu": cpu}}}]
            await cluster.client.create(
                PODS, {"metadata": {"name": name, "namespace": "default"}, "spec": {"nodeName": "n-0", "containers": containers}}
            )
        assert await cluster.settle()
        found = {each["metadata"]["name"]: each["status"] for each in await cluster.client.list(PODS, "default")}
        assert found["fits"]["phase"] == "Running"
        assert (found["large"]["phase"], found["large"]["reason"]) == ("Failed", "OutOfcpu")

    # With some seeds the node looks at the one that is too large first: it must not count for the other
    for seed, delay in ((1, 0.0), (1, 0.5), (1, 3.0), (31, 0.0), (32, 0.5), (36, 3.0)):
        simulate(scenario, seed=seed, faults=Faults(watch_delay=delay), controllers="service-accounts,nodes,kubelet")
