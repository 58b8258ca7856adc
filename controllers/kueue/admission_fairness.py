"""Admission fair sharing: within a ClusterQueue, the LocalQueue that has used less of late goes first.

What a LocalQueue has *consumed* is a decaying average of what its admitted Workloads use. A Workload that is given quota costs its LocalQueue an *entry penalty* at
once, which is settled into what is consumed when the Workload is admitted, and taken back when that cannot happen any more. Mirrors Kueue's
``pkg/util/admissionfairsharing``, ``pkg/cache/queue/afs`` and the parts of its LocalQueue and Workload controllers that keep them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from kubemini.api.trees import Tree
from kubemini.controllers.kueue import conditions
from kubemini.controllers.kueue.amounts import Usage
from kubemini.controllers.kueue.cache import Cache, QueueState
from kubemini.controllers.kueue.config import AdmissionFairSharing
from kubemini.controllers.kueue.requests import PodSetRequest
from kubemini.controllers.kueue.workloads import cluster_queue
from kubemini.machinery.quantity import NANO, nano, shown
from kubemini.runtime.keys import key_of

Nanos = Mapping[str, int]
"""Resources in billionths of their units: the precision that upstream rounds to."""

# ---------------------------------------------------------------------------------------------- formulae


def alpha(elapsed: float, half_life: float) -> float:
    """Return how much of an average is new after so many seconds; 0 without a half-life.

    >>> alpha(60, 60), alpha(120, 60), alpha(60, 0)
    (0.5, 0.75, 0.0)
    """
    return 1.0 - math.pow(0.5, elapsed / half_life) if half_life else 0.0


def scaled(amounts: Nanos, factor: float) -> dict[str, int]:
    """Return amounts times a factor, rounded down, so that what decays ends at zero.

    >>> scaled({"cpu": 3}, 0.5)
    {'cpu': 1}
    """
    _, digits, exponent = Decimal(repr(factor)).as_tuple()
    assert isinstance(exponent, int)
    number = int("".join(map(str, digits)))
    if exponent >= 0:
        return {name: value * number * 10**exponent for name, value in amounts.items()}
    return {name: value * number // 10**-exponent for name, value in amounts.items()}


def added(left: Nanos, right: Nanos) -> dict[str, int]:
    """Return the sum, resource by resource."""
    total = dict(left)
    for name, value in right.items():
        total[name] = total.get(name, 0) + value
    return total


def decayed(consumed: Nanos, usage: Nanos, elapsed: float, half_life: float) -> dict[str, int]:
    """Return what is consumed after so many seconds at one usage."""
    share = alpha(max(0.0, elapsed), half_life)
    return added(scaled(consumed, 1 - share), scaled(usage, share))


def weighted(consumed: Nanos, penalty: Nanos, weight: float, resource_weights: Mapping[str, float]) -> float:
    """Return the usage that decides the order; infinite where a LocalQueue's weight is not positive."""
    if weight <= 0:
        return math.inf
    total = added(consumed, penalty)
    usage = 0.0
    for name in sorted(total):
        usage += resource_weights.get(name, 1.0) * (total[name] / NANO)
    return usage / weight


def weight_of(local_queue: Tree | None) -> float:
    """Return the weight of a LocalQueue; 1 where it says none or is not known."""
    fair = (local_queue["spec"].get("fairSharing") or {}) if local_queue is not None else {}
    weight = fair.get("weight")
    return nano(weight) / NANO if weight is not None else 1.0


def _nanos(resource: str, value: int) -> int:
    return value * (NANO // 1000 if resource == "cpu" else NANO)


def over_flavors(usage: Usage) -> dict[str, int]:
    """Return a usage by resource, over all flavors."""
    total: dict[str, int] = {}
    for (_, resource), value in usage.items():
        total[resource] = total.get(resource, 0) + _nanos(resource, value)
    return total


def asked(requests: Iterable[PodSetRequest], only: Iterable[str] | None = None) -> dict[str, int]:
    """Return what all pod sets ask for, of every resource or of some."""
    total: dict[str, int] = {}
    for each in requests:
        for resource, value in each.total.items():
            total[resource] = total.get(resource, 0) + _nanos(resource, value)
    return total if only is None else {name: total[name] for name in only if name in total}


# ---------------------------------------------------------------------------------------------- what is remembered


@dataclass(slots=True)
class Account:
    """One LocalQueue: what it consumed, and the penalties that are not settled yet, by Workload."""

    consumed: dict[str, int]
    penalties: dict[str, dict[str, int]] = field(default_factory=dict)
    owed: dict[str, int] = field(default_factory=dict)
    """The penalties together."""
    since: float | None = None
    """When `consumed` was last brought up to date; None: nothing has happened since it was read from status, and time does not count yet."""
    unsaved: bool = False
    """Whether there is a sample that is not in status yet."""
    usage: float | None = None
    """The usage as it decides the order; None: to be reckoned anew."""

    def put(self, workload: str, penalty: dict[str, int]) -> None:
        """Note the penalty of a Workload, in place of an earlier one."""
        self.drop(workload)
        self.penalties[workload] = penalty
        self.owed = added(self.owed, penalty)

    def drop(self, workload: str) -> dict[str, int] | None:
        """Forget the penalty of a Workload, and return it; None where there is none."""
        penalty = self.penalties.pop(workload, None)
        if penalty is not None:
            rest = added(self.owed, {name: -value for name, value in penalty.items()})
            self.owed = {name: value for name, value in rest.items() if value}
        return penalty


class AdmissionFairness:
    """The accounts of all LocalQueues of one Kueue process, in step with Workloads and LocalQueues by their events.

    `on_usage` is called with the key of a LocalQueue when its place among the others may have changed.
    """

    def __init__(
        self,
        config: AdmissionFairSharing,
        cache: Cache,
        local_queue: Callable[[str], Tree | None],
        now: Callable[[], float],
        on_usage: Callable[[str], None],
    ) -> None:
        self.config = config
        self._cache = cache
        self._local_queue = local_queue
        self._now = now
        self._on_usage = on_usage
        self._accounts: dict[str, Account] = {}

    # ------------------------------------------------------------------ looking

    def usage(self, local_queue: str) -> float:
        """Return the usage of a LocalQueue by its key: the lower, the sooner its Workloads are tried."""
        account = self._account(local_queue)
        if account is None:
            return 0.0
        if account.usage is None:
            weight = weight_of(self._local_queue(local_queue))
            account.usage = weighted(account.consumed, account.owed, weight, self.config.weights)
        return account.usage

    def known(self, local_queue: str) -> bool:
        """Tell whether there is an account of a LocalQueue."""
        return local_queue in self._accounts

    def _account(self, local_queue: str) -> Account | None:
        """Return an account; one that is opened goes on where the status of the LocalQueue left off (so it outlives the manager)."""
        account = self._accounts.get(local_queue)
        if account is None:
            tree = self._local_queue(local_queue)
            if tree is None:
                return None
            stored = ((tree.get("status") or {}).get("fairSharing") or {}).get("admissionFairSharingStatus") or {}
            account = Account({name: nano(value) for name, value in (stored.get("consumedResources") or {}).items()})
            self._accounts[local_queue] = account
        return account

    def _changed(self, local_queue: str, account: Account) -> None:
        account.usage = None
        self._on_usage(local_queue)

    # ------------------------------------------------------------------ penalties

    def charge(self, local_queue: str, workload: str, requests: Iterable[PodSetRequest], queue: QueueState) -> None:
        """Let a LocalQueue pay for quota of a ClusterQueue that shares by usage; a Workload has one penalty at most."""
        account = self._account(local_queue) if queue.admission_fair else None
        if account is None:
            return
        only = sorted(queue.group_of) if self._cache.config.ignore_undeclared else None
        account.put(workload, scaled(asked(requests, only), alpha(self.config.sampling, self.config.half_life)))
        if account.since is None:
            account.since = self._now()
        self._changed(local_queue, account)

    def take_back(self, local_queue: str, workload: str) -> None:
        """Forget the penalty of a Workload that will not be admitted by its reservation."""
        account = self._accounts.get(local_queue)
        if account is not None and account.drop(workload) is not None:
            self._changed(local_queue, account)

    def _settle(self, local_queue: str, workload: str) -> None:
        account = self._account(local_queue)
        if account is None:
            return
        self._advance(local_queue, account)
        account.consumed = added(account.consumed, account.drop(workload) or {})
        self._changed(local_queue, account)

    def _advance(self, local_queue: str, account: Account) -> None:
        """Bring what is consumed up to now."""
        now = self._now()
        local = self._cache.local.get(local_queue)
        usage = over_flavors(local.admitted_usage) if local is not None else {}
        account.consumed = decayed(account.consumed, usage, now - account.since if account.since is not None else 0.0, self.config.half_life)
        account.since = now

    # ------------------------------------------------------------------ samples

    def sample(self, local_queue: str, stamp: str) -> tuple[float, Tree | None]:
        """Take a sample where one is due. Return after how many seconds to come back, and what stands in the LocalQueue's status then."""
        account = self._account(local_queue)
        if account is None:
            return self.config.sampling, None
        passed = self._now() - account.since if account.since is not None else math.inf
        if passed < self.config.sampling and not any(account.owed.values()) and not account.unsaved:
            return self.config.sampling - passed, None
        self._advance(local_queue, account)
        if not self.config.half_life:
            account.consumed = {}
        account.unsaved = True
        self._changed(local_queue, account)
        consumed = {name: shown(value) for name, value in sorted(account.consumed.items())}
        status: Tree = {"weightedShare": 0, "admissionFairSharingStatus": {"consumedResources": consumed, "lastUpdate": stamp}}
        return self.config.sampling, status

    def saved(self, local_queue: str) -> None:
        """Note that the last sample is in status."""
        account = self._accounts.get(local_queue)
        if account is not None:
            account.unsaved = False

    # ------------------------------------------------------------------ events

    def on_local_queue(self, old: Tree | None, new: Tree | None) -> None:
        """Forget a LocalQueue that is gone; look at the weight of one that has changed."""
        if old is not None and (new is None or new["metadata"]["uid"] != old["metadata"]["uid"]):
            self._accounts.pop(key_of(old), None)
        elif old is not None and new is not None and old["spec"] is not new["spec"]:
            account = self._accounts.get(key_of(new))
            if account is not None and weight_of(old) != weight_of(new):
                self._changed(key_of(new), account)

    def on_workload(self, old: Tree | None, new: Tree | None) -> None:
        """Settle the penalty of a Workload that was admitted (the cache counts it by now), and take back that of one which cannot be any more."""
        if old is None:
            return
        key = key_of(old)
        if new is None or new["metadata"]["uid"] != old["metadata"]["uid"]:
            self.take_back(_local_queue_of(old), key)
            return
        if new["spec"] is old["spec"] and new.get("status") is old.get("status"):
            return
        before, after = _local_queue_of(old), _local_queue_of(new)
        if conditions.active(new) and _admitted(new) and not _admitted(old) and self._counts(new, after):
            self._settle(after, key)
        if before != after:
            self.take_back(before, key)
        gone = not conditions.active(new) and not conditions.reserved(new)
        if (gone and (conditions.active(old) or conditions.reserved(old))) or (conditions.finished(new) and not conditions.finished(old)):
            self.take_back(after, key)

    def _counts(self, workload: Tree, local_queue: str) -> bool:
        """Tell whether a Workload's quota is of a ClusterQueue that shares by usage, and its LocalQueue one of that."""
        name, local = cluster_queue(workload), self._local_queue(local_queue)
        state = self._cache.queues.get(name)
        return state is not None and state.admission_fair and local is not None and local["spec"].get("clusterQueue", "") == name


def _local_queue_of(workload: Tree) -> str:
    return f"{workload['metadata']['namespace']}/{workload['spec'].get('queueName', '')}"


def _admitted(workload: Tree) -> bool:
    return conditions.admitted(workload) and not conditions.finished(workload)
