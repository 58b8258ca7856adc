"""LeaderWorkerSet, leaderworkerset.x-k8s.io/v1: replicas that are groups of one leader pod and its workers.

Mirrors the schema of LWS v0.9.
"""

from __future__ import annotations

from typing import Annotated, Literal

from annotated_types import Ge, Le

from kubemini.api.meta.markers import REQUIRED, absent, by
from kubemini.api.meta.model import Model
from kubemini.api.meta.types import Int32, Int64, IntOrString, PersistentVolumeClaim, PodTemplateSpec
from kubemini.api.meta.v1 import ApiObject, Condition

RestartPolicyType = Literal["Default", "RecreateGroupOnPodRestart", "RecreateGroupAfterStart", "None"]
SubGroupPolicyType = Literal["LeaderWorker", "LeaderExcluded"]
SubdomainPolicy = Literal["Shared", "UniquePerReplica"]
RolloutStrategyType = Literal["RollingUpdate"]
StartupPolicyType = Literal["LeaderCreated", "LeaderReady"]


class SubGroupPolicy(Model):
    """How a group is divided into subgroups that are placed together."""

    sub_group_policy_type: SubGroupPolicyType = "LeaderWorker"
    """Whether the leader belongs to the first subgroup or stands alone."""
    sub_group_size: Int32 | None = None
    """Number of pods in a subgroup."""


class PersistentVolumeClaimRetentionPolicy(Model):
    """What becomes of claims made from templates, each Retain or Delete."""

    when_deleted: str | None = None
    """When the LeaderWorkerSet is deleted."""
    when_scaled: str | None = None
    """When it is scaled down."""


class LeaderWorkerTemplate(Model):
    """One group: the pods of the leader and of its workers."""

    leader_template: PodTemplateSpec | None = None
    """Pod of the leader; as the workers' when absent."""
    worker_template: PodTemplateSpec
    """Pod of each worker."""
    size: Int32 = 1
    """Pods in a group, the leader included."""
    restart_policy: RestartPolicyType = "RecreateGroupOnPodRestart"
    """Whether a failed pod takes its whole group down."""
    sub_group_policy: SubGroupPolicy | None = None
    """How a group is divided into subgroups."""
    volume_claim_templates: list[PersistentVolumeClaim] = absent(list)
    """Claims that each pod gets for itself."""
    persistent_volume_claim_retention_policy: PersistentVolumeClaimRetentionPolicy | None = None
    """What becomes of these claims."""


class RollingUpdateConfiguration(Model):
    """The pace of a rolling update, counted in groups."""

    partition: Int32 = 0
    """Groups with a lower index keep the old revision."""
    max_unavailable: IntOrString = 1
    """Groups, or percentage of groups, that may be down at a time."""
    max_surge: IntOrString = 0
    """Groups, or percentage of groups, that may exist beyond the wanted number."""


class RolloutStrategy(Model):
    """How a new revision replaces the old one."""

    type: Annotated[RolloutStrategyType, REQUIRED] = "RollingUpdate"
    """Kind of rollout."""
    rolling_update_configuration: RollingUpdateConfiguration | None = None
    """Pace of a rolling update."""


class NetworkConfig(Model):
    """How the pods find each other by name."""

    subdomain_policy: SubdomainPolicy
    """Whether all groups share one headless Service or each has its own."""


class LeaderWorkerSetSpec(Model):
    """The desired state."""

    replicas: Annotated[Int32, Ge(0), Le(1000000)] = 1
    """Number of groups."""
    leader_worker_template: LeaderWorkerTemplate
    """What a group consists of."""
    rollout_strategy: RolloutStrategy = absent(RolloutStrategy)
    """How a new revision replaces the old one."""
    startup_policy: StartupPolicyType = "LeaderCreated"
    """Whether workers start with their leader or once it is ready."""
    network_config: NetworkConfig | None = None
    """How the pods find each other by name."""


class LeaderWorkerSetStatus(Model):
    """The observed state."""

    conditions: Annotated[list[Condition], by("type")] = absent(list)
    """Aspects such as Available, Progressing, UpdateInProgress."""
    observed_generation: Int64 = absent(0)
    """The generation that these figures are about."""
    ready_replicas: Int32 = absent(0)
    """Groups whose pods are all ready."""
    updated_replicas: Int32 = absent(0)
    """Groups of the newest revision."""
    replicas: Int32 = absent(0)
    """Groups that exist, ready or not."""
    hpa_pod_selector: str = absent("")
    """Label selector of the leader pods, for autoscalers."""


class LeaderWorkerSet(ApiObject):
    """Replicas that are groups of one leader pod and its workers."""

    api_version: Literal["leaderworkerset.x-k8s.io/v1"] = "leaderworkerset.x-k8s.io/v1"
    kind: Literal["LeaderWorkerSet"] = "LeaderWorkerSet"
    spec: LeaderWorkerSetSpec | None = None
    """The desired state."""
    status: LeaderWorkerSetStatus = absent(LeaderWorkerSetStatus)
    """The observed state."""
