"""Groups as gangs of Volcano: the provider that LeaderWorkerSet's Configuration names, and what comes with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kubemini.api.resources import LEADER_WORKER_SETS, VOLCANO_POD_GROUPS
from kubemini.api.trees import Tree
from kubemini.cli.options import configuration
from kubemini.controllers.lws import provider_of
from kubemini.machinery.errors import ConfigError
from kubemini.runtime.settings import Settings
from kubemini.sim.cluster import SimCluster, simulate

VOLCANO: Tree = {"gangSchedulingManagement": {"schedulerProvider": "volcano"}}


def lws(**spec: Any) -> Tree:
    """Return a LeaderWorkerSet whose pods Volcano schedules, each of which fills a node of one core."""
    meta = {"name": "l", "namespace": "default", "annotations": {"scheduling.volcano.sh/queue-name": "q", "volcano.sh/forward": "x"}}
    pod = {"schedulerName": "volcano", "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]}
    return {"metadata": meta, "spec": {"leaderWorkerTemplate": {"size": 3, "workerTemplate": {"spec": pod}}, **spec}}


def nodes(number: int) -> list[Tree]:
    """Return nodes of one core."""
    return [{"count": number, "name": "n-{i}", "cpu": 1, "memory": "8Gi"}]


def test_each_group_is_a_gang() -> None:
    """A PodGroup for each group and revision asks for all of its pods and room for them; the group starts as a whole, and takes its PodGroup along."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.settle(60)
        await cluster.client.create(LEADER_WORKER_SETS, lws(replicas=2))
        await cluster.settle(600)
        pods = await cluster.list("pod")
        key = pods[0]["metadata"]["labels"]["leaderworkerset.sigs.k8s.io/template-revision-hash"]
        groups = await cluster.client.list(VOLCANO_POD_GROUPS)
        assert [each["metadata"]["name"] for each in groups] == [f"l-0-{key}", f"l-1-{key}"]
        wanted = {"minMember": 3, "minResources": {"cpu": "3", "memory": "3Gi"}, "queue": "q"}
        assert [each["spec"] for each in groups] == [wanted, wanted]
        assert groups[0]["metadata"]["annotations"] == {"volcano.sh/forward": "x"}
        running = {each["metadata"]["name"] for each in pods if each["spec"].get("nodeName")}
        assert running in ({"l-0", "l-0-1", "l-0-2"}, {"l-1", "l-1-1", "l-1-2"})
        await cluster.client.patch(LEADER_WORKER_SETS, "l", {"spec": {"replicas": 0}}, namespace="default")
        await cluster.settle(600)
        assert await cluster.client.list(VOLCANO_POD_GROUPS) == []

    simulate(scenario, seed=3, fleet=nodes(5), lws=VOLCANO)


def test_a_leader_that_comes_first_is_a_gang_of_one() -> None:
    """Under LeaderReady the PodGroup waits for the leader alone, since its workers come after it; it asks for room for all."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(LEADER_WORKER_SETS, lws(startupPolicy="LeaderReady"))
        await cluster.settle(600)
        (group,) = await cluster.client.list(VOLCANO_POD_GROUPS)
        assert (group["spec"]["minMember"], group["spec"]["minResources"]["cpu"]) == (1, "3")
        assert all(each["status"]["phase"] == "Running" for each in await cluster.list("pod"))

    simulate(scenario, seed=3, fleet=nodes(3), lws=VOLCANO)


def test_no_provider_no_kind() -> None:
    """Without a provider the kind is not served, and pods name no group."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(LEADER_WORKER_SETS, lws())
        await cluster.settle(60)
        with pytest.raises(ConfigError):
            cluster.resource("podgroups.scheduling.volcano.sh")
        assert all("scheduling.k8s.io/group-name" not in each["metadata"]["annotations"] for each in await cluster.list("pod"))

    simulate(scenario, seed=3)


def test_only_volcano_is_known() -> None:
    """Any other provider is refused with the name of the one that is known."""
    with pytest.raises(ConfigError, match="volcano"):
        provider_of(Settings(lws={"gangSchedulingManagement": {"schedulerProvider": "koordinator"}}))


@pytest.mark.parametrize("text", ["kind: Configuration\napiVersion: config.kueue.x-k8s.io/v1beta2\n", "[]", "kind: ConfigMap\n", "{"])
def test_configurations_of_others_are_refused(tmp_path: Path, text: str) -> None:
    """`--lws-config` takes one Configuration of config.lws.x-k8s.io, nothing else."""
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match="--lws-config"):
        configuration(path, "--lws-config", "config.lws.x-k8s.io")


def test_a_configuration_file() -> None:
    """Without a file everything has its default."""
    assert configuration(None, "--lws-config", "config.lws.x-k8s.io") == {}
