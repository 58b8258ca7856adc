"""One pass over a Job's pods: who is active, ready, terminating, newly succeeded or newly failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kubemini.api.trees import Tree
from kubemini.controllers.job import indexes
from kubemini.controllers.job.pods import deleting, index_of, is_ready, phase, tracked
from kubemini.controllers.job.view import JobView


@dataclass(slots=True)
class Counts:
    """What the pods of a Job come to. `succeeded` and `failed` hold pods that still carry the finalizer and are in no uncounted list."""

    active: list[Tree] = field(default_factory=list)
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


def count(job: JobView, pods: Sequence[Tree], removing: dict[str, None]) -> Counts:
    """Classify the pods. `removing` names pods whose finalizer is gone although the cache does not show it yet."""
    found = Counts()
    known = job.uncounted_uids
    for pod in pods:
        state = phase(pod)
        gone = deleting(pod)
        index = index_of(pod) if job.indexed else None
        in_range = not job.indexed or (index is not None and index < job.completions_or_zero)
        if state not in ("Succeeded", "Failed"):
            if not gone:
                found.active.append(pod)
                if not in_range:
                    found.unindexed.append(pod)
                if is_ready(pod):
                    found.ready += 1
            elif state in ("Pending", "Running"):
                found.terminating.append(pod)
        if state == "Failed":
            found.all_failed.append(pod)
        uid = pod["metadata"]["uid"]
        if not tracked(pod) or uid in removing:
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
