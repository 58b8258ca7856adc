"""What LeaderWorkerSets say about themselves: in the dialect of events.k8s.io, in order."""

from typing import Any

from kubemini.api.resources import EVENTS, LEADER_WORKER_SETS, NODES, PODS
from kubemini.sim.cluster import SimCluster, simulate

TEMPLATE = {"spec": {"terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": "i"}]}}


def told(events: list[dict[str, Any]]) -> list[tuple[str, str, str, str]]:
    """Return (reason, action, kind of the related object, message) of events, in the order of their names."""
    ordered = sorted(events, key=lambda each: each["metadata"]["name"])
    return [(each["reason"], each["action"], (each.get("related") or {}).get("kind", ""), each["message"]) for each in ordered]


def test_events_of_a_set_tell_the_action_and_what_it_was_about() -> None:
    """They name the revision or the pod beside the set, have no counts, and are listed in the order in which they came."""

    async def scenario(cluster: SimCluster) -> list[dict[str, Any]]:
        await cluster.client.create(NODES, {"metadata": {"name": "n-0"}, "spec": {}})
        spec = {"replicas": 1, "leaderWorkerTemplate": {"size": 2, "workerTemplate": TEMPLATE}}
        await cluster.client.create(LEADER_WORKER_SETS, {"metadata": {"name": "a", "namespace": "default"}, "spec": spec})
        await cluster.settle(60)
        await cluster.client.delete(PODS, "a-0-1", namespace="default")
        await cluster.settle(60)
        return [each for each in await cluster.client.list(EVENTS, "default") if each["involvedObject"]["kind"] == "LeaderWorkerSet"]

    events = simulate(scenario, fleet="none")
    found = told(events)
    texts = [(reason, action, related) for reason, action, related, _ in found]
    assert texts[:2] == [("CreatingRevision", "Create", "ControllerRevision"), ("GroupsProgressing", "Create", "ControllerRevision")]
    assert ("GroupsProgressing", "Create", "Pod", "Created worker statefulset for leader pod a-0") in found
    assert ("AllGroupsReady", "Update", "", "All replicas are ready, with 1 groups ready of total 1 groups") in found
    assert ("RecreateGroup", "Delete", "Pod", "Worker pod a-0-1 failed, deleted leader pod a-0 to recreate group 0") in found
    assert texts.index(("AllGroupsReady", "Update", "")) < texts.index(("RecreateGroup", "Delete", "Pod"))
    assert {each["reportingComponent"] for each in events} == {"leaderworkerset"}
    assert not any(each.get("count") or each.get("firstTimestamp") for each in events)
