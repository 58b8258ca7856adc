"""What the Job controller counts, by upstream's names, labels and buckets (Kubernetes 1.36). Counters of pods and indexes move with the status that was written."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.controllers.job import indexes
from kubemini.controllers.job.counting import Counts
from kubemini.controllers.job.pods import phase, tracked
from kubemini.controllers.job.verdict import Verdict
from kubemini.controllers.job.view import JobView
from kubemini.runtime.consistency import StaleSkips
from kubemini.runtime.telemetry import Counter, Families, Histogram, exponential

RECONCILING, TRACKING, CREATED, DELETED = "reconciling", "tracking", "pods_created", "pods_deleted"
"""What a pass did to the pods: nothing yet, nothing as all is as it should be, or made or deleted some."""


class Metrics:
    """The counters of one controller process."""

    def __init__(self) -> None:
        of_pass = ("completion_mode", "result", "action")
        name = "job_controller_{}".format
        self.durations = Histogram(name("job_sync_duration_seconds"), "The time it took to sync a job", of_pass, exponential(0.004, 2, 15))
        self.passes = Counter(name("job_syncs_total"), "The number of job syncs", of_pass)
        self.finished = Counter(name("jobs_finished_total"), "The number of finished jobs", ("completion_mode", "result", "reason"))
        self.pods_finished = Counter(
            name("job_pods_finished_total"), "The number of finished Pods that are fully tracked", ("completion_mode", "result")
        )
        self.indexes_finished = Counter(name("job_finished_indexes_total"), "The number of finished indexes", ("status", "backoffLimit"))
        self.by_policy = Counter(
            name("pod_failures_handled_by_failure_policy_total"),
            "The number of failed Pods that a rule of the failure policy matched, by its action",
            ("action",),
        )
        self.tracking = Counter(
            name("terminated_pods_tracking_finalizer_total"),
            "The number of terminated pods (phase=Failed|Succeeded) that have the finalizer batch.kubernetes.io/job-tracking, by event add or delete",
            ("event",),
        )
        self.creations = Counter(
            name("job_pods_creation_total"),
            "The number of Pods that were to be created, by the reason for it and whether it worked",
            ("reason", "status"),
        )
        self.foreign = Counter(
            name("jobs_by_external_controller_total"), "The number of Jobs managed by an external controller", ("controller_name",)
        )
        self.stale = StaleSkips("job", "Job")

    def all(self) -> Families:
        """Return every family."""
        return (
            self.durations,
            self.passes,
            self.finished,
            self.pods_finished,
            self.indexes_finished,
            self.by_policy,
            self.tracking,
            self.creations,
            self.foreign,
            self.stale,
        )

    def passed(self, job: JobView, action: str, seconds: float, *, failed: bool) -> None:
        """Count one pass."""
        labels = (_mode(job), "error" if failed else "success", action)
        self.passes.inc(*labels)
        self.durations.observe(seconds, *labels)

    def pod_changed(self, old: Tree | None, new: Tree | None) -> None:
        """Count a pod that ended with the finalizer on, or lost it after it had ended."""
        before, after = _held(old), _held(new)
        if before != after:
            self.tracking.inc("add" if after else "delete")

    def created(self, job: JobView, counts: Counts, failed: int, *, made: int, refused: int) -> None:
        """Count the creations of one pass, after which so many pods of the Job have `failed`."""
        reason = "new"
        if failed and job.spec.get("podReplacementPolicy") == "Failed":
            reason = "recreate_failed"
        elif failed or counts.terminating:
            reason = "recreate_terminating_or_failed"
        if made:
            self.creations.inc(reason, "succeeded", by=made)
        if refused:
            self.creations.inc(reason, "failed", by=refused)

    def written(self, job: JobView, before: Tree, after: Tree) -> None:
        """Count what a status that was written tells beyond the one before; nothing is counted too, so that the sample is there."""
        mode = _mode(job)
        succeeded = after.get("succeeded", 0) - before.get("succeeded", 0)
        if job.indexed:
            limit = "global" if job.per_index is None else "perIndex"
            succeeded = _more(before, after, "completedIndexes", job.completions_or_zero)
            self.indexes_finished.inc("succeeded", limit, by=max(succeeded, 0))
            given_up = _more(before, after, "failedIndexes", job.completions_or_zero)
            if given_up > 0:
                self.indexes_finished.inc("failed", limit, by=given_up)
        self.pods_finished.inc(mode, "succeeded", by=max(succeeded, 0))
        self.pods_finished.inc(mode, "failed", by=max(after.get("failed", 0) - before.get("failed", 0), 0))

    def ended(self, job: JobView, verdict: Verdict) -> None:
        """Count a Job that has finished, and why."""
        self.finished.inc(_mode(job), "failed" if verdict.failure else "succeeded", verdict.reason)


def _mode(job: JobView) -> str:
    return "Indexed" if job.indexed else "NonIndexed"


def _held(pod: Tree | None) -> bool:
    return pod is not None and phase(pod) in ("Succeeded", "Failed") and tracked(pod)


def _more(before: Tree, after: Tree, key: str, completions: int) -> int:
    """Return how many more indexes there are, of those that the Job still has: what a scale-down drops makes up for nothing."""
    one, other = before.get(key) or "", after.get(key) or ""
    return 0 if one == other else indexes.size(other, completions) - indexes.size(one, completions)
