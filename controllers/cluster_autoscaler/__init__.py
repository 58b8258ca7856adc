"""A simulated cluster autoscaler that answers ProvisioningRequests and adds no nodes: it says whether there is room, after a while, or what a test wants to hear."""

from __future__ import annotations

from kubemini.controllers.cluster_autoscaler.controller import ProvisioningAnswers
from kubemini.runtime.controller import Controller
from kubemini.runtime.settings import Settings


def create(settings: Settings) -> list[Controller]:
    """Build the loop."""
    return [ProvisioningAnswers(settings.provisioning_latency)]
