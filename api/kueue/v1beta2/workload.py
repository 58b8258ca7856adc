"""Workload: the request for quota that stands for a job, and what was granted."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

from annotated_types import Ge, Len, MaxLen
from pydantic import StringConstraints

from kubemini.api.kueue.v1beta2.shared import (
    EXISTS_FOR_ALL,
    NO_VALUE_OF_EXISTS,
    SECONDS_OF_NO_EXECUTE,
    TOLERATION_EFFECTS,
    TOLERATION_OPERATORS,
    DnsName,
    PodSetName,
)
from kubemini.api.meta.markers import ATOMIC, Rule, absent, by
from kubemini.api.meta.model import Model
from kubemini.api.meta.types import Int32, PodTemplateSpec, Quantity, Time, Toleration
from kubemini.api.meta.v1 import ApiObject, Condition

Text63: TypeAlias = Annotated[str, MaxLen(63)]
LabelKey: TypeAlias = Annotated[str, MaxLen(317)]
ClusterName: TypeAlias = Annotated[str, MaxLen(256)]
CheckName: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=316)]
GateName: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=63)]
Positive: TypeAlias = Annotated[Int32, Ge(1)]
NotNegative: TypeAlias = Annotated[Int32, Ge(0)]
CheckState = Literal["Pending", "Ready", "Retry", "Rejected"]

# ------------------------------------------------------------------------------------------------- what is asked for


class PodsetSliceRequiredTopologyConstraint(Model):
    """A topology level within which so many pods must be placed together."""

    topology: Annotated[str, StringConstraints(min_length=1, max_length=63)]
    """Node label of the level."""
    size: Positive
    """Number of pods."""


class PodSetTopologyRequest(Model):
    """Where pods of the set may be placed relative to each other."""

    required: Text63 | None = None
    """Level within one domain of which all pods must be."""
    preferred: Text63 | None = None
    """Level within one domain of which all pods should be."""
    unconstrained: bool | None = None
    """Whether the pods may be anywhere in the topology."""
    pod_index_label: LabelKey | None = None
    """Pod label that holds the index of a pod."""
    sub_group_index_label: LabelKey | None = None
    """Pod label that holds the index of the Job the pod belongs to."""
    sub_group_count: NotNegative | None = None
    """Number of such Jobs."""
    pod_set_group_name: Annotated[str, MaxLen(256)] | None = None
    """Pod sets of the same group name are placed together."""
    pod_set_slice_required_topology: Text63 | None = None
    """Level within one domain of which each slice must be."""
    pod_set_slice_size: Positive | None = None
    """Number of pods in a slice."""
    podset_slice_required_topology_constraints: Annotated[list[PodsetSliceRequiredTopologyConstraint], MaxLen(3), ATOMIC] = absent(list)
    """Levels of nested slices, from the widest to the narrowest."""


class PodSet(Model):
    """A number of like pods."""

    cel_rules: ClassVar = (Rule("has(self.minCount) ? self.minCount <= self.count : true", "minCount should be positive and less or equal to count"),)

    name: PodSetName = "main"
    """Name of the set."""
    template: PodTemplateSpec
    """The pod."""
    count: NotNegative = 1
    """Number of pods."""
    min_count: Positive | None = None
    """Number with which the workload can do, for partial admission."""
    topology_request: PodSetTopologyRequest | None = None
    """Where the pods may be placed relative to each other."""


class PriorityClassRef(Model):
    """The class that the priority comes from."""

    cel_rules: ClassVar = (
        Rule(
            "(self.group == 'scheduling.k8s.io') ? self.kind == 'PriorityClass' : true",
            "only the PriorityClass kind is allowed for the scheduling.k8s.io group",
        ),
        Rule(
            "(self.group == 'kueue.x-k8s.io') ? self.kind == 'WorkloadPriorityClass' : true",
            "only the WorkloadPriorityClass kind is allowed for the kueue.x-k8s.io group",
        ),
    )

    group: Literal["kueue.x-k8s.io", "scheduling.k8s.io"]
    """API group of the class."""
    kind: Literal["WorkloadPriorityClass", "PriorityClass"]
    """Kind of the class."""
    name: Annotated[DnsName, StringConstraints(min_length=1)]
    """Name of the class."""


class PreemptionGate(Model):
    """A gate that keeps the workload from preempting others."""

    name: GateName
    """Name of the gate."""


class WorkloadSpec(Model):
    """What is asked for."""

    cel_rules: ClassVar = (Rule("!has(self.priorityClassRef) || has(self.priority)", "priority should not be nil when priorityClassRef is set"),)

    pod_sets: Annotated[list[PodSet], Len(1, 18), by("name")] = absent(list)
    """The pods, in sets of like ones."""
    queue_name: DnsName | None = None
    """LocalQueue to which it is submitted."""
    priority_class_ref: PriorityClassRef | None = None
    """Class that the priority comes from."""
    priority: Int32 | None = None
    """Priority for admission and preemption; 0 when absent."""
    active: bool = True
    """Whether it may be admitted; setting it to false evicts."""
    maximum_execution_time_seconds: Positive | None = None
    """Seconds that it may be admitted in total."""
    preemption_gates: Annotated[list[PreemptionGate], MaxLen(8), by("name")] = absent(list)
    """Gates that must be open before it preempts."""


# ------------------------------------------------------------------------------------------------- what was granted


class LevelIndividualValues(Model):
    """One value for each domain: prefix + root + suffix."""

    prefix: Text63 | None = None
    """Text before each root."""
    suffix: Text63 | None = None
    """Text after each root."""
    roots: Annotated[list[Text63], Len(1, 100000), ATOMIC]
    """What differs, by domain."""


class LevelValues(Model):
    """Values of one topology level for the domains of a slice."""

    cel_rules: ClassVar = (Rule("has(self.universal) != has(self.individual)", "exactly one of the fields in [universal individual] must be set"),)

    universal: Text63 | None = None
    """The value of all domains."""
    individual: LevelIndividualValues | None = None
    """One value for each domain."""


class SlicePodCounts(Model):
    """Number of pods in each domain of a slice."""

    cel_rules: ClassVar = (
        Rule(
            "[has(self.universal),has(self.individual)].filter(x,x==true).size() == 1",
            "exactly one of the fields in [universal individual] must be set",
        ),
    )

    universal: Positive | None = None
    """The number in all domains."""
    individual: Annotated[list[Positive], Len(1, 100000), ATOMIC] | None = None
    """One number for each domain."""


class TopologyAssignmentSlice(Model):
    """Some domains and the number of pods in each, written in a compact way."""

    cel_rules: ClassVar = (
        Rule(
            "!has(self.podCounts.individual) || size(self.podCounts.individual) == self.domainCount",
            "podCounts.individual must have length equal to domainCount",
        ),
        Rule(
            "self.valuesPerLevel.all(x, !has(x.individual) || size(x.individual.roots) == self.domainCount)",
            "valuesPerLevel.individual, if set, must have roots of length equal to domainCount of this TopologyAssignmentSlice",
        ),
    )

    domain_count: Positive
    """Number of domains."""
    values_per_level: Annotated[list[LevelValues], Len(1, 16), ATOMIC]
    """Their values, by level."""
    pod_counts: SlicePodCounts
    """Pods in each."""


class TopologyAssignment(Model):
    """How many pods go into which domains of the topology."""

    cel_rules: ClassVar = (
        Rule(
            "self.slices.all(x, size(x.valuesPerLevel) == size(self.levels))",
            "valuesPerLevel must have the same length as the number of levels in this TopologyAssignment",
        ),
    )

    levels: Annotated[list[LabelKey], Len(1, 16), ATOMIC]
    """Node labels of the levels, from the widest to the narrowest."""
    slices: Annotated[list[TopologyAssignmentSlice], MaxLen(1000), ATOMIC]
    """The domains, in slices."""


class PodSetAssignment(Model):
    """What one pod set was given."""

    name: PodSetName = "main"
    """Name of the pod set."""
    flavors: dict[str, DnsName] = absent(dict)
    """Flavor of each resource."""
    resource_usage: dict[str, Quantity] = absent(dict)
    """Quota charged for all pods of the set, by resource."""
    count: NotNegative | None = None
    """Number of pods admitted, less than asked for under partial admission."""
    topology_assignment: TopologyAssignment | None = None
    """Domains in which the pods are placed."""
    delayed_topology_request: Annotated[Literal["Pending", "Ready"], MaxLen(7)] | None = None
    """Whether the placement still waits for capacity."""


class Admission(Model):
    """The grant of quota."""

    cluster_queue: DnsName | None = None
    """ClusterQueue that grants it."""
    pod_set_assignments: Annotated[list[PodSetAssignment], MaxLen(18), by("name")] = absent(list)
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
        ATOMIC,
        EXISTS_FOR_ALL,
        SECONDS_OF_NO_EXECUTE,
        TOLERATION_OPERATORS,
        NO_VALUE_OF_EXISTS,
        TOLERATION_EFFECTS,
    ] = absent(list)
    """Tolerations to add."""


class AdmissionCheckState(Model):
    """Where one admission check stands for this workload."""

    name: CheckName
    """Name of the check."""
    state: CheckState
    """Pending, Ready, Retry (evict and try again) or Rejected (evict for good)."""
    last_transition_time: Time
    """When the state changed last."""
    message: Annotated[str, MaxLen(32768)]
    """Explanation for people."""
    requeue_after_seconds: NotNegative | None = None
    """Seconds to wait before the next try."""
    retry_count: NotNegative | None = None
    """Tries so far."""
    pod_set_updates: Annotated[list[PodSetUpdate], MaxLen(18), ATOMIC] = absent(list)
    """What the check adds to the pods."""


class RequeueState(Model):
    """Where the workload stands in being queued again after evictions."""

    count: NotNegative | None = None
    """Times it was queued again."""
    requeue_at: Time | None = None
    """When it may be considered again."""


class ReclaimablePod(Model):
    """Pods of a set whose quota is needed no longer."""

    name: PodSetName
    """Name of the pod set."""
    count: NotNegative
    """Number of such pods."""


class PodSetRequest(Model):
    """Resources that a pod set asks for, as they are counted."""

    name: PodSetName
    """Name of the pod set."""
    resources: dict[str, Quantity] = absent(dict)
    """Total by resource, after transformations."""


class WorkloadSchedulingStatsEviction(Model):
    """Evictions for one cause."""

    reason: Annotated[str, MaxLen(316)]
    """Reason of the eviction."""
    underlying_cause: Annotated[str, MaxLen(316)]
    """What lies behind it; may be empty."""
    count: NotNegative
    """How often."""


class SchedulingStats(Model):
    """What has happened to the workload."""

    evictions: Annotated[list[WorkloadSchedulingStatsEviction], MaxLen(256), by("reason", "underlyingCause")] = absent(list)
    """Evictions by cause."""


class UnhealthyNode(Model):
    """A node on which pods of the workload cannot go on."""

    name: Text63
    """Name of the node."""


class PreemptionGateState(Model):
    """Where a preemption gate stands."""

    name: GateName
    """Name of the gate."""
    position: Literal["Closed", "Open"]
    """Whether preemption is allowed."""
    last_transition_time: Time
    """When the position changed last."""


class WorkloadStatus(Model):
    """What was granted, and what has happened."""

    cel_rules: ClassVar = (
        Rule(
            "!has(oldSelf.clusterName) || !has(self.clusterName) || oldSelf.clusterName == self.clusterName",
            "clusterName is immutable once set",
        ),
        Rule(
            "!has(self.clusterName) || (!has(self.nominatedClusterNames) || "
            "(has(self.nominatedClusterNames) && size(self.nominatedClusterNames) == 0))",
            "clusterName and nominatedClusterNames are mutually exclusive",
        ),
    )

    conditions: Annotated[list[Condition], MaxLen(16), by("type")] = absent(list)
    """Aspects such as QuotaReserved, Admitted, Evicted, Finished."""
    admission: Admission | None = None
    """The grant of quota."""
    requeue_state: RequeueState | None = None
    """Where it stands in being queued again."""
    reclaimable_pods: Annotated[list[ReclaimablePod], MaxLen(18), by("name")] = absent(list)
    """Pods whose quota is needed no longer."""
    admission_checks: Annotated[list[AdmissionCheckState], MaxLen(8), by("name")] = absent(list)
    """Where each admission check stands."""
    resource_requests: Annotated[list[PodSetRequest], MaxLen(18), by("name")] = absent(list)
    """Resources asked for, as they are counted while it waits."""
    accumulated_past_execution_time_seconds: Int32 | None = None
    """Seconds that it was admitted before the last eviction."""
    scheduling_stats: SchedulingStats | None = None
    """What has happened to it."""
    nominated_cluster_names: Annotated[list[ClusterName], MaxLen(20), ATOMIC] = absent(list)
    """Clusters that it may be dispatched to."""
    cluster_name: ClusterName | None = None
    """Cluster that it was dispatched to."""
    unhealthy_nodes: Annotated[list[UnhealthyNode], MaxLen(8), by("name")] = absent(list)
    """Nodes on which its pods cannot go on."""
    preemption_gates: Annotated[list[PreemptionGateState], MaxLen(8), by("name")] = absent(list)
    """Where each preemption gate stands."""


# ------------------------------------------------------------------------------------------------- the kind

RESERVED_BEFORE = (
    "(has(oldSelf.status) && has(oldSelf.status.conditions) && oldSelf.status.conditions.exists(c, c.type == 'QuotaReserved' && c.status == 'True')"
)
_RESERVED_AND_CLASS = RESERVED_BEFORE + " && has(oldSelf.spec.priorityClassRef) && has(self.spec.priorityClassRef)"

ASSIGNMENTS_MATCH = Rule(
    "has(self.status) && has(self.status.conditions) && self.status.conditions.exists(c, c.type == 'QuotaReserved' && c.status == 'True')"
    " && has(self.status.admission) ? size(self.spec.podSets) == size(self.status.admission.podSetAssignments) : true",
    "podSetAssignments must have the same number of podSets as the spec",
)
QUEUE_NAME_KEPT = Rule(
    "(" + RESERVED_BEFORE + ") && (has(self.status) && has(self.status.conditions) && "
    "self.status.conditions.exists(c, c.type == 'QuotaReserved' && c.status == 'True'))) ? "
    "((has(oldSelf.spec.queueName) == has(self.spec.queueName)) && "
    "(!has(oldSelf.spec.queueName) || oldSelf.spec.queueName == self.spec.queueName)) : true",
    "queueName is immutable while workload quota reserved",
)
EXECUTION_TIME_KEPT = Rule(
    "((has(oldSelf.status) && has(oldSelf.status.conditions) && "
    "oldSelf.status.conditions.exists(c, c.type == 'Admitted' && c.status == 'True')) && "
    "(has(self.status) && has(self.status.conditions) && self.status.conditions.exists(c, c.type == 'Admitted' && c.status == 'True')))"
    "?((has(oldSelf.spec.maximumExecutionTimeSeconds)?oldSelf.spec.maximumExecutionTimeSeconds:0) ==  "
    "(has(self.spec.maximumExecutionTimeSeconds)?self.spec.maximumExecutionTimeSeconds:0)):true",
    "maximumExecutionTimeSeconds is immutable while workload quota reserved",
)


class Workload(ApiObject):
    """A job's request for quota, and what was granted."""

    cel_rules: ClassVar = (
        ASSIGNMENTS_MATCH,
        Rule(
            RESERVED_BEFORE + ") ? (!has(oldSelf.spec.priorityClassRef) && !has(self.spec.priorityClassRef)) || "
            "(has(oldSelf.spec.priorityClassRef) && has(self.spec.priorityClassRef)) : true",
            "priorityClassRef is immutable while workload quota reserved",
        ),
        Rule(
            _RESERVED_AND_CLASS + ") ? oldSelf.spec.priorityClassRef.group == self.spec.priorityClassRef.group : true",
            "priorityClassRef.group is immutable while workload quota reserved",
        ),
        Rule(
            _RESERVED_AND_CLASS + ") ? oldSelf.spec.priorityClassRef.kind == self.spec.priorityClassRef.kind : true",
            "priorityClassRef.kind is immutable while workload quota reserved",
        ),
        Rule(
            _RESERVED_AND_CLASS + " && self.spec.priorityClassRef.group == 'scheduling.k8s.io'"
            " && self.spec.priorityClassRef.kind == 'PriorityClass') ? oldSelf.spec.priorityClassRef.name == self.spec.priorityClassRef.name : true",
            "priorityClassRef.name is immutable for scheduling.k8s.io/priorityclass while workload quota reserved",
        ),
        QUEUE_NAME_KEPT,
        EXECUTION_TIME_KEPT,
    )

    api_version: Literal["kueue.x-k8s.io/v1beta2"] = "kueue.x-k8s.io/v1beta2"
    kind: Literal["Workload"] = "Workload"
    spec: WorkloadSpec = absent(WorkloadSpec)
    """What is asked for."""
    status: WorkloadStatus = absent(WorkloadStatus)
    """What was granted, and what has happened."""
