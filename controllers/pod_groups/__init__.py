"""Pod groups of scheduling.k8s.io (gate GenericWorkload): a group that is deleted stays until its pods have ended.

Mirrors kube-controller-manager's podgroup-protection controller (Kubernetes 1.36).
"""

from __future__ import annotations

from kubemini.controllers.pod_groups.protection import GroupProtection
from kubemini.runtime.controller import Controller
from kubemini.runtime.settings import Settings


def create(settings: Settings) -> list[Controller]:
    """Build the loop where the kind is served."""
    return [GroupProtection()] if settings.gates.enabled("GenericWorkload") else []
