"""Budgets whose numbers cannot be told, and pods that several budgets select."""

from typing import Any

from kubemini.api.resources import NODES, POD_DISRUPTION_BUDGETS, PODS
from kubemini.machinery.errors import ApiStatus
from kubemini.sim.cluster import SimCluster, simulate


def pod(name: str, **meta: Any) -> dict[str, Any]:
    """Return a pod that runs by itself."""
    return {
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "x"}, **meta},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }


def budget(name: str, **spec: Any) -> dict[str, Any]:
    """Return a budget of all pods."""
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"selector": {"matchLabels": {"app": "x"}}, **spec}}


def test_a_budget_that_cannot_count_has_not_seen_its_spec() -> None:
    """Evictions wait for it; the condition tells which kind has no size."""
    owner = {"apiVersion": "example.com/v1", "kind": "Foo", "name": "f", "uid": "u-1", "controller": True}

    async def scenario(cluster: SimCluster) -> tuple[dict[str, Any], str]:
        client = cluster.client
        await client.create(NODES, {"metadata": {"name": "n-0"}, "spec": {}})
        await client.create(PODS, pod("p", ownerReferences=[owner]))
        await cluster.env.sleep(1)
        await client.create(POD_DISRUPTION_BUDGETS, budget("b", maxUnavailable=1))
        await cluster.env.sleep(1)
        status: dict[str, Any] = (await client.get(POD_DISRUPTION_BUDGETS, "b", "default"))["status"]
        try:
            await client.act(PODS, "p", "eviction", {"metadata": {"name": "p"}}, namespace="default")
        except ApiStatus as refused:
            return status, refused.details["causes"][0]["message"]
        return status, ""

    status, cause = simulate(scenario, fleet="none", controllers="*,-garbage-collector")
    (condition,) = status.pop("conditions")
    del condition["lastTransitionTime"]
    assert status == {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}
    text = 'no matches for kind "Foo" in version "example.com/v1"'
    assert condition == {"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": text}
    assert cause == "The disruption budget b is still being processed by the server."


def test_a_pod_of_two_budgets_says_so() -> None:
    """A warning on the pod."""

    async def scenario(cluster: SimCluster) -> list[str]:
        client = cluster.client
        for name in ("a", "b"):
            await client.create(POD_DISRUPTION_BUDGETS, budget(name, minAvailable=1))
        await cluster.env.sleep(1)
        await client.create(PODS, pod("p"))
        await cluster.env.sleep(1)
        return [each["message"] for each in await cluster.list("event") if each["reason"] == "MultiplePodDisruptionBudgets"]

    assert simulate(scenario, fleet="none") == ['Pod "default"/"p" matches multiple PodDisruptionBudgets.  Chose "a" arbitrarily.']


def test_a_pod_that_outstays_its_disruption_says_so() -> None:
    """After two minutes, with upstream's words."""

    async def scenario(cluster: SimCluster) -> tuple[list[str], int]:
        client = cluster.client
        await client.create(NODES, {"metadata": {"name": "n-0"}, "spec": {}})
        await client.create(PODS, pod("p"))
        await client.create(POD_DISRUPTION_BUDGETS, budget("b", minAvailable=0))
        await cluster.env.sleep(3)
        granted = {"status": {"disruptedPods": {"p": cluster.env.stamp()}}}
        await client.patch(POD_DISRUPTION_BUDGETS, "b", granted, namespace="default", subresource="status")
        await cluster.env.sleep(130)
        found = [each["message"] for each in await cluster.list("event") if each["reason"] == "NotDeleted"]
        return found, (await client.get(POD_DISRUPTION_BUDGETS, "b", "default"))["status"]["currentHealthy"]

    assert simulate(scenario, fleet="none") == (["Pod was expected by PDB default/default to be deleted but it wasn't"], 1)
