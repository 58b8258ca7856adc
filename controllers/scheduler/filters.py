"""Filters on one node that depend on the pod, the node and what is on it. Order and texts as upstream's default plugins.

A refusal names the first plugin that refuses; `Refusal.unresolvable` tells that no preemption could help.
"""

from __future__ import annotations

from dataclasses import dataclass

from kubemini.api.trees import Tree
from kubemini.controllers.scheduler.cache import NodeInfo, ports_of
from kubemini.controllers.scheduler.resources import PODS, Requests
from kubemini.machinery.node_matching import matches_node, tolerates, tolerates_hard

UNSCHEDULABLE_TAINT = {"key": "node.kubernetes.io/unschedulable", "value": "", "effect": "NoSchedule"}


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a node does not do: the plugin, its reasons (each counted in the message), and whether preemption cannot help."""

    plugin: str
    reasons: tuple[str, ...]
    unresolvable: bool = False


_CORDONED = Refusal("NodeUnschedulable", ("node(s) were unschedulable",), unresolvable=True)
_TAINTED = Refusal("TaintToleration", ("node(s) had untolerated taint(s)",), unresolvable=True)
SELECTOR = Refusal("NodeAffinity", ("node(s) didn't match Pod's node affinity/selector",), unresolvable=True)
ELSEWHERE = Refusal("NodeAffinity", ("node(s) didn't satisfy plugin(s) [NodeAffinity]",), unresolvable=True)
"""Of the nodes that a pod bound by name (``matchFields``) does not name: they are not even looked at."""
_PORTS = Refusal("NodePorts", ("node(s) didn't have free ports for the requested pod ports",))


# ----------------------------------------------------------------------------------------------- node properties


def node_properties(spec: Tree, node: Tree) -> Refusal | None:
    """Run the filters that look at the node object only: cordon, taints, selector and node affinity."""
    tolerations = spec.get("tolerations") or ()
    if node["spec"].get("unschedulable") and not any(tolerates(toleration, UNSCHEDULABLE_TAINT) for toleration in tolerations):
        return _CORDONED
    if not tolerates_hard(spec, node):
        return _TAINTED
    return None if matches_node(spec, node) else SELECTOR


# ----------------------------------------------------------------------------------------------- what is on the node


def fits(requests: Requests, info: NodeInfo) -> Refusal | None:
    """Check resources and the number of pods: all that is short is named, in upstream's order."""
    allocatable, used = info.allocatable, info.used
    short = [name for name, wanted in requests.items if wanted > allocatable.get(name, 0) - used.get(name, 0)]
    if not short:
        return None
    ordered = sorted(short, key=lambda name: (name != PODS, {"cpu": 0, "memory": 1, "ephemeral-storage": 2}.get(name, 3), name))
    reasons = tuple("Too many pods" if name == PODS else f"Insufficient {name}" for name in ordered)
    hopeless = any(requests.fit[name] > allocatable.get(name, 0) for name in short)
    return Refusal("NodeResourcesFit", reasons, unresolvable=hopeless)


def ports_free(spec: Tree, info: NodeInfo) -> Refusal | None:
    """Check host ports: the same port and protocol on the same address, or on all addresses, clashes."""
    for protocol, port, address in ports_of(spec):
        users = info.ports.get((protocol, port))
        if users and (address in users or "0.0.0.0" in users or address == "0.0.0.0"):  # noqa: S104
            return _PORTS
    return None
