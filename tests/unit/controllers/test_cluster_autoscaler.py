"""The simulated cluster autoscaler: what a request is answered, when, and whether there is room."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini import SimCluster, simulate
from kubemini.api.trees import Tree
from kubemini.controllers.cluster_autoscaler.answers import Step, next_step
from kubemini.controllers.cluster_autoscaler.room import Room, left
from kubemini.controllers.cluster_autoscaler.script import BadScript, Script, script_of
from kubemini.runtime.env import to_stamp

CAPACITY, ATOMIC, QUEUED = "check-capacity.autoscaling.x-k8s.io", "best-effort-atomic-scale-up.autoscaling.x-k8s.io", "queued-provisioning.gke.io"
ACCEPTED, PROVISIONED = ("Accepted", 0.0), ("Provisioned", 10.0)


def request(class_: str = CAPACITY, *said: tuple[str, float], name: str = "w-c-1", parameters: Tree | None = None, **notes: str) -> Tree:
    """Return a request with True conditions since so many seconds; `notes` are its annotations."""
    annotations = {f"kubemini.dev/{key.replace('_', '-')}": value for key, value in notes.items()}
    conditions = [{"type": type_, "status": "True", "lastTransitionTime": to_stamp(at)} for type_, at in said]
    spec = {"provisioningClassName": class_, "parameters": parameters or {}, "podSets": [{"count": 1, "podTemplateRef": {"name": "t"}}]}
    return {
        "metadata": {"name": name, "annotations": annotations, "creationTimestamp": to_stamp(0.0)},
        "spec": spec,
        "status": {"conditions": conditions},
    }


def told(step: Step | None) -> list[tuple[str, bool, str]]:
    """Return types, statuses and reasons of what is to be written."""
    assert step is not None
    return [each[:3] for each in step.conditions]


def test_a_request_is_accepted_first_and_answered_later() -> None:
    """Acceptance comes at once, the answer after the latency, and only then somebody looks for room."""
    accepted = next_step(request(), Script(), 3.0, 0.0)
    assert told(accepted) == [("Accepted", True, "Accepted")]
    assert next_step(request(CAPACITY, ACCEPTED), Script(), 3.0, 1.0) == Step(again=2.0)
    assert next_step(request(CAPACITY, ACCEPTED), Script(), 3.0, 3.0) is None
    assert next_step(request(CAPACITY, ACCEPTED), Script(after=9.0), 3.0, 3.0) == Step(again=6.0)


@pytest.mark.parametrize("class_,reason", [(CAPACITY, "CapacityIsFound"), (ATOMIC, "CapacityIsProvisioned"), (QUEUED, "CapacityIsProvisioned")])
def test_room_decides(class_: str, reason: str) -> None:
    """Where there is room the request is Provisioned, else it has Failed."""
    assert told(next_step(request(class_, ACCEPTED), Script(), 0.0, 1.0, True)) == [("Provisioned", True, reason)]
    assert told(next_step(request(class_, ACCEPTED), Script(), 0.0, 1.0, False)) == [("Failed", True, "CapacityIsNotFound")]


def test_room_is_looked_for_again_where_asked() -> None:
    """With noRetry "false" room is looked for again and again, and that is said once."""
    waiting = request(CAPACITY, ACCEPTED, parameters={"noRetry": "false"})
    step = next_step(waiting, Script(), 0.0, 1.0, False)
    assert step == Step((("Provisioned", False, "CapacityIsNotFound", "Capacity is not found, CA will try to find it later."),), 10.0)
    waiting["status"]["conditions"].append({"type": "Provisioned", "status": "False", "lastTransitionTime": to_stamp(1.0)})
    assert next_step(waiting, Script(), 0.0, 11.0, False) == Step(again=10.0)
    assert told(next_step(waiting, Script(), 0.0, 21.0, True)) == [("Provisioned", True, "CapacityIsFound")]


def test_bookings_expire() -> None:
    """Room is set aside for ten minutes or as long as said; GKE's queued provisioning keeps what it has brought."""
    given = request(CAPACITY, ACCEPTED, PROVISIONED)
    assert next_step(given, Script(), 0.0, 20.0) == Step(again=590.0)
    assert told(next_step(given, Script(), 0.0, 610.0)) == [("BookingExpired", True, "CapacityReservationTimeExpired")]
    assert told(next_step(given, Script(lasts=5.0), 0.0, 15.0)) == [("BookingExpired", True, "CapacityReservationTimeExpired")]
    assert next_step(request(QUEUED, ACCEPTED, PROVISIONED), Script(), 0.0, 9999.0) == Step()


def test_scripted_outcomes() -> None:
    """A script decides whatever room there is; what is revoked or has expired was provisioned before, and nothing comes after an end."""
    asked = request(CAPACITY, ACCEPTED)
    assert told(next_step(asked, Script("failed"), 0.0, 1.0)) == [("Failed", True, "CapacityIsNotFound")]
    week = 7 * 86400.0
    assert next_step(asked, Script("pending"), 0.0, 1.0) == Step(again=week)
    assert told(next_step(asked, Script("pending"), 0.0, week + 1.0)) == [("Failed", True, "Expired")]
    assert told(next_step(asked, Script(), 0.0, week + 1.0)) == [("Failed", True, "Expired")]
    both = [("Provisioned", True, "CapacityIsFound"), ("BookingExpired", True, "CapacityReservationTimeExpired")]
    assert told(next_step(asked, Script("booking-expired"), 0.0, 1.0)) == both
    step = next_step(asked, Script("capacity-revoked", lasts=30.0), 0.0, 1.0)
    assert told(step) == both[:1]
    assert step is not None
    assert step.again == 30.0
    given = request(CAPACITY, ACCEPTED, PROVISIONED)
    assert told(next_step(given, Script("capacity-revoked", lasts=30.0), 0.0, 40.0)) == [("CapacityRevoked", True, "CapacityRevoked")]
    assert next_step(request(CAPACITY, ACCEPTED, ("Failed", 1.0)), Script("provisioned"), 0.0, 9.0) == Step()


def test_scripts() -> None:
    """Annotations of the request come before its parameters, those before annotations of its pods; each try takes its own outcome."""
    pods = [{"template": {"metadata": {"annotations": {"kubemini.dev/provisioning": "pending", "kubemini.dev/provisioning-after": "1m"}}}}]
    assert script_of(request(), pods) == Script("pending", 60.0)
    by_parameter = request(parameters={"kubemini.dev/provisioning": "failed,provisioned"})
    assert script_of(by_parameter, pods).outcome == "failed"
    for name, outcome in (("w-c-2", "provisioned"), ("w-c-7", "provisioned"), ("mine", "failed")):
        assert script_of(request(name=name, parameters=by_parameter["spec"]["parameters"]), pods).outcome == outcome
    noted = request(parameters=by_parameter["spec"]["parameters"], provisioning="capacity-revoked", provisioning_lasts="2")
    assert script_of(noted, []) == Script("capacity-revoked", None, 2.0)
    assert script_of(request(provisioning_details="A=1, B=2=3"), []).details == {"A": "1", "B": "2=3"}


@pytest.mark.parametrize(
    "notes", [{"provisioning": "nonsense"}, {"provisioning_after": "soon"}, {"provisioning_lasts": "-1s"}, {"provisioning_details": "A"}]
)
def test_wrong_scripts_say_what_is_wrong(notes: Any) -> None:
    """A script that cannot be read names its key."""
    (key,) = notes
    with pytest.raises(BadScript, match=f"kubemini.dev/{key.replace('_', '-')}: "):
        script_of(request(**notes), [])


def node(name: str, cpu: str = "4", **more: Any) -> Tree:
    """Return a ready node."""
    status = {"allocatable": {"cpu": cpu, "pods": "110"}, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"metadata": {"name": name, "labels": {"host": name}}, "spec": more, "status": status}


def pod(cpu: str, **spec: Any) -> Tree:
    """Return the spec of a pod."""
    return {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}], **spec}


def test_room_is_on_nodes_and_not_in_their_sum() -> None:
    """Pods go on nodes that take them: what is free in pieces too small, tainted, cordoned, not ready or not selected does not count."""
    taint = [{"key": "t", "effect": "NoSchedule"}]
    down = node("down")
    down["status"]["conditions"][0]["status"] = "False"
    nodes = [node("a"), node("b"), node("tainted", taints=taint), node("cordoned", unschedulable=True), down]
    running: Tree = {"metadata": {"namespace": "n"}, "spec": {**pod("1"), "nodeName": "a"}, "status": {"phase": "Running"}}
    ended: Tree = {**running, "status": {"phase": "Succeeded"}}

    def fits(*wanted: tuple[Tree, int]) -> bool:
        return Room(nodes, [running, ended]).take(wanted)

    assert fits((pod("1"), 7))
    assert not fits((pod("1"), 8))
    assert fits((pod("3"), 2))
    assert not fits((pod("3"), 3))
    assert fits((pod("1"), 11)) is False
    assert fits((pod("1", tolerations=[{"key": "t", "operator": "Exists"}]), 11))
    assert not fits((pod("1", nodeSelector={"host": "a"}), 4))
    assert fits((pod("2"), 2), (pod("1"), 3))
    assert not fits((pod("2"), 2), (pod("2"), 2))


def test_what_is_still_to_come() -> None:
    """Pods that are there are taken off the first pod sets."""
    assert [count for _, count in left([({}, 2), ({}, 3)], 3)] == [0, 2]


def test_room_is_given_once() -> None:
    """Two requests for the room of one: the second fails; when the first has gone there is room again. A request without its template fails too."""

    async def scenario(cluster: SimCluster) -> None:
        resources = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        fresh: Tree = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"capacity": resources, "allocatable": resources}}
        await cluster.apply([fresh, {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "t"}, "template": {"spec": template}}])
        await cluster.settle(10)
        assert await answer(cluster, "one") == ("Provisioned", "CapacityIsFound")
        assert await answer(cluster, "two") == ("Failed", "CapacityIsNotFound")
        await cluster.delete("provreq/one")
        assert await answer(cluster, "three") == ("Provisioned", "CapacityIsFound")
        assert await answer(cluster, "lost", template_name="gone") == ("Failed", "FailedToCreatePods")
        assert await answer(cluster, "foreign", class_="example.com") is None

    template = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}

    async def answer(cluster: SimCluster, name: str, *, template_name: str = "t", class_: str = CAPACITY) -> tuple[str, str] | None:
        spec = {"provisioningClassName": class_, "podSets": [{"count": 3, "podTemplateRef": {"name": template_name}}]}
        await cluster.apply({"apiVersion": "autoscaling.x-k8s.io/v1", "kind": "ProvisioningRequest", "metadata": {"name": name}, "spec": spec})
        await cluster.settle(10)
        said = (await cluster.get(f"provreq/{name}")).get("status")
        return (said["conditions"][-1]["type"], said["conditions"][-1]["reason"]) if said else None

    names = ("namespaces", "service-accounts", "nodes", "kubelet", "cluster-autoscaler")
    simulate(scenario, controllers=names, provisioning_latency=2.0)
