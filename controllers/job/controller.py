"""The Job loop. One reconcile is one pass over a Job: count its pods, judge, manage pods, account for the ended ones.

Accounting is exactly-once by finalizers: an ended pod's uid goes into status.uncountedTerminatedPods, then its finalizer goes, then the uid moves into a
counter. A crash between any two steps leaves a state from which the next pass goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kubemini.api.resources import JOBS, PODS
from kubemini.api.trees import Tree
from kubemini.controllers.job import indexes, pod_failure_policy
from kubemini.controllers.job.accounting import Accounting, Ended, collect
from kubemini.controllers.job.backoff import Record
from kubemini.controllers.job.claiming import Claims
from kubemini.controllers.job.counting import Counts, Looks, completed_indexes, count
from kubemini.controllers.job.gang import Gangs
from kubemini.controllers.job.managing import Plan, plan
from kubemini.controllers.job.metrics import CREATED, DELETED, RECONCILING, TRACKING, Metrics
from kubemini.controllers.job.per_index import newly_failed_indexes
from kubemini.controllers.job.pods import FINALIZER, PodFactory, finished_at, is_ready, phase, tracked
from kubemini.controllers.job.status import StatusDraft
from kubemini.controllers.job.verdict import REACHED, Verdict, is_complete, judge
from kubemini.controllers.job.view import JobView
from kubemini.machinery.errors import ApiStatus, Conflict, NotFound
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.expectations import Expectations
from kubemini.runtime.keys import controller_of, controller_uid, key_of
from kubemini.runtime.workqueue import Backoff, WorkQueue

BATCH_SECONDS, BATCH_PER_POD = 0.1, 50e-6
"""Pod events are answered together (upstream: after 1 s): a pass follows the first change after this long; longer for a Job with many pods, so that the
cost of an event does not grow."""
CREATED_SECONDS, CREATED_PER_POD = 0.01, 5e-6
"""The same after creations, which only let the next batch of creations go on."""
BATCH_LIMIT = 1.0
END_SECONDS = 0.02
"""Between the write that accounts for the last pods and the one that ends the Job: upstream removes finalizers meanwhile, and who watches acts on the counts (Kueue gives
quota of succeeded pods back before the end)."""
ORPHAN = "~"
"""Prefix of keys that name a pod without a Job instead of a Job."""


@dataclass(slots=True)
class _Memory:
    """What is known of one Job beside its objects; gone after a restart."""

    uid: str
    record: Record = field(default_factory=Record)
    removing: dict[str, None] = field(default_factory=dict)
    """Pods whose finalizer was removed and whose cache entry does not show it yet."""
    written: int = 0
    """The resourceVersion of our last status write."""
    skipped: bool = False
    """A pass was called for while the cache did not show that write: it is taken when it does."""
    looks: Looks = field(default_factory=Looks)
    """What its pods said at the last pass."""
    group: str | None = None
    """The PodGroup of its pods, found or made in the pass that is under way."""
    factory: tuple[Tree, str | None, PodFactory] | None = None
    verdict: Verdict | None = None
    """The end that pods were deleted for: it stands although writing it did not work, for without those pods another one, or none, might be found."""
    closing: bool = False
    """Its namespace is being deleted and takes no pods any more: a failed pod does not wait for a replacement."""
    action: str = RECONCILING
    """What the pass that is under way did to the pods."""


class JobController(Controller):
    """Keys are Jobs."""

    name = "job"
    component = "job-controller"

    def __init__(self) -> None:
        super().__init__()
        # Upstream's longest wait after an error
        self.queue = WorkQueue(backoff=Backoff(limit=60.0))
        self.metrics = Metrics()
        self.families = self.metrics.all()

    def setup(self, ctx: Context) -> None:
        """Follow Jobs and pods."""
        self._ctx = ctx
        self._waits_for_cache = ctx.gates.enabled("StaleControllerConsistencyJob")
        self._starts_anew = ctx.gates.enabled("MutableSchedulingDirectivesForSuspendedJobs")
        self._jobs = ctx.informer(JOBS)
        self._pods = ctx.informer(PODS)
        self._pods.add_index("controller", controller_uid, reads=("ownerReferences",))
        self._expectations: Expectations[str] = Expectations(ctx.env)
        self._memory: dict[str, _Memory] = {}
        self._claims = Claims(ctx, self._pods)
        self._accounting = Accounting(ctx, self._pods)
        self._gangs = Gangs(ctx) if ctx.gates.enabled("GenericWorkload") and ctx.gates.enabled("WorkloadWithJob") else None
        # Creation errors (quota, admission) are tried again after 1 s doubling to 60 s
        self._refused = Backoff(1.0, 60.0)
        self._jobs.on_change(self._on_job)
        self._pods.on_change(self._on_pod, controller="Job")

    # ------------------------------------------------------------------ events

    def _on_job(self, old: Tree | None, new: Tree | None) -> None:
        if new is None:
            if old is not None:
                self.queue.add(key_of(old))
            return
        if old is None and JobView(new).foreign:
            self.metrics.foreign.inc(new["spec"]["managedBy"])
        if (
            old is None
            or old["metadata"]["uid"] != new["metadata"]["uid"]
            or old["spec"].get("suspend") != new["spec"].get("suspend")
            or old["spec"] is not new["spec"]
            or old["metadata"].get("deletionTimestamp") != new["metadata"].get("deletionTimestamp")
        ):
            self.queue.add(key_of(new))
        else:
            key = key_of(new)
            memory = self._memory.get(key)
            if memory is None or memory.skipped or int(new["metadata"]["resourceVersion"]) > memory.written:
                # Not an echo of what this controller wrote itself
                self.queue.add_after(key, CREATED_SECONDS)

    def _on_pod(self, old: Tree | None, new: Tree | None) -> None:
        pod = new if new is not None else old
        if pod is None:
            return
        owner = controller_of(pod)
        before = controller_of(old) if old is not None and new is not None else None
        if before is not None and before is not owner and (owner is None or owner["uid"] != before["uid"]):
            self._changed(before, pod, old, new)
        if owner is None or owner["kind"] != "Job":
            if owner is None and new is not None:
                if old is None or before is not None or old["metadata"].get("labels") != new["metadata"].get("labels"):
                    for key in self._claims.claimants(new, self._jobs):
                        self.queue.add_after(key, CREATED_SECONDS)
                if tracked(new):
                    self.queue.add(f"{ORPHAN}{key_of(new)}")
            return
        self._changed(owner, pod, old, new)

    def _changed(self, owner: Tree, pod: Tree, old: Tree | None, new: Tree | None) -> None:
        if owner["kind"] != "Job":
            return
        uid, pod_uid = owner["uid"], pod["metadata"]["uid"]
        key = f"{pod['metadata']['namespace']}/{owner['name']}"
        created = old is None
        if old is None:
            self._expectations.creation_observed(uid)
            if new is not None and phase(new) == "Pending" and not self._expectations.satisfied(uid):
                # More of the same batch are on their way: the last one brings the Job back
                return
        elif new is not None and not _matters(old, new):
            return
        self.metrics.pod_changed(old, new)
        if new is None or ("deletionTimestamp" in new["metadata"] and (old is None or "deletionTimestamp" not in old["metadata"])):
            self._expectations.deletion_observed(uid, pod_uid)
        memory = self._memory.get(key)
        if memory is not None and pod_uid in memory.removing and (new is None or not tracked(new)):
            del memory.removing[pod_uid]
        if new is not None and tracked(new):
            job = self._jobs.get_key(key)
            if job is None or job["metadata"]["uid"] != uid:
                # Made from a stale view of a Job that is gone
                self.queue.add(f"{ORPHAN}{pod['metadata']['namespace']}/{pod['metadata']['name']}")
        pods = self._pods.count_index("controller", uid)
        seconds = CREATED_SECONDS + pods * CREATED_PER_POD if created else BATCH_SECONDS + pods * BATCH_PER_POD
        self.queue.add_after(key, min(seconds, BATCH_LIMIT))

    # ------------------------------------------------------------------ the pass

    async def reconcile(self, key: str) -> float | None:
        """Take one pass over a Job, or look after a pod that has lost its Job."""
        if key.startswith(ORPHAN):
            await self._let_orphan_go(key[len(ORPHAN) :])
            return None
        tree = self._jobs.get_key(key)
        if tree is None:
            await self._forget(key)
            return None
        job = JobView(tree)
        memory = self._memory.get(key)
        if memory is not None and memory.uid != job.uid:
            # Another Job of that name: nobody saw the one before it go
            await self._forget(key)
            memory = None
        if job.foreign:
            return None
        if memory is None:
            memory = self._memory[key] = _Memory(job.uid)
        memory.skipped = self._waits_for_cache and int(job.meta["resourceVersion"]) < memory.written
        if memory.skipped:
            self.metrics.stale.count(JOBS)
            return None
        if job.finished:
            self._expectations.forget(job.uid)
            await self._release(self._owned(job))
            return None
        if not self._expectations.satisfied(job.uid):
            self.metrics.passed(job, RECONCILING, 0.0, failed=False)
            return self._expectations.lapses_in(job.uid)
        if job.spec.get("completionMode", "NonIndexed") not in ("NonIndexed", "Indexed"):
            self._ctx.recorder.event(tree, "Warning", "UnknownCompletionMode", "Skipped Job sync because completion mode is unknown")
            return None
        began, failed, memory.action = self._ctx.env.now(), True, RECONCILING
        try:
            pods = await self._claims.claim(job, self._owned(job), memory.looks)
            if self._gangs is not None:
                memory.group = await self._gangs.group(job, pods)
            again = await self._pass(job, pods, memory)
            failed = False
        finally:
            self.metrics.passed(job, memory.action, self._ctx.env.now() - began, failed=failed)
        return again

    def _owned(self, job: JobView) -> Sequence[Tree]:
        return self._pods.by_index("controller", job.uid)

    async def _pass(self, job: JobView, pods: Sequence[Tree], memory: _Memory) -> float | None:
        env = self._ctx.env
        now, stamp = env.now(), env.stamp()
        counts = count(job, pods, memory.removing, memory.looks)
        draft = StatusDraft.of(job)
        if not job.suspended and draft.start_time is None:
            draft.start_time = stamp
        completed = completed_indexes(job, counts)
        policy = job.spec.get("podFailurePolicy")
        matches = {pod["metadata"]["uid"]: pod_failure_policy.match(policy, pod) for pod in counts.failed_tracked} if policy else {}
        ignored = _ignored(matches)
        uncounted_succeeded, uncounted_failed = job.uncounted
        failed = job.status.get("failed", 0) + len(uncounted_failed) + sum(1 for pod in counts.failed if pod["metadata"]["uid"] not in ignored)
        succeeded = len(completed) if job.indexed else job.status.get("succeeded", 0) + len(uncounted_succeeded) + len(counts.succeeded)
        failed_indexes: list[int] | None = None
        if job.per_index is not None and job.indexed:
            failed_indexes = newly_failed_indexes(job, counts, matches, completed)
        record = memory.record.after(map(finished_at, counts.succeeded), map(finished_at, counts.failed))
        started = job.start_time if job.start_time is not None else (now if not job.suspended else None)
        verdict = memory.verdict or judge(job, counts, failed=failed, completed=completed, failed_indexes=failed_indexes, now=now, started=started)
        memory.verdict = verdict
        again: float | None = None
        removed: list[Tree] = []
        if verdict is not None:
            if not await self._delete(job, counts.active, release=False):
                verdict, again = None, self._refused.next(job.uid)
            else:
                # Unbound ones too, which go at once: the cache may not show that they were bound
                counts.terminating += [pod for pod in counts.active if phase(pod) in ("Pending", "Running")]
                removed, counts.active, counts.ready = counts.active, [], 0
                if policy and verdict.failure:
                    # They count as failures, unless the policy ignores what they say by now
                    matches |= {pod["metadata"]["uid"]: pod_failure_policy.match(policy, pod) for pod in (*removed, *counts.terminating)}
                    ignored = _ignored(matches)
        if memory.verdict is None:
            managed = not job.deleting and self._expectations.satisfied(job.uid)
            if managed:
                done = await self._manage(job, counts, memory, succeeded, failed, completed, failed_indexes, ignored, record.remaining(now), now)
                again = done.again
            if is_complete(job, counts, succeeded):
                # Suspended, being deleted, or neither
                verdict = REACHED
            elif managed:
                self._keep_suspended(job, draft, stamp)
        draft.active, draft.ready, draft.terminating = len(counts.active), counts.ready, len(counts.terminating)
        draft.completed_indexes = indexes.text(completed) if job.indexed else draft.completed_indexes
        if failed_indexes is not None:
            draft.failed_indexes = indexes.text(failed_indexes)
        settled = None if failed_indexes is None or memory.closing else [*failed_indexes, *completed]
        ended = collect(job, counts, verdict, removed, ignored, settled, memory.removing)
        await self._account(job, draft, ended, verdict, memory, record, stamp)
        if matches:
            self._count_matches(job, ended, matches)
        return _soonest(again, self._deadline(job, started, now))

    # ------------------------------------------------------------------ pods

    async def _manage(
        self,
        job: JobView,
        counts: Counts,
        memory: _Memory,
        succeeded: int,
        failed: int,
        completed: list[int],
        failed_indexes: list[int] | None,
        ignored: set[str],
        wait: float,
        now: float,
    ) -> Plan:
        if job.suspended:
            found = Plan(delete=counts.active)
        else:
            found = plan(job, counts, succeeded=succeeded, completed=completed, failed_indexes=failed_indexes, ignored=ignored, wait=wait, now=now)
        # By what it was about to do: also where there is nothing to delete, or the back-off is not over
        memory.action = DELETED if found.delete or job.suspended else CREATED if found.create or found.again is not None else TRACKING
        if found.delete:
            await self._delete(job, found.delete, release=True)
            gone = {pod["metadata"]["uid"] for pod in found.delete}
            counts.ready -= sum(1 for pod in found.delete if is_ready(pod))
            counts.terminating += found.delete
            counts.active = [pod for pod in counts.active if pod["metadata"]["uid"] not in gone]
        elif found.create:
            await self._create(job, counts, memory, found, failed)
        return found

    async def _create(self, job: JobView, counts: Counts, memory: _Memory, found: Plan, failed: int) -> None:
        if memory.factory is None or memory.factory[0] is not job.spec["template"] or memory.factory[1] != memory.group:
            memory.factory = (job.spec["template"], memory.group, PodFactory.of(job.tree, memory.group))
        factory = memory.factory[2]
        self._expectations.expect_more(job.uid, creations=len(found.create))
        client, recorder = self._ctx.client, self._ctx.recorder
        # A slow start: one, then twice as many each time, and no more batches after one with a refusal
        tried = made = refusals = 0
        batch = 1
        for one in found.create:
            if tried == batch:
                if refusals:
                    break
                tried, batch = 0, 2 * batch
            tried += 1
            try:
                pod = await client.create(PODS, factory.make(one.index, failures=one.failures, ignored=one.ignored), canonical=True)
            except ApiStatus as refused:
                refusals += 1
                if _terminating_namespace(refused):
                    if not memory.closing:
                        memory.closing, found.again = True, CREATED_SECONDS
                    break
                recorder.event(job.tree, "Warning", "FailedCreate", f"Error creating: {refused.message}")
            else:
                made += 1
                counts.active.append(pod)
                recorder.event(job.tree, "Normal", "SuccessfulCreate", f"Created pod: {pod['metadata']['name']}")
        self.metrics.created(job, counts, failed, made=made, refused=refusals)
        for _ in range(len(found.create) - made):
            self._expectations.creation_observed(job.uid)
        if not refusals:
            self._refused.forget(job.uid)
        elif not memory.closing:
            found.again = _soonest(found.again, self._refused.next(job.uid))

    async def _delete(self, job: JobView, pods: Sequence[Tree], *, release: bool) -> bool:
        """Delete pods, with `release` their finalizer first (so that they count as nothing). Tell whether every one worked."""
        if not pods:
            return True
        self._expectations.expect_more(job.uid, deletions=[pod["metadata"]["uid"] for pod in pods])
        worked = True
        for pod in pods:
            meta = pod["metadata"]
            try:
                if release and tracked(pod):
                    await self._remove_finalizer(pod)
                await self._ctx.client.delete(PODS, meta["name"], namespace=meta["namespace"], uid=meta["uid"])
            except (NotFound, Conflict):
                self._expectations.deletion_observed(job.uid, meta["uid"])
            except ApiStatus as refused:
                worked = False
                self._expectations.deletion_observed(job.uid, meta["uid"])
                self._ctx.recorder.event(job.tree, "Warning", "FailedDelete", f"Error deleting: {refused.message}")
            else:
                self._ctx.recorder.event(job.tree, "Normal", "SuccessfulDelete", f"Deleted pod: {meta['name']}")
        return worked

    async def _remove_finalizer(self, pod: Tree) -> None:
        meta = pod["metadata"]
        patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": [FINALIZER], "uid": meta["uid"]}}
        await self._ctx.client.patch(PODS, meta["name"], patch, namespace=meta["namespace"], type="strategic")

    async def _release(self, pods: Sequence[Tree]) -> None:
        """Take the tracking finalizer from pods that nobody counts any more."""
        for pod in pods:
            if tracked(pod):
                try:
                    await self._remove_finalizer(pod)
                except (NotFound, Conflict):
                    continue

    async def _let_orphan_go(self, key: str) -> None:
        """Take the finalizer from a pod whose Job is gone, or that no Job controls and none will adopt."""
        pod = self._pods.get_key(key)
        if pod is None or not tracked(pod):
            return
        owner = controller_of(pod)
        if owner is None:
            if not self._claims.claimants(pod, self._jobs):
                await self._release([pod])
        elif _is_job(owner) and not await self._lives(owner, pod["metadata"]["namespace"]):
            await self._release([pod])

    async def _lives(self, owner: Tree, namespace: str) -> bool:
        """Tell whether a Job exists, by the cache or else by the API: a cache that lags behind must not cost a pod its finalizer."""
        job = self._jobs.get(owner["name"], namespace)
        if job is not None and job["metadata"]["uid"] == owner["uid"]:
            return True
        try:
            live = await self._ctx.client.get(JOBS, owner["name"], namespace)
        except NotFound:
            return False
        return bool(live["metadata"]["uid"] == owner["uid"])

    async def _forget(self, key: str) -> None:
        """Let go of a Job that is gone: its pods lose their finalizer first, so that a failure is tried again."""
        memory = self._memory.get(key)
        if memory is not None:
            await self._release(self._pods.by_index("controller", memory.uid))
            self._expectations.forget(memory.uid)
            if self._gangs is not None:
                self._gangs.forget(memory.uid)
            self._memory.pop(key, None)

    async def started(self) -> None:
        """Take the finalizer from pods whose Job is gone: it vanished while nobody watched."""
        for pod in self._pods.list():
            owner = controller_of(pod)
            if owner is not None and _is_job(owner) and tracked(pod):
                job = self._jobs.get(owner["name"], pod["metadata"]["namespace"])
                if job is None or job["metadata"]["uid"] != owner["uid"]:
                    await self._release([pod])

    # ------------------------------------------------------------------ suspension and status

    def _keep_suspended(self, job: JobView, draft: StatusDraft, stamp: str) -> None:
        recorder = self._ctx.recorder
        if job.suspended:
            if draft.set("Suspended", "True", "JobSuspended", "Job suspended", stamp):
                recorder.event(job.tree, "Normal", "Suspended", "Job suspended")
            if self._starts_anew:
                draft.start_time = None
        elif "Suspended" in job.conditions and draft.set("Suspended", "False", "JobResumed", "Job resumed", stamp):
            recorder.event(job.tree, "Normal", "Resumed", "Job resumed")
            draft.start_time = stamp

    async def _account(
        self, job: JobView, draft: StatusDraft, ended: Ended, verdict: Verdict | None, memory: _Memory, record: Record, stamp: str
    ) -> None:
        terminal = self._accounting.prepare(job, draft, ended, verdict, stamp)
        known = False

        async def write(status: Tree, base: Tree) -> Tree:
            written = await self._ctx.client.update_status(JOBS, {**base, "status": status})
            nonlocal known
            memory.written, known = int(written["metadata"]["resourceVersion"]), True
            self.metrics.written(job, base.get("status") or {}, status)
            return written

        try:
            finished = await self._accounting.flush(job, draft, ended, memory.removing, write, terminal, stamp)
            known = True
        finally:
            if known:
                # Otherwise the next pass finds the same ends again
                memory.record = record
        if finished and terminal is not None:
            self._say_finished(job, terminal, draft.succeeded)
        elif ended.paused:
            self.queue.add_after(key_of(job.tree), END_SECONDS)

    def _count_matches(self, job: JobView, ended: Ended, matches: Mapping[str, pod_failure_policy.Match]) -> None:
        """Count the failures that a rule of the failure policy matched, once each: as they are accounted for."""
        for pod in ended.release:
            uid = pod["metadata"]["uid"]
            if uid not in job.uncounted_uids and (found := matches.get(uid)) is not None and found is not pod_failure_policy.COUNT:
                self.metrics.by_policy.inc(found.action)

    def _say_finished(self, job: JobView, verdict: Verdict, succeeded: int) -> None:
        self.metrics.ended(job, verdict)
        if verdict.failure:
            self._ctx.recorder.event(job.tree, "Warning", verdict.reason, verdict.message)
        else:
            if job.completions is not None and succeeded > job.completions:
                self._ctx.recorder.event(
                    job.tree, "Warning", "TooManySucceededPods", "Too many succeeded pods running after completion count reached"
                )
            self._ctx.recorder.event(job.tree, "Normal", "Completed", "Job completed")

    def _deadline(self, job: JobView, started: float | None, now: float) -> float | None:
        deadline = job.spec.get("activeDeadlineSeconds")
        if deadline is None or job.suspended or started is None:
            return None
        # Whole seconds: startTime is truncated, so the deadline is never early
        return max(started + deadline - now, 0.0) + 0.001 if started + deadline > now else None


def _is_job(owner: Tree) -> bool:
    """Tell whether an owner is one of ours, and no other API's Job."""
    return (owner["kind"], owner["apiVersion"]) == ("Job", "batch/v1")


def _matters(old: Tree, new: Tree) -> bool:
    """Tell whether a pod changed in what a Job looks at: most changes (binding, addresses) mean nothing to it."""
    before, after = old["metadata"], new["metadata"]
    status, now = old.get("status") or {}, new.get("status") or {}
    return (
        (
            status is not now
            and (status.get("phase") != now.get("phase") or is_ready(old) != is_ready(new) or _other(status, now, "containerStatuses"))
        )
        or before.get("deletionTimestamp") != after.get("deletionTimestamp")
        or any(_other(before, after, name) for name in ("finalizers", "labels", "annotations", "ownerReferences"))
    )


def _other(one: Tree, other: Tree, name: str) -> bool:
    """Tell whether a field differs; mostly it is the very same object."""
    before, after = one.get(name), other.get(name)
    return before is not after and before != after


def _ignored(matches: Mapping[str, pod_failure_policy.Match]) -> set[str]:
    return {uid for uid, match in matches.items() if match.action == "Ignore"}


def _terminating_namespace(refused: ApiStatus) -> bool:
    return any(cause.get("reason") == "NamespaceTerminating" for cause in refused.details.get("causes") or ())


def _soonest(*delays: float | None) -> float | None:
    given = [delay for delay in delays if delay is not None]
    return min(given) if given else None
