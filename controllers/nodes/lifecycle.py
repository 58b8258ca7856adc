"""A node's readiness and the taints that follow from it.

The simulated kubelet of a node answers as long as the node does not carry the annotation ``kubemini.dev/lost``. Its heartbeats are not
written: a node that answers is Ready, one that is lost turns Unknown after the grace period. Its lease is written when it registers and when it comes back. Mirrors kube-controller-manager's node lifecycle
controller (taints by condition) and the kubelet's registration.
"""

from __future__ import annotations

from kubemini.api.resources import LEASES, NODES, PODS
from kubemini.api.trees import Tree
from kubemini.controllers.nodes.zones import Zones, readiness
from kubemini.machinery.errors import AlreadyExists, NotFound
from kubemini.runtime.controller import Context, Controller

GRACE_SECONDS = 50.0
"""How long a node may be silent before its conditions turn Unknown."""
LEASE_NAMESPACE, LEASE_SECONDS = "kube-node-lease", 40
LOST = "kubemini.dev/lost"
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"

_HEALTHY = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)
_PRESSURE = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
}


class NodeLifecycle(Controller):
    """One reconcile brings a node's conditions, then its taints, in line with what its kubelet says."""

    name = "node"
    component = "node-controller"

    def setup(self, ctx: Context) -> None:
        """Follow nodes, and pods by node."""
        self._ctx = ctx
        self._nodes = ctx.informer(NODES)
        self._pods = ctx.informer(PODS)
        self._pods.add_index("node", lambda pod: (pod["spec"]["nodeName"],) if pod["spec"].get("nodeName") else (), reads=("spec.nodeName",))
        self._silent: dict[str, float] = {}
        self._addresses = 0
        self._zones = Zones()
        self._spared: dict[str, None] = {}
        """Nodes that are down and wait for their NoExecute taint."""
        self._nodes.on_change(self._on_node)

    def _on_node(self, old: Tree | None, new: Tree | None) -> None:
        if self._zones.change(old, new):
            # The pace has changed, or nobody is to be evicted any more
            for node in self._nodes.list() if self._zones.all_down() else ():
                self.queue.add(node["metadata"]["name"])
            for name in self._spared:
                self.queue.add(name)
        if new is not None:
            self.queue.add(new["metadata"]["name"])

    async def reconcile(self, key: str) -> float | None:
        """Register a new node, notice a lost one, keep its taints."""
        node = self._nodes.get(key)
        if node is None:
            self._silent.pop(key, None)
            self._spared.pop(key, None)
            return None
        lost = LOST in (node["metadata"].get("annotations") or {})
        now = self._ctx.env.now()
        again: float | None = None
        if lost:
            since = self._silent.setdefault(key, now)
            again = since + GRACE_SECONDS - now
            status = self._unknown(node) if again <= 0 else None
        else:
            self._silent.pop(key, None)
            status = self._registered(node)
        try:
            if status is not None:
                was = readiness(node)
                node = await self._ctx.client.update_status(NODES, {**node, "status": status})
                self._say(node, was)
                if lost:
                    await self._pods_unready(key)
                else:
                    await self._renew(node)
            evicting, turn = self._turn(key, node, now)
            again = min((each for each in (again if again is not None and again > 0 else None, turn) if each is not None), default=None)
            wanted = _taints(node, self._ctx.env.stamp(), evicting=evicting)
            if wanted != (node["spec"].get("taints") or []):
                spec = {name: value for name, value in node["spec"].items() if name != "taints"}
                await self._ctx.client.update(NODES, {**node, "spec": {**spec, "taints": wanted} if wanted else spec})
        except NotFound:
            return None
        return again

    def _turn(self, key: str, node: Tree, now: float) -> tuple[bool, float | None]:
        """Tell whether a node's pods are to be evicted, and when to look again where it has to wait for its turn."""
        if readiness(node) in ("True", None):
            self._spared.pop(key, None)
            return False, None
        if self._zones.all_down():
            self._spared[key] = None
            return False, None
        if any(taint["effect"] == "NoExecute" and taint["key"] in (NOT_READY, UNREACHABLE) for taint in node["spec"].get("taints") or ()):
            self._spared.pop(key, None)
            return True, None
        wait = self._zones.wait(node, now)
        if wait is None or wait > 1e-6:
            self._spared[key] = None
            return False, wait
        self._zones.took(node, now)
        self._spared.pop(key, None)
        return True, None

    async def _renew(self, node: Tree) -> None:
        """Write the lease of a node that registers or is back. The heartbeats between are left out."""
        meta = node["metadata"]
        renewed = self._ctx.env.stamp_micro()
        spec = {"holderIdentity": meta["name"], "leaseDurationSeconds": LEASE_SECONDS, "renewTime": renewed}
        owner = {"apiVersion": "v1", "kind": "Node", "name": meta["name"], "uid": meta["uid"]}
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": meta["name"], "namespace": LEASE_NAMESPACE, "ownerReferences": [owner]},
            "spec": spec,
        }
        try:
            await self._ctx.client.create(LEASES, lease)
        except AlreadyExists:
            patch = {"metadata": {"ownerReferences": [owner]}, "spec": spec}
            await self._ctx.client.patch(LEASES, meta["name"], patch, namespace=LEASE_NAMESPACE)

    def _say(self, node: Tree, was: str | None) -> None:
        ready = readiness(node)
        if was is None and ready == "True":
            self._ctx.recorder.event(
                node, "Normal", "RegisteredNode", f"Node {node['metadata']['name']} event: Registered Node {node['metadata']['name']} in Controller"
            )
        elif was == "True" and ready != "True":
            self._ctx.recorder.event(node, "Normal", "NodeNotReady", f"Node {node['metadata']['name']} status is now: NodeNotReady")

    def _registered(self, node: Tree) -> Tree | None:
        """Return the status of a node whose kubelet answers, or None when nothing is missing."""
        status = node.get("status") or {}
        before = {condition["type"]: condition for condition in status.get("conditions") or ()}
        stale = [type_ for type_, condition in before.items() if condition.get("reason") == "NodeStatusUnknown"]
        if before.get("Ready") is not None and not stale and status.get("addresses"):
            return None
        now = self._ctx.env.stamp()
        found = []
        for type_, value, reason, message in _HEALTHY:
            current = before.pop(type_, None)
            if current is not None and type_ not in stale:
                found.append(current)
                continue
            found.append({"type": type_, "status": value, "reason": reason, "message": message, "lastHeartbeatTime": now, "lastTransitionTime": now})
        name = node["metadata"]["name"]
        info = {
            "architecture": (node["metadata"].get("labels") or {}).get("kubernetes.io/arch", "amd64"),
            "bootID": "",
            "containerRuntimeVersion": "kubemini://1",
            "kernelVersion": "6.12.0-kubemini",
            "kubeProxyVersion": "",
            "kubeletVersion": f"v{self._ctx.config.get('kubernetes_version', '1.36')}.0",
            "machineID": "",
            "operatingSystem": "linux",
            "osImage": "kubemini",
            "systemUUID": "",
        }
        capacity = status.get("capacity") or {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}
        known = {key: value for key, value in (status.get("nodeInfo") or {}).items() if value}
        return {
            **status,
            "capacity": capacity,
            "allocatable": status.get("allocatable") or capacity,
            "conditions": [*found, *before.values()],
            "addresses": status.get("addresses") or [{"type": "InternalIP", "address": self._address()}, {"type": "Hostname", "address": name}],
            "nodeInfo": {**info, **known},
        }

    def _address(self) -> str:
        if not self._addresses:
            self._addresses = sum(1 for node in self._nodes.list() if (node.get("status") or {}).get("addresses"))
        self._addresses += 1
        number = self._addresses
        return f"10.{number >> 16 & 127}.{number >> 8 & 255}.{number & 255}"

    def _unknown(self, node: Tree) -> Tree | None:
        status = node.get("status") or {}
        if readiness(node) == "Unknown":
            return None
        now = self._ctx.env.stamp()
        changed = [
            {
                **condition,
                "status": "Unknown",
                "reason": "NodeStatusUnknown",
                "message": "Kubelet stopped posting node status.",
                "lastTransitionTime": now,
            }
            for condition in status.get("conditions") or ()
        ]
        return {**status, "conditions": changed}

    async def _pods_unready(self, node: str) -> None:
        """Mark the pods of a silent node not Ready, so that Services and controllers stop counting on them."""
        now = self._ctx.env.stamp()
        for pod in self._pods.by_index("node", node):
            conditions = pod["status"].get("conditions") or []
            if not any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions):
                continue
            changed = [{**each, "status": "False", "lastTransitionTime": now} if each["type"] == "Ready" else each for each in conditions]
            try:
                await self._ctx.client.update_status(PODS, {**pod, "status": {**pod["status"], "conditions": changed}})
            except NotFound:
                continue
            self._ctx.recorder.event(pod, "Warning", "NodeNotReady", "Node is not ready")


def _taints(node: Tree, now: str, *, evicting: bool) -> list[Tree]:
    """Return the taints a node should carry: the user's, and those that follow from its conditions; NoExecute only where its pods are to go."""
    ready = readiness(node)
    wanted: dict[tuple[str, str], None] = {}
    if node["spec"].get("unschedulable"):
        wanted[UNSCHEDULABLE, "NoSchedule"] = None
    if ready != "True":
        key = UNREACHABLE if ready == "Unknown" else NOT_READY
        wanted[key, "NoSchedule"] = None
        if evicting:
            wanted[key, "NoExecute"] = None
    for condition in (node.get("status") or {}).get("conditions") or ():
        if condition["type"] in _PRESSURE and condition["status"] == "True":
            wanted[_PRESSURE[condition["type"]], "NoSchedule"] = None
    managed = (UNSCHEDULABLE, NOT_READY, UNREACHABLE, *_PRESSURE.values())
    kept = []
    for taint in node["spec"].get("taints") or []:
        mark = (taint["key"], taint["effect"])
        if taint["key"] in managed and mark not in wanted:
            continue
        wanted.pop(mark, None)
        kept.append(taint)
    return kept + [{"key": key, "effect": effect, "timeAdded": now} for key, effect in wanted]
