"""Quota: ClusterQueue and Cohort."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from annotated_types import Len, MaxLen
from pydantic import Field, StringConstraints

from kubemini.api.kueue.v1beta2.shared import DnsName, FairSharing, StopPolicy
from kubemini.api.meta.markers import ATOMIC, SET, Rule, absent, by
from kubemini.api.meta.model import Model
from kubemini.api.meta.types import Int32, Int64, Quantity
from kubemini.api.meta.v1 import ApiObject, Condition, LabelSelector

QueueingStrategy = Literal["StrictFIFO", "BestEffortFIFO"]
FungibilityPolicy = Literal["MayStopSearch", "TryNextFlavor"]
FungibilityPreference = Literal["BorrowingOverPreemption", "PreemptionOverBorrowing"]
BorrowPolicy = Literal["Never", "LowerPriority"]
ReclaimPolicy = Literal["Never", "LowerPriority", "Any"]
WithinPolicy = Literal["Never", "LowerPriority", "LowerOrNewerEqualPriority"]
AdmissionMode = Literal["UsageBasedAdmissionFairSharing", "NoAdmissionFairSharing"]
MigrationMode = Literal["TryPreferredFlavors", "RetainFirstAdmission"]

SAME_NUMBER = Rule(
    "self.flavors.all(x, size(x.resources) == size(self.coveredResources))",
    "flavors must have the same number of resources as the coveredResources",
)


class ResourceQuota(Model):
    """Quota of one resource in one flavor."""

    name: str
    """Resource, such as cpu or nvidia.com/gpu."""
    nominal_quota: Quantity
    """How much is owned, and can be used at any time."""
    borrowing_limit: Quantity | None = None
    """How much may be borrowed beyond that; no limit when absent."""
    lending_limit: Quantity | None = None
    """How much of the unused quota may be lent; all of it when absent."""


class FlavorQuotas(Model):
    """Quotas of one flavor."""

    name: DnsName
    """Name of the ResourceFlavor."""
    resources: Annotated[list[ResourceQuota], Len(1, 64), by("name")]
    """Quota of each covered resource, in the same order."""


class ResourceGroup(Model):
    """Resources whose flavors are chosen together, and the flavors to try in order."""

    cel_rules: ClassVar = (SAME_NUMBER,)

    covered_resources: Annotated[list[str], Len(1, 64), ATOMIC]
    """Resources, such as cpu or nvidia.com/gpu."""
    flavors: Annotated[list[FlavorQuotas], Len(1, 64), by("name")]
    """Flavors in the order of preference."""


class FlavorFungibility(Model):
    """Whether to try the next flavor before borrowing or preempting in this one."""

    cel_rules: ClassVar = (
        Rule(
            "!has(self.preference) || (self.whenCanBorrow == 'TryNextFlavor' && self.whenCanPreempt == 'TryNextFlavor')",
            "preference can only be set when both whenCanBorrow and whenCanPreempt are TryNextFlavor",
        ),
    )

    when_can_borrow: FungibilityPolicy = "MayStopSearch"
    """What to do when a flavor fits with borrowing."""
    when_can_preempt: FungibilityPolicy = "TryNextFlavor"
    """What to do when a flavor fits with preemption."""
    preference: FungibilityPreference | None = None
    """Which of the two is better when all flavors were tried."""


class BorrowWithinCohort(Model):
    """Whether preemption in the cohort may go together with borrowing."""

    policy: BorrowPolicy = "Never"
    """Never, or against workloads of lower priority."""
    max_priority_threshold: Int32 | None = None
    """Highest priority that may be preempted so."""


class ClusterQueuePreemption(Model):
    """Which workloads may be preempted for one that does not fit."""

    cel_rules: ClassVar = (
        Rule(
            "!(self.reclaimWithinCohort == 'Never' && has(self.borrowWithinCohort) &&  self.borrowWithinCohort.policy != 'Never')",
            "reclaimWithinCohort=Never and borrowWithinCohort.Policy!=Never",
        ),
    )

    reclaim_within_cohort: ReclaimPolicy = "Never"
    """Which borrowers in the cohort give quota back."""
    borrow_within_cohort: BorrowWithinCohort = Field(default_factory=BorrowWithinCohort)
    """Whether that may go together with borrowing."""
    within_cluster_queue: WithinPolicy = "Never"
    """Which workloads of the same queue are preempted."""


class AdmissionCheckStrategyRule(Model):
    """A check, and the flavors for which it is needed."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=316)]
    """Name of the AdmissionCheck."""
    on_flavors: Annotated[list[DnsName], MaxLen(64), SET] = absent(list)
    """Flavors that need it; all when empty."""


class AdmissionChecksStrategy(Model):
    """Checks that a workload must pass after its quota is reserved."""

    admission_checks: Annotated[list[AdmissionCheckStrategyRule], Len(1, 64), by("name")]
    """The checks."""


class AdmissionScope(Model):
    """How workloads of different local queues are ordered."""

    admission_mode: AdmissionMode
    """Whether past usage of a local queue counts against it."""


class ConcurrentAdmissionConstraints(Model):
    """Limits of concurrent admission."""

    last_acceptable_flavor_name: DnsName | None = None
    """The least preferred flavor that is still tried."""


class ConcurrentAdmissionMigration(Model):
    """What happens once a better flavor becomes free."""

    mode: Annotated[MigrationMode, MaxLen(253)]
    """Whether a running workload moves to it."""
    constraints: ConcurrentAdmissionConstraints | None = None
    """Limits of what is tried."""


class ConcurrentAdmissionPolicy(Model):
    """Whether a workload is tried in several flavors at once."""

    migration: ConcurrentAdmissionMigration
    """What happens once a better flavor becomes free."""


class ClusterQueueSpec(Model):
    """The desired state."""

    cel_rules: ClassVar = (
        Rule(
            "!has(self.cohortName) && has(self.resourceGroups) ? "
            "self.resourceGroups.all(rg, rg.flavors.all(f, f.resources.all(r, !has(r.borrowingLimit)))) : true",
            "borrowingLimit must be nil when cohort is empty",
        ),
    )

    resource_groups: Annotated[list[ResourceGroup], MaxLen(16), ATOMIC] = absent(list)
    """Resources and the quotas for them."""
    cohort_name: DnsName | None = None
    """Cohort in which unused quota is shared."""
    queueing_strategy: QueueingStrategy = "BestEffortFIFO"
    """Whether a workload that does not fit blocks those behind it."""
    namespace_selector: LabelSelector | None = None
    """Namespaces that may submit; none when absent, all when empty."""
    flavor_fungibility: FlavorFungibility = Field(default_factory=FlavorFungibility)
    """Whether to try the next flavor before borrowing or preempting."""
    preemption: ClusterQueuePreemption = Field(default_factory=ClusterQueuePreemption)
    """Which workloads may be preempted."""
    admission_checks_strategy: AdmissionChecksStrategy | None = None
    """Checks to pass after quota is reserved."""
    stop_policy: StopPolicy = "None"
    """Whether admission is stopped, and running workloads are evicted."""
    fair_sharing: FairSharing | None = None
    """Weight in fair sharing."""
    admission_scope: AdmissionScope | None = None
    """How workloads of different local queues are ordered."""
    concurrent_admission_policy: ConcurrentAdmissionPolicy | None = None
    """Whether a workload is tried in several flavors at once."""


class ResourceUsage(Model):
    """Usage of one resource in one flavor."""

    name: str
    """Resource, such as cpu or nvidia.com/gpu."""
    total: Quantity | None = None
    """How much is used."""
    borrowed: Quantity | None = None
    """How much of that is beyond the nominal quota."""


class FlavorUsage(Model):
    """Usage of one flavor."""

    name: DnsName
    """Name of the ResourceFlavor."""
    resources: Annotated[list[ResourceUsage], MaxLen(64), by("name")]
    """Usage by resource."""


class FairSharingStatus(Model):
    """Standing in fair sharing."""

    weighted_share: Int64
    """Largest share of borrowed quota, divided by the weight, in thousandths."""


class ClusterQueueStatus(Model):
    """The observed state."""

    conditions: Annotated[list[Condition], MaxLen(16), by("type")] = absent(list)
    """Whether the queue is active, and why not."""
    flavors_reservation: Annotated[list[FlavorUsage], MaxLen(64), by("name")] = absent(list)
    """Quota reserved by workloads, admitted or not."""
    flavors_usage: Annotated[list[FlavorUsage], MaxLen(64), by("name")] = absent(list)
    """Quota used by admitted workloads."""
    pending_workloads: Int32 = absent(0)
    """Workloads that wait."""
    reserving_workloads: Int32 = absent(0)
    """Workloads that have reserved quota."""
    admitted_workloads: Int32 = absent(0)
    """Workloads that are admitted and not finished."""
    fair_sharing: FairSharingStatus | None = None
    """Standing in fair sharing."""


class ClusterQueue(ApiObject):
    """A pool of quota, and the rules by which workloads are admitted to it."""

    api_version: Literal["kueue.x-k8s.io/v1beta2"] = "kueue.x-k8s.io/v1beta2"
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

    fair_sharing: FairSharingStatus | None = None
    """Standing in fair sharing."""


class Cohort(ApiObject):
    """A node of the tree in which unused quota is shared."""

    api_version: Literal["kueue.x-k8s.io/v1beta2"] = "kueue.x-k8s.io/v1beta2"
    kind: Literal["Cohort"] = "Cohort"
    spec: CohortSpec = absent(CohortSpec)
    """The desired state."""
    status: CohortStatus = absent(CohortStatus)
    """The observed state."""
