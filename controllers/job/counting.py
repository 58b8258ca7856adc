"""One pass over a Job's pods: who is active, ready, terminating, newly succeeded or newly failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
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
    """Succeeded pods that still carry the finalizer and are not to be counted: they are in the uncounted list, and taking it off did not work, or out of range."""
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


Looks = dict[str, Look]
"""What was seen of a Job's pods, by uid: a pod that is the very same tree is not looked at again, so that a pass over many pods costs little."""


def count(job: JobView, pods: Sequence[Tree], removing: dict[str, None], looks: Looks | None = None) -> Counts:
    """Classify the pods. `removing` names pods whose finalizer is gone although the cache does not show it yet; `looks` is kept from pass to pass."""
    found = Counts()
    known = job.uncounted_uids
    indexed, completions = job.indexed, job.completions_or_zero
    looks = {} if looks is None else looks
    if len(looks) > 2 * len(pods) + 64:
        looks.clear()
    for pod in pods:
        uid = pod["metadata"]["uid"]
        look = looks.get(uid)
        if look is None or look.pod is not pod:
            look = looks[uid] = Look(pod, phase(pod), deleting(pod), index_of(pod), is_ready(pod), tracked(pod))
        _, state, gone, index, ready, held = look
        in_range = not indexed or (index is not None and index < completions)
        if state not in ("Succeeded", "Failed"):
            if not gone:
                found.active.append(pod)
                found.indexes.append(index)
                found.ready += ready
                if not in_range:
                    found.unindexed.append(pod)
                continue
            if state in ("Pending", "Running"):
                found.terminating.append(pod)
        if state == "Failed":
            found.all_failed.append(pod)
        if not held or uid in removing:
            continue
        if state == "Succeeded":
            (found.counted_already if uid in known or not in_range else found.succeeded).append(pod)
        elif has_failed(job, pod):
            found.failed_tracked.append(pod)
            if uid not in known and in_range:
                found.failed.append(pod)
    return found


def completed_indexes(job: JobView, counts: Counts) -> list[int]:
    """Return the completed indexes, those of newly succeeded pods included, below completions."""
    if not job.indexed:
        return []
    done = set(indexes.parse(job.status.get("completedIndexes"), job.completions_or_zero))
    done.update(index for pod in counts.succeeded if (index := index_of(pod)) is not None)
    return sorted(done)
