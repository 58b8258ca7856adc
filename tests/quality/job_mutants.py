"""Known defects of Job controllers, made again. Each replaces one function or method for the time of a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kubemini.api.resources import JOBS
from kubemini.api.trees import Tree
from kubemini.controllers.job import accounting, controller, counting, indexes, managing, per_index, pod_failure_policy, success_policy, ttl, verdict
from kubemini.controllers.job.accounting import Accounting, Ended
from kubemini.controllers.job.backoff import Record
from kubemini.controllers.job.controller import JobController
from kubemini.controllers.job.counting import Counts
from kubemini.controllers.job.managing import Plan
from kubemini.controllers.job.pods import FAILURE_COUNT, PodFactory, counter
from kubemini.controllers.job.status import StatusDraft
from kubemini.controllers.job.verdict import Verdict
from kubemini.controllers.job.view import JobView
from kubemini.runtime.env import from_stamp
from kubemini.runtime.expectations import Expectations
from tests.quality import jobs
from tests.quality.searching import Mutant, Scenario, Swap

MUTANTS: list[Mutant] = []


def mutant(name: str, source: str, defect: str, replaced: str, scenario: Scenario[Any], *swaps: Swap) -> None:
    """Add one to the table."""
    MUTANTS.append(Mutant(name, source, defect, replaced, scenario, swaps))


def instead(where: Any, name: str, behaviour: Any) -> Swap:
    """Return the replacement of one attribute."""
    return Swap(where, name, behaviour)


# ----------------------------------------------------------------------------------------------- counting


def _count_without_removing(job: JobView, pods: Sequence[Tree], removing: dict[str, None]) -> Counts:
    return counting.count(job, pods, {})


mutant(
    "pod-counted-twice",
    "kubernetes#130103",
    "a pod whose finalizer is gone, though the cache does not show it, is counted again",
    "counting.count forgets which finalizers are on their way out",
    jobs.DISTURBED,
    instead(controller, "count", _count_without_removing),
)

mutant(
    "uncounted-pod-counted-again",
    "kubernetes#125410",
    "a pod that is in an uncounted list is taken for newly ended, and with a turned phase enters both lists",
    "JobView.uncounted_uids is empty",
    jobs.FLIPPING,
    instead(JobView, "uncounted_uids", frozenset()),
)


def _prepare_both(self: Accounting, job: JobView, draft: StatusDraft, ended: Ended, found: Verdict | None, stamp: str) -> Verdict | None:
    ended.failed += [uid for uid in ended.succeeded if uid not in ended.failed]
    return _PREPARE(self, job, draft, ended, found, stamp)


_PREPARE = Accounting.prepare

mutant(
    "pod-in-both-lists",
    "kubernetes#125410",
    "a pod enters both uncounted lists, and the status is refused for ever",
    "Accounting.prepare lists succeeded pods as failed too",
    jobs.FAILING,
    instead(Accounting, "prepare", _prepare_both),
)


async def _flush_release_first(self: Accounting, job: JobView, draft: StatusDraft, ended: Ended, removing: dict[str, None], *rest: Any) -> None:
    await self._release(ended.release, removing)
    await _FLUSH(self, job, draft, ended, removing, *rest)


_FLUSH = Accounting.flush

mutant(
    "finalizer-goes-first",
    "kubernetes/enhancements#2308",
    "the finalizer is removed before the status knows of the pod: a crash or a conflict in between forgets it",
    "Accounting.flush releases before it writes",
    jobs.LOST_WRITES,
    instead(Accounting, "flush", _flush_release_first),
)


def managing_indexes(text: str) -> list[str]:
    """Return the runs of a text of indexes."""
    return [run for run in text.split(",") if run]


mutant(
    "runs-counted-for-indexes",
    "kubernetes#99865",
    "an Indexed Job's succeeded is not the number of distinct completed indexes",
    "accounting._how_many counts runs",
    jobs.FAILING,
    instead(accounting, "_how_many", lambda text: len(managing_indexes(text))),
)


def _completed_kept(job: JobView, counts: Counts) -> list[int]:
    if job.indexed and not counts.succeeded:
        return indexes.parse(job.status.get("completedIndexes"))
    return counting.completed_indexes(job, counts)


mutant(
    "completed-indexes-out-of-range",
    "kubernetes#115349",
    "completed indexes above completions stay when an elastic Job shrinks and nothing new completes",
    "counting.completed_indexes works anew only when a pod has succeeded",
    jobs.ELASTIC,
    instead(controller, "completed_indexes", _completed_kept),
)


async def _no_release(self: JobController, pods: Sequence[Tree]) -> None:
    return


mutant(
    "pods-keep-the-finalizer",
    "kubernetes#109429",
    "pods of a Job that has ended or gone keep the tracking finalizer, and their deletion is stuck",
    "JobController._release does nothing",
    jobs.REPLACED,
    instead(JobController, "_release", _no_release),
)


async def _forget_memory_only(self: JobController, key: str) -> None:
    self._memory.pop(key, None)


mutant(
    "made-anew-leaves-pods",
    "kubernetes#108645, found here",
    "a Job is deleted and made anew before the controller looks: the pods of the first one keep their finalizer for ever",
    "JobController._forget drops what it knows and releases no pod",
    jobs.REPLACED,
    instead(JobController, "_forget", _forget_memory_only),
)


async def _finish_counting_all(self: JobController, job: JobView, draft: StatusDraft, ended: Ended, found: Verdict | None, *rest: Any) -> None:
    if found is not None:
        known = {*ended.failed, *ended.succeeded, *job.uncounted_uids}
        ended.failed += [
            uid for pod in ended.release if (uid := pod["metadata"]["uid"]) not in known and (pod.get("status") or {}).get("phase") != "Succeeded"
        ]
    await _ACCOUNT(self, job, draft, ended, found, *rest)


_ACCOUNT = JobController._account

mutant(
    "success-policy-counts-failures",
    "kubernetes#123412",
    "pods that go because the success policy is satisfied count as failed",
    "JobController._account lists every pod that the verdict took as failed",
    jobs.SUCCESS_POLICY,
    instead(JobController, "_account", _finish_counting_all),
)


def _collect_ignoring_removing(
    job: JobView, counts: Counts, found: Verdict | None, removed: Sequence[Tree], ignored: Any, failed_indexes: Any, removing: Any
) -> Ended:
    return accounting.collect(job, counts, found, removed, ignored, failed_indexes)


mutant(
    "counted-again-at-the-end",
    "found here",
    "a terminating pod that was counted as failed is counted again when the Job fails",
    "accounting.collect forgets which finalizers are on their way out",
    jobs.DEADLINE,
    instead(controller, "collect", _collect_ignoring_removing),
)

mutant(
    "end-forgotten",
    "found here",
    "the pods are deleted for one end, writing it does not work, and their deletion is taken for another",
    "_Memory.verdict stays empty",
    jobs.DEADLINE,
    instead(controller._Memory, "verdict", property(lambda self: None, lambda self, value: None)),
)

# ----------------------------------------------------------------------------------------------- stale caches


mutant(
    "expectations-dropped",
    "kubernetes#129795",
    "the controller does not wait for its own creations to show up, and creates them again",
    "Expectations.expect_more expects nothing",
    jobs.FAILING,
    instead(Expectations, "expect_more", lambda self, key, **more: None),
)


mutant(
    "acts-on-a-job-of-the-past",
    "kubernetes#137210",
    "a pass is taken over a cached Job that is older than the controller's own last write",
    "_Memory.written stays 0",
    jobs.FAILING,
    instead(controller._Memory, "written", property(lambda self: 0, lambda self, value: None)),
)


class _OneKey(Expectations[str]):
    """Expectations by name: all incarnations of the one Job share them, and they outlive it."""

    def expect_more(self, key: str, *, creations: int = 0, deletions: Any = ()) -> None:
        super().expect_more("default/j", creations=creations, deletions=deletions)

    def creation_observed(self, key: str) -> None:
        # Pods of the Job that the cache shows are told by its uid: those of the one before are nobody's
        if key == self._first:
            super().creation_observed("default/j")

    def deletion_observed(self, key: str, uid: str) -> None:
        if key == self._first:
            super().deletion_observed("default/j", uid)

    def satisfied(self, key: str) -> bool:
        self._first = key
        return super().satisfied("default/j")

    def forget(self, key: str) -> None:
        return

    _first = ""


mutant(
    "expectations-by-name",
    "kubernetes#131917",
    "a Job made anew under its name inherits open expectations, and gets no pods until they lapse",
    "Expectations are kept by name, and not forgotten with the Job",
    jobs.REPLACED,
    instead(controller, "Expectations", _OneKey),
)

# ----------------------------------------------------------------------------------------------- limits and ends


def _judging(**changes: Any) -> Any:
    def judge(job: JobView, counts: Counts, **found: Any) -> Verdict | None:
        return verdict.judge(job, counts, **{**found, **{name: change(job, found) for name, change in changes.items()}})

    return judge


mutant(
    "limit-one-too-early",
    "kubernetes#60735",
    "the Job fails with as many failures as its back-off limit allows",
    "verdict.judge takes failed >= backoffLimit",
    jobs.FAILING,
    instead(controller, "judge", _judging(failed=lambda job, found: found["failed"] + (1 if found["failed"] else 0))),
)
mutant(
    "limit-one-too-late",
    "kubernetes#70251",
    "the Job makes one more pod than its back-off limit allows",
    "verdict.judge takes failed > backoffLimit + 1",
    jobs.FAILING,
    instead(controller, "judge", _judging(failed=lambda job, found: found["failed"] - 1)),
)
mutant(
    "limit-ignored",
    "kubernetes#62382",
    "the back-off limit is ignored: pods without end",
    "verdict.judge sees no failures",
    jobs.ALWAYS_FAILING,
    instead(controller, "judge", _judging(failed=lambda job, found: 0)),
)
mutant(
    "restarts-do-not-count",
    "kubernetes#54870",
    "restarts of containers do not count towards the back-off limit",
    "verdict._restarted_too_often is never so",
    jobs.NEVER_SUCCEEDING,
    instead(verdict, "_restarted_too_often", lambda job, counts: False),
)
mutant(
    "back-off-not-waited",
    "kubernetes#114391",
    "a failed pod is replaced at once",
    "Record.remaining is 0",
    jobs.FAILING,
    instead(Record, "remaining", lambda self, now: 0.0),
)


def _record_of_last(self: Record, succeeded: Any, failed: Any) -> Record:
    found = _AFTER(self, succeeded, failed)
    return replace(found, failures=min(found.failures, 1))


_AFTER = Record.after

mutant(
    "back-off-does-not-grow",
    "kubernetes#114516",
    "the back-off stays at 10 s however many pods fail in a row",
    "Record.after counts to one",
    jobs.ONE_BY_ONE,
    instead(Record, "after", _record_of_last),
)


def _plan_without_surplus(job: JobView, counts: Counts, **more: Any) -> Plan:
    found = managing.plan(job, counts, **more)
    return Plan(create=found.create, again=found.again)


mutant(
    "surplus-pods-stay",
    "kubernetes#99963",
    "pods above parallelism are not removed",
    "managing.plan deletes nothing",
    jobs.RESIZED,
    instead(controller, "plan", _plan_without_surplus),
)


def _terminal_at_once(self: Accounting, job: JobView, draft: StatusDraft, ended: Ended, found: Verdict | None, stamp: str) -> Verdict | None:
    _PREPARE(self, job, draft, ended, found, stamp)
    draft.terminating = 0
    return found


mutant(
    "ends-before-its-pods",
    "kubernetes#123775",
    "Failed or Complete is set while pods are still terminating",
    "Accounting.prepare does not wait for terminating pods",
    jobs.DEADLINE,
    instead(Accounting, "prepare", _terminal_at_once),
)


def _deadline_from_creation(job: JobView, counts: Counts, **found: Any) -> Verdict | None:
    found["started"] = from_stamp(job.meta["creationTimestamp"])
    return verdict.judge(job, counts, **found)


mutant(
    "deadline-from-creation",
    "kubernetes#98727",
    "time in suspension counts towards the deadline",
    "verdict.judge measures activeDeadlineSeconds from the creation",
    jobs.DEADLINE,
    instead(controller, "judge", _deadline_from_creation),
)
mutant(
    "any-index-satisfies-the-policy",
    "KEP-3998",
    "the success policy is taken for satisfied whichever index has completed",
    "success_policy.met looks at no index",
    jobs.SUCCESS_POLICY,
    instead(success_policy, "met", lambda policy, completed: "Matched rules at index 0" if policy and completed else ""),
)
mutant(
    "success-policy-ignored",
    "KEP-3998",
    "the success policy is never satisfied",
    "success_policy.met never is",
    jobs.SUCCESS_POLICY,
    instead(success_policy, "met", lambda policy, completed: ""),
)

# ----------------------------------------------------------------------------------------------- managing pods

mutant(
    "terminating-pods-ignored",
    "kubernetes#117015",
    "with podReplacementPolicy Failed a pod that still terminates is replaced",
    "JobView.waits_for_end is never so",
    jobs.SLOW_ENDS,
    instead(JobView, "waits_for_end", False),
)


def _free_again(job: JobView, counts: Counts, completed: list[int], failed_indexes: list[int] | None, lack: int) -> list[int]:
    return _FREE(job, counts, [], failed_indexes, lack)


_FREE = managing._free_indexes

mutant(
    "completed-index-runs-again",
    "kubernetes#140839",
    "an index that has completed gets another pod",
    "managing._free_indexes forgets the completed ones",
    jobs.FAILING,
    instead(managing, "_free_indexes", _free_again),
)


def _free_beside(job: JobView, counts: Counts, completed: list[int], failed_indexes: list[int] | None, lack: int) -> list[int]:
    return [index for index in range(job.completions_or_zero) if index not in completed and index not in (failed_indexes or ())][:lack]


mutant(
    "active-index-runs-twice",
    "kubernetes/website#31719",
    "an index that is running gets a second pod",
    "managing._free_indexes forgets the active ones",
    jobs.FAILING,
    instead(managing, "_free_indexes", _free_beside),
)
mutant(
    "counts-of-an-index-lost",
    "KEP-3850",
    "the replacement of a failed pod does not carry its index's failures on: the limit per index is never reached",
    "managing.carried starts at 0",
    jobs.PER_INDEX,
    instead(managing, "carried", lambda pod, *, counted: (0, 0)),
)


def _failed_for_good_early(job: JobView, counts: Counts, matches: Any, completed: list[int]) -> list[int]:
    found = per_index.newly_failed_indexes(job, counts, matches, completed)
    more = (index for index in managing.last_failures(counts.failed_tracked) if index not in completed)
    return sorted({*found, *more})


mutant(
    "index-given-up-early",
    "KEP-3850",
    "an index fails for good at its first failure, whatever its limit",
    "per_index.newly_failed_indexes takes every failed index",
    jobs.PER_INDEX,
    instead(controller, "newly_failed_indexes", _failed_for_good_early),
)


def _forgetting_failed_indexes(job: JobView, counts: Counts, matches: Any, completed: list[int]) -> list[int]:
    limit = job.per_index or 0
    return sorted(
        index
        for index, pod in managing.last_failures(counts.failed_tracked).items()
        if counter(pod, FAILURE_COUNT) >= limit and index not in completed
    )


mutant(
    "failed-index-forgotten",
    "KEP-3850",
    "failed indexes are those of the pods that are there: one whose pod is gone runs again",
    "per_index.newly_failed_indexes does not start from the status",
    jobs.PER_INDEX,
    instead(controller, "newly_failed_indexes", _forgetting_failed_indexes),
)


def _wanted_all(job: JobView, counts: Counts, succeeded: int) -> int:
    return job.parallelism


mutant(
    "more-than-completions",
    "kubernetes#99963",
    "pods are made up to parallelism, though fewer completions are left",
    "managing.wanted is parallelism",
    jobs.FAILING,
    instead(managing, "wanted", _wanted_all),
)

# ----------------------------------------------------------------------------------------------- suspension


async def _manage_unsuspended(self: JobController, job: JobView, *rest: Any) -> Plan:
    job.suspended, suspended = False, job.suspended
    try:
        return await _MANAGE(self, job, *rest)
    finally:
        job.suspended = suspended


_MANAGE = JobController._manage

mutant(
    "suspended-job-runs",
    "KEP-2232",
    "a suspended Job keeps its pods, and makes more",
    "JobController._manage does not look at suspend",
    jobs.PAUSED,
    instead(JobController, "_manage", _manage_unsuspended),
)


async def _delete_counted(self: JobController, job: JobView, pods: Sequence[Tree], *, release: bool) -> bool:
    return await _DELETE(self, job, pods, release=False)


_DELETE = JobController._delete

mutant(
    "suspension-counts-as-failure",
    "KEP-2232",
    "pods that go because their Job is suspended count as failed",
    "JobController._delete leaves the finalizer on",
    jobs.PAUSED,
    instead(JobController, "_delete", _delete_counted),
)


def _keep_start_time(self: JobController, job: JobView, draft: StatusDraft, stamp: str) -> None:
    start = draft.start_time
    _KEEP(self, job, draft, stamp)
    draft.start_time = start


_KEEP = JobController._keep_suspended

mutant(
    "start-time-survives-suspension",
    "kubernetes#134521",
    "a suspended Job keeps its startTime",
    "JobController._keep_suspended leaves startTime as it was",
    jobs.PAUSED,
    instead(JobController, "_keep_suspended", _keep_start_time),
)

# ----------------------------------------------------------------------------------------------- policies


def _any_failure_ignored(policy: Tree | None, pod: Tree) -> pod_failure_policy.Match:
    return pod_failure_policy.Match("Ignore", "")


mutant(
    "every-failure-ignored",
    "KEP-3329",
    "a failure that no rule names is taken for one that the pod failure policy ignores",
    "pod_failure_policy.match answers Ignore",
    jobs.POLICED_FAILING,
    instead(pod_failure_policy, "match", _any_failure_ignored),
)

mutant(
    "ignored-failures-count",
    "KEP-3329",
    "failures that the pod failure policy ignores count towards the back-off limit",
    "pod_failure_policy.match knows no rule but FailJob",
    jobs.POLICED_IGNORED,
    instead(pod_failure_policy, "match", lambda policy, pod: pod_failure_policy.COUNT),
)

mutant(
    "managed-by-ignored",
    "KEP-4368",
    "a Job that another controller manages gets pods and a status",
    "JobView.foreign is never so",
    jobs.FOREIGN,
    instead(JobView, "foreign", False),
)

# ----------------------------------------------------------------------------------------------- time to live


async def _expire_by_name(self: ttl.TtlAfterFinished, key: str) -> float | None:
    job = self._jobs.get_key(key)
    expiry = ttl._expiry(job) if job is not None else None
    if job is None or expiry is None:
        return None
    left = expiry - self._ctx.env.now()
    if left > 0:
        return left + 0.001
    await self._ctx.client.delete(JOBS, job["metadata"]["name"], namespace=job["metadata"]["namespace"], propagation="Foreground")
    return None


mutant(
    "ttl-deletes-another",
    "kubernetes#66840",
    "the TTL controller deletes by name what a stale cache shows: a Job made anew under the name goes",
    "TtlAfterFinished.reconcile checks neither the live Job nor its uid",
    jobs.EXPIRED_ANEW,
    instead(ttl.TtlAfterFinished, "reconcile", _expire_by_name),
)
mutant(
    "ttl-from-creation",
    "KEP-592",
    "a Job goes when its TTL has passed since its creation",
    "ttl._expiry measures from the creation",
    jobs.EXPIRING,
    instead(
        ttl,
        "_expiry",
        lambda job: (
            from_stamp(job["metadata"]["creationTimestamp"]) + job["spec"]["ttlSecondsAfterFinished"]
            if "ttlSecondsAfterFinished" in job["spec"]
            else None
        ),
    ),
)
mutant(
    "ttl-forgotten",
    "KEP-592",
    "a finished Job stays after its time",
    "ttl._expiry knows no time",
    jobs.EXPIRING,
    instead(ttl, "_expiry", lambda job: None),
)

# ----------------------------------------------------------------------------------------------- identity


def _make_without_host(self: PodFactory, index: int | None = None, **more: Any) -> Tree:
    pod = _MAKE(self, index, **more)
    return pod if index is None else {**pod, "metadata": {**pod["metadata"], "labels": self.labels}}


_MAKE = PodFactory.make

mutant(
    "index-label-missing",
    "KEP-4017",
    "pods of an Indexed Job carry their index as annotation alone",
    "PodFactory.make sets no index label",
    jobs.FAILING,
    instead(PodFactory, "make", _make_without_host),
)


def _make_untracked(self: PodFactory, index: int | None = None, **more: Any) -> Tree:
    pod = _MAKE(self, index, **more)
    return {**pod, "metadata": {**pod["metadata"], "finalizers": []}}


mutant(
    "created-untracked",
    "KEP-2307",
    "pods are created without the tracking finalizer",
    "PodFactory.make sets no finalizer",
    jobs.FAILING,
    instead(PodFactory, "make", _make_untracked),
)
