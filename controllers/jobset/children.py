"""The child Jobs of a JobSet, sorted into what they mean for the current attempt, and the counts per role that follow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kubemini.api.trees import Tree
from kubemini.api.wellknown import jobset as names
from kubemini.controllers.jobset.errors import Stalled
from kubemini.controllers.jobset.view import JobSetView, role_of


@dataclass(slots=True)
class Children:
    """The four buckets. `previous` are of an earlier attempt and count nowhere; the others are of the current one."""

    active: list[Tree] = field(default_factory=list)
    successful: list[Tree] = field(default_factory=list)
    failed: list[Tree] = field(default_factory=list)
    previous: list[Tree] = field(default_factory=list)
    names: dict[str, None] = field(default_factory=dict)
    """Names that are taken, whatever the bucket: no Job is made again while its predecessor exists."""
    newest: int = 0
    """The highest attempt that a Job carries: above the JobSet's, the JobSet was read from a cache that is behind."""


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


def sort_out(js: JobSetView, jobs: Iterable[Tree], *, restart_job: bool) -> Children:
    """Sort owned Jobs into buckets; `restart_job` is the gate. Raise `Stalled` where a label that this stands on is broken."""
    found = Children()
    restarts = js.restarts
    single: dict[str, Sequence[int]] = {}
    if restart_job:
        single = {each["name"]: each.get("jobRestarts") or () for each in js.status.get("replicatedJobsStatus") or ()}
    for job in jobs:
        meta = job["metadata"]
        labels = meta.get("labels") or {}
        attempt = _number(labels, names.RESTART_ATTEMPT)
        found.names[meta["name"]] = None
        found.newest = max(found.newest, attempt)
        if attempt < restarts or (restart_job and _restarted_alone(js, labels, single)):
            found.previous.append(job)
            continue
        end = finished(job)
        bucket = found.active if end == "" else found.failed if end == "Failed" else found.successful
        bucket.append(job)
    return found


def _restarted_alone(js: JobSetView, labels: Tree, single: dict[str, Sequence[int]]) -> bool:
    """Tell whether a Job is older than what its own restarts ask for."""
    role = labels.get(names.REPLICATED_JOB)
    if role is None:
        raise Stalled(f"missing label {names.REPLICATED_JOB}")
    index = _number(labels, names.JOB_INDEX)
    if names.JOB_RESTART_ATTEMPT not in labels:
        # made before the gate was switched on: it is taken for current
        return False
    attempt = _number(labels, names.JOB_RESTART_ATTEMPT)
    wanted = single.get(role) or ()
    if not wanted:
        known = js.role(role)
        if index >= (known.replicas if known is not None else 0):
            raise Stalled(f"job index {index} is out of bounds for replicated job {role}")
        return False
    if index >= len(wanted):
        raise Stalled(f"job index {index} is out of bounds for replicated job {role}")
    return attempt < wanted[index]


def _number(labels: Tree, key: str) -> int:
    text = labels.get(key)
    if text is None and key != names.RESTART_ATTEMPT:
        raise Stalled(f"missing label {key}")
    try:
        return int(text or "")
    except ValueError:
        raise Stalled(f"invalid value for label {key}, must be integer") from None


def finished(job: Tree) -> str:
    """Return ``Complete`` or ``Failed`` for a finished Job, "" for any other (also one that is about to finish, or is being deleted)."""
    for condition in (job.get("status") or {}).get("conditions") or ():
        if condition["status"] == "True" and condition["type"] in ("Complete", "Failed"):
            return str(condition["type"])
    return ""


def count(js: JobSetView, children: Children, *, restart_job: bool) -> dict[str, RoleCounts]:
    """Return the counts of every role of the spec, by name. Jobs without a known role count nowhere."""
    counts = {role.name: RoleCounts(role.name) for role in js.roles}
    if restart_job:
        for before in js.status.get("replicatedJobsStatus") or ():
            mine = counts.get(before["name"])
            if mine is not None:
                mine.job_restarts = before.get("jobRestarts") or ()
                mine.job_restarts_counted = before.get("jobRestartsCountTowardsMax") or ()
    for job in children.active:
        mine = counts.get(role_of(job))
        if mine is not None:
            status = job.get("status") or {}
            mine.ready += is_ready(job)
            mine.active += status.get("active", 0) > 0
            mine.suspended += bool(job["spec"].get("suspend"))
    for job in children.successful:
        mine = counts.get(role_of(job))
        if mine is not None:
            mine.succeeded += 1
    for job in children.failed:
        mine = counts.get(role_of(job))
        if mine is not None:
            mine.failed += 1
    return counts


def is_ready(job: Tree) -> bool:
    """Tell whether as many of an active Job's pods are ready or done as run at a time."""
    status, spec = job.get("status") or {}, job["spec"]
    parallelism = spec.get("parallelism", 1)
    wanted = min(parallelism, spec.get("completions", parallelism))
    return bool(status.get("succeeded", 0) + status.get("ready", 0) >= wanted)


def glance(job: Tree) -> tuple[object, ...]:
    """Return all of a Job that a pass over its JobSet reads, for telling whether a change matters."""
    meta, status = job["metadata"], job.get("status") or {}
    return (
        meta["uid"],
        "deletionTimestamp" in meta,
        meta.get("generation"),
        meta.get("labels"),
        finished(job),
        is_ready(job),
        status.get("active", 0) > 0,
    )
