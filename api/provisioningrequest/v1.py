"""ProvisioningRequest, autoscaling.x-k8s.io/v1: a wish for room for pods that do not exist yet, answered by a cluster autoscaler.

Mirrors the schema of the Cluster Autoscaler (main of August 2026).
"""

from __future__ import annotations

from typing import Annotated, Literal

from annotated_types import Ge, Len, MaxLen
from pydantic import StringConstraints

from kubemini.api.meta.markers import IMMUTABLE, absent, by
from kubemini.api.meta.model import Model
from kubemini.api.meta.types import DNS_SUBDOMAIN, Int32
from kubemini.api.meta.v1 import ApiObject, Condition

_Parameter = Annotated[str, MaxLen(255)]
_Detail = Annotated[str, MaxLen(32768)]
_Name = Annotated[str, StringConstraints(max_length=253, pattern=DNS_SUBDOMAIN)]


class Reference(Model):
    """An object of the same namespace."""

    name: _Name
    """Name of the object."""


class PodSet(Model):
    """Pods of one template."""

    pod_template_ref: Reference
    """PodTemplate of the pods, in the same namespace."""
    count: Annotated[Int32, Ge(1)]
    """Number of pods."""


class ProvisioningRequestSpec(Model):
    """The wish, which cannot be changed."""

    pod_sets: Annotated[list[PodSet], Len(1, 32), IMMUTABLE]
    """Groups of pods that there must be room for."""
    provisioning_class_name: Annotated[_Name, IMMUTABLE]
    """How the room is brought about: looked for (check-capacity), made as a whole (best-effort-atomic-scale-up), or as a provider knows."""
    parameters: Annotated[dict[str, _Parameter], MaxLen(100), IMMUTABLE] = absent(dict)
    """What else the class wants to know."""


class ProvisioningRequestStatus(Model):
    """The answer of the autoscaler."""

    conditions: Annotated[list[Condition], by("type")] = absent(list)
    """Accepted, Provisioned, Failed, BookingExpired and CapacityRevoked."""
    provisioning_class_details: Annotated[dict[str, _Detail], MaxLen(64)] = absent(dict)
    """What else the class has to say."""


class ProvisioningRequest(ApiObject):
    """A wish for room for pods that do not exist yet."""

    api_version: Literal["autoscaling.x-k8s.io/v1"] = "autoscaling.x-k8s.io/v1"
    kind: Literal["ProvisioningRequest"] = "ProvisioningRequest"
    spec: ProvisioningRequestSpec
    """The wish, which cannot be changed."""
    status: ProvisioningRequestStatus = absent(ProvisioningRequestStatus)
    """The answer of the autoscaler."""
