"""DisaggregatedSet and its role scaler, disaggregatedset.x-k8s.io/v1: inference split into roles, each a LeaderWorkerSet.

Mirrors the schema of LWS v0.9.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from annotated_types import Ge, Le, Len
from pydantic import StringConstraints

from kubemini.api.leaderworkerset.v1 import LeaderWorkerSetSpec
from kubemini.api.meta.markers import REQUIRED, Rule, absent, by
from kubemini.api.meta.model import Model
from kubemini.api.meta.types import DNS_LABEL, Int32, Int64
from kubemini.api.meta.v1 import ApiObject, Condition

PlacementPolicyType = Literal["None", "ExclusiveSlice", "ExclusiveTopology"]
RoleScalingMode = Literal["Static", "External"]


class TemplateMetadata(Model):
    """Metadata of what is made from a template."""

    name: str | None = None
    """Not used."""
    namespace: str | None = None
    """Not used."""
    labels: dict[str, str] = absent(dict)
    """Labels to put on."""
    annotations: dict[str, str] = absent(dict)
    """Annotations to put on."""
    finalizers: list[str] = absent(list)
    """Not used."""


class PlacementPolicy(Model):
    """Which roles may share a part of the topology."""

    type: PlacementPolicyType = "None"
    """How exclusive the placement is."""
    topology: str | None = None
    """Node label of the topology level that is not shared."""


class RoleScaling(Model):
    """Who decides the number of replicas of a role."""

    mode: RoleScalingMode = "Static"
    """Static follows the spec, External a scaler object."""


class Role(Model):
    """One role of the set, run as a LeaderWorkerSet."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=DNS_LABEL)]
    """Name of the role."""
    metadata: TemplateMetadata = absent(TemplateMetadata)
    """Labels and annotations of the LeaderWorkerSet."""
    spec: LeaderWorkerSetSpec | None = None
    """Spec of the LeaderWorkerSet."""
    scaling: RoleScaling | None = None
    """Who decides the number of replicas."""


class DisaggregatedSetSpec(Model):
    """The desired state."""

    cel_rules: ClassVar = (
        Rule(
            "self.roles.filter(r, !has(r.scaling) || r.scaling.mode != 'External').all(r, !has(r.spec.replicas) || r.spec.replicas == 0)"
            " || self.roles.filter(r, !has(r.scaling) || r.scaling.mode != 'External').all(r, has(r.spec.replicas) && r.spec.replicas > 0)",
            "replicas must be zero for all non-External roles or non-zero for all non-External roles",
        ),
    )

    roles: Annotated[list[Role], Len(2, 10), by("name")]
    """The roles, such as prefill and decode."""
    slices: Annotated[Int32, Ge(1), Le(100)] = 1
    """Number of complete copies of all roles."""
    placement_policy: PlacementPolicy | None = None
    """Which roles may share a part of the topology."""


class RoleStatus(Model):
    """Counts of one role."""

    name: str
    """Name of the role."""
    replicas: Int32 = absent(0)
    """Groups that exist."""
    ready_replicas: Int32 = absent(0)
    """Groups that are ready."""
    updated_replicas: Int32 = absent(0)
    """Groups of the newest revision."""


class DisaggregatedSetStatus(Model):
    """The observed state."""

    conditions: Annotated[list[Condition], by("type")] = absent(list)
    """Aspects such as Available and Progressing."""
    observed_generation: Int64 = absent(0)
    """The generation that these figures are about."""
    role_statuses: Annotated[list[RoleStatus], by("name")] = absent(list)
    """Counts by role."""


class DisaggregatedSet(ApiObject):
    """Inference that is split into roles which roll out together."""

    api_version: Literal["disaggregatedset.x-k8s.io/v1"] = "disaggregatedset.x-k8s.io/v1"
    kind: Literal["DisaggregatedSet"] = "DisaggregatedSet"
    spec: DisaggregatedSetSpec
    """The desired state."""
    status: DisaggregatedSetStatus = absent(DisaggregatedSetStatus)
    """The observed state."""


class DisaggregatedSetRoleScalerSpec(Model):
    """The desired state, written through the scale subresource."""

    replicas: Annotated[Int32, Ge(0), REQUIRED] = 0
    """Wanted replicas of the role."""


class DisaggregatedSetRoleScalerStatus(Model):
    """The observed state."""

    conditions: Annotated[list[Condition], by("type")] = absent(list)
    """Aspects of the scaler."""
    observed_generation: Int64 = absent(0)
    """The generation that these figures are about."""
    replicas: Int32 = absent(0)
    """Replicas that the role has."""
    selector: str = absent("")
    """Label selector of the role's pods, for autoscalers."""


class DisaggregatedSetRoleScaler(ApiObject):
    """A handle by which an autoscaler sets the replicas of one role."""

    api_version: Literal["disaggregatedset.x-k8s.io/v1"] = "disaggregatedset.x-k8s.io/v1"
    kind: Literal["DisaggregatedSetRoleScaler"] = "DisaggregatedSetRoleScaler"
    spec: DisaggregatedSetRoleScalerSpec = absent(DisaggregatedSetRoleScalerSpec)
    """The desired state."""
    status: DisaggregatedSetRoleScalerStatus = absent(DisaggregatedSetRoleScalerStatus)
    """The observed state."""
