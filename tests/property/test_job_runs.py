"""Jobs under arbitrary shapes, programs, disturbances and faults: what they promise holds at every commit, and they come to an end."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kubemini.api.resources import JOBS
from kubemini.api.trees import Tree
from kubemini.machinery.errors import ApiStatus
from kubemini.sim.cluster import SimCluster, simulate
from kubemini.sim.faults import PERFECT, Faults
from kubemini.testing.invariants import Checker
from kubemini.testing.invariants.job import condition, finished, job_invariants
from kubemini.testing.invariants.job_exact import Excuses, exact_job_invariants

CONTROLLERS = "namespaces,service-accounts,garbage-collector,job,nodes,scheduler,kubelet"
ROUGH = Faults(watch_delay=0.5, request_delay=0.05, lost_before=0.03, lost_after=0.03, conflict=0.05)
PROCESS = "kube-controller-manager"
FEWER = settings(max_examples=max(settings().max_examples // 2, 1))
"""A whole life each: fewer examples than a test of a function."""


@st.composite
def jobs(draw: st.DrawFn) -> Tree:
    """Draw a Job whose pods end by themselves."""
    indexed = draw(st.booleans())
    completions = draw(st.integers(1, 5))
    spec: Tree = {"parallelism": draw(st.integers(1, 4)), "completions": completions, "backoffLimit": draw(st.integers(0, 4))}
    if indexed:
        spec["completionMode"] = "Indexed"
        if draw(st.booleans()):
            spec["backoffLimitPerIndex"] = draw(st.integers(0, 2))
            spec["backoffLimit"] = 100
    if draw(st.booleans()):
        spec["podReplacementPolicy"] = "Failed"
    annotations = {"kubemini.dev/run-for": f"{draw(st.integers(1, 40))}s"}
    spec["template"] = {
        "metadata": {"annotations": annotations},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "m", "image": "i"}]},
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "default"}, "spec": spec}


STEPS = st.lists(
    st.tuples(st.integers(0, 60), st.sampled_from(["fail", "delete", "suspend", "resume", "restart", "lower", "lose", "find"]), st.integers(0, 4)),
    max_size=5,
)


async def disturb(cluster: SimCluster, excuses: Excuses, what: str, which: int) -> None:
    """Do one thing to the Job or its pods; what is gone already is left alone."""
    pods = await cluster.list("pod")
    try:
        if what in ("fail", "delete") and pods:
            name = pods[which % len(pods)]["metadata"]["name"]
            if what == "delete":
                excuses.excuse(pods[which % len(pods)]["metadata"]["uid"])
            await (cluster.fail_pod if what == "fail" else cluster.delete_pod)("default", name)
        elif what in ("suspend", "resume"):
            await cluster.client.patch(JOBS, "j", {"spec": {"suspend": what == "suspend"}}, namespace="default")
        elif what == "lower":
            await cluster.client.patch(JOBS, "j", {"spec": {"parallelism": which}}, namespace="default")
        elif what in ("lose", "find"):
            await (cluster.lose_node if what == "lose" else cluster.recover_node)("cpu-0")
        elif what == "restart":
            await cluster.restart(PROCESS)
    except ApiStatus as refused:
        if refused.code not in (404, 409, 422):
            raise


def run(job: Tree, steps: list[Any], seed: int, faults: Faults) -> Tree:
    """Play one life and return the Job at its end."""
    excuses = Excuses()

    async def scenario(cluster: SimCluster) -> Tree:
        checker = Checker(cluster.store, [*job_invariants(), *exact_job_invariants(excuses, lossless=False)])
        await cluster.settle(60)
        await cluster.client.create(JOBS, job)
        for after, what, which in steps:
            await cluster.settle(after)
            await disturb(cluster, excuses, what, which)
        await disturb(cluster, excuses, "find", 0)
        await cluster.client.patch(JOBS, "j", {"spec": {"suspend": False, "parallelism": 3}}, namespace="default")
        assert await cluster.settle(50_000), "the cluster never came to rest"
        checker.at_rest()
        end = await cluster.get("job/j")
        assert finished(end), end["status"]
        await cluster.delete("job/j", propagation="Foreground")
        await cluster.settle(600)
        assert await cluster.list("job") == []
        assert await cluster.list("pod") == []
        return end

    return simulate(scenario, seed=seed, faults=faults, fleet="cpu:1", controllers=CONTROLLERS, debug=True)


@FEWER
@given(job=jobs(), steps=STEPS, seed=st.integers(0, 2**16))
def test_jobs_keep_their_promises(job: Tree, steps: list[Any], seed: int) -> None:
    """On a perfect network every promise holds whatever is done to the pods."""
    run(job, steps, seed, PERFECT)


@FEWER
@given(job=jobs(), steps=STEPS, seed=st.integers(0, 2**16))
def test_jobs_keep_their_promises_under_faults(job: Tree, steps: list[Any], seed: int) -> None:
    """With late events, lost requests, conflicts and restarts too."""
    run(job, steps, seed, ROUGH)


@FEWER
@given(job=jobs(), seed=st.integers(0, 2**16))
def test_undisturbed_jobs_complete(job: Tree, seed: int) -> None:
    """A Job whose pods all succeed completes with exactly its completions."""
    end = run(job, [], seed, ROUGH)
    assert condition(end, "Complete") is not None
    assert end["status"]["succeeded"] == job["spec"]["completions"]
