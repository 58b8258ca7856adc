"""The kubelet's pure rules: what a pod does, restarts, admission, statuses."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.controllers.kubelet import statuses
from kubemini.controllers.kubelet.admission import bypassed, rejection, taken_before
from kubemini.controllers.kubelet.programs import FOREVER, BadAnnotation, Program, program_of
from kubemini.controllers.kubelet.restarts import delay, restarting, restarts_again

Tree = dict[str, Any]
NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"


def pod(*containers: Tree, annotations: Tree | None = None, **spec: Any) -> Tree:
    """Return a bound pod."""
    meta = {"name": "p", "namespace": "default", "uid": "u", "annotations": annotations or {}, "creationTimestamp": NOW, "generation": 1}
    return {
        "metadata": meta,
        "spec": {"containers": list(containers) or [{"name": "c", "image": "i:1"}], "nodeName": "n", **spec},
        "status": {"phase": "Pending"},
    }


def node(**allocatable: str) -> Tree:
    """Return a node."""
    return {"metadata": {"name": "n", "labels": {"a": "b"}}, "spec": {}, "status": {"allocatable": {"cpu": "2", "pods": "10", **allocatable}}}


# ----------------------------------------------------------------------------------------------- programs


@pytest.mark.parametrize(
    "annotations, expected",
    [
        ({}, FOREVER),
        ({"run-for": "90s"}, Program(run_for=90.0)),
        ({"run-for": "1m30s", "exit-code": "3"}, Program(run_for=90.0, exit_code=3)),
        ({"exit-code": "1"}, Program(run_for=0.0, exit_code=1)),
        ({"hold": "running", "start-after": "2s"}, Program(hold="running", start_after=2.0)),
        ({"init-for": "5s", "init-exit-code": "2"}, Program(init_for=5.0, init_exit_code=2)),
    ],
)
def test_annotations(annotations: Tree, expected: Program) -> None:
    """Annotations say what a pod does."""
    assert program_of(pod(annotations={f"kubemini.dev/{key}": value for key, value in annotations.items()}), "forever") == expected


@pytest.mark.parametrize("annotations", [{"hold": "x"}, {"exit-code": "256"}, {"run-for": "soon"}, {"fail-at": "first"}, {"init-exit-code": "-1"}])
def test_bad_annotations(annotations: Tree) -> None:
    """An annotation that cannot be read is named, with what it must be."""
    key, value = next(iter(annotations.items()))
    with pytest.raises(BadAnnotation, match=f'kubemini.dev/{key}: "{value}" must'):
        program_of(pod(annotations={f"kubemini.dev/{key}": value}), "forever")


@pytest.mark.parametrize(
    "command, expected",
    [
        (["sleep", "5"], Program(run_for=5.0)),
        (["sh", "-c", "sleep 2; exit 3"], Program(run_for=2.0, exit_code=3)),
        (["false"], Program(run_for=0.0, exit_code=1)),
        (["sleep", "infinity"], FOREVER),
        (["train.py"], Program(run_for=5.0)),
    ],
)
def test_commands(command: list[str], expected: Program) -> None:
    """Where pods are programs, their commands are read as far as they can be; others work for a while."""
    assert program_of(pod({"name": "c", "image": "i", "command": command}, restartPolicy="Never"), "programs") == expected


def test_commands_of_init_containers() -> None:
    """Init containers are read one by one."""
    inits = [{"name": "a", "image": "i", "command": ["sleep", "3"]}, {"name": "b", "image": "i", "command": ["sh", "-c", "exit 2"]}]
    program = program_of(pod({"name": "c", "image": "i", "command": ["sleep", "1"]}, initContainers=inits, restartPolicy="Never"), "programs")
    assert [program.init(index) for index in (0, 1)] == [(3.0, 0), (0.0, 2)]
    assert not program.quick_start


def test_attempts_that_fail() -> None:
    """fail-at lets some attempts exit with an error and the others succeed."""
    program = Program(fail_at=(0, 2))
    assert [program.code_of(attempt) for attempt in range(4)] == [1, 0, 1, 0]


# ----------------------------------------------------------------------------------------------- restarts


@pytest.mark.parametrize(
    "policy, container, code, again",
    [
        ("Always", {}, 0, True),
        ("OnFailure", {}, 0, False),
        ("OnFailure", {}, 1, True),
        ("Never", {}, 1, False),
        ("Never", {"restartPolicy": "Always"}, 0, True),
        ("Never", {"restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]}, 42, True),
        ("Never", {"restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]}, 1, False),
        ("Never", {"restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "NotIn", "values": [42]}}]}, 1, True),
    ],
)
def test_who_runs_again(policy: str, container: Tree, code: int, *, again: bool) -> None:
    """A container's rules come before its own policy, and that before the pod's."""
    assert restarts_again({"name": "c", **container}, policy, code) is again
    assert restarting([{"name": "c", **container}], policy, code) == (["c"] if again else [])


def test_back_off() -> None:
    """The first restart is immediate, then 10 s doubling to 300 s."""
    assert [delay(level) for level in (0, 1, 2, 5, 6, 50)] == [0, 10, 20, 160, 300, 300]


# ----------------------------------------------------------------------------------------------- admission


def asks(cpu: str, **spec: Any) -> Tree:
    """Return a pod that asks for cpu."""
    return pod({"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}, **spec)


def test_admission_counts_what_runs() -> None:
    """A pod that never saw the scheduler is refused when the node is full, with the figures."""
    other = {**asks("1500m"), "status": {"phase": "Running"}}
    assert rejection(asks("500m"), node(), [other]) is None
    reason, text = rejection(asks("501m"), node(), [other]) or ("", "")
    assert (reason, text) == ("OutOfcpu", "Node didn't have enough resource: cpu, requested: 501, used: 1500, capacity: 2000")
    reason, text = rejection(asks("0"), node(pods="1"), [other]) or ("", "")
    assert (reason, text) == ("OutOfpods", "Node didn't have enough resource: pods, requested: 1, used: 1, capacity: 1")
    gpu = pod({"name": "c", "image": "i", "resources": {"requests": {"nvidia.com/gpu": "1"}}})
    assert (rejection(gpu, node(), []) or ("",))[0] == "OutOfnvidia.com/gpu"


def test_admission_looks_at_more_than_room() -> None:
    """Node selectors, host ports and NoExecute taints are looked at too; NoSchedule is not."""
    assert (rejection(pod(nodeSelector={"a": "c"}), node(), []) or ("",))[0] == "NodeAffinity"
    port = {"name": "c", "image": "i", "ports": [{"hostPort": 80}]}
    assert (rejection(pod(port), node(), [pod(port)]) or ("",))[0] == "NodePorts"
    for effect, reason in (("NoSchedule", None), ("NoExecute", "TaintToleration")):
        tainted = {**node(), "spec": {"taints": [{"key": "k", "effect": effect}]}}
        assert (rejection(pod(), tainted, []) or (None,))[0] == reason


def test_who_was_there_before() -> None:
    """Of two that came past the scheduler the older one is there first; what is bound by the scheduler has its place."""
    old, new = asks("1"), asks("1")
    old["metadata"] |= {"uid": "old"}
    new["metadata"] |= {"uid": "new", "creationTimestamp": LATER}
    assert taken_before(new, node(), [old, new]) == [old]
    assert taken_before(old, node(), [old, new]) == []
    bound = {**new, "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]}}
    assert bypassed(new)
    assert not bypassed(bound)
    assert taken_before(old, node(), [bound]) == [bound]
    large = asks("3")
    large["metadata"] |= {"uid": "large"}
    assert taken_before(new, node(), [large, old]) == [old], "one that the node will refuse takes no room"


# ----------------------------------------------------------------------------------------------- statuses


def running(of: Tree, **more: Any) -> Tree:
    """Return a pod as it is when it runs."""
    status = statuses.running(of, now=NOW, pod_ip="10.128.0.1", host_ip="10.0.0.1", ready=True, **more)
    return {**of, "status": status}


def conditions(of: Tree) -> dict[str, tuple[str, str]]:
    """Return the conditions: type → (status, reason)."""
    return {each["type"]: (each["status"], each.get("reason", "")) for each in of["status"]["conditions"]}


def test_running() -> None:
    """A pod that runs has its address, its start, and all its conditions True."""
    found = running(pod())
    assert found["status"]["phase"] == "Running"
    assert {status for status, _ in conditions(found).values()} == {"True"}
    assert found["status"]["containerStatuses"][0]["state"] == {"running": {"startedAt": NOW}}


def test_readiness_gates() -> None:
    """A pod whose containers are ready is Ready only when its gates are True."""
    gated = pod(readinessGates=[{"conditionType": "x/y"}])
    found = running(gated)
    assert conditions(found)["Ready"] == ("False", "ReadinessGatesNotReady")
    assert conditions(found)["ContainersReady"] == ("True", "")
    found["status"]["conditions"].append({"type": "x/y", "status": "True"})
    assert statuses.closed_gate(found) == ""


def test_a_transition_time_moves_with_the_status_only() -> None:
    """Writing the same status again keeps the time of the transition."""
    before = running(pod())["status"]["conditions"]
    again = statuses.conditions(before, LATER, 1, Ready=("True", "", ""), ContainersReady=("False", "ContainersNotReady", ""))
    assert {each["type"]: each["lastTransitionTime"] for each in again} == {
        "Ready": NOW,
        "ContainersReady": LATER,
        "Initialized": NOW,
        "PodScheduled": NOW,
    }


def test_the_end() -> None:
    """Exit code 0 ends a pod as Succeeded, any other as Failed; sidecars are stopped with it."""
    sidecar = pod(initContainers=[{"name": "s", "image": "i", "restartPolicy": "Always"}])
    done = statuses.terminated(running(sidecar), now=LATER, exit_code=0)
    assert (done["phase"], done["initContainerStatuses"][0]["state"]["terminated"]["exitCode"]) == ("Succeeded", 0)
    failed = statuses.terminated(running(pod()), now=LATER, exit_code=2)
    assert (failed["phase"], failed["containerStatuses"][0]["state"]["terminated"]["reason"]) == ("Failed", "Error")
    assert failed["containerStatuses"][0]["state"]["terminated"]["startedAt"] == NOW


def test_crash_loop() -> None:
    """A container that waits for its restart says how long, keeps its last state, and counts the restart when it runs again."""
    waiting = {**pod(), "status": statuses.exited(running(pod()), now=LATER, exit_code=1, seconds=10, names=["c"])}
    found = waiting["status"]["containerStatuses"][0]
    assert found["state"]["waiting"] == {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting failed container=c pod=p_default(u)"}
    assert found["lastState"]["terminated"]["exitCode"] == 1
    assert conditions(waiting)["Ready"][0] == "False"
    again = running(waiting, again={"c": found})["status"]["containerStatuses"][0]
    assert (again["restartCount"], again["lastState"]) == (1, found["lastState"])


def test_only_some_containers_run_again() -> None:
    """A container that has ended for good stays so while another is restarted."""
    two = pod({"name": "a", "image": "i"}, {"name": "b", "image": "i"})
    waiting = {**two, "status": statuses.exited(running(two), now=LATER, exit_code=1, seconds=10, names=["b"])}
    states = {each["name"]: each for each in waiting["status"]["containerStatuses"]}
    again = running(waiting, again=states)["status"]["containerStatuses"]
    assert [next(iter(each["state"])) for each in again] == ["terminated", "running"]


def test_init_containers_one_by_one() -> None:
    """While an init container runs the pod is Pending and not Initialized; sidecars before it run on."""
    spec: Tree = {
        "initContainers": [{"name": "s", "image": "i", "restartPolicy": "Always"}, {"name": "x", "image": "i"}, {"name": "y", "image": "i"}]
    }
    status = statuses.initializing(pod(**spec), now=NOW, pod_ip="10.128.0.1", host_ip="10.0.0.1", index=1)
    assert status["phase"] == "Pending"
    assert [next(iter(each["state"])) for each in status["initContainerStatuses"]] == ["running", "running", "waiting"]
    initialized = next(each for each in status["conditions"] if each["type"] == "Initialized")
    assert (initialized["reason"], initialized["message"]) == ("ContainersNotInitialized", "containers with incomplete status: [x y]")


def test_resources_in_use() -> None:
    """A running container shows what it runs with; a resize takes effect without a restart."""
    before = running(asks("1"))
    assert before["status"]["containerStatuses"][0]["allocatedResources"] == {"cpu": "1"}
    after = {**asks("2"), "status": before["status"]}
    found = statuses.resized(after)["containerStatuses"][0]
    assert (found["resources"], found["restartCount"]) == ({"requests": {"cpu": "2"}}, 0)
