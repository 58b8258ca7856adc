"""Kueue's kinds, kueue.x-k8s.io/v1beta1: served for old clients, stored as v1beta2 (see `kubemini.api.kueue.conversion`).

Mirrors the schema of Kueue 0.20. What is the same in both versions is taken from `kubemini.api.kueue.v1beta2`.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

from annotated_types import Ge, Len, MaxLen
from pydantic import Field, StringConstraints

from kubemini.api.kueue.v1beta2 import checks, flavors, local_queue, quota, shared, workload
from kubemini.api.kueue.v1beta2.shared import DnsName, FairSharing, PodSetName, StopPolicy
from kubemini.api.meta.markers import ATOMIC, ATOMIC_MAP, IMMUTABLE_FIELD, REQUIRED, SET, Rule, absent, by
from kubemini.api.meta.model import Model
from kubemini.api.meta.types import DNS_LABEL, DNS_SUBDOMAIN, Int32, Int64, PodTemplateSpec, Quantity, Taint, Time, Toleration
from kubemini.api.meta.v1 import ApiObject, Condition, LabelSelector

Version: TypeAlias = Literal["kueue.x-k8s.io/v1beta1"]
Conditions: TypeAlias = Annotated[list[Condition], by("type")]

# ------------------------------------------------------------------------------------------------- quota


class ResourceGroup(Model):
    """Resources whose flavors are chosen together, and the flavors to try in order."""

    cel_rules: ClassVar = (quota.SAME_NUMBER,)

    covered_resources: Annotated[list[str], Len(1, 64)]
    """Names of the resources."""
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


# ------------------------------------------------------------------------------------------------- local queues and flavors


class TopologyInfo(Model):
    """Topology of a flavor."""

    name: DnsName
    """Name of the Topology."""
    levels: Annotated[list[str], Len(1, 16), ATOMIC]
    """Node labels of its levels."""


class LocalQueueFlavorStatus(Model):
    """A flavor that the queue can give (no longer kept)."""

    name: DnsName
    """Name of the ResourceFlavor."""
    resources: Annotated[list[str], MaxLen(64), SET] = absent(list)
    """Resources that it gives."""
    node_labels: Annotated[dict[str, str], MaxLen(8), ATOMIC_MAP] = absent(dict)
    """Labels of its nodes."""
    node_taints: Annotated[list[Taint], MaxLen(8), ATOMIC] = absent(list)
    """Taints of its nodes."""
    topology: TopologyInfo | None = None
    """Its topology."""


class LocalQueueStatus(Model):
    """The observed state."""

    conditions: Conditions = absent(list)
    """Whether the queue is active, and why not."""
    pending_workloads: Int32 = absent(0)
    """Workloads that wait."""
    reserving_workloads: Int32 = absent(0)
    """Workloads that have reserved quota."""
    admitted_workloads: Int32 = absent(0)
    """Workloads that are admitted and not finished."""
    flavors_reservation: Annotated[list[local_queue.LocalQueueFlavorUsage], MaxLen(64), by("name")] = absent(list)
    """Quota reserved by workloads of this queue."""
    flavor_usage: Annotated[list[local_queue.LocalQueueFlavorUsage], MaxLen(64), by("name")] = absent(list)
    """Quota used by admitted workloads of this queue."""
    flavors: Annotated[list[LocalQueueFlavorStatus], MaxLen(64), by("name")] = absent(list)
    """Flavors that the queue can give (no longer kept)."""
    fair_sharing: local_queue.LocalQueueFairSharingStatus | None = None
    """Standing in fair sharing."""


class LocalQueue(ApiObject):
    """The queue of a namespace, backed by a ClusterQueue."""

    api_version: Version = "kueue.x-k8s.io/v1beta1"
    kind: Literal["LocalQueue"] = "LocalQueue"
    spec: local_queue.LocalQueueSpec = absent(local_queue.LocalQueueSpec)
    """The desired state."""
    status: LocalQueueStatus = absent(LocalQueueStatus)
    """The observed state."""


class ResourceFlavor(ApiObject):
    """A kind of resource, bound to nodes by labels and taints."""

    api_version: Version = "kueue.x-k8s.io/v1beta1"
    kind: Literal["ResourceFlavor"] = "ResourceFlavor"
    spec: flavors.ResourceFlavorSpec = absent(flavors.ResourceFlavorSpec)
    """The nodes that have this flavor."""


class TopologySpec(Model):
    """The levels of the topology."""

    levels: Annotated[list[flavors.TopologyLevel], Len(1, 16), ATOMIC, IMMUTABLE_FIELD, flavors.UNIQUE, flavors.HOSTNAME_LAST]
    """Levels from the widest to the narrowest."""


class Topology(ApiObject):
    """How nodes are nested in racks, blocks and so on."""

    api_version: Version = "kueue.x-k8s.io/v1beta1"
    kind: Literal["Topology"] = "Topology"
    spec: TopologySpec | None = None
    """The levels of the topology."""


class WorkloadPriorityClass(ApiObject):
    """A priority for admission, apart from the priority of the pods."""

    api_version: Version = "kueue.x-k8s.io/v1beta1"
    kind: Literal["WorkloadPriorityClass"] = "WorkloadPriorityClass"
    value: Int32
    """The priority; higher is more important."""
    description: str | None = None
    """When to use this class."""


# ------------------------------------------------------------------------------------------------- checks


class AdmissionCheckParametersReference(Model):
    """An object with parameters for the check."""

    api_group: DnsName
    """API group of the object."""
    kind: Annotated[str, StringConstraints(max_length=63, pattern=checks.KIND)]
    """Kind of the object."""
    name: Annotated[str, StringConstraints(max_length=63, pattern=DNS_LABEL)]
    """Name of the object."""


class AdmissionCheckSpec(Model):
    """The desired state."""

    controller_name: Annotated[str, IMMUTABLE_FIELD]
    """Controller that decides the check."""
    retry_delay_minutes: Int64 = 15
    """Not used any more."""
    parameters: AdmissionCheckParametersReference | None = None
    """Object with parameters for the check."""


class AdmissionCheckStatus(Model):
    """The observed state."""

    conditions: Conditions = absent(list)
    """Whether the check is active."""


class AdmissionCheck(ApiObject):
    """A gate that a controller opens for each workload after its quota is reserved."""

    api_version: Version = "kueue.x-k8s.io/v1beta1"
    kind: Literal["AdmissionCheck"] = "AdmissionCheck"
    spec: AdmissionCheckSpec | None = None
    """The desired state."""
    status: AdmissionCheckStatus = absent(AdmissionCheckStatus)
    """The observed state."""


class ProvisioningRequestPodSetUpdates(Model):
    """What pods get once capacity is there."""

    node_selector: Annotated[list[checks.ProvisioningRequestPodSetUpdatesNodeSelector], MaxLen(8)] = absent(list)
    """Node selectors to add."""


class ProvisioningRequestConfigSpec(Model):
    """How capacity is asked of the cluster autoscaler."""

    provisioning_class_name: Annotated[str, StringConstraints(max_length=253, pattern=DNS_SUBDOMAIN)]
    """Class of the request."""
    parameters: Annotated[dict[str, checks.Parameter], MaxLen(100)] = absent(dict)
    """Parameters of the request."""
    managed_resources: Annotated[list[str], MaxLen(100), SET] = absent(list)
    """Resources for which capacity is asked; all when empty."""
    retry_strategy: checks.ProvisioningRequestRetryStrategy | None = Field(default_factory=checks.default_retries)
    """How often and when a failed request is made anew."""
    pod_set_updates: ProvisioningRequestPodSetUpdates | None = None
    """What pods get once capacity is there."""
    pod_set_merge_policy: checks.PodSetMergePolicy | None = None
    """Which pod sets are asked for as one."""


class ProvisioningRequestConfig(ApiObject):
    """Parameters of the check that provisions capacity."""

    api_version: Version = "kueue.x-k8s.io/v1beta1"
    kind: Literal["ProvisioningRequestConfig"] = "ProvisioningRequestConfig"
    spec: ProvisioningRequestConfigSpec | None = None
    """How capacity is asked of the cluster autoscaler."""


class MultiKueueConfigSpec(Model):
    """The clusters among which workloads are spread."""

    clusters: Annotated[list[str], Len(1, 20), SET]
    """Names of MultiKueueClusters."""


class MultiKueueConfig(ApiObject):
    """Parameters of the check that dispatches to other clusters."""

    api_version: Version = "kueue.x-k8s.io/v1beta1"
    kind: Literal["MultiKueueConfig"] = "MultiKueueConfig"
    spec: MultiKueueConfigSpec | None = None
    """The clusters among which workloads are spread."""


class KubeConfig(Model):
    """Where the credentials of a cluster are."""

    location: str
    """Name of the Secret, or path of the file."""
    location_type: Annotated[Literal["Secret", "Path"], REQUIRED] = "Secret"
    """Which of the two it is."""


class MultiKueueClusterSpec(Model):
    """How the cluster is reached."""

    kube_config: KubeConfig
    """By a kubeconfig."""
    cluster_profile_ref: checks.ClusterProfileReference | None = None
    """By a ClusterProfile."""


class MultiKueueClusterStatus(Model):
    """The observed state."""

    conditions: Conditions = absent(list)
    """Whether the cluster is connected."""


class MultiKueueCluster(ApiObject):
    """A worker cluster that workloads are dispatched to."""

    api_version: Version = "kueue.x-k8s.io/v1beta1"
    kind: Literal["MultiKueueCluster"] = "MultiKueueCluster"
    spec: MultiKueueClusterSpec | None = None
    """How the cluster is reached."""
    status: MultiKueueClusterStatus = absent(MultiKueueClusterStatus)
    """The observed state."""


# ------------------------------------------------------------------------------------------------- workloads


class PodSetTopologyRequest(Model):
    """Where pods of the set may be placed relative to each other."""

    required: str | None = None
    """Level within one domain of which all pods must be."""
    preferred: str | None = None
    """Level within one domain of which all pods should be."""
    unconstrained: bool | None = None
    """Whether the pods may be anywhere in the topology."""
    pod_index_label: str | None = None
    """Pod label that holds the index of a pod."""
    sub_group_index_label: str | None = None
    """Pod label that holds the index of the Job the pod belongs to."""
    sub_group_count: Int32 | None = None
    """Number of such Jobs."""
    pod_set_group_name: str | None = None
    """Pod sets of the same group name are placed together."""
    pod_set_slice_required_topology: str | None = None
    """Level within one domain of which each slice must be."""
    pod_set_slice_size: workload.Positive | None = None
    """Number of pods in a slice."""


class PodSet(Model):
    """A number of like pods."""

    cel_rules: ClassVar = workload.PodSet.cel_rules

    name: PodSetName = "main"
    """Name of the set."""
    template: PodTemplateSpec
    """The pod."""
    count: Annotated[workload.NotNegative, REQUIRED] = 1
    """Number of pods."""
    min_count: workload.Positive | None = None
    """Number with which the workload can do, for partial admission."""
    topology_request: PodSetTopologyRequest | None = None
    """Where the pods may be placed relative to each other."""


class WorkloadSpec(Model):
    """What is asked for."""

    cel_rules: ClassVar = (
        Rule("has(self.priorityClassName) ? has(self.priority) : true", "priority should not be nil when priorityClassName is set"),
    )

    pod_sets: Annotated[list[PodSet], Len(1, 18), by("name")]
    """The pods, in sets of like ones."""
    queue_name: DnsName | None = None
    """LocalQueue to which it is submitted."""
    priority_class_name: DnsName | None = None
    """Class that the priority comes from."""
    priority: Int32 | None = None
    """Priority for admission and preemption; 0 when absent."""
    priority_class_source: Literal["kueue.x-k8s.io/workloadpriorityclass", "scheduling.k8s.io/priorityclass", ""] = ""
    """Which kind of class it is."""
    active: bool = True
    """Whether it may be admitted; setting it to false evicts."""
    maximum_execution_time_seconds: workload.Positive | None = None
    """Seconds that it may be admitted in total."""


class TopologyDomainAssignment(Model):
    """The pods in one domain."""

    values: Annotated[list[str], Len(1, 16), ATOMIC]
    """Label values that name the domain, by level."""
    count: workload.Positive
    """Number of pods."""


class TopologyAssignment(Model):
    """How many pods go into which domains of the topology."""

    levels: Annotated[list[str], Len(1, 16), ATOMIC]
    """Node labels of the levels, from the widest to the narrowest."""
    domains: list[TopologyDomainAssignment]
    """The domains."""


class PodSetAssignment(Model):
    """What one pod set was given."""

    name: Annotated[PodSetName, REQUIRED] = "main"
    """Name of the pod set."""
    flavors: dict[str, DnsName] = absent(dict)
    """Flavor of each resource."""
    resource_usage: dict[str, Quantity] = absent(dict)
    """Quota charged for all pods of the set, by resource."""
    count: workload.NotNegative | None = None
    """Number of pods admitted, less than asked for under partial admission."""
    topology_assignment: TopologyAssignment | None = None
    """Domains in which the pods are placed."""
    delayed_topology_request: str | None = None
    """Whether the placement still waits for capacity."""


class Admission(Model):
    """The grant of quota."""

    cluster_queue: DnsName
    """ClusterQueue that grants it."""
    pod_set_assignments: Annotated[list[PodSetAssignment], MaxLen(18), by("name")]
    """What each pod set was given."""


class PodSetUpdate(Model):
    """What an admission check adds to the pods of a set."""

    name: PodSetName
    """Name of the pod set."""
    labels: dict[str, str] = absent(dict)
    """Labels to add."""
    annotations: dict[str, str] = absent(dict)
    """Annotations to add."""
    node_selector: dict[str, str] = absent(dict)
    """Node selectors to add."""
    tolerations: Annotated[
        list[Toleration],
        MaxLen(8),
        shared.EXISTS_FOR_ALL,
        shared.SECONDS_OF_NO_EXECUTE,
        shared.TOLERATION_OPERATORS,
        shared.NO_VALUE_OF_EXISTS,
        shared.TOLERATION_EFFECTS,
    ] = absent(list)
    """Tolerations to add."""


class AdmissionCheckState(Model):
    """Where one admission check stands for this workload."""

    name: Annotated[str, MaxLen(316)]
    """Name of the check."""
    state: workload.CheckState
    """Pending, Ready, Retry (evict and try again) or Rejected (evict for good)."""
    last_transition_time: Time
    """When the state changed last."""
    message: Annotated[str, MaxLen(32768)]
    """Explanation for people."""
    requeue_after_seconds: workload.NotNegative | None = None
    """Seconds to wait before the next try."""
    retry_count: workload.NotNegative | None = None
    """Tries so far."""
    pod_set_updates: Annotated[list[PodSetUpdate], MaxLen(18), ATOMIC] = absent(list)
    """What the check adds to the pods."""


class SchedulingStats(Model):
    """What has happened to the workload."""

    evictions: Annotated[list[workload.WorkloadSchedulingStatsEviction], by("reason", "underlyingCause")] = absent(list)
    """Evictions by cause."""


class UnhealthyNode(Model):
    """A node on which pods of the workload cannot go on."""

    name: str
    """Name of the node."""


class WorkloadStatus(Model):
    """What was granted, and what has happened."""

    cel_rules: ClassVar = workload.WorkloadStatus.cel_rules

    conditions: Conditions = absent(list)
    """Aspects such as QuotaReserved, Admitted, Evicted, Finished."""
    admission: Admission | None = None
    """The grant of quota."""
    requeue_state: workload.RequeueState | None = None
    """Where it stands in being queued again."""
    reclaimable_pods: Annotated[list[workload.ReclaimablePod], MaxLen(18), by("name")] = absent(list)
    """Pods whose quota is needed no longer."""
    admission_checks: Annotated[list[AdmissionCheckState], MaxLen(8), by("name")] = absent(list)
    """Where each admission check stands."""
    resource_requests: Annotated[list[workload.PodSetRequest], MaxLen(18), by("name")] = absent(list)
    """Resources asked for, as they are counted while it waits."""
    accumulated_past_exexcution_time_seconds: Int32 | None = None
    """Seconds that it was admitted before the last eviction (the name is misspelt upstream)."""
    scheduling_stats: SchedulingStats | None = None
    """What has happened to it."""
    nominated_cluster_names: Annotated[list[str], MaxLen(20), ATOMIC] = absent(list)
    """Clusters that it may be dispatched to."""
    cluster_name: str | None = None
    """Cluster that it was dispatched to."""
    unhealthy_nodes: list[UnhealthyNode] = absent(list)
    """Nodes on which its pods cannot go on."""


class Workload(ApiObject):
    """A job's request for quota, and what was granted."""

    cel_rules: ClassVar = (
        workload.ASSIGNMENTS_MATCH,
        Rule(
            workload.RESERVED_BEFORE + " && has(oldSelf.spec.priorityClassSource) && has(self.spec.priorityClassSource)) ? "
            "(oldSelf.spec.priorityClassSource == self.spec.priorityClassSource) : true",
            "priorityClassSource is immutable while workload quota reserved",
        ),
        Rule(
            workload.RESERVED_BEFORE + " && has(oldSelf.spec.priorityClassSource) && has(self.spec.priorityClassSource) && "
            "(self.spec.priorityClassSource != 'kueue.x-k8s.io/workloadpriorityclass') && "
            "has(oldSelf.spec.priorityClassName) && has(self.spec.priorityClassName)) ? "
            "(oldSelf.spec.priorityClassName == self.spec.priorityClassName) : true",
            "priorityClassName is immutable while workload quota reserved and priorityClassSource is not equal to "
            "kueue.x-k8s.io/workloadpriorityclass",
        ),
        workload.QUEUE_NAME_KEPT,
        workload.EXECUTION_TIME_KEPT,
    )

    api_version: Version = "kueue.x-k8s.io/v1beta1"
    kind: Literal["Workload"] = "Workload"
    spec: WorkloadSpec | None = None
    """What is asked for."""
    status: WorkloadStatus = absent(WorkloadStatus)
    """What was granted, and what has happened."""
