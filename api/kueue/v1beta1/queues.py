"""LocalQueue, ResourceFlavor, Topology and WorkloadPriorityClass."""

from __future__ import annotations

from typing import Annotated, Literal

from annotated_types import Len, MaxLen

from kubemini.api.kueue.v1beta1.shared import Conditions, Version
from kubemini.api.kueue.v1beta2 import flavors, local_queue
from kubemini.api.kueue.v1beta2.shared import DnsName
from kubemini.api.meta.markers import ATOMIC, ATOMIC_MAP, IMMUTABLE_FIELD, SET, absent, by
from kubemini.api.meta.model import Model
from kubemini.api.meta.types import Int32, Taint
from kubemini.api.meta.v1 import ApiObject


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
