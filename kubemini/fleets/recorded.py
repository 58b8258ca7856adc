"""Nodes of a real cluster, as ``kubectl get nodes -o yaml`` prints them, made into nodes of a simulated one.

Kept is what places pods: name, labels, annotations, taints, capacity. Left out is what the control plane and the kubelet find
out for themselves: ids, conditions, addresses, images, and taints that only mirror a condition of the moment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kubemini.api.trees import Tree, get_in
from kubemini.machinery.errors import ConfigError
from kubemini.machinery.quantity import is_quantity

_OF_THE_MOMENT = {
    "node.cloudprovider.kubernetes.io/uninitialized",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/network-unavailable",
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/unreachable",
}
_BOOKKEEPING = {
    "kubectl.kubernetes.io/last-applied-configuration",
    "node.alpha.kubernetes.io/ttl",
    "volumes.kubernetes.io/controller-managed-attach-detach",
}


def recorded_nodes(tree: Mapping[str, Any], where: str) -> Iterator[Tree]:
    """Yield the nodes of a ``Node``, ``NodeList`` or ``List``. Raise `ConfigError` for other kinds and for nodes without capacity."""
    kind = tree.get("kind")
    if kind == "Node":
        yield _cleaned(tree, where)
        return
    items = tree.get("items")
    if kind not in {"List", "NodeList"} or not isinstance(items, list):
        raise ConfigError(f"{where}: a fleet is made of node groups or of Node objects, not of kind {kind!r}")
    for number, item in enumerate(items):
        inner = f"{where}: items[{number}]"
        if not isinstance(item, Mapping):
            raise ConfigError(f"{inner}: expected a Node, found {item!r}")
        yield from recorded_nodes({"kind": "Node", **item} if kind == "NodeList" else item, inner)


def _cleaned(tree: Mapping[str, Any], where: str) -> Tree:
    node = dict(tree)
    name = get_in(node, "metadata", "name")
    if not isinstance(name, str) or not name:
        raise ConfigError(f"{where}: metadata.name: a node needs a name")
    capacity = _resources(get_in(node, "status", "capacity"), f"{where}: status.capacity")
    allocatable = get_in(node, "status", "allocatable")
    annotations = {key: text for key, text in (get_in(node, "metadata", "annotations") or {}).items() if key not in _BOOKKEEPING}
    metadata: Tree = {"name": name, "labels": {"kubernetes.io/hostname": name, **(get_in(node, "metadata", "labels") or {})}}
    if annotations:
        metadata["annotations"] = annotations
    spec: Tree = {key: value for key, value in (node.get("spec") or {}).items() if key in {"providerID", "unschedulable"}}
    taints = [taint for taint in get_in(node, "spec", "taints") or [] if taint.get("key") not in _OF_THE_MOMENT]
    if taints:
        spec["taints"] = taints
    status = {"capacity": capacity, "allocatable": _resources(allocatable, f"{where}: status.allocatable") if allocatable else capacity}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}


def _resources(tree: object, where: str) -> Tree:
    if not isinstance(tree, Mapping) or not tree:
        raise ConfigError(f"{where}: a node needs a capacity such as {{cpu: 64, memory: 256Gi, pods: 110}}")
    for key, value in tree.items():
        if not is_quantity(value):
            raise ConfigError(f"{where}.{key}: {value!r} is no quantity")
    return {str(key): str(value) for key, value in tree.items()}
