"""The revisions of a DaemonSet when somebody else writes, doubles or deletes them."""

from collections.abc import Awaitable, Callable
from typing import Any

from kubemini.api.resources import CONTROLLER_REVISIONS, DAEMON_SETS, NODES, PODS
from kubemini.sim.cluster import SimCluster, simulate

HASH = "controller-revision-hash"


def after(change: Callable[[SimCluster, Any], Awaitable[Any]]) -> tuple[Any, list[Any], list[str], list[str]]:
    """Change something about a DaemonSet of one pod. Return its revision of before, those of after, and the hashes and uids of the pods of after (was: first uid)."""

    async def scenario(cluster: SimCluster) -> tuple[Any, list[Any], list[str], list[str]]:
        client = cluster.client
        await client.create(NODES, {"metadata": {"name": "n-0"}, "spec": {}})
        template = {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        spec = {"selector": {"matchLabels": {"app": "d"}}, "template": template}
        await client.create(DAEMON_SETS, {"metadata": {"name": "d", "namespace": "default"}, "spec": spec})
        await cluster.settle(30)
        (first,) = await client.list(CONTROLLER_REVISIONS, "default")
        uids = [each["metadata"]["uid"] for each in await client.list(PODS, "default")]
        await change(cluster, first)
        await cluster.settle(30)
        pods = await client.list(PODS, "default")
        uids += [each["metadata"]["uid"] for each in pods]
        return first, [*await client.list(CONTROLLER_REVISIONS, "default")], [each["metadata"]["labels"][HASH] for each in pods], uids

    return simulate(scenario, fleet="none")


def test_a_deleted_revision_is_made_again_at_once() -> None:
    """Under its name and number; the pods stay."""

    async def delete(cluster: SimCluster, first: Any) -> None:
        await cluster.client.delete(CONTROLLER_REVISIONS, first["metadata"]["name"], namespace="default")

    first, (again,), hashes, (before, now) = after(delete)
    assert (again["metadata"]["name"], again["revision"]) == (first["metadata"]["name"], 1)
    assert again["metadata"]["uid"] != first["metadata"]["uid"]
    assert hashes == [first["metadata"]["labels"][HASH]]
    assert before == now


def test_of_two_revisions_of_a_template_the_higher_stays() -> None:
    """One made by hand is adopted and has its name for a hash; the pods of the other are relabelled, not replaced."""

    async def double(cluster: SimCluster, first: Any) -> None:
        about = {"name": "by-hand", "namespace": "default", "labels": {"app": "d"}}
        await cluster.client.create(CONTROLLER_REVISIONS, {"metadata": about, "data": first["data"], "revision": 7})

    _, (kept,), hashes, (before, now) = after(double)
    assert (kept["metadata"]["name"], kept["metadata"]["labels"], kept["revision"]) == ("by-hand", {"app": "d", HASH: "by-hand"}, 7)
    assert kept["metadata"]["ownerReferences"][0]["name"] == "d"
    assert hashes == ["by-hand"]
    assert before == now


def test_a_stray_revision_of_another_template_is_history() -> None:
    """The number of the present one goes above it."""

    async def stray(cluster: SimCluster, first: Any) -> None:
        about = {"name": "other", "namespace": "default", "labels": {"app": "d"}}
        await cluster.client.create(CONTROLLER_REVISIONS, {"metadata": about, "data": {"spec": {}}, "revision": 5})

    first, revisions, hashes, _ = after(stray)
    assert {each["metadata"]["name"]: each["revision"] for each in revisions} == {first["metadata"]["name"]: 6, "other": 5}
    assert hashes == [first["metadata"]["labels"][HASH]]
