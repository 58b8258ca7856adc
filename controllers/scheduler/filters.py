"""Filters on one node that depend on the pod, the node and what is on it. Order and texts as upstream's default plugins.

A refusal names the first plugin that refuses; `Refusal.unresolvable` tells that no preemption could help.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kubemini.api.trees import Tree
from kubemini.controllers.scheduler.cache import NodeInfo, ports_of
from kubemini.controllers.scheduler.resources import PODS, Requests

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


def tolerates_hard(spec: Tree, node: Tree) -> bool:
    """Tell whether a pod tolerates all NoSchedule and NoExecute taints of a node."""
    tolerations = spec.get("tolerations") or ()
    for taint in node["spec"].get("taints") or ():
        if taint["effect"] in ("NoSchedule", "NoExecute") and not any(tolerates(toleration, taint) for toleration in tolerations):
            return False
    return True


def tolerates(toleration: Tree, taint: Tree) -> bool:
    """Tell whether a toleration covers a taint."""
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    key = toleration.get("key", "")
    if key and key != taint["key"]:
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Exists" or not key:
        return operator == "Exists"
    value, other = toleration.get("value", ""), taint.get("value", "")
    if operator in ("Lt", "Gt"):
        return _compares(other, operator, value)
    return bool(value == other)


def matches_node(spec: Tree, node: Tree) -> bool:
    """Tell whether nodeSelector and required node affinity accept a node."""
    selector, affinity = spec.get("nodeSelector"), spec.get("affinity")
    if not selector and not affinity:
        return True
    labels = node["metadata"].get("labels") or {}
    if selector and any(labels.get(key) != value for key, value in selector.items()):
        return False
    required = ((affinity or {}).get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution")
    if not required:
        return True
    return any(matches_term(term, labels, node["metadata"]["name"]) for term in required.get("nodeSelectorTerms") or ())


def named_nodes(spec: Tree) -> list[str] | None:
    """Return the only nodes that required node affinity allows by name, in order, or None where it names none in some term."""
    affinity = spec.get("affinity")
    required = ((affinity or {}).get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution")
    if not required or not required.get("nodeSelectorTerms"):
        return None
    allowed: dict[str, None] = {}
    for term in required["nodeSelectorTerms"]:
        lists: list[list[str]] = [each.get("values") or [] for each in term.get("matchFields") or () if each["key"] == "metadata.name" and each["operator"] == "In"]
        if not lists:
            return None
        allowed |= dict.fromkeys(name for name in lists[0] if all(name in others for others in lists[1:]))
    return list(allowed)


def matches_term(term: Tree, labels: Mapping[str, str], name: str) -> bool:
    """Tell whether a node selector term accepts a node; an empty term accepts none."""
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    return all(_holds(each, labels) for each in expressions) and all(_holds(each, {"metadata.name": name}) for each in fields)


def _holds(requirement: Tree, labels: Mapping[str, str]) -> bool:
    key, operator, values = requirement["key"], requirement["operator"], requirement.get("values") or []
    present = key in labels
    if operator == "In":
        return present and labels[key] in values
    if operator == "NotIn":
        return not present or labels[key] not in values
    if operator == "Exists":
        return present
    if operator == "DoesNotExist":
        return not present
    return present and bool(values) and _compares(labels[key], operator, values[0])


def _compares(found: str, operator: str, bound: str) -> bool:
    try:
        left, right = int(found), int(bound)
    except ValueError:
        return False
    return left > right if operator == "Gt" else left < right


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
