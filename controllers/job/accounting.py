"""Exactly-once accounting of ended pods: uncounted lists, finalizers, counters, and the conditions at the end.

The order of writes is the point: (1) the uids enter status.uncountedTerminatedPods together with the interim condition, (2) the finalizers go, (3) the uids whose
finalizer is gone move into the counters, and the terminal condition is set once nothing is left to count or to wait for.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field

from kubemini.api.resources import PODS
from kubemini.api.trees import Tree
from kubemini.controllers.job import indexes
from kubemini.controllers.job.counting import Counts
from kubemini.controllers.job.managing import last_failures
from kubemini.controllers.job.pods import FINALIZER, index_of, tracked
from kubemini.controllers.job.status import StatusDraft
from kubemini.controllers.job.verdict import REACHED, Verdict
from kubemini.controllers.job.view import JobView
from kubemini.machinery.errors import ApiStatus, Conflict, NotFound
from kubemini.runtime.controller import Context
from kubemini.runtime.informer import Informer

PER_PASS = 500
"""How many pods one pass accounts for."""

Write = Callable[[Tree, Tree], Awaitable[Tree]]


@dataclass(slots=True)
class Ended:
    """Pods to account for in a pass: `succeeded` and `failed` enter the uncounted lists, `release` lose their finalizer."""

    succeeded: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    release: list[Tree] = field(default_factory=list)
    more: bool = False
    """There are more than one pass accounts for: the Job cannot end yet."""
    paused: bool = False
    """All is accounted for but the end, which is for the next pass to write."""


def collect(
    job: JobView,
    counts: Counts,
    verdict: Verdict | None,
    removed: Sequence[Tree],
    ignored: Collection[str],
    settled: Collection[int] | None,
    removing: Collection[str] = (),
) -> Ended:
    """Return what a pass accounts for.

    `settled` are the indexes that get no more pods, completed or given up; None where failed pods wait for no replacement. `removed` are the active pods that the verdict's deletion took; `removing` names pods that were counted, and whose finalizer is gone although the cache does not show it yet.
    """
    found = Ended()
    known = job.uncounted_uids
    ending = verdict is not None or job.deleting
    for pod in counts.succeeded:
        if not job.indexed:
            found.succeeded.append(pod["metadata"]["uid"])
        found.release.append(pod)
    found.release += counts.counted_already
    kept = _kept_for_replacement(counts, settled) if settled is not None and not ending else {}
    new = {pod["metadata"]["uid"] for pod in counts.failed}
    for pod in counts.failed_tracked:
        uid = pod["metadata"]["uid"]
        if uid in kept:
            continue
        if uid in new and uid not in ignored:
            found.failed.append(uid)
        found.release.append(pod)
    if ending:
        listed = {pod["metadata"]["uid"] for pod in found.release}
        failing = verdict is not None and verdict.failure
        for pod in (*removed, *counts.terminating, *(counts.active if job.deleting else ())):
            uid = pod["metadata"]["uid"]
            if uid in listed or uid in removing or not tracked(pod):
                continue
            listed.add(uid)
            if failing and uid not in known and uid not in ignored and job.counts(index_of(pod)):
                found.failed.append(uid)
            found.release.append(pod)
    if len(found.release) > PER_PASS:
        found.release, found.more = found.release[:PER_PASS], True
        listed = {pod["metadata"]["uid"] for pod in found.release}
        found.succeeded = [uid for uid in found.succeeded if uid in listed]
        found.failed = [uid for uid in found.failed if uid in listed]
    return found


def _kept_for_replacement(counts: Counts, settled: Collection[int]) -> dict[str, None]:
    """Return the failed pods that keep their finalizer because their replacement still has to take their counts over."""
    failures = last_failures(counts.failed_tracked)
    if not failures:
        return {}
    served = {index_of(pod) for pod in counts.active} | set(settled)
    return {pod["metadata"]["uid"]: None for index, pod in failures.items() if index not in served}


class Accounting:
    """Runs the writes."""

    def __init__(self, ctx: Context, pods: Informer) -> None:
        self._ctx = ctx
        self._pods = pods

    def prepare(self, job: JobView, draft: StatusDraft, ended: Ended, verdict: Verdict | None, stamp: str) -> Verdict | None:
        """Put the uids and the interim condition into the draft; return the verdict once the terminal condition may follow, else None."""
        draft.uncounted_succeeded += [uid for uid in ended.succeeded if uid not in draft.uncounted_succeeded]
        draft.uncounted_failed += [uid for uid in ended.failed if uid not in draft.uncounted_failed]
        if job.indexed:
            draft.succeeded = _how_many(draft.completed_indexes)
        if verdict is None or (ended.more and verdict is REACHED):
            # Completions are reached by what the status knows of
            return None
        draft.set(verdict.type, "True", verdict.reason, verdict.message, stamp)
        return verdict if draft.terminating == 0 and not ended.more else None

    async def flush(
        self,
        job: JobView,
        draft: StatusDraft,
        ended: Ended,
        removing: dict[str, None],
        write: Write,
        terminal: Verdict | None,
        stamp: str,
    ) -> bool:
        """Write, release, count, write again: each write only when it changes something. Tell whether the Job has ended. Raise what a write raises; nothing is lost then.

        The end is not written together with the account of the last pods: who watches the Job is to see both (`Ended.paused`). Nor is it where it will be refused,
        as that of a Job without a start mostly is: the interim condition stands then.
        """
        base = job.tree
        first = draft.render()
        released = {pod["metadata"]["uid"] for pod in ended.release}
        pending = [uid for uid in (*draft.uncounted_succeeded, *draft.uncounted_failed) if uid not in released]
        wrote = bool(ended.release or pending or (terminal is not None and draft.start_time is None)) and first != job.status
        if wrote:
            base = await write(first, base)
        failures = await self._release(ended.release, removing)
        if wrote and terminal is not None and not failures:
            ended.paused = True
            return False
        waiting = self._still_tracked(job, pending, removing) | failures
        counted_succeeded = [uid for uid in draft.uncounted_succeeded if uid not in waiting]
        counted_failed = [uid for uid in draft.uncounted_failed if uid not in waiting]
        if not job.indexed:
            draft.succeeded += len(counted_succeeded)
        draft.failed += len(counted_failed)
        draft.uncounted_succeeded = [uid for uid in draft.uncounted_succeeded if uid in waiting]
        draft.uncounted_failed = [uid for uid in draft.uncounted_failed if uid in waiting]
        finished = terminal is not None and not waiting
        if terminal is not None and finished:
            self._finish(draft, terminal, stamp)
        last = draft.render()
        if last != (base.get("status") or {}):
            await write(last, base)
        if failures:
            raise Conflict("some finalizers could not be removed")
        return finished

    def _still_tracked(self, job: JobView, uids: Collection[str], removing: dict[str, None]) -> set[str]:
        """Return which uncounted pods of an earlier pass still carry their finalizer as far as the cache shows."""
        asked = {uid for uid in uids if uid not in removing}
        if not asked:
            return asked
        return {uid for pod in self._pods.by_index("controller", job.uid) if (uid := pod["metadata"]["uid"]) in asked and tracked(pod)}

    async def _release(self, pods: Sequence[Tree], removing: dict[str, None]) -> set[str]:
        """Remove the finalizers; return the uids where it failed. A pod that is gone counts as released."""
        failures: set[str] = set()
        for pod in pods:
            meta = pod["metadata"]
            uid = meta["uid"]
            removing[uid] = None
            patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": [FINALIZER], "uid": uid}}
            try:
                await self._ctx.client.patch(PODS, meta["name"], patch, namespace=meta["namespace"], type="strategic")
            except NotFound:
                removing.pop(uid, None)
            except ApiStatus as refused:
                removing.pop(uid, None)
                # A pod of that name with another uid: ours is gone
                if refused.code != 422:
                    failures.add(uid)
        return failures

    def _finish(self, draft: StatusDraft, verdict: Verdict, stamp: str) -> None:
        draft.active = draft.ready = 0
        if verdict.failure:
            draft.set("Failed", "True", verdict.reason, verdict.message, stamp)
        else:
            draft.set("Complete", "True", verdict.reason, verdict.message, stamp)
            draft.completion_time = stamp


def _how_many(text: str) -> int:
    return indexes.size(text)
