"""LocalQueue: where the workloads of a namespace are submitted."""

from __future__ import annotations

from typing import Annotated, Literal

from annotated_types import MaxLen

from kubemini.api.kueue.v1beta2.shared import DnsName, FairSharing, StopPolicy
from kubemini.api.meta.markers import IMMUTABLE_FIELD, absent, by
from kubemini.api.meta.model import Model
from kubemini.api.meta.types import Int32, Int64, Quantity, Time
from kubemini.api.meta.v1 import ApiObject, Condition


class LocalQueueSpec(Model):
    """The desired state."""

    cluster_queue: Annotated[DnsName, IMMUTABLE_FIELD] | None = None
    """ClusterQueue that backs it."""
    stop_policy: StopPolicy = "None"
    """Whether admission is stopped, and running workloads are evicted."""
    fair_sharing: FairSharing | None = None
    """Weight in admission fair sharing."""


class LocalQueueResourceUsage(Model):
    """Usage of one resource in one flavor."""

    name: str
    """Resource, such as cpu or nvidia.com/gpu."""
    total: Quantity | None = None
    """How much is used."""


class LocalQueueFlavorUsage(Model):
    """Usage of one flavor."""

    name: DnsName
    """Name of the ResourceFlavor."""
    resources: Annotated[list[LocalQueueResourceUsage], MaxLen(64), by("name")]
    """Usage by resource."""


class AdmissionFairSharingStatus(Model):
    """Usage over time, which decays."""

    consumed_resources: dict[str, Quantity]
    """Decayed usage by resource."""
    last_update: Time
    """When the usage was sampled."""


class LocalQueueFairSharingStatus(Model):
    """Standing in fair sharing."""

    weighted_share: Int64
    """Share of use, divided by the weight."""
    admission_fair_sharing_status: AdmissionFairSharingStatus | None = None
    """Usage over time."""


class LocalQueueStatus(Model):
    """The observed state."""

    conditions: Annotated[list[Condition], MaxLen(16), by("type")] = absent(list)
    """Whether the queue is active, and why not."""
    pending_workloads: Int32 = absent(0)
    """Workloads that wait."""
    reserving_workloads: Int32 = absent(0)
    """Workloads that have reserved quota."""
    admitted_workloads: Int32 = absent(0)
    """Workloads that are admitted and not finished."""
    flavors_reservation: Annotated[list[LocalQueueFlavorUsage], MaxLen(64), by("name")] = absent(list)
    """Quota reserved by workloads of this queue."""
    flavors_usage: Annotated[list[LocalQueueFlavorUsage], MaxLen(64), by("name")] = absent(list)
    """Quota used by admitted workloads of this queue."""
    fair_sharing: LocalQueueFairSharingStatus | None = None
    """Standing in fair sharing."""


class LocalQueue(ApiObject):
    """The queue of a namespace, backed by a ClusterQueue."""

    api_version: Literal["kueue.x-k8s.io/v1beta2"] = "kueue.x-k8s.io/v1beta2"
    kind: Literal["LocalQueue"] = "LocalQueue"
    spec: LocalQueueSpec = absent(LocalQueueSpec)
    """The desired state."""
    status: LocalQueueStatus = absent(LocalQueueStatus)
    """The observed state."""
