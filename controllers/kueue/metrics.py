"""What Kueue counts, by upstream's names, labels and buckets (August 2026). But for preemptions and attempts it is read off the Workloads as they change.

Upstream keeps most measures twice, by ClusterQueue and by LocalQueue; the latter only for the LocalQueues that the configuration asks for.
"""

from __future__ import annotations

from dataclasses import dataclass

from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.controllers.kueue import conditions
from kubemini.controllers.kueue.gauges import gauges
from kubemini.controllers.kueue.hub import Hub
from kubemini.controllers.kueue.workloads import cluster_queue
from kubemini.runtime.env import from_stamp
from kubemini.runtime.telemetry import Counter, Families, Histogram, exponential

WAITS, LONG_WAITS = (1.0, *exponential(2.5, 2, 13)), (1.0, *exponential(2.5, 2, 15))
"""Upper bounds in seconds."""
_PRIORITY = "priority_class"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a Workload is counted: its ClusterQueue, and its LocalQueue (namespace, name) where that one is counted."""

    queue: str
    local: tuple[str, str] | None
    role: str


class _Counts:
    """A counter by ClusterQueue, and the same by LocalQueue."""

    def __init__(self, name: str, help_: str, *labels: str) -> None:
        self._queues = Counter(f"kueue_{name}", f"{help_} per 'cluster_queue'", ("cluster_queue", *labels, "replica_role"))
        self._locals = Counter(f"kueue_local_queue_{name}", f"{help_} per 'local_queue'", ("name", "namespace", *labels, "replica_role"))

    def inc(self, place: Place, *values: str) -> None:
        """Count one."""
        self._queues.inc(place.queue, *values, place.role)
        if place.local is not None:
            namespace, name = place.local
            self._locals.inc(name, namespace, *values, place.role)

    def both(self) -> Families:
        """Return both counters."""
        return (self._queues, self._locals)


class _Seconds:
    """A histogram by ClusterQueue and priority class, and the same by LocalQueue."""

    def __init__(self, name: str, help_: str, bounds: tuple[float, ...], local_bounds: tuple[float, ...] = WAITS) -> None:
        labels = (_PRIORITY, "replica_role")
        self._queues = Histogram(f"kueue_{name}_seconds", f"{help_}, per 'cluster_queue'", ("cluster_queue", *labels), bounds)
        self._locals = Histogram(f"kueue_local_queue_{name}_seconds", f"{help_}, per 'local_queue'", ("name", "namespace", *labels), local_bounds)

    def observe(self, place: Place, seconds: float, priority: str) -> None:
        """Count a time."""
        self._queues.observe(max(seconds, 0.0), place.queue, priority, place.role)
        if place.local is not None:
            namespace, name = place.local
            self._locals.observe(max(seconds, 0.0), name, namespace, priority, place.role)

    def both(self) -> Families:
        """Return both histograms."""
        return (self._queues, self._locals)


class Metrics:
    """The measures of one Kueue process."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._role = hub.config.metrics.role
        role = ("replica_role",)
        self._attempts = Counter("kueue_admission_attempts_total", "The total number of attempts to admit workloads", ("result", *role))
        self._durations = Histogram(
            "kueue_admission_attempt_duration_seconds",
            "The latency of an admission attempt",
            ("result", *role),
            (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
        )
        self._preempted = Counter(
            "kueue_preempted_workloads_total", "The number of preempted workloads", ("preempting_cluster_queue", "reason", *role)
        )
        self._replaced = Counter("kueue_replaced_workload_slices_total", "The number of replaced workload slices", ("cluster_queue", *role))
        self._once = Counter(
            "kueue_evicted_workloads_once_total",
            "The number of unique workload evictions",
            ("cluster_queue", "reason", "underlying_cause", _PRIORITY, *role),
        )
        self._in_cohorts = Counter(
            "kueue_cohort_subtree_admitted_workloads_total",
            "The total number of admitted workloads per cohort's subtree",
            ("cohort", _PRIORITY, *role),
        )
        self._reserved = _Counts("quota_reserved_workloads_total", "The total number of quota reserved workloads", _PRIORITY)
        self._admitted = _Counts("admitted_workloads_total", "The total number of admitted workloads", _PRIORITY)
        self._finished = _Counts("finished_workloads_total", "The total number of finished workloads", _PRIORITY)
        self._evicted = _Counts("evicted_workloads_total", "The number of evicted workloads", "reason", "underlying_cause", _PRIORITY)
        since = "The time between a workload was created or requeued until"
        self._until_reserved = _Seconds("quota_reserved_wait_time", f"{since} it got quota reservation", WAITS)
        self._until_admitted = _Seconds("admission_wait_time", f"{since} admission", LONG_WAITS)
        self._until_ready = _Seconds("ready_wait_time", f"{since} ready", WAITS)
        self._checking = _Seconds("admission_checks_wait_time", "The time from when a workload got the quota reservation until admission", WAITS)
        self._starting = _Seconds("admitted_until_ready_wait_time", "The time between a workload was admitted until ready", WAITS)
        self._executing = _Seconds("execution_time", "The total execution time of a finished admitted workload", LONG_WAITS, LONG_WAITS)
        self._ready_to_evicted = Histogram(
            "kueue_pods_ready_to_evicted_time_seconds",
            "The number of seconds between a workload's pods being ready and eviction",
            ("cluster_queue", "reason", "underlying_cause", *role),
            WAITS,
        )
        self._leaving = Histogram(
            "kueue_workload_eviction_latency_seconds",
            "The time from workload eviction until the workload returns to Pending",
            ("cluster_queue", "reason", *role),
            WAITS,
        )

    def all(self) -> Families:
        """Return every measure."""
        doubled = (self._reserved, self._admitted, self._finished, self._evicted)
        timed = (self._until_reserved, self._until_admitted, self._until_ready, self._checking, self._starting, self._executing)
        single = (
            self._attempts,
            self._durations,
            self._preempted,
            self._replaced,
            self._once,
            self._in_cohorts,
            self._ready_to_evicted,
            self._leaving,
        )
        return (*single, *(each for pair in (*doubled, *timed) for each in pair.both()), *gauges(self._hub))

    # ------------------------------------------------------------------ told by the scheduler

    def tried(self, seconds: float, *, admitted: bool) -> None:
        """Count a cycle."""
        result = "success" if admitted else "inadmissible"
        self._attempts.inc(result, self._role)
        self._durations.observe(seconds, result, self._role)

    def preempted(self, queue: str, reason: str) -> None:
        """Count a Workload that had to go for one of a ClusterQueue."""
        self._preempted.inc(queue, reason, self._role)

    # ------------------------------------------------------------------ read off Workloads

    def on_workload(self, old: Tree | None, new: Tree | None) -> None:
        """Count what has become of a Workload."""
        if old is None or new is None or old["metadata"]["uid"] != new["metadata"]["uid"] or old.get("status") is new.get("status"):
            return
        priority = (new["spec"].get("priorityClassRef") or {}).get("name", "")
        self._count_admission(old, new, priority)
        self._count_readiness(old, new, priority)
        self._count_evictions(old, new, priority)
        if conditions.finished(new) and not conditions.finished(old):
            self._count_end(new, priority)

    def _place(self, workload: Tree) -> Place:
        queue, meta, name = cluster_queue(workload), workload["metadata"], workload["spec"].get("queueName", "")
        counted = self._hub.config.metrics.local_queues
        local = self._hub.local_queues.get(name, meta["namespace"]) if queue and counted is not None else None
        there = local is not None and counted is not None and counted.matches(local["metadata"].get("labels"))
        return Place(queue, (meta["namespace"], name) if there else None, self._role)

    def _count_admission(self, old: Tree, new: Tree, priority: str) -> None:
        fresh = conditions.reserved(new) and not conditions.reserved(old)
        admitted = conditions.admitted(new) and not conditions.admitted(old)
        if not fresh and not admitted:
            return
        place, now = self._place(new), self._hub.ctx.env.now()
        waited = now - _queued(new)
        if fresh:
            self._reserved.inc(place, priority)
            self._until_reserved.observe(place, waited, priority)
        if not admitted:
            return
        self._admitted.inc(place, priority)
        self._until_admitted.observe(place, waited, priority)
        if not fresh:
            self._checking.observe(place, now - _since(new, names.QUOTA_RESERVED), priority)
        elif (new.get("status") or {}).get("admissionChecks"):
            self._checking.observe(place, 0.0, priority)
        state = self._hub.cache.queues.get(place.queue)
        if state is not None and self._hub.config.on("MetricsForCohorts"):
            for cohort in state.node.ancestors():
                self._in_cohorts.inc(cohort.name, priority, self._role)

    def _count_readiness(self, old: Tree, new: Tree, priority: str) -> None:
        ready = conditions.find(new, names.PODS_READY)
        if ready is None or (ready["status"], ready["reason"]) != ("True", names.STARTED) or conditions.is_true(old, names.PODS_READY):
            return
        if not cluster_queue(new):
            return
        place = self._place(new)
        self._until_ready.observe(place, self._hub.ctx.env.now() - _queued(new), priority)
        if conditions.admitted(new):
            self._starting.observe(place, from_stamp(ready["lastTransitionTime"]) - _since(new, names.ADMITTED), priority)

    def _count_evictions(self, old: Tree, new: Tree, priority: str) -> None:
        queue = cluster_queue(old)
        if not queue:
            return
        before, after = _evictions(old), _evictions(new)
        for (reason, cause), count in after.items():
            if count <= before.get((reason, cause), 0):
                continue
            self._evicted.inc(self._place(old), reason, cause, priority)
            if (reason, cause) not in before:
                self._once.inc(queue, reason, cause, priority, self._role)
            if conditions.is_true(new, names.PODS_READY):
                seconds = _since(new, names.EVICTED) - _since(new, names.PODS_READY)
                self._ready_to_evicted.observe(max(seconds, 0.0), queue, reason, cause, self._role)
        evicted = conditions.find(new, names.EVICTED)
        left = conditions.reserved(old) and not conditions.reserved(new) and not conditions.finished(new)
        if left and evicted is not None and evicted["status"] == "True":
            seconds = self._hub.ctx.env.now() - from_stamp(evicted["lastTransitionTime"])
            self._leaving.observe(max(seconds, 0.0), queue, evicted["reason"], self._role)

    def _count_end(self, new: Tree, priority: str) -> None:
        place = self._place(new)
        self._finished.inc(place, priority)
        end = conditions.find(new, names.FINISHED)
        if end is None:
            return
        if end["reason"] == names.WORKLOAD_SLICE_REPLACED and place.queue:
            self._replaced.inc(place.queue, self._role)
        if conditions.admitted(new):
            spent = (new.get("status") or {}).get("accumulatedPastExecutionTimeSeconds") or 0
            self._executing.observe(place, spent + from_stamp(end["lastTransitionTime"]) - _since(new, names.ADMITTED), priority)


def _since(workload: Tree, type_: str) -> float:
    """Return when a condition took its status; the Workload's beginning where there is none."""
    found = conditions.find(workload, type_)
    return from_stamp(found["lastTransitionTime"] if found is not None else workload["metadata"]["creationTimestamp"])


def _queued(workload: Tree) -> float:
    return _since(workload, names.REQUEUED)


def _evictions(workload: Tree) -> dict[tuple[str, str], int]:
    stats = (workload.get("status") or {}).get("schedulingStats") or {}
    return {(each["reason"], each.get("underlyingCause", "")): each["count"] for each in stats.get("evictions") or ()}
