"""Pod statuses as a kubelet reports them: pure functions from a pod and a moment to a new status tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery.memo import IdentityMemo, by_identity

KILLED = 137
"""Exit code of a container that was killed."""


@by_identity()
def _images(containers: list[Tree]) -> list[tuple[str, str, str]]:
    """Return (name, image, imageID) of each container. Nothing is pulled or started, so images and containers have no ids, as with other simulated kubelets."""
    return [_image(container) for container in containers]


def _image(container: Tree) -> tuple[str, str, str]:
    return container["name"], container.get("image", ""), ""


def conditions(old: list[Tree] | None, now: str, generation: int | None, **wanted: tuple[str, str, str]) -> list[Tree]:
    """Return the conditions with some set to (status, reason, message); a transition time moves only with the status. Others stay as they are.

    Pods that went the same way in the same seconds get the very same list.
    """
    if old and len(old) > len(wanted):
        return _conditions(old, now, generation, wanted)
    key = (id(old), now, generation, *wanted.items())
    known = _CONDITIONS.get(key)
    if known is None:
        if len(_CONDITIONS) >= SHARED:
            _CONDITIONS.clear()
        known = _CONDITIONS[key] = (old, _conditions(old, now, generation, wanted))
    return known[1]


SHARED = 1024
"""How many parts of statuses are kept for other pods to share."""
_CONDITIONS: dict[tuple[Any, ...], tuple[list[Tree] | None, list[Tree]]] = {}
"""What they were made from, and the conditions; the former is held so that its identity stays its own."""


def _conditions(old: list[Tree] | None, now: str, generation: int | None, wanted: Mapping[str, tuple[str, str, str]]) -> list[Tree]:
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
        condition: Tree = {
            "type": type_,
            "status": status,
            "lastProbeTime": None,
            "lastTransitionTime": now if moved or current is None else current["lastTransitionTime"],
        }
        if reason:
            condition["reason"] = reason
        if message:
            condition["message"] = message
        if generation is not None:
            condition["observedGeneration"] = generation
        found.append(condition)
    return found


def closed_gate(pod: Tree) -> str:
    """Return what keeps a pod with ready containers from being ready: a readiness gate that is not True, or ""."""
    before = {condition["type"]: condition["status"] for condition in (pod.get("status") or {}).get("conditions") or ()}
    for gate in pod["spec"].get("readinessGates") or ():
        name = gate["conditionType"]
        if name not in before:
            return f'corresponding condition of pod readiness gate "{name}" does not exist.'
        if before[name] != "True":
            return f'the status of pod readiness gate "{name}" is not "True", but {before[name]}'
    return ""


def running(pod: Tree, *, now: str, pod_ip: str, host_ip: str, ready: bool, again: Mapping[str, Tree] | None = None) -> Tree:
    """Return the status of a pod whose containers run. `again` has the statuses of containers that run on or run again; those in it that wait are started anew."""
    spec, old = pod["spec"], pod.get("status") or {}
    generation = pod["metadata"].get("generation")
    status: Tree = {**old, "phase": "Running"}
    if generation is not None:
        status["observedGeneration"] = generation
    # A held pod gives no reason, as the recorded control plane's kubelets gave none
    flag = ("True", "", "") if ready else ("False", "", "")
    closed = closed_gate(pod) if ready else ""
    whole = ("False", "ReadinessGatesNotReady", closed) if closed else flag
    status["conditions"] = conditions(
        old.get("conditions"), now, generation, Initialized=("True", "", ""), Ready=whole, ContainersReady=flag, PodScheduled=("True", "", "")
    )
    status |= {
        "hostIP": host_ip,
        "hostIPs": _host_ips(host_ip),
        "podIP": pod_ip,
        "podIPs": [{"ip": pod_ip}],
        "startTime": old.get("startTime") or now,
    }
    status["containerStatuses"] = _all_started(spec["containers"], now, ready, again) if again else _fresh(spec["containers"], now, ready)
    if spec.get("initContainers"):
        before = {each["name"]: each for each in old.get("initContainerStatuses") or ()}
        status["initContainerStatuses"] = [
            _init_status(pod, container, now, ready=ready, before=before.get(container["name"])) for container in spec["initContainers"]
        ]
    return status


@lru_cache(maxsize=SHARED)
def _host_ips(address: str) -> list[Tree]:
    return [{"ip": address}]


_FRESH: IdentityMemo[dict[tuple[str, bool], list[Tree]]] = IdentityMemo(SHARED)
"""The statuses of containers started for the first time, by second and readiness: the pods of one template share them."""


def _fresh(containers: list[Tree], now: str, ready: bool) -> list[Tree]:
    found = _FRESH.get(containers)
    if found is None or len(found) >= SHARED:
        found = _FRESH.put(containers, {})
    shared = found.get((now, ready))
    if shared is None:
        shared = found[now, ready] = _all_started(containers, now, ready, {})
    return shared


def _all_started(containers: list[Tree], now: str, ready: bool, again: Mapping[str, Tree]) -> list[Tree]:
    images = _images(containers)
    return [_started(container, *image, now, ready=ready, before=again.get(image[0])) for container, image in zip(containers, images, strict=True)]


def _started(container: Tree, name: str, image: str, digest: str, now: str, *, ready: bool, before: Tree | None) -> Tree:
    """Return the status of a container that runs: anew, on, or again after an exit."""
    state = (before or {}).get("state") or {}
    if before is not None and "terminated" in state:
        # It has ended for good
        return before
    if before is not None and "running" in state:
        return {**before, "ready": ready, "started": True}
    restarts = before["restartCount"] + 1 if before is not None and before.get("lastState") else (before or {}).get("restartCount", 0)
    status: Tree = {
        "name": name,
        "image": image,
        "imageID": digest,
        "ready": ready,
        "started": True,
        "restartCount": restarts,
        "state": {"running": {"startedAt": now}},
        "lastState": (before or {}).get("lastState") or {},
    }
    return _with_resources(status, container)


def _with_resources(status: Tree, container: Tree) -> Tree:
    """Return a container's status with the resources that it runs with."""
    resources = container.get("resources")
    if not resources:
        return status
    status = {**status, "resources": resources}
    if resources.get("requests"):
        status["allocatedResources"] = resources["requests"]
    return status


def resized(pod: Tree) -> Tree:
    """Return the status of a running pod whose containers got other resources: they take effect at once, without a restart."""
    containers = {container["name"]: container for container in pod["spec"]["containers"]}
    status = pod["status"]
    return {**status, "containerStatuses": [_with_resources(each, containers[each["name"]]) for each in status["containerStatuses"]]}


def _init_status(pod: Tree, container: Tree, now: str, *, ready: bool, before: Tree | None = None) -> Tree:
    """Return the status of an init container once the pod runs: a sidecar runs on, any other has completed."""
    if before is not None and ("terminated" in (before.get("state") or {}) or "running" in (before.get("state") or {})):
        return {**before, "ready": ready if container.get("restartPolicy") == "Always" else before["ready"]}
    name, image, digest = _image(container)
    sidecar = container.get("restartPolicy") == "Always"
    ended = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}}
    return {
        "name": name,
        "image": image,
        "imageID": digest,
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
    # One that is taken down because it is deleted gives no reason, as the recorded control plane's kubelets gave none
    done = "PodCompleted" if phase == "Succeeded" else "" if "deletionTimestamp" in pod["metadata"] else "PodFailed"
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
        status["containerStatuses"] = _all_ended(old["containerStatuses"], now, exit_code)
    if old.get("initContainerStatuses"):
        # Sidecars are stopped after the others, and do not count
        status["initContainerStatuses"] = [
            ended(each, now, 0) if "running" in (each.get("state") or {}) else each for each in old["initContainerStatuses"]
        ]
    return status


_ENDED: IdentityMemo[dict[tuple[str, int], list[Tree]]] = IdentityMemo(SHARED)
"""The statuses of containers that ended, by second and exit code: pods that shared those of their running ones share these."""


def _all_ended(containers: list[Tree], now: str, exit_code: int) -> list[Tree]:
    found = _ENDED.get(containers)
    if found is None or len(found) >= SHARED:
        found = _ENDED.put(containers, {})
    shared = found.get((now, exit_code))
    if shared is None:
        shared = found[now, exit_code] = [ended(container, now, exit_code) for container in containers]
    return shared


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
    }
    if container.get("containerID"):
        end["containerID"] = container["containerID"]
    return {**container, "ready": False, "started": False, "state": {"terminated": end}}


def exited(pod: Tree, *, now: str, exit_code: int, seconds: int, names: Sequence[str]) -> Tree:
    """Return the status of a pod whose running containers exited, where those with `names` wait to be restarted in `seconds`."""
    old, meta = pod["status"], pod["metadata"]
    statuses: list[Tree] = []
    for container in old.get("containerStatuses") or ():
        gone = ended(container, now, exit_code)
        if container["name"] in names:
            text = f"back-off {seconds}s restarting failed container={container['name']} pod={meta['name']}_{meta['namespace']}({meta['uid']})"
            gone = {**gone, "state": {"waiting": {"reason": "CrashLoopBackOff", "message": text}}, "lastState": gone["state"]}
        statuses.append(gone)
    flag = ("False", "ContainersNotReady", f"containers with unready status: [{' '.join(each['name'] for each in statuses)}]")
    changed = conditions(old.get("conditions"), now, meta.get("generation"), Ready=flag, ContainersReady=flag)
    return {**old, "conditions": changed, "containerStatuses": statuses}


# ----------------------------------------------------------------------------------------------- before it runs


def creating(pod: Tree, *, now: str, host_ip: str, reason: str = "ContainerCreating") -> Tree:
    """Return the status of a pod that the kubelet has taken and whose containers are not started."""
    spec, old = pod["spec"], pod.get("status") or {}
    status: Tree = {**old, "phase": "Pending", "hostIP": host_ip, "hostIPs": [{"ip": host_ip}], "startTime": old.get("startTime") or now}
    status["containerStatuses"] = [_waiting(*image, reason) for image in _images(spec["containers"])]
    if spec.get("initContainers"):
        status["initContainerStatuses"] = [_waiting(*image, "PodInitializing") for image in _images(spec["initContainers"])]
    return status


def _waiting(name: str, image: str, digest: str, reason: str) -> Tree:
    return {
        "name": name,
        "image": image,
        "imageID": "",
        "ready": False,
        "started": False,
        "restartCount": 0,
        "state": {"waiting": {"reason": reason}},
        "lastState": {},
    }


def initializing(pod: Tree, *, now: str, pod_ip: str, host_ip: str, index: int) -> Tree:
    """Return the status of a pod whose init container `index` runs; those before it have completed, sidecars among them run on."""
    spec, meta = pod["spec"], pod["metadata"]
    status = creating(pod, now=now, host_ip=host_ip, reason="PodInitializing")
    before = {each["name"]: each for each in (pod.get("status") or {}).get("initContainerStatuses") or ()}
    listed: list[Tree] = []
    for position, container in enumerate(spec["initContainers"]):
        known = before.get(container["name"])
        if position < index:
            listed.append(_init_status(pod, container, now, ready=True, before=known))
        elif position == index:
            name, image, digest = _image(container)
            again = known is not None and bool(known.get("lastState"))
            restarts = (known["restartCount"] + 1 if again else known["restartCount"]) if known is not None else 0
            listed.append(
                {
                    "name": name,
                    "image": image,
                    "imageID": digest,
                    "ready": False,
                    "started": False,
                    "restartCount": restarts,
                    "state": {"running": {"startedAt": now}},
                    "lastState": known["lastState"] if known is not None and again else {},
                }
            )
        else:
            listed.append(_waiting(*_image(container), "PodInitializing"))
    status["initContainerStatuses"] = listed
    status |= {"podIP": pod_ip, "podIPs": [{"ip": pod_ip}]}
    incomplete = " ".join(each["name"] for each in spec["initContainers"][index:])
    names = " ".join(name for name, _, _ in _images(spec["containers"]))
    flag = ("False", "ContainersNotReady", f"containers with unready status: [{names}]")
    status["conditions"] = conditions(
        status.get("conditions"),
        now,
        meta.get("generation"),
        Initialized=("False", "ContainersNotInitialized", f"containers with incomplete status: [{incomplete}]"),
        Ready=flag,
        ContainersReady=flag,
        PodScheduled=("True", "", ""),
    )
    return status


def init_failed(pod: Tree, *, now: str, exit_code: int, index: int, seconds: int | None) -> Tree:
    """Return the status after init container `index` failed: it waits `seconds` for its restart, or (None) the pod has failed."""
    old, meta = pod["status"], pod["metadata"]
    listed = list(old["initContainerStatuses"])
    gone = ended(listed[index], now, exit_code)
    if seconds is None:
        listed[index] = gone
        return {**old, "phase": "Failed", "initContainerStatuses": listed}
    text = f"back-off {seconds}s restarting failed container={gone['name']} pod={meta['name']}_{meta['namespace']}({meta['uid']})"
    listed[index] = {**gone, "state": {"waiting": {"reason": "CrashLoopBackOff", "message": text}}, "lastState": gone["state"]}
    return {**old, "initContainerStatuses": listed}


def rejected(pod: Tree, *, now: str, reason: str, message: str) -> Tree:
    """Return the status of a pod that the kubelet did not admit."""
    return {**(pod.get("status") or {}), "phase": "Failed", "reason": reason, "message": f"Pod was rejected: {message}", "startTime": now}
