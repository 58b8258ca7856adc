"""JobSet, jobset.x-k8s.io/v1alpha2: a group of Jobs that start, fail and finish together.

Mirrors the schema of JobSet v0.13.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from annotated_types import Ge, MaxLen

from kubemini.api.meta.markers import ATOMIC, IMMUTABLE, Rule, absent, by
from kubemini.api.meta.model import Model
from kubemini.api.meta.types import Int32, JobTemplateSpec, PersistentVolumeClaim
from kubemini.api.meta.v1 import ApiObject, Condition

FailurePolicyAction = Literal["FailJobSet", "RestartJobSet", "RestartJobSetAndIgnoreMaxRestarts", "RestartJob", "RestartJobAndIgnoreMaxRestarts"]
RestartStrategy = Literal["Recreate", "BlockingRecreate", "InPlaceRestart"]
Operator = Literal["All", "Any"]
StartupPolicyOrder = Literal["AnyOrder", "InOrder"]
DependsOnStatus = Literal["Ready", "Complete"]
WhenDeleted = Literal["Delete", "Retain"]


class DependsOn(Model):
    """An earlier replicated job that must have come so far before this one starts."""

    name: str
    """Name of the earlier replicated job."""
    status: DependsOnStatus
    """What its Jobs must have reached: Ready or Complete."""


class ReplicatedJob(Model):
    """One role of the JobSet: a number of Jobs of the same template."""

    name: str
    """Name of the role, part of the names of its Jobs."""
    group_name: str = "default"
    """Group for which Jobs are counted together in labels."""
    template: JobTemplateSpec
    """The Job to create."""
    replicas: Annotated[Int32, Ge(0)] = 1
    """Number of Jobs of this template."""
    depends_on: Annotated[list[DependsOn], MaxLen(5), by("name"), IMMUTABLE] | None = None
    """Earlier roles that must be ready or complete first."""


class Network(Model):
    """How the pods find each other by name."""

    enable_dns_hostnames: bool | None = None
    """Whether pods get stable host names through a headless Service."""
    subdomain: str | None = None
    """Name of that Service; the JobSet's name when empty."""
    publish_not_ready_addresses: bool | None = None
    """Whether names resolve before pods are ready."""


class SuccessPolicy(Model):
    """When the JobSet counts as completed."""

    operator: Operator
    """Whether all or any of the target Jobs must complete."""
    target_replicated_jobs: Annotated[list[str], ATOMIC] = absent(list)
    """Roles that count; all of them when empty."""


class FailurePolicyRule(Model):
    """What to do about a failed Job of certain roles and reasons; the first rule that matches decides."""

    name: str
    """Name of the rule, unique, shown in the reason of restarts."""
    action: FailurePolicyAction
    """What happens when the rule matches."""
    on_job_failure_reasons: list[str] = absent(list)
    """Reasons of the Job's failure that match; any when empty."""
    on_job_failure_message_patterns: list[str] = absent(list)
    """RE2 patterns for the message of the Job's failure; any message when empty."""
    target_replicated_jobs: Annotated[list[str], ATOMIC] = absent(list)
    """Roles to which the rule applies; all of them when empty."""


class FailurePolicy(Model):
    """What failed Jobs lead to."""

    max_restarts: Int32 = absent(0)
    """How many counted restarts are allowed before the JobSet fails."""
    restart_strategy: RestartStrategy = "Recreate"
    """How a restart replaces the Jobs."""
    rules: list[FailurePolicyRule] = absent(list)
    """Rules tried in order; without a match the JobSet restarts."""


class StartupPolicy(Model):
    """In which order the roles start (deprecated: see dependsOn)."""

    startup_policy_order: StartupPolicyOrder
    """AnyOrder starts all at once, InOrder waits for each role."""


class Coordinator(Model):
    """The pod that leads, whose address all pods are told."""

    replicated_job: str
    """Role of the coordinator pod."""
    job_index: int = absent(0)
    """Index of its Job within the role."""
    pod_index: int = absent(0)
    """Completion index of the pod within the Job."""


class VolumeRetentionPolicy(Model):
    """What becomes of claims."""

    when_deleted: WhenDeleted = "Delete"
    """Whether claims go away with the JobSet."""


class VolumeClaimPolicy(Model):
    """Claims that the JobSet creates and its pods share."""

    cel_rules: ClassVar = (
        Rule(
            "self.templates.all(t, !has(t.metadata.namespace) || size(t.metadata.namespace) == 0)",
            "namespace cannot be set for VolumeClaimPolicies templates",
        ),
    )

    templates: Annotated[list[PersistentVolumeClaim], MaxLen(50), ATOMIC] = absent(list)
    """Claims to create; containers refer to them by name."""
    retention_policy: VolumeRetentionPolicy | None = None
    """What becomes of the claims when the JobSet is deleted."""


class JobSetSpec(Model):
    """The desired state."""

    cel_rules: ClassVar = (
        Rule(
            "!(has(self.startupPolicy) && self.startupPolicy.startupPolicyOrder == 'InOrder' && self.replicatedJobs.exists(x, has(x.dependsOn)))",
            "StartupPolicy and DependsOn APIs are mutually exclusive",
        ),
    )

    replicated_jobs: Annotated[list[ReplicatedJob], by("name")] = absent(list)
    """The roles, each a number of like Jobs."""
    network: Annotated[Network, IMMUTABLE] | None = None
    """How pods find each other by name."""
    success_policy: Annotated[SuccessPolicy, IMMUTABLE] | None = None
    """When the JobSet counts as completed."""
    failure_policy: Annotated[FailurePolicy, IMMUTABLE] | None = None
    """What failed Jobs lead to; without it the first failure fails the JobSet."""
    startup_policy: Annotated[StartupPolicy, IMMUTABLE] | None = None
    """In which order the roles start."""
    suspend: bool | None = None
    """Whether all Jobs are suspended."""
    coordinator: Coordinator | None = None
    """The pod whose address all pods are told."""
    managed_by: str | None = None
    """Controller in charge when it is not the built-in one."""
    ttl_seconds_after_finished: Annotated[Int32, Ge(0)] | None = None
    """Seconds after which a finished JobSet is deleted."""
    volume_claim_policies: Annotated[list[VolumeClaimPolicy], MaxLen(50), ATOMIC, IMMUTABLE] | None = None
    """Claims that the JobSet creates and its pods share."""


class ReplicatedJobStatus(Model):
    """Counts of the Jobs of one role."""

    name: str
    """Name of the role."""
    ready: Int32
    """Jobs whose pods are ready or succeeded in full."""
    succeeded: Int32
    """Jobs that completed."""
    failed: Int32
    """Jobs that failed."""
    active: Int32
    """Jobs with at least one running or pending pod."""
    suspended: Int32
    """Jobs that are suspended."""
    job_restarts: Annotated[list[Int32], MaxLen(1024), ATOMIC] = absent(list)
    """Restarts of each single Job, by its index."""
    job_restarts_count_towards_max: Annotated[list[Int32], MaxLen(1024), ATOMIC] = absent(list)
    """Of these, the restarts that count towards maxRestarts."""


class JobSetStatus(Model):
    """The observed state."""

    conditions: Annotated[list[Condition], by("type")] = absent(list)
    """Aspects such as Completed, Failed, Suspended."""
    restarts: Int32 = absent(0)
    """Restarts of the whole JobSet so far."""
    restarts_count_towards_max: Int32 = absent(0)
    """Of these, the restarts that count towards maxRestarts."""
    terminal_state: str = absent("")
    """Completed or Failed once finished."""
    replicated_jobs_status: Annotated[list[ReplicatedJobStatus], by("name")] = absent(list)
    """Counts of Jobs by role."""
    previous_in_place_restart_attempt: Annotated[Int32, Ge(0)] | None = None
    """Attempt that in-place restarts have left behind."""
    current_in_place_restart_attempt: Annotated[Int32, Ge(0)] | None = None
    """Attempt that in-place restarts have reached."""


class JobSet(ApiObject):
    """A group of Jobs that start, fail and finish together."""

    api_version: Literal["jobset.x-k8s.io/v1alpha2"] = "jobset.x-k8s.io/v1alpha2"
    kind: Literal["JobSet"] = "JobSet"
    spec: JobSetSpec = absent(JobSetSpec)
    """The desired state."""
    status: JobSetStatus = absent(JobSetStatus)
    """The observed state."""
