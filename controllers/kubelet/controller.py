"""The kubelet's loop: one reconcile looks at a bound pod and takes the next step of its life.

A status written from outside is final: the kubelet makes each of its transitions once and never puts back what somebody else wrote. What it remembers
(when it first saw a pod, when it started its containers) only delays steps; after a restart it takes them anew.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from kubemini.api.resources import NODES, PODS
from kubemini.api.trees import Tree
from kubemini.controllers.kubelet import statuses
from kubemini.controllers.kubelet.admission import bypassed, rejection, taken_before, unnameable
from kubemini.controllers.kubelet.programs import FOREVER, BadAnnotation, Program, attempt_of, program_of
from kubemini.controllers.kubelet.restarts import FORGIVEN_AFTER, delay, restarting
from kubemini.machinery.errors import Conflict, NotFound
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.env import from_stamp
from kubemini.runtime.settings import Settings

TERMINAL = ("Succeeded", "Failed")
LOST = "kubemini.dev/lost"
"""Annotation on a node whose kubelet has stopped: nothing on it moves any more, and its lease expires."""
SHOWN_AFTER = 1.0
"""A pod that takes longer to start than this, in seconds, is shown as being created meanwhile."""


class KubeletController(Controller):
    """All kubelets of the cluster."""

    name = "kubelet"
    component = "kubelet"

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._settings = settings
        self._latency = settings.start_latency
        self._started: dict[str, float] = {}
        """uid → when this kubelet started the containers."""
        self._taken: dict[str, float] = {}
        """uid → when this kubelet took the pod."""
        self._since: dict[str, float] = {}
        """uid → when the init container began, or a container began to wait for its restart."""
        self._levels: dict[str, int] = {}
        """uid → restarts that count for the back-off."""
        self._warned: dict[str, None] = {}
        self._addresses = 0

    def setup(self, ctx: Context) -> None:
        """Follow pods and nodes."""
        self._ctx = ctx
        self._pods = ctx.informer(PODS)
        self._nodes = ctx.informer(NODES)
        self._pods.add_index("node", _node_of, reads=("spec.nodeName",))
        self._pods.on_change(self._on_pod)
        self._nodes.on_change(self._on_node)

    # ------------------------------------------------------------------ events

    def _on_pod(self, old: Tree | None, new: Tree | None) -> None:
        if new is None:
            if old is not None:
                self._forget(old["metadata"]["uid"])
            return
        if not new["spec"].get("nodeName"):
            return
        meta = new["metadata"]
        key = f"{meta['namespace']}/{meta['name']}"
        if old is None or not old["spec"].get("nodeName") or old["metadata"]["uid"] != meta["uid"]:
            if "deletionTimestamp" in meta or (new.get("status") or {}).get("phase") in TERMINAL:
                self.queue.add(key)
            else:
                self._taken[meta["uid"]] = self._ctx.env.now()
                seconds = self._start_delay(new)
                if new["spec"].get("initContainers") or seconds > SHOWN_AFTER or bypassed(new):
                    # Its start takes long, or it may not be taken at all: it is looked at before
                    self.queue.add(key)
                self.queue.add_after(key, seconds)
        elif "deletionTimestamp" in meta or _asked(old, new):
            self.queue.add(key)

    def _forget(self, uid: str) -> None:
        for memory in (self._started, self._taken, self._levels, self._since):
            memory.pop(uid, None)
        self._warned.pop(uid, None)

    def _start_delay(self, pod: Tree) -> float:
        program = self._program(pod)
        return program.start_after if program.start_after is not None else self._latency

    def _on_node(self, old: Tree | None, new: Tree | None) -> None:
        if new is None or (old is not None and _lost(old) == _lost(new) and _measured(old) == _measured(new)):
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
            await self._take_down(pod)
            return None
        phase = (pod.get("status") or {}).get("phase")
        if phase in TERMINAL:
            return None
        over = self._deadline_left(pod)
        if over is not None and over <= 0:
            text = "Pod was active on the node longer than the specified deadline"
            await self._write(
                pod, statuses.terminated(pod, now=self._ctx.env.stamp(), exit_code=statuses.KILLED, reason="DeadlineExceeded", message=text)
            )
            return None
        program = self._program(pod)
        again = await self._run(pod, program) if phase == "Running" else await self._begin(pod, node, program)
        return _soonest(again, over)

    def _deadline_left(self, pod: Tree) -> float | None:
        deadline = pod["spec"].get("activeDeadlineSeconds")
        started = (pod.get("status") or {}).get("startTime")
        if deadline is None:
            return None
        # Exact where this kubelet saw the pod; from whole seconds after a restart
        since = self._taken.get(pod["metadata"]["uid"])
        if since is None:
            since = from_stamp(started) if started else self._ctx.env.now()
        return max(since + float(deadline) - self._ctx.env.now(), 0.0) if since + float(deadline) - self._ctx.env.now() > 1e-6 else 0.0

    # ------------------------------------------------------------------ before it runs

    async def _begin(self, pod: Tree, node: Tree, program: Program) -> float | None:
        """Take a pod to its running containers: admission, the wait for its start, init containers."""
        uid = pod["metadata"]["uid"]
        now = self._ctx.env.now()
        if bypassed(pod) and not (pod.get("status") or {}).get("startTime"):
            if not _measured(node):
                return None
            refused = rejection(pod, node, taken_before(pod, node, self._pods.by_index("node", pod["spec"]["nodeName"])))
            if refused is not None:
                self._ctx.recorder.event(pod, "Warning", *refused)
                await self._write(pod, statuses.rejected(pod, now=self._ctx.env.stamp(), reason=refused[0], message=refused[1]))
                return None
        wanted = program.start_after if program.start_after is not None else self._latency
        left = self._taken.setdefault(uid, now) + wanted - now
        nameless = unnameable(pod)
        if nameless:
            self._ctx.recorder.event(pod, "Warning", "FailedCreatePodSandBox", nameless)
        if nameless or program.hold == "pending" or left > SHOWN_AFTER:
            if not (pod.get("status") or {}).get("containerStatuses"):
                await self._write(pod, statuses.creating(pod, now=self._ctx.env.stamp(), host_ip=_host_ip(node)))
            return left if program.hold != "pending" and not nameless else None
        if left > 1e-6:
            return left
        if pod["spec"].get("initContainers") and not program.quick_start:
            return await self._initialize(pod, node, program)
        return await self._start(pod, node, program)

    async def _initialize(self, pod: Tree, node: Tree, program: Program) -> float | None:
        """Run the init containers, one after the other; a sidecar is started on the way."""
        spec, uid = pod["spec"], pod["metadata"]["uid"]
        known = {each["name"]: each for each in (pod.get("status") or {}).get("initContainerStatuses") or ()}
        now = self._ctx.env.now()
        for index, container in enumerate(spec["initContainers"]):
            state = (known.get(container["name"]) or {}).get("state") or {}
            if container.get("restartPolicy") == "Always" or "terminated" in state:
                continue
            seconds, code = program.init(index)
            if "running" not in state:
                waited = self._since.get(uid)
                left = (
                    waited + delay(self._level(uid, known[container["name"]])) - now
                    if waited is not None and "waiting" in state and known[container["name"]].get("lastState")
                    else 0.0
                )
                if left > 1e-6:
                    return left
                return await self._run_init(pod, node, index, seconds)
            began = self._since.setdefault(uid, now)
            if now - began < seconds - 1e-6:
                return began + seconds - now
            if code == 0:
                following = next((i for i, each in enumerate(spec["initContainers"]) if i > index and each.get("restartPolicy") != "Always"), None)
                if following is None:
                    return await self._start(self._completed(pod, index), node, program)
                return await self._run_init(self._completed(pod, index), node, following, program.init(following)[0])
            return await self._init_failed(pod, index, code)
        return await self._start(pod, node, program)

    def _completed(self, pod: Tree, index: int) -> Tree:
        """Return the pod as it is when init container `index` has just completed."""
        listed = list(pod["status"]["initContainerStatuses"])
        listed[index] = {**statuses.ended(listed[index], self._ctx.env.stamp(), 0), "ready": True}
        return {**pod, "status": {**pod["status"], "initContainerStatuses": listed}}

    async def _run_init(self, pod: Tree, node: Tree, index: int, seconds: float) -> float:
        status = statuses.initializing(pod, now=self._ctx.env.stamp(), pod_ip=self._address(pod), host_ip=_host_ip(node), index=index)
        await self._write(pod, status)
        self._since[pod["metadata"]["uid"]] = self._ctx.env.now()
        return seconds

    async def _init_failed(self, pod: Tree, index: int, code: int) -> float | None:
        uid, policy = pod["metadata"]["uid"], pod["spec"].get("restartPolicy", "Always")
        container = pod["status"]["initContainerStatuses"][index]
        now = self._ctx.env.stamp()
        if policy == "Never":
            await self._write(pod, statuses.init_failed(pod, now=now, exit_code=code, index=index, seconds=None))
            return None
        level = self._levels[uid] = self._level(uid, container) + 1 if uid in self._levels else container["restartCount"]
        await self._write(pod, statuses.init_failed(pod, now=now, exit_code=code, index=index, seconds=delay(level)))
        self._since[uid] = self._ctx.env.now()
        return float(delay(level))

    def _level(self, uid: str, container: Tree) -> int:
        """Return how many restarts count for the back-off; after a restart of the kubelet, all there were."""
        found = self._levels.get(uid)
        return found if found is not None else int(container.get("restartCount", 0))

    async def _start(self, pod: Tree, node: Tree, program: Program) -> float | None:
        ready = program.hold != "running" and program.ready_after <= 0
        now = self._ctx.env.stamp()
        uid = pod["metadata"]["uid"]
        await self._write(pod, statuses.running(pod, now=now, pod_ip=self._address(pod), host_ip=_host_ip(node), ready=ready))
        self._since.pop(uid, None)
        self._levels.pop(uid, None)
        if pod["spec"].get("activeDeadlineSeconds") is None:
            # Only a deadline counts from there
            self._taken.pop(uid, None)
        self._started[uid] = self._ctx.env.now()
        return _soonest(
            program.ready_after if program.hold != "running" and not ready else None, program.run_for, pod["spec"].get("activeDeadlineSeconds")
        )

    # ------------------------------------------------------------------ while it runs

    async def _run(self, pod: Tree, program: Program) -> float | None:
        uid = pod["metadata"]["uid"]
        now = self._ctx.env.now()
        began = self._started.get(uid)
        if began is None:
            # After a restart, or when somebody else started it: the clock of its program starts here
            began = self._started[uid] = now
        age = now - began
        containers = pod["status"].get("containerStatuses") or ()
        if any((container.get("state") or {}).get("waiting") and container.get("lastState") for container in containers):
            return await self._restart(pod, program, containers)
        if program.run_for is not None and age >= program.run_for - 1e-6:
            return await self._exit(pod, program, age)
        due = program.hold != "running" and age >= program.ready_after - 1e-6
        if due and program.ready_after > 0 and not _containers_ready(pod):
            await self._write(pod, self._running_again(pod, ready=True))
        elif pod["spec"].get("readinessGates") and _containers_ready(pod):
            await self._look_at_gates(pod)
        elif _resized(pod):
            await self._write(pod, statuses.resized(pod))
        return _soonest(
            program.ready_after - age if age < program.ready_after else None, program.run_for - age if program.run_for is not None else None
        )

    async def _look_at_gates(self, pod: Tree) -> None:
        """Let Ready follow the readiness gates of a pod whose containers are ready."""
        status, closed = pod["status"], statuses.closed_gate(pod)
        wanted = ("False", "ReadinessGatesNotReady", closed) if closed else ("True", "", "")
        ready = next((each for each in status.get("conditions") or () if each["type"] == "Ready"), None)
        if ready is not None and (ready["status"], ready.get("reason", ""), ready.get("message", "")) != wanted:
            changed = statuses.conditions(status["conditions"], self._ctx.env.stamp(), pod["metadata"].get("generation"), Ready=wanted)
            await self._write(pod, {**status, "conditions": changed})

    def _running_again(self, pod: Tree, *, ready: bool) -> Tree:
        status = pod["status"]
        again = {each["name"]: each for each in status.get("containerStatuses") or ()}
        host = status.get("hostIP", "")
        return statuses.running(pod, now=self._ctx.env.stamp(), pod_ip=status.get("podIP", ""), host_ip=host, ready=ready, again=again)

    async def _exit(self, pod: Tree, program: Program, age: float) -> float | None:
        """All running containers exit: those that run again are started at once, or after their back-off."""
        uid = pod["metadata"]["uid"]
        containers = pod["status"].get("containerStatuses") or ()
        restarts = max((each.get("restartCount", 0) for each in containers), default=0)
        code = program.code_of(attempt_of(pod, restarts))
        now = self._ctx.env.stamp()
        self._started.pop(uid, None)
        names = restarting(pod["spec"]["containers"], pod["spec"].get("restartPolicy", "Always"), code)
        if not names:
            await self._write(pod, statuses.terminated(pod, now=now, exit_code=code))
            return None
        level = 0 if age >= FORGIVEN_AFTER else self._levels.get(uid, restarts)
        seconds = delay(level)
        self._levels[uid] = level + 1
        status = statuses.exited(pod, now=now, exit_code=code, seconds=seconds, names=names)
        if not seconds:
            return await self._run_again({**pod, "status": status}, program)
        for name in names:
            meta = pod["metadata"]
            text = f"Back-off restarting failed container {name} in pod {meta['name']}_{meta['namespace']}({uid})"
            self._ctx.recorder.event(pod, "Warning", "BackOff", text)
        await self._write(pod, status)
        self._started[uid] = self._since[uid] = self._ctx.env.now()
        return float(seconds)

    async def _restart(self, pod: Tree, program: Program, containers: Any) -> float | None:
        uid = pod["metadata"]["uid"]
        now = self._ctx.env.now()
        waited = self._since.get(uid)
        if waited is None:
            stamps = [((each.get("lastState") or {}).get("terminated") or {}).get("finishedAt") for each in containers]
            waited = self._since[uid] = max((from_stamp(stamp) for stamp in stamps if stamp), default=now)
        level = self._levels.get(uid)
        if level is None:
            level = self._levels[uid] = 1 + max((each.get("restartCount", 0) for each in containers), default=0)
        left = waited + delay(level - 1) - now
        return left if left > 1e-6 else await self._run_again(pod, program)

    async def _run_again(self, pod: Tree, program: Program) -> float | None:
        uid = pod["metadata"]["uid"]
        ready = program.hold != "running" and program.ready_after <= 0
        await self._write(pod, self._running_again(pod, ready=ready))
        self._since.pop(uid, None)
        self._started[uid] = self._ctx.env.now()
        return _soonest(program.ready_after or None, program.run_for)

    # ------------------------------------------------------------------ the end

    async def _take_down(self, pod: Tree) -> None:
        meta = pod["metadata"]
        status = pod.get("status") or {}
        if status.get("phase") not in TERMINAL and status.get("containerStatuses"):
            code = self._settings.kill_exit_code
            pod = await self._write(pod, statuses.terminated(pod, now=self._ctx.env.stamp(), exit_code=code)) or pod
        elif status.get("phase") not in TERMINAL and meta.get("finalizers"):
            # Never started, and somebody waits for its end (since Kubernetes 1.27 every deleted pod comes to one)
            pod = await self._write(pod, statuses.terminated(pod, now=self._ctx.env.stamp(), exit_code=statuses.KILLED)) or pod
        with suppress(NotFound, Conflict):
            # Gone already, or another pod has its name by now
            await self._ctx.client.delete(PODS, meta["name"], namespace=meta["namespace"], grace=0, uid=meta["uid"])

    async def _write(self, pod: Tree, status: Tree) -> Tree | None:
        try:
            return await self._ctx.client.update_status(PODS, {**pod, "status": status}, canonical=True)
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


def _measured(node: Tree) -> bool:
    """Tell whether a node says what it can hold: one that joined just now does not yet, and nothing can be refused for lack of room."""
    return bool((node.get("status") or {}).get("allocatable"))


def _host_ip(node: Tree) -> str:
    for address in (node.get("status") or {}).get("addresses") or ():
        if address["type"] == "InternalIP":
            found: str = address["address"]
            return found
    return "10.0.0.1"


def _containers_ready(pod: Tree) -> bool:
    return any(condition["type"] == "ContainersReady" and condition["status"] == "True" for condition in pod["status"].get("conditions") or ())


def _asked(old: Tree, new: Tree) -> bool:
    """Tell whether somebody changed what a kubelet listens to: annotations, readiness gates' conditions, resources."""
    before, after = old["metadata"].get("annotations"), new["metadata"].get("annotations")
    if before is not after and before != after:
        return True
    if new["spec"].get("readinessGates") and (old.get("status") or {}).get("conditions") != (new.get("status") or {}).get("conditions"):
        return True
    return old["spec"]["containers"] is not new["spec"]["containers"] and old["spec"]["containers"] != new["spec"]["containers"]


def _resized(pod: Tree) -> bool:
    """Tell whether containers were given other resources than they run with."""
    wanted = {each["name"]: each.get("resources") or {} for each in pod["spec"]["containers"]}
    return any("resources" in each and each["resources"] != wanted.get(each["name"]) for each in pod["status"].get("containerStatuses") or ())


def _soonest(*delays: float | None) -> float | None:
    given = [max(delay, 0.0) for delay in delays if delay is not None]
    return min(given) if given else None
