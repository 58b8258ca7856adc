"""Pod statuses as a kubelet reports them: pure functions from a pod and a moment to a new status tree."""

from __future__ import annotations

from hashlib import sha256

from kubemini.api.trees import Tree
from kubemini.machinery.memo import by_identity

KILLED = 137
"""Exit code of a container that was killed."""


@by_identity()
def _images(containers: list[Tree]) -> list[tuple[str, str, str]]:
    """Return (name, image, imageID) of each container."""
    found = []
    for container in containers:
        image = container.get("image", "")
        name, _, _ = image.partition("@")
        found.append((container["name"], image, f"{name.rsplit(':', 1)[0]}@sha256:{sha256(image.encode()).hexdigest()}"))
    return found


def _container_id(pod: Tree, name: str, restarts: int) -> str:
    uid = pod["metadata"]["uid"]
    return f"kubemini://{sha256(f'{uid}/{name}/{restarts}'.encode()).hexdigest()}"


def conditions(old: list[Tree] | None, now: str, generation: int | None, **wanted: tuple[str, str, str]) -> list[Tree]:
    """Return the conditions with some set to (status, reason, message); a transition time moves only with the status. Others stay as they are."""
    before = {condition["type"]: condition for condition in old or ()}
    order = [*wanted, *(type_ for type_ in before if type_ not in wanted)]
    found = []
    for type_ in order:
        current = before.get(type_)
        if type_ not in wanted:
            found.append(current if current is not None else {})
            continue
        status, reason, message = wanted[type_]
        moved = current is None or current.get("status") != status
        condition: Tree = {"type": type_, "status": status, "lastProbeTime": None, "lastTransitionTime": now if moved or current is None else current["lastTransitionTime"]}
        if reason:
            condition["reason"] = reason
        if message:
            condition["message"] = message
        if generation is not None:
            condition["observedGeneration"] = generation
        found.append(condition)
    return found


def running(pod: Tree, *, now: str, pod_ip: str, host_ip: str, ready: bool, restarts: int = 0, last: Tree | None = None) -> Tree:
    """Return the status of a pod whose containers run; `restarts` counts for each of them, `last` is their lastState."""
    spec, old = pod["spec"], pod.get("status") or {}
    generation = pod["metadata"].get("generation")
    state = {"running": {"startedAt": now}}
    status: Tree = {**old, "phase": "Running"}
    if generation is not None:
        status["observedGeneration"] = generation
    # A held pod gives no reason, as the recorded control plane's kubelets gave none
    flag = ("True", "", "") if ready else ("False", "", "")
    gates = spec.get("readinessGates") or ()
    before = {condition["type"]: condition["status"] for condition in old.get("conditions") or ()}
    closed = [gate["conditionType"] for gate in gates if before.get(gate["conditionType"]) != "True"]
    whole = flag if not (ready and closed) else ("False", "ReadinessGatesNotReady", f'corresponding condition of pod readiness gate "{closed[0]}" does not exist.')
    status["conditions"] = conditions(
        old.get("conditions"), now, generation, Initialized=("True", "", ""), Ready=whole, ContainersReady=flag, PodScheduled=("True", "", "")
    )
    status |= {"hostIP": host_ip, "hostIPs": [{"ip": host_ip}], "podIP": pod_ip, "podIPs": [{"ip": pod_ip}], "startTime": old.get("startTime") or now}
    status["containerStatuses"] = [
        {
            "name": name,
            "image": image,
            "imageID": digest,
            "containerID": _container_id(pod, name, restarts),
            "ready": ready,
            "started": True,
            "restartCount": restarts,
            "state": state,
            "lastState": last or {},
        }
        for name, image, digest in _images(spec["containers"])
    ]
    if spec.get("initContainers"):
        status["initContainerStatuses"] = [_init_status(pod, container, now, ready=ready) for container in spec["initContainers"]]
    return status


def _init_status(pod: Tree, container: Tree, now: str, *, ready: bool) -> Tree:
    (name, image, digest), = _images([container])
    identity = _container_id(pod, name, 0)
    sidecar = container.get("restartPolicy") == "Always"
    ended = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now, "containerID": identity}}
    return {
        "name": name,
        "image": image,
        "imageID": digest,
        "containerID": identity,
        "ready": ready if sidecar else True,
        "started": sidecar,
        "restartCount": 0,
        "state": {"running": {"startedAt": now}} if sidecar else ended,
        "lastState": {},
    }


def terminated(pod: Tree, *, now: str, exit_code: int, reason: str = "", message: str = "") -> Tree:
    """Return the status of a pod all of whose containers ended with `exit_code`; `reason` and `message` are the pod's own (``DeadlineExceeded``)."""
    old = pod.get("status") or {}
    phase = "Failed" if exit_code or reason else "Succeeded"
    status: Tree = {**old, "phase": phase}
    if reason:
        status |= {"reason": reason, "message": message}
    generation = pod["metadata"].get("generation")
    done = "PodCompleted" if phase == "Succeeded" else "PodFailed"
    status["conditions"] = conditions(
        old.get("conditions"),
        now,
        generation,
        Initialized=("True", "PodCompleted" if phase == "Succeeded" else "", ""),
        Ready=("False", done, ""),
        ContainersReady=("False", done, ""),
        PodScheduled=("True", "", ""),
    )
    if old.get("containerStatuses"):
        status["containerStatuses"] = [ended(container, now, exit_code) for container in old["containerStatuses"]]
    return status


def ended(container: Tree, now: str, exit_code: int) -> Tree:
    """Return one containerStatus after its exit."""
    started = (container.get("state") or {}).get("running", {}).get("startedAt", now)
    if (container.get("state") or {}).get("terminated"):
        return container
    end = {
        "exitCode": exit_code,
        "reason": "Completed" if exit_code == 0 else "Error",
        "startedAt": started,
        "finishedAt": now,
        "containerID": container.get("containerID", ""),
    }
    return {**container, "ready": False, "started": False, "state": {"terminated": end}}


def backing_off(pod: Tree, *, now: str, exit_code: int, seconds: int) -> Tree:
    """Return the status of a pod whose containers exited and wait to be restarted."""
    old = pod["status"]
    meta = pod["metadata"]
    generation = meta.get("generation")
    names = " ".join(container["name"] for container in old.get("containerStatuses") or ())
    flag = ("False", "ContainersNotReady", f"containers with unready status: [{names}]")
    waiting = []
    for container in old.get("containerStatuses") or ():
        gone = ended(container, now, exit_code)
        text = f"back-off {seconds}s restarting failed container={container['name']} pod={meta['name']}_{meta['namespace']}({meta['uid']})"
        waiting.append({**gone, "state": {"waiting": {"reason": "CrashLoopBackOff", "message": text}}, "lastState": gone["state"]})
    changed = conditions(old.get("conditions"), now, generation, Ready=flag, ContainersReady=flag)
    return {**old, "conditions": changed, "containerStatuses": waiting}
