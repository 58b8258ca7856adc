"""The kubelet's loop: one reconcile looks at a bound pod and takes the next step of its life.

A status written from outside is final: the kubelet makes each of its transitions once and never puts back what somebody else wrote. What it remembers
(when it first saw a pod, when it started its containers) only delays steps; after a restart it takes them anew.
"""

from __future__ import annotations

from typing import Any

from kubemini.api.resources import NODES, PODS
from kubemini.api.trees import Tree
from kubemini.controllers.kubelet import statuses
from kubemini.controllers.kubelet.programs import FOREVER, BadAnnotation, Program, attempt_of, program_of
from kubemini.machinery.errors import NotFound
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.env import from_stamp
from kubemini.runtime.settings import Settings

TERMINAL = ("Succeeded", "Failed")
LOST = "kubemini.dev/lost"
"""Annotation on a node whose kubelet has stopped: nothing on it moves any more, and its lease expires."""
RESTART_BASE, RESTART_LIMIT = 10, 300
"""Seconds of the container restart back-off: doubling from the first to the second."""


class KubeletController(Controller):
    """All kubelets of the cluster."""

    name = "kubelet"
    component = "kubelet"

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._settings = settings
        self._latency = settings.start_latency
        self._started: dict[str, float] = {}
        """uid → when this kubelet started the containers, or will exit them."""
        self._warned: dict[str, None] = {}
        self._addresses = 0

    def setup(self, ctx: Context) -> None:
        """Follow pods and nodes."""
        self._ctx = ctx
        self._pods = ctx.informer(PODS)
        self._nodes = ctx.informer(NODES)
        self._pods.add_index("node", _node_of)
        self._pods.on_change(self._on_pod)
        self._nodes.on_change(self._on_node)

    # ------------------------------------------------------------------ events

    def _on_pod(self, old: Tree | None, new: Tree | None) -> None:
        if new is None:
            if old is not None:
                self._started.pop(old["metadata"]["uid"], None)
            return
        if not new["spec"].get("nodeName"):
            return
        meta = new["metadata"]
        key = f"{meta['namespace']}/{meta['name']}"
        if old is None or not old["spec"].get("nodeName") or old["metadata"]["uid"] != meta["uid"]:
            if "deletionTimestamp" in meta or (new.get("status") or {}).get("phase") in TERMINAL:
                self.queue.add(key)
            else:
                self.queue.add_after(key, self._start_delay(new))
        elif "deletionTimestamp" in meta:
            self.queue.add(key)
        elif old["metadata"].get("annotations") is not meta.get("annotations") and old["metadata"].get("annotations") != meta.get("annotations"):
            self.queue.add(key)
        elif (old.get("status") or {}).get("phase") == "Pending" and new["spec"].get("readinessGates"):
            self.queue.add(key)

    def _start_delay(self, pod: Tree) -> float:
        program = self._program(pod)
        return program.start_after if program.start_after is not None else self._latency

    def _on_node(self, old: Tree | None, new: Tree | None) -> None:
        if new is None or (old is not None and _lost(old) == _lost(new)):
            return
        for pod in self._pods.by_index("node", new["metadata"]["name"]):
            meta = pod["metadata"]
            self.queue.add(f"{meta['namespace']}/{meta['name']}")

    def _program(self, pod: Tree) -> Program:
        if self._settings.program is not None:
            given: Any = self._settings.program(pod)
            if given is not None:
                return given if isinstance(given, Program) else Program(**given)
        try:
            return program_of(pod, self._settings.pods)
        except BadAnnotation as bad:
            uid = pod["metadata"]["uid"]
            if uid not in self._warned:
                self._warned[uid] = None
                self._ctx.recorder.event(pod, "Warning", "InvalidAnnotation", str(bad))
            return FOREVER

    # ------------------------------------------------------------------ steps

    async def reconcile(self, key: str) -> float | None:
        """Take the next step of one pod's life."""
        pod = self._pods.get_key(key)
        if pod is None or not (node_name := pod["spec"].get("nodeName")):
            return None
        node = self._nodes.get(node_name)
        if node is None or _lost(node):
            return None
        if "deletionTimestamp" in pod["metadata"]:
            return await self._take_down(pod)
        phase = (pod.get("status") or {}).get("phase")
        if phase in TERMINAL:
            return None
        program = self._program(pod)
        if phase != "Running":
            return await self._start(pod, node, program)
        return await self._run(pod, program)

    async def _start(self, pod: Tree, node: Tree, program: Program) -> float | None:
        if program.hold == "pending":
            return None
        ready = program.hold != "running" and program.ready_after <= 0
        now = self._ctx.env.stamp()
        status = statuses.running(pod, now=now, pod_ip=self._address(pod), host_ip=_host_ip(node), ready=ready)
        await self._write(pod, status)
        self._started[pod["metadata"]["uid"]] = self._ctx.env.now()
        return _soonest(program.ready_after if program.hold != "running" and not ready else None, program.run_for, pod["spec"].get("activeDeadlineSeconds"))

    async def _run(self, pod: Tree, program: Program) -> float | None:
        uid = pod["metadata"]["uid"]
        now = self._ctx.env.now()
        began = self._started.get(uid)
        if began is None:
            # After a restart, or when somebody else started it: the clock of its program starts here
            began = self._started[uid] = now
        age = now - began
        deadline = pod["spec"].get("activeDeadlineSeconds")
        if deadline is not None and now - from_stamp(pod["status"].get("startTime") or self._ctx.env.stamp()) >= deadline:
            text = "Pod was active on the node longer than the specified deadline"
            await self._write(pod, statuses.terminated(pod, now=self._ctx.env.stamp(), exit_code=statuses.KILLED, reason="DeadlineExceeded", message=text))
            return None
        containers = pod["status"].get("containerStatuses") or ()
        waiting = any("waiting" in (container.get("state") or {}) for container in containers)
        if waiting:
            return await self._restart_containers(pod, program, containers)
        if program.run_for is not None and age >= program.run_for - 1e-6:
            return await self._exit(pod, program)
        if program.hold != "running" and age >= program.ready_after - 1e-6 and 0 < program.ready_after and not _ready(pod):
            await self._write(pod, self._running_again(pod, ready=True))
        return _soonest(
            program.ready_after - age if age < program.ready_after else None,
            program.run_for - age if program.run_for is not None else None,
            deadline - age if deadline is not None else None,
        )

    def _running_again(self, pod: Tree, *, ready: bool, restarts: int = -1, last: Tree | None = None) -> Tree:
        status = pod["status"]
        containers = status.get("containerStatuses") or [{}]
        if restarts < 0:
            restarts, last = containers[0].get("restartCount", 0), containers[0].get("lastState")
        host = status.get("hostIP", "")
        return statuses.running(pod, now=self._ctx.env.stamp(), pod_ip=status.get("podIP", ""), host_ip=host, ready=ready, restarts=restarts, last=last)

    async def _exit(self, pod: Tree, program: Program) -> float | None:
        containers = pod["status"].get("containerStatuses") or ()
        restarts = containers[0].get("restartCount", 0) if containers else 0
        code = program.code_of(attempt_of(pod, restarts))
        policy = pod["spec"].get("restartPolicy", "Always")
        now = self._ctx.env.stamp()
        self._started.pop(pod["metadata"]["uid"], None)
        if policy == "Never" or (policy == "OnFailure" and code == 0):
            await self._write(pod, statuses.terminated(pod, now=now, exit_code=code))
            return None
        seconds = min(RESTART_BASE << min(restarts, 10), RESTART_LIMIT)
        await self._write(pod, statuses.backing_off(pod, now=now, exit_code=code, seconds=seconds))
        self._started[pod["metadata"]["uid"]] = self._ctx.env.now()
        return float(seconds)

    async def _restart_containers(self, pod: Tree, program: Program, containers: Any) -> float | None:
        restarts = containers[0].get("restartCount", 0) + 1
        seconds = min(RESTART_BASE << min(restarts - 1, 10), RESTART_LIMIT)
        left = self._started[pod["metadata"]["uid"]] + seconds - self._ctx.env.now()
        if left > 1e-6:
            return left
        ready = program.hold != "running" and program.ready_after <= 0
        await self._write(pod, self._running_again(pod, ready=ready, restarts=restarts, last=containers[0].get("lastState")))
        self._started[pod["metadata"]["uid"]] = self._ctx.env.now()
        return _soonest(program.ready_after or None, program.run_for)

    async def _take_down(self, pod: Tree) -> float | None:
        meta = pod["metadata"]
        status = pod.get("status") or {}
        if status.get("phase") not in TERMINAL and status.get("containerStatuses"):
            code = self._settings.kill_exit_code
            pod = await self._write(pod, statuses.terminated(pod, now=self._ctx.env.stamp(), exit_code=code)) or pod
        try:
            await self._ctx.client.delete(PODS, meta["name"], namespace=meta["namespace"], grace=0, uid=meta["uid"])
        except NotFound:
            pass
        return None

    async def _write(self, pod: Tree, status: Tree) -> Tree | None:
        try:
            return await self._ctx.client.update_status(PODS, {**pod, "status": status})
        except NotFound:
            return None

    def _address(self, pod: Tree) -> str:
        if pod["spec"].get("hostNetwork"):
            return (pod.get("status") or {}).get("hostIP") or "10.0.0.1"
        known = (pod.get("status") or {}).get("podIP")
        if known:
            return str(known)
        if not self._addresses:
            # After a restart: above every address in use
            used = [(other.get("status") or {}).get("podIP", "") for other in self._pods.list()]
            self._addresses = max((_number(ip) for ip in used if ip.startswith("10.")), default=0)
        self._addresses += 1
        return _ip(self._addresses)


_BASE = (10 << 24) + (128 << 16)
"""10.128.0.0/9 holds the pods."""


def _ip(number: int) -> str:
    value = _BASE + number % (1 << 23)
    return f"{value >> 24}.{value >> 16 & 255}.{value >> 8 & 255}.{value & 255}"


def _number(ip: str) -> int:
    a, b, c, d = (int(part) for part in ip.split("."))
    return max((a << 24) + (b << 16) + (c << 8) + d - _BASE, 0)


def _node_of(pod: Tree) -> tuple[str, ...]:
    name = pod["spec"].get("nodeName")
    return (name,) if name else ()


def _lost(node: Tree) -> bool:
    return LOST in (node["metadata"].get("annotations") or {})


def _host_ip(node: Tree) -> str:
    for address in (node.get("status") or {}).get("addresses") or ():
        if address["type"] == "InternalIP":
            found: str = address["address"]
            return found
    return "10.0.0.1"


def _ready(pod: Tree) -> bool:
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in pod["status"].get("conditions") or ())


def _soonest(*delays: float | None) -> float | None:
    given = [max(delay, 0.0) for delay in delays if delay is not None]
    return min(given) if given else None
