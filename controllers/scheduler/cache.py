"""The scheduler's view of nodes and of the pods on them, assumed ones included.

A placement is assumed at once and confirmed by its own watch event; the view never over-commits a node. Each change of a node is noted in a log, so that
what was computed per node (see `feasible`) is brought up to date by what changed only.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubemini.api.trees import Tree
from kubemini.controllers.scheduler.resources import Amounts, Requests, amounts, requests_of

TERMINAL = ("Succeeded", "Failed")


class NodeInfo:
    """One node: what it can hold, what it holds."""

    __slots__ = ("allocatable", "cpu", "index", "memory", "name", "node", "pods", "ports", "used", "used_cpu", "used_memory", "volumes")

    def __init__(self, name: str, index: int) -> None:
        self.name = name
        self.index = index
        self.node: Tree | None = None
        """None while only pods are known (the node is gone, or not seen yet)."""
        self.allocatable: Amounts = {}
        self.cpu = self.memory = 0
        self.used: Amounts = {}
        self.used_cpu = self.used_memory = 0
        self.pods: dict[str, Tree] = {}
        """Pods by uid."""
        self.ports: dict[tuple[str, int], dict[str, int]] = {}
        """(protocol, port) → host IP → how many pods use it."""

    def set_node(self, node: Tree) -> None:
        """Take a new state of the node object."""
        self.node = node
        self.allocatable = amounts((node.get("status") or {}).get("allocatable"))
        self.cpu, self.memory = self.allocatable.get("cpu", 0), self.allocatable.get("memory", 0)

    def change(self, pod: Tree, requests: Requests, sign: int) -> None:
        """Add (+1) or take away (-1) a pod's requests and ports."""
        used = self.used
        for name, value in requests.items:
            used[name] = used.get(name, 0) + sign * value
        self.used_cpu += sign * requests.score_cpu
        self.used_memory += sign * requests.score_memory
        for protocol, port, address in host_ports(pod["spec"]):
            users = self.ports.setdefault((protocol, port), {})
            users[address] = users.get(address, 0) + sign
            if users[address] <= 0:
                del users[address]
                if not users:
                    del self.ports[protocol, port]


def host_ports(spec: Tree) -> list[tuple[str, int, str]]:
    """Return the host ports of a pod: (protocol, port, host IP)."""
    found = []
    for container in (*spec["containers"], *(each for each in spec.get("initContainers") or () if each.get("restartPolicy") == "Always")):
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                found.append((port.get("protocol", "TCP"), port["hostPort"], port.get("hostIP") or "0.0.0.0"))  # noqa: S104
    return found


class Cache:
    """All nodes, and every bound or assumed pod that has not ended."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeInfo] = {}
        self.placed: dict[str, tuple[str, Tree]] = {}
        """Pod uid → (node, pod), assumed ones included."""
        self.nominated: dict[str, dict[str, Tree]] = {}
        """Node → pods that preempt their way onto it, by uid."""
        self.anti_affine: dict[str, None] = {}
        """Uids of placed pods with required anti-affinity, in order of placement."""
        self.log: list[str] = []
        """Names of changed nodes, oldest first; a name may stand more than once."""
        self.base = 0
        self.generation = 0
        """Goes up with every change that can make a pod fit."""
        self._next = 0

    # ------------------------------------------------------------------ nodes

    def set_node(self, node: Tree) -> None:
        """Add or change a node."""
        info = self._info(node["metadata"]["name"])
        info.set_node(node)
        self._note(info.name)
        self.generation += 1

    def remove_node(self, name: str) -> None:
        """Forget a node; its pods stay known until they go."""
        info = self.nodes.get(name)
        if info is None:
            return
        info.node = None
        if not info.pods:
            del self.nodes[name]
        self._note(name)
        self.generation += 1

    def _info(self, name: str) -> NodeInfo:
        info = self.nodes.get(name)
        if info is None:
            info = self.nodes[name] = NodeInfo(name, self._next)
            self._next += 1
        return info

    def live(self) -> Iterator[NodeInfo]:
        """Iterate over the nodes that exist."""
        return (info for info in self.nodes.values() if info.node is not None)

    def count(self) -> int:
        """Return how many nodes exist."""
        return sum(1 for _ in self.live())

    def _note(self, name: str) -> None:
        self.log.append(name)
        if len(self.log) > 200_000:
            self.base += 100_000
            del self.log[:100_000]

    # ------------------------------------------------------------------ pods

    def place(self, pod: Tree, node: str) -> None:
        """Put a pod on a node: assumed, or confirmed by its watch event."""
        uid = pod["metadata"]["uid"]
        before = self.placed.get(uid)
        if before is not None:
            if before[0] == node and before[1]["spec"] is pod["spec"]:
                self.placed[uid] = (node, pod)
                self.nodes[node].pods[uid] = pod
                return
            self.remove(uid)
        info = self._info(node)
        info.change(pod, requests_of(pod["spec"]), 1)
        info.pods[uid] = pod
        self.placed[uid] = (node, pod)
        if has_required_anti_affinity(pod["spec"]):
            self.anti_affine[uid] = None
        self._note(node)

    def remove(self, uid: str) -> bool:
        """Take a pod away (it ended, went, or its placement failed); tell whether it was there."""
        before = self.placed.pop(uid, None)
        if before is None:
            return False
        node, pod = before
        info = self.nodes[node]
        del info.pods[uid]
        info.change(pod, requests_of(pod["spec"]), -1)
        self.anti_affine.pop(uid, None)
        if info.node is None and not info.pods:
            del self.nodes[node]
        self._note(node)
        self.generation += 1
        return True

    def nominate(self, pod: Tree, node: str) -> None:
        """Keep room on a node for a pod that preempts."""
        self.denominate(pod["metadata"]["uid"])
        self.nominated.setdefault(node, {})[pod["metadata"]["uid"]] = pod

    def denominate(self, uid: str) -> bool:
        """Give the room up again; tell whether there was any."""
        for node, pods in self.nominated.items():
            if pods.pop(uid, None) is not None:
                if not pods:
                    del self.nominated[node]
                self.generation += 1
                self._note(node)
                return True
        return False


def has_required_anti_affinity(spec: Tree) -> bool:
    """Tell whether a pod has required anti-affinity."""
    affinity = spec.get("affinity")
    return bool(affinity and (affinity.get("podAntiAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution"))


def priority_of(pod: Tree) -> int:
    """Return a pod's priority."""
    return pod["spec"].get("priority") or 0
