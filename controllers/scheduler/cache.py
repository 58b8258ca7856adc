"""The scheduler's view of nodes and of the pods on them, assumed ones included.

A placement is assumed at once and confirmed by its own watch event; the view never over-commits a node. Each change of a node is noted in a log, so that
what was computed per node (see `feasible`) is brought up to date by what changed only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kubemini.api.trees import Tree
from kubemini.controllers.scheduler.census import Census
from kubemini.controllers.scheduler.resources import Amounts, Requests, amounts, requests_of
from kubemini.controllers.scheduler.terms import TermLog, terms_of
from kubemini.machinery.memo import by_identity

TERMINAL = ("Succeeded", "Failed")


class NodeInfo:
    """One node: what it can hold, what it holds."""

    __slots__ = ("allocatable", "cpu", "index", "labels", "memory", "name", "node", "pods", "ports", "used", "used_cpu", "used_memory")

    def __init__(self, name: str, index: int) -> None:
        self.name = name
        self.index = index
        self.node: Tree | None = None
        """None while only pods are known (the node is gone, or not seen yet)."""
        self.labels: Mapping[str, str] = _NO_LABELS
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
        self.labels = _labels(node)
        self.allocatable = amounts((node.get("status") or {}).get("allocatable"))
        self.cpu, self.memory = self.allocatable.get("cpu", 0), self.allocatable.get("memory", 0)

    def copy(self) -> NodeInfo:
        """Return a copy on which pods can be tried; the pods themselves are not copied."""
        copy = NodeInfo(self.name, self.index)
        copy.node, copy.labels, copy.allocatable, copy.cpu, copy.memory = self.node, self.labels, self.allocatable, self.cpu, self.memory
        copy.used, copy.used_cpu, copy.used_memory = dict(self.used), self.used_cpu, self.used_memory
        copy.ports = {key: dict(users) for key, users in self.ports.items()}
        return copy

    def change(self, pod: Tree, requests: Requests, sign: int) -> None:
        """Add (+1) or take away (-1) a pod's requests and ports."""
        used = self.used
        for name, value in requests.items:
            used[name] = used.get(name, 0) + sign * value
        self.used_cpu += sign * requests.score_cpu
        self.used_memory += sign * requests.score_memory
        for protocol, port, address in ports_of(pod["spec"]):
            users = self.ports.setdefault((protocol, port), {})
            users[address] = users.get(address, 0) + sign
            if users[address] <= 0:
                del users[address]
                if not users:
                    del self.ports[protocol, port]


Port = tuple[str, int, str]
"""(protocol, port, host IP)."""


def _ports(containers: list[Tree]) -> list[Port]:
    found: list[Port] = []
    for container in containers:
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                found.append((port.get("protocol", "TCP"), port["hostPort"], port.get("hostIP") or "0.0.0.0"))  # noqa: S104
    return found


_container_ports = by_identity()(_ports)
_sidecar_ports = by_identity()(lambda init: _ports([each for each in init if each.get("restartPolicy") == "Always"]))


def ports_of(spec: Tree) -> list[Port]:
    """Return the host ports of a pod's containers and sidecars."""
    init = spec.get("initContainers")
    found: list[Port] = _container_ports(spec["containers"])
    return found if not init else found + _sidecar_ports(init)


class Cache:
    """All nodes, and every bound or assumed pod that has not ended."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeInfo] = {}
        self.placed: dict[str, tuple[str, Tree]] = {}
        """Pod uid → (node, pod), assumed ones included."""
        self.nominated: dict[str, dict[str, Tree]] = {}
        """Node → pods that preempt their way onto it, by uid."""
        self.census = Census(self.placed.values)
        self.terms = TermLog()
        """Placed pods that state inter-pod terms."""
        self.log: list[str] = []
        """Names of changed nodes, oldest first; a name may stand more than once."""
        self.base = 0
        self.turn = 0
        """Where the next search among many nodes begins."""
        self._next = 0
        self._live = 0
        self._places: dict[str, dict[str, dict[str, None]]] = {}
        """Label key → value → names of nodes, for the keys that were asked for."""

    # ------------------------------------------------------------------ nodes

    def set_node(self, node: Tree) -> None:
        """Add or change a node."""
        info = self._info(node["metadata"]["name"])
        before = _labels(info.node)
        self._live += info.node is None
        info.set_node(node)
        after = info.labels
        if before != after:
            self._index(info.name, before, after)
            if self.terms.stated:
                self.terms.reset()
        self._note(info.name)

    def remove_node(self, name: str) -> None:
        """Forget a node; its pods stay known until they go."""
        info = self.nodes.get(name)
        if info is None or info.node is None:
            return
        self._index(name, info.labels, {})
        info.node, info.labels = None, {}
        self._live -= 1
        if not info.pods:
            del self.nodes[name]
        if self.terms.stated:
            self.terms.reset()
        self._note(name)

    def _info(self, name: str) -> NodeInfo:
        info = self.nodes.get(name)
        if info is None:
            info = self.nodes[name] = NodeInfo(name, self._next)
            self._next += 1
        return info

    def _index(self, name: str, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        for key, places in self._places.items():
            if (old := before.get(key)) is not None:
                places[old].pop(name, None)
            if (new := after.get(key)) is not None:
                places.setdefault(new, {})[name] = None

    def live(self) -> Iterator[NodeInfo]:
        """Iterate over the nodes that exist."""
        return (info for info in self.nodes.values() if info.node is not None)

    def count(self) -> int:
        """Return how many nodes exist."""
        return self._live

    def selected(self, selector: Mapping[str, str] | None) -> list[NodeInfo]:
        """Return the nodes that may match a nodeSelector: those under its rarest pair. O(those); the first time for a label key, O(nodes)."""
        if not selector:
            return list(self.live())
        names = min((self._places_of(key).get(value, {}) for key, value in selector.items()), key=len)
        return sorted((self.nodes[name] for name in names), key=lambda info: info.index)

    def _places_of(self, key: str) -> dict[str, dict[str, None]]:
        places = self._places.get(key)
        if places is None:
            places = self._places[key] = {}
            for info in self.live():
                if (value := info.labels.get(key)) is not None:
                    places.setdefault(value, {})[info.name] = None
        return places

    def _note(self, name: str) -> None:
        self.log.append(name)
        if len(self.log) > 200_000:
            self.base += 100_000
            del self.log[:100_000]

    # ------------------------------------------------------------------ pods

    def place(self, pod: Tree, node: str) -> None:
        """Put a pod on a node: assumed, or confirmed by its watch event."""
        meta, spec = pod["metadata"], pod["spec"]
        uid = meta["uid"]
        before = self.placed.get(uid)
        if before is not None:
            old = before[1]
            if before[0] == node and _asks_the_same(old["spec"], spec):
                self.placed[uid] = (node, pod)
                self.nodes[node].pods[uid] = pod
                if old["metadata"].get("labels") is not meta.get("labels") or ("deletionTimestamp" in old["metadata"]) != (
                    "deletionTimestamp" in meta
                ):
                    self.census.change(old, node, -1)
                    self.census.change(pod, node, 1)
                return
            self.remove(uid)
        info = self._info(node)
        info.change(pod, requests_of(spec), 1)
        info.pods[uid] = pod
        self.placed[uid] = (node, pod)
        self.census.change(pod, node, 1)
        terms = terms_of(spec)
        if terms:
            self.terms.add(pod, node, terms)
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
        self.census.change(pod, node, -1)
        self.terms.remove(uid)
        if info.node is None and not info.pods:
            del self.nodes[node]
        self._note(node)
        return True

    def nominate(self, pod: Tree, node: str) -> bool:
        """Keep room on a node for a pod that preempts or waits for its volumes; tell whether that gave up room elsewhere."""
        uid = pod["metadata"]["uid"]
        freed = uid not in self.nominated.get(node, ()) and self.denominate(uid)
        self.nominated.setdefault(node, {})[uid] = pod
        return freed

    def denominate(self, uid: str) -> bool:
        """Give the room up again; tell whether there was any."""
        for node, pods in self.nominated.items():
            if pods.pop(uid, None) is not None:
                if not pods:
                    del self.nominated[node]
                return True
        return False


_NO_LABELS: Mapping[str, str] = {}


def _labels(node: Tree | None) -> Mapping[str, str]:
    return (node["metadata"].get("labels") or _NO_LABELS) if node is not None else _NO_LABELS


def _asks_the_same(old: Tree, new: Tree) -> bool:
    """Tell whether a placed pod's requests, ports and terms are those that it was placed with."""
    return old is new or (
        old["containers"] is new["containers"]
        and old.get("affinity") is new.get("affinity")
        and old.get("initContainers") is new.get("initContainers")
        and old.get("resources") is new.get("resources")
    )


def priority_of(pod: Tree) -> int:
    """Return a pod's priority."""
    return pod["spec"].get("priority") or 0
