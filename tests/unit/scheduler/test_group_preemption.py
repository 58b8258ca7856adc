"""Groups that preempt, and are preempted, as wholes (feature gate WorkloadAwarePreemption)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kubemini.api.resources import EVENTS, NODES, POD_DISRUPTION_BUDGETS, POD_GROUPS, PODS, PRIORITY_CLASSES
from kubemini.controllers.scheduler.victims import Unit, by_budget, units_below
from kubemini.sim.cluster import SimCluster, simulate
from kubemini.testing.invariants import Checker
from kubemini.testing.invariants.pod_groups import pod_group_invariants
from kubemini.testing.invariants.scheduler import condition, scheduler_invariants
from tests.unit.scheduler.samples import cluster as cache_of
from tests.unit.scheduler.samples import node, pod

Tree = dict[str, Any]
CONTROLLERS = ("namespaces", "service-accounts", "garbage-collector", "nodes", "scheduler", "kubelet")
UNKEPT = ("namespaces", "service-accounts", "garbage-collector", "scheduler")
"""Without a kubelet: who has to go is going until the test says that it is gone."""
GATES = {"GenericWorkload": True, "GangScheduling": True, "WorkloadAwarePreemption": True}
LACKS = (
    "0/{0} nodes are available: {0} Insufficient cpu. no new claims to deallocate, preemption: not eligible due to workload aware preemption enabled"
)


# ----------------------------------------------------------------------------------------------- units


def named(units: list[Unit]) -> list[str]:
    """Return the names of the pods of each unit."""
    return ["+".join(each["metadata"]["name"] for each, _ in unit.pods) for unit in units]


def group(name: str, *, priority: int = 0, mode: str = "PodGroup") -> Tree:
    """Return a PodGroup as it is stored."""
    return {"metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"}, "spec": {"priority": priority, "disruptionMode": mode}}


def of(name: str, member_of: str, started: str = "2026-01-01T00:00:00Z", **more: Any) -> Tree:
    """Return a member of a group (of none: "") that has started."""
    membership: Tree = {"schedulingGroup": {"podGroupName": member_of}} if member_of else {}
    made = pod(name, cpu="1", **membership, **more)
    made["status"]["startTime"] = started
    return made


def finder(*groups: Tree) -> Callable[[Tree], Tree | None]:
    """Return what finds the group of a pod among some."""
    known = {each["metadata"]["name"]: each for each in groups}
    return lambda member: known.get((member["spec"].get("schedulingGroup") or {}).get("podGroupName", ""))


def test_the_order_of_units() -> None:
    """Priority first; then groups before pods, whatever their mode, the larger before the smaller, and the earlier start."""
    cache = cache_of(
        node("a"),
        node("b"),
        a=[
            of("young", "", "2026-01-03T00:00:00Z"),
            of("s-0", "small"),
            of("l-0", "large"),
            of("old", "", "2026-01-02T00:00:00Z"),
            of("m-0", "members"),
        ],
        b=[of("s-1", "small"), of("l-1", "large"), of("l-2", "large"), of("m-1", "members", "2025-01-01T00:00:00Z"), of("strong", "", priority=5)],
    )
    found = units_below(10, cache, finder(group("small"), group("large"), group("members", mode="Pod")))
    assert named(found) == ["strong", "l-0+l-1+l-2", "s-0+s-1", "m-1", "m-0", "old", "young"]


def test_the_priority_of_the_group_counts() -> None:
    """A pod is as important as its group, whatever its own priority says, and only what is strictly below is a unit."""
    cache = cache_of(node("a"), a=[of("weak", "strong"), of("mighty", "weak", priority=100), of("even", "", priority=10)])
    assert named(units_below(10, cache, finder(group("strong", priority=10, mode="Pod"), group("weak", priority=1)))) == ["mighty"]


def test_one_pod_breaks_the_budget_for_its_unit() -> None:
    """A unit breaks a budget when one of its pods does; budgets are spent by the more important units first."""
    cache = cache_of(node("a"), a=[of("g-0", "g"), of("g-1", "g", labels={"app": "x"}), of("free", "", labels={"app": "x"}), of("other", "")])
    budget = {
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "x"}}},
        "status": {"disruptionsAllowed": 1},
    }
    units = units_below(10, cache, finder(group("g")))
    assert [named(each) for each in by_budget(units, [budget])] == [["free"], ["g-0+g-1", "other"]]
    assert [named(each) for each in by_budget(units, [{**budget, "status": {}}])] == [["g-0+g-1", "free"], ["other"]]


def test_what_has_begun_to_go_goes_first() -> None:
    """A unit some of whose pods were preempted already is the least important: it is brought to its end."""
    mark = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    begun = of("g-0", "g", priority=5)
    begun["metadata"]["deletionTimestamp"] = "2026-01-01T00:01:00Z"
    begun["status"]["conditions"] = [mark]
    cache = cache_of(node("a"), a=[begun, of("g-1", "g"), of("single", "")])
    assert named(units_below(10, cache, finder(group("g", priority=5)))) == ["single", "g-0+g-1"]


# ----------------------------------------------------------------------------------------------- whole clusters


class Stage:
    """A cluster of nodes n-0, n-1 … with 4 cpu each, and words for what happens in it."""

    def __init__(self, cluster: SimCluster) -> None:
        self.cluster = cluster
        self.client = cluster.client

    async def rest(self, seconds: float = 60.0) -> None:
        """Let the cluster come to rest."""
        await self.cluster.settle(seconds)

    async def group(self, name: str, minimum: int, priority: str, *, mode: str = "PodGroup", topology: str = "") -> None:
        """Create a PodGroup."""
        spec: Tree = {"schedulingPolicy": {"gang": {"minCount": minimum}}, "priorityClassName": priority, "disruptionMode": mode}
        if topology:
            spec["schedulingConstraints"] = {"topology": [{"key": topology}]}
        await self.client.create(POD_GROUPS, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})

    async def pods(
        self,
        *names: str,
        cpu: str = "4",
        priority: str = "low",
        member_of: str = "",
        labels: Tree | None = None,
        finalizers: list[str] | None = None,
        **spec: Any,
    ) -> None:
        """Create pods, and let the cluster come to rest."""
        if member_of:
            spec["schedulingGroup"] = {"podGroupName": member_of}
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        for name in names:
            meta = {"name": name, "namespace": "default", "labels": labels or {}}
            body = {"metadata": meta, "spec": {"containers": [container], "priorityClassName": priority, "restartPolicy": "Never", **spec}}
            await self.client.create(PODS, body)
        await self.rest()

    async def bound(self) -> list[str]:
        """Return the names of the pods that have a node and are there to stay."""
        pods = await self.client.list(PODS)
        return [each["metadata"]["name"] for each in pods if each["spec"].get("nodeName") and "deletionTimestamp" not in each["metadata"]]

    async def verdict(self, name: str) -> str:
        """Return why a pod has no node."""
        found = condition(await self.client.get(PODS, name, "default"), "PodScheduled")
        return found["message"] if found is not None else ""

    async def verdict_of_group(self, name: str) -> str:
        """Return why a group has not started."""
        found = condition(await self.client.get(POD_GROUPS, name, "default"), "PodGroupScheduled")
        assert found is not None
        assert (found["status"], found["reason"]) == ("False", "Unschedulable")
        return str(found["message"])


def play(
    scenario: Callable[[Stage], Awaitable[None]], *, nodes: int = 2, gates: dict[str, bool] | None = None, controllers: tuple[str, ...] = CONTROLLERS
) -> None:
    """Run a scenario with all promises of scheduling checked."""

    async def whole(cluster: SimCluster) -> None:
        checker = Checker(cluster.store, [*scheduler_invariants(), *pod_group_invariants()])
        await cluster.settle(60.0)
        for name, value, policy in (
            ("low", 1, "PreemptLowerPriority"),
            ("mid", 50, "PreemptLowerPriority"),
            ("high", 100, "PreemptLowerPriority"),
            ("polite", 100, "Never"),
        ):
            await cluster.client.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value, "preemptionPolicy": policy})
        for number in range(nodes):
            labels = {"kubernetes.io/hostname": f"n-{number}", "rack": f"r{number}"}
            resources = {"cpu": "4", "memory": "64Gi", "pods": "110"}
            await cluster.client.create(NODES, {"metadata": {"name": f"n-{number}", "labels": labels}, "status": {"allocatable": resources}})
            if "nodes" not in controllers:
                await cluster.client.patch(NODES, f"n-{number}", {"spec": {"taints": None}})
        await cluster.settle(60.0)
        await scenario(Stage(cluster))
        await cluster.settle(600.0)
        checker.at_rest()

    simulate(whole, seed=1, controllers=controllers, feature_gates=gates or GATES)


def test_a_group_preempts_across_the_cluster() -> None:
    """Victims on all nodes go at once, and enough of the group starts where they were; conditions and events name the group."""

    async def scenario(stage: Stage) -> None:
        await stage.pods("a", "b", cpu="3")
        await stage.group("g", 2, "high")
        await stage.pods("g-0", "g-1", priority="high", member_of="g")
        assert await stage.bound() == ["g-0", "g-1"]
        uid = (await stage.client.get(POD_GROUPS, "g", "default"))["metadata"]["uid"]
        events = [each for each in await stage.client.list(EVENTS) if each["reason"] == "Preempted"]
        assert sorted(each["involvedObject"]["name"] for each in events) == ["a", "b"]
        assert {each["message"] for each in events} == {f"Preempted by podgroup {uid} on node cluster"}
        assert {(each["action"], each["related"]["kind"], each["related"]["name"]) for each in events} == {("Preempting", "PodGroup", "g")}

    play(scenario)


def test_what_is_said_while_victims_go() -> None:
    """Members with a place now are nominated there, the others wait for room without a nomination; the group waits for its victims, and asks for no more."""

    async def scenario(stage: Stage) -> None:
        await stage.pods("a", cpu="3")
        await stage.group("g", 2, "high")
        await stage.pods("g-0", "g-1", priority="high", member_of="g")
        found = condition(await stage.client.get(PODS, "a", "default"), "DisruptionTarget")
        assert found is not None
        assert (found["status"], found["reason"]) == ("True", "PreemptionByScheduler")
        assert found["message"] == "default-scheduler: preempting to accommodate a higher priority podgroup"
        members = {name: await stage.client.get(PODS, name, "default") for name in ("g-0", "g-1")}
        assert {name: each["status"].get("nominatedNodeName", "") for name, each in members.items()} == {"g-0": "n-1", "g-1": ""}
        assert await stage.verdict("g-0") == "pod group is unschedulable"
        assert await stage.verdict("g-1") == LACKS.format(2)
        assert await stage.verdict_of_group("g") == "pod group is unschedulable"
        await stage.client.delete(PODS, "a", namespace="default", grace=0)
        await stage.rest()
        assert await stage.bound() == ["g-0", "g-1"]

    play(scenario, controllers=UNKEPT)


def test_a_group_waits_beside_its_victims() -> None:
    """A member that is nominated where a victim is about to leave stays nominated, and nobody else is asked to go meanwhile."""

    async def scenario(stage: Stage) -> None:
        await stage.pods("a", "b", cpu="2")
        await stage.group("g", 3, "high")
        await stage.pods("g-0", "g-1", "g-2", priority="high", member_of="g", cpu="2")
        await stage.pods("c", cpu="4", priority="mid")
        going = [each["metadata"]["name"] for each in await stage.client.list(PODS) if "deletionTimestamp" in each["metadata"]]
        assert len(going) == 1
        nominated = [each["status"].get("nominatedNodeName") for each in await stage.client.list(PODS) if each["metadata"]["name"].startswith("g-")]
        assert sorted(filter(None, nominated)) == ["n-0", "n-1"]
        assert await stage.verdict_of_group("g") == "pod group is unschedulable, not eligible due to a terminating pod on the nominated node."
        await stage.client.delete(PODS, going[0], namespace="default", grace=0)
        await stage.rest()
        assert [name for name in await stage.bound() if name.startswith("g-")] == ["g-0", "g-1", "g-2"]

    play(scenario, controllers=UNKEPT)


def test_all_or_nothing() -> None:
    """Where even an empty cluster would not hold enough of a group, nobody goes."""

    async def scenario(stage: Stage) -> None:
        await stage.pods("a", "b", cpu="3")
        await stage.group("g", 3, "high")
        await stage.pods("g-0", "g-1", "g-2", priority="high", member_of="g")
        assert await stage.bound() == ["a", "b"]
        assert await stage.verdict_of_group("g") == "pod group is unschedulable, pod group is unschedulable"

    play(scenario)


@pytest.mark.parametrize("mode, left", [("PodGroup", ["g-0"]), ("Pod", ["g-0", "v"])])
def test_a_unit_goes_as_a_whole(mode: str, left: list[str]) -> None:
    """All bound pods of a group of mode PodGroup go where one would do, and those that wait are left alone; of mode Pod goes who is in the way."""

    async def scenario(stage: Stage) -> None:
        await stage.group("v", 2, "low", mode=mode)
        await stage.pods("v-0", "v-1", member_of="v")
        await stage.pods("v-late", cpu="5", member_of="v")
        await stage.group("g", 1, "high")
        await stage.pods("g-0", priority="high", member_of="g")
        assert [name if name[0] == "g" else name[0] for name in await stage.bound()] == left
        late = await stage.client.get(PODS, "v-late", "default")
        assert condition(late, "DisruptionTarget") is None
        assert "deletionTimestamp" not in late["metadata"]

    play(scenario)


def test_who_comes_back_first() -> None:
    """Of equal priority, a group stays and a single pod goes; the larger of two groups stays."""

    async def scenario(stage: Stage) -> None:
        for name, count in (("small", 1), ("large", 2)):
            await stage.group(name, count, "low")
            await stage.pods(*(f"{name}-{number}" for number in range(count)), member_of=name)
        await stage.pods("single")
        for name, left in (("first", ["first-0", "large-0", "large-1", "small-0"]), ("second", ["first-0", "large-0", "large-1", "second-0"])):
            await stage.group(name, 1, "high")
            await stage.pods(f"{name}-0", priority="high", member_of=name)
            assert await stage.bound() == left

    play(scenario, nodes=4)


def test_a_budget_protects_while_somebody_else_will_do() -> None:
    """A unit whose eviction breaks a budget comes back before all others, however important those are."""

    async def scenario(stage: Stage) -> None:
        await stage.group("v", 1, "low")
        await stage.pods("v-0", member_of="v", labels={"app": "x"})
        await stage.pods("b", priority="mid")
        budget = {"metadata": {"name": "b", "namespace": "default"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}}
        await stage.client.create(POD_DISRUPTION_BUDGETS, budget)
        await stage.group("g", 1, "high")
        await stage.pods("g-0", priority="high", member_of="g")
        assert await stage.bound() == ["g-0", "v-0"]

    play(scenario)


def test_the_priority_of_groups_decides() -> None:
    """Members' own priorities matter neither for whom they may drive out, nor for who may drive them out."""

    async def scenario(stage: Stage) -> None:
        await stage.group("v", 1, "mid")
        await stage.pods("v-0", member_of="v")
        await stage.pods("b", priority="mid")
        await stage.group("even", 1, "mid")
        await stage.pods("even-0", priority="high", member_of="even")
        assert await stage.bound() == ["b", "v-0"]
        assert await stage.verdict_of_group("even") == "pod group is unschedulable, No preemption victims found for incoming preemptor"
        await stage.group("g", 2, "high")
        await stage.pods("g-0", "g-1", priority="low", member_of="g")
        assert await stage.bound() == ["g-0", "g-1"]

    play(scenario)


def test_one_that_never_preempts_speaks_for_all() -> None:
    """A group one of whose waiting pods has preemptionPolicy Never drives out nobody."""

    async def scenario(stage: Stage) -> None:
        await stage.pods("a", "b")
        await stage.group("g", 2, "high")
        await stage.pods("g-0", priority="high", member_of="g")
        await stage.pods("g-1", priority="polite", member_of="g")
        assert await stage.bound() == ["a", "b"]
        assert await stage.verdict_of_group("g") == "pod group is unschedulable, not eligible due to preemptionPolicy=Never."

    play(scenario)


def test_not_with_topology_constraints() -> None:
    """A group that asks for one domain drives out nobody, neither as a whole nor pod by pod."""

    async def scenario(stage: Stage) -> None:
        await stage.pods("a", "b")
        await stage.group("g", 1, "high", topology="rack")
        await stage.pods("g-0", priority="high", member_of="g")
        assert await stage.bound() == ["a", "b"]
        text = "pod group is unschedulable, workload aware preemption is not supported for pod groups with scheduling constraints"
        assert await stage.verdict_of_group("g") == text
        assert (await stage.verdict("g-0")).endswith("preemption: not eligible due to placement-based pod group scheduling limitation")

    play(scenario, gates={**GATES, "TopologyAwareWorkloadScheduling": True})


def test_members_beyond_the_quorum_drive_out_nobody_while_others_start() -> None:
    """What of a group has no place when enough of it starts waits, and preempts as a group only when it tries again."""

    async def scenario(stage: Stage) -> None:
        await stage.pods("a", priority="high")
        await stage.group("g", 1, "high")
        gated = [{"name": "example.com/wait"}]
        for name in ("g-0", "g-1"):
            await stage.pods(name, priority="high", member_of="g", schedulingGates=gated)
        for name in ("g-0", "g-1"):
            await stage.client.patch(PODS, name, {"spec": {"schedulingGates": None}}, namespace="default")
        await stage.rest()
        assert await stage.bound() == ["a", "g-0"]
        assert await stage.verdict("g-1") == LACKS.format(2)
        found = condition(await stage.client.get(POD_GROUPS, "g", "default"), "PodGroupScheduled")
        assert found is not None
        assert found["status"] == "True"

    play(scenario)


def test_a_late_member_preempts_for_its_group() -> None:
    """A member that comes when its group has started is no pod of its own either: the group makes room for it, not at its own cost."""

    async def scenario(stage: Stage) -> None:
        await stage.group("g", 1, "high", mode="Pod")
        await stage.pods("g-0", member_of="g")
        await stage.pods("a", priority="mid")
        await stage.pods("g-late", member_of="g")
        assert await stage.bound() == ["g-0", "g-late"]
        await stage.pods("g-later", member_of="g")
        assert await stage.bound() == ["g-0", "g-late"]

    play(scenario)


def test_a_single_pod_knows_no_units() -> None:
    """As upstream in 1.36, a pod of no group preempts by pods' own priorities, and one member of a group that is otherwise disrupted as a whole."""

    async def scenario(stage: Stage) -> None:
        await stage.group("v", 2, "high")
        await stage.pods("v-0", "v-1", member_of="v")
        await stage.pods("single", priority="mid")
        assert len(await stage.bound()) == 2
        assert "single" in await stage.bound()

    play(scenario)


def test_without_the_gate_members_preempt_one_by_one() -> None:
    """With the gate off, a group's pods drive out whom they need themselves, and no unit goes as a whole."""

    async def scenario(stage: Stage) -> None:
        await stage.group("v", 2, "low")
        await stage.pods("v-0", "v-1", member_of="v")
        await stage.group("g", 1, "high")
        await stage.pods("g-0", priority="high", member_of="g")
        assert len(await stage.bound()) == 2
        assert {
            each["message"].rpartition(" on node ")[0].split(" ")[2] for each in await stage.client.list(EVENTS) if each["reason"] == "Preempted"
        } == {"pod"}

    play(scenario, gates={**GATES, "WorkloadAwarePreemption": False})
