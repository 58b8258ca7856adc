"""Kueue's ProvisioningRequest check: what is asked, what the answers mean, and when requests go. Mirrors pkg/controller/admissionchecks/provisioning."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kubemini import SimCluster, simulate
from kubemini.api.trees import Tree
from kubemini.controllers.kueue.provisioning import states
from kubemini.controllers.kueue.provisioning.naming import attempt_of, request_name, template_name
from kubemini.controllers.kueue.provisioning.podsets import alike, wanted
from kubemini.machinery.errors import Invalid
from kubemini.runtime.env import from_stamp
from tests.unit.kueue.test_lives import CONTROLLERS, KUEUE, Scenario, condition, job, node, queues, template, the_workload, told

CLASS = "check-capacity.autoscaling.x-k8s.io"
FAILED = "CA could not find requested capacity"
RETRYING = f"Retrying after failure: {FAILED}"


def provisioned_queues(cpu: str = "40", **config: Any) -> list[Tree]:
    """Return a ClusterQueue with one check of ProvisioningRequests, and its configuration."""
    objects = queues("prov", cpu=cpu)
    reference = {"apiGroup": "kueue.x-k8s.io", "kind": "ProvisioningRequestConfig", "name": "cfg"}
    objects[-1]["spec"] = {"controllerName": "kueue.x-k8s.io/provisioning-request", "parameters": reference}
    spec = {"provisioningClassName": CLASS, **config}
    return [*objects, {"apiVersion": KUEUE, "kind": "ProvisioningRequestConfig", "metadata": {"name": "cfg"}, "spec": spec}]


def asking(outcome: str = "", pods: int = 1, **more: str) -> Tree:
    """Return a queued Job whose requests are answered so."""
    notes = {"kubemini.dev/provisioning": outcome} if outcome else {}
    notes |= {f"kubemini.dev/provisioning-{key}": value for key, value in more.items()}
    made = job(pods=pods)
    made["spec"]["template"]["metadata"] = {"annotations": notes}
    return made


def play(scenario: Scenario, *, answered: bool = True, **options: Any) -> None:
    """Run a scenario, with or without the simulated autoscaler."""

    async def whole(cluster: SimCluster) -> None:
        await scenario(cluster)

    more = ("cluster-autoscaler",) if answered else ()
    simulate(whole, controllers=(*CONTROLLERS, *more), fleet="none", pods="forever", **options)


async def requests(cluster: SimCluster) -> list[str]:
    """Return the names of the requests, without that of the Workload."""
    workload = (await the_workload(cluster))["metadata"]["name"]
    return [each["metadata"]["name"].removeprefix(f"{workload}-") for each in await cluster.list("provisioningrequest")]


async def the_check(cluster: SimCluster) -> tuple[str, str]:
    """Return state and message of the check of the only Workload."""
    (check,) = (await the_workload(cluster))["status"]["admissionChecks"]
    return check["state"], check["message"]


async def say(cluster: SimCluster, name: str, **conditions: str) -> None:
    """Answer a request by hand: conditions that are True, with their messages (False after a "!")."""
    now = cluster.env.stamp()
    said = [
        {"type": type_, "status": str(not text.startswith("!")), "reason": type_, "message": text.removeprefix("!"), "lastTransitionTime": now}
        for type_, text in conditions.items()
    ]
    await cluster.patch(f"provisioningrequest/{name}", {"status": {"conditions": said}}, subresource="status")


def test_a_request_is_made_and_answered() -> None:
    """A Workload with quota asks once; the answer makes the check ready, and its pods name the request whose room they take."""

    async def scenario(cluster: SimCluster) -> None:
        await node(cluster)
        made = asking(pods=2)
        made["metadata"]["annotations"] = {"provreq.kueue.x-k8s.io/maxRunDurationSeconds": "600"}
        await cluster.apply([*provisioned_queues(parameters={"a": "b"}), made])
        await cluster.settle(30)
        workload = await the_workload(cluster)
        (request,) = await cluster.list("provisioningrequest")
        (pod_template,) = await cluster.list("podtemplate")
        name = f"{workload['metadata']['name']}-prov-1"
        assert request["metadata"]["name"] == name
        assert request["metadata"]["labels"] == {"kueue.x-k8s.io/managed": "true"}
        (owner,) = request["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("Workload", workload["metadata"]["uid"], True)
        assert request["spec"] == {
            "provisioningClassName": CLASS,
            "parameters": {"a": "b", "maxRunDurationSeconds": "600"},
            "podSets": [{"count": 2, "podTemplateRef": {"name": f"ppt-{name}-main"}}],
        }
        assert pod_template["metadata"]["name"] == f"ppt-{name}-main"
        (owner,) = pod_template["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("ProvisioningRequest", request["metadata"]["uid"], True)
        marks = {"autoscaling.x-k8s.io/consume-provisioning-request": name, "autoscaling.x-k8s.io/provisioning-class-name": CLASS}
        (check,) = workload["status"]["admissionChecks"]
        assert (check["state"], check["message"]) == ("Ready", "Capacity is found in the cluster")
        assert check["podSetUpdates"] == [{"name": "main", "annotations": marks}]
        assert all(marks.items() <= pod["metadata"]["annotations"].items() for pod in await cluster.list("pod"))
        events = await told(cluster, "Workload")
        assert ("Normal", "ProvisioningRequestCreated", f'Created ProvisioningRequest: "{name}"') in events
        updated = "Admission check prov updated state from Pending to Ready with message: Capacity is found in the cluster"
        assert ("Normal", "AdmissionCheckUpdated", updated) in events

    play(scenario)


def test_failures_are_retried_with_back_off_then_rejected() -> None:
    """Each failed try gives quota and request back and waits twice as long; the one after the limit deactivates the Workload."""

    async def scenario(cluster: SimCluster) -> None:
        began = cluster.env.now()
        strategy = {"backoffLimitCount": 2, "backoffBaseSeconds": 60, "backoffMaxSeconds": 1800}
        await cluster.apply([*provisioned_queues(retryStrategy=strategy), asking("failed", after="6s")])
        await cluster.settle(20)
        (check,) = (await the_workload(cluster))["status"]["admissionChecks"]
        assert (check["state"], check["message"], check["requeueAfterSeconds"]) == ("Retry", RETRYING, 60)
        assert await requests(cluster) == ["prov-1"]
        seen: dict[str, float] = {}
        for _ in range(60):
            for each in await cluster.list("provisioningrequest"):
                seen[each["metadata"]["name"][-1]] = from_stamp(each["metadata"]["creationTimestamp"]) - began
            await asyncio.sleep(5)
        assert seen == {"1": 0, "2": 60, "3": 180}
        await cluster.settle(600)
        workload = await the_workload(cluster)
        assert workload["spec"]["active"] is False
        why = f'The workload is deactivated due to AdmissionCheck in Rejected state: "prov" ({FAILED})'
        assert condition(workload, "Evicted") == ("True", "DeactivatedDueToAdmissionCheck", why)
        assert [await cluster.list(kind) for kind in ("provisioningrequest", "podtemplate")] == [[], []]

    play(scenario)


@pytest.mark.parametrize(
    "first,message", [("failed", RETRYING), ("booking-expired", "Retrying after booking expired: Capacity reservation time is expired")]
)
def test_a_later_try_succeeds(first: str, message: str) -> None:
    """A failure, and a booking that expired before admission, lead to a second request by the next number; the first one is gone."""

    async def scenario(cluster: SimCluster) -> None:
        await node(cluster)
        await cluster.apply([*provisioned_queues(), asking(f"{first},provisioned")])
        await cluster.settle(20)
        assert await the_check(cluster) == ("Retry", message)
        await cluster.settle(120)
        assert await requests(cluster) == ["prov-2"]
        assert condition(await the_workload(cluster), "Admitted")[0] == "True"

    play(scenario)


def test_an_expired_booking_is_nothing_to_an_admitted_workload() -> None:
    """Once it runs, a Workload does not care whether room is still set aside for it."""

    async def scenario(cluster: SimCluster) -> None:
        await node(cluster)
        await cluster.apply([*provisioned_queues(), asking(lasts="30s")])
        await cluster.settle(300)
        (request,) = await cluster.list("provisioningrequest")
        assert condition(request, "BookingExpired") == ("True", "CapacityReservationTimeExpired", "Capacity reservation time is expired")
        assert condition(await the_workload(cluster), "Admitted")[0] == "True"

    play(scenario)


def test_revoked_capacity_deactivates_what_runs() -> None:
    """A running Workload whose nodes are taken away is rejected and deactivated: its pods would wait for ever."""

    async def scenario(cluster: SimCluster) -> None:
        await node(cluster)
        await cluster.apply([*provisioned_queues(), asking("capacity-revoked", lasts="60s")])
        await cluster.settle(30)
        assert condition(await the_workload(cluster), "Admitted")[0] == "True"
        await cluster.settle(120)
        workload = await the_workload(cluster)
        why = 'The workload is deactivated due to AdmissionCheck in Rejected state: "prov" (Capacity has been revoked)'
        assert condition(workload, "Evicted") == ("True", "DeactivatedDueToAdmissionCheck", why)
        assert await cluster.list("provisioningrequest") == []
        assert await cluster.list("pod") == []

    play(scenario)


def test_answers_by_hand() -> None:
    """Without the simulated autoscaler a user answers: an estimate shows on the check, details become node selectors, limits stand in for requests."""

    async def scenario(cluster: SimCluster) -> None:
        await node(cluster)
        selector = [
            {"key": "example.com/pool", "valueFromProvisioningClassDetail": "Pool"},
            {"key": "x", "valueFromProvisioningClassDetail": "Other"},
        ]
        objects = provisioned_queues(podSetUpdates={"nodeSelector": selector})
        objects[0]["spec"] = {"nodeLabels": {"zone": "a"}, "tolerations": [{"key": "t", "operator": "Exists"}]}
        made = job()
        made["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1"}}
        await cluster.apply([*objects, made])
        await cluster.settle(30)
        name = (await cluster.list("provisioningrequest"))[0]["metadata"]["name"]
        (pods,) = await cluster.list("podtemplate")
        spec = pods["template"]["spec"]
        assert (spec["nodeSelector"], spec["tolerations"]) == ({"zone": "a"}, [{"key": "t", "operator": "Exists"}])
        assert spec["containers"][0]["resources"] == {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}
        assert await the_check(cluster) == ("Pending", "")
        await say(cluster, name, Accepted="yes", Provisioned="!in an hour")
        await cluster.settle(30)
        assert await the_check(cluster) == ("Pending", "in an hour")
        await cluster.patch(f"provisioningrequest/{name}", {"status": {"provisioningClassDetails": {"Pool": "p-1"}}}, subresource="status")
        await say(cluster, name, Accepted="yes", Provisioned="here it is")
        await cluster.settle(30)
        (check,) = (await the_workload(cluster))["status"]["admissionChecks"]
        assert (check["state"], check["message"]) == ("Ready", "here it is")
        assert check["podSetUpdates"][0]["nodeSelector"] == {"example.com/pool": "p-1"}
        (pod,) = await cluster.list("pod")
        assert pod["spec"]["nodeSelector"] == {"zone": "a", "example.com/pool": "p-1"}

    play(scenario, answered=False)


def test_requests_go_with_their_try() -> None:
    """A request goes when its Workload is evicted, and when it has finished; templates go with it."""

    async def scenario(cluster: SimCluster) -> None:
        await node(cluster)
        await cluster.apply([*provisioned_queues(), asking()])
        await cluster.settle(30)
        name = (await the_workload(cluster))["metadata"]["name"]
        await cluster.patch(f"workload.kueue.x-k8s.io/{name}", {"spec": {"active": False}})
        await cluster.settle(30)
        assert [await cluster.list(kind) for kind in ("provisioningrequest", "podtemplate")] == [[], []]
        await cluster.patch(f"workload.kueue.x-k8s.io/{name}", {"spec": {"active": True}})
        await cluster.settle(30)
        assert await requests(cluster) == ["prov-1"]
        (pod,) = await cluster.list("pod")
        await cluster.fail_pod("default", pod["metadata"]["name"])
        await cluster.settle(60)
        assert condition(await the_workload(cluster), "Finished")[0] == "True"
        assert [await cluster.list(kind) for kind in ("provisioningrequest", "podtemplate")] == [[], []]

    play(scenario)


def test_a_request_that_is_going_is_no_answer() -> None:
    """A deleted request that a finalizer keeps counts for nothing: the next try waits until its name is free, and makes a new one."""

    async def scenario(cluster: SimCluster) -> None:
        await node(cluster)
        await cluster.apply([*provisioned_queues(), asking("provisioned")])
        await cluster.settle(30)
        name = f"workload.kueue.x-k8s.io/{(await the_workload(cluster))['metadata']['name']}"
        (before,) = await cluster.list("provisioningrequest")
        reference = f"provreq/{before['metadata']['name']}"
        await cluster.patch(reference, {"metadata": {"finalizers": ["example.com/keep"]}})
        for active in (False, True):
            await cluster.patch(name, {"spec": {"active": active}})
            await cluster.settle(30)
        assert (await the_check(cluster))[0] == "Pending"
        await cluster.patch(reference, {"metadata": {"finalizers": None}})
        await cluster.settle(30)
        (after,) = await cluster.list("provisioningrequest")
        assert after["metadata"]["uid"] != before["metadata"]["uid"]
        assert condition(await the_workload(cluster), "Admitted")[0] == "True"

    play(scenario)


def test_requests_stay_over_an_eviction_without_the_gate() -> None:
    """CleanupProvisioningRequestsOnEviction=false leaves requests of evicted Workloads where they are."""

    async def scenario(cluster: SimCluster) -> None:
        await node(cluster)
        await cluster.apply([*provisioned_queues(), asking("failed,provisioned")])
        await cluster.settle(120)
        assert await requests(cluster) == ["prov-2"]
        name = (await the_workload(cluster))["metadata"]["name"]
        await cluster.patch(f"workload.kueue.x-k8s.io/{name}", {"spec": {"active": False}})
        await cluster.settle(30)
        assert await requests(cluster) == ["prov-2"]

    play(scenario, feature_gates={"CleanupProvisioningRequestsOnEviction": False})


def test_a_changed_configuration_is_asked_anew() -> None:
    """A request that no longer asks for what is configured goes, with its templates, and another of the same name takes its place."""

    async def scenario(cluster: SimCluster) -> None:
        await node(cluster)
        await cluster.apply([*provisioned_queues(), asking("pending")])
        await cluster.settle(30)
        (before,) = await cluster.list("provisioningrequest")
        await cluster.patch("provisioningrequestconfig/cfg", {"spec": {"parameters": {"kubemini.dev/provisioning": "provisioned"}}})
        await cluster.settle(60)
        (after,) = await cluster.list("provisioningrequest")
        assert (after["metadata"]["name"], after["spec"]["parameters"]) == (
            before["metadata"]["name"],
            {"kubemini.dev/provisioning": "provisioned"},
        )
        (pod_template,) = await cluster.list("podtemplate")
        assert pod_template["metadata"]["ownerReferences"][0]["uid"] == after["metadata"]["uid"]
        assert condition(await the_workload(cluster), "Admitted")[0] == "True"

    play(scenario)


def test_nothing_is_asked_for_what_nobody_manages() -> None:
    """A Workload without any of the managed resources is ready at once, without a request."""

    async def scenario(cluster: SimCluster) -> None:
        await node(cluster)
        await cluster.apply([*provisioned_queues(managedResources=["nvidia.com/gpu"]), asking()])
        await cluster.settle(30)
        assert await the_check(cluster) == ("Ready", "the provisioning request is not needed")
        assert await cluster.list("provisioningrequest") == []
        assert condition(await the_workload(cluster), "Admitted")[0] == "True"

    play(scenario)


def test_a_check_without_its_configuration() -> None:
    """A check is inactive while its configuration is missing, with the reference's fault; a Workload that holds quota waits for it."""

    async def scenario(cluster: SimCluster) -> None:
        *objects, config = provisioned_queues()
        await cluster.apply([*objects, asking("pending")])
        await cluster.settle(30)
        missing = ("False", "BadParametersRef", 'ProvisioningRequestConfig.kueue.x-k8s.io "cfg" not found')
        assert condition(await cluster.get("admissioncheck/prov"), "Active") == missing
        assert condition(await cluster.get("clusterqueue/cq"), "Active")[1] == "AdmissionCheckInactive"
        await cluster.apply(config)
        await cluster.settle(30)
        assert condition(await cluster.get("admissioncheck/prov"), "Active") == ("True", "Active", "The admission check is active")
        assert await requests(cluster) == ["prov-1"]
        await cluster.delete("provisioningrequestconfig/cfg")
        await cluster.settle(30)
        assert await the_check(cluster) == ("Pending", "the check is not active")
        assert await cluster.list("provisioningrequest") == []

    play(scenario)


def test_a_request_that_cannot_be_made_is_told() -> None:
    """What the API refuses stands on the check and in an event, and is tried again."""

    async def scenario(cluster: SimCluster) -> None:
        made = asking()
        made["metadata"]["annotations"] = {"provreq.kueue.x-k8s.io/long": "x" * 300}
        await cluster.apply([*provisioned_queues(), made])
        await cluster.settle(30)
        workload = await the_workload(cluster)
        state, message = await the_check(cluster)
        assert state == "Pending"
        assert message.startswith(f'Error creating ProvisioningRequest "{workload["metadata"]["name"]}-prov-1": ')
        assert ("Warning", "FailedCreate", message[:1024]) in await told(cluster, "Workload")

    play(scenario)


def test_places_come_after_the_nodes() -> None:
    """With a check of ProvisioningRequests on its flavor a Workload gets its place in the topology once the check is ready: in nodes that it names."""

    async def scenario(cluster: SimCluster) -> None:
        for number in range(2):
            resources = {"cpu": "8", "memory": "64Gi", "pods": "110"}
            labels = {"kubernetes.io/hostname": f"n-{number}", "pool": f"p-{number}"}
            node_: Tree = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n-{number}", "labels": labels}}
            await cluster.apply({**node_, "status": {"capacity": resources, "allocatable": resources}})
        topology = {"apiVersion": KUEUE, "kind": "Topology", "metadata": {"name": "t"}, "spec": {"levels": [{"nodeLabel": "kubernetes.io/hostname"}]}}
        selector = [{"key": "pool", "valueFromProvisioningClassDetail": "Pool"}]
        objects = provisioned_queues(podSetUpdates={"nodeSelector": selector})
        objects[0]["spec"] = {"topologyName": "t", "nodeLabels": {}}
        objects[0]["spec"]["nodeLabels"] = {"kubernetes.io/os": "linux"}
        for number in range(2):
            await cluster.patch(f"node/n-{number}", {"metadata": {"labels": {"kubernetes.io/os": "linux"}}})
        await cluster.apply([topology, *objects, asking("provisioned", pods=2, after="20s", details="Pool=p-1")])
        await cluster.settle(10)
        (assignment,) = (await the_workload(cluster))["status"]["admission"]["podSetAssignments"]
        assert (assignment["delayedTopologyRequest"], "topologyAssignment" in assignment) == ("Pending", False)
        await cluster.settle(60)
        workload = await the_workload(cluster)
        (assignment,) = workload["status"]["admission"]["podSetAssignments"]
        assert assignment["delayedTopologyRequest"] == "Ready"
        assert assignment["topologyAssignment"]["slices"][0]["valuesPerLevel"] == [{"universal": "n-1"}]
        assert condition(workload, "Admitted")[0] == "True"
        assert {pod["spec"].get("nodeName") for pod in await cluster.list("pod")} == {"n-1"}

    play(scenario)


def test_places_that_are_not_there_yet_are_looked_for_again() -> None:
    """A second pass in vain is told and keeps the quota; the Workload is admitted when there is a place."""

    async def scenario(cluster: SimCluster) -> None:
        topology = {"apiVersion": KUEUE, "kind": "Topology", "metadata": {"name": "t"}, "spec": {"levels": [{"nodeLabel": "kubernetes.io/hostname"}]}}
        objects = provisioned_queues()
        objects[0]["spec"] = {"topologyName": "t", "nodeLabels": {"kubernetes.io/os": "linux"}}
        await cluster.apply([topology, *objects, asking("provisioned")])
        await cluster.settle(20)
        workload = await the_workload(cluster)
        assert condition(workload, "QuotaReserved")[0] == "True"
        assert condition(workload, "Admitted") == ("False", "PendingDelayedTopologyRequests", "There are pending delayed topology requests")
        assert ("Warning", "SecondPassFailed") in [each[:2] for each in await told(cluster, "Workload")]
        resources = {"cpu": "8", "memory": "64Gi", "pods": "110"}
        labels = {"kubernetes.io/hostname": "n-0", "kubernetes.io/os": "linux"}
        new: Tree = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n-0", "labels": labels}}
        await cluster.apply({**new, "status": {"capacity": resources, "allocatable": resources}})
        await cluster.settle(60)
        assert condition(await the_workload(cluster), "Admitted")[0] == "True"

    play(scenario)


def test_a_request_cannot_be_changed() -> None:
    """Spec and class of a request are immutable, pods must be at least one; v1beta1 is served, and answered with a warning."""

    async def scenario(cluster: SimCluster) -> None:
        spec = {"provisioningClassName": CLASS, "podSets": [{"count": 1, "podTemplateRef": {"name": "t"}}]}
        made: Tree = {"apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "ProvisioningRequest", "metadata": {"name": "r"}, "spec": spec}
        await cluster.apply(made)
        assert (await cluster.get("provreq/r"))["apiVersion"] == "autoscaling.x-k8s.io/v1"
        for change in ({"provisioningClassName": "other"}, {"podSets": [{"count": 2, "podTemplateRef": {"name": "t"}}]}):
            with pytest.raises(Invalid, match="Value is immutable"):
                await cluster.patch("provreq/r", {"spec": change})
        with pytest.raises(Invalid, match="should be greater than or equal to 1"):
            await cluster.apply({**made, "metadata": {"name": "s"}, "spec": {**spec, "podSets": [{"count": 0, "podTemplateRef": {"name": "t"}}]}})

    play(scenario, answered=False)


# ------------------------------------------------------------------------------------------------- pure parts


def test_names() -> None:
    """Long names are cut and hashed, and the tries of such names are known again."""
    assert request_name("w", "c", 3) == "w-c-3"
    long = request_name("w" * 250, "c", 1)
    assert len(long) == 253
    assert long.startswith("w" * 247 + "-")
    assert len(template_name("r" * 250, "main")) == 253
    assert attempt_of("w-c-x", "w", "c") == 0
    assert attempt_of(long, "w" * 250, "c") == 1
    assert [attempt_of(request_name("w" * 244, "c", number), "w" * 244, "c") for number in (9, 10)] == [9, 10]
    assert attempt_of(long, "w" * 249, "c") == 0


def test_merging_of_pod_sets() -> None:
    """Pod sets are merged by whole templates, or by what decides where pods go; counts are those of the assignment, and empty ones are left out."""

    def pod_set(name: str, count: int, **spec: Any) -> Tree:
        return {"name": name, "count": count, "template": {"metadata": {}, "spec": template(**spec)}}

    other = pod_set("b", 2)
    other["template"]["spec"]["containers"][0]["image"] = "other"
    pod_sets = [pod_set("a", 1), other, pod_set("c", 3), pod_set("d", 4, nodeSelector={"x": "y"}), pod_set("e", 0)]
    given = [{"name": each["name"], "count": each["count"]} for each in pod_sets]
    given[2]["count"] = 5
    workload: Tree = {"spec": {"podSets": pod_sets}, "status": {"admission": {"podSetAssignments": given}}}

    def counts(policy: str) -> list[tuple[str, int]]:
        return [(each.pod_set["name"], each.count) for each in wanted(workload, {"spec": {"podSetMergePolicy": policy}})]

    assert counts("") == [("a", 1), ("b", 2), ("c", 5), ("d", 4)]
    assert counts("IdenticalPodTemplates") == [("a", 6), ("b", 2), ("d", 4)]
    assert counts("IdenticalWorkloadSchedulingRequirements") == [("a", 8), ("d", 4)]
    assert not alike(pod_sets[0]["template"], pod_sets[3]["template"], "IdenticalWorkloadSchedulingRequirements")


def test_old_requests_are_not_retried_twice() -> None:
    """A request of a try that has been counted only changes the message: back-off is asked for once."""
    workload: Tree = {"metadata": {"name": "w"}, "spec": {"podSets": []}, "status": {}}
    config = {"spec": {"retryStrategy": {"backoffLimitCount": 3, "backoffBaseSeconds": 10, "backoffMaxSeconds": 15}}}
    failed = {"type": "Failed", "status": "True", "message": "no"}
    check = {"name": "c", "state": "Pending", "message": "", "retryCount": 1}

    def answer(attempt: int) -> Tree:
        return states.answered(check, workload, {"metadata": {"name": f"w-c-{attempt}"}, "status": {"conditions": [failed]}}, config)

    assert answer(1) == {**check, "message": "Retrying after failure: no"}
    assert answer(2) == {**check, "state": "Retry", "message": "Retrying after failure: no", "requeueAfterSeconds": 15}
    assert answer(4) == {**check, "state": "Rejected", "message": "no"}
