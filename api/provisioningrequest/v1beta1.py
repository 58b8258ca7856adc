"""ProvisioningRequest, autoscaling.x-k8s.io/v1beta1: the same as v1 under the name of its beta, deprecated."""

from __future__ import annotations

from typing import Literal

from kubemini.api.meta.markers import absent
from kubemini.api.meta.v1 import ApiObject
from kubemini.api.provisioningrequest.v1 import ProvisioningRequestSpec, ProvisioningRequestStatus


class ProvisioningRequest(ApiObject):
    """A wish for room for pods that do not exist yet."""

    api_version: Literal["autoscaling.x-k8s.io/v1beta1"] = "autoscaling.x-k8s.io/v1beta1"
    kind: Literal["ProvisioningRequest"] = "ProvisioningRequest"
    spec: ProvisioningRequestSpec
    """The wish, which cannot be changed."""
    status: ProvisioningRequestStatus = absent(ProvisioningRequestStatus)
    """The answer of the autoscaler."""
