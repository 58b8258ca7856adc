"""How pods print: readiness, one word for their state, restarts."""

from __future__ import annotations

from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery.human import human_duration
from kubemini.runtime.env import from_stamp
from kubemini.server.kinds.tables.common import AGE, NAME, NONE, age, column, containers, get, name, pairs, wide
from kubemini.server.strategy import Table

_TERMINAL = ("Succeeded", "Failed")
_SETTLED = ("Completed", "Error")


def pod_row(pod: Tree, now: float) -> list[Any]:
    """Return the cells of a pod."""
    spec, status = pod["spec"], pod.get("status") or {}
    sidecars = {each.get("name"): each for each in spec.get("initContainers") or () if each.get("restartPolicy") == "Always"}
    total = len(spec.get("containers") or ()) + len(sidecars)
    ready, reason, restarts, last = _state(pod, sidecars)
    shown = f"{restarts}"
    if restarts and last is not None:
        shown = f"{restarts} ({human_duration(now - from_stamp(last))} ago)"
    addresses = status.get("podIPs") or ()
    ip = addresses[0].get("ip") if addresses else status.get("podIP")
    gates = spec.get("readinessGates") or ()
    met = {each.get("type") for each in status.get("conditions") or () if each.get("status") == "True"}
    ready_gates = f"{sum(each.get('conditionType') in met for each in gates)}/{len(gates)}" if gates else NONE
    return [
        name(pod),
        f"{ready}/{total}",
        reason,
        shown,
        age(pod, now),
        ip or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        ready_gates,
    ]


def _state(pod: Tree, sidecars: dict[Any, Tree]) -> tuple[int, str, int, str | None]:
    """Return how many containers are ready, the word for the pod's state, its restarts, and when the last one was."""
    spec, status = pod["spec"], pod.get("status") or {}
    phase = status.get("phase", "")
    reason = status.get("reason") or phase
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            reason = "SchedulingGated"
    ready, restarts = 0, 0
    last: str | None = None
    sidecar_restarts = 0
    last_sidecar: str | None = None
    initializing = False
    for index, each in enumerate(status.get("initContainerStatuses") or ()):
        restarts += each.get("restartCount", 0)
        last = _latest(last, each)
        is_sidecar = each.get("name") in sidecars
        if is_sidecar:
            sidecar_restarts += each.get("restartCount", 0)
            last_sidecar = _latest(last_sidecar, each)
        word = _init_word(each, index, len(spec.get("initContainers") or ()), is_sidecar)
        if word == "":
            if is_sidecar and each.get("ready"):
                ready += 1
            continue
        reason, initializing = word, True
        break
    if not initializing or _is_true(status, "Initialized"):
        reason, ready, more, last = _running(status, reason, ready, last_sidecar)
        restarts = sidecar_restarts + more
    if "deletionTimestamp" in pod["metadata"]:
        if status.get("reason") == "NodeLost":
            reason = "Unknown"
        elif phase not in _TERMINAL:
            reason = "Terminating"
    return ready, reason, restarts, last


def _is_true(status: Tree, kind: str) -> bool:
    return any(each.get("type") == kind and each.get("status") == "True" for each in status.get("conditions") or ())


def _latest(last: str | None, container: Tree) -> str | None:
    finished = get(container, "lastState", "terminated", "finishedAt", default=None)
    return finished if finished and (last is None or from_stamp(finished) > from_stamp(last)) else last


def _init_word(status: Tree, index: int, total: int, sidecar: bool) -> str:
    """Return the word for the first init container that is not finished; "" for one that holds nobody up."""
    state = status.get("state") or {}
    terminated, waiting = state.get("terminated"), state.get("waiting")
    if terminated is not None and terminated.get("exitCode", 0) == 0:
        return ""
    if sidecar and status.get("started"):
        return ""
    if terminated is not None:
        if terminated.get("reason"):
            return f"Init:{terminated['reason']}"
        if terminated.get("signal"):
            return f"Init:Signal:{terminated['signal']}"
        return f"Init:ExitCode:{terminated.get('exitCode', 0)}"
    if waiting is not None and waiting.get("reason") and waiting["reason"] != "PodInitializing":
        return f"Init:{waiting['reason']}"
    return f"Init:{index}/{total}"


def _running(status: Tree, reason: str, ready: int, last: str | None) -> tuple[str, int, int, str | None]:
    """Look at the containers proper, last one first."""
    restarts = 0
    has_running = False
    for each in reversed(status.get("containerStatuses") or ()):
        restarts += each.get("restartCount", 0)
        last = _latest(last, each)
        state = each.get("state") or {}
        terminated, waiting = state.get("terminated"), state.get("waiting")
        if waiting is not None and waiting.get("reason"):
            reason = waiting["reason"]
        elif terminated is not None:
            if terminated.get("reason"):
                reason = terminated["reason"]
            elif terminated.get("signal"):
                reason = f"Signal:{terminated['signal']}"
            else:
                reason = f"ExitCode:{terminated.get('exitCode', 0)}"
        elif each.get("ready") and state.get("running") is not None:
            has_running = True
            ready += 1
    if reason == "Completed" and has_running:
        reason = "Running" if _is_true(status, "Ready") else "NotReady"
    return reason, ready, restarts, last


def _conditions(pod: Tree) -> list[Tree]:
    """Mark the rows of finished pods."""
    phase = (pod.get("status") or {}).get("phase")
    texts = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}
    return [{"type": "Completed", "status": "True", "reason": phase, "message": texts[phase]}] if phase in texts else []


POD = Table(
    (
        NAME,
        column("Ready", text="The aggregate readiness state of this pod for accepting traffic."),
        column("Status", text="The aggregate status of the containers in this pod."),
        column(
            "Restarts",
            text="The number of times the containers in this pod have been restarted and when the last container in this pod has restarted.",
        ),
        AGE,
        wide("IP"),
        wide("Node"),
        wide("Nominated Node"),
        wide("Readiness Gates"),
    ),
    pod_row,
    _conditions,
)


def _template_row(obj: Tree, _now: float) -> list[Any]:
    template = obj.get("template") or {}
    return [name(obj), *containers(template.get("spec") or {}), pairs((template.get("metadata") or {}).get("labels"))]


POD_TEMPLATE = Table((NAME, column("Containers"), column("Images"), column("Pod Labels")), _template_row)
