"""Pods that are called by their full name inside."""

from __future__ import annotations

import pytest

from kubemini.api.resources import NODES, PODS
from kubemini.api.trees import Tree
from kubemini.controllers.kubelet.admission import unnameable
from kubemini.sim.cluster import SimCluster, simulate


def pod(host: str, *, subdomain: str = "web", fqdn: bool = True) -> Tree:
    """Return a pod of a StatefulSet's shape."""
    spec = {"hostname": host, "subdomain": subdomain, "setHostnameAsFQDN": fqdn, "nodeName": "n", "containers": [{"name": "c", "image": "i"}]}
    return {"metadata": {"name": "p", "namespace": "default"}, "spec": spec}


# .web.default.svc.cluster.local is 30 long
@pytest.mark.parametrize("host, fits", [("w" * 34, True), ("w" * 35, False)])
def test_sixty_four_characters_fit(host: str, fits: bool) -> None:
    """The limit is that of the kernel, and of no interest to pods that go by their hostname."""
    assert (unnameable(pod(host)) == "") is fits
    assert unnameable(pod(host, fqdn=False)) == ""
    assert unnameable({**pod(host), "spec": {**pod(host)["spec"], "subdomain": ""}}) == ""


def test_a_name_that_is_too_long_keeps_a_pod_pending() -> None:
    """The pod is bound, never starts, and an event says why."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(NODES, {"metadata": {"name": "n"}, "spec": {}})
        await cluster.client.create(PODS, pod("w" * 60))
        assert await cluster.settle(600)
        assert (await cluster.client.get(PODS, "p", "default"))["status"]["phase"] == "Pending"
        (why,) = [each["message"] for each in await cluster.list("event") if each["reason"] == "FailedCreatePodSandBox"]
        assert "is too long (64 characters is the max, 90 characters requested)" in why

    simulate(scenario, controllers="service-accounts,nodes,kubelet")
