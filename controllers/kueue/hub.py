"""The one shared memory of Kueue's controllers: the cache of what is held, the queues of what waits, and how events move Workloads between them.

A Workload is waiting, held, or neither, and every event about it, its LocalQueue, its ClusterQueue, flavors, checks, cohorts and namespaces is turned here into the right
place for it. Nothing here awaits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from kubemini.api.resources import (
    ADMISSION_CHECKS,
    CLUSTER_QUEUES,
    COHORTS,
    LIMIT_RANGES,
    LOCAL_QUEUES,
    NAMESPACES,
    RESOURCE_FLAVORS,
    RUNTIME_CLASSES,
    TOPOLOGIES,
    WORKLOADS,
)
from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.controllers.kueue import conditions
from kubemini.controllers.kueue.admission_fairness import AdmissionFairness
from kubemini.controllers.kueue.cache import Cache
from kubemini.controllers.kueue.config import KueueConfig
from kubemini.controllers.kueue.cycle import Places
from kubemini.controllers.kueue.queues import FairPending, Pending
from kubemini.controllers.kueue.requests import adjusted, totals
from kubemini.controllers.kueue.workloads import (
    Flavored,
    Info,
    admissible,
    backing_off,
    cluster_queue,
    gated,
    on_hold,
    pod_sets_of,
    priority_of,
    queue_timestamp,
    reclaimable_pods,
    shape,
)
from kubemini.runtime.controller import Context
from kubemini.runtime.env import from_stamp
from kubemini.runtime.keys import key_of

Listener = Callable[[str], None]
_STAMP_SECONDS = 1.5
"""A stamp younger than this is news: stamps are cut to whole seconds, and news takes its time."""


def _nothing(key: str) -> None:
    return None


class Hub:
    """Shared by all controllers of one Kueue process. `attach` is called by each controller's set-up; the first call wires the informers."""

    def __init__(self, config: KueueConfig) -> None:
        self.config = config
        self.cache = Cache(config)
        self.pending: dict[str, Pending] = {}
        self.places: Places | None = None
        self.admission_fairness: AdmissionFairness | None = None
        """What LocalQueues have used; None without admission fair sharing."""
        self.ready: dict[str, None] = {}
        """ClusterQueues in which a head may be open."""
        self.waking: dict[str, None] = {}
        """ClusterQueues whose lines are to be opened before the next cycle."""
        self.waits_in: dict[str, tuple[str, str]] = {}
        """Key of a waiting Workload → (ClusterQueue, LocalQueue key)."""
        self.local_pending: dict[str, int] = {}
        self.preempting: dict[str, str] = {}
        """Key of a Workload whose eviction was written and not seen yet → its uid."""
        self._queued: dict[str, tuple[str, float]] = {}
        """Key of a Workload without quota → since when it waits: as its own stamp says, and exactly."""
        self.on_due: Callable[[bool], None] = lambda urgent: None
        """Called when a cycle is due: at once, or soon."""
        self.on_queue: Listener = _nothing
        self.on_local_queue: Listener = _nothing
        self._ctx: Context | None = None

    def attach(self, ctx: Context) -> None:
        """Wire the informers, once."""
        if self._ctx is not None:
            return
        self._ctx = ctx
        self.workloads = ctx.informer(WORKLOADS)
        self.workloads.add_index("queue", lambda tree: (f"{tree['metadata']['namespace']}/{tree['spec'].get('queueName', '')}",))
        self.workloads.add_index("holder", lambda tree: (cluster_queue(tree),) if cluster_queue(tree) else ())
        self.local_queues = ctx.informer(LOCAL_QUEUES)
        self.local_queues.add_index("clusterQueue", lambda tree: (tree["spec"].get("clusterQueue", ""),))
        self.namespaces = ctx.informer(NAMESPACES)
        self.ranges = ctx.informer(LIMIT_RANGES)
        self.ranges.add_index("namespace", lambda tree: (tree["metadata"]["namespace"],))
        self.runtime_classes = ctx.informer(RUNTIME_CLASSES)
        ctx.informer(RESOURCE_FLAVORS).on_change(self._on_flavor)
        ctx.informer(ADMISSION_CHECKS).on_change(self._on_check)
        ctx.informer(TOPOLOGIES).on_change(self._on_topology)
        ctx.informer(COHORTS).on_change(self._on_cohort)
        ctx.informer(CLUSTER_QUEUES).on_change(self._on_cluster_queue)
        self.local_queues.on_change(self._on_local_queue)
        self.namespaces.on_change(self._on_namespace)
        self.ranges.on_change(self._on_limit_range)
        self.workloads.on_change(self._on_workload)
        if self.config.admission_fair_sharing is not None:
            fairness = AdmissionFairness(self.config.admission_fair_sharing, self.cache, self.local_queues.get_key, ctx.env.now, self._on_usage)
            self.admission_fairness = fairness
            self.cache.local_share = fairness.usage
            self.local_queues.on_change(fairness.on_local_queue)
            self.workloads.on_change(fairness.on_workload)

    def _on_usage(self, local_queue: str) -> None:
        """Have another look at who comes first in a ClusterQueue: one of its LocalQueues has used more, or less, than was known."""
        tree = self.local_queues.get_key(local_queue)
        queue: str = tree["spec"].get("clusterQueue", "") if tree is not None else ""
        pending = self.pending.get(queue)
        if isinstance(pending, FairPending) and pending.head() is not None:
            self._due(queue)

    def _new_pending(self, name: str, *, fair: bool) -> Pending:
        fairness = self.admission_fairness
        return FairPending(name, fairness.usage) if fair and fairness is not None else Pending(name)

    @property
    def ctx(self) -> Context:
        """The context of the process."""
        if self._ctx is None:
            raise RuntimeError("the hub has not been attached")
        return self._ctx

    # ------------------------------------------------------------------ Situation of a cycle

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """Return the labels of a namespace."""
        tree = self.namespaces.get(namespace)
        labels: Mapping[str, str] = (tree["metadata"].get("labels") or {}) if tree is not None else {}
        return labels

    def limit_ranges(self, namespace: str) -> Sequence[Tree]:
        """Return the LimitRanges of a namespace."""
        return self.ranges.by_index("namespace", namespace)

    # ------------------------------------------------------------------ readings

    def reading(self, tree: Tree, last: Flavored | None = None) -> Info:
        """Return the reading of a Workload that waits."""
        meta = tree["metadata"]
        pod_sets = self._adjusted(meta["namespace"], pod_sets_of(tree))
        by_eviction = self.config.pods_ready is None or self.config.pods_ready.by_eviction
        info = Info(
            tree,
            key_of(tree),
            meta["uid"],
            priority_of(tree, boost=self.config.on("PriorityBoost")),
            queue_timestamp(tree, by_eviction=by_eviction),
            pod_sets=pod_sets,
            last=last,
        )
        info.requests = totals(pod_sets, self.config, reclaimable_pods(tree))
        replaces = (meta.get("annotations") or {}).get(names.WORKLOAD_SLICE_REPLACEMENT_FOR)
        if replaces and self.config.on("ElasticJobsViaWorkloadSlices"):
            info.replaces = replaces
        return info

    def _adjusted(self, namespace: str, pod_sets: Sequence[Tree]) -> Sequence[Tree]:
        ranges = self.ranges.by_index("namespace", namespace)
        found = []
        changed = False
        for pod_set in pod_sets:
            spec = pod_set["template"]["spec"]
            overhead = None
            if spec.get("runtimeClassName"):
                runtime_class = self.runtime_classes.get(spec["runtimeClassName"])
                overhead = ((runtime_class.get("overhead") or {}).get("podFixed")) if runtime_class is not None else None
            new = adjusted(spec, ranges, overhead)
            if new is not spec:
                changed = True
                found.append({**pod_set, "template": {**pod_set["template"], "spec": new}})
            else:
                found.append(pod_set)
        return found if changed else pod_sets

    @staticmethod
    def _shape(info: Info) -> str:
        reclaimed = reclaimable_pods(info.tree)
        unique = info.key if info.replaces else ""
        return f"{info.priority}|{info.local_queue}|{shape(info.pod_sets)}|{sorted(reclaimed.items())}|{unique}"

    # ------------------------------------------------------------------ moving Workloads

    def enqueue(self, tree: Tree, last: Flavored | None = None) -> None:
        """Put a Workload where it has to wait, or nowhere."""
        key = key_of(tree)
        queue = self._queue_of(tree)
        if queue is None or not admissible(tree):
            self.dequeue(key)
            return
        pending = self.pending[queue]
        known = self.waits_in.get(key)
        if known is not None and known[0] != queue:
            self.dequeue(key)
        if last is None:
            before = pending.get(key)
            last = before.last if before is not None and before.tree["spec"] == tree["spec"] else None
        info = self.reading(tree, last)
        info.queue = queue
        self._note(key, queue, info.local_queue)
        if backing_off(tree, self.ctx.env.now()):
            pending.put_aside(info)
        elif pending.push(info, self._shape(info)):
            self._due(queue)

    def no_fit(self, key: str) -> str:
        """Return why a Workload that waits is not tried: the reason that one of the same shape got, or ""."""
        known = self.waits_in.get(key)
        return self.pending[known[0]].why_parked(key) if known is not None and known[0] in self.pending else ""

    def requeue(self, info: Info, *, park: bool, why: str = "") -> None:
        """Put a Workload back after a try in vain; `park` closes the line of its shape until a retry, for the reason `why`."""
        pending = self.pending.get(info.queue)
        fresh = self.workloads.get_key(info.key)
        if pending is None or fresh is None or fresh["metadata"]["uid"] != info.uid or not admissible(fresh) or self._queue_of(fresh) != info.queue:
            self.dequeue(info.key)
            return
        pending.in_flight = None
        mark = self._shape(info)
        if park:
            pending.park(mark, why)
        changed = fresh["spec"] is not info.tree["spec"]
        self._note(info.key, info.queue, info.local_queue)
        if changed:
            self.enqueue(fresh)
        else:
            info.tree = fresh
            pending.push(info, mark)
        if pending.head() is not None:
            self._due(info.queue)

    def dequeue(self, key: str) -> None:
        """Take a Workload out of its queue."""
        known = self.waits_in.pop(key, None)
        if known is not None:
            queue, local = known
            pending = self.pending.get(queue)
            if pending is not None:
                if pending.blocked == key:
                    self.wake_tree(queue)  # others may have lost against it
                pending.remove(key)
                if pending.head() is not None:
                    self._due(queue)
            self.local_pending[local] = self.local_pending.get(local, 0) - 1
            self.on_queue(queue)
            self.on_local_queue(local)

    def _note(self, key: str, queue: str, local: str) -> None:
        if self.waits_in.get(key) == (queue, local):
            return
        before = self.waits_in.get(key)
        if before is not None:
            self.local_pending[before[1]] = self.local_pending.get(before[1], 0) - 1
            self.on_local_queue(before[1])
        self.waits_in[key] = (queue, local)
        self.local_pending[local] = self.local_pending.get(local, 0) + 1
        self.on_queue(queue)
        self.on_local_queue(local)

    def _queue_of(self, tree: Tree) -> str | None:
        """Return the ClusterQueue behind a Workload's LocalQueue, where both are known and the latter runs."""
        local = self.local_queues.get(tree["spec"].get("queueName", ""), tree["metadata"]["namespace"])
        if local is None or local["spec"].get("stopPolicy", "None") != "None":
            return None
        name: str = local["spec"].get("clusterQueue", "")
        return name if name in self.pending else None

    def _due(self, queue: str) -> None:
        self.ready[queue] = None
        self.on_due(True)

    def wake(self, queues: Iterable[str]) -> None:
        """Let what was tried in vain in these ClusterQueues be tried again, soon."""
        for name in queues:
            self.waking[name] = None
        self.on_due(False)

    def wake_tree(self, queue: str) -> None:
        """The same for a ClusterQueue and all that share quota with it."""
        state = self.cache.queues.get(queue)
        if state is not None:
            self.wake(self.cache.tree_of(state))

    def heads(self) -> list[Info]:
        """Take the heads for a cycle: of queues with an open head, and the waiting heads of queues that share quota with one of those."""
        waking, self.waking = self.waking, {}
        for name in waking:
            pending = self.pending.get(name)
            if pending is not None:
                pending.retry()
                self.ready[name] = None
        chosen: dict[str, None] = {}
        for name in list(self.ready):
            pending = self.pending.get(name)
            if pending is None or name not in self.cache.queues or not self.cache.health(name).active or pending.head() is None:
                del self.ready[name]
            else:
                chosen[name] = None
        for name in list(chosen):
            for other in self.cache.tree_of(self.cache.queues[name]):
                pending = self.pending.get(other)
                if pending is not None and pending.blocked is not None and self.cache.health(other).active:
                    pending.blocked = None
                    chosen[other] = None
        found = []
        for name in chosen:
            info = self.pending[name].pop()
            if info is not None:
                found.append(info)
        return found

    # ------------------------------------------------------------------ events

    def _on_workload(self, old: Tree | None, new: Tree | None) -> None:
        tree = new if new is not None else old
        if tree is None:
            return
        key, uid = key_of(tree), tree["metadata"]["uid"]
        self._note_queued(key, new)
        # Old news of one whose reservation is assumed say nothing of its eviction
        back = new is not None and not conditions.reserved(new) and key not in self.cache.assumed
        if self.preempting.get(key) == uid and (new is None or conditions.evicted(new) or back):
            del self.preempting[key]
        held = self.cache.held(key)
        if new is None or conditions.finished(new) or not conditions.active(new):
            self.dequeue(key)
            if held is not None and (held.uid == uid or new is not None):
                self._release(key)
        elif conditions.reserved(new):
            self.dequeue(key)
            before = held
            info = self.cache.observe(new)
            self._touch(info.queue, info.local_queue)
            if before is not None and (before.queue != info.queue or any(info.usage.get(fr, 0) < value for fr, value in before.usage.items())):
                self.wake_tree(before.queue)
            elif before is not None and before.priority != info.priority:
                self.wake_tree(info.queue)
            ready = self.config.pods_ready
            if (
                ready is not None
                and ready.block_admission
                and key not in self.cache.not_ready
                and old is not None
                and not conditions.is_true(old, names.PODS_READY)
            ):
                self.wake(self.pending)
        elif held is not None and key in self.cache.assumed and held.uid == uid:
            return
        else:
            if held is not None:
                self._release(key)
            if backing_off(new, self.ctx.env.now()) and not on_hold(new) and not gated(new):
                self.enqueue(new)
                return
            self.enqueue(new)

    def _note_queued(self, key: str, workload: Tree | None) -> None:
        if workload is None or conditions.reserved(workload) or conditions.finished(workload):
            self._queued.pop(key, None)
            return
        stamp = _queued_stamp(workload)
        known = self._queued.get(key)
        if known is None or known[0] != stamp:
            now, stamped = self.ctx.env.now(), from_stamp(stamp)
            self._queued[key] = (stamp, now if now - stamped < _STAMP_SECONDS else stamped)

    def queued_since(self, workload: Tree) -> float:
        """Return since when a Workload waits for quota: since it was made or put back, to the moment where we saw that happen."""
        stamp = _queued_stamp(workload)
        known = self._queued.get(key_of(workload))
        return known[1] if known is not None and known[0] == stamp else from_stamp(stamp)

    def _release(self, key: str) -> None:
        info = self.cache.release(key)
        if info is not None:
            self._touch(info.queue, info.local_queue)
            self.wake_tree(info.queue)

    def forget(self, key: str) -> None:
        """Take back an assumption whose write failed, and the penalty that came with it."""
        info = self.cache.assumed.get(key)
        if info is not None:
            self._release(key)
            if self.admission_fairness is not None:
                self.admission_fairness.take_back(info.local_queue, key)

    def _touch(self, queue: str, local: str) -> None:
        self.on_queue(queue)
        self.on_local_queue(local)

    def _on_local_queue(self, old: Tree | None, new: Tree | None) -> None:
        tree = new if new is not None else old
        if tree is None:
            return
        if old is not None and new is not None and old["spec"] == new["spec"]:
            return
        key = key_of(tree)
        for workload in self.workloads.by_index("queue", key):
            if not conditions.reserved(workload):
                self.enqueue(workload)
        self.on_queue(tree["spec"].get("clusterQueue", ""))

    def _on_cluster_queue(self, old: Tree | None, new: Tree | None) -> None:
        tree = new if new is not None else old
        if tree is None:
            return
        name = tree["metadata"]["name"]
        if new is None:
            state = self.cache.queues.get(name)
            relatives = self.cache.tree_of(state) if state is not None else []
            for key, (queue, _) in list(self.waits_in.items()):
                if queue == name:
                    self.dequeue(key)
            self.pending.pop(name, None)
            self.ready.pop(name, None)
            self.cache.drop_queue(name)
            self.wake(relatives)
            self._touch_locals(name)
            return
        known = self.cache.queues.get(name)
        before = self.cache.tree_of(known) if known is not None else []
        spec_changed = known is None or known.tree["spec"] != new["spec"]
        ended = "deletionTimestamp" in new["metadata"] and (old is None or "deletionTimestamp" not in old["metadata"])
        was_fair = known is not None and known.admission_fair
        state = self.cache.set_queue(new)
        if known is not None and state.admission_fair != was_fair:
            old_pending = self.pending[name]
            self.pending[name] = self._new_pending(name, fair=state.admission_fair)
            self.pending[name].take_over(old_pending)
        if known is None:
            self.pending[name] = self._new_pending(name, fair=state.admission_fair)
            self.cache.adopt(name, iter(self.workloads.by_index("holder", name)))
            for local in self.local_queues.by_index("clusterQueue", name):
                for workload in self.workloads.by_index("queue", key_of(local)):
                    if not conditions.reserved(workload):
                        self.enqueue(workload)
        if spec_changed or ended:
            self.wake([*before, *self.cache.tree_of(state)])
            self._touch_locals(name)
            self.on_queue(name)

    def _touch_locals(self, queue: str) -> None:
        for local in self.local_queues.by_index("clusterQueue", queue):
            self.on_local_queue(key_of(local))

    def _on_cohort(self, old: Tree | None, new: Tree | None) -> None:
        if new is not None:
            if old is not None and old.get("spec") == new.get("spec"):
                return
            self.cache.set_cohort(new)
        elif old is not None:
            self.cache.drop_cohort(old["metadata"]["name"])
        self.wake(self.pending)

    def _on_flavor(self, old: Tree | None, new: Tree | None) -> None:
        tree = new if new is not None else old
        if tree is None:
            return
        name = tree["metadata"]["name"]
        self.cache.set_flavor(name, new)
        if old is None or new is None or old["spec"] != new["spec"]:
            self.cache.generation += 1
            self._health_changed(queue for queue, state in self.cache.queues.items() if name in state.flavors())

    def _on_check(self, old: Tree | None, new: Tree | None) -> None:
        tree = new if new is not None else old
        if tree is None:
            return
        name = tree["metadata"]["name"]
        self.cache.set_check(name, new)
        self._health_changed(queue for queue, state in self.cache.queues.items() if any(check == name for check, _ in state.checks))

    def _on_topology(self, old: Tree | None, new: Tree | None) -> None:
        tree = new if new is not None else old
        if tree is None:
            return
        name = tree["metadata"]["name"]
        self.cache.set_topology(name, new)
        users = {flavor for flavor, each in self.cache.flavors.items() if each["spec"].get("topologyName") == name}
        self._health_changed(queue for queue, state in self.cache.queues.items() if any(flavor in users for flavor in state.flavors()))

    def _health_changed(self, queues: Iterable[str]) -> None:
        names_ = list(queues)
        for name in names_:
            self.on_queue(name)
            self._touch_locals(name)
        self.wake(names_)

    def _on_namespace(self, old: Tree | None, new: Tree | None) -> None:
        if new is not None and (old is None or old["metadata"].get("labels") != new["metadata"].get("labels")):
            self.wake(name for name, state in self.cache.queues.items() if state.selector.matches(new["metadata"].get("labels") or {}))

    def _on_limit_range(self, old: Tree | None, new: Tree | None) -> None:
        tree = new if new is not None else old
        if tree is not None:
            namespace = tree["metadata"]["namespace"]
            for key in [key for key in self.waits_in if key.startswith(namespace + "/")]:
                workload = self.workloads.get_key(key)
                if workload is not None:
                    self.enqueue(workload)


def _queued_stamp(workload: Tree) -> str:
    requeued = conditions.find(workload, names.REQUEUED)
    since: str = (
        requeued["lastTransitionTime"] if requeued is not None and requeued["status"] == "True" else workload["metadata"]["creationTimestamp"]
    )
    return since
