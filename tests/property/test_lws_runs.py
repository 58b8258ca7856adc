"""LeaderWorkerSets under faults, with their promises checked at every commit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from kubemini.api.resources import LEADER_WORKER_SETS
from kubemini.machinery.errors import Conflict, NotFound
from kubemini.sim.cluster import SimCluster, simulate
from kubemini.sim.faults import PERFECT, Faults
from kubemini.testing.invariants import Checker
from kubemini.testing.invariants.dns import dns_invariants
from kubemini.testing.invariants.lws import lws_invariants

ROUGH = Faults(watch_delay=0.4, request_delay=0.05, lost_before=0.03, lost_after=0.03, conflict=0.05)
DOMAIN = "example.com/rack"
FLEET = [{"count": 12, "name": "n-{i}", "cpu": 64, "memory": "256Gi", "labels": {DOMAIN: "rack-{i//2}"}}]
ACTIONS = (
    "scale",
    "template",
    "back",
    "size",
    "policy",
    "startup",
    "budget",
    "partition",
    "fail-pod",
    "delete-pod",
    "delete-set",
    "delete-service",
    "restart",
)
PROCESSES = ("kube-controller-manager", "lws-controller-manager")


@dataclass(frozen=True)
class Plan:
    """A run: a set of groups, and what happens to it when."""

    replicas: int
    size: int
    policy: str
    leader_first: bool
    unique: bool
    exclusive: bool
    budget: tuple[int, int]
    steps: tuple[tuple[float, str, int], ...]
    seed: int


PLANS = st.builds(
    Plan,
    replicas=st.integers(0, 3),
    size=st.integers(1, 3),
    policy=st.sampled_from(["None", "RecreateGroupOnPodRestart", "RecreateGroupAfterStart"]),
    leader_first=st.booleans(),
    unique=st.booleans(),
    exclusive=st.booleans(),
    budget=st.sampled_from([(1, 0), (0, 1), (2, 2), (1, 1)]),
    steps=st.lists(st.tuples(st.sampled_from([0.0, 0.3, 1.0, 5.0, 40.0]), st.sampled_from(ACTIONS), st.integers(0, 7)), max_size=6).map(tuple),
    seed=st.integers(0, 2**16),
)


def lws(plan: Plan) -> dict[str, Any]:
    """Return the LeaderWorkerSet of a plan."""
    unavailable, surge = plan.budget
    meta: dict[str, Any] = {"name": "llm", "namespace": "default"}
    if plan.exclusive:
        meta["annotations"] = {"leaderworkerset.sigs.k8s.io/exclusive-topology": DOMAIN}
    template = {
        "metadata": {"annotations": {"version": "0"}},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [{"name": "c", "image": "img:0"}]},
    }
    spec = {
        "replicas": plan.replicas,
        "startupPolicy": "LeaderReady" if plan.leader_first else "LeaderCreated",
        "networkConfig": {"subdomainPolicy": "UniquePerReplica" if plan.unique else "Shared"},
        "rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration": {"maxUnavailable": unavailable, "maxSurge": surge}},
        "leaderWorkerTemplate": {"size": plan.size, "restartPolicy": plan.policy, "workerTemplate": template},
    }
    return {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": meta, "spec": spec}


async def patch(cluster: SimCluster, spec: dict[str, Any]) -> None:
    """Patch the spec."""
    await cluster.client.patch(LEADER_WORKER_SETS, "llm", {"spec": spec}, namespace="default")


async def disturb(cluster: SimCluster, what: str, which: int) -> None:
    """Do one thing; what is gone already is left alone."""
    pods = await cluster.list("pod")
    target = pods[which % len(pods)]["metadata"]["name"] if pods else None
    try:
        if what == "scale":
            await patch(cluster, {"replicas": which % 4})
        elif what in ("template", "back"):
            version = str(which) if what == "template" else "0"
            await patch(cluster, {"leaderWorkerTemplate": {"workerTemplate": {"metadata": {"annotations": {"version": version}}}}})
        elif what == "size":
            await patch(cluster, {"leaderWorkerTemplate": {"size": 1 + which % 3}})
        elif what == "policy":
            await patch(cluster, {"leaderWorkerTemplate": {"restartPolicy": ("None", "RecreateGroupOnPodRestart")[which % 2]}})
        elif what == "startup":
            await patch(cluster, {"startupPolicy": ("LeaderReady", "LeaderCreated")[which % 2]})
        elif what == "budget":
            unavailable, surge = ((1, 0), (0, 1), (2, 2), (1, 3))[which % 4]
            await patch(cluster, {"rolloutStrategy": {"rollingUpdateConfiguration": {"maxUnavailable": unavailable, "maxSurge": surge}}})
        elif what == "partition":
            await patch(cluster, {"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": which % 3}}})
        elif what == "delete-set":
            sets = await cluster.list("statefulset")
            if sets:
                await cluster.delete(f"statefulset/{sets[which % len(sets)]['metadata']['name']}")
        elif what == "delete-service":
            services = [each["metadata"]["name"] for each in await cluster.list("service") if each["metadata"]["name"].startswith("llm")]
            if services:
                await cluster.delete(f"service/{services[which % len(services)]}")
        elif what == "restart":
            await cluster.restart(PROCESSES[which % 2])
        elif target is not None and what == "fail-pod":
            await cluster.fail_pod("default", target)
        elif target is not None:
            await cluster.delete_pod("default", target)
    except (NotFound, Conflict):
        return


async def play(cluster: SimCluster, plan: Plan) -> None:
    """Play a plan; afterwards all groups are as they should be, and nothing is left of them when the set is deleted."""
    checker = Checker(cluster.store, [*lws_invariants(), *dns_invariants(lossless=False)])
    await cluster.client.create(LEADER_WORKER_SETS, lws(plan))
    for after, what, which in plan.steps:
        await cluster.settle(after)
        await disturb(cluster, what, which)
    # The final rollout is held by nothing
    await patch(cluster, {"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 0}}})
    await cluster.settle(4000)
    checker.at_rest()
    await cluster.delete("leaderworkerset/llm", propagation="Foreground")
    await cluster.settle(2000)
    checker.at_rest()
    for kind in ("pod", "statefulset", "controllerrevision"):
        assert await cluster.list(kind) == [], kind
    assert [each for each in await cluster.list("service") if each["metadata"]["name"].startswith("llm")] == []


@given(plan=PLANS)
def test_groups_keep_their_promises(plan: Plan) -> None:
    """On a perfect network: identity, one revision in a group, the window of updates, and the wish come true."""
    simulate(lambda cluster: play(cluster, plan), seed=plan.seed, faults=PERFECT, fleet=FLEET)


# The template changes before the leaders' StatefulSet has a current revision on record
@example(plan=Plan(2, 1, "None", False, True, False, (1, 0), ((0.3, "template", 1), (0.3, "delete-pod", 0)), 2740))
@given(plan=PLANS)
def test_groups_keep_their_promises_on_a_rough_network(plan: Plan) -> None:
    """The same with stale caches, lost requests, invented conflicts and restarts."""
    simulate(lambda cluster: play(cluster, plan), seed=plan.seed, faults=ROUGH, fleet=FLEET)
