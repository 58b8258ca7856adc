"""Lives of an autoscaler: a load that comes and goes, windows, rates and limits, over StatefulSets and groups."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from kubemini.api.resources import HORIZONTAL_POD_AUTOSCALERS, LEADER_WORKER_SETS, PODS, STATEFUL_SETS
from kubemini.api.trees import Tree
from kubemini.runtime.metrics import MetricQuery
from kubemini.sim.cluster import SimCluster
from kubemini.sim.faults import PERFECT, Faults
from kubemini.testing.invariants import Checker, Invariant
from kubemini.testing.invariants.autoscaling import Sizes, Wish
from tests.quality.searching import Scenario, play
from tests.quality.sets import FLEET, made, template

CONTROLLERS = ("namespaces", "service-accounts", "garbage-collector", "stateful-set", "autoscaling", "nodes", "scheduler", "kubelet", "lws")
LATE = Faults(watch_delay=0.5, request_delay=0.05)
TARGET = 10
LONG = 1500.0
"""Seconds of the last load: longer than any window and rate takes."""


@dataclass(frozen=True)
class Life:
    """One run: `loads` are (seconds, load) one after the other."""

    loads: tuple[tuple[float, int], ...]
    limits: tuple[int, int]
    behavior: Tree | None
    groups: bool
    pods: bool
    """Whether pods tell the metric, instead of somebody outside."""
    replicas: int
    seed: int
    faults: Faults

    def target(self) -> Tree:
        """Return what is scaled."""
        pod = made(template(0))
        meta = {"name": "web", "namespace": "default"}
        if self.groups:
            return {"metadata": meta, "spec": {"replicas": self.replicas, "leaderWorkerTemplate": {"size": 2, "workerTemplate": pod}}}
        pod = {**pod, "metadata": {**pod["metadata"], "labels": {"app": "web"}}}
        spec = {
            "replicas": self.replicas,
            "serviceName": "web",
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {"app": "web"}},
            "template": pod,
        }
        return {"metadata": meta, "spec": spec}

    def autoscaler(self) -> Tree:
        """Return the autoscaler."""
        metric: Tree = {"metric": {"name": "load"}, "target": {"type": "AverageValue", "averageValue": str(TARGET)}}
        resource = LEADER_WORKER_SETS if self.groups else STATEFUL_SETS
        spec: Tree = {
            "scaleTargetRef": {"apiVersion": resource.api_version, "kind": resource.kind, "name": "web"},
            "minReplicas": self.limits[0],
            "maxReplicas": self.limits[1],
            "metrics": [{"type": "Pods", "pods": metric} if self.pods else {"type": "External", "external": metric}],
        }
        if self.behavior is not None:
            spec["behavior"] = self.behavior
        return {"metadata": {"name": "web", "namespace": "default"}, "spec": spec}


def played(life: Life) -> None:
    """Play a life to its end."""
    resource = LEADER_WORKER_SETS if life.groups else STATEFUL_SETS
    clusters: list[SimCluster] = []
    load = [life.loads[0][1]]
    sizes = Sizes(resource, Wish(*life.limits, TARGET, life.behavior), lambda: clusters[0].loop.time())  # noqa: PLW0108  there is no cluster yet

    def metrics(query: MetricQuery) -> float:
        if query.type == "External":
            sizes.look(load[0])
            return load[0]
        serving = [each for each in clusters[0].server.reader.list(PODS.storage, "default") if _serves(each)]
        return load[0] / max(len(serving), 1)

    async def scenario(cluster: SimCluster, checker: Checker) -> None:
        clusters.append(cluster)
        sizes.replicas = life.replicas
        await cluster.client.create(resource, life.target())
        await cluster.settle(20)
        await cluster.client.create(HORIZONTAL_POD_AUTOSCALERS, life.autoscaler())
        for seconds, value in life.loads:
            load[0] = value
            await cluster.settle(seconds)
        await cluster.settle(LONG)
        checker.at_rest()
        wrong = list(sizes.settled(load[0]))
        assert not wrong, wrong
        if life.groups:
            size = {(each["metadata"].get("annotations") or {})["leaderworkerset.sigs.k8s.io/size"] for each in await cluster.list("pod")}
            assert size == {"2"}, f"groups of {size}"

    invariants: list[Invariant] = [sizes]
    play(scenario, invariants, seed=life.seed, faults=life.faults, controllers=CONTROLLERS, fleet=FLEET, metrics=metrics)


def _serves(pod: Tree) -> bool:
    labels = pod["metadata"].get("labels") or {}
    return bool(labels.get("leaderworkerset.sigs.k8s.io/worker-index", "0") == "0" and pod["status"].get("phase") == "Running")


POLICY = st.builds(
    lambda kind, value, period: {"type": kind, "value": value, "periodSeconds": period},
    st.sampled_from(["Pods", "Percent"]),
    st.sampled_from([1, 2, 50, 100]),
    st.sampled_from([15, 60, 120]),
)
RULES = st.fixed_dictionaries(
    {},
    optional={
        "stabilizationWindowSeconds": st.sampled_from([0, 60, 120]),
        "policies": st.lists(POLICY, min_size=1, max_size=2),
        "selectPolicy": st.sampled_from(["Max", "Min", "Disabled"]),
    },
)
BEHAVIOR = st.none() | st.fixed_dictionaries({}, optional={"scaleUp": RULES, "scaleDown": RULES}).map(lambda rules: rules or None)
LOADS = st.lists(st.tuples(st.sampled_from([20.0, 50.0, 150.0, 400.0]), st.sampled_from([0, 5, 18, 22, 35, 60, 95])), min_size=1, max_size=5).map(
    tuple
)


def lives(pods: st.SearchStrategy[bool], behavior: st.SearchStrategy[Tree | None] = BEHAVIOR) -> st.SearchStrategy[Life]:
    """Draw lives."""
    return st.builds(
        Life,
        loads=LOADS,
        limits=st.sampled_from([(1, 8), (2, 5), (1, 20)]),
        behavior=behavior,
        groups=st.booleans(),
        pods=pods,
        replicas=st.integers(1, 4),
        seed=st.integers(0, 2**16),
        faults=st.sampled_from([PERFECT, LATE]),
    )


AUTOSCALED = Scenario("autoscaler", lives(st.just(False)), played)
AUTOSCALED_BY_PODS = Scenario("autoscaler of what pods tell", lives(st.just(True)), played, examples=15)
HURRY = st.fixed_dictionaries(
    {
        "stabilizationWindowSeconds": st.just(0),
        "policies": st.lists(POLICY, min_size=1, max_size=2),
        "selectPolicy": st.sampled_from(["Max", "Min", "Disabled"]),
    }
)
HURRIED = Scenario("autoscaler in a hurry", lives(st.just(False), st.fixed_dictionaries({"scaleUp": HURRY, "scaleDown": HURRY})), played)
"""No window holds anything back: rates decide."""
WAITING = st.fixed_dictionaries({"stabilizationWindowSeconds": st.sampled_from([60, 120])})
STEADY = Scenario(
    "autoscaler that waits", lives(st.just(False), st.fixed_dictionaries({"scaleUp": WAITING, "scaleDown": WAITING})), played, examples=15
)
