"""Jobs that are gangs under arbitrary shapes, disturbances and faults: one group each, every pod in it, placed together or not at all, and nothing left of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kubemini.api.resources import JOBS, NODES, POD_GROUPS, PODS, SCHEDULING_WORKLOADS
from kubemini.api.trees import Tree
from kubemini.controllers.job.gang import group_name, workload_name
from kubemini.machinery.errors import ApiStatus
from kubemini.runtime.keys import controller_of
from kubemini.sim.cluster import SimCluster, simulate
from kubemini.sim.faults import PERFECT, Faults
from kubemini.store import Change
from kubemini.testing.invariants import Checker, View
from kubemini.testing.invariants.job import finished, job_invariants
from kubemini.testing.invariants.scheduler import scheduler_invariants

CONTROLLERS = "namespaces,service-accounts,garbage-collector,job,pod-groups,nodes,scheduler,kubelet"
GATES = {"GenericWorkload": True, "GangScheduling": True, "WorkloadWithJob": True}
ROUGH = Faults(watch_delay=0.5, request_delay=0.05, lost_before=0.03, lost_after=0.03, conflict=0.05)
PROCESSES = ("kube-controller-manager", "kube-scheduler", "kubelet")
FEWER = settings(max_examples=max(settings().max_examples // 2, 1))
NAMES = ("a", "b", "c")


class OneGroup:
    """A Job has at most one Workload and one PodGroup, named after it; they are there before its first pod, and every pod is in that group."""

    name = "one group"

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Look at what is new."""
        if change.old is not None or change.new is None or table not in ("pods", "workloads.scheduling.k8s.io", "podgroups.scheduling.k8s.io"):
            return
        obj = change.new.obj
        owner = controller_of(obj)
        assert owner is not None
        load = workload_name(owner["name"], owner["uid"])
        group = group_name(load, f"{owner['name']}-pgt-0")
        if table == "pods":
            if (obj["spec"].get("schedulingGroup") or {}).get("podGroupName") != group:
                yield f"{obj['metadata']['name']} is not in {group}"
            if view.get(POD_GROUPS, "default", group) is None:
                yield f"{obj['metadata']['name']} was made before {group}"
        elif obj["metadata"]["name"] != (load if table.startswith("workloads") else group):
            yield f"another object of {owner['name']}: {obj['metadata']['name']}"

    def at_rest(self, view: View) -> Iterator[str]:
        """Nothing more at rest."""
        yield from ()


@st.composite
def jobs(draw: st.DrawFn) -> list[Tree]:
    """Draw some gangs whose pods end by themselves, on nodes that hold four pods in all."""
    found = []
    for name in NAMES[: draw(st.integers(1, 3))]:
        size = draw(st.integers(2, 4))
        spec: Tree = {"parallelism": size, "completions": size, "completionMode": "Indexed", "backoffLimit": draw(st.integers(2, 6))}
        if draw(st.booleans()):
            spec["podReplacementPolicy"] = "Failed"
        if draw(st.booleans()):
            spec["suspend"] = True
        container = {"name": "m", "image": "i", "resources": {"requests": {"cpu": "1"}}}
        spec["template"] = {
            "metadata": {"annotations": {"kubemini.dev/run-for": f"{draw(st.integers(1, 40))}s"}},
            "spec": {"restartPolicy": "Never", "containers": [container]},
        }
        found.append({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "default"}, "spec": spec})
    return found


STEPS = st.lists(
    st.tuples(
        st.integers(0, 60),
        st.sampled_from(["fail", "delete", "suspend", "resume", "restart", "restart", "lower", "gone", "again"]),
        st.integers(0, 4),
    ),
    max_size=6,
)


async def has_group(cluster: SimCluster, name: str) -> bool:
    """Tell whether a Job has its PodGroup."""
    job = await cluster.client.get(JOBS, name, "default")
    return any((controller_of(each) or {}).get("uid") == job["metadata"]["uid"] for each in await cluster.client.list(POD_GROUPS, "default"))


async def disturb(cluster: SimCluster, gangs: list[Tree], what: str, which: int) -> None:
    """Do one thing to a Job, to a pod or to a process; what is gone already is left alone."""
    job = gangs[which % len(gangs)]
    name = job["metadata"]["name"]
    # Not those that have succeeded: without them a gang is short of members, and the rest waits for ever
    pods = [pod for pod in await cluster.list("pod") if pod["status"].get("phase") != "Succeeded"]
    try:
        if what in ("fail", "delete") and pods:
            pod = pods[which % len(pods)]["metadata"]["name"]
            await (cluster.fail_pod if what == "fail" else cluster.delete_pod)("default", pod)
        elif what in ("suspend", "resume"):
            await cluster.client.patch(JOBS, name, {"spec": {"suspend": what == "suspend"}}, namespace="default")
        elif what == "lower" and await has_group(cluster, name):
            await cluster.client.patch(JOBS, name, {"spec": {"parallelism": 1}}, namespace="default")
            raise AssertionError("the size of a gang was changed")
        elif what == "gone":
            await cluster.client.delete(JOBS, name, namespace="default", propagation=("Background", "Foreground")[which % 2])
        elif what == "again":
            await cluster.client.create(JOBS, job)
        elif what == "restart":
            await cluster.restart(PROCESSES[which % len(PROCESSES)])
    except ApiStatus as refused:
        if refused.code not in (403, 404, 409):
            raise


def run(gangs: list[Tree], steps: list[Any], seed: int, faults: Faults) -> None:
    """Play one life to its end, and see that nothing is left of it."""

    async def scenario(cluster: SimCluster) -> None:
        checker = Checker(cluster.store, [*job_invariants(), *scheduler_invariants(lossless=not faults.lost_before), OneGroup()])
        for number in range(2):
            status = {"allocatable": {"cpu": "2", "memory": "8Gi", "pods": "10"}}
            await cluster.client.create(NODES, {"metadata": {"name": f"n-{number}"}, "spec": {}, "status": status})
        await cluster.settle(60)
        for job in gangs:
            await cluster.client.create(JOBS, job)
        await cluster.settle(10)
        for after, what, which in steps:
            await cluster.settle(after)
            await disturb(cluster, gangs, what, which)
        await cluster.settle(120)
        for job in await cluster.list("job"):
            await disturb(cluster, [job], "resume", 0)
        assert await cluster.settle(50_000), "the cluster never came to rest"
        checker.at_rest()
        for job in await cluster.list("job"):
            assert finished(job), job["status"]
            await cluster.client.delete(JOBS, job["metadata"]["name"], namespace="default", propagation="Background")
        await cluster.settle(600)
        for resource in (JOBS, PODS, POD_GROUPS, SCHEDULING_WORKLOADS):
            assert list(await cluster.client.list(resource, "default")) == []

    simulate(scenario, seed=seed, faults=faults, controllers=CONTROLLERS, feature_gates=GATES, debug=True)


@FEWER
@given(gangs=jobs(), steps=STEPS, seed=st.integers(0, 2**16))
def test_gangs_keep_their_promises(gangs: list[Tree], steps: list[Any], seed: int) -> None:
    """On a perfect network every promise holds whatever is done to Jobs and pods."""
    run(gangs, steps, seed, PERFECT)


@FEWER
@given(gangs=jobs(), steps=STEPS, seed=st.integers(0, 2**16))
def test_gangs_keep_their_promises_under_faults(gangs: list[Tree], steps: list[Any], seed: int) -> None:
    """With late events, lost requests, conflicts and restarts too."""
    run(gangs, steps, seed, ROUGH)
