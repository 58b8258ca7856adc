"""How many pods a Job should have, which ones go, and which indexes come: pure planning."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from kubemini.api.trees import Tree
from kubemini.controllers.job.backoff import delay
from kubemini.controllers.job.counting import Counts
from kubemini.controllers.job.pods import FAILURE_COUNT, IGNORED_COUNT, counter, finished_at, index_of, removal_rank
from kubemini.controllers.job.view import JobView

CREATES_PER_PASS = 500


@dataclass(slots=True)
class Replacement:
    """One pod to create: its index (None for NonIndexed Jobs) and the counts that it carries on (None without a limit per index)."""

    index: int | None = None
    failures: int | None = None
    ignored: int = 0


@dataclass(slots=True)
class Plan:
    """What a pass does to the pods: delete or create, never both; `again` is when to look again (seconds)."""

    delete: list[Tree] = field(default_factory=list)
    create: list[Replacement] = field(default_factory=list)
    again: float | None = None


def wanted(job: JobView, counts: Counts, succeeded: int) -> int:
    """Return how many pods should be active."""
    if job.completions is None:
        return len(counts.active) if succeeded > 0 else job.parallelism
    return max(min(job.parallelism, job.completions - succeeded), 0)


def plan(
    job: JobView,
    counts: Counts,
    *,
    succeeded: int,
    completed: list[int],
    failed_indexes: list[int] | None,
    ignored: Collection[str],
    wait: float,
    now: float,
) -> Plan:
    """Plan one pass; `wait` is what is left of the global back-off, `ignored` the uids of failed pods that the failure policy ignores."""
    want = wanted(job, counts, succeeded)
    surplus = list(counts.unindexed)
    if job.indexed and (surplus or len(set(counts.indexes)) < len(counts.indexes)):
        surplus += _duplicates(counts.active, surplus)
    rest = counts.active
    if surplus:
        listed = {pod["metadata"]["uid"] for pod in surplus}
        rest = [pod for pod in counts.active if pod["metadata"]["uid"] not in listed]
    if len(rest) > want:
        surplus += sorted(rest, key=removal_rank)[: len(rest) - want]
    if surplus:
        return Plan(delete=surplus)
    lack = want - len(counts.active)
    if job.waits_for_end:
        lack -= len(counts.terminating)
    if lack <= 0:
        return Plan()
    lack = min(lack, CREATES_PER_PASS)
    if not job.indexed:
        return Plan(again=wait) if wait > 0 else Plan(create=[Replacement()] * lack)
    free = _free_indexes(job, counts, completed, failed_indexes, lack)
    if job.per_index is None:
        return Plan(again=wait) if wait > 0 else Plan(create=[Replacement(index) for index in free])
    return _per_index(counts, free, ignored, now)


def _duplicates(active: Iterable[Tree], already: list[Tree]) -> list[Tree]:
    """Return active pods whose index another, further advanced pod has too."""
    gone = {pod["metadata"]["uid"] for pod in already}
    best: dict[int, Tree] = {}
    surplus = []
    for pod in active:
        index = index_of(pod)
        if index is None or pod["metadata"]["uid"] in gone:
            continue
        other = best.get(index)
        if other is None:
            best[index] = pod
        elif removal_rank(pod) > removal_rank(other):
            surplus.append(other)
            best[index] = pod
        else:
            surplus.append(pod)
    return surplus


def _free_indexes(job: JobView, counts: Counts, completed: list[int], failed_indexes: list[int] | None, lack: int) -> list[int]:
    taken = {*counts.indexes, *completed}
    taken.update(failed_indexes or ())
    if job.waits_for_end:
        taken.update(index for pod in counts.terminating if (index := index_of(pod)) is not None)
    free = []
    for index in range(job.completions_or_zero):
        if index not in taken:
            free.append(index)
            if len(free) == lack:
                break
    return free


def _per_index(counts: Counts, free: list[int], ignored: Collection[str], now: float) -> Plan:
    """Return the creations of a Job with a limit per index: each index waits for its own back-off and carries its counts on."""
    last = last_failures(counts.failed_tracked)
    found = Plan()
    for index in free:
        pod = last.get(index)
        if pod is None:
            found.create.append(Replacement(index, 0))
            continue
        failures, ignored_failures = carried(pod, counted=pod["metadata"]["uid"] not in ignored)
        left = finished_at(pod) + delay(failures + ignored_failures) - now
        if left > 0:
            found.again = left if found.again is None else min(found.again, left)
            continue
        found.create.append(Replacement(index, failures, ignored_failures))
    return found


def last_failures(pods: Iterable[Tree]) -> dict[int, Tree]:
    """Return the latest failed pod of each index: the one with the highest counts, then the latest end."""
    found: dict[int, Tree] = {}
    for pod in pods:
        index = index_of(pod)
        if index is None:
            continue
        other = found.get(index)
        if other is None or _age(pod) > _age(other):
            found[index] = pod
    return found


def _age(pod: Tree) -> tuple[int, float]:
    return counter(pod, FAILURE_COUNT) + counter(pod, IGNORED_COUNT), finished_at(pod)


def carried(pod: Tree, *, counted: bool) -> tuple[int, int]:
    """Return the failure and ignored counts that a failed pod's replacement carries."""
    failures, ignored = counter(pod, FAILURE_COUNT), counter(pod, IGNORED_COUNT)
    return (failures + 1, ignored) if counted else (failures, ignored + 1)
