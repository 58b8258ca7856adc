"""The API that tells who waits, and at which place."""

from __future__ import annotations

import asyncio

import pytest

from kubemini import SimCluster
from kubemini.api.trees import Tree
from kubemini.machinery.aggregation import AggregatedApi
from kubemini.machinery.errors import BadRequest, MethodNotAllowed, NotFound
from kubemini.server.http.aggregated import described, listed, read
from kubemini.server.http.paths import parse
from tests.unit.kueue.test_lives import KUEUE, job, play, queues

ROOT = "/apis/visibility.kueue.x-k8s.io"


def api_of(cluster: SimCluster) -> AggregatedApi:
    """Return the only API that controllers serve."""
    (found,) = (api for manager in cluster.managers.values() for controller in manager.controllers for api in controller.apis)
    return found


def ask(cluster: SimCluster, path: str, method: str = "GET", **query: str) -> Tree | None:
    """Read a path of the API."""
    where = parse(f"{ROOT}/{path}")
    assert where is not None
    return read([api_of(cluster)], method, where, query)


def places(answer: Tree | None) -> list[tuple[str, int, int, int]]:
    """Return (Workload, priority, place in the ClusterQueue, place in the LocalQueue) of each."""
    assert answer is not None
    return [
        (each["metadata"]["name"].rsplit("-", 1)[0], each["priority"], each["positionInClusterQueue"], each["positionInLocalQueue"])
        for each in answer["items"]
    ]


async def waiting(cluster: SimCluster) -> None:
    """Let three jobs of two LocalQueues wait, the last one with a higher priority."""
    await cluster.apply(
        [*queues(cpu="0", local=("lq", "other")), {"apiVersion": KUEUE, "kind": "WorkloadPriorityClass", "metadata": {"name": "p"}, "value": 9}]
    )
    for each in (job("a"), job("b", queue="other"), job("c", priority_class="p")):
        await cluster.apply(each)
        await asyncio.sleep(2)


def test_places_in_the_queues() -> None:
    """Workloads are listed as they will be tried, with their places in both queues, from an offset and up to a limit."""

    async def scenario(cluster: SimCluster) -> None:
        await waiting(cluster)
        of_queue = "clusterqueues/cq/pendingworkloads"
        whole = ask(cluster, f"v1beta2/{of_queue}")
        assert places(whole) == [("job-c", 9, 0, 0), ("job-a", 0, 1, 1), ("job-b", 0, 2, 0)]
        assert whole is not None
        assert (whole["kind"], whole["apiVersion"]) == ("PendingWorkloadsSummary", "visibility.kueue.x-k8s.io/v1beta2")
        assert whole["items"][0]["metadata"]["ownerReferences"][0].keys() == {"apiVersion", "kind", "name", "uid"}
        assert places(ask(cluster, f"v1beta1/{of_queue}", offset="1", limit="1")) == [("job-a", 0, 1, 1)]
        assert places(ask(cluster, f"v1beta2/{of_queue}", limit="-1")) == []
        local = "v1beta2/namespaces/default/localqueues"
        assert places(ask(cluster, f"{local}/lq/pendingworkloads")) == [("job-c", 9, 0, 0), ("job-a", 0, 1, 1)]
        assert places(ask(cluster, f"{local}/lq/pendingworkloads", offset="1")) == [("job-a", 0, 1, 1)]
        assert places(ask(cluster, f"{local}/other/pendingworkloads")) == [("job-b", 0, 2, 0)]

    play(scenario)


def test_what_there_is_not() -> None:
    """Unknown queues, LocalQueues that are stopped, other paths, other verbs and numbers that are none are told apart."""

    async def scenario(cluster: SimCluster) -> None:
        await waiting(cluster)
        with pytest.raises(NotFound, match=r'^clusterqueue\.visibility\.kueue\.x-k8s\.io "x" not found$'):
            ask(cluster, "v1beta2/clusterqueues/x/pendingworkloads")
        await cluster.patch("localqueue/lq", {"spec": {"stopPolicy": "Hold"}})
        await cluster.settle(2)
        with pytest.raises(NotFound, match=r'^localqueue\.visibility\.kueue\.x-k8s\.io "lq" not found$'):
            ask(cluster, "v1beta2/namespaces/default/localqueues/lq/pendingworkloads")
        with pytest.raises(MethodNotAllowed):
            ask(cluster, "v1beta2/clusterqueues/cq/pendingworkloads", "POST")
        with pytest.raises(BadRequest, match="invalid syntax"):
            ask(cluster, "v1beta2/clusterqueues/cq/pendingworkloads", limit="x")
        for path in (
            "v1/clusterqueues/cq/pendingworkloads",
            "v1beta2/clusterqueues/cq",
            "v1beta2/namespaces/default/clusterqueues/cq/pendingworkloads",
        ):
            assert ask(cluster, path) is None

    play(scenario)


def test_discovery_of_the_api() -> None:
    """Discovery lists the queues without verbs, and what can be read below them."""

    async def scenario(cluster: SimCluster) -> None:
        api = api_of(cluster)
        names = [(each["name"], each["verbs"], each["namespaced"]) for each in listed(api)]
        assert names == [
            ("clusterqueues", [], False),
            ("clusterqueues/pendingworkloads", ["get"], False),
            ("localqueues", [], True),
            ("localqueues/pendingworkloads", ["get"], True),
        ]
        assert [each["subresources"][0]["responseKind"]["version"] for each in described(api, "v1beta1")] == ["v1beta1", "v1beta1"]

    play(scenario)


def test_without_the_gate_there_is_no_such_api() -> None:
    """The gate VisibilityOnDemand takes the API away."""

    async def scenario(cluster: SimCluster) -> None:
        assert not any(controller.apis for manager in cluster.managers.values() for controller in manager.controllers)

    play(scenario, feature_gates={"VisibilityOnDemand": False})
