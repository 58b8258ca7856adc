"""Workload: the request for quota that stands for a job, and what was granted."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from annotated_types import Len, MaxLen

from kubemini.api.kueue.v1beta1.shared import Conditions, Version
from kubemini.api.kueue.v1beta2 import shared, workload
from kubemini.api.kueue.v1beta2.shared import DnsName, PodSetName
from kubemini.api.meta.markers import ATOMIC, REQUIRED, Rule, absent, by
from kubemini.api.meta.model import Model
from kubemini.api.meta.types import Int32, PodTemplateSpec, Quantity, Time, Toleration
from kubemini.api.meta.v1 import ApiObject


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
