"""ResourceQuotas: what is used of them. Mirrors kube-controller-manager's resourcequota controller (Kubernetes 1.36); admission refuses what would exceed them."""

from __future__ import annotations

from kubemini.controllers.quota.controller import ResourceQuotaController
from kubemini.runtime.controller import Controller
from kubemini.runtime.settings import Settings


def create(settings: Settings) -> list[Controller]:
    """Build the loop."""
    return [ResourceQuotaController()]
