"""One scheduling cycle: the heads of the queues are nominated, put in order and processed one by one.

Everything here is synchronous: no event can come in between, so the cache itself serves as the snapshot; what is only supposed (quota set aside for
a preemptor) is undone at the end. What comes out is a list of entries, each with a verdict, for the shell to write. Mirrors Kueue's
``pkg/scheduler/scheduler.go``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.controllers.kueue.amounts import Usage, amounts
from kubemini.controllers.kueue.cache import Cache, QueueState
from kubemini.controllers.kueue.fairness import FairPreemption
from kubemini.controllers.kueue.flavors import Assigner, Assignment, Mode, Oracle
from kubemini.controllers.kueue.ordering import classic_key, tournament
from kubemini.controllers.kueue.preemption import Preemption, Target, Wish
from kubemini.controllers.kueue.quota import Undo
from kubemini.controllers.kueue.requests import NAMESPACE_MISMATCH, misfit, totals
from kubemini.controllers.kueue.workloads import Flavored, Info, assignments, reclaimable_pods


class Outcome(Enum):
    """What became of an entry."""

    ADMITTED = "admitted"
    PREEMPTING = "preempting"
    WAITING = "waiting"
    """It did not fit, or lost against another entry."""
    BLOCKED = "blocked"
    """It fits, but earlier Workloads are not ready."""
    DROPPED = "dropped"


class Requeue(Enum):
    """How a loser goes back into its queue."""

    GENERIC = ""
    NO_FIT = "NoFit"
    NO_CANDIDATES = "PreemptionNoCandidates"
    PENDING_PREEMPTION = "PendingPreemption"
    FAILED_AFTER_NOMINATION = "FailedAfterNomination"
    NAMESPACE_MISMATCH = "NamespaceMismatch"


@dataclass(slots=True, eq=False)
class Entry:
    """One Workload in a cycle."""

    info: Info
    queue: QueueState
    assignment: Assignment = field(default_factory=Assignment)
    targets: list[Target] = field(default_factory=list)
    outcome: Outcome = Outcome.WAITING
    requeue: Requeue = Requeue.GENERIC
    reason: str = ""
    message: str = ""
    replaced: Info | None = None
    """The slice that this one replaces."""
    found: Mapping[str, Mapping[str, str]] | None = None
    """The flavors of each pod set that a new assignment has to be made of."""

    @property
    def usage(self) -> Usage:
        """What it would take."""
        return self.assignment.usage

    @property
    def borrow(self) -> int:
        """How high up it borrows."""
        return self.assignment.borrow

    def position(self, generation: int) -> Flavored | None:
        """Return where the next attempt goes on; None where it begins anew: once victims are gone every flavor is worth another look."""
        if self.requeue is Requeue.PENDING_PREEMPTION:
            return None
        return self.assignment.position(generation) if self.assignment.pod_sets else self.info.last

    def refuse(self, reason: str, message: str, requeue: Requeue = Requeue.GENERIC) -> Entry:
        """Say why it is not admitted."""
        self.reason, self.message, self.requeue = reason, message, requeue
        return self


class Places(Protocol):
    """What a cycle asks about topologies."""

    def mismatch(self, queue: QueueState, pod_set: Tree, flavor: str) -> str:
        """Return why a flavor does not do for the topology request of a pod set, or ""."""
        ...

    def begin(self) -> None:
        """Start a cycle: forget what was supposed."""
        ...

    def place(self, entry: Entry, assignment: Assignment, gone: Mapping[str, Info], *, empty: bool = False) -> str:
        """Place an assignment's pod sets without the Workloads in `gone` (on an empty cluster: without any); return why it cannot, or ""."""
        ...

    def suppose(self, assignment: Assignment) -> None:
        """Count an assignment's places until the cycle ends."""
        ...


class Situation(Protocol):
    """What a cycle asks of the world."""

    cache: Cache
    places: Places | None

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """Return the labels of a namespace."""
        ...

    def limit_ranges(self, namespace: str) -> Sequence[Tree]:
        """Return the LimitRanges of a namespace."""
        ...


class Cycle:
    """One run over some heads."""

    def __init__(self, world: Situation) -> None:
        self.world = world
        self.cache = world.cache.linked()
        self.config = self.cache.config
        self.preemption = Preemption(self.cache)
        self.fair = FairPreemption(self.cache, self.config.fair_strategies) if self.config.fair_sharing else None
        self.undo = Undo()
        self.preempted: dict[str, Info] = {}
        self.gone: Mapping[str, Info] = {}
        """Whom a new assignment takes for gone."""
        self.admitted: list[Entry] = []
        if world.places is not None:
            world.places.begin()

    def run(self, heads: Sequence[Info]) -> list[Entry]:
        """Decide about the heads of queues. Admitted Workloads are assumed in the cache when this returns."""
        entries = [self.nominate(info, self.cache.queues[info.queue]) for info in heads]
        contenders = [entry for entry in entries if not entry.reason and entry.outcome is not Outcome.DROPPED]
        try:
            for entry in self._ordered(contenders):
                self.process(entry)
        finally:
            self.undo.back()
        return entries

    def _ordered(self, entries: list[Entry]) -> Iterator[Entry]:
        if self.config.fair_sharing:
            return tournament(entries)
        return iter(sorted(entries, key=classic_key))

    # ------------------------------------------------------------------ nominating

    def nominate(self, info: Info, queue: QueueState) -> Entry:
        """Find flavors and preemption targets for one Workload, or why there are none."""
        entry = Entry(info, queue)
        if self.cache.held(info.key) is not None:
            entry.outcome = Outcome.DROPPED
            return entry
        namespace = info.tree["metadata"]["namespace"]
        states = {check["state"] for check in (info.tree.get("status") or {}).get("admissionChecks") or ()}
        if states & {"Retry", "Rejected"}:
            return entry.refuse(names.PENDING_EVALUATION, "The workload has failed admission checks")
        if queue.node.broken or not self.cache.health(queue.name).active:
            return entry.refuse(names.SUSPENDED, f"ClusterQueue {queue.name} is inactive")
        if not queue.selector.matches(self.world.namespace_labels(namespace)):
            return entry.refuse(names.MISCONFIGURED, NAMESPACE_MISMATCH, Requeue.NAMESPACE_MISMATCH)
        problem = misfit(info.pod_sets, self.world.limit_ranges(namespace))
        if problem:
            return entry.refuse(names.MISCONFIGURED, problem)
        entry.replaced = self.cache.held(info.replaces) if info.replaces else None
        self._assign(entry)
        return entry

    def _assigner(self, entry: Entry) -> Assigner:
        queue, info = entry.queue, entry.info
        places = self.world.places
        only, discount = entry.found, None
        if entry.replaced is not None:
            given = assignments(entry.replaced.tree)
            only = {each["name"]: each.get("flavors") or {} for each in given}
            discount = {each["name"]: amounts(each.get("resourceUsage")) for each in given}
        return Assigner(
            queue,
            self.cache.flavors,
            info,
            self._oracle(queue, info),
            fair=self.config.fair_sharing,
            ignore_undeclared=self.config.ignore_undeclared,
            topology=(lambda pod_set, flavor: places.mismatch(queue, pod_set, flavor)) if places is not None else None,
            generation=self.cache.allocation(queue),
            only=only,
            discount=discount,
        )

    def _oracle(self, queue: QueueState, info: Info) -> Oracle:
        if self.fair is None:
            return self.preemption.oracle(queue, info)
        return Preemption.oracle(_FairView(self.cache, self.fair), queue, info)

    def _assign(self, entry: Entry) -> None:
        assigner = self._assigner(entry)
        entry.assignment, entry.targets = self._attempt(entry, assigner, None)
        if self._good(entry.assignment, entry.targets) or not self.config.on("PartialAdmission"):
            return
        reducible = {
            each["name"]: each["count"] - each["minCount"]
            for each in entry.info.pod_sets
            if each.get("minCount") and each["minCount"] < each["count"]
        }
        total = sum(reducible.values())
        if not total:
            return
        full = {each["name"]: each["count"] for each in entry.info.pod_sets}
        low, high = 1, total
        best: tuple[Assignment, list[Target]] | None = None
        while low <= high:
            middle = (low + high) // 2
            counts = {name: count - reducible.get(name, 0) * middle // total for name, count in full.items()}
            assignment, targets = self._attempt(entry, assigner, counts)
            if self._good(assignment, targets):
                best, high = (assignment, targets), middle - 1
            else:
                low = middle + 1
        if best is not None:
            entry.assignment, entry.targets = best

    @staticmethod
    def _good(assignment: Assignment, targets: Sequence[Target]) -> bool:
        return assignment.mode is Mode.FIT or (assignment.preempts and bool(targets))

    def _attempt(self, entry: Entry, assigner: Assigner, counts: Mapping[str, int] | None) -> tuple[Assignment, list[Target]]:
        info = entry.info
        requests = info.requests if counts is None else totals(info.pod_sets, self.config, reclaimable_pods(info.tree), counts)
        assignment = assigner.assign(requests)
        places = self.world.places
        if places is not None and assignment.mode is Mode.FIT:
            self._by_topology(entry, assignment)
        targets: list[Target] = []
        if assignment.preempts:
            problem = places.place(entry, assignment, {}, empty=True) if places is not None else ""
            if problem:
                _downgrade(assignment, problem, Mode.NO_FIT, names.TOPOLOGY_PLACEMENT_FAILED)
                return assignment, []
            targets = self.find_targets(entry, assignment)
            if places is not None and targets:
                places.place(entry, assignment, {**self.gone, **{target.info.key: target.info for target in targets}})
        return assignment, targets

    def _by_topology(self, entry: Entry, assignment: Assignment) -> None:
        """Place an assignment that fits by quota; where it cannot be placed, others may have to go for it, or nothing helps."""
        places = self.world.places
        assert places is not None
        problem = places.place(entry, assignment, self.gone)
        if not problem:
            return
        if places.place(entry, assignment, {}, empty=True):
            _downgrade(assignment, problem, Mode.NO_FIT, names.TOPOLOGY_PLACEMENT_FAILED)
        else:
            _downgrade(assignment, problem, Mode.NO_CANDIDATES, names.WAITING_FOR_QUOTA)

    def find_targets(self, entry: Entry, assignment: Assignment) -> list[Target]:
        """Return whom to evict for an assignment."""
        places = self.world.places
        wish = Wish(entry.queue, entry.info, assignment.usage, assignment.needing_preemption())
        if places is not None:
            wish.fits = lambda gone: not places.place(entry, assignment, {**self.gone, **gone})
        return self.fair.targets(wish) if self.fair is not None else self.preemption.targets(wish)

    # ------------------------------------------------------------------ processing

    def process(self, entry: Entry) -> None:
        """Decide about one entry, on what earlier entries have left."""
        deferred = self._overlaps(entry) and self.config.on("RecomputeAssignmentUponPreemptionTargetsOverlap") and self._assign_behind(entry)
        assignment = entry.assignment
        if assignment.mode is Mode.NO_FIT:
            entry.refuse(assignment.reason, assignment.message(), Requeue.NO_FIT)
            return
        if assignment.preempts and not entry.targets:
            entry.refuse(names.WAITING_FOR_QUOTA, assignment.message(), Requeue.NO_CANDIDATES)
            if entry.queue.policy.reclaim != "Any":
                self.undo.add(entry.queue.node, self._reserve(entry))
                self._suppose(entry)
            return
        if deferred:
            message = "Workload has overlapping preemption targets with another workload, but will fit after these preemptions complete"
            entry.refuse(names.WAITING_FOR_PREEMPTED_WORKLOADS, message, Requeue.PENDING_PREEMPTION)
            self.undo.add(entry.queue.node, assignment.usage)
            self._suppose(entry)
            return
        if self._overlaps(entry):
            entry.refuse(
                names.WAITING_FOR_QUOTA, "Workload has overlapping preemption targets with another workload", Requeue.FAILED_AFTER_NOMINATION
            )
            return
        if not self._still_fits(entry):
            entry.refuse(names.WAITING_FOR_QUOTA, "Workload no longer fits after processing another workload", Requeue.FAILED_AFTER_NOMINATION)
            return
        for target in entry.targets:
            self.preempted[target.info.key] = target.info
        if assignment.preempts:
            message = f"{assignment.message()}. Pending the preemption of {len(entry.targets)} workload(s)"
            entry.refuse(names.WAITING_FOR_PREEMPTED_WORKLOADS, message, Requeue.PENDING_PREEMPTION)
            entry.outcome = Outcome.PREEMPTING
            self.undo.add(entry.queue.node, assignment.usage)
            self._suppose(entry)
            return
        ready = self.config.pods_ready
        if ready is not None and ready.block_admission and self.cache.not_ready:
            reason = names.WAITING_FOR_PODS_READY if self.config.reasons else names.WAITING
            entry.refuse(reason, "waiting for all admitted workloads to be in PodsReady condition", Requeue.FAILED_AFTER_NOMINATION)
            entry.outcome = Outcome.BLOCKED
            return
        self.admit(entry)

    def _overlaps(self, entry: Entry) -> bool:
        return any(target.info.key in self.preempted for target in entry.targets)

    def _assign_behind(self, entry: Entry) -> bool:
        """Assign flavors anew, of those that were found before, as if whom others preempt were gone. Tell whether it fits then without evicting anybody."""
        undo = Undo()
        homes: dict[str, dict[str, Info]] = {}
        for info in self.preempted.values():
            state = self.cache.queues[info.queue]
            homes.setdefault(info.queue, state.holding)
            undo.add(state.node, info.usage, -1)
        for name, holding in homes.items():
            self.cache.queues[name].holding = {key: info for key, info in holding.items() if key not in self.preempted}
        found = {each.name: {resource: choice.flavor for resource, choice in each.flavors.items()} for each in entry.assignment.pod_sets}
        entry.info.last, entry.found, self.gone = None, found, self.preempted
        try:
            self._assign(entry)
        finally:
            entry.found, self.gone = None, {}
            for name, holding in homes.items():
                self.cache.queues[name].holding = holding
            undo.back()
        return entry.assignment.mode is Mode.FIT

    def _suppose(self, entry: Entry) -> None:
        if self.world.places is not None:
            self.world.places.suppose(entry.assignment)

    def admit(self, entry: Entry) -> None:
        """Assume an entry's reservation."""
        info = entry.info
        if entry.replaced is not None:
            self.cache.release(entry.replaced.key)
        info.usage = entry.assignment.held()
        info.queue = entry.queue.name
        info.places = [use for member in entry.assignment.pod_sets for use in member.places]
        entry.outcome = Outcome.ADMITTED
        self.cache.assume(info)
        self.admitted.append(entry)

    def _reserve(self, entry: Entry) -> Usage:
        """Return what a Workload that waits for preemption keeps from the others for this cycle."""
        node = entry.queue.node
        kept: Usage = {}
        for fr, value in entry.usage.items():
            used, quota = node.usage.get(fr, 0), node.quotas.get(fr)
            nominal = quota.nominal if quota is not None else 0
            if entry.borrow:
                limit = quota.borrowing if quota is not None else None
                kept[fr] = value if limit is None else max(0, min(value, nominal + limit - used))
            else:
                kept[fr] = max(0, min(value, nominal - used))
        return kept

    def _still_fits(self, entry: Entry) -> bool:
        undo = Undo()
        gone = {**self.preempted, **{target.info.key: target.info for target in entry.targets}}
        for info in gone.values():
            undo.add(self.cache.queues[info.queue].node, info.usage, -1)
        fits = entry.queue.node.fits(entry.usage)
        places = self.world.places
        if fits and places is not None:
            fits = not places.place(entry, entry.assignment, gone)
        undo.back()
        return fits


def _downgrade(assignment: Assignment, message: str, mode: Mode, reason: str) -> None:
    """Turn an assignment into one that does not fit as it is, by topology."""
    for member in assignment.pod_sets:
        if member.flavors and member.request.count:
            for choice in member.flavors.values():
                choice.mode = min(choice.mode, mode)
            member.messages, member.reason = [message], reason
            return


class _FairView(Preemption):
    """The oracle of flavor assignment under fair sharing."""

    def __init__(self, cache: Cache, fair: FairPreemption) -> None:
        super().__init__(cache)
        self._fair = fair

    def targets(self, wish: Wish) -> list[Target]:
        return self._fair.targets(wish)
