"""Claims of devices beside the scheduler: made from templates, reserved, and freed when no pod needs them. Mirrors kube-controller-manager's resource claim controller."""

from __future__ import annotations

from kubemini.controllers.resource_claims.controller import ResourceClaimController
from kubemini.runtime.controller import Controller
from kubemini.runtime.settings import Settings


def create(settings: Settings) -> list[Controller]:
    """Build the controller."""
    return [ResourceClaimController()]
