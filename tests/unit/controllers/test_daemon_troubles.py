"""DaemonSets in trouble: updates that surge over one another, and pods that are refused."""

from typing import Any

import pytest

from kubemini.api.resources import DAEMON_SETS, NODES, PODS, RESOURCE_QUOTAS
from kubemini.sim.cluster import SimCluster, simulate


def test_an_update_over_a_stuck_one_keeps_the_pod_that_serves() -> None:
    """Of two old pods on a node the oldest stays until the newest is available; the one that never became ready goes."""

    async def scenario(cluster: SimCluster) -> None:
        client = cluster.client

        async def roll(version: str, hold: str | None = None) -> None:
            annotations = {"v": version, "kubemini.dev/hold": hold}
            body = {"spec": {"template": {"metadata": {"annotations": annotations}}}}
            await client.patch(DAEMON_SETS, "d", body, namespace="default")
            await cluster.env.sleep(3)

        async def versions() -> list[str]:
            pods: list[Any] = [*await client.list(PODS, "default")]
            return sorted(each["metadata"]["annotations"]["v"] for each in pods if "deletionTimestamp" not in each["metadata"])

        await client.create(NODES, {"metadata": {"name": "n-0"}, "spec": {}})
        template = {
            "metadata": {"labels": {"app": "d"}, "annotations": {"v": "1"}},
            "spec": {"terminationGracePeriodSeconds": 1, "containers": [{"name": "c", "image": "i"}]},
        }
        strategy = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
        spec = {"selector": {"matchLabels": {"app": "d"}}, "template": template, "updateStrategy": strategy}
        await client.create(DAEMON_SETS, {"metadata": {"name": "d", "namespace": "default"}, "spec": spec})
        await cluster.env.sleep(3)
        await roll("2", "running")
        assert await versions() == ["1", "2"]
        await roll("3", "running")
        assert await versions() == ["1", "3"]
        await roll("4")
        assert await versions() == ["4"]

    simulate(scenario, fleet="none")


def test_a_refused_pod_does_not_keep_the_status_back() -> None:
    """It counts the pods that there are, and the nodes that wait for one."""

    async def scenario(cluster: SimCluster) -> dict[str, Any]:
        client = cluster.client
        for name in ("n-0", "n-1", "n-2"):
            await client.create(NODES, {"metadata": {"name": name}, "spec": {}})
        await client.create(RESOURCE_QUOTAS, {"metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": {"pods": "1"}}})
        await cluster.settle(10)
        template = {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        spec = {"selector": {"matchLabels": {"app": "d"}}, "template": template}
        await client.create(DAEMON_SETS, {"metadata": {"name": "d", "namespace": "default"}, "spec": spec})
        await cluster.settle(10)
        status: dict[str, Any] = (await client.get(DAEMON_SETS, "d", "default"))["status"]
        return status

    status = simulate(scenario, fleet="none")
    counts = ("observedGeneration", "desiredNumberScheduled", "currentNumberScheduled", "numberReady", "numberUnavailable")
    assert [status.get(each) for each in counts] == [1, 3, 1, 1, 2]


def test_a_surge_that_no_longer_tolerates_a_node_leaves_it() -> None:
    """No pod is made there that could not be placed, which the update would wait for."""

    async def scenario(cluster: SimCluster) -> list[list[Any]]:
        client = cluster.client
        for name in ("n-0", "n-1"):
            taints = [{"key": "k", "effect": "NoSchedule"}] if name == "n-0" else []
            await client.create(NODES, {"metadata": {"name": name}, "spec": {"taints": taints}})

        def template(tolerations: list[dict[str, str]]) -> dict[str, Any]:
            return {"metadata": {"labels": {"app": "d"}}, "spec": {"tolerations": tolerations, "containers": [{"name": "c", "image": "i"}]}}

        async def pods() -> list[Any]:
            found: list[Any] = [*await client.list(PODS, "default")]
            live = [each["spec"] for each in found if "deletionTimestamp" not in each["metadata"]]
            return sorted((spec.get("nodeName", "none"), {"operator": "Exists"} in spec["tolerations"]) for spec in live)

        strategy = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
        spec = {
            "selector": {"matchLabels": {"app": "d"}},
            "template": template([{"operator": "Exists"}]),
            "updateStrategy": strategy,
            "minReadySeconds": 5,
        }
        await client.create(DAEMON_SETS, {"metadata": {"name": "d", "namespace": "default"}, "spec": spec})
        await cluster.settle(20)
        seen = [await pods()]
        await client.patch(DAEMON_SETS, "d", {"spec": {"template": template([])}}, namespace="default")
        await cluster.env.sleep(3)
        seen.append(await pods())
        await cluster.settle(30)
        return [*seen, await pods()]

    before, during, after = simulate(scenario, fleet="none")
    assert before == [("n-0", True), ("n-1", True)]
    assert during == [("n-1", False), ("n-1", True)]
    assert after == [("n-1", False)]


def _set(*, surge: bool) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    strategy = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}} if surge else {}
    spec = {"selector": {"matchLabels": {"app": "d"}}, "template": template, "updateStrategy": strategy}
    return {"metadata": {"name": "d", "namespace": "default"}, "spec": spec}


@pytest.mark.parametrize("surge, expected", [(True, ["Failed", "Running"]), (False, ["Failed"])])
def test_only_where_updates_surge_a_new_pod_stands_beside_one_that_has_to_go(surge: bool, expected: list[str]) -> None:
    """The second failed pod of a node waits for a second before it is deleted."""

    async def scenario(cluster: SimCluster) -> list[str]:
        client = cluster.client
        await client.create(NODES, {"metadata": {"name": "n-0"}, "spec": {}})
        await client.create(DAEMON_SETS, _set(surge=surge))
        await cluster.settle(5)
        for _ in range(2):
            (pod,) = await client.list(PODS, "default")
            await client.patch(PODS, pod["metadata"]["name"], {"status": {"phase": "Failed"}}, namespace="default", subresource="status")
            await cluster.env.sleep(0.4)
        return sorted(each["status"]["phase"] for each in await client.list(PODS, "default"))

    assert simulate(scenario, fleet="none") == expected


def test_a_failed_pod_of_a_new_generation_does_not_wait_for_the_time_of_the_last() -> None:
    """The time between two deletions on a node doubles with each, and starts afresh when the DaemonSet has changed."""

    async def scenario(cluster: SimCluster) -> list[float]:
        client = cluster.client
        await client.create(NODES, {"metadata": {"name": "n-0"}, "spec": {}})
        await client.create(DAEMON_SETS, _set(surge=False))
        await cluster.settle(5)
        waits: list[float] = []
        for turn in range(4):
            if turn == 3:
                await client.patch(DAEMON_SETS, "d", {"spec": {"minReadySeconds": 1}}, namespace="default")
                await cluster.env.sleep(0.3)
            (pod,) = await client.list(PODS, "default")
            name, began = pod["metadata"]["name"], cluster.env.now()
            await client.patch(PODS, name, {"status": {"phase": "Failed"}}, namespace="default", subresource="status")
            while any(
                each["metadata"]["name"] == name and "deletionTimestamp" not in each["metadata"] for each in await client.list(PODS, "default")
            ):
                await cluster.env.sleep(0.1)
            waits.append(cluster.env.now() - began)
            while [each["status"].get("phase") for each in await client.list(PODS, "default")] != ["Running"]:
                await cluster.env.sleep(0.1)
        return waits

    first, second, third, fresh = simulate(scenario, fleet="none")
    assert first < 0.3
    assert fresh < 0.3
    assert first < second < third
