"""Quota: ClusterQueue and Cohort."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from annotated_types import Len, MaxLen
from pydantic import Field

from kubemini.api.kueue.v1beta1.shared import Conditions, Version
from kubemini.api.kueue.v1beta2 import local_queue, quota
from kubemini.api.kueue.v1beta2.shared import DnsName, FairSharing, StopPolicy
from kubemini.api.meta.markers import ATOMIC, Rule, absent, by
from kubemini.api.meta.model import Model
from kubemini.api.meta.types import Int32, Time
from kubemini.api.meta.v1 import ApiObject, LabelSelector


class ResourceGroup(Model):
    """Resources whose flavors are chosen together, and the flavors to try in order."""

    cel_rules: ClassVar = (quota.SAME_NUMBER,)

    covered_resources: Annotated[list[str], Len(1, 64)]
    """Resources, such as cpu or nvidia.com/gpu."""
    flavors: Annotated[list[quota.FlavorQuotas], Len(1, 64), by("name")]
    """Flavors in the order of preference."""


class FlavorFungibility(Model):
    """Whether to try the next flavor before borrowing or preempting in this one."""

    cel_rules: ClassVar = quota.FlavorFungibility.cel_rules

    when_can_borrow: Literal["MayStopSearch", "TryNextFlavor", "Borrow"] = "MayStopSearch"
    """What to do when a flavor fits with borrowing; Borrow is the old name of MayStopSearch."""
    when_can_preempt: Literal["MayStopSearch", "TryNextFlavor", "Preempt"] = "TryNextFlavor"
    """What to do when a flavor fits with preemption; Preempt is the old name of MayStopSearch."""
    preference: quota.FungibilityPreference | None = None
    """Which of the two is better when all flavors were tried."""


class AdmissionCheckStrategyRule(Model):
    """A check, and the flavors for which it is needed."""

    name: Annotated[str, MaxLen(316)]
    """Name of the AdmissionCheck."""
    on_flavors: list[DnsName] = absent(list)
    """Flavors that need it; all when empty."""


class AdmissionChecksStrategy(Model):
    """Checks that a workload must pass after its quota is reserved."""

    admission_checks: list[AdmissionCheckStrategyRule] = absent(list)
    """The checks."""


class AdmissionScope(Model):
    """How workloads of different local queues are ordered."""

    admission_mode: str
    """Whether past usage of a local queue counts against it."""


class ClusterQueueSpec(Model):
    """The desired state."""

    cel_rules: ClassVar = (
        Rule(
            "!has(self.cohort) && has(self.resourceGroups) ? "
            "self.resourceGroups.all(rg, rg.flavors.all(f, f.resources.all(r, !has(r.borrowingLimit)))) : true",
            "borrowingLimit must be nil when cohort is empty",
        ),
    )

    resource_groups: Annotated[list[ResourceGroup], MaxLen(16), ATOMIC] = absent(list)
    """Resources and the quotas for them."""
    cohort: DnsName | None = None
    """Cohort in which unused quota is shared."""
    queueing_strategy: quota.QueueingStrategy = "BestEffortFIFO"
    """Whether a workload that does not fit blocks those behind it."""
    namespace_selector: LabelSelector | None = None
    """Namespaces that may submit; none when absent, all when empty."""
    flavor_fungibility: FlavorFungibility = Field(default_factory=FlavorFungibility)
    """Whether to try the next flavor before borrowing or preempting."""
    preemption: quota.ClusterQueuePreemption = Field(default_factory=quota.ClusterQueuePreemption)
    """Which workloads may be preempted."""
    admission_checks: list[Annotated[str, MaxLen(316)]] = absent(list)
    """Names of checks to pass, for all flavors."""
    admission_checks_strategy: AdmissionChecksStrategy | None = None
    """Checks to pass after quota is reserved."""
    stop_policy: StopPolicy = "None"
    """Whether admission is stopped, and running workloads are evicted."""
    fair_sharing: FairSharing | None = None
    """Weight in fair sharing."""
    admission_scope: AdmissionScope | None = None
    """How workloads of different local queues are ordered."""


class ClusterQueuePendingWorkload(Model):
    """A workload that waits."""

    name: str
    """Its name."""
    namespace: str
    """Its namespace."""


class ClusterQueuePendingWorkloadsStatus(Model):
    """The head of the queue (no longer kept)."""

    cluster_queue_pending_workload: Annotated[list[ClusterQueuePendingWorkload], ATOMIC] = absent(list)
    """Workloads that wait, in order."""
    last_change_time: Time
    """When this changed last."""


class ClusterQueueStatus(Model):
    """The observed state."""

    conditions: Conditions = absent(list)
    """Whether the queue is active, and why not."""
    flavors_reservation: Annotated[list[quota.FlavorUsage], MaxLen(64), by("name")] = absent(list)
    """Quota reserved by workloads, admitted or not."""
    flavors_usage: Annotated[list[quota.FlavorUsage], MaxLen(64), by("name")] = absent(list)
    """Quota used by admitted workloads."""
    pending_workloads: Int32 = absent(0)
    """Workloads that wait."""
    reserving_workloads: Int32 = absent(0)
    """Workloads that have reserved quota."""
    admitted_workloads: Int32 = absent(0)
    """Workloads that are admitted and not finished."""
    pending_workloads_status: ClusterQueuePendingWorkloadsStatus | None = None
    """The head of the queue (no longer kept)."""
    fair_sharing: local_queue.LocalQueueFairSharingStatus | None = None
    """Standing in fair sharing."""


class ClusterQueue(ApiObject):
    """A pool of quota, and the rules by which workloads are admitted to it."""

    api_version: Version = "kueue.x-k8s.io/v1beta1"
    kind: Literal["ClusterQueue"] = "ClusterQueue"
    spec: ClusterQueueSpec = absent(ClusterQueueSpec)
    """The desired state."""
    status: ClusterQueueStatus = absent(ClusterQueueStatus)
    """The observed state."""


class CohortSpec(Model):
    """The desired state."""

    parent_name: DnsName | None = None
    """Cohort above this one."""
    resource_groups: Annotated[list[ResourceGroup], MaxLen(16), ATOMIC] = absent(list)
    """Quota of the cohort itself, shared by its members."""
    fair_sharing: FairSharing | None = None
    """Weight in fair sharing among the children of the parent."""


class CohortStatus(Model):
    """The observed state."""

    fair_sharing: local_queue.LocalQueueFairSharingStatus | None = None
    """Standing in fair sharing."""


class Cohort(ApiObject):
    """A node of the tree in which unused quota is shared."""

    api_version: Version = "kueue.x-k8s.io/v1beta1"
    kind: Literal["Cohort"] = "Cohort"
    spec: CohortSpec = absent(CohortSpec)
    """The desired state."""
    status: CohortStatus = absent(CohortStatus)
    """The observed state."""
