"""On which nodes a DaemonSet runs, and how its pods are tied to theirs. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kubemini.api.trees import Tree
from kubemini.api.wellknown import kubernetes as names
from kubemini.controllers.deployment.amounts import scaled
from kubemini.controllers.replica_set.writing import PodTemplate
from kubemini.machinery.node_matching import matches_node, tolerates

GENERATION_LABEL = "pod-template-generation"
"""Label: how often the template had changed when a pod was made (deprecated, and still written)."""
GENERATION = "deprecated.daemonset.template.generation"

_TOLERATED = (
    (names.NOT_READY, "NoExecute"),
    (names.UNREACHABLE, "NoExecute"),
    (names.DISK_PRESSURE, "NoSchedule"),
    (names.MEMORY_PRESSURE, "NoSchedule"),
    (names.PID_PRESSURE, "NoSchedule"),
    (names.UNSCHEDULABLE_NODE, "NoSchedule"),
)
"""Troubles of a node that daemons live with."""


def tolerations(spec: Tree) -> list[Tree]:
    """Return the tolerations of daemon pods: the template's, and those that every daemon has."""
    found: list[Tree] = list(spec.get("tolerations") or ())
    wanted = [*_TOLERATED, *([(names.NETWORK_UNAVAILABLE, "NoSchedule")] if spec.get("hostNetwork") else [])]
    for key, effect in wanted:
        new = {"key": key, "operator": "Exists", "effect": effect}
        for index, each in enumerate(found):
            if all(each.get(name) == new.get(name) for name in ("key", "operator", "effect", "value")):
                found[index] = new
                break
        else:
            found.append(new)
    return found


def affinity(spec: Tree, node: str) -> Tree:
    """Return the affinity that ties a pod to a node; it replaces what the template requires of nodes."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    before = spec.get("affinity") or {}
    of_nodes = {**(before.get("nodeAffinity") or {}), "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {**before, "nodeAffinity": of_nodes}


def target(pod: Tree) -> str:
    """Return the node that a daemon pod is on or made for, "" where it does not say."""
    spec = pod["spec"]
    if spec.get("nodeName"):
        name: str = spec["nodeName"]
        return name
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for each in term.get("matchFields") or ():
            if each["key"] == "metadata.name" and each["operator"] == "In" and len(each.get("values") or ()) == 1:
                found: str = each["values"][0]
                return found
    return ""


@dataclass(frozen=True, slots=True)
class Daemon:
    """A DaemonSet's template as its pods have it."""

    spec: Tree
    """The pod spec with all tolerations, tied to no node yet."""
    hash: str
    generation: str
    template: PodTemplate

    @classmethod
    def of(cls, daemon_set: Tree, hashed: str) -> Daemon:
        """Prepare what all pods share."""
        template = daemon_set["spec"]["template"]
        spec = {**template["spec"], "tolerations": tolerations(template["spec"])}
        generation = (daemon_set["metadata"].get("annotations") or {}).get(GENERATION, "")
        labels = {names.CONTROLLER_REVISION_HASH: hashed}
        if generation:
            labels[GENERATION_LABEL] = generation
        owner = {**daemon_set, "apiVersion": "apps/v1", "kind": "DaemonSet"}
        return cls(spec, hashed, generation, PodTemplate(owner, {**template, "spec": spec}, labels=labels))

    def pod(self, node: str) -> Tree:
        """Return a new pod for a node."""
        return self.template.make(affinity=affinity(self.spec, node))

    def runs_on(self, node: Tree) -> tuple[bool, bool]:
        """Return whether a pod should be made on a node, and whether one that is there may stay."""
        name = self.spec.get("nodeName")
        if (name and name != node["metadata"]["name"]) or not matches_node(self.spec, node):
            return False, False
        strange = [
            taint
            for taint in node["spec"].get("taints") or ()
            if taint["effect"] in ("NoSchedule", "NoExecute") and not any(tolerates(each, taint) for each in self.spec["tolerations"])
        ]
        return not strange, not any(taint["effect"] == "NoExecute" for taint in strange)

    def is_current(self, pod: Tree) -> bool:
        """Tell whether a pod is of the present template."""
        labels = pod["metadata"].get("labels") or {}
        by_generation = bool(self.generation) and labels.get(GENERATION_LABEL) == self.generation
        return by_generation or self.has_hash(pod)

    def has_hash(self, pod: Tree) -> bool:
        """Tell whether a pod carries the hash of the present template."""
        return (pod["metadata"].get("labels") or {}).get(names.CONTROLLER_REVISION_HASH) == self.hash


def oldest_first(pods: Iterable[Tree]) -> list[Tree]:
    """Return pods in the order in which one of several on a node is kept: placed ones first, then by age."""

    def order(pod: Tree) -> tuple[bool, str, str]:
        return (not pod["spec"].get("nodeName"), pod["metadata"]["creationTimestamp"], pod["metadata"]["name"])

    return sorted(pods, key=order)


def limits(daemon_set: Tree, desired: int) -> tuple[int, int]:
    """Return (maxSurge, maxUnavailable) of a rolling update in pods; both round up, and they are not 0 together."""
    rolling: dict[str, Any] = (daemon_set["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    surge = scaled(rolling.get("maxSurge"), desired, up=True)
    unavailable = scaled(rolling.get("maxUnavailable", 1), desired, up=True)
    if desired and not surge and not unavailable:
        unavailable = 1
    return surge, unavailable


def allows_surge(daemon_set: Tree) -> bool:
    """Tell whether an update may run an old and a new pod on one node."""
    strategy = daemon_set["spec"].get("updateStrategy") or {}
    return strategy.get("type", "RollingUpdate") == "RollingUpdate" and limits(daemon_set, 100)[0] > 0


def old_and_new(daemon: Daemon, pods: Sequence[Tree]) -> tuple[Tree | None, Tree | None] | None:
    """Return the (old, new) pod of a node among those that are not being deleted; None when there are two of a kind."""
    old = new = None
    for pod in pods:
        if "deletionTimestamp" in pod["metadata"]:
            continue
        if daemon.is_current(pod):
            if new is not None:
                return None
            new = pod
        else:
            if old is not None:
                return None
            old = pod
    return old, new
