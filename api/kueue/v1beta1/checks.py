"""AdmissionCheck, and the parameters of the checks that Kueue brings."""

from __future__ import annotations

from typing import Annotated, Literal

from annotated_types import Len, MaxLen
from pydantic import Field, StringConstraints

from kubemini.api.kueue.v1beta1.shared import Conditions, Version
from kubemini.api.kueue.v1beta2 import checks
from kubemini.api.kueue.v1beta2.shared import DnsName
from kubemini.api.meta.markers import IMMUTABLE_FIELD, REQUIRED, SET, absent
from kubemini.api.meta.model import Model
from kubemini.api.meta.types import DNS_LABEL, DNS_SUBDOMAIN, Int64
from kubemini.api.meta.v1 import ApiObject


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
