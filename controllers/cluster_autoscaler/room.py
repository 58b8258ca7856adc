"""Whether there is room for the pods of a ProvisioningRequest on the nodes as they are.

Pods are put on the first node that takes them: resources, taints, node selectors and node affinity count. Affinity between pods, spreading, volumes and
devices do not, so that the scheduler may still find a pod no place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kubemini.api.trees import Tree
from kubemini.api.wellknown import provisioning
from kubemini.controllers.scheduler.filters import node_properties
from kubemini.controllers.scheduler.resources import Amounts, Requests, amounts, requests_of

Pods = tuple[Tree, int]
"""The spec of so many pods."""


class Room:
    """What nodes have free."""

    def __init__(self, nodes: Iterable[Tree], pods: Iterable[Tree]) -> None:
        self._nodes = [node for node in nodes if _ready(node)]
        self._free: dict[str, Amounts] = {node["metadata"]["name"]: amounts((node.get("status") or {}).get("allocatable")) for node in self._nodes}
        for pod in pods:
            free = self._free.get(pod["spec"].get("nodeName") or "")
            if free is not None and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
                _take(free, requests_of(pod["spec"]), 1)

    def take(self, wanted: Sequence[Pods]) -> bool:
        """Take room for pods, as far as there is. Tell whether there was for all."""
        enough = True
        for spec, count in wanted:
            enough = self._take(spec, count) and enough
        return enough

    def _take(self, spec: Tree, count: int) -> bool:
        requests = requests_of(spec)
        for node in self._nodes:
            if count <= 0:
                break
            if node_properties(spec, node) is None:
                free = self._free[node["metadata"]["name"]]
                fits = min((max(0, free.get(name, 0)) // value for name, value in requests.items if value > 0), default=count)
                _take(free, requests, min(count, fits))
                count -= fits
        return count <= 0


def _take(free: Amounts, requests: Requests, pods: int) -> None:
    for name, value in requests.items:
        free[name] = free.get(name, 0) - value * pods


def _ready(node: Tree) -> bool:
    if "deletionTimestamp" in node["metadata"]:
        return False
    return any(each["type"] == "Ready" and each["status"] == "True" for each in (node.get("status") or {}).get("conditions") or ())


def consumers(pods: Iterable[Tree]) -> dict[tuple[str, str], int]:
    """Return how many pods have taken the room of each request, by namespace and name."""
    found: dict[tuple[str, str], int] = {}
    for pod in pods:
        name = (pod["metadata"].get("annotations") or {}).get(provisioning.CONSUME)
        if name and pod["spec"].get("nodeName"):
            key = (pod["metadata"]["namespace"], name)
            found[key] = found.get(key, 0) + 1
    return found


def books(request: Tree) -> bool:
    """Tell whether room is set aside for a request."""
    states = {each["type"]: each["status"] == "True" for each in (request.get("status") or {}).get("conditions") or ()}
    ends = (provisioning.FAILED, provisioning.BOOKING_EXPIRED, provisioning.CAPACITY_REVOKED)
    return states.get(provisioning.PROVISIONED, False) and not any(states.get(each) for each in ends)


def left(wanted: Iterable[Pods], there: int) -> list[Pods]:
    """Return the pods that are still to come when so many of them are there."""
    found: list[Pods] = []
    for spec, count in wanted:
        found.append((spec, max(0, count - there)))
        there = max(0, there - count)
    return found


def asked(request: Tree, templates: Mapping[str, Tree]) -> list[Pods]:
    """Return the pods of a request; `templates` are those of its namespace by name. What is not there is left out."""
    named = [(templates.get(each["podTemplateRef"]["name"]), each["count"]) for each in request["spec"]["podSets"]]
    return [(template["template"]["spec"], count) for template, count in named if template is not None]
