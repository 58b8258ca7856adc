"""What Kueue's queues hold at the moment, for `/metrics`, by upstream's names and labels. Nothing is kept: it is looked up when somebody asks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping

from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.controllers.kueue import conditions
from kubemini.controllers.kueue.amounts import FlavorResource, Usage
from kubemini.controllers.kueue.cache import LocalUsage, QueueState
from kubemini.controllers.kueue.fairness import share
from kubemini.controllers.kueue.hub import Hub
from kubemini.controllers.kueue.quota import Node
from kubemini.runtime.keys import key_of
from kubemini.runtime.telemetry import Gauge

Samples = dict[tuple[str, ...], float]
ACTIVE, INADMISSIBLE = "active", "inadmissible"
_ROLE = ("replica_role",)


def gauges(hub: Hub) -> tuple[Gauge, ...]:
    """Return the gauges over a hub, as its configuration wants them."""
    config = hub.config
    found = [*_Queues(hub).gauges()]
    if config.metrics.local_queues is not None:
        found += _LocalQueues(hub).gauges()
    if config.on("MetricsForCohorts"):
        found += _Cohorts(hub).gauges()
    return tuple(found)


def _amount(resource: str, value: int) -> float:
    return value / 1000 if resource == "cpu" else float(value)


def _limit(resource: str, value: int | None) -> float:
    return math.inf if value is None else _amount(resource, value)


def _shared(node: Node) -> float:
    value = share(node)[0]
    return math.nan if math.isinf(value) else value


class _Queues:
    """By ClusterQueue."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._role = hub.config.metrics.role

    def gauges(self) -> Iterator[Gauge]:
        """Yield them."""
        queue = ("cluster_queue",)
        yield Gauge("kueue_pending_workloads", "The number of pending workloads", (*queue, "status", *_ROLE), self._pending)
        yield Gauge("kueue_finished_workloads", "The number of finished workloads", (*queue, *_ROLE), self._finished)
        yield Gauge("kueue_reserving_active_workloads", "The number of Workloads that are reserving quota", (*queue, *_ROLE), self._reserving)
        yield Gauge("kueue_admitted_active_workloads", "The number of admitted Workloads that are active", (*queue, *_ROLE), self._admitted)
        yield Gauge("kueue_cluster_queue_status", "Reports 'cluster_queue' with its 'status'", (*queue, "status", *_ROLE), self._status)
        config = self._hub.config
        if config.on("UnadmittedWorkloadsObservability"):
            labels = (*queue, "reason", "underlying_cause", *_ROLE)
            yield Gauge("kueue_unadmitted_workloads", "The number of unadmitted workloads", labels, self._unadmitted)
        if config.on("MetricsForCohorts"):
            labels = (*queue, "parent_cohort", "root_cohort", *_ROLE)
            yield Gauge("kueue_cluster_queue_info", "Reports ClusterQueue hierarchy information", labels, self._info)
        if config.metrics.resources:
            yield from self._resources()

    def _resources(self) -> Iterator[Gauge]:
        labels = ("cohort", "cluster_queue", "flavor", "resource", *_ROLE)

        def quota(name: str, help_: str, value: Callable[[QueueState, FlavorResource], float]) -> Gauge:
            return Gauge(f"kueue_cluster_queue_{name}", help_, labels, lambda: self._by_quota(value))

        def used(usage: Usage, fr: FlavorResource) -> float:
            return _amount(fr[1], usage.get(fr, 0))

        within = "within all the flavors"
        yield quota("nominal_quota", f"The resource nominal quota {within}", lambda state, fr: _amount(fr[1], state.node.quotas[fr].nominal))
        yield quota("borrowing_limit", f"The resource borrowing limit {within}", lambda state, fr: _limit(fr[1], state.node.quotas[fr].borrowing))
        yield quota("lending_limit", f"The resource lending limit {within}", lambda state, fr: _limit(fr[1], state.node.quotas[fr].lending))
        yield quota("resource_reservation", f"The total resource reservation {within}", lambda state, fr: used(state.node.usage, fr))
        yield quota("resource_usage", f"The total resource usage {within}", lambda state, fr: used(state.admitted_usage, fr))
        if self._hub.config.fair_sharing:
            name = "kueue_cluster_queue_weighted_share"
            yield Gauge(name, "The share of what the cohort can lend, by weight", ("cluster_queue", "cohort", *_ROLE), self._shares)

    def _states(self) -> Iterable[QueueState]:
        return self._hub.cache.linked().queues.values()

    def _by_quota(self, value: Callable[[QueueState, FlavorResource], float]) -> Samples:
        return {(state.cohort, state.name, *fr, self._role): value(state, fr) for state in self._states() for fr in state.node.quotas}

    def _pending(self) -> Samples:
        found: Samples = {}
        for name, pending in self._hub.pending.items():
            parked = sum(1 for _ in pending.parked())
            waiting = len(pending) - parked
            if name not in self._hub.cache.queues or not self._hub.cache.health(name).active:
                parked, waiting = parked + waiting, 0
            found[name, ACTIVE, self._role], found[name, INADMISSIBLE, self._role] = waiting, parked
        return found

    def _finished(self) -> Samples:
        found: Samples = {(name, self._role): 0 for name in self._hub.pending}
        for workload in self._hub.workloads.objects.values():
            queue = _queue_of(self._hub, workload)
            if (queue, self._role) in found and conditions.finished(workload):
                found[queue, self._role] += 1
        return found

    def _reserving(self) -> Samples:
        return {(state.name, self._role): len(state.holding) for state in self._states()}

    def _admitted(self) -> Samples:
        return {(state.name, self._role): state.admitted for state in self._states()}

    def _status(self) -> Samples:
        found: Samples = {}
        for state in self._states():
            going = "deletionTimestamp" in state.tree["metadata"]
            status = "terminating" if going else ACTIVE if self._hub.cache.health(state.name).active else "pending"
            found |= {(state.name, each, self._role): each == status for each in ("pending", ACTIVE, "terminating")}
        return found

    def _unadmitted(self) -> Samples:
        found: Samples = {}
        for workload, reason, cause in _unadmitted(self._hub):
            place = (_queue_of(self._hub, workload), reason, cause, self._role)
            found[place] = found.get(place, 0) + 1
        return found

    def _info(self) -> Samples:
        return {(state.name, state.cohort, state.node.root().name if state.cohort else "", self._role): 1 for state in self._states()}

    def _shares(self) -> Samples:
        return {(state.name, state.cohort, self._role): _shared(state.node) for state in self._states()}


class _LocalQueues:
    """By LocalQueue, where it is counted."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._role = hub.config.metrics.role

    def gauges(self) -> Iterator[Gauge]:
        """Yield them."""
        labels = ("name", "namespace")
        prefix = "kueue_local_queue"
        yield Gauge(f"{prefix}_pending_workloads", "The number of pending workloads", (*labels, "status", *_ROLE), self._pending)
        yield Gauge(f"{prefix}_finished_workloads", "The number of finished workloads", (*labels, *_ROLE), self._finished)
        yield Gauge(f"{prefix}_reserving_active_workloads", "The number of Workloads that are reserving quota", (*labels, *_ROLE), self._reserving)
        yield Gauge(f"{prefix}_admitted_active_workloads", "The number of admitted Workloads that are active", (*labels, *_ROLE), self._admitted)
        yield Gauge(f"{prefix}_status", "Reports 'localQueue' with its 'active' status", (*labels, "active", *_ROLE), self._status)
        if self._hub.config.on("UnadmittedWorkloadsObservability"):
            finer = (*labels, "cluster_queue", "reason", "underlying_cause", *_ROLE)
            yield Gauge(f"{prefix}_unadmitted_workloads", "The number of unadmitted workloads", finer, self._unadmitted)
        if self._hub.config.admission_fair_sharing is not None:
            shared = "What the localQueue has used of late and was charged for, by resource weights, divided by its own weight"
            yield Gauge(f"{prefix}_admission_fair_sharing_usage", shared, (*labels, "cluster_queue", *_ROLE), self._used)
        if self._hub.config.metrics.resources:
            each = (*labels, "flavor", "resource", *_ROLE)
            reserved = "The localQueue's total resource reservation within all the flavors"
            used = "The localQueue's total resource usage within all the flavors"
            yield Gauge(f"{prefix}_resource_reservation", reserved, each, lambda: self._by_quota(lambda usage: usage.reserved_usage))
            yield Gauge(f"{prefix}_resource_usage", used, each, lambda: self._by_quota(lambda usage: usage.admitted_usage))

    def _counted(self) -> Iterator[tuple[Tree, tuple[str, str]]]:
        """Yield the LocalQueues that are counted, with (name, namespace)."""
        selector = self._hub.config.metrics.local_queues
        for tree in self._hub.local_queues.objects.values():
            meta = tree["metadata"]
            if selector is not None and selector.matches(meta.get("labels")):
                yield tree, (meta["name"], meta["namespace"])

    def _pending(self) -> Samples:
        counts: dict[tuple[str, str], int] = {}
        for queue, pending in self._hub.pending.items():
            active = queue in self._hub.cache.queues and self._hub.cache.health(queue).active
            for status, infos in ((ACTIVE if active else INADMISSIBLE, pending.active()), (INADMISSIBLE, pending.parked())):
                for info in infos:
                    counts[info.local_queue, status] = counts.get((info.local_queue, status), 0) + 1
        statuses = (ACTIVE, INADMISSIBLE)
        return {(*name, status, self._role): counts.get((key_of(tree), status), 0) for tree, name in self._counted() for status in statuses}

    def _finished(self) -> Samples:
        index = self._hub.workloads.by_index
        return {(*name, self._role): sum(map(conditions.finished, index("queue", key_of(tree)))) for tree, name in self._counted()}

    def _usage(self, tree: Tree) -> LocalUsage:
        return self._hub.cache.local.get(key_of(tree)) or LocalUsage()

    def _reserving(self) -> Samples:
        return {(*name, self._role): self._usage(tree).reserving for tree, name in self._counted()}

    def _admitted(self) -> Samples:
        return {(*name, self._role): self._usage(tree).admitted for tree, name in self._counted()}

    def _status(self) -> Samples:
        found: Samples = {}
        for tree, name in self._counted():
            condition = conditions.find(tree, names.ACTIVE)
            if condition is not None:
                found |= {(*name, status, self._role): status == condition["status"] for status in ("True", "False", "Unknown")}
        return found

    def _unadmitted(self) -> Samples:
        counted = {key_of(tree): name for tree, name in self._counted()}
        found: Samples = {}
        for workload, reason, cause in _unadmitted(self._hub):
            name = counted.get(f"{workload['metadata']['namespace']}/{workload['spec'].get('queueName', '')}")
            if name is not None:
                place = (*name, _queue_of(self._hub, workload), reason, cause, self._role)
                found[place] = found.get(place, 0) + 1
        return found

    def _used(self) -> Samples:
        fairness = self._hub.admission_fairness
        if fairness is None:
            return {}
        found: Samples = {}
        for tree, name in self._counted():
            if fairness.known(key_of(tree)):
                found[(*name, tree["spec"].get("clusterQueue", ""), self._role)] = fairness.usage(key_of(tree))
        return found

    def _by_quota(self, usage: Callable[[LocalUsage], Mapping[FlavorResource, int]]) -> Samples:
        queues = self._hub.cache.linked().queues
        found: Samples = {}
        for tree, name in self._counted():
            state, used = queues.get(tree["spec"].get("clusterQueue", "")), usage(self._usage(tree))
            for fr in state.node.quotas if state is not None else ():
                found[(*name, *fr, self._role)] = _amount(fr[1], used.get(fr, 0))
        return found


class _Cohorts:
    """By cohort."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._role = hub.config.metrics.role

    def gauges(self) -> Iterator[Gauge]:
        """Yield them."""
        labels = ("cohort", "flavor", "resource", *_ROLE)
        prefix = "kueue_cohort"
        yield Gauge(f"{prefix}_info", "Reports Cohort hierarchy information", ("cohort", "parent_cohort", "root_cohort", *_ROLE), self._info)
        yield Gauge(f"{prefix}_subtree_quota", "The nominal quota within the cohort's subtree", labels, self._quota)
        yield Gauge(f"{prefix}_subtree_resource_reservations", "The resource reservations within the cohort's subtree", labels, self._reserved)
        admitted = "The number of admitted Workloads that are active, per cohort's subtree"
        yield Gauge(f"{prefix}_subtree_admitted_active_workloads", admitted, ("cohort", *_ROLE), self._admitted)
        if self._hub.config.fair_sharing:
            yield Gauge(f"{prefix}_weighted_share", "The share of what the parent can lend, by weight", ("cohort", *_ROLE), self._shares)

    def _nodes(self) -> list[Node]:
        return [node for node in self._hub.cache.linked().cohorts.values() if not node.broken]

    def _info(self) -> Samples:
        return {(node.name, node.parent.name if node.parent is not None else "", node.root().name, self._role): 1 for node in self._nodes()}

    def _quota(self) -> Samples:
        return self._amounts(lambda node: node.subtree)

    def _reserved(self) -> Samples:
        return self._amounts(_held)

    def _amounts(self, of: Callable[[Node], Usage]) -> Samples:
        """Return what there is of each flavor and resource; nothing where there is none."""
        return {(node.name, *fr, self._role): _amount(fr[1], value) for node in self._nodes() for fr, value in of(node).items() if value > 0}

    def _admitted(self) -> Samples:
        found: Samples = {(node.name, self._role): 0 for node in self._nodes()}
        for state in self._hub.cache.linked().queues.values():
            for node in state.node.ancestors():
                if (node.name, self._role) in found:
                    found[node.name, self._role] += state.admitted
        return found

    def _shares(self) -> Samples:
        return {(node.name, self._role): _shared(node) for node in self._nodes()}


def _held(node: Node) -> Usage:
    """Return what the ClusterQueues below a node hold."""
    if node.queue:
        return node.usage
    found: Usage = {}
    for child in node.children:
        for fr, value in _held(child).items():
            found[fr] = found.get(fr, 0) + value
    return found


def _queue_of(hub: Hub, workload: Tree) -> str:
    """Return the ClusterQueue behind a Workload's LocalQueue, or ""."""
    local = hub.local_queues.get(workload["spec"].get("queueName", ""), workload["metadata"]["namespace"])
    found: str = local["spec"].get("clusterQueue", "") if local is not None else ""
    return found


def _unadmitted(hub: Hub) -> Iterator[tuple[Tree, str, str]]:
    """Yield the Workloads that are not admitted, with why: the reason of Admitted, and that of QuotaReserved behind it."""
    for workload in hub.workloads.objects.values():
        if conditions.admitted(workload) or conditions.finished(workload) or "deletionTimestamp" in workload["metadata"]:
            continue
        admitted, reserved = conditions.find(workload, names.ADMITTED), conditions.find(workload, names.QUOTA_RESERVED)
        cause = names.PENDING_EVALUATION if reserved is None else "" if reserved["status"] == "True" else reserved["reason"]
        yield workload, admitted["reason"] if admitted is not None else names.NO_RESERVATION, cause
