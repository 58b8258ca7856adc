"""The gate MaxUnavailableStatefulSet: an update takes down as many pods as maxUnavailable allows."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.api.resources import PODS, STATEFUL_SETS
from kubemini.api.trees import Tree
from kubemini.sim.cluster import SimCluster, simulate
from kubemini.store import Change
from tests.property.test_statefulset_runs import FLEET, stateful_set

ON = {"MaxUnavailableStatefulSet": True}


def rolled(replicas: int, rolling: Tree, **settings: Any) -> tuple[int, Tree]:
    """Update all pods of a parallel set; return how many were going at once at most, and the strategy as it is stored."""
    going: dict[str, None] = {}
    most = [0]

    async def scenario(cluster: SimCluster) -> Tree:
        def observe(table: str, change: Change) -> None:
            if table == PODS.storage and change.new is not None:
                meta = change.new.obj["metadata"]
                if "deletionTimestamp" in meta:
                    going[meta["name"]] = None
                elif any(each["type"] == "Ready" and each["status"] == "True" for each in change.new.obj["status"].get("conditions") or ()):
                    going.pop(meta["name"], None)
                most[0] = max(most[0], len(going))

        made = stateful_set(ordered=False, replicas=replicas)
        made["spec"]["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": rolling}
        stored = await cluster.client.create(STATEFUL_SETS, made)
        await cluster.settle(600)
        cluster.store.observer = observe
        await cluster.client.patch(STATEFUL_SETS, "web", {"spec": {"template": {"metadata": {"annotations": {"version": "1"}}}}}, namespace="default")
        assert await cluster.settle(600)
        assert {each["metadata"]["annotations"]["version"] for each in await cluster.client.list(PODS)} == {"1"}
        strategy: Tree = stored["spec"]["updateStrategy"]
        return strategy

    strategy = simulate(scenario, seed=1, fleet=FLEET, **settings)
    return most[0], strategy["rollingUpdate"]


@pytest.mark.parametrize(
    "rolling, most",
    [({"maxUnavailable": 2}, 2), ({"maxUnavailable": "50%"}, 2), ({"maxUnavailable": "10%"}, 1), ({}, 1)],
    ids=["count", "rounded down", "at least one", "default"],
)
def test_so_many_at_once(rolling: Tree, most: int) -> None:
    """Percentages are of the replicas, rounded down but to no less than one; a rolling update that does not say takes one."""
    found, stored = rolled(5, rolling, feature_gates=ON)
    assert found == most
    assert stored == {"partition": 0, "maxUnavailable": rolling.get("maxUnavailable", 1)}


def test_one_at_a_time_without_the_gate() -> None:
    """While the gate is off the field is dropped, and one pod goes at a time."""
    assert rolled(5, {"maxUnavailable": 3}) == (1, {"partition": 0})
