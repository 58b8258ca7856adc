"""Typed read-only views of a JobSet and of its replicated jobs, here called roles."""

from __future__ import annotations

from functools import cached_property

from kubemini.api.trees import Tree
from kubemini.api.wellknown import jobset as names


class Role:
    """One entry of ``spec.replicatedJobs``; nothing is copied."""

    __slots__ = ("depends_on", "group", "job_spec", "name", "pod_spec", "pod_template", "replicas", "template", "template_meta")

    def __init__(self, tree: Tree) -> None:
        self.name: str = tree["name"]
        self.replicas: int = tree.get("replicas", 1)
        self.group: str = tree.get("groupName", "default")
        self.template: Tree = tree.get("template") or {}
        self.template_meta: Tree = self.template.get("metadata") or {}
        self.job_spec: Tree = self.template.get("spec") or {}
        self.pod_template: Tree = self.job_spec.get("template") or {}
        self.pod_spec: Tree = self.pod_template.get("spec") or {}
        self.depends_on: list[Tree] = tree.get("dependsOn") or []


class JobSetView:
    """Properties over one revision of a JobSet."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.meta: Tree = tree["metadata"]
        self.spec: Tree = tree.get("spec") or {}
        self.status: Tree = tree.get("status") or {}
        self.name: str = self.meta["name"]
        self.namespace: str = self.meta["namespace"]
        self.uid: str = self.meta["uid"]
        self.suspended: bool = bool(self.spec.get("suspend"))
        self.restarts: int = self.status.get("restarts", 0)
        """Global restarts so far: the attempt."""

    @cached_property
    def roles(self) -> list[Role]:
        """The roles in the order of the spec."""
        return [Role(tree) for tree in self.spec.get("replicatedJobs") or ()]

    @cached_property
    def replicas(self) -> int:
        """How many Jobs all roles have together."""
        return sum(role.replicas for role in self.roles)

    @property
    def deleting(self) -> bool:
        """Whether the JobSet is being deleted."""
        return "deletionTimestamp" in self.meta

    @property
    def foreign(self) -> bool:
        """Whether another controller manages the JobSet (``spec.managedBy``)."""
        return self.spec.get("managedBy") not in (None, names.BUILT_IN_CONTROLLER)

    @cached_property
    def end(self) -> Tree | None:
        """The condition that ended the JobSet, Completed or Failed, None while it is unfinished."""
        for condition in self.status.get("conditions") or ():
            if condition["type"] in (names.COMPLETED, names.FAILED) and condition["status"] == "True":
                found: Tree = condition
                return found
        return None

    @property
    def failure_policy(self) -> Tree | None:
        """``spec.failurePolicy``."""
        return self.spec.get("failurePolicy")

    @property
    def max_restarts(self) -> int:
        """How many restarts the failure policy allows; 0 without one."""
        return int((self.failure_policy or {}).get("maxRestarts", 0))

    @property
    def strategy(self) -> str:
        """The restart strategy, Recreate by default."""
        return str((self.failure_policy or {}).get("restartStrategy", "Recreate"))

    @property
    def in_order(self) -> bool:
        """Whether roles start one after the other."""
        return (self.spec.get("startupPolicy") or {}).get("startupPolicyOrder") == "InOrder"

    def role(self, name: str) -> Role | None:
        """Return a role by name, or None."""
        return next((role for role in self.roles if role.name == name), None)


def job_name(jobset: str, role: str, index: int) -> str:
    """Return the name of a child Job.

    >>> job_name("train", "worker", 3)
    'train-worker-3'
    """
    return f"{jobset}-{role}-{index}"
