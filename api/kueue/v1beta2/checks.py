"""AdmissionCheck and the parameters of the checks that Kueue brings: ProvisioningRequestConfig, MultiKueueConfig, MultiKueueCluster."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

from annotated_types import Len, MaxLen
from pydantic import Field, StringConstraints

from kubemini.api.kueue.v1beta2.flavors import UNIQUE
from kubemini.api.meta.markers import ATOMIC, IMMUTABLE_FIELD, SET, Rule, absent, by
from kubemini.api.meta.model import Model
from kubemini.api.meta.types import DNS_LABEL, DNS_SUBDOMAIN, LABEL_KEY, Int32
from kubemini.api.meta.v1 import ApiObject, Condition

KIND = r"^(?i)[a-z]([-a-z0-9]*[a-z0-9])?$"


class AdmissionCheckParametersReference(Model):
    """An object with parameters for the check."""

    api_group: Annotated[str, StringConstraints(min_length=1, max_length=253, pattern=DNS_SUBDOMAIN)]
    """API group of the object."""
    kind: Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=KIND)]
    """Kind of the object."""
    name: Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=DNS_LABEL)]
    """Name of the object."""


class AdmissionCheckSpec(Model):
    """The desired state."""

    controller_name: Annotated[str, StringConstraints(min_length=1, max_length=253), IMMUTABLE_FIELD]
    """Controller that decides the check."""
    parameters: AdmissionCheckParametersReference | None = None
    """Object with parameters for the check."""


class AdmissionCheckStatus(Model):
    """The observed state."""

    conditions: Annotated[list[Condition], MaxLen(16), by("type")] = absent(list)
    """Whether the check is active."""


class AdmissionCheck(ApiObject):
    """A gate that a controller opens for each workload after its quota is reserved."""

    api_version: Literal["kueue.x-k8s.io/v1beta2"] = "kueue.x-k8s.io/v1beta2"
    kind: Literal["AdmissionCheck"] = "AdmissionCheck"
    spec: AdmissionCheckSpec | None = None
    """The desired state."""
    status: AdmissionCheckStatus = absent(AdmissionCheckStatus)
    """The observed state."""


PodSetMergePolicy = Literal["IdenticalPodTemplates", "IdenticalWorkloadSchedulingRequirements"]
Parameter: TypeAlias = Annotated[str, MaxLen(255)]


class ProvisioningRequestRetryStrategy(Model):
    """How often and when a failed request is made anew."""

    backoff_limit_count: Int32 = 3
    """Attempts after which the workload is deactivated."""
    backoff_base_seconds: Int32 = 60
    """Seconds before the first new attempt; doubled each time."""
    backoff_max_seconds: Int32 = 1800
    """Longest wait in seconds."""


class ProvisioningRequestPodSetUpdatesNodeSelector(Model):
    """A node selector whose value comes from the answered request."""

    key: Annotated[str, StringConstraints(min_length=1, max_length=317, pattern=LABEL_KEY)]
    """Label key of the selector."""
    value_from_provisioning_class_detail: Annotated[str, StringConstraints(min_length=1, max_length=32768)]
    """Detail of the request that holds the value."""


class ProvisioningRequestPodSetUpdates(Model):
    """What pods get once capacity is there."""

    node_selector: Annotated[list[ProvisioningRequestPodSetUpdatesNodeSelector], MaxLen(8), by("key")] = absent(list)
    """Node selectors to add."""


def default_retries() -> ProvisioningRequestRetryStrategy:
    """Return the retries of a config that states none."""
    return ProvisioningRequestRetryStrategy(backoff_limit_count=3, backoff_base_seconds=60, backoff_max_seconds=1800)


class ProvisioningRequestConfigSpec(Model):
    """How capacity is asked of the cluster autoscaler."""

    provisioning_class_name: Annotated[str, StringConstraints(min_length=1, max_length=253, pattern=DNS_SUBDOMAIN)]
    """Class of the request."""
    parameters: Annotated[dict[str, Parameter], MaxLen(100)] = absent(dict)
    """Parameters of the request."""
    managed_resources: Annotated[list[str], MaxLen(100), SET] = absent(list)
    """Resources for which capacity is asked; all when empty."""
    retry_strategy: ProvisioningRequestRetryStrategy | None = Field(default_factory=default_retries)
    """How often and when a failed request is made anew."""
    pod_set_updates: ProvisioningRequestPodSetUpdates | None = None
    """What pods get once capacity is there."""
    pod_set_merge_policy: PodSetMergePolicy | None = None
    """Which pod sets are asked for as one."""


class ProvisioningRequestConfig(ApiObject):
    """Parameters of the check that provisions capacity."""

    api_version: Literal["kueue.x-k8s.io/v1beta2"] = "kueue.x-k8s.io/v1beta2"
    kind: Literal["ProvisioningRequestConfig"] = "ProvisioningRequestConfig"
    spec: ProvisioningRequestConfigSpec | None = None
    """How capacity is asked of the cluster autoscaler."""


class MultiKueueConfigSpec(Model):
    """The clusters among which workloads are spread."""

    clusters: Annotated[list[Annotated[str, MaxLen(256)]], Len(1, 20), ATOMIC, UNIQUE]
    """Names of MultiKueueClusters."""
    quota_management: Literal["Manual", "Automated"] | None = None
    """Whether the quota of the manager follows that of the workers."""


class MultiKueueConfig(ApiObject):
    """Parameters of the check that dispatches to other clusters."""

    api_version: Literal["kueue.x-k8s.io/v1beta2"] = "kueue.x-k8s.io/v1beta2"
    kind: Literal["MultiKueueConfig"] = "MultiKueueConfig"
    spec: MultiKueueConfigSpec | None = None
    """The clusters among which workloads are spread."""


class KubeConfig(Model):
    """Where the credentials of a cluster are."""

    location: Annotated[str, StringConstraints(min_length=1, max_length=256)]
    """Name of the Secret, or path of the file."""
    location_type: Literal["Secret", "Path"] = "Secret"
    """Which of the two it is."""


class ClusterProfileReference(Model):
    """A ClusterProfile that tells how to reach a cluster."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=256)]
    """Which one, by its name."""


class ClusterSource(Model):
    """How a cluster is reached; exactly one way."""

    cel_rules: ClassVar = (
        Rule(
            "[has(self.kubeConfig),has(self.clusterProfileRef)].filter(x,x==true).size() == 1",
            "exactly one of the fields in [kubeConfig clusterProfileRef] must be set",
        ),
    )

    kube_config: KubeConfig | None = None
    """By a kubeconfig."""
    cluster_profile_ref: ClusterProfileReference | None = None
    """By a ClusterProfile."""


class MultiKueueClusterSpec(Model):
    """How the cluster is reached."""

    cluster_source: ClusterSource
    """How the cluster is reached."""


class MultiKueueClusterStatus(Model):
    """The observed state."""

    conditions: Annotated[list[Condition], MaxLen(16), by("type")] = absent(list)
    """Whether the cluster is connected."""


class MultiKueueCluster(ApiObject):
    """A worker cluster that workloads are dispatched to."""

    api_version: Literal["kueue.x-k8s.io/v1beta2"] = "kueue.x-k8s.io/v1beta2"
    kind: Literal["MultiKueueCluster"] = "MultiKueueCluster"
    spec: MultiKueueClusterSpec | None = None
    """How the cluster is reached."""
    status: MultiKueueClusterStatus = absent(MultiKueueClusterStatus)
    """The observed state."""
