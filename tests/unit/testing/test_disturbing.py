"""Disturbances: each does what its name says to what is there, says so in words, and can be mended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from kubemini.api.resources import CLUSTER_QUEUES, JOBS
from kubemini.api.trees import Tree
from kubemini.machinery.errors import ConfigError
from kubemini.manifests import load
from kubemini.sim.cluster import SimCluster, simulate
from kubemini.testing.disturbing import ACTIONS, Disturber
from kubemini.testing.plans import Step

JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: work, namespace: default}
spec:
  parallelism: 2
  template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}
"""
QUEUE = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: cq}
spec:
  resourceGroups:
  - coveredResources: [cpu, nvidia.com/gpu]
    flavors: [{name: f, resources: [{name: cpu, nominalQuota: "9"}, {name: nvidia.com/gpu, nominalQuota: "8"}]}]
"""


def disturbed(scenario: Callable[[SimCluster, Disturber, list[str]], Awaitable[None]]) -> None:
    """Run a scenario on a cluster with a Job of two pods and a ClusterQueue."""

    async def main(cluster: SimCluster) -> None:
        work = [(document, made) for document in load(JOB + "---" + QUEUE) for made in await cluster.apply(document)]
        await cluster.settle(30)
        told: list[str] = []
        await scenario(cluster, Disturber(cluster, work, told.append), told)

    simulate(main, seed=1, fleet="cpu:2")


def quotas(queue: Tree) -> list[str]:
    """Return the nominal quotas of a ClusterQueue."""
    (group,) = queue["spec"]["resourceGroups"]
    return [each["nominalQuota"] for each in group["flavors"][0]["resources"]]


def test_pods() -> None:
    """Pods crash and are deleted; the number chooses among those that live."""

    async def scenario(cluster: SimCluster, disturber: Disturber, told: list[str]) -> None:
        first, second = (pod["metadata"]["name"] for pod in await cluster.list("pod"))
        assert await disturber.do(Step(0, "fail pod", 3))
        assert (await cluster.get(f"pod/{second}"))["status"]["phase"] == "Failed"
        assert await disturber.do(Step(0, "delete pod", 0))
        assert first not in {pod["metadata"]["name"] for pod in await cluster.list("pod") if "deletionTimestamp" not in pod["metadata"]}
        assert told == [f"pod default/{second} crashes", f"pod default/{first} is deleted"]

    disturbed(scenario)


def test_nodes() -> None:
    """A node that has pods falls silent, and answers again when all is mended."""

    async def scenario(cluster: SimCluster, disturber: Disturber, told: list[str]) -> None:
        name = min({pod["spec"]["nodeName"] for pod in await cluster.list("pod")})
        assert await disturber.do(Step(0, "lose node", 0))
        lost = [
            each["metadata"]["name"] for each in await cluster.list("node") if (each["metadata"].get("annotations") or {}).get("kubemini.dev/lost")
        ]
        assert lost == [name]
        await disturber.mend()
        assert not await disturber.do(Step(0, "recover node", 0))
        assert told == [f"node {name} falls silent", f"node {name} answers again"]

    disturbed(scenario)


def test_quotas() -> None:
    """Half of every quota goes, in whole units, and all comes back."""

    async def scenario(cluster: SimCluster, disturber: Disturber, told: list[str]) -> None:
        assert not await disturber.do(Step(0, "restore quota", 0))
        assert await disturber.do(Step(0, "halve quota", 0))
        assert await disturber.do(Step(0, "halve quota", 0))
        assert quotas(await cluster.client.get(CLUSTER_QUEUES, "cq")) == ["2", "2"]
        await disturber.mend()
        assert quotas(await cluster.client.get(CLUSTER_QUEUES, "cq")) == ["9", "8"]
        assert told == ["ClusterQueue cq loses half of its quotas"] * 2

    disturbed(scenario)


def test_what_users_made() -> None:
    """What users made is deleted, and applied again as they wrote it; queues are not work."""

    async def scenario(cluster: SimCluster, disturber: Disturber, told: list[str]) -> None:
        assert await disturber.do(Step(0, "delete object", 1))
        await cluster.settle(60)
        assert await cluster.client.list(JOBS) == []
        assert not await disturber.do(Step(0, "delete object", 0))
        assert await disturber.do(Step(0, "apply again", 0))
        await cluster.settle(60)
        assert len(await cluster.list("pod")) == 2
        assert len(await cluster.client.list(CLUSTER_QUEUES)) == 1
        assert told == ["job/work is deleted", "job/work is deleted", "job/work is applied again"]

    disturbed(scenario)


def test_processes() -> None:
    """A controller process is killed and starts again."""

    async def scenario(cluster: SimCluster, disturber: Disturber, told: list[str]) -> None:
        before = dict(cluster.managers)
        assert await disturber.do(Step(0, "restart", 0))
        (name,) = (each for each in before if cluster.managers[each] is not before[each])
        assert told == [f"{name} is killed and starts again"]

    disturbed(scenario)


def test_nothing_to_disturb() -> None:
    """On an empty cluster nothing is done but to controllers, and nothing fails."""

    async def scenario(cluster: SimCluster) -> None:
        disturber = Disturber(cluster)
        assert [action for action in ACTIONS if await disturber.do(Step(0, action, 5))] == ["restart"]

    simulate(scenario, fleet="none")


def test_unknown_actions_are_named() -> None:
    """An action that nobody knows is refused with those that there are."""

    async def scenario(cluster: SimCluster) -> None:
        with pytest.raises(ConfigError, match=r"there is no action 'sing'; there are fail pod, "):
            await Disturber(cluster).do(Step(0, "sing"))

    simulate(scenario, fleet="none")
