"""The priority of a Workload: of the WorkloadPriorityClass that its job names, else of the pods' PriorityClass, else of the global default."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names


class Classes(Protocol):
    """Where classes are looked up."""

    def get(self, name: str) -> Tree | None:
        """Return a class by name."""
        ...

    def list(self) -> Sequence[Tree]:
        """Return all classes."""
        ...


@dataclass(frozen=True, slots=True)
class Priority:
    """A value, and the reference that says where it is from."""

    value: int
    reference: Tree | None = None


class ClassMissing(Exception):
    """The class that a job names does not exist."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f'{kind} "{name}" not found')


def label_of(job: Tree) -> str:
    """Return the WorkloadPriorityClass that a job names, or ""."""
    found: str = (job["metadata"].get("labels") or {}).get(names.PRIORITY_CLASS, "")
    return found


def resolve(job: Tree, pod_sets: Iterable[Tree], workload_classes: Classes, pod_classes: Classes) -> Priority:
    """Return the priority of a job's Workload. Raise `ClassMissing`."""
    name = label_of(job)
    if name:
        found = workload_classes.get(name)
        if found is None:
            raise ClassMissing("WorkloadPriorityClass", name)
        return Priority(found["value"], {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": name})
    for pod_set in pod_sets:
        name = pod_set["template"]["spec"].get("priorityClassName", "")
        if name:
            found = pod_classes.get(name)
            if found is None:
                raise ClassMissing("PriorityClass", name)
            return _of_pods(found)
    defaults = [each for each in pod_classes.list() if each.get("globalDefault")]
    if defaults:
        return _of_pods(min(defaults, key=lambda each: (each.get("value", 0), each["metadata"]["name"])))
    return Priority(0)


def _of_pods(found: Tree) -> Priority:
    return Priority(found.get("value", 0), {"group": "scheduling.k8s.io", "kind": "PriorityClass", "name": found["metadata"]["name"]})
