"""StatefulSets under faults, with their promises checked at every commit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kubemini.api.resources import PODS, SERVICES, STATEFUL_SETS
from kubemini.machinery.errors import Conflict, NotFound
from kubemini.sim.cluster import SimCluster, simulate
from kubemini.sim.faults import PERFECT, Faults
from kubemini.testing.invariants import Checker
from kubemini.testing.invariants.dns import dns_invariants
from kubemini.testing.invariants.statefulset import Deletions, statefulset_invariants

ROUGH = Faults(watch_delay=0.4, request_delay=0.05, lost_before=0.03, lost_after=0.03, conflict=0.05)
FLEET = [{"count": 3, "name": "n-", "cpu": 64, "memory": "256Gi"}]
ACTIONS = ("scale", "template", "partition", "back", "start", "fail-pod", "delete-pod", "delete-revision", "release", "restart")


def stateful_set(*, ordered: bool, replicas: int, on_delete: bool = False, min_ready: int = 0) -> dict[str, Any]:
    """Return a StatefulSet whose pods run for ever."""
    template = {
        "metadata": {"labels": {"app": "web"}, "annotations": {"version": "0"}},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [{"name": "c", "image": "img:0"}]},
    }
    spec = {
        "replicas": replicas,
        "serviceName": "web",
        "selector": {"matchLabels": {"app": "web"}},
        "podManagementPolicy": "OrderedReady" if ordered else "Parallel",
        "updateStrategy": {"type": "OnDelete"} if on_delete else {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        "revisionHistoryLimit": 2,
        "minReadySeconds": min_ready,
        "template": template,
    }
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web", "namespace": "default"}, "spec": spec}


@dataclass(frozen=True)
class Plan:
    """A run: a set, and what happens to it when."""

    ordered: bool
    on_delete: bool
    replicas: int
    min_ready: int
    steps: tuple[tuple[float, str, int], ...]
    seed: int


PLANS = st.builds(
    Plan,
    ordered=st.booleans(),
    on_delete=st.booleans(),
    replicas=st.integers(0, 4),
    min_ready=st.sampled_from([0, 3]),
    steps=st.lists(st.tuples(st.sampled_from([0.0, 0.2, 1.0, 5.0, 30.0]), st.sampled_from(ACTIONS), st.integers(0, 4)), max_size=7).map(tuple),
    seed=st.integers(0, 2**16),
)


async def disturb(cluster: SimCluster, plan: Plan, deletions: Deletions, what: str, which: int) -> None:
    """Do one thing; what is gone already is left alone."""

    async def patch(spec: dict[str, Any]) -> None:
        await cluster.client.patch(STATEFUL_SETS, "web", {"spec": spec}, namespace="default")

    pods = await cluster.list("pod")
    target = pods[which % len(pods)] if pods else None
    try:
        if what == "scale":
            await patch({"replicas": which})
        elif what in ("template", "back"):
            version = str(which) if what == "template" else "0"
            await patch({"template": {"metadata": {"annotations": {"version": version}}}})
        elif what == "partition" and not plan.on_delete:
            await patch({"updateStrategy": {"rollingUpdate": {"partition": which}}})
        elif what == "start":
            await patch({"ordinals": {"start": which % 3}})
        elif what == "delete-revision":
            revisions = await cluster.list("controllerrevision")
            named = {(await cluster.client.get(STATEFUL_SETS, "web", "default"))["status"].get("updateRevision")}
            idle = [each for each in revisions if each["metadata"]["name"] not in named]
            if idle and plan.on_delete is False and await cluster.settle(200):
                await cluster.delete(f"controllerrevision/{idle[which % len(idle)]['metadata']['name']}")
        elif what == "restart":
            await cluster.restart("kube-controller-manager")
        elif target is not None:
            name, uid = target["metadata"]["name"], target["metadata"]["uid"]
            deletions.excuse(uid)
            if what == "fail-pod":
                await cluster.fail_pod("default", name, uid=uid)
            elif what == "delete-pod":
                await cluster.delete_pod("default", name, uid=uid)
            elif what == "release":
                await cluster.client.patch(PODS, name, {"metadata": {"labels": {"app": "other"}}}, namespace="default")
                await cluster.settle(1)
                await cluster.delete_pod("default", name, uid=uid)
    except (NotFound, Conflict):
        return


async def play(cluster: SimCluster, plan: Plan) -> None:
    """Play a plan; afterwards the set is as it should be, and nothing is left of it when it is deleted."""
    invariants = statefulset_invariants()
    deletions = next(each for each in invariants if isinstance(each, Deletions))
    checker = Checker(cluster.store, [*invariants, *dns_invariants(lossless=False)])
    service = {"clusterIP": "None", "selector": {"app": "web"}, "publishNotReadyAddresses": plan.ordered}
    await cluster.client.create(SERVICES, {"metadata": {"name": "web", "namespace": "default"}, "spec": service})
    await cluster.client.create(
        STATEFUL_SETS, stateful_set(ordered=plan.ordered, replicas=plan.replicas, on_delete=plan.on_delete, min_ready=plan.min_ready)
    )
    for after, what, which in plan.steps:
        await cluster.settle(after)
        await disturb(cluster, plan, deletions, what, which)
    await cluster.settle(4000)
    checker.at_rest()
    await cluster.delete("statefulset/web", propagation="Foreground")
    await cluster.settle(2000)
    checker.at_rest()
    assert await cluster.list("pod") == []
    assert await cluster.list("controllerrevision") == []


@given(plan=PLANS)
def test_sets_keep_their_promises(plan: Plan) -> None:
    """On a perfect network: order, identity, one deletion at a time, counts, and the wish come true."""
    simulate(lambda cluster: play(cluster, plan), seed=plan.seed, faults=PERFECT, fleet=FLEET)


@given(plan=PLANS)
def test_sets_keep_their_promises_on_a_rough_network(plan: Plan) -> None:
    """The same with stale caches, lost requests, invented conflicts and restarts."""
    simulate(lambda cluster: play(cluster, plan), seed=plan.seed, faults=ROUGH, fleet=FLEET)


@given(plan=PLANS)
def test_runs_are_reproducible(plan: Plan) -> None:
    """The same plan and seed give the same trace, byte for byte."""

    def trace() -> bytes:
        async def scenario(cluster: SimCluster) -> bytes:
            recorded = cluster.trace()
            await play(cluster, plan)
            return recorded.bytes

        return simulate(scenario, seed=plan.seed, faults=ROUGH, fleet=FLEET)

    assert trace() == trace()
