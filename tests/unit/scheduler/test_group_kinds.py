"""Groups that other schedulers define: served from when their definition is installed, and all or nothing as well."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.api.resources import COSCHEDULING_POD_GROUPS, CUSTOM_RESOURCE_DEFINITIONS, NODES, PODS, VOLCANO_POD_GROUPS, Resource
from kubemini.sim.cluster import SimCluster, simulate

Tree = dict[str, Any]
CONTROLLERS = ("namespaces", "service-accounts", "customresources", "nodes", "scheduler", "kubelet")


def definition(resource: Resource) -> Tree:
    """Return the CustomResourceDefinition of a group kind."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": resource.version, "served": True, "storage": True, "schema": schema}
    names = {"kind": resource.kind, "plural": resource.plural}
    return {"metadata": {"name": resource.storage}, "spec": {"group": resource.group, "names": names, "scope": "Namespaced", "versions": [version]}}


def member(name: str, resource: Resource) -> Tree:
    """Return a pod of group g."""
    meta: Tree = {"name": name, "namespace": "default"}
    spec: Tree = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}]}
    if resource is VOLCANO_POD_GROUPS:
        meta["annotations"] = {"scheduling.k8s.io/group-name": "g"}
        spec["schedulerName"] = "volcano"
    else:
        meta["labels"] = {"scheduling.x-k8s.io/pod-group": "g"}
        spec["schedulerName"] = "scheduler-plugins-scheduler"
    return {"metadata": meta, "spec": spec}


@pytest.mark.parametrize("resource", [VOLCANO_POD_GROUPS, COSCHEDULING_POD_GROUPS], ids=["volcano", "coscheduling"])
def test_groups_of_other_schedulers(resource: Resource) -> None:
    """Pods that name another scheduler are left alone until its group kind is installed; then they start when there are minMember of them."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.settle(60.0)
        client = cluster.client

        async def bound() -> list[str]:
            await cluster.settle(120.0)
            return [pod["metadata"]["name"] for pod in await client.list(PODS) if pod["spec"].get("nodeName")]

        await client.create(NODES, {"metadata": {"name": "n"}, "spec": {}, "status": {"allocatable": {"cpu": "4", "pods": "10"}}})
        await client.create(PODS, member("early", resource))
        assert await bound() == []
        await client.delete(PODS, "early", namespace="default")
        await client.create(CUSTOM_RESOURCE_DEFINITIONS, definition(resource))
        await cluster.settle(60.0)
        group = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": "g", "namespace": "default"},
            "spec": {"minMember": 2},
        }
        await client.create(resource, group)
        await client.create(PODS, member("a", resource))
        assert await bound() == []
        await client.create(PODS, member("b", resource))
        assert await bound() == ["a", "b"]

    simulate(scenario, seed=3, controllers=CONTROLLERS)
