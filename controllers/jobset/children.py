"""The child Jobs of a JobSet, sorted into what they mean for the current attempt, and the counts per role that follow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kubemini.api.trees import Tree
from kubemini.api.wellknown import jobset as names
from kubemini.controllers.jobset.errors import Stalled
from kubemini.controllers.jobset.view import JobSetView
from kubemini.machinery.gotext import is_decimal


class Child:
    """One revision of an owned Job, with what a pass asks of it. Raise `Stalled` for a Job whose attempt cannot be read."""

    __slots__ = ("active", "attempt", "deleting", "end", "labels", "name", "ready", "role", "suspended", "tree", "uid")

    def __init__(self, tree: Tree) -> None:
        meta, spec, status = tree["metadata"], tree["spec"], tree.get("status") or {}
        self.tree = tree
        self.name: str = meta["name"]
        self.uid: str = meta["uid"]
        self.labels: Tree = meta.get("labels") or {}
        self.role: str = self.labels.get(names.REPLICATED_JOB, "")
        """The role that the label names, "" without one."""
        self.attempt = number(self.labels, names.RESTART_ATTEMPT)
        self.deleting = "deletionTimestamp" in meta
        self.suspended = bool(spec.get("suspend"))
        self.end = _end(status)
        """``Complete`` or ``Failed`` for a finished Job, "" for any other (also one that is about to finish)."""
        self.active: bool = status.get("active", 0) > 0
        parallelism = spec.get("parallelism", 1)
        wanted = min(parallelism, spec.get("completions", parallelism))
        self.ready: bool = status.get("succeeded", 0) + status.get("ready", 0) >= wanted
        """Whether as many of the Job's pods are ready or done as run at a time."""

    @property
    def failure(self) -> Tree:
        """The condition that tells how a failed Job failed."""
        return next(each for each in self.tree["status"]["conditions"] if each["type"] == "Failed" and each["status"] == "True")


def _end(status: Tree) -> str:
    for condition in status.get("conditions") or ():
        if condition["status"] == "True" and condition["type"] in ("Complete", "Failed"):
            return str(condition["type"])
    return ""


def number(labels: Tree, key: str) -> int:
    """Return a label that is to hold a number. Raise `Stalled`."""
    text = labels.get(key)
    if text is None:
        raise Stalled(f"missing label {key}")
    if not is_decimal(text.removeprefix("-")):
        raise Stalled(f"invalid value for label {key}, must be integer")
    return int(text)


@dataclass(slots=True)
class Children:
    """The four buckets. `previous` are of an earlier attempt and count nowhere; the others are of the current one."""

    active: list[Child] = field(default_factory=list)
    successful: list[Child] = field(default_factory=list)
    failed: list[Child] = field(default_factory=list)
    previous: list[Child] = field(default_factory=list)
    by_name: dict[str, Child] = field(default_factory=dict)
    """All of them. A name stays taken, whatever the bucket: no Job is made again while its predecessor exists."""
    newest: int = 0
    """The highest attempt that a Job carries: above the JobSet's, the JobSet was read from a cache that is behind."""


def sort_out(js: JobSetView, jobs: Iterable[Tree], known: dict[str, Child], *, restart_job: bool) -> Children:
    """Sort owned Jobs into buckets. `known` are the children of the last pass by name, to be used again where they are the same revision; `restart_job` is the gate.

    Raise `Stalled` where a label that this stands on is broken.
    """
    found = Children()
    restarts = js.restarts
    single: dict[str, Sequence[int]] = {}
    if restart_job:
        single = {each["name"]: each.get("jobRestarts") or () for each in js.status.get("replicatedJobsStatus") or ()}
    for job in jobs:
        child = known.get(job["metadata"]["name"])
        if child is None or child.tree is not job:
            child = Child(job)
        found.by_name[child.name] = child
        found.newest = max(found.newest, child.attempt)
        if child.attempt < restarts or (restart_job and _restarted_alone(js, child, single)):
            found.previous.append(child)
        elif not child.end:
            found.active.append(child)
        elif child.end == "Failed":
            found.failed.append(child)
        else:
            found.successful.append(child)
    return found


def _restarted_alone(js: JobSetView, child: Child, single: dict[str, Sequence[int]]) -> bool:
    """Tell whether a Job is older than what its own restarts ask for."""
    if names.REPLICATED_JOB not in child.labels:
        raise Stalled(f"missing label {names.REPLICATED_JOB}")
    index = number(child.labels, names.JOB_INDEX)
    if names.JOB_RESTART_ATTEMPT not in child.labels:
        # made before the gate was switched on: it is taken for current
        return False
    attempt = number(child.labels, names.JOB_RESTART_ATTEMPT)
    wanted = single.get(child.role) or ()
    role = js.role(child.role)
    if index >= (len(wanted) or (role.replicas if role is not None else 0)):
        raise Stalled(f"job index {index} is out of bounds for replicated job {child.role}")
    return bool(wanted) and attempt < wanted[index]


# ----------------------------------------------------------------------------------------------- counts


@dataclass(slots=True)
class RoleCounts:
    """One entry of ``status.replicatedJobsStatus``."""

    name: str
    ready: int = 0
    succeeded: int = 0
    failed: int = 0
    active: int = 0
    suspended: int = 0
    job_restarts: Sequence[int] = ()
    """Restarts of each single Job (gate RestartJob); empty before the first."""
    job_restarts_counted: Sequence[int] = ()
    """Of these, those that count towards maxRestarts."""

    @property
    def started(self) -> int:
        """How many Jobs have come as far as ready, and what followed."""
        return self.ready + self.succeeded + self.failed

    def render(self) -> Tree:
        """Return the tree."""
        tree: Tree = {
            "name": self.name,
            "ready": self.ready,
            "succeeded": self.succeeded,
            "failed": self.failed,
            "active": self.active,
            "suspended": self.suspended,
        }
        if self.job_restarts:
            tree["jobRestarts"] = list(self.job_restarts)
        if self.job_restarts_counted:
            tree["jobRestartsCountTowardsMax"] = list(self.job_restarts_counted)
        return tree


def count(js: JobSetView, children: Children, *, restart_job: bool) -> dict[str, RoleCounts]:
    """Return the counts of every role of the spec, by name. Jobs without a known role count nowhere."""
    counts = {role.name: RoleCounts(role.name) for role in js.roles}
    if restart_job:
        for before in js.status.get("replicatedJobsStatus") or ():
            mine = counts.get(before["name"])
            if mine is not None:
                mine.job_restarts = before.get("jobRestarts") or ()
                mine.job_restarts_counted = before.get("jobRestartsCountTowardsMax") or ()
    for child in children.active:
        mine = counts.get(child.role)
        if mine is not None:
            mine.ready += child.ready
            mine.active += child.active
            mine.suspended += child.suspended
    for child in children.successful:
        mine = counts.get(child.role)
        if mine is not None:
            mine.succeeded += 1
    for child in children.failed:
        mine = counts.get(child.role)
        if mine is not None:
            mine.failed += 1
    return counts


def matters(old: Tree, new: Tree) -> bool:
    """Tell whether two revisions of a Job differ in anything that a pass over its JobSet reads."""
    before, after = old["metadata"], new["metadata"]
    if before["uid"] != after["uid"] or before.get("generation") != after.get("generation") or before.get("labels") != after.get("labels"):
        return True
    try:
        one, other = Child(old), Child(new)
    except Stalled:
        return True
    return (one.deleting, one.end, one.ready, one.active) != (other.deleting, other.end, other.ready, other.active)
