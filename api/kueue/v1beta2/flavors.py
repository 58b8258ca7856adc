"""What quota is of: ResourceFlavor and Topology; and WorkloadPriorityClass."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from annotated_types import Len, MaxLen
from pydantic import StringConstraints

from kubemini.api.kueue.v1beta2.shared import (
    EXISTS_FOR_ALL,
    NO_VALUE_OF_EXISTS,
    SECONDS_OF_NO_EXECUTE,
    TAINT_EFFECTS,
    TOLERATION_EFFECTS,
    TOLERATION_OPERATORS,
    DnsName,
)
from kubemini.api.meta.markers import ATOMIC, ATOMIC_MAP, Rule, absent
from kubemini.api.meta.model import Model
from kubemini.api.meta.types import LABEL_KEY, Int32, Taint, Toleration
from kubemini.api.meta.v1 import ApiObject


class ResourceFlavorSpec(Model):
    """The nodes that have this flavor."""

    cel_rules: ClassVar = (
        Rule("!has(self.topologyName) || self.nodeLabels.size() >= 1", "at least one nodeLabel is required when topology is set"),
        Rule(
            "!has(oldSelf.topologyName) || (has(self.topologyName) && self.topologyName == oldSelf.topologyName)",
            "topologyName is immutable when topologyName is set",
        ),
    )

    node_labels: Annotated[dict[str, str], MaxLen(8), ATOMIC_MAP] = absent(dict)
    """Labels of these nodes; admitted pods get them as node selector."""
    node_taints: Annotated[list[Taint], MaxLen(8), ATOMIC, TAINT_EFFECTS] = absent(list)
    """Taints of these nodes, which workloads must tolerate to get the flavor."""
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
    """Tolerations that admitted pods get."""
    topology_name: DnsName | None = None
    """Topology by which pods are placed on these nodes."""


class ResourceFlavor(ApiObject):
    """A kind of resource, bound to nodes by labels and taints."""

    api_version: Literal["kueue.x-k8s.io/v1beta2"] = "kueue.x-k8s.io/v1beta2"
    kind: Literal["ResourceFlavor"] = "ResourceFlavor"
    spec: ResourceFlavorSpec = absent(ResourceFlavorSpec)
    """The nodes that have this flavor."""


UNIQUE = Rule("size(self.filter(i, size(self.filter(j, j == i)) > 1)) == 0", "must be unique")
HOSTNAME_LAST = Rule(
    "size(self.filter(i, i.nodeLabel == 'kubernetes.io/hostname')) == 0 || self[size(self) - 1].nodeLabel == 'kubernetes.io/hostname'",
    "the kubernetes.io/hostname label can only be used at the lowest level of topology",
)
LEVELS_OF_HOSTNAMES = Rule(
    "self == oldSelf || (self[size(self) - 1].nodeLabel == 'kubernetes.io/hostname' && "
    "oldSelf[size(oldSelf) - 1].nodeLabel == 'kubernetes.io/hostname')",
    "levels are mutable only when kubernetes.io/hostname is the lowest level both before and after the change",
)


class TopologyLevel(Model):
    """One level of the topology."""

    node_label: Annotated[str, StringConstraints(min_length=1, max_length=316, pattern=LABEL_KEY)]
    """Node label whose values are the domains of this level."""


class TopologySpec(Model):
    """The levels of the topology."""

    levels: Annotated[list[TopologyLevel], Len(1, 16), ATOMIC, LEVELS_OF_HOSTNAMES, UNIQUE, HOSTNAME_LAST]
    """Levels from the widest to the narrowest."""


class Topology(ApiObject):
    """How nodes are nested in racks, blocks and so on."""

    api_version: Literal["kueue.x-k8s.io/v1beta2"] = "kueue.x-k8s.io/v1beta2"
    kind: Literal["Topology"] = "Topology"
    spec: TopologySpec | None = None
    """The levels of the topology."""


class WorkloadPriorityClass(ApiObject):
    """A priority for admission, apart from the priority of the pods."""

    api_version: Literal["kueue.x-k8s.io/v1beta2"] = "kueue.x-k8s.io/v1beta2"
    kind: Literal["WorkloadPriorityClass"] = "WorkloadPriorityClass"
    value: Int32
    """The priority; higher is more important."""
    description: Annotated[str, MaxLen(2048)] | None = None
    """When to use this class."""
