"""What the scheduler decides by: ClusterQueues with what they hold, cohorts, flavors and checks, kept in step with objects by events.

The cache counts a Workload from QuotaReserved=True until the reservation is cleared, the Workload is finished, inactive or gone. A reservation that
is decided but not yet written is *assumed*: it counts at once, and a stale event about the Workload does not take it back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.controllers.kueue import conditions
from kubemini.controllers.kueue.amounts import Usage
from kubemini.controllers.kueue.config import KueueConfig
from kubemini.controllers.kueue.quota import Group, Node, build, parse_groups
from kubemini.controllers.kueue.workloads import Info, holding
from kubemini.machinery.labels import Selector, from_label_selector
from kubemini.machinery.quantity import milli

STRICT = "StrictFIFO"
TRY_NEXT = "TryNextFlavor"
NEVER = "Never"
BY_USAGE = "UsageBasedAdmissionFairSharing"
PROVISIONING, MULTI_KUEUE = names.PROVISIONING_REQUEST_CONTROLLER, names.MANAGED_BY_MULTI_KUEUE


@dataclass(frozen=True, slots=True)
class Policy:
    """``preemption`` of a ClusterQueue."""

    within: str = NEVER
    reclaim: str = NEVER
    borrow: bool = False
    threshold: int | None = None


@dataclass(frozen=True, slots=True)
class Fungibility:
    """``flavorFungibility``: whether to look on when borrowing or preempting would do, and which of the two is worse."""

    when_borrow: str = "MayStopSearch"
    when_preempt: str = TRY_NEXT
    preemption_over_borrowing: bool = False


@dataclass(slots=True, eq=False)
class QueueState:
    """One ClusterQueue."""

    name: str
    tree: Tree
    node: Node
    groups: tuple[Group, ...] = ()
    group_of: Mapping[str, Group] = field(default_factory=dict)
    strategy: str = ""
    cohort: str = ""
    selector: Selector = field(default_factory=lambda: Selector(nothing=True))
    policy: Policy = Policy()
    fungibility: Fungibility = Fungibility()
    admission_fair: bool = False
    """Whether its LocalQueues share by what they have used (admission fair sharing)."""
    checks: tuple[tuple[str, tuple[str, ...]], ...] = ()
    holding: dict[str, Info] = field(default_factory=dict)
    admitted: int = 0
    admitted_usage: Usage = field(default_factory=dict)
    releases: int = 0

    @property
    def strict(self) -> bool:
        """Whether the head of the queue blocks the rest."""
        return self.strategy == STRICT

    def flavors(self) -> Iterator[str]:
        """Yield the flavors in the order of the spec."""
        for group in self.groups:
            yield from group.flavors

    def required_checks(self, assigned: set[str] | None) -> list[str]:
        """Return the names of the checks that a Workload on these flavors needs, sorted; without assignment those that every flavor needs."""
        everything = set(self.flavors())
        found = set()
        for name, on in self.checks:
            if assigned is not None:
                if not on or assigned.intersection(on):
                    found.add(name)
            elif not on or everything.issubset(on):
                found.add(name)
        return sorted(found)


@dataclass(slots=True)
class QueueHealth:
    """Whether a ClusterQueue admits, and why not: the reason and message of its Active condition."""

    active: bool
    reason: str
    message: str


@dataclass(slots=True)
class LocalUsage:
    """What the Workloads of one LocalQueue hold."""

    reserving: int = 0
    admitted: int = 0
    reserved_usage: Usage = field(default_factory=dict)
    admitted_usage: Usage = field(default_factory=dict)


class Cache:
    """The state of one Kueue. `rebuild` is lazy: changes of specs mark the tree, and the next reading relinks it."""

    def __init__(self, config: KueueConfig) -> None:
        self.config = config
        self.queues: dict[str, QueueState] = {}
        self.cohort_trees: dict[str, Tree] = {}
        self.cohorts: dict[str, Node] = {}
        self.flavors: dict[str, Tree] = {}
        self.checks: dict[str, Tree] = {}
        self.topologies: dict[str, Tree] = {}
        self.assumed: dict[str, Info] = {}
        self.where: dict[str, str] = {}
        """Key of a Workload → the ClusterQueue in which it counts."""
        self.not_ready: dict[str, None] = {}
        """Workloads with quota whose pods are not ready."""
        self.generation = 0
        """Grows with every change of quota."""
        self.local: dict[str, LocalUsage] = {}
        self.observers: list[Callable[[Info, int], None]] = []
        """Called with +1 when a Workload begins to hold quota, and with -1 when it ends."""
        self.local_share: Callable[[str], float] | None = None
        """The usage of a LocalQueue by its key under admission fair sharing; None without it."""
        self.version = 0
        """Grows with every change that may turn a ClusterQueue active or inactive."""
        self._healths: dict[str, tuple[int, QueueHealth]] = {}
        self._declared: dict[str, Node] = {}
        self._stale = False

    # ------------------------------------------------------------------ specs

    def set_queue(self, tree: Tree) -> QueueState:
        """Take a ClusterQueue as it is now."""
        name = tree["metadata"]["name"]
        self.version += 1
        state = self.queues.get(name)
        if state is None:
            state = self.queues[name] = QueueState(name, tree, Node(name, queue=True))
        elif state.tree["spec"] is tree["spec"] or state.tree["spec"] == tree["spec"]:
            state.tree = tree
            return state
        spec = tree["spec"]
        state.tree = tree
        state.groups, state.node.quotas = parse_groups(spec)
        state.group_of = {resource: group for group in state.groups for resource in group.resources}
        state.strategy = spec.get("queueingStrategy", "")
        state.cohort = spec.get("cohortName", "")
        selector = spec.get("namespaceSelector")
        state.selector = from_label_selector(selector) if selector is not None else Selector(nothing=True)
        preemption = spec.get("preemption") or {}
        borrow = preemption.get("borrowWithinCohort") or {}
        state.policy = Policy(
            preemption.get("withinClusterQueue", NEVER),
            preemption.get("reclaimWithinCohort", NEVER),
            borrow.get("policy", NEVER) != NEVER,
            borrow.get("maxPriorityThreshold"),
        )
        fungibility = spec.get("flavorFungibility") or {}
        state.fungibility = Fungibility(
            fungibility.get("whenCanBorrow", "MayStopSearch"),
            fungibility.get("whenCanPreempt", TRY_NEXT),
            fungibility.get("preference") == "PreemptionOverBorrowing",
        )
        strategy = (spec.get("admissionChecksStrategy") or {}).get("admissionChecks") or ()
        state.checks = tuple((each["name"], tuple(each.get("onFlavors") or ())) for each in strategy)
        state.node.weight = _weight(spec)
        state.admission_fair = self.config.admission_fair_sharing is not None and (spec.get("admissionScope") or {}).get("admissionMode") == BY_USAGE
        self._stale = True
        self.generation += 1
        return state

    def drop_queue(self, name: str) -> None:
        """Forget a ClusterQueue."""
        self.version += 1
        state = self.queues.get(name)
        if state is not None:
            for key in list(state.holding):
                self.release(key)
            del self.queues[name]
            self._stale = True
            self.generation += 1

    def set_cohort(self, tree: Tree) -> None:
        """Take a Cohort as it is now."""
        name = tree["metadata"]["name"]
        old = self.cohort_trees.get(name)
        self.cohort_trees[name] = tree
        spec = tree.get("spec") or {}
        if old is not None and old.get("spec") == tree.get("spec"):
            return
        node = self._declared.setdefault(name, Node(name, queue=False))
        _, node.quotas = parse_groups(spec)
        node.weight = _weight(spec)
        self._stale = True
        self.generation += 1

    def drop_cohort(self, name: str) -> None:
        """Forget a Cohort object; its name may live on as an implicit cohort."""
        if self.cohort_trees.pop(name, None) is not None:
            self._declared.pop(name, None)
            self._stale = True
            self.generation += 1

    def set_flavor(self, name: str, tree: Tree | None) -> None:
        """Take a ResourceFlavor as it is now."""
        _put(self.flavors, name, tree)
        self.version += 1

    def set_check(self, name: str, tree: Tree | None) -> None:
        """Take an AdmissionCheck as it is now."""
        _put(self.checks, name, tree)
        self.version += 1

    def set_topology(self, name: str, tree: Tree | None) -> None:
        """Take a Topology as it is now."""
        _put(self.topologies, name, tree)
        self.version += 1

    def linked(self) -> Cache:
        """Return the cache with its tree up to date."""
        if self._stale:
            self._stale = False
            parents = {name: (tree.get("spec") or {}).get("parentName", "") for name, tree in self.cohort_trees.items()}
            self.cohorts = build(parents, self._declared, ((state.node, state.cohort) for state in self.queues.values()))
        return self

    def tree_of(self, state: QueueState) -> list[str]:
        """Return the names of the ClusterQueues that share quota with one, itself included."""
        self.linked()
        if state.node.broken:
            return [state.name]
        root = state.node.root()
        if root is state.node:
            return [state.name]
        found: list[str] = []
        todo = [root]
        while todo:
            node = todo.pop()
            if node.queue:
                found.append(node.name)
            todo.extend(reversed(node.children))
        return found

    # ------------------------------------------------------------------ health

    def health(self, name: str) -> QueueHealth:
        """Return whether a ClusterQueue admits, and why not."""
        known = self._healths.get(name)
        if known is not None and known[0] == self.version:
            return known[1]
        found = self._health(self.queues[name])
        self._healths[name] = (self.version, found)
        return found

    def _health(self, state: QueueState) -> QueueHealth:
        if "deletionTimestamp" in state.tree["metadata"]:
            return QueueHealth(False, names.TERMINATING, "Can't admit new workloads; clusterQueue is terminating")
        reasons: list[tuple[str, str]] = []
        if state.tree["spec"].get("stopPolicy", "None") != "None":
            reasons.append((names.STOPPED, "is stopped"))
        missing = [flavor for flavor in state.flavors() if flavor not in self.flavors]
        if missing:
            reasons.append((names.FLAVOR_NOT_FOUND, f"references missing ResourceFlavor(s): {','.join(missing)}"))
        absent = sorted(check for check, _ in state.checks if check not in self.checks)
        if absent:
            reasons.append((names.ADMISSION_CHECK_NOT_FOUND, f"references missing AdmissionCheck(s): {','.join(absent)}"))
        inactive = sorted(check for check, _ in state.checks if check in self.checks and not conditions.is_true(self.checks[check], names.ACTIVE))
        if inactive:
            reasons.append((names.ADMISSION_CHECK_INACTIVE, f"references inactive AdmissionCheck(s): {','.join(inactive)}"))
        reasons += self._multi_kueue(state)
        if reasons or not self._of_controller(state, MULTI_KUEUE):  # with MultiKueue the places are those of the workers
            reasons += self._topologies(state)
        if reasons:
            return QueueHealth(False, reasons[0][0], f"Can't admit new workloads: {', '.join(message for _, message in reasons)}.")
        return QueueHealth(True, names.READY, "Can admit new workloads")

    def _controller(self, check: str) -> str:
        tree = self.checks.get(check)
        return tree["spec"].get("controllerName", "") if tree is not None else ""

    def _of_controller(self, state: QueueState, controller: str) -> list[str]:
        return sorted(check for check, _ in state.checks if self._controller(check) == controller)

    def _multi_kueue(self, state: QueueState) -> list[tuple[str, str]]:
        multi, provisioning = self._of_controller(state, MULTI_KUEUE), self._of_controller(state, PROVISIONING)
        found = []
        if len(multi) > 1:
            words = "Cannot use multiple MultiKueue AdmissionChecks on the same ClusterQueue, found:"
            found.append((names.MULTIPLE_MULTI_KUEUE_CHECKS, f"{words} {','.join(multi)}"))
        every = set(state.flavors())
        narrow = sorted(check for check, on in state.checks if check in multi and on and set(on) != every)
        if narrow:
            found.append((names.MULTI_KUEUE_CHECK_PER_FLAVOR, f"Cannot specify MultiKueue AdmissionCheck per flavor, found: {','.join(narrow)}"))
        if multi and provisioning:
            words = "Cannot use both MultiKueue and ProvisioningRequest AdmissionChecks together, found:"
            found.append((names.MULTI_KUEUE_WITH_PROVISIONING, f"{words} {','.join(multi)}, {','.join(provisioning)}"))
        return found

    def _topologies(self, state: QueueState) -> list[tuple[str, str]]:
        found = []
        for flavor in state.flavors():
            tree = self.flavors.get(flavor)
            topology = (tree["spec"].get("topologyName") or "") if tree is not None else ""
            if topology and topology not in self.topologies:
                found.append((names.TOPOLOGY_NOT_FOUND, f'there is no Topology "{topology}" for TAS flavor "{flavor}"'))
        return found

    # ------------------------------------------------------------------ Workloads

    def hold(self, info: Info) -> None:
        """Count a Workload that holds quota (again, where it is counted already)."""
        self.release(info.key)
        state = self.queues.get(info.queue)
        self.where[info.key] = info.queue
        if not conditions.is_true(info.tree, names.PODS_READY):
            self.not_ready[info.key] = None
        if state is None:
            return
        self.linked()
        state.holding[info.key] = info
        state.node.add_all(info.usage)
        self._tally(state, info, 1)

    def release(self, key: str) -> Info | None:
        """Count a Workload no longer. Return what was counted."""
        name = self.where.pop(key, None)
        self.assumed.pop(key, None)
        self.not_ready.pop(key, None)
        state = self.queues.get(name) if name is not None else None
        info = state.holding.pop(key, None) if state is not None else None
        if state is None or info is None:
            return None
        self.linked()
        state.node.add_all(info.usage, -1)
        self._tally(state, info, -1)
        state.releases += 1
        return info

    def _tally(self, state: QueueState, info: Info, sign: int) -> None:
        for observer in self.observers:
            observer(info, sign)
        local = self.local.setdefault(info.local_queue, LocalUsage())
        local.reserving += sign
        _count(local.reserved_usage, info.usage, sign)
        if info.admitted:
            state.admitted += sign
            local.admitted += sign
            _count(state.admitted_usage, info.usage, sign)
            _count(local.admitted_usage, info.usage, sign)

    def assume(self, info: Info) -> None:
        """Count a Workload whose reservation is not written yet."""
        self.hold(info)
        self.assumed[info.key] = info

    def observe(self, tree: Tree) -> Info:
        """Count a Workload as an event shows it."""
        info = holding(tree, boost=self.config.on("PriorityBoost"))
        self.hold(info)
        return info

    def adopt(self, name: str, trees: Iterator[Tree]) -> None:
        """Count Workloads that held quota in a ClusterQueue before it was known."""
        for tree in trees:
            if conditions.reserved(tree) and conditions.active(tree) and not conditions.finished(tree):
                self.observe(tree)

    def held(self, key: str) -> Info | None:
        """Return a counted Workload."""
        name = self.where.get(key)
        state = self.queues.get(name) if name is not None else None
        return state.holding.get(key) if state is not None else None

    def allocation(self, state: QueueState) -> int:
        """Return a number that grows whenever more may fit into a ClusterQueue than before."""
        return self.generation + sum(self.queues[name].releases for name in self.tree_of(state) if name in self.queues)


def _count(usage: Usage, more: Usage, sign: int) -> None:
    for fr, value in more.items():
        usage[fr] = usage.get(fr, 0) + sign * value


def _put(trees: dict[str, Tree], name: str, tree: Tree | None) -> None:
    if tree is None:
        trees.pop(name, None)
    else:
        trees[name] = tree


def _weight(spec: Tree) -> int:
    fair = spec.get("fairSharing")
    return milli(fair.get("weight", "1")) if fair else 1000
