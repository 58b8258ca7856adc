"""Pod groups: which pods belong together, how many of them must start together, and where.

Three interfaces are understood: the PodGroup of scheduling.k8s.io (feature gates GenericWorkload and GangScheduling), that of the coscheduling plugin (label
``scheduling.x-k8s.io/pod-group``) and Volcano's (annotation ``scheduling.k8s.io/group-name``). Each comes down to a `Gang`: all or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kubemini.api.resources import COSCHEDULING_POD_GROUPS, CUSTOM_RESOURCE_DEFINITIONS, POD_GROUPS, VOLCANO_POD_GROUPS, Resource
from kubemini.api.trees import Tree
from kubemini.controllers.scheduler.cache import TERMINAL, NodeInfo
from kubemini.controllers.scheduler.filters import Refusal
from kubemini.runtime.controller import Context
from kubemini.runtime.informer import Informer

DEFAULT_SCHEDULER = "default-scheduler"
COSCHEDULING_LABEL = "scheduling.x-k8s.io/pod-group"
VOLCANO_ANNOTATION = "scheduling.k8s.io/group-name"
SCHEDULERS = {COSCHEDULING_POD_GROUPS: "scheduler-plugins-scheduler", VOLCANO_POD_GROUPS: "volcano"}
"""The schedulers that people name with a group of that kind: served where the kind is."""

ELSEWHERE = Refusal("TopologyPlacement", ("node(s) didn't match the topology placement of the pod group",), unresolvable=True)
WAITING_FOR_PREEMPTION = "pod group is waiting for preemption to complete"
UNSCHEDULABLE = "pod group is unschedulable"
MEMBERS_DO_NOT = "not eligible due to workload aware preemption enabled"
MEMBERS_OF_PLACEMENTS_DO_NOT = "not eligible due to placement-based pod group scheduling limitation"
"""Why the pods of a group that preempts as a whole do not preempt themselves."""


@dataclass(frozen=True, slots=True)
class Gang:
    """A group as the scheduler sees it."""

    minimum: int
    topology: str | None = None
    """Label key of the one domain that must hold all of it."""
    tree: Tree | None = None
    """The PodGroup of scheduling.k8s.io, which has conditions to be kept."""


@dataclass(frozen=True, slots=True)
class InDomain:
    """The filter that keeps a group in one domain."""

    key: str
    value: str

    def refusal(self, info: NodeInfo) -> Refusal | None:
        """Return why a node does not do, or None."""
        return None if info.labels.get(self.key) == self.value else ELSEWHERE


class Gangs:
    """Follows the group kinds that are served, and finds groups and members. `changed` is called for every change of a group."""

    def __init__(self, ctx: Context, pods: Informer, changed: Callable[[], None]) -> None:
        self._ctx = ctx
        self._pods = pods
        self._changed = changed
        self._groups: dict[Resource, Informer] = {}
        self._native = ctx.gates.enabled("GenericWorkload") and ctx.gates.enabled("GangScheduling")
        self._topology = ctx.gates.enabled("TopologyAwareWorkloadScheduling")
        self.as_wholes = self._native and ctx.gates.enabled("WorkloadAwarePreemption")
        """Whether groups of scheduling.k8s.io preempt, and are preempted, as wholes."""
        self._running = False
        self.schedulers: dict[str, None] = {DEFAULT_SCHEDULER: None}
        pods.add_index("gang", self._index, reads=("labels", "annotations", "spec.schedulingGroup"))
        self._refresh()
        ctx.informer(CUSTOM_RESOURCE_DEFINITIONS).on_change(lambda old, new: self._refresh() if self._running else None)

    def started(self) -> None:
        """Called when the manager runs: kinds that come later are followed from then on."""
        self._running = True
        self._refresh()

    def _refresh(self) -> None:
        wanted = [COSCHEDULING_POD_GROUPS, VOLCANO_POD_GROUPS, *([POD_GROUPS] if self._native else ())]
        if len(self._groups) == len(wanted):
            return
        served = {(each.group, each.version, each.plural): None for each in self._ctx.client.resources()}
        for resource in wanted:
            if resource in self._groups or (resource.group, resource.version, resource.plural) not in served:
                continue
            informer = self._groups[resource] = self._ctx.informer(resource)
            informer.on_change(lambda old, new: self._changed())
            if resource in SCHEDULERS:
                self.schedulers[SCHEDULERS[resource]] = None
            if self._running:
                informer.start(self._ctx.client)

    def _index(self, pod: Tree) -> tuple[str, ...]:
        # Also for kinds that are not served (yet): an index never changes its mind
        found = _reference(pod)
        return (f"{pod['metadata']['namespace']}/{found[1]}",) if found is not None else ()

    def of(self, pod: Tree) -> tuple[Resource, str] | None:
        """Return the group that a pod names: its kind and its name in the pod's namespace. None where there is none, or none of that kind is served."""
        found = _reference(pod)
        return found if found is not None and found[0] in self._groups else None

    def gang(self, reference: tuple[Resource, str], namespace: str) -> Gang | None:
        """Return what a group asks for, or None while it does not exist."""
        resource, name = reference
        tree = self._groups[resource].get(name, namespace)
        if tree is None:
            # The coscheduling plugin lets pods of a group that is not there through; the others wait for it
            return Gang(1) if resource is COSCHEDULING_POD_GROUPS else None
        spec = tree.get("spec") or {}
        if resource is not POD_GROUPS:
            return Gang(int(spec.get("minMember") or 1))
        gang = (spec.get("schedulingPolicy") or {}).get("gang")
        constraints = ((spec.get("schedulingConstraints") or {}).get("topology") or ()) if self._topology else ()
        return Gang(gang["minCount"] if gang else 1, constraints[0]["key"] if constraints else None, tree)

    def native(self, pod: Tree) -> Tree | None:
        """Return the PodGroup of scheduling.k8s.io that a pod names, or None where there is none."""
        group = pod["spec"].get("schedulingGroup")
        groups = self._groups.get(POD_GROUPS) if group else None
        return groups.get(group["podGroupName"], pod["metadata"]["namespace"]) if groups is not None and group.get("podGroupName") else None

    def bar(self, gang: Gang) -> str:
        """Return why the pods of a group do not preempt one by one, or ""."""
        if gang.tree is None or not self.as_wholes:
            return ""
        placements = self._topology and (gang.tree.get("spec") or {}).get("schedulingConstraints")
        return MEMBERS_OF_PLACEMENTS_DO_NOT if placements else MEMBERS_DO_NOT

    def members(self, reference: tuple[Resource, str], namespace: str) -> list[Tree]:
        """Return all pods that name a group."""
        return [pod for pod in self._pods.by_index("gang", f"{namespace}/{reference[1]}") if _reference(pod) == reference]


def _reference(pod: Tree) -> tuple[Resource, str] | None:
    group = pod["spec"].get("schedulingGroup")
    if group and group.get("podGroupName"):
        return POD_GROUPS, group["podGroupName"]
    meta = pod["metadata"]
    labels, annotations = meta.get("labels"), meta.get("annotations")
    if labels and COSCHEDULING_LABEL in labels:
        return COSCHEDULING_POD_GROUPS, labels[COSCHEDULING_LABEL]
    if annotations and VOLCANO_ANNOTATION in annotations:
        return VOLCANO_POD_GROUPS, annotations[VOLCANO_ANNOTATION]
    return None


def counted(members: Sequence[Tree]) -> list[Tree]:
    """Return the members that count towards a quorum: those that live, and those that have done their part."""
    return [pod for pod in members if (pod.get("status") or {}).get("phase") != "Failed"]


def started(members: Sequence[Tree]) -> int:
    """Return how many members are bound or have succeeded."""
    return sum(1 for pod in counted(members) if pod["spec"].get("nodeName") or (pod.get("status") or {}).get("phase") in TERMINAL)


def short(gang: Gang | None, name: str, members: Sequence[Tree]) -> str:
    """Return what a group waits for before any of it is looked at, or ""."""
    if gang is None:
        return f'waiting for pods\'s pod group "{name}" to appear in scheduling queue'
    if len(counted(members)) < gang.minimum:
        return "waiting for minCount pods from a gang to appear in scheduling queue"
    return ""
