"""Admission fair sharing in a whole cluster under virtual time: LocalQueues that share over time, restarts, status, metrics and who waits where."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest
import yaml

from kubemini import Cluster, SimCluster
from kubemini.api.trees import Tree
from kubemini.machinery.errors import NotFound
from kubemini.machinery.quantity import NANO, nano
from kubemini.sim.faults import Faults
from tests.conftest import ROOT
from tests.unit.kueue.test_lives import KUEUE, active_check, answer, job, node, play, queues, the_workload
from tests.unit.kueue.test_metrics import shown
from tests.unit.kueue.test_visibility import ask

MANIFESTS = ROOT.parent / "shared" / "manifests" / "kueue"
ROUGH = Faults(watch_delay=0.5, request_delay=0.05, lost_before=0.03, lost_after=0.03, conflict=0.05)
CONFIG = {"admissionFairSharing": {"usageHalfLifeTime": "10m", "usageSamplingInterval": "1m"}}
BY_USAGE: Any = {"admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"}}


def sharing(*checks: str, cpu: str = "4", weights: dict[str, str] | None = None, **spec: Any) -> list[Tree]:
    """Return a ClusterQueue with LocalQueues `a` and `b` of these weights."""
    objects = queues(*checks, cpu=cpu, local=("a", "b"), **{**BY_USAGE, **spec})
    for each in objects:
        if each["kind"] == "LocalQueue" and weights:
            each["spec"]["fairSharing"] = {"weight": weights[each["metadata"]["name"]]}
    return objects


def running(name: str, queue: str, seconds: int, cpu: int = 1, **labels: str) -> Tree:
    """Return a Job of pods of one cpu that run for a while."""
    tree = job(name, queue, cpu, **labels)
    tree["spec"]["template"]["metadata"] = {"annotations": {"kubemini.dev/run-for": f"{seconds}s"}}
    return tree


async def consumed(cluster: Cluster, queue: str) -> float:
    """Return the cpu that status says a LocalQueue has consumed."""
    tree = await cluster.get(f"localqueue/{queue}")
    value = tree["status"]["fairSharing"]["admissionFairSharingStatus"]["consumedResources"].get("cpu", "0")
    return nano(value) / NANO


async def done(cluster: Cluster) -> dict[str, int]:
    """Return how many Jobs of each LocalQueue are complete."""
    counts = {"a": 0, "b": 0}
    for each in await cluster.list("job"):
        counts[each["metadata"]["name"][0]] += each["status"].get("succeeded", 0)
    return counts


async def flood(cluster: SimCluster, each: int, **objects: Any) -> None:
    """Let all jobs of `a` come before those of `b`, and with a higher priority."""
    await node(cluster)
    await cluster.apply([*sharing(**objects), {"apiVersion": KUEUE, "kind": "WorkloadPriorityClass", "metadata": {"name": "high"}, "value": 9}])
    await asyncio.sleep(1)
    for number in range(each):
        await cluster.apply(running(f"a-{number}", "a", 60, priority_class="high"))
    await asyncio.sleep(2)
    for number in range(each):
        await cluster.apply(running(f"b-{number}", "b", 60))


@pytest.mark.parametrize("strategy", ["StrictFIFO", "BestEffortFIFO"])
@pytest.mark.parametrize("weights, low, high", [({"a": "1", "b": "1"}, 0.8, 1.25), ({"a": "1", "b": "3"}, 2.4, 3.6)])
def test_two_local_queues_share_by_weight(strategy: str, weights: dict[str, str], low: float, high: float) -> None:
    """Over time each LocalQueue gets its part by weight, though all of one came first and have the higher priority; so it is after a restart in the middle."""

    async def scenario(cluster: SimCluster) -> None:
        await flood(cluster, 150, weights=weights, queueingStrategy=strategy)
        for _ in range(2):
            before = await done(cluster)
            await asyncio.sleep(1200)
            after = await done(cluster)
            got = {name: after[name] - before[name] for name in after}
            assert low < got["b"] / got["a"] < high, got
            await cluster.restart("kueue-controller-manager")

    play(scenario, kueue=CONFIG)


@pytest.mark.parametrize(
    "kueue, gates, mode",
    [
        ({}, {}, "UsageBasedAdmissionFairSharing"),
        (CONFIG, {"AdmissionFairSharing": False}, "UsageBasedAdmissionFairSharing"),
        (CONFIG, {}, "NoAdmissionFairSharing"),
    ],
    ids=["not configured", "gate off", "not in this queue"],
)
def test_without_it_priority_decides(kueue: Tree, gates: dict[str, bool], mode: str) -> None:
    """Where it is not configured, its gate is off or the ClusterQueue does not want it, priorities decide; status says what was used only where it is configured."""

    async def scenario(cluster: SimCluster) -> None:
        await flood(cluster, 30, admissionScope={"admissionMode": mode})
        await asyncio.sleep(300)
        counts = await done(cluster)
        assert counts["a"] > 12
        assert counts["b"] == 0
        assert ("fairSharing" in (await cluster.get("localqueue/a"))["status"]) is (kueue is CONFIG and not gates)

    play(scenario, kueue=kueue, feature_gates=gates)


def test_what_was_used_is_not_forgotten_by_a_restart() -> None:
    """Status says what a LocalQueue consumed; a new manager goes on from there, so the other LocalQueue is still the first in line."""

    async def scenario(cluster: SimCluster) -> None:
        await node(cluster)
        await cluster.apply(sharing(cpu="2"))
        await asyncio.sleep(1)
        first = (await cluster.get("localqueue/a"))["status"]["fairSharing"]
        assert (first["weightedShare"], first["admissionFairSharingStatus"]["consumedResources"]) == (0, {})
        await cluster.apply(running("a-1", "a", 900, 2))
        await asyncio.sleep(800)
        used = await consumed(cluster, "a")
        assert 2 * (1 - 0.5 ** (600 / 600)) < used < 2
        await cluster.restart("kueue-controller-manager")
        await asyncio.sleep(5)
        assert await consumed(cluster, "a") == pytest.approx(used, rel=0.02)
        assert await consumed(cluster, "b") == 0
        await cluster.apply(running("a-2", "a", 60, 2))
        await cluster.apply(running("b-1", "b", 60, 2))
        await asyncio.sleep(180)
        assert await done(cluster) == {"a": 2, "b": 2}
        await asyncio.sleep(1200)
        assert await done(cluster) == {"a": 4, "b": 2}
        assert 0 < await consumed(cluster, "a") < used

    play(scenario, kueue=CONFIG)


def test_the_order_of_those_who_wait_is_the_order_of_their_turn() -> None:
    """The visibility API lists the LocalQueue of lower usage first; the gauge says its usage by weight."""

    async def scenario(cluster: SimCluster) -> None:
        await node(cluster)
        await cluster.apply(sharing(cpu="1", weights={"a": "2", "b": "1"}))
        await asyncio.sleep(1)
        await cluster.apply(running("a-0", "a", 900))
        await asyncio.sleep(200)
        for number in (1, 2):
            await cluster.apply(running(f"a-{number}", "a", 60))
            await asyncio.sleep(2)
        await cluster.apply(running("b-1", "b", 60))
        await asyncio.sleep(2)
        answer_ = ask(cluster, "v1beta2/clusterqueues/cq/pendingworkloads")
        assert answer_ is not None
        owners = [(each["metadata"]["ownerReferences"][0]["name"], each["positionInLocalQueue"]) for each in answer_["items"]]
        assert owners == [("b-1", 0), ("a-1", 0), ("a-2", 1)]
        usages = shown(cluster, "local_queue_admission_fair_sharing_usage")
        assert usages["b", "default", "cq", "leader"] == 0
        assert usages["a", "default", "cq", "leader"] == pytest.approx(await consumed(cluster, "a") / 2, rel=0.05)

    play(scenario, kueue=CONFIG)


def test_a_penalty_waits_for_checks() -> None:
    """A Workload with quota that waits for a check makes its LocalQueue pay; without an answer the penalty goes with the Workload, with one it is settled."""

    async def scenario(cluster: SimCluster) -> None:
        await node(cluster)
        await cluster.apply(sharing("ac"))
        await active_check(cluster, "ac")
        await asyncio.sleep(5)
        gauge = "local_queue_admission_fair_sharing_usage"
        penalty = 1 - 0.5 ** (60 / 600)
        await cluster.apply(running("a-1", "a", 600))
        await asyncio.sleep(5)
        assert shown(cluster, gauge)["a", "default", "cq", "leader"] == pytest.approx(penalty)
        assert await consumed(cluster, "a") == 0
        await cluster.delete("job/a-1")
        await asyncio.sleep(5)
        assert shown(cluster, gauge)["a", "default", "cq", "leader"] == 0
        await cluster.apply(running("a-2", "a", 600))
        await asyncio.sleep(5)
        await answer(cluster, await the_workload(cluster), ac={"state": "Ready"})
        await asyncio.sleep(100)
        assert penalty * 0.9 < await consumed(cluster, "a") < 0.25

    play(scenario, kueue=CONFIG)


def test_time_alone_may_bring_the_turn() -> None:
    """A StrictFIFO head that does not fit keeps the others out until its LocalQueue has used more than theirs: samples alone bring that about."""

    async def scenario(cluster: SimCluster) -> None:
        await node(cluster)
        await cluster.apply(sharing(queueingStrategy="StrictFIFO"))
        await asyncio.sleep(1)
        await cluster.apply(running("b-0", "b", 300, 2))
        await asyncio.sleep(120)
        await cluster.apply(running("a-0", "a", 9000, 2))
        await asyncio.sleep(80)
        await cluster.apply(running("a-large", "a", 60, 4))
        await asyncio.sleep(5)
        await cluster.apply(running("b-1", "b", 60))
        await asyncio.sleep(110)
        assert (await done(cluster))["b"] == 2
        assert (await cluster.get("job/b-1"))["spec"]["suspend"] is True
        await asyncio.sleep(600)
        assert await done(cluster) == {"a": 0, "b": 3}

    play(scenario, kueue=CONFIG)


def test_a_sample_is_taken_once_in_an_interval() -> None:
    """Other news of a LocalQueue does not bring another sample; what it used is written once in an interval."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.apply(sharing(cpu="0"))
        await asyncio.sleep(5)
        stamps: dict[str, int] = {}
        for number in range(30):
            await cluster.apply(running(f"a-{number}", "a", 60))
            await asyncio.sleep(4)
            status = (await cluster.get("localqueue/a"))["status"]
            stamps[status["fairSharing"]["admissionFairSharingStatus"]["lastUpdate"]] = status["pendingWorkloads"]
        assert list(stamps.values())[-1] == 30
        assert len(stamps) == 3

    play(scenario, kueue=CONFIG)


@pytest.mark.parametrize("seed", range(3))
def test_no_penalty_is_left_behind(seed: int) -> None:
    """With stale caches, conflicts, lost answers, a restart and Workloads that are deleted or deactivated, nothing is owed in the end, and all is forgotten in time."""

    async def scenario(cluster: SimCluster) -> None:
        await flood(cluster, 12)
        for step in range(6):
            await asyncio.sleep(20)
            waiting = await cluster.list("workload.kueue.x-k8s.io")
            name = waiting[step % len(waiting)]["metadata"]["name"]
            with suppress(NotFound):
                if step % 2:
                    await cluster.delete(f"workload.kueue.x-k8s.io/{name}")
                else:
                    await cluster.patch(f"workload.kueue.x-k8s.io/{name}", {"spec": {"active": False}})
            if step == 3:
                await cluster.restart("kueue-controller-manager")
        await asyncio.sleep(15_000)
        assert sum((await done(cluster)).values()) >= 20
        assert list(shown(cluster, "local_queue_admission_fair_sharing_usage").values()) == pytest.approx([0, 0], abs=1e-4)
        for queue in ("a", "b"):
            assert await consumed(cluster, queue) < 1e-4

    play(scenario, kueue=CONFIG, seed=seed, faults=ROUGH)


def test_the_scope_may_change_in_place() -> None:
    """A ClusterQueue that begins to share by usage while Workloads wait has their turns decided anew, without a restart."""

    async def scenario(cluster: SimCluster) -> None:
        await flood(cluster, 30, cpu="1", admissionScope={"admissionMode": "NoAdmissionFairSharing"})
        await asyncio.sleep(300)
        counts = await done(cluster)
        assert counts["b"] == 0
        await cluster.patch("clusterqueue/cq", {"spec": BY_USAGE})
        await asyncio.sleep(300)
        assert (await done(cluster))["b"] >= 3

    play(scenario, kueue=CONFIG)


@pytest.mark.skipif(not MANIFESTS.exists(), reason="upstream's examples are not here")
def test_upstreams_example() -> None:
    """Upstream's example: nine cpus for two LocalQueues; the one that came later, and has nothing, goes before those that wait already."""

    def example(name: str) -> list[Tree]:
        return [each for each in yaml.safe_load_all((MANIFESTS / f"admission-fs--{name}.yaml").read_text()) if each]

    def numbered(name: str, number: int, seconds: int) -> Tree:
        (tree,) = example(name)
        pods = {**tree["spec"]["template"], "metadata": {"annotations": {"kubemini.dev/run-for": f"{seconds}s"}}}
        return {**tree, "metadata": {**tree["metadata"], "name": f"{name}-{number}"}, "spec": {**tree["spec"], "template": pods}}

    async def scenario(cluster: SimCluster) -> None:
        await node(cluster)
        await cluster.apply(example("admission-fair-sharing-setup"))
        await asyncio.sleep(1)
        for number in range(6):
            await cluster.apply(numbered("lq-a-simple-job", number, 100 + 10 * number))
            await asyncio.sleep(2)
        for number in range(3):
            await cluster.apply(numbered("lq-b-simple-job", number, 100))
        await asyncio.sleep(130)
        started = {each["metadata"]["name"] for each in await cluster.list("job") if not each["spec"].get("suspend")}
        assert {name for name in started if "-b-" in name} == {f"lq-b-simple-job-{number}" for number in range(3)}
        assert not {f"lq-a-simple-job-{number}" for number in range(3, 6)} & started
        await asyncio.sleep(60)
        for queue in ("lq-a", "lq-b"):
            assert 0 < await consumed(cluster, queue) < 9

    play(scenario, kueue=CONFIG)
