"""What failed Jobs lead to: the first rule that matches one of them decides, without a match the JobSet restarts.

Of several failed Jobs the one that failed first is named; all failures of one attempt cost one restart, for afterwards every Job of the attempt is previous.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kubemini.api.trees import Tree
from kubemini.api.wellknown import jobset as names
from kubemini.controllers.jobset.children import Child, number
from kubemini.controllers.jobset.errors import Stalled
from kubemini.controllers.jobset.status import StatusDraft
from kubemini.controllers.jobset.view import JobSetView
from kubemini.machinery.regexes import RegexError, found
from kubemini.runtime.env import from_stamp

FAILED_JOBS_MESSAGE = "jobset failed due to one or more job failures"
REACHED_MAX_MESSAGE = "jobset failed due to reaching max number of restarts"


@dataclass(frozen=True, slots=True)
class Fail:
    """The JobSet fails."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Restart:
    """All Jobs start anew: `reason` of the condition, `event` of the event."""

    reason: str
    event: str
    message: str
    counted: bool


@dataclass(frozen=True, slots=True)
class RestartJob:
    """One Job starts anew."""

    role: str
    index: int
    replicas: int
    event: str
    message: str
    counted: bool


Decision = Fail | Restart | RestartJob


def decide(js: JobSetView, failed: Sequence[Child], *, restart_job: bool) -> Decision:
    """Return what is to be done about the failed Jobs, of which there is at least one; `restart_job` is the gate.

    Raise `Stalled` where a rule wants what the gate forbids, or a Job's labels are broken.
    """
    policy = js.failure_policy
    if policy is None:
        return Fail(names.FAILED_JOBS, _about(FAILED_JOBS_MESSAGE, first_failed(failed)))
    rule, job = _match(policy.get("rules") or (), failed)
    action = rule["action"] if rule is not None else "RestartJobSet"
    return _ACTIONS[action](js, job, rule, restart_job)


def apply(decision: Decision, draft: StatusDraft) -> None:
    """Write a decision into the status."""
    match decision:
        case Fail():
            draft.fail(decision.reason, decision.message)
        case Restart():
            draft.restart(decision.reason, decision.event, decision.message, counted=decision.counted)
        case RestartJob():
            draft.restart_job(decision.role, decision.index, decision.event, decision.message, replicas=decision.replicas, counted=decision.counted)


# ----------------------------------------------------------------------------------------------- rules


def _match(rules: Sequence[Tree], failed: Sequence[Child]) -> tuple[Tree | None, Child]:
    """Return the first rule that matches a Job, and of those Jobs the first that failed; without a match the first failed Job of all."""
    for rule in rules:
        matching = [job for job in failed if _applies(rule, job)]
        if matching:
            return rule, first_failed(matching)
    return None, first_failed(failed)


def _applies(rule: Tree, job: Child) -> bool:
    failure = job.failure
    if (reasons := rule.get("onJobFailureReasons")) and failure.get("reason", "") not in reasons:
        return False
    patterns = rule.get("onJobFailureMessagePatterns")
    if patterns and not any(_found(pattern, failure.get("message", "")) for pattern in patterns):
        return False
    role = job.role
    targets = rule.get("targetReplicatedJobs")
    return bool(role) and (not targets or role in targets)


def _found(pattern: str, message: str) -> bool:
    """Search a message for an RE2 pattern; one that does not compile finds nothing."""
    try:
        return found(pattern, message)
    except RegexError:
        return False


def first_failed(failed: Sequence[Child]) -> Child:
    """Return the Job that failed first; of those that failed within the same second the first of the list."""
    return min(failed, key=lambda job: from_stamp(job.failure["lastTransitionTime"]))


def _about(message: str, job: Child) -> str:
    return f"{message} (first failed job: {job.name})"


# ----------------------------------------------------------------------------------------------- actions


def _fail(js: JobSetView, job: Child, rule: Tree | None, gate: bool) -> Decision:
    return Fail(names.FAIL_JOB_SET_ACTION, _about("applying FailJobSet failure policy action", job))


def _restart(js: JobSetView, job: Child, rule: Tree | None, gate: bool) -> Decision:
    if counted(js, restart_job=gate) >= js.max_restarts:
        return _reached(job)
    return Restart(_reason(rule), names.RESTART_JOB_SET_ACTION, _about("applying RestartJobSet failure policy action", job), counted=True)


def _restart_for_free(js: JobSetView, job: Child, rule: Tree | None, gate: bool) -> Decision:
    message = _about("applying RestartJobSetAndIgnoreMaxRestarts failure policy action", job)
    return Restart(_reason(rule), names.RESTART_JOB_SET_IGNORE_ACTION, message, counted=False)


def _restart_job(js: JobSetView, job: Child, rule: Tree | None, gate: bool) -> Decision:
    _check_gate("RestartJob", gate)
    if counted(js, restart_job=True) >= js.max_restarts:
        return _reached(job)
    return _single(js, job, names.RESTART_JOB_ACTION, "applying RestartJob failure policy action", counted=True)


def _restart_job_for_free(js: JobSetView, job: Child, rule: Tree | None, gate: bool) -> Decision:
    _check_gate("RestartJobAndIgnoreMaxRestarts", gate)
    return _single(js, job, names.RESTART_JOB_IGNORE_ACTION, "applying RestartJobAndIgnoreMaxRestarts failure policy action", counted=False)


_Action = Callable[[JobSetView, Child, Tree | None, bool], Decision]
_ACTIONS: dict[str, _Action] = {
    "FailJobSet": _fail,
    "RestartJobSet": _restart,
    "RestartJobSetAndIgnoreMaxRestarts": _restart_for_free,
    "RestartJob": _restart_job,
    "RestartJobAndIgnoreMaxRestarts": _restart_job_for_free,
}


def counted(js: JobSetView, *, restart_job: bool) -> int:
    """Return how many restarts count towards the limit; with the gate, restarts of single Jobs too."""
    total = int(js.status.get("restartsCountTowardsMax", 0))
    if restart_job:
        for role in js.status.get("replicatedJobsStatus") or ():
            total += sum(role.get("jobRestartsCountTowardsMax") or ())
    return total


def _reached(job: Child) -> Fail:
    return Fail(names.REACHED_MAX_RESTARTS, _about(REACHED_MAX_MESSAGE, job))


def _reason(rule: Tree | None) -> str:
    return names.DEFAULT_FAILURE_POLICY if rule is None else names.FAILURE_POLICY_PREFIX + str(rule["name"])


def _check_gate(action: str, gate: bool) -> None:
    if not gate:
        raise Stalled(f"{action} failure policy action cannot be used when the feature gate RestartJob is disabled")


def _single(js: JobSetView, job: Child, event: str, message: str, *, counted: bool) -> RestartJob:
    role = js.role(job.role)
    if role is None:
        raise Stalled(f"failed job {job.name} missing {names.REPLICATED_JOB} label")
    index = number(job.labels, names.JOB_INDEX)
    if not 0 <= index < role.replicas:
        raise Stalled(f"failed job {job.name} has index {index} out of bounds for replicated job {role.name} (replicas: {role.replicas})")
    return RestartJob(role.name, index, role.replicas, event, _about(message, job), counted)
