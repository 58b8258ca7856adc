"""What the generic loop asks of a kind of job. Pure: trees in, trees out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from kubemini.api.resources import Resource
from kubemini.api.trees import Tree
from kubemini.machinery.errors import KubeminiError


class Permanent(KubeminiError):
    """A start that can never work: the Workload ends as FailedToStart."""


@dataclass(slots=True)
class PodSetInfo:
    """What the pods of one pod set get when they start, or had before they started."""

    name: str
    count: int
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    node_selector: dict[str, str] = field(default_factory=dict)
    tolerations: list[Tree] = field(default_factory=list)
    gates: list[Tree] = field(default_factory=list)

    def merge(self, other: PodSetInfo) -> None:
        """Add another info. Raise `Permanent` where the two contradict each other."""
        _merge(self.annotations, other.annotations, "annotations")
        _merge(self.labels, other.labels, "labels")
        _merge(self.node_selector, other.node_selector, "nodeSelector")
        self.tolerations += [each for each in other.tolerations if each not in self.tolerations]
        self.gates += [each for each in other.gates if each not in self.gates]


def _merge(into: dict[str, str], more: Mapping[str, str], what: str) -> None:
    for key in sorted(more):
        if key in into and into[key] != more[key]:
            raise Permanent(f"conflict for {what}: conflict for key={key}, value1={into[key]}, value2={more[key]}")
        into[key] = more[key]


def info_of(name: str, count: int, template: Tree) -> PodSetInfo:
    """Return what a pod template has of its own."""
    meta, spec = template.get("metadata") or {}, template["spec"]
    return PodSetInfo(
        name,
        count,
        dict(meta.get("labels") or {}),
        dict(meta.get("annotations") or {}),
        dict(spec.get("nodeSelector") or {}),
        list(spec.get("tolerations") or ()),
        list(spec.get("schedulingGates") or ()),
    )


def merged(template: Tree, info: PodSetInfo) -> Tree:
    """Return a pod template with an info added. Raise `Permanent` on contradictions."""
    whole = info_of(info.name, info.count, template)
    whole.merge(info)
    return with_info(template, whole)


def with_info(template: Tree, info: PodSetInfo) -> Tree:
    """Return a pod template with exactly what an info says."""
    meta = dict(template.get("metadata") or {})
    spec = dict(template["spec"])
    for tree, key, value in (
        (meta, "labels", info.labels),
        (meta, "annotations", info.annotations),
        (spec, "nodeSelector", info.node_selector),
        (spec, "tolerations", info.tolerations),
        (spec, "schedulingGates", info.gates),
    ):
        if value:
            tree[key] = value
        else:
            tree.pop(key, None)
    return {**template, "metadata": meta, "spec": spec}


@dataclass(frozen=True, slots=True)
class Finish:
    """How a job ended."""

    success: bool
    message: str


class Stop:
    """Returned by steps of the loop after which a pass ends."""


class Integration(Protocol):
    """One kind of job."""

    name: str
    """As in ``integrations.frameworks``: ``batch/job``."""
    resource: Resource

    def is_suspended(self, job: Tree) -> bool:
        """Tell whether the job is suspended for good (not on its way there)."""
        ...

    def is_active(self, job: Tree) -> bool:
        """Tell whether pods of it still run."""
        ...

    def finished(self, job: Tree) -> Finish | None:
        """Return how the job ended, or None."""
        ...

    def pod_sets(self, job: Tree) -> list[Tree]:
        """Return the pod sets of its Workload."""
        ...

    def pods_ready(self, job: Tree) -> bool:
        """Tell whether all its pods are ready or have succeeded."""
        ...

    def reclaimable(self, job: Tree) -> list[Tree]:
        """Return the pods that are done: [{name, count}]."""
        ...

    def suspended(self, job: Tree) -> Tree:
        """Return the job, suspended and nothing else."""
        ...

    def start(self, job: Tree, infos: Sequence[PodSetInfo]) -> Tree:
        """Return the job as it runs. Raise `Permanent`."""
        ...

    def stop(self, job: Tree, infos: Sequence[PodSetInfo] | None) -> tuple[Tree, str] | None:
        """Return the next write on the way to a stop: the object, and "status" or "". None when it is stopped and restored (nothing is restored without infos)."""
        ...
