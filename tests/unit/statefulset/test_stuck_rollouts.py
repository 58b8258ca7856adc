"""Revisions whose pods never become ready: who gets over them alone, and who needs a hand."""

from __future__ import annotations

import pytest

from kubemini.api.resources import PODS, STATEFUL_SETS
from kubemini.api.trees import Tree
from kubemini.sim.cluster import SimCluster, simulate
from kubemini.testing.invariants import Checker
from kubemini.testing.invariants.statefulset import Deletions, statefulset_invariants
from tests.property.test_statefulset_runs import FLEET, stateful_set

BROKEN: Tree = {"version": "1", "kubemini.dev/hold": "running"}
GOOD: Tree = {"version": "2", "kubemini.dev/hold": None}


async def roll(cluster: SimCluster, annotations: Tree) -> None:
    """Change the template, and let it be rolled out as far as it goes."""
    await cluster.client.patch(STATEFUL_SETS, "web", {"spec": {"template": {"metadata": {"annotations": annotations}}}}, namespace="default")
    await cluster.settle(600)


async def versions(cluster: SimCluster) -> list[str]:
    """Return the versions of the pods, by ordinal."""
    return [each["metadata"]["annotations"]["version"] for each in await cluster.client.list(PODS)]


@pytest.mark.parametrize("seed", range(3))
def test_a_parallel_set_gets_over_a_broken_revision(seed: int) -> None:
    """One pod is lost to it; the next revision replaces that pod first, and then the others."""

    async def scenario(cluster: SimCluster) -> None:
        checker = Checker(cluster.store, statefulset_invariants())
        await cluster.client.create(STATEFUL_SETS, stateful_set(ordered=False, replicas=3))
        await cluster.settle(600)
        await roll(cluster, BROKEN)
        assert await versions(cluster) == ["0", "0", "1"]
        await roll(cluster, GOOD)
        assert await versions(cluster) == ["2", "2", "2"]
        checker.at_rest()

    simulate(scenario, seed=seed, fleet=FLEET)


@pytest.mark.parametrize("good", [GOOD, {**GOOD, "version": "0"}], ids=["forward", "back"])
def test_an_ordered_set_needs_a_hand(good: Tree) -> None:
    """It waits for the broken pod whatever the template says (kubernetes#67250), until somebody deletes that pod."""

    async def scenario(cluster: SimCluster) -> None:
        invariants = statefulset_invariants()
        deletions = next(each for each in invariants if isinstance(each, Deletions))
        checker = Checker(cluster.store, invariants)
        await cluster.client.create(STATEFUL_SETS, stateful_set(ordered=True, replicas=3))
        await cluster.settle(600)
        await roll(cluster, BROKEN)
        await roll(cluster, good)
        assert await versions(cluster) == ["0", "0", "1"]
        stuck = await cluster.client.get(PODS, "web-2", "default")
        deletions.excuse(stuck["metadata"]["uid"])
        await cluster.delete_pod("default", "web-2")
        await cluster.settle(600)
        assert await versions(cluster) == [good["version"]] * 3
        checker.at_rest()

    simulate(scenario, seed=1, fleet=FLEET)
