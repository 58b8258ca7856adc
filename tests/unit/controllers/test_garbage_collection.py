"""Deletion in the foreground: what goes before its owner, and what an owner waits for."""

from __future__ import annotations

from typing import Any

from kubemini.api.resources import CONFIG_MAPS
from kubemini.api.trees import Tree
from kubemini.sim.cluster import SimCluster, simulate

SPACE = "default"


async def make(cluster: SimCluster, name: str, *owners: Tree, **meta: Any) -> Tree:
    """Make an object with owners."""
    tree = {"metadata": {"name": name, "namespace": SPACE, "ownerReferences": list(owners), **meta}}
    return await cluster.client.create(CONFIG_MAPS, tree)


def owned(by: Tree, *, block: bool) -> Tree:
    """Return a reference to an owner."""
    about = by["metadata"]
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": about["name"], "uid": about["uid"], **({"blockOwnerDeletion": True} if block else {})}


async def left(cluster: SimCluster) -> list[str]:
    """Return the names of what there is."""
    found = await cluster.client.list(CONFIG_MAPS, SPACE)
    return [each["metadata"]["name"] for each in found if each["metadata"]["name"] != "kube-root-ca.crt"]


def test_dependents_that_do_not_block_go_first_too() -> None:
    """An owner in foreground deletion takes all its dependents with it, and waits for those alone that block it."""

    async def scenario(cluster: SimCluster) -> None:
        owner = await make(cluster, "owner")
        await make(cluster, "held", owned(owner, block=True), finalizers=["example.com/held"])
        await make(cluster, "free", owned(owner, block=False))
        await make(cluster, "slow", owned(owner, block=False), finalizers=["example.com/slow"])
        await cluster.settle(10)
        await cluster.client.delete(CONFIG_MAPS, "owner", namespace=SPACE, propagation="Foreground")
        await cluster.settle(10)
        assert await left(cluster) == ["held", "owner", "slow"]
        await cluster.client.patch(CONFIG_MAPS, "held", {"metadata": {"finalizers": None}}, namespace=SPACE)
        await cluster.settle(10)
        assert await left(cluster) == ["slow"]

    simulate(scenario, controllers="namespaces,garbage-collector")


def test_an_owner_does_not_wait_for_what_others_keep() -> None:
    """A dependent with another owner that lives loses its reference, and the owner that it blocked goes."""

    async def scenario(cluster: SimCluster) -> None:
        owner, other = await make(cluster, "owner"), await make(cluster, "other")
        await make(cluster, "shared", owned(owner, block=True), owned(other, block=True))
        await cluster.settle(10)
        await cluster.client.delete(CONFIG_MAPS, "owner", namespace=SPACE, propagation="Foreground")
        await cluster.settle(10)
        assert await left(cluster) == ["other", "shared"]

    simulate(scenario, controllers="namespaces,garbage-collector")


def test_an_owner_goes_once_it_is_not_blocked_any_more() -> None:
    """Whoever takes blockOwnerDeletion back lets the owner go."""

    async def scenario(cluster: SimCluster) -> None:
        owner = await make(cluster, "owner")
        await make(cluster, "held", owned(owner, block=True), finalizers=["example.com/held"])
        await cluster.settle(10)
        await cluster.client.delete(CONFIG_MAPS, "owner", namespace=SPACE, propagation="Foreground")
        await cluster.settle(10)
        assert await left(cluster) == ["held", "owner"]
        await cluster.client.patch(CONFIG_MAPS, "held", {"metadata": {"ownerReferences": [owned(owner, block=False)]}}, namespace=SPACE)
        await cluster.settle(10)
        assert await left(cluster) == ["held"]

    simulate(scenario, controllers="namespaces,garbage-collector")
