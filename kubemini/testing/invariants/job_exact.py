"""What Jobs promise about every single pod: each is counted exactly once, none comes too early, too often or for nothing.

Accounts, survivors and unwanted pods hold whatever is lost. The others hold while no answer of a write is lost and no controller is killed: what a controller cannot know
it may do twice, and the back-off is not written down. Pods that somebody beside the Job controller deletes, and Jobs that somebody beside the TTL controller deletes, must
be excused (`Excuses`) by whoever does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kubemini.api.resources import JOBS
from kubemini.api.trees import Tree
from kubemini.runtime.env import from_stamp
from kubemini.runtime.keys import controller_of
from kubemini.store import Change
from kubemini.testing.invariants.base import Invariant, View
from kubemini.testing.invariants.job import condition, finished, job_of

FINALIZER, INDEX = "batch.kubernetes.io/job-tracking", "batch.kubernetes.io/job-completion-index"
BASE, LIMIT = 10.0, 600.0
"""Seconds of the back-off after a failure: the first and the longest."""
SLACK = 4.0
"""Seconds for which a controller may not know yet of a failure."""


class Excuses:
    """Uids of objects that somebody else deletes."""

    def __init__(self) -> None:
        self._uids: dict[str, None] = {}

    def excuse(self, uid: str) -> None:
        """Say that an object is deleted by somebody else."""
        self._uids[uid] = None

    def __contains__(self, uid: str) -> bool:
        """Tell whether an object is excused."""
        return uid in self._uids


def exact_job_invariants(excuses: Excuses, *, lossless: bool = True) -> list[Invariant]:
    """Return the invariants, fresh: they keep state, and share what they know of pods. `lossless` says that no answer is lost, and no controller killed."""
    pods = Pods(excuses)
    always: list[Invariant] = [pods, Ledger(pods), Unwanted(pods), Survivors(pods)]
    return [*always, Crowd(pods), BackOff(pods), PerIndex(pods), Expiry(excuses)] if lossless else always


@dataclass(slots=True)
class Life:
    """What became of one pod."""

    index: int | None
    created: float
    tracked: bool = True
    live: bool = True
    """Neither ended nor gone, whether it is being deleted or not."""
    deleting: bool = False
    succeeded: bool = False
    """It succeeded while it carried the finalizer."""
    failed: bool = False
    """It failed by itself while it carried the finalizer, before anybody deleted it."""
    excused: bool = False
    """Somebody else deleted it."""
    end: float = 0.0
    restarts: int = 0


@dataclass(slots=True)
class Story:
    """What became of the pods of one Job, and what its spec asked for at any time."""

    pods: dict[str, Life] = field(default_factory=dict)
    parallelism: int = 0
    completions: int | None = None
    suspended: float | None = None
    """Since when it is suspended, as far as its managed fields tell."""
    eased: bool = False
    """It was suspended or made smaller at some time: pods were taken from it without being counted."""


class Pods:
    """Follows the pods of Jobs for the others; promises nothing itself."""

    name = "job pods"

    def __init__(self, excuses: Excuses) -> None:
        self._excuses = excuses
        self._stories: dict[str, Story] = {}

    def story(self, uid: str) -> Story:
        """Return what is known of a Job's pods."""
        return self._stories.setdefault(uid, Story())

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Take notes."""
        if table == JOBS.storage and change.new is not None:
            self._job(change.new.obj, change.old.obj if change.old is not None else None)
        elif table == "pods":
            pod = change.new.obj if change.new is not None else change.old.obj if change.old is not None else {}
            owner = controller_of(pod)
            if owner is not None and owner["kind"] == "Job":
                self._pod(self.story(owner["uid"]), pod, gone=change.new is None)
        return ()

    def _job(self, job: Tree, old: Tree | None) -> None:
        story, spec = self.story(job["metadata"]["uid"]), job["spec"]
        if not spec.get("suspend"):
            story.suspended = None
        elif old is None or not old["spec"].get("suspend"):
            times = [each["time"] for each in job["metadata"].get("managedFields") or () if each.get("time")]
            story.suspended = from_stamp(max(times)) if times else None
        parallelism, completions = spec.get("parallelism", 1), spec.get("completions")
        story.eased |= bool(spec.get("suspend")) or parallelism < story.parallelism or (completions or 0) < (story.completions or 0)
        story.parallelism = max(story.parallelism, parallelism)
        story.completions = completions if completions is None else max(completions, story.completions or 0)

    def _pod(self, story: Story, pod: Tree, *, gone: bool) -> None:
        meta, status = pod["metadata"], pod.get("status") or {}
        index = (meta.get("annotations") or {}).get(INDEX)
        life = story.pods.setdefault(meta["uid"], Life(int(index) if index is not None else None, from_stamp(meta["creationTimestamp"])))
        phase = status.get("phase")
        containers = status.get("containerStatuses") or ()
        if life.tracked and phase in ("Succeeded", "Failed"):
            ends = [end["finishedAt"] for each in containers if (end := (each.get("state") or {}).get("terminated")) and end.get("finishedAt")]
            life.end = max(map(from_stamp, ends), default=life.created)
            # Both, for a pod whose phase was turned round
            life.succeeded |= phase == "Succeeded"
            life.failed |= phase == "Failed" and not life.deleting
        life.live = not gone and phase not in ("Succeeded", "Failed")
        life.restarts = sum(each.get("restartCount", 0) for each in containers)
        if "deletionTimestamp" in meta or gone:
            life.excused |= meta["uid"] in self._excuses and life.tracked
            life.deleting = True
        life.tracked = not gone and FINALIZER in (meta.get("finalizers") or ())

    def at_rest(self, view: View) -> Iterable[str]:
        """Nothing."""
        return ()


class _OverPods:
    """An invariant that stands on what is known of the pods."""

    name = ""

    def __init__(self, pods: Pods) -> None:
        self.pods = pods

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Look at a new pod, or at a Job's new state."""
        if change.new is None:
            return ()
        if table == "pods" and change.old is None:
            job = job_of(change.new.obj, view)
            return list(self.created(change.new.obj, job, self.pods.story(job["metadata"]["uid"]))) if job is not None else ()
        if table == JOBS.storage:
            job = change.new.obj
            return list(self.written(job, change.old.obj if change.old is not None else {}, self.pods.story(job["metadata"]["uid"])))
        return ()

    def at_rest(self, view: View) -> Iterable[str]:
        """Look at the Jobs that live."""
        found: list[str] = []
        for job in view.list(JOBS):
            if "deletionTimestamp" not in job["metadata"] and job["spec"].get("managedBy") in (None, "kubernetes.io/job-controller"):
                found += self.rest(job, self.pods.story(job["metadata"]["uid"]))
        return found

    def created(self, pod: Tree, job: Tree, story: Story) -> Iterator[str]:
        """Look at a new pod of a Job."""
        yield from ()

    def written(self, job: Tree, old: Tree, story: Story) -> Iterator[str]:
        """Look at a Job that was made or changed."""
        yield from ()

    def rest(self, job: Tree, story: Story) -> Iterator[str]:
        """Look at a Job at rest."""
        yield from ()


def _totals(job: Tree) -> tuple[int, int]:
    """Return how many pods the status counts, or is about to: (succeeded, failed)."""
    status = job.get("status") or {}
    lists = status.get("uncountedTerminatedPods") or {}
    return status.get("succeeded", 0) + len(lists.get("succeeded") or ()), status.get("failed", 0) + len(lists.get("failed") or ())


class Ledger(_OverPods):
    """6, 7, 12, 14: a pod is counted once, for what became of it, and none is forgotten; a back-off limit is reached by failures alone."""

    name = "job ledger"

    def written(self, job: Tree, old: Tree, story: Story) -> Iterator[str]:
        """Hold the counters against the pods that can account for them."""
        name, (succeeded, failed) = job["metadata"]["name"], _totals(job)
        lives = story.pods.values()
        won = sum(1 for each in lives if each.succeeded)
        lost = sum(1 for each in lives if each.failed or (each.excused and not each.succeeded))
        if succeeded > won:
            yield f"{name} counts {succeeded} succeeded pods, there were {won}"
        target = condition(job, "FailureTarget")
        # A failure takes the active pods along, and they count
        if target is None and failed > lost:
            yield f"{name} counts {failed} failed pods, there were {lost}"
        if succeeded + failed > len(story.pods):
            yield f"{name} counts {succeeded + failed} pods, there were {len(story.pods)}"
        limit = job["spec"].get("backoffLimit", 6)
        if target is not None and condition(old, "FailureTarget") is None and target.get("reason") == "BackoffLimitExceeded":
            restarts = sum(each.restarts for each in lives) if job["spec"]["template"]["spec"].get("restartPolicy") == "OnFailure" else 0
            if lost <= limit and restarts < max(limit, 1):
                yield f"{name} failed at its back-off limit of {limit} after {lost} failed pods"

    def rest(self, job: Tree, story: Story) -> Iterator[str]:
        """Check that no ended pod was forgotten."""
        name, (succeeded, failed) = job["metadata"]["name"], _totals(job)
        actions = [rule["action"] for rule in (job["spec"].get("podFailurePolicy") or {}).get("rules") or ()]
        if story.eased or "Ignore" in actions:
            return
        if job["spec"].get("completionMode") != "Indexed":
            ended = sum(1 for each in story.pods.values() if each.succeeded or each.failed)
            if succeeded + failed < ended:
                yield f"{name} counts {succeeded} succeeded and {failed} failed pods, {ended} have ended"
        lost = sum(1 for each in story.pods.values() if each.failed and not each.succeeded)
        if failed < lost:
            yield f"{name} counts {failed} failed pods, there were {lost}"


class Crowd(_OverPods):
    """5, 8, 11, 15: never more pods than parallelism and completions allow, nor two of one index; where replacements wait, terminating pods count."""

    name = "job crowd"

    def created(self, pod: Tree, job: Tree, story: Story) -> Iterator[str]:
        """Count the pods beside a new one."""
        name, spec = pod["metadata"]["name"], job["spec"]
        waits = spec.get("podReplacementPolicy") == "Failed" or spec.get("podFailurePolicy") is not None
        live = [each for each in story.pods.values() if each.live and (waits or not each.deleting)]
        if len(live) > story.parallelism:
            yield f"pod {name} is one of {len(live)}, parallelism {story.parallelism}"
        if spec.get("completionMode") != "Indexed":
            done = _totals(job)[0]
            if story.completions is not None and len(live) + done > story.completions:
                yield f"pod {name}: {len(live)} live and {done} succeeded pods of {story.completions}"
            return
        index = int(pod["metadata"]["annotations"][INDEX])
        if sum(1 for each in live if each.index == index) > 1:
            yield f"pod {name}: index {index} has a pod"
        if index >= (story.completions or 0):
            yield f"pod {name}: index {index} of {story.completions}"


class Unwanted(_OverPods):
    """10: no pod comes for a Job that has been suspended, or is being deleted, for longer than a cache may lag."""

    name = "job unwanted"

    def created(self, pod: Tree, job: Tree, story: Story) -> Iterator[str]:
        """Compare a new pod's time with those of the Job."""
        name, meta = pod["metadata"]["name"], job["metadata"]
        now = from_stamp(pod["metadata"]["creationTimestamp"])
        if story.suspended is not None and now > story.suspended + SLACK:
            yield f"pod {name} comes {now - story.suspended:g} s after {meta['name']} was suspended"
        if "deletionTimestamp" in meta and now > from_stamp(meta["deletionTimestamp"]) + SLACK:
            yield f"pod {name} comes {now - from_stamp(meta['deletionTimestamp']):g} s after {meta['name']} was deleted"


class Survivors(_OverPods):
    """4: when a Job ends, its pods have ended."""

    name = "job survivors"

    def written(self, job: Tree, old: Tree, story: Story) -> Iterator[str]:
        """Look for pods that live on."""
        if finished(job) and not finished(old):
            live = sum(1 for each in story.pods.values() if each.live)
            if live:
                yield f"{job['metadata']['name']} has ended and {live} of its pods have not"


class BackOff(_OverPods):
    """13: a replacement waits for 10 s after a failure, twice as long after each further one; by index where the limit is.

    What an index failed that the Job has given up since may never have been counted.
    """

    name = "job back-off"

    def created(self, pod: Tree, job: Tree, story: Story) -> Iterator[str]:
        """Compare a new pod's time with the last failures."""
        meta = pod["metadata"]
        now = from_stamp(meta["creationTimestamp"])
        lives = [each for uid, each in story.pods.items() if uid != meta["uid"]]
        if job["spec"].get("backoffLimitPerIndex") is not None:
            index = int(meta["annotations"][INDEX])
            ends = [each.end for each in lives if each.failed and each.index == index]
        else:
            success = max((each.end for each in lives if each.succeeded), default=0.0)
            indexes = job["spec"]["completions"] if job["spec"].get("completionMode") == "Indexed" else None
            ends = [
                each.end for each in lives if each.failed and each.end > success and (indexes is None or each.index is None or each.index < indexes)
            ]
        known = [end for end in ends if end < now - SLACK]
        if known:
            due = max(known) + min(BASE * 2.0 ** (len(known) - 1), LIMIT)
            if now < due - 1:
                yield f"pod {meta['name']} comes {due - now:g} s before the end of the back-off after {len(known)} failures"


class PerIndex(_OverPods):
    """backoffLimitPerIndex: no index is tried more often than its limit allows, and none is given up before."""

    name = "job per index"

    def created(self, pod: Tree, job: Tree, story: Story) -> Iterator[str]:
        """Count the failures of a new pod's index."""
        limit = job["spec"].get("backoffLimitPerIndex")
        if limit is None:
            return
        index = int(pod["metadata"]["annotations"][INDEX])
        ignores = any(rule["action"] == "Ignore" for rule in (job["spec"].get("podFailurePolicy") or {}).get("rules") or ())
        failures = sum(1 for each in story.pods.values() if each.failed and each.index == index)
        if failures > limit and not ignores:
            yield f"pod {pod['metadata']['name']} of index {index}, which failed {failures} times, limit {limit}"

    def written(self, job: Tree, old: Tree, story: Story) -> Iterator[str]:
        """Hold failed indexes against the failures."""
        limit = job["spec"].get("backoffLimitPerIndex")
        text = (job.get("status") or {}).get("failedIndexes")
        if limit is None or text == ((old.get("status") or {}).get("failedIndexes")) or job["spec"].get("podFailurePolicy"):
            return
        for index in _indexes(text or ""):
            failures = sum(1 for each in story.pods.values() if (each.failed or each.excused) and each.index == index)
            if failures <= limit:
                yield f"{job['metadata']['name']}: index {index} failed for good after {failures} failures, limit {limit}"


def _indexes(text: str) -> Iterator[int]:
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


class Expiry:
    """22: a Job is deleted once it has ended and its time is over, not before; at rest none of those is left."""

    name = "job expiry"

    def __init__(self, excuses: Excuses) -> None:
        self._excuses = excuses
        self._deleted: dict[str, None] = {}

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Look at a Job as its deletion begins."""
        if table != JOBS.storage or change.old is None:
            return ()
        job = change.new.obj if change.new is not None else change.old.obj
        meta = job["metadata"]
        uid = meta["uid"]
        if (change.new is not None and "deletionTimestamp" not in meta) or uid in self._deleted:
            return ()
        self._deleted[uid] = None
        due = _due(job)
        if uid in self._excuses or controller_of(job) is not None:
            return ()
        if due is None or ("deletionTimestamp" in meta and from_stamp(meta["deletionTimestamp"]) < due):
            return (f"Job {meta['name']} was deleted, due {due}",)
        return ()

    def at_rest(self, view: View) -> Iterable[str]:
        """Look for Jobs that stayed."""
        return [f"Job {job['metadata']['name']} is there after its time" for job in view.list(JOBS) if _due(job) is not None]


def _due(job: Tree) -> float | None:
    seconds = job["spec"].get("ttlSecondsAfterFinished")
    end = condition(job, "Complete") or condition(job, "Failed")
    return from_stamp(end["lastTransitionTime"]) + float(seconds) if seconds is not None and end is not None else None
