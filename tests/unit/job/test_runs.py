"""Whole lives of Jobs under virtual time: what a single pass does not show, and what the controller counts about itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from kubemini.api.resources import CRON_JOBS, EVENTS, JOBS, PODS
from kubemini.api.trees import Tree
from kubemini.controllers.job import accounting
from kubemini.controllers.job.controller import JobController
from kubemini.controllers.job.counting import Counts
from kubemini.controllers.job.metrics import Metrics
from kubemini.controllers.job.view import JobView
from kubemini.runtime.env import from_stamp
from kubemini.runtime.telemetry import Counter, Histogram
from kubemini.sim.cluster import SimCluster, simulate
from kubemini.sim.faults import PERFECT, Faults
from kubemini.store import Change
from kubemini.testing.invariants import Checker, View
from kubemini.testing.invariants.job import condition, job_invariants

CONTROLLERS = "namespaces,service-accounts,garbage-collector,job,nodes,scheduler,kubelet"


def job(name: str = "j", **spec: Any) -> Tree:
    """Return a Job of pods that never restart."""
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "m", "image": "i"}]}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "default"}, "spec": {"template": template, **spec}}


def view(**spec: Any) -> JobView:
    """Return a Job as the controller sees it."""
    tree = job(**spec)
    return JobView({**tree, "metadata": {**tree["metadata"], "uid": "u"}})


def play(job_tree: Tree, *, exits: dict[str, int] | None = None, seed: int = 0, faults: Faults = PERFECT) -> tuple[Tree, list[Tree], dict[str, Any]]:
    """Run a Job to its end; `exits` are exit codes by completion index. Return the Job, its pods by age, and what the controller counted."""

    async def scenario(cluster: SimCluster) -> tuple[Tree, list[Tree], dict[str, Any]]:
        checker = Checker(cluster.store, job_invariants())
        await cluster.client.create(JOBS, job_tree)
        assert await cluster.settle(10_000)
        checker.at_rest()
        pods = sorted(await cluster.list("pod"), key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
        return await cluster.get(f"job/{job_tree['metadata']['name']}"), pods, counted(cluster)

    def program(pod: Tree) -> Tree:
        index = pod["metadata"].get("annotations", {}).get("batch.kubernetes.io/job-completion-index", "")
        return {"run_for": 5.0, "exit_code": (exits or {}).get(index, 0)}

    return simulate(scenario, seed=seed, faults=faults, fleet="cpu:1", controllers=CONTROLLERS, program=program)


def counted(cluster: SimCluster) -> dict[str, Any]:
    """Return the samples of the Job controller, of histograms how many values there were."""
    (loop,) = (each for each in cluster.managers["kube-controller-manager"].controllers if isinstance(each, JobController))
    found: dict[str, Any] = {}
    for family in loop.families:
        if isinstance(family, Histogram):
            found[family.name] = {labels: sum(counts) for labels, (counts, _) in family.samples.items()}
        else:
            assert isinstance(family, Counter)
            found[family.name] = family.samples
    return {name.removeprefix("job_controller_"): samples for name, samples in found.items()}


@pytest.mark.parametrize("mode", ["NonIndexed", "Indexed"])
def test_more_ended_pods_than_one_pass_accounts_for(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Job is Complete only when every pod is counted, though one pass counts but some of those that ended at once."""
    monkeypatch.setattr(accounting, "PER_PASS", 4)
    end, _, _ = play(job(parallelism=10, completions=10, completionMode=mode))
    assert condition(end, "Complete") is not None
    assert end["status"]["succeeded"] == 10


@pytest.mark.parametrize("seed", range(8))
def test_a_refused_status_does_not_lengthen_the_back_off(seed: int) -> None:
    """A failure whose account could not be written at first is one failure all the same: its replacement comes after 10 s."""
    tree = job(completions=2, parallelism=1, completionMode="Indexed")
    end, pods, _ = play(tree, exits={"0": 1}, seed=seed, faults=Faults(conflict=0.4))
    assert condition(end, "Failed") is not None
    made = [from_stamp(each["metadata"]["creationTimestamp"]) for each in pods]
    ended = [from_stamp(each["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"]) for each in pods]
    for wanted, end_of, next_made in zip((10, 20, 40, 80, 160, 320), ended, made[1:], strict=False):
        assert wanted <= next_made - end_of <= wanted + 10, (made, ended)


def test_too_many_successes_are_told() -> None:
    """A Job that ends with more successes than it asked for says so in an event."""

    async def scenario(cluster: SimCluster) -> list[str]:
        await cluster.client.create(JOBS, job(completions=1))
        await cluster.settle(20)
        (pod,) = await cluster.client.list(PODS)
        meta = {name: pod["metadata"][name] for name in ("labels", "ownerReferences", "finalizers", "namespace")}
        twin = await cluster.client.create(PODS, {**pod, "metadata": {**meta, "name": "twin"}, "status": {}})
        for each in (pod, twin):
            await cluster.client.patch(PODS, each["metadata"]["name"], {"status": {"phase": "Succeeded"}}, namespace="default", subresource="status")
        await cluster.settle(60)
        end = await cluster.get("job/j")
        assert (condition(end, "Complete") is not None, end["status"]["succeeded"]) == (True, 2)
        return [event["reason"] for event in await cluster.client.list(EVENTS) if event["involvedObject"]["kind"] == "Job"]

    assert sorted(simulate(scenario, fleet="cpu:1", controllers=CONTROLLERS)) == ["Completed", "SuccessfulCreate", "TooManySucceededPods"]


def test_what_an_indexed_job_counts() -> None:
    """Pods, indexes, ends, creations and passes are counted once each, by upstream's labels."""
    _, _, found = play(job(completions=3, parallelism=3, completionMode="Indexed", backoffLimitPerIndex=1), exits={"2": 1})
    assert found["job_pods_finished_total"] == {("Indexed", "succeeded"): 2, ("Indexed", "failed"): 2}
    assert found["job_finished_indexes_total"] == {("succeeded", "perIndex"): 2, ("failed", "perIndex"): 1}
    assert found["jobs_finished_total"] == {("Indexed", "failed", "FailedIndexes"): 1}
    assert found["job_pods_creation_total"] == {("new", "succeeded"): 3, ("recreate_terminating_or_failed", "succeeded"): 1}
    assert found["terminated_pods_tracking_finalizer_total"] == {("add",): 4, ("delete",): 4}
    assert found["job_syncs_total"] == found["job_sync_duration_seconds"]
    # The first three, and the fourth, which was to be made before its back-off was over
    assert found["job_syncs_total"]["Indexed", "success", "pods_created"] >= 3
    assert {mode for mode, _, _ in found["job_syncs_total"]} == {"Indexed"}


def test_what_a_success_counts() -> None:
    """A success is counted by its reason as a failure is, and that no pod failed is said too."""
    _, _, found = play(job(completionMode="Indexed", completions=2, successPolicy={"rules": [{"succeededIndexes": "0"}]}))
    assert found["jobs_finished_total"] == {("Indexed", "succeeded", "SuccessPolicy"): 1}
    _, _, found = play(job())
    assert found["jobs_finished_total"] == {("NonIndexed", "succeeded", "CompletionsReached"): 1}
    assert found["job_pods_finished_total"] == {("NonIndexed", "succeeded"): 1, ("NonIndexed", "failed"): 0}


def test_an_index_that_a_scale_down_drops_makes_up_for_no_other() -> None:
    """Of a status that loses an index and gains one below completions, the one that is new is counted."""
    found = Metrics()
    found.written(
        view(completionMode="Indexed", completions=2, parallelism=2),
        {"completedIndexes": "0,3", "succeeded": 2},
        {"completedIndexes": "0,1", "succeeded": 2},
    )
    assert found.indexes_finished.samples == {("succeeded", "global"): 1}
    assert found.pods_finished.samples == {("Indexed", "succeeded"): 1, ("Indexed", "failed"): 0}


@pytest.mark.parametrize(
    "policy,failed,terminating,reason",
    [
        ("Failed", 0, False, "new"),
        ("Failed", 1, True, "recreate_failed"),
        ("Failed", 0, True, "recreate_terminating_or_failed"),
        ("TerminatingOrFailed", 1, False, "recreate_terminating_or_failed"),
        ("TerminatingOrFailed", 0, False, "new"),
    ],
)
def test_reasons_of_creations(policy: str, failed: int, terminating: bool, reason: str) -> None:
    """A pod is new, or comes for one that failed, or is still terminating beside it."""
    found = Metrics()
    found.created(view(podReplacementPolicy=policy), Counts(terminating=[{}] if terminating else []), failed, made=2, refused=1)
    assert found.creations.samples == {(reason, "succeeded"): 2, (reason, "failed"): 1}


def test_passes_are_counted_by_what_they_were_about_to_do() -> None:
    """A pass over a suspended Job deletes, also where there is nothing to delete; one that waits for a back-off creates."""

    async def scenario(cluster: SimCluster) -> dict[str, Any]:
        await cluster.client.create(JOBS, job(suspend=True))
        await cluster.settle(60)
        return counted(cluster)

    found = simulate(scenario, fleet="cpu:1", controllers=CONTROLLERS)
    assert set(found["job_syncs_total"]) == {("NonIndexed", "success", "pods_deleted")}


def test_what_a_pod_failure_policy_counts() -> None:
    """A failure that a rule matches is counted by the rule's action, any other is not."""
    rules = [
        {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [42]}},
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [43]}},
    ]
    tree = job(completions=3, parallelism=3, completionMode="Indexed", podFailurePolicy={"rules": rules})
    _, _, found = play(tree, exits={"0": 1, "2": 43})
    assert found["pod_failures_handled_by_failure_policy_total"] == {("FailJob",): 1}
    assert found["jobs_finished_total"] == {("Indexed", "failed", "PodFailurePolicy"): 1}


def test_jobs_of_others_are_counted() -> None:
    """A Job that another controller manages is counted by that one's name, and nothing else of it."""

    async def scenario(cluster: SimCluster) -> dict[str, Any]:
        await cluster.client.create(JOBS, job(managedBy="acme.io/other"))
        await cluster.settle(60)
        return counted(cluster)

    found = simulate(scenario, fleet="cpu:1", controllers=CONTROLLERS)
    assert {name: samples for name, samples in found.items() if samples} == {"jobs_by_external_controller_total": {("acme.io/other",): 1}}


@pytest.mark.parametrize("mode, counted_first", [("NonIndexed", 0), ("Indexed", 2)])
def test_the_account_is_seen_before_the_end(mode: str, counted_first: int) -> None:
    """The last pods enter the account in one write, the end comes with another a moment later; an Indexed Job counts its indexes with the first."""
    seen: list[tuple[float, int, int, tuple[str, ...]]] = []

    async def scenario(cluster: SimCluster) -> None:
        class Seen:
            name = "seen"

            def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
                if table == JOBS.storage and change.new is not None:
                    status = change.new.obj.get("status") or {}
                    uncounted = len((status.get("uncountedTerminatedPods") or {}).get("succeeded") or ())
                    types = tuple(each["type"] for each in status.get("conditions") or ())
                    seen.append((cluster.loop.time(), status.get("succeeded", 0), uncounted, types))
                return ()

            def at_rest(self, view: View) -> Iterable[str]:
                return ()

        await cluster.settle(5)  # the node takes pods, so that both start and end together
        Checker(cluster.store, [Seen()])
        await cluster.client.create(JOBS, job(parallelism=2, completions=2, completionMode=mode))
        await cluster.settle(600)

    simulate(scenario, fleet="cpu:1", controllers=CONTROLLERS, program=lambda pod: {"run_for": 5.0})
    account, end = (state for state in seen if state[3])
    assert account[1:] == (counted_first, 2 - counted_first, ("SuccessCriteriaMet",))
    assert end[1:] == (2, 0, ("SuccessCriteriaMet", "Complete"))
    assert end[0] > account[0]


def test_delays_of_deletions_and_of_runs_are_measured() -> None:
    """How late a finished Job is deleted, and how late a CronJob's run is created, in seconds."""

    async def scenario(cluster: SimCluster) -> list[tuple[str, dict[tuple[str, ...], tuple[list[int], list[float]]]]]:
        await cluster.client.create(JOBS, job(completions=0, ttlSecondsAfterFinished=30))
        spec = {"schedule": "* * * * *", "jobTemplate": {"spec": job(suspend=True)["spec"]}}
        cron_job = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c", "namespace": "default"}, "spec": spec}
        await cluster.client.create(CRON_JOBS, cron_job)
        await cluster.settle(130)
        controllers = cluster.managers["kube-controller-manager"].controllers
        return [(each.name, each.samples) for loop in controllers for each in loop.families if isinstance(each, Histogram) and not each.labels]

    found = dict(simulate(scenario, fleet="cpu:1", controllers=f"{CONTROLLERS},cron-job"))
    counts, (total,) = found["ttl_after_finished_controller_job_deletion_duration_seconds"][()]
    assert (sum(counts), 0 <= total < 1) == (1, True)
    counts, (total,) = found["cronjob_controller_job_creation_skew_duration_seconds"][()]
    assert (counts[0], sum(counts), 0 <= total < 1) == (2, 2, True)
