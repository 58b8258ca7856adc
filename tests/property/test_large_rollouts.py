"""Updates of many groups while pods fail: no fewer groups serve than promised, and in the end every pod is of the new revision."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubemini.api.resources import LEADER_WORKER_SETS, PODS
from kubemini.api.trees import Tree
from kubemini.sim.cluster import SimCluster, simulate
from kubemini.testing.invariants import Checker
from kubemini.testing.invariants.lws import Serving, lws_invariants

CONTROLLERS = ("namespaces", "service-accounts", "garbage-collector", "endpoints", "stateful-set", "nodes", "scheduler", "kubelet", "lws")


@dataclass(frozen=True)
class Plan:
    """A run; `failures` are (seconds since the one before, which pod)."""

    groups: int
    size: int
    budget: tuple[int | str, int | str]
    policy: str
    failures: tuple[tuple[float, int], ...]
    seed: int


def lws(plan: Plan) -> Tree:
    """Return the LeaderWorkerSet of a plan."""
    pod: Tree = {
        "metadata": {"annotations": {"version": "0"}},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [{"name": "c", "image": "i"}]},
    }
    rolling = {"maxUnavailable": plan.budget[0], "maxSurge": plan.budget[1]}
    group = {"size": plan.size, "restartPolicy": plan.policy, "workerTemplate": pod}
    spec = {
        "replicas": plan.groups,
        "rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration": rolling},
        "leaderWorkerTemplate": group,
    }
    return {"metadata": {"name": "llm", "namespace": "default"}, "spec": spec}


async def play(cluster: SimCluster, plan: Plan, *, every_commit: bool) -> None:
    """Roll out a new template while pods fail."""
    client, serving = cluster.client, Serving()
    checker = Checker(cluster.store, [serving, *(lws_invariants() if every_commit else ())])
    await client.create(LEADER_WORKER_SETS, lws(plan))
    assert await cluster.settle(4000)
    await client.patch(
        LEADER_WORKER_SETS,
        "llm",
        {"spec": {"leaderWorkerTemplate": {"workerTemplate": {"metadata": {"annotations": {"version": "1"}}}}}},
        namespace="default",
    )
    for after, which in plan.failures:
        await cluster.settle(after)
        pods = [each for each in await client.list(PODS) if "deletionTimestamp" not in each["metadata"]]
        victim = pods[which % len(pods)]
        serving.excuse(victim)
        await cluster.fail_pod("default", victim["metadata"]["name"], uid=victim["metadata"]["uid"])
    assert await cluster.settle(100_000), "the update never comes to an end"
    checker.at_rest()
    left = await client.list(PODS)
    assert len(left) == plan.groups * plan.size
    assert {each["metadata"]["annotations"]["version"] for each in left} == {"1"}
    status = (await client.get(LEADER_WORKER_SETS, "llm", "default"))["status"]
    assert [status[name] for name in ("replicas", "readyReplicas", "updatedReplicas")] == [plan.groups] * 3
    assert serving.fewest < 1 << 30


def fleet(pods: int) -> list[Tree]:
    """Return nodes for so many pods."""
    return [{"count": -(-pods // 100) + 1, "name": "n-{i}", "cpu": 200, "memory": "512Gi", "pods": 110}]


PLANS = st.builds(
    Plan,
    groups=st.integers(3, 12),
    size=st.integers(1, 3),
    budget=st.sampled_from([(0, 1), (0, "25%"), (1, 0), (2, 2), ("25%", "50%")]).filter(lambda budget: budget[0] != "25%" or budget[1] != 0),
    policy=st.sampled_from(["None", "RecreateGroupOnPodRestart"]),
    failures=st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.7, 3.0]), st.integers(0, 40)), max_size=6).map(tuple),
    seed=st.integers(0, 2**16),
)


@settings(max_examples=25)
@given(plan=PLANS)
def test_updates_keep_what_they_promise(plan: Plan) -> None:
    """Whatever fails meanwhile, by every budget."""
    simulate(
        lambda cluster: play(cluster, plan, every_commit=True), seed=plan.seed, controllers=CONTROLLERS, fleet=fleet(plan.groups * plan.size * 2)
    )


@pytest.mark.parametrize("budget", [(0, 20)], ids=str)
def test_an_update_of_two_hundred_groups(budget: tuple[int, int]) -> None:
    """200 groups of 8 pods are replaced behind 20 surge groups while a pod fails every two seconds; 200 serve at all times but for those that failed."""
    plan = Plan(200, 8, budget, "RecreateGroupOnPodRestart", tuple((2.0, number * 977) for number in range(15)), 7)
    simulate(lambda cluster: play(cluster, plan, every_commit=False), seed=plan.seed, controllers=CONTROLLERS, fleet=fleet(1800))
