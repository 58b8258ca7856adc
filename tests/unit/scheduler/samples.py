"""Nodes and pods for tests of scheduling, with the fewest words."""

from __future__ import annotations

from itertools import count
from typing import Any

from kubemini.controllers.scheduler.cache import Cache

Tree = dict[str, Any]
_number = count()


def node(
    name: str, *, cpu: str = "4", memory: str = "16Gi", pods: str = "110", taints: list[Tree] | None = None, labels: Tree | None = None, **more: Any
) -> Tree:
    """Return a node; further keywords are resources or fields of its spec (``unschedulable``)."""
    resources = {key.replace("_", "/"): value for key, value in more.items() if key != "unschedulable"}
    spec: Tree = {"taints": taints} if taints else {}
    if more.get("unschedulable"):
        spec["unschedulable"] = True
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": spec,
        "status": {"allocatable": {"cpu": cpu, "memory": memory, "pods": pods, **resources}},
    }


def pod(
    name: str = "p", *, cpu: str = "", memory: str = "", labels: Tree | None = None, namespace: str = "default", priority: int = 0, **spec: Any
) -> Tree:
    """Return a pod with one container; further keywords are fields of its spec."""
    requests = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value}
    container: Tree = {"name": "c", "image": "i", **({"resources": {"requests": requests}} if requests else {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}-{next(_number)}",
            "labels": labels or {},
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"containers": [container], "priority": priority, **spec},
        "status": {"phase": "Pending"},
    }


def cluster(*nodes: Tree, **placed: list[Tree]) -> Cache:
    """Return a cache of nodes; keywords name nodes (``_`` for ``-``) and give the pods on them."""
    cache = Cache()
    for each in nodes:
        cache.set_node(each)
    for name, pods in placed.items():
        for each in pods:
            cache.place(each, name.replace("_", "-"))
    return cache


def affinity(kind: str, key: str, match: Tree, **more: Any) -> Tree:
    """Return ``spec.affinity`` with one required term of ``podAffinity`` or ``podAntiAffinity``."""
    term = {"topologyKey": key, "labelSelector": {"matchLabels": match}, **more}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def spread(key: str, match: Tree, *, skew: int = 1, hard: bool = True, **more: Any) -> Tree:
    """Return one topology spread constraint."""
    when = "DoNotSchedule" if hard else "ScheduleAnyway"
    return {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": when, "labelSelector": {"matchLabels": match}, **more}


def no_labels(namespace: str) -> Tree:
    """Return the labels of a namespace: none."""
    return {}
