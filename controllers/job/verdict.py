"""Whether a Job has come to its end, and how: the checks of a sync in upstream's order."""

from __future__ import annotations

from dataclasses import dataclass

from kubemini.controllers.job import pod_failure_policy, success_policy
from kubemini.controllers.job.counting import Counts
from kubemini.controllers.job.pods import phase, restarts
from kubemini.controllers.job.view import JobView


@dataclass(frozen=True, slots=True)
class Verdict:
    """The end of a Job: `type` is FailureTarget or SuccessCriteriaMet."""

    type: str
    reason: str
    message: str

    @property
    def failure(self) -> bool:
        """Whether the Job fails."""
        return self.type == "FailureTarget"


REACHED = Verdict("SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods")


def _failed(reason: str, message: str) -> Verdict:
    return Verdict("FailureTarget", reason, message)


def judge(
    job: JobView, counts: Counts, *, failed: int, completed: list[int], failed_indexes: list[int] | None, now: float, started: float | None
) -> Verdict | None:
    """Return the verdict of the first check that holds, or None. `failed` counts old, uncounted and newly failed pods that are not ignored."""
    for type_ in ("SuccessCriteriaMet", "FailureTarget"):
        standing = job.true(type_)
        if standing is not None:
            return Verdict(type_, standing.get("reason", ""), standing.get("message", ""))
    policy = job.spec.get("podFailurePolicy")
    if policy:
        for pod in counts.all_failed:
            match = pod_failure_policy.match(policy, pod)
            if match.action == "FailJob":
                return _failed("PodFailurePolicy", match.message)
    if failed > job.backoff_limit or _restarted_too_often(job, counts):
        return _failed("BackoffLimitExceeded", "Job has reached the specified backoff limit")
    deadline = job.spec.get("activeDeadlineSeconds")
    if deadline is not None and not job.suspended and started is not None and now - started >= deadline:
        return _failed("DeadlineExceeded", "Job was active longer than specified deadline")
    if failed_indexes is not None:
        limit = job.spec.get("maxFailedIndexes")
        if limit is not None and len(failed_indexes) > limit:
            return _failed("MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes")
        if failed_indexes and len(failed_indexes) + len(completed) >= job.completions_or_zero:
            return _failed("FailedIndexes", "Job has failed indexes")
    if job.indexed and (message := success_policy.met(job.spec.get("successPolicy"), set(completed))):
        return Verdict("SuccessCriteriaMet", "SuccessPolicy", message)
    return None


def _restarted_too_often(job: JobView, counts: Counts) -> bool:
    if (job.spec["template"]["spec"]).get("restartPolicy") != "OnFailure":
        return False
    # Pods that go count as well: a verdict that deleted them and was not written must be found again
    total = sum(restarts(pod) for pod in (*counts.active, *counts.terminating) if phase(pod) in ("Pending", "Running"))
    return total > 0 if job.backoff_limit == 0 else total >= job.backoff_limit


def is_complete(job: JobView, counts: Counts, succeeded: int) -> bool:
    """Tell whether the Job has all the successes it needs and nothing runs any more."""
    if counts.active:
        return False
    if job.completions is None:
        return succeeded > 0
    return succeeded >= job.completions
