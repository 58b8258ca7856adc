"""Lives of Workloads in a whole cluster under virtual time: what is written, counted and told where things go another way than planned."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kubemini import SimCluster, simulate
from kubemini.api.resources import CLUSTER_QUEUES
from kubemini.api.trees import Tree
from kubemini.sim.faults import Faults

KUEUE = "kueue.x-k8s.io/v1beta2"
Scenario = Callable[[SimCluster], Awaitable[None]]
CONTROLLERS = ("namespaces", "service-accounts", "garbage-collector", "job", "stateful-set", "lws", "nodes", "scheduler", "kubelet", "kueue")


def queues(*checks: str, cpu: str = "4", local: tuple[str, ...] = ("lq",), **spec: Any) -> list[Tree]:
    """Return a flavor, a ClusterQueue, LocalQueues and the checks of the queue."""
    quota = {"coveredResources": ["cpu"], "flavors": [{"name": "rf", "resources": [{"name": "cpu", "nominalQuota": cpu}]}]}
    cluster_queue = {"namespaceSelector": {}, "resourceGroups": [quota], **spec}
    if checks:
        cluster_queue["admissionChecksStrategy"] = {"admissionChecks": [{"name": name} for name in checks]}
    found: list[Tree] = [
        {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "rf"}, "spec": {}},
        {"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": "cq"}, "spec": cluster_queue},
    ]
    for name in local:
        meta = {"name": name, "namespace": "default"}
        found.append({"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": meta, "spec": {"clusterQueue": "cq"}})
    for name in checks:
        found.append({"apiVersion": KUEUE, "kind": "AdmissionCheck", "metadata": {"name": name}, "spec": {"controllerName": "example.com/check"}})
    return found


def template(cpu: str = "1", **spec: Any) -> Tree:
    """Return the spec of a pod that runs until it is ended."""
    return {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}], **spec}


def job(name: str = "j", queue: str = "lq", pods: int = 1, **labels: str) -> Tree:
    """Return a queued Job."""
    marks = {"kueue.x-k8s.io/queue-name": queue} | {f"kueue.x-k8s.io/{key.replace('_', '-')}": value for key, value in labels.items()}
    spec = {"parallelism": pods, "completions": pods, "backoffLimit": 0, "template": {"spec": template()}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "default", "labels": marks}, "spec": spec}


def pod(name: str, labels: dict[str, str] | None = None, **annotations: str) -> Tree:
    """Return a queued pod."""
    marks = {"kueue.x-k8s.io/queue-name": "lq", **(labels or {})}
    notes = {f"kueue.x-k8s.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": marks, "annotations": notes},
        "spec": template(),
    }


def play(scenario: Scenario, **options: Any) -> None:
    """Run a scenario on a node with a default program of pods that run for ever."""

    async def whole(cluster: SimCluster) -> None:
        await scenario(cluster)

    simulate(whole, controllers=CONTROLLERS, fleet="none", pods="forever", **options)


async def node(cluster: SimCluster) -> None:
    """Add a node."""
    resources = {"cpu": "64", "memory": "64Gi", "pods": "110"}
    await cluster.apply(
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n-0"}, "status": {"capacity": resources, "allocatable": resources}}
    )


async def the_workload(cluster: SimCluster) -> Tree:
    """Return the only Workload."""
    (found,) = await cluster.list("workload.kueue.x-k8s.io")
    return found


async def active_check(cluster: SimCluster, name: str) -> None:
    """Let a check's controller run."""
    condition = {"type": "Active", "status": "True", "reason": "Active", "message": "", "lastTransitionTime": cluster.env.stamp()}
    await cluster.patch(f"admissioncheck/{name}", {"status": {"conditions": [condition]}}, subresource="status")


async def answer(cluster: SimCluster, workload: Tree, **checks: Tree) -> None:
    """Answer the checks of a Workload."""
    now = cluster.env.stamp()
    states = [{"name": name, "message": "", "lastTransitionTime": now, **state} for name, state in checks.items()]
    await cluster.patch(f"workload.kueue.x-k8s.io/{workload['metadata']['name']}", {"status": {"admissionChecks": states}}, subresource="status")


def condition(obj: Tree, type_: str) -> tuple[str, str, str]:
    """Return (status, reason, message) of a condition."""
    (found,) = [each for each in obj["status"]["conditions"] if each["type"] == type_]
    return found["status"], found["reason"], found["message"]


async def told(cluster: SimCluster, kind: str) -> list[tuple[str, str, str]]:
    """Return (type, reason, message) of the events about objects of a kind."""
    events = await cluster.list("event")
    found = []
    for each in events:
        about = each.get("regarding") or each.get("involvedObject") or {}
        if about.get("kind") == kind:
            found.append((each["type"], each["reason"], each.get("note") or each.get("message", "")))
    return found


def test_a_rejected_check_deactivates() -> None:
    """A check that says no deactivates the Workload: the event names the check, the count of evictions knows reason and cause apart."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.apply([*queues("ac-a", "ac-b"), job()])
        for name in ("ac-a", "ac-b"):
            await active_check(cluster, name)
        await cluster.settle(30)
        await answer(cluster, await the_workload(cluster), **{"ac-b": {"state": "Rejected", "message": "no room"}, "ac-a": {"state": "Rejected"}})
        await cluster.settle(30)
        why = 'AdmissionChecks in Rejected state: "ac-a"; "ac-b" (no room)'
        gone = await the_workload(cluster)
        assert condition(gone, "Evicted") == ("True", "DeactivatedDueToAdmissionCheck", f"The workload is deactivated due to {why}")
        assert gone["status"]["schedulingStats"] == {"evictions": [{"reason": "Deactivated", "underlyingCause": "AdmissionCheck", "count": 1}]}
        assert ("Warning", "AdmissionCheckRejected", f"Deactivated due to {why}") in await told(cluster, "Workload")
        reason = "EvictedDueToDeactivatedDueToAdmissionCheck"
        assert ("Normal", reason, f"The workload is deactivated due to {why}") in await told(cluster, "Workload")

    play(scenario)


def test_a_check_in_retry_is_reset() -> None:
    """After a retry the check is Pending again, counts its retries and still says how long it wanted to wait; others lose their count."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.apply([*queues("ac-a", "ac-b"), job()])
        for name in ("ac-a", "ac-b"):
            await active_check(cluster, name)
        await cluster.settle(30)
        retry = {"state": "Retry", "message": "later", "requeueAfterSeconds": 5}
        await answer(cluster, await the_workload(cluster), **{"ac-a": retry, "ac-b": {"state": "Ready", "retryCount": 3}})
        await cluster.settle(60)
        states = {each["name"]: each for each in (await the_workload(cluster))["status"]["admissionChecks"]}
        assert (states["ac-a"]["state"], states["ac-a"]["retryCount"], states["ac-a"]["requeueAfterSeconds"]) == ("Pending", 1, 5)
        assert states["ac-a"]["message"] == "Reset to Pending after eviction. Previously: Retry"
        assert states["ac-b"]["message"] == "Reset to Pending after eviction. Previously: Ready"
        assert "retryCount" not in states["ac-b"]

    play(scenario)


def test_pending_checks_are_told_together() -> None:
    """What pending checks say reaches the job in one event, a pod of a group each."""

    async def scenario(cluster: SimCluster) -> None:
        group = [pod(name, {"kueue.x-k8s.io/pod-group-name": "g"}, pod_group_total_count="2") for name in ("p1", "p2")]
        await cluster.apply([*queues("ac-a", "ac-b"), job(), *group])
        for name in ("ac-a", "ac-b"):
            await active_check(cluster, name)
        await cluster.settle(30)
        for workload in await cluster.list("workload.kueue.x-k8s.io"):
            await answer(cluster, workload, **{"ac-a": {"state": "Pending", "message": "one"}, "ac-b": {"state": "Pending", "message": "two"}})
        await cluster.settle(30)
        wanted = ("Normal", "UpdatedAdmissionCheck", "ac-a: one; ac-b: two")
        assert wanted in await told(cluster, "Job")
        assert (await told(cluster, "Pod")).count(wanted) == 2

    play(scenario)


def test_the_longest_time_is_over() -> None:
    """Past its maximum execution time a Workload is deactivated; the event says how long it might have run."""

    async def scenario(cluster: SimCluster) -> None:
        await node(cluster)
        await cluster.apply([*queues(), job(max_exec_time_seconds="20")])
        await cluster.settle(60)
        assert ("Warning", "MaximumExecutionTimeExceeded", "The maximum execution time (20s) exceeded") in await told(cluster, "Workload")
        stats = (await the_workload(cluster))["status"]["schedulingStats"]
        assert stats["evictions"] == [{"reason": "Deactivated", "underlyingCause": "MaximumExecutionTimeExceeded", "count": 1}]

    play(scenario)


def test_retention() -> None:
    """A job that Kueue deactivated, and a Workload that finished, go when they were kept long enough; one that a user deactivated stays."""

    async def scenario(cluster: SimCluster) -> None:
        await node(cluster)
        done = job("done")
        done["spec"]["template"]["metadata"] = {"annotations": {"kubemini.dev/run-for": "5s"}}
        await cluster.apply([*queues(), job("late", max_exec_time_seconds="20"), job("told"), done])
        await cluster.settle(10)
        (mine,) = [each for each in await cluster.list("workload.kueue.x-k8s.io") if each["metadata"]["name"].startswith("job-told")]
        await cluster.patch(f"workload.kueue.x-k8s.io/{mine['metadata']['name']}", {"spec": {"active": False}})
        await cluster.settle(60)
        assert [each["metadata"]["name"] for each in await cluster.list("job")] == ["done", "late", "told"]
        await cluster.settle(100)
        assert [each["metadata"]["name"] for each in await cluster.list("job")] == ["done", "told"]
        assert ("Normal", "Deleted", "Deleted job: deactivation retention period expired") in await told(cluster, "Job")
        assert [each["metadata"]["name"] for each in await cluster.list("workload.kueue.x-k8s.io")] == [mine["metadata"]["name"]]
        assert ("Normal", "Deleted", "Deleted finished workload due to elapsed retention") in await told(cluster, "Workload")

    play(scenario, kueue={"objectRetentionPolicies": {"workloads": {"afterFinished": "90s", "afterDeactivatedByKueue": "100s"}}})


def test_a_deactivated_workload_forgets_its_back_off() -> None:
    """A Workload that was evicted for its pods, and is deactivated then, has no time to be queued again."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.apply([*queues(), job()])
        await cluster.settle(30)
        evicted = await the_workload(cluster)
        assert evicted["status"]["requeueState"]["count"] == 1
        await cluster.patch(f"workload.kueue.x-k8s.io/{evicted['metadata']['name']}", {"spec": {"active": False}})
        await cluster.settle(30)
        gone = await the_workload(cluster)
        assert "requeueState" not in gone["status"]
        assert condition(gone, "Evicted")[1] == "PodsReadyTimeout"

    play(scenario, kueue={"waitForPodsReady": {"timeout": "10s"}})


def test_a_reservation_without_its_queue_is_misconfigured() -> None:
    """A Workload that holds quota without being admitted gives it back when its LocalQueue goes, as one that is misconfigured."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.apply([*queues("ac"), job()])
        await active_check(cluster, "ac")
        await cluster.settle(30)
        assert condition(await the_workload(cluster), "QuotaReserved")[0] == "True"
        seen: list[tuple[str, str, str]] = []
        await cluster.delete("localqueue/lq")
        for _ in range(20):
            await cluster.settle(0.2)
            told_now = condition(await the_workload(cluster), "QuotaReserved")
            if told_now not in seen:
                seen.append(told_now)
        assert {each[1] for each in seen if each[0] == "False"} == {"Misconfigured"}

    play(scenario)


def test_pods_follow_their_labels() -> None:
    """The Workload of a pod that waits moves with its queue label, takes the priority class that comes later, and is held by its gates."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.apply(queues(cpu="0", local=("lq", "other")))
        await cluster.apply({"apiVersion": KUEUE, "kind": "WorkloadPriorityClass", "metadata": {"name": "high"}, "value": 7})
        await cluster.apply(pod("p", {"team": "a"}, admission_gated_by="a.io/x"))
        await cluster.settle(30)
        workload = await the_workload(cluster)
        assert workload["metadata"]["labels"]["team"] == "a"
        assert condition(workload, "QuotaReserved") == ("False", "AdmissionGated", "Admission is gated by: a.io/x")
        labels = {"kueue.x-k8s.io/queue-name": "other", "kueue.x-k8s.io/priority-class": "high"}
        await cluster.patch("pod/p", {"metadata": {"labels": labels, "annotations": {"kueue.x-k8s.io/admission-gated-by": None}}})
        await cluster.settle(30)
        workload = await the_workload(cluster)
        assert (workload["spec"]["queueName"], workload["spec"]["priority"]) == ("other", 7)
        assert condition(workload, "QuotaReserved")[1] == "ExceedsMaxQuota"
        updates = sorted(message for _, reason, message in await told(cluster, "Pod") if reason == "UpdatedWorkload")
        key = f"default/{workload['metadata']['name']}"
        assert updates == ['Updated workload AdmissionGatedBy to ""', f"Updated workload priority class: {key}"]

    play(scenario, kueue={"integrations": {"labelKeysToCopy": ["team"]}})


def test_a_group_cannot_take_the_workload_of_another() -> None:
    """A pod group whose name is that of a Workload made for something else waits, and says so."""

    async def scenario(cluster: SimCluster) -> None:
        foreign: Tree = {"apiVersion": KUEUE, "kind": "Workload", "metadata": {"name": "g", "namespace": "default"}}
        foreign["spec"] = {"podSets": [{"name": "main", "count": 1, "template": {"spec": template()}}]}
        await cluster.apply([*queues(), foreign, pod("p1", {"kueue.x-k8s.io/pod-group-name": "g"}, pod_group_total_count="1")])
        await cluster.settle(30)
        words = 'A Workload named "g" already exists but is not a pod group workload; this pod group cannot be admitted'
        assert ("Warning", "WorkloadNameConflict", words) in await told(cluster, "Pod")

    play(scenario)


def test_a_group_with_a_pod_that_is_done_is_not_ready() -> None:
    """Once a pod of a group has succeeded not all its pods are ready: the group recovers only by ending."""

    async def scenario(cluster: SimCluster) -> None:
        await node(cluster)
        group = [pod(name, {"kueue.x-k8s.io/pod-group-name": "g"}, pod_group_total_count="2") for name in ("p1", "p2")]
        group[0]["metadata"]["annotations"]["kubemini.dev/run-for"] = "20s"
        await cluster.apply([*queues(), *group])
        await cluster.settle(15)
        assert condition(await the_workload(cluster), "PodsReady")[:2] == ("True", "Started")
        await cluster.settle(30)
        assert condition(await the_workload(cluster), "PodsReady")[:2] == ("False", "WaitForRecovery")

    play(scenario)


def test_a_deleted_workload_takes_all_pods_of_its_group() -> None:
    """Deleting the Workload of a group ends all its pods, those that are done too, and says why on each."""

    async def scenario(cluster: SimCluster) -> None:
        await node(cluster)
        group = [pod(name, {"kueue.x-k8s.io/pod-group-name": "g"}, pod_group_total_count="2") for name in ("p1", "p2")]
        group[0]["metadata"]["annotations"]["kubemini.dev/run-for"] = "5s"
        await cluster.apply([*queues(), *group])
        await cluster.settle(15)
        assert {each["status"]["phase"] for each in await cluster.list("pod")} == {"Running", "Succeeded"}
        await cluster.delete("workload.kueue.x-k8s.io/g")
        await cluster.settle(60)
        assert await cluster.list("pod") == []
        assert (await told(cluster, "Pod")).count(("Normal", "Stopped", "Workload is deleted")) >= 1

    play(scenario)


def test_a_queue_of_two_minds_says_so() -> None:
    """A ClusterQueue whose checks of MultiKueue do not go together is inactive, with every reason and the checks in order."""

    async def scenario(cluster: SimCluster) -> None:
        objects = queues("mk-b", "mk-a", "pr")
        for each in objects:
            if each["kind"] == "AdmissionCheck":
                name = "provisioning-request" if each["metadata"]["name"] == "pr" else "multikueue"
                each["spec"]["controllerName"] = f"kueue.x-k8s.io/{name}"
        await cluster.apply(objects)
        for name in ("mk-b", "mk-a", "pr"):
            await active_check(cluster, name)
        await cluster.settle(10)
        inactive = "references inactive AdmissionCheck(s): mk-a,mk-b,pr"
        several = "Cannot use multiple MultiKueue AdmissionChecks on the same ClusterQueue, found: mk-a,mk-b"
        both = "Cannot use both MultiKueue and ProvisioningRequest AdmissionChecks together, found: mk-a,mk-b, pr"
        wanted = ("False", "AdmissionCheckInactive", f"Can't admit new workloads: {inactive}, {several}, {both}.")
        assert condition(await cluster.get("clusterqueue/cq"), "Active") == wanted

    play(scenario)


def test_served_sets_are_gated_as_jobs_are() -> None:
    """A StatefulSet's and a LeaderWorkerSet's Workloads are held by the gates of their owner and let go with them; labels are copied for groups."""

    async def scenario(cluster: SimCluster) -> None:
        await node(cluster)
        marks = {"kueue.x-k8s.io/queue-name": "lq", "team": "a"}
        meta: Tree = {
            "namespace": "default",
            "labels": marks,
            "annotations": {"kueue.x-k8s.io/admission-gated-by": "a.io/x", "provreq.kueue.x-k8s.io/p": "1"},
        }
        pods = {"metadata": {"labels": {"app": "s", "leaderworkerset.sigs.k8s.io/own": "x"}}, "spec": template(restartPolicy="Always")}
        await cluster.apply(
            [
                *queues(),
                {
                    "apiVersion": "apps/v1",
                    "kind": "StatefulSet",
                    "metadata": {"name": "s", **meta},
                    "spec": {"replicas": 1, "serviceName": "s", "selector": {"matchLabels": {"app": "s"}}, "template": pods},
                },
                {
                    "apiVersion": "leaderworkerset.x-k8s.io/v1",
                    "kind": "LeaderWorkerSet",
                    "metadata": {"name": "l", **meta},
                    "spec": {"replicas": 1, "leaderWorkerTemplate": {"size": 1, "workerTemplate": pods}},
                },
            ]
        )
        await cluster.settle(20)
        group, single = await cluster.list("workload.kueue.x-k8s.io")
        for each in (group, single):
            assert condition(each, "QuotaReserved")[1] == "AdmissionGated"
            assert each["metadata"]["annotations"]["provreq.kueue.x-k8s.io/p"] == "1"
        assert group["spec"]["podSets"][0]["template"]["metadata"]["labels"] == {"app": "s", "kueue.x-k8s.io/queue-name": "lq"}
        assert [each["metadata"]["labels"].get("team") for each in (group, single)] == ["a", None]
        for owner in ("statefulset/s", "leaderworkerset/l"):
            await cluster.patch(owner, {"metadata": {"annotations": {"kueue.x-k8s.io/admission-gated-by": None}}})
        await cluster.settle(20)
        assert [condition(each, "Admitted")[0] for each in await cluster.list("workload.kueue.x-k8s.io")] == ["True", "True"]

    play(scenario, kueue={"integrations": {"labelKeysToCopy": ["team"]}})


def test_a_misfit_is_judged_anew() -> None:
    """A Workload of a namespace that its ClusterQueue does not take is misconfigured for as long as that is so, whenever somebody looks."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.apply([*queues(cpu="0", namespaceSelector={"matchLabels": {"team": "a"}}), job()])
        await cluster.settle(10)
        workload = await the_workload(cluster)
        wrong = ("False", "Misconfigured", "workload namespace doesn't match ClusterQueue selector")
        assert condition(workload, "QuotaReserved") == wrong
        seen = []
        await cluster.patch("namespace/default", {"metadata": {"labels": {"team": "a"}}})
        for _ in range(20):
            await cluster.settle(0.2)
            seen.append(condition(await the_workload(cluster), "QuotaReserved")[1])
        assert seen[-1] == "ExceedsMaxQuota"
        await cluster.patch("namespace/default", {"metadata": {"labels": {"team": "b"}}})
        await cluster.patch(f"workload.kueue.x-k8s.io/{workload['metadata']['name']}", {"metadata": {"annotations": {"look": "now"}}})
        await cluster.settle(5)
        assert condition(await the_workload(cluster), "QuotaReserved") == wrong

    play(scenario)


def test_a_twin_of_one_that_does_not_fit_is_bypassed() -> None:
    """A Workload that comes back to its queue while one of its shape has just been found not to fit says that it was not tried, and why the other was refused."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.apply([*queues(cpu="1"), job("a")])
        await cluster.settle(5)
        await cluster.apply(job("b"))
        await cluster.settle(5)
        await cluster.apply(job("c"))
        await cluster.settle(5)
        (mine,) = [each for each in await cluster.list("workload.kueue.x-k8s.io") if each["metadata"]["name"].startswith("job-c")]
        name = f"workload.kueue.x-k8s.io/{mine['metadata']['name']}"
        for active in (False, True):
            await cluster.patch(name, {"spec": {"active": active}})
            await cluster.settle(5)
        words = "Bypassed scheduling evaluation because an equivalent workload recently failed"
        assert condition(await cluster.get(name), "QuotaReserved") == ("False", "WaitingForQuota", words)

    play(scenario)


@pytest.mark.parametrize("seed", range(4))
def test_a_stateful_set_may_change_its_queue_while_it_is_at_zero(seed: int) -> None:
    """Its Workload, on hold till then, is queued in the new queue when it is scaled up."""

    async def scenario(cluster: SimCluster) -> None:
        await node(cluster)
        await cluster.apply(queues(local=("lq", "other")))
        marks = {"kueue.x-k8s.io/queue-name": "lq"}
        selector = {"matchLabels": {"app": "s"}}
        pods = {"metadata": {"labels": {"app": "s"}}, "spec": {"containers": template()["containers"]}}
        spec = {"replicas": 2, "serviceName": "s", "selector": selector, "template": pods}
        await cluster.apply(
            {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s", "namespace": "default", "labels": marks}, "spec": spec}
        )
        await cluster.settle(30)
        await cluster.patch("statefulset/s", {"spec": {"replicas": 0}})
        await cluster.settle(60)
        assert condition(await the_workload(cluster), "QuotaReserved")[:2] == ("False", "OnHold")
        await cluster.patch("statefulset/s", {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "other"}}})
        await cluster.settle(30)
        await cluster.patch("statefulset/s", {"spec": {"replicas": 1}})
        await cluster.settle(60)
        workload = await the_workload(cluster)
        assert condition(workload, "Admitted")[0] == "True"
        assert (workload["spec"]["queueName"], workload["spec"]["podSets"][0]["count"]) == ("other", 1)

    play(scenario, seed=seed)


@pytest.mark.parametrize("explicit", [False, True])
def test_what_is_said_before_the_first_try(explicit: bool) -> None:
    """Behind a head that blocks its queue, a Workload that can never be admitted is told so; others only with ``UnadmittedWorkloadsExplicitStatus``."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.apply(queues(cpu="1", queueingStrategy="StrictFIFO"))
        limits = {"limits": [{"type": "Container", "min": {"cpu": "900m"}}]}
        await cluster.apply({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l", "namespace": "default"}, "spec": limits})
        small = job("small")
        small["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "500m"}
        for each in (job("head", pods=2), small, job("fine")):
            await cluster.apply(each)
            await asyncio.sleep(3)
        found = {each["metadata"]["ownerReferences"][0]["name"]: each for each in await cluster.list("workload.kueue.x-k8s.io")}
        assert condition(found["head"], "QuotaReserved")[1] == "ExceedsMaxQuota"
        assert condition(found["small"], "QuotaReserved")[1] == "Misconfigured"
        assert condition(found["small"], "Admitted")[1] == "NoReservation"
        said = {each["type"]: each["reason"] for each in found["fine"]["status"]["conditions"] if each["type"] != "PodsReady"}
        assert said == ({"QuotaReserved": "PendingEvaluation", "Admitted": "NoReservation"} if explicit else {})

    play(scenario, kueue={"featureGates": {"UnadmittedWorkloadsExplicitStatus": explicit}})


LATE = 1
"""A seed by which a cache shows a reservation only after the next cycle."""


def test_who_was_just_admitted_is_the_newest() -> None:
    """Who reclaims quota takes it from the newest, though the cache does not show that one's reservation yet."""

    async def scenario(cluster: SimCluster) -> None:
        for name, cpu, local in (("lender", "3", "mine"), ("borrower", "0", "lq")):
            flavor, cluster_queue, local_queue = queues(cpu=cpu, local=(local,), cohortName="both", preemption={"reclaimWithinCohort": "Any"})
            cluster_queue["metadata"]["name"] = local_queue["spec"]["clusterQueue"] = name
            for each in (flavor, cluster_queue, local_queue):
                await cluster.apply(each)
        await cluster.apply(job("old"))
        await cluster.settle(60.0)
        for name in ("borrower", "lender"):
            await cluster.client.patch(CLUSTER_QUEUES, name, {"spec": {"stopPolicy": "Hold"}})
        for name, queue in (("new", "lq"), ("first", "mine"), ("second", "mine")):
            await cluster.apply(job(name, queue))
        await cluster.settle(60.0)
        for name in ("borrower", "lender"):
            await cluster.client.patch(CLUSTER_QUEUES, name, {"spec": {"stopPolicy": "None"}})
        await cluster.settle(60.0)
        assert await admitted(cluster) == ["first", "old", "second"]

    simulate(scenario, seed=LATE, faults=Faults(watch_delay=2.0), controllers=CONTROLLERS, fleet="cpu:2")


async def admitted(cluster: SimCluster) -> list[str]:
    """Return the Jobs whose Workloads hold quota."""
    found = [each for each in await cluster.list("workload") if (each.get("status") or {}).get("admission")]
    return sorted(each["metadata"]["ownerReferences"][0]["name"] for each in found)
