"""One pass over a Job's pods: who is active, ready, terminating, newly succeeded or newly failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import NamedTuple

from kubemini.api.trees import Tree
from kubemini.controllers.job import indexes
from kubemini.controllers.job.pods import deleting, index_of, is_ready, phase, tracked
from kubemini.controllers.job.view import JobView


@dataclass(slots=True)
class Counts:
    """What the pods of a Job come to. `succeeded` and `failed` hold pods that still carry the finalizer and are in no uncounted list."""

    active: list[Tree] = field(default_factory=list)
    indexes: list[int | None] = field(default_factory=list)
    """The completion index of each active pod, in the same order; for Indexed Jobs."""
    ready: int = 0
    terminating: list[Tree] = field(default_factory=list)
    succeeded: list[Tree] = field(default_factory=list)
    failed: list[Tree] = field(default_factory=list)
    all_failed: list[Tree] = field(default_factory=list)
    """Every pod in phase Failed, counted before or not."""
    failed_tracked: list[Tree] = field(default_factory=list)
    """Failed pods that still carry the finalizer, by limit per index those kept for their replacement too."""
    counted_already: list[Tree] = field(default_factory=list)
    """Ended pods that still carry the finalizer and are not to be counted: succeeded ones in the uncounted list, where taking it off did not work, and any out of range."""
    unindexed: list[Tree] = field(default_factory=list)
    """Active pods of an Indexed Job whose index is missing or out of range."""


def has_failed(job: JobView, pod: Tree) -> bool:
    """Tell whether a pod counts as failed: ended so, or being deleted where the replacement policy does not wait for the end."""
    state = phase(pod)
    if state == "Failed":
        return True
    return not job.waits_for_end and deleting(pod) and state != "Succeeded"


class Look(NamedTuple):
    """What one state of a pod says to a Job."""

    pod: Tree
    state: str
    gone: bool
    place: int | None
    """Its completion index."""
    ready: bool
    tracked: bool


class Looks:
    """What was seen of a Job's pods, kept from pass to pass: a pod that is the very same tree is not looked at again.

    All is known by the identity of trees, which live as long as they are known here. A pass goes over the pods at the speed of built-in functions, and looks at what is new.
    """

    __slots__ = ("_active", "_failed", "_going", "_held", "_ids", "_known", "_pods", "_states", "fresh", "ready", "strays")

    def __init__(self) -> None:
        self._known: dict[int, Look] = {}
        self._states: dict[str, int] = {}
        """Which of the trees is a pod's, by uid."""
        self._active: dict[int, int | None] = {}
        """Neither ended nor being deleted, with their completion indexes."""
        self._going: dict[int, None] = {}
        """Being deleted while they wait or run."""
        self._failed: dict[int, None] = {}
        self._held: dict[int, None] = {}
        """Ended or being deleted, with the finalizer on."""
        self.ready = 0
        """How many of the active ones are ready."""
        self.fresh: list[Tree] = []
        """What was new at the last look."""
        self.strays = False
        """Some of them are not what the Job selects, as far as is known."""
        self._pods: Sequence[Tree] = ()
        self._ids: list[int] = []

    def __len__(self) -> int:
        """Return how many pods are known."""
        return len(self._known)

    def take(self, pods: Sequence[Tree]) -> None:
        """Look at those that are new, and forget those that are not there any more. The same list again is taken for the same pods."""
        if pods is self._pods:
            return
        known, ids = self._known, [*map(id, pods)]
        self.fresh = [pod for key, pod in zip(ids, pods, strict=True) if key not in known]
        for pod in self.fresh:
            self._note(pod)
        if len(known) > len(ids):
            for key in sorted(known.keys() - set(ids)):
                self._forget(key)
        self._pods, self._ids = pods, ids

    def _forget(self, key: int) -> None:
        look = self._known.pop(key)
        del self._states[look.pod["metadata"]["uid"]]
        if self._active.pop(key, ...) is not ...:
            self.ready -= look.ready
        else:
            for those in (self._going, self._failed, self._held):
                those.pop(key, None)

    def _note(self, pod: Tree) -> None:
        key, uid = id(pod), pod["metadata"]["uid"]
        before = self._states.get(uid)
        if before is not None:
            self._forget(before)
        self._states[uid] = key
        look = self._known[key] = Look(pod, phase(pod), deleting(pod), index_of(pod), is_ready(pod), tracked(pod))
        ended = look.state in ("Succeeded", "Failed")
        if not ended and not look.gone:
            self._active[key] = look.place
            self.ready += look.ready
            return
        if look.state in ("Pending", "Running"):
            self._going[key] = None
        if look.state == "Failed":
            self._failed[key] = None
        if look.tracked:
            self._held[key] = None

    def active(self) -> list[Tree]:
        """Return the active pods."""
        return [*self._pods] if len(self._active) == len(self._ids) else self._those(self._active)

    def places(self) -> list[int | None]:
        """Return the completion indexes of the active pods, in the same order."""
        of = self._active
        return [*map(of.__getitem__, self._ids if len(of) == len(self._ids) else filter(of.__contains__, self._ids))]

    def going(self) -> list[Tree]:
        """Return those that are being deleted while they wait or run."""
        return self._those(self._going)

    def failed(self) -> list[Tree]:
        """Return those in phase Failed."""
        return self._those(self._failed)

    def held(self) -> list[Look]:
        """Return what there is to say of those that have ended or are being deleted, with the finalizer on."""
        return [*map(self._known.__getitem__, filter(self._held.__contains__, self._ids))] if self._held else []

    def _those(self, some: Mapping[int, object]) -> list[Tree]:
        return [*compress(self._pods, map(some.__contains__, self._ids))] if some else []


def count(job: JobView, pods: Sequence[Tree], removing: dict[str, None], looks: Looks | None = None) -> Counts:
    """Classify the pods. `removing` names pods whose finalizer is gone although the cache does not show it yet; `looks` is kept from pass to pass."""
    found = Counts()
    known = job.uncounted_uids
    indexed, completions = job.indexed, job.completions_or_zero
    looks = Looks() if looks is None else looks
    looks.take(pods)
    found.active, found.ready = looks.active(), looks.ready
    found.terminating, found.all_failed = looks.going(), looks.failed()
    if indexed:
        places = found.indexes = looks.places()
        if None in places or max(filter(None, places), default=0) >= completions:
            found.unindexed = [pod for pod, place in zip(found.active, places, strict=True) if place is None or place >= completions]
    for pod, state, _, index, _, _ in looks.held():
        uid = pod["metadata"]["uid"]
        if uid in removing:
            continue
        in_range = job.counts(index)
        if state == "Succeeded":
            (found.counted_already if uid in known or not in_range else found.succeeded).append(pod)
        elif has_failed(job, pod):
            if not in_range:
                found.counted_already.append(pod)
                continue
            found.failed_tracked.append(pod)
            if uid not in known:
                found.failed.append(pod)
    return found


def completed_indexes(job: JobView, counts: Counts) -> list[int]:
    """Return the completed indexes, those of newly succeeded pods included, below completions."""
    if not job.indexed:
        return []
    done = set(indexes.parse(job.status.get("completedIndexes"), job.completions_or_zero))
    done.update(index for pod in counts.succeeded if (index := index_of(pod)) is not None)
    return sorted(done)
