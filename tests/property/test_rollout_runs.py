"""Deployments, ReplicaSets, DaemonSets, budgets and quotas of a running cluster, under any sequence of edits and failures and with caches that lag."""

import asyncio
import contextlib
from typing import Any

import hypothesis.strategies as st
from hypothesis import example, given, settings

from kubemini.api.resources import DAEMON_SETS, DEPLOYMENTS, NODES, POD_DISRUPTION_BUDGETS, PODS, REPLICA_SETS, RESOURCE_QUOTAS
from kubemini.controllers.daemon_set.placing import target
from kubemini.machinery.errors import ApiStatus, Conflict, NotFound
from kubemini.sim.cluster import SimCluster, simulate
from kubemini.sim.faults import Faults

CONTROLLERS = "service-accounts,nodes,kubelet,replica-set,deployment,daemon-set,disruption,quota,garbage-collector"
FAULTS = st.builds(
    lambda watch, lost, conflict: Faults(watch_delay=watch, lost_before=lost, lost_after=lost, conflict=conflict),
    st.sampled_from([0.0, 0.5, 3.0]),
    st.sampled_from([0.0, 0.1]),
    st.sampled_from([0.0, 0.1]),
)


def template(version: int, *, placed: bool = True) -> dict[str, Any]:
    """Return a pod template; no two versions are equal. `placed` puts its pods on a node, so that no scheduler is needed."""
    spec: dict[str, Any] = {"terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": f"img:{version}"}]}
    if placed:
        spec["nodeName"] = "n-0"
    return {"metadata": {"labels": {"app": "x"}}, "spec": spec}


def version_of(obj: dict[str, Any]) -> str:
    """Return the image of a pod or pod template."""
    image: str = obj["spec"]["containers"][0]["image"]
    return image


class Watcher:
    """Follows the ReplicaSets of a Deployment and notes when they are told to have more pods than allowed together."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.found: list[Any] = []
        self._sizes: dict[str, int] = {}

    def replace(self, objects: Any) -> None:
        """Take a snapshot."""
        self._sizes = {each["metadata"]["name"]: each["spec"]["replicas"] for each in objects}

    def change(self, type_: str, obj: Any) -> None:
        """Take a change and add up."""
        self._sizes[obj["metadata"]["name"]] = 0 if type_ == "DELETED" else obj["spec"]["replicas"]
        if sum(self._sizes.values()) > self.most:
            self.found.append(dict(self._sizes))


class Binder:
    """Binds each pod of a DaemonSet to the node that it is made for, as a scheduler would."""

    def __init__(self, cluster: SimCluster) -> None:
        self._cluster = cluster
        self._tasks: list[asyncio.Task[None]] = []

    def replace(self, objects: Any) -> None:
        """Nothing is there at first."""

    def change(self, type_: str, obj: Any) -> None:
        """Bind what is new."""
        if type_ == "ADDED" and not obj["spec"].get("nodeName"):
            self._tasks.append(asyncio.get_running_loop().create_task(self._bind(obj)))

    async def _bind(self, pod: Any) -> None:
        await self._cluster.env.sleep(0.2)
        meta = pod["metadata"]
        body = {"metadata": {"name": meta["name"], "uid": meta["uid"]}, "target": {"kind": "Node", "name": target(pod)}}
        with contextlib.suppress(ApiStatus):
            await self._cluster.client.act(PODS, meta["name"], "binding", body, namespace=meta["namespace"])


class Served:
    """Counts the nodes with a pod that is Ready, and notes the least from `watching` on."""

    def __init__(self) -> None:
        self.least = 99
        self.watching = False
        self._ready: dict[str, str] = {}

    def replace(self, objects: Any) -> None:
        """Nothing is there at first."""

    def change(self, type_: str, obj: Any) -> None:
        """Take a change and count."""
        conditions = {each["type"]: each["status"] for each in (obj.get("status") or {}).get("conditions") or ()}
        if type_ == "DELETED" or "deletionTimestamp" in obj["metadata"] or conditions.get("Ready") != "True":
            self._ready.pop(obj["metadata"]["name"], None)
        else:
            self._ready[obj["metadata"]["name"]] = obj["spec"]["nodeName"]
        if self.watching:
            self.least = min(self.least, len(set(self._ready.values())))


STEPS = st.tuples(st.sampled_from(["roll", "back", "scale", "fail", "delete", "wait", "pause", "resume", "history"]), st.integers(0, 5))


@settings(max_examples=40)
@given(st.lists(STEPS, max_size=14), st.sampled_from([(1, 0), (0, 1), (2, 2), ("25%", "25%")]), st.integers(0, 2**16), FAULTS)
def test_deployments_come_to_rest(steps: list[tuple[str, int]], fences: tuple[Any, Any], seed: int, faults: Faults) -> None:
    """At rest all pods are of the last template and available, old ReplicaSets are empty and few, the numbers agree; on the way the surge is kept."""

    async def scenario(cluster: SimCluster) -> None:
        client = cluster.client
        await cluster.settle()
        await client.create(NODES, {"metadata": {"name": "n-0"}, "spec": {}})
        watcher = Watcher(8)
        client.watch(REPLICA_SETS, watcher)
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": fences[0], "maxUnavailable": fences[1]}}
        spec: dict[str, Any] = {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "x"}},
            "template": template(0),
            "strategy": rolling,
            "revisionHistoryLimit": 2,
        }
        await client.create(
            DEPLOYMENTS, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "default"}, "spec": spec}
        )
        latest = 0
        for action, number in steps:
            live = await client.get(DEPLOYMENTS, "d", "default")
            pods = await client.list(PODS, "default")
            patch: dict[str, Any] = {}
            if action == "roll":
                latest += 1
                patch = {"template": template(latest)}
            elif action == "back":
                patch = {"template": template(max(latest - number, 0))}
            elif action == "scale":
                patch = {"replicas": number}
            elif action in ("pause", "resume"):
                patch = {"paused": action == "pause"}
            elif action == "history":
                patch = {"revisionHistoryLimit": number}
            elif action == "wait":
                await cluster.env.sleep(number / 5)
            elif pods and action == "fail":
                await cluster.fail_pod("default", pods[number % len(pods)]["metadata"]["name"])
            elif pods:
                await cluster.delete_pod("default", pods[number % len(pods)]["metadata"]["name"])
            if patch:
                if isinstance(patch.get("template"), dict):
                    await client.update(DEPLOYMENTS, {**live, "spec": {**live["spec"], **patch}})
                else:
                    await client.patch(DEPLOYMENTS, "d", {"spec": patch}, namespace="default")
        await client.patch(DEPLOYMENTS, "d", {"spec": {"paused": False}}, namespace="default")
        assert await cluster.settle(8000)
        final = await client.get(DEPLOYMENTS, "d", "default")
        wanted = final["spec"]["replicas"]
        pods = [each for each in await client.list(PODS, "default") if each["status"]["phase"] == "Running"]
        assert [version_of(each) for each in pods] == [version_of(final["spec"]["template"])] * wanted
        sets = await client.list(REPLICA_SETS, "default")
        sizes = {each["metadata"]["name"]: each["spec"]["replicas"] for each in sets}
        assert sorted(filter(None, sizes.values())) == ([wanted] if wanted else [])
        assert len(sets) <= final["spec"]["revisionHistoryLimit"] + 1
        status = final["status"]
        assert status["observedGeneration"] == final["metadata"]["generation"]
        counts = [status.get(name, 0) for name in ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")]
        assert counts == [wanted] * 4
        conditions = {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]}
        assert conditions["Available"] == ("True", "MinimumReplicasAvailable")
        assert conditions["Progressing"] == ("True", "NewReplicaSetAvailable")
        numbers = [int(each["metadata"]["annotations"]["deployment.kubernetes.io/revision"]) for each in sets]
        assert faults.lost_after or len(set(numbers)) == len(numbers)
        (newest,) = [each for each in sets if version_of(each["spec"]["template"]) == version_of(final["spec"]["template"])]
        assert int(newest["metadata"]["annotations"]["deployment.kubernetes.io/revision"]) == max(numbers)
        assert final["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == str(max(numbers))
        # Whether a write took effect whose answer was lost, only the cache can tell, later
        assert faults.lost_after or watcher.found == []

    simulate(scenario, seed=seed, faults=faults, controllers=CONTROLLERS)


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.sampled_from(["scale", "fail", "delete", "release", "stray", "wait"]), st.integers(0, 5)), max_size=14),
    st.integers(0, 2**16),
    FAULTS,
)
def test_replica_sets_come_to_rest(steps: list[tuple[str, int]], seed: int, faults: Faults) -> None:
    """At rest a ReplicaSet controls exactly so many live pods, all matching, and says so; what it let go stands alone."""

    async def scenario(cluster: SimCluster) -> None:
        client = cluster.client
        await cluster.settle()
        await client.create(NODES, {"metadata": {"name": "n-0"}, "spec": {}})
        spec = {"replicas": 3, "selector": {"matchLabels": {"app": "x"}}, "template": template(0)}
        await client.create(
            REPLICA_SETS, {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "r", "namespace": "default"}, "spec": spec}
        )
        for index, (action, number) in enumerate(steps):
            pods = await client.list(PODS, "default")
            one = pods[number % len(pods)]["metadata"]["name"] if pods else ""
            try:
                if action == "scale":
                    await client.patch(REPLICA_SETS, "r", {"spec": {"replicas": number}}, namespace="default")
                elif action == "stray":
                    meta = {"name": f"stray-{index}", "namespace": "default", "labels": {"app": "x"}}
                    await client.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template(0)["spec"]})
                elif action == "wait":
                    await cluster.env.sleep(number / 5)
                elif one and action == "release":
                    await client.patch(PODS, one, {"metadata": {"labels": {"app": "out"}}}, namespace="default")
                elif one and action == "fail":
                    await cluster.fail_pod("default", one)
                elif one:
                    await cluster.delete_pod("default", one)
            except (NotFound, Conflict):
                continue
        assert await cluster.settle(8000)
        final = await client.get(REPLICA_SETS, "r", "default")
        pods = await client.list(PODS, "default")
        mine = [each for each in pods if each["metadata"].get("ownerReferences")]
        live = [each for each in mine if each["status"]["phase"] == "Running"]
        assert len(live) == final["spec"]["replicas"]
        assert all(each["metadata"]["labels"]["app"] == "x" for each in mine)
        assert all(each["metadata"]["labels"]["app"] == "out" or each["status"]["phase"] == "Failed" for each in pods if each not in mine)
        assert final["status"].get("readyReplicas", 0) == final["status"]["replicas"] == final["spec"]["replicas"]

    simulate(scenario, seed=seed, faults=faults, controllers=CONTROLLERS)


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.sampled_from(["node", "gone", "taint", "clean", "roll", "fail", "delete", "wait"]), st.integers(0, 5)), max_size=14),
    st.sampled_from([{"maxUnavailable": 1}, {"maxUnavailable": "50%"}, {"maxSurge": 1, "maxUnavailable": 0}]),
    st.sampled_from([0, 2]),
    st.integers(0, 2**16),
    FAULTS,
)
@example([*[("wait", 5)] * 4, ("roll", 0)], {"maxSurge": 1, "maxUnavailable": 0}, 2, 0, Faults())
def test_daemon_sets_come_to_rest(steps: list[tuple[str, int]], rolling: dict[str, Any], min_ready: int, seed: int, faults: Faults) -> None:
    """At rest each node that fits has one live pod of the last template, no other has any, and the counts say so."""

    async def scenario(cluster: SimCluster) -> None:
        client = cluster.client
        await cluster.settle()
        client.watch(PODS, Binder(cluster))
        spec = {
            "selector": {"matchLabels": {"app": "x"}},
            "template": template(0, placed=False),
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
            "minReadySeconds": min_ready,
        }
        await client.create(
            DAEMON_SETS, {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d", "namespace": "default"}, "spec": spec}
        )
        await client.create(NODES, {"metadata": {"name": "n-0"}, "spec": {}})
        await client.create(NODES, {"metadata": {"name": "n-1"}, "spec": {}})
        latest = 0
        for action, number in steps:
            pods = await client.list(PODS, "default")
            try:
                if action == "node":
                    await client.create(NODES, {"metadata": {"name": f"n-{number}"}, "spec": {}})
                elif action == "gone":
                    await client.delete(NODES, f"n-{number}")
                elif action in ("taint", "clean"):
                    taints = [{"key": "t", "effect": "NoExecute"}] if action == "taint" else None
                    await client.patch(NODES, f"n-{number}", {"spec": {"taints": taints}})
                elif action == "roll":
                    latest += 1
                    live = await client.get(DAEMON_SETS, "d", "default")
                    await client.update(DAEMON_SETS, {**live, "spec": {**live["spec"], "template": template(latest, placed=False)}})
                elif action == "wait":
                    await cluster.env.sleep(number / 5)
                elif pods and action == "fail":
                    await cluster.fail_pod("default", pods[number % len(pods)]["metadata"]["name"])
                elif pods:
                    await cluster.delete_pod("default", pods[number % len(pods)]["metadata"]["name"])
            except (NotFound, Conflict):
                continue
        assert await cluster.settle(8000)
        fit = sorted(
            each["metadata"]["name"]
            for each in await client.list(NODES)
            if not any(taint["key"] == "t" for taint in each["spec"].get("taints") or ())
        )
        final = await client.get(DAEMON_SETS, "d", "default")
        pods = await client.list(PODS, "default")
        assert sorted(each["spec"]["nodeName"] for each in pods) == fit
        assert all(version_of(each) == f"img:{latest}" and each["status"]["phase"] == "Running" for each in pods)
        status = final["status"]
        names = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "numberAvailable", "updatedNumberScheduled")
        assert [status.get(name, 0) for name in names] == [len(fit)] * 5
        assert status["numberMisscheduled"] == status.get("numberUnavailable", 0) == 0

    simulate(scenario, seed=seed, faults=faults, controllers=CONTROLLERS)


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.sampled_from(["roll", "roll", "wait", "restart"]), st.integers(0, 14)), max_size=8),
    st.sampled_from([{"maxUnavailable": 1}, {"maxUnavailable": 2}, {"maxSurge": 1, "maxUnavailable": 0}, {"maxSurge": "100%", "maxUnavailable": 0}]),
    st.integers(0, 2**16),
    FAULTS,
)
@example([("roll", 1), ("wait", 1), ("roll", 0)], {"maxUnavailable": 1}, 0, Faults())
def test_updates_of_daemon_sets_keep_serving(steps: list[tuple[str, int]], rolling: dict[str, Any], seed: int, faults: Faults) -> None:
    """As many nodes as promised have a pod that serves at all times, whatever the updates are like: stuck ones, back and forth, through restarts."""

    async def scenario(cluster: SimCluster) -> None:
        client = cluster.client
        for number in range(3):
            await client.create(NODES, {"metadata": {"name": f"n-{number}"}, "spec": {}})
        await cluster.settle(10)
        served = Served()
        client.watch(PODS, served)
        spec = {
            "selector": {"matchLabels": {"app": "x"}},
            "template": {
                "metadata": {"labels": {"app": "x"}},
                "spec": {"terminationGracePeriodSeconds": 1, "containers": [{"name": "c", "image": "i"}]},
            },
            "updateStrategy": {"rollingUpdate": rolling},
        }
        await client.create(DAEMON_SETS, {"metadata": {"name": "d", "namespace": "default"}, "spec": spec})
        await cluster.settle(60)
        await cluster.env.sleep(10)
        served.watching = True
        for action, number in steps:
            if action == "roll":
                annotations = {"v": str(number // 3), "kubemini.dev/hold": (None, "running", "pending")[number % 3]}
                await cluster.patch("daemonset/d", {"spec": {"template": {"metadata": {"annotations": annotations}}}})
            elif action == "wait":
                await cluster.env.sleep(number / 2)
            else:
                await cluster.restart("kube-controller-manager")
        await cluster.settle(300)
        assert served.least >= 3 - rolling["maxUnavailable"]

    simulate(scenario, seed=seed, faults=faults, fleet="none")


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.sampled_from(["scale", "fail", "delete", "wait"]), st.integers(0, 6)), max_size=10),
    st.sampled_from([{"minAvailable": 2}, {"minAvailable": "50%"}, {"maxUnavailable": 1}, {"maxUnavailable": "30%"}]),
    st.integers(0, 2**16),
    FAULTS,
)
def test_budgets_and_quotas_tell_the_truth(steps: list[tuple[str, int]], budget: dict[str, Any], seed: int, faults: Faults) -> None:
    """At rest a budget's numbers follow from its pods, and a quota's from what is there."""

    async def scenario(cluster: SimCluster) -> None:
        client = cluster.client
        await cluster.settle()
        await client.create(NODES, {"metadata": {"name": "n-0"}, "spec": {}})
        meta = {"name": "b", "namespace": "default"}
        await client.create(POD_DISRUPTION_BUDGETS, {"metadata": meta, "spec": {**budget, "selector": {"matchLabels": {"app": "x"}}}})
        await client.create(RESOURCE_QUOTAS, {"metadata": meta, "spec": {"hard": {"pods": "50", "count/replicasets.apps": "9", "configmaps": "9"}}})
        spec = {"replicas": 3, "selector": {"matchLabels": {"app": "x"}}, "template": template(0)}
        await client.create(DEPLOYMENTS, {"metadata": {"name": "d", "namespace": "default"}, "spec": spec})
        for action, number in steps:
            pods = await client.list(PODS, "default")
            if action == "scale":
                await client.patch(DEPLOYMENTS, "d", {"spec": {"replicas": number}}, namespace="default")
            elif action == "wait":
                await cluster.env.sleep(number / 5)
            elif pods and action == "fail":
                await cluster.fail_pod("default", pods[number % len(pods)]["metadata"]["name"])
            elif pods:
                await cluster.delete_pod("default", pods[number % len(pods)]["metadata"]["name"])
        assert await cluster.settle(8000)
        pods = await client.list(PODS, "default")
        live = [each for each in pods if each["status"]["phase"] == "Running"]
        size = (await client.get(DEPLOYMENTS, "d", "default"))["spec"]["replicas"]
        expected = len(pods) if budget == {"minAvailable": 2} else (size if pods else 0)
        wanted = {
            "2": 2,
            "50%": -(-expected // 2),
            "1": max(expected - 1, 0),
            "30%": max(expected - -(-expected * 3 // 10), 0),
        }[str(next(iter(budget.values())))]
        status = (await client.get(POD_DISRUPTION_BUDGETS, "b", "default"))["status"]
        allowed = max(len(live) - wanted, 0) if expected else 0
        shown = [status[name] for name in ("expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed")]
        assert shown == [expected, len(live), wanted, allowed]
        used = (await client.get(RESOURCE_QUOTAS, "b", "default"))["status"]["used"]
        assert used == {"pods": str(len(live)), "count/replicasets.apps": "1", "configmaps": "1"}

    simulate(scenario, seed=seed, faults=faults, controllers=CONTROLLERS)
