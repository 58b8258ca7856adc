"""ValidatingAdmissionPolicies: what their expressions get wrong about the kinds that they match. Mirrors validatingadmissionpolicy-status-controller (Kubernetes 1.36)."""

from __future__ import annotations

from kubemini.controllers.admission_policies.controller import PolicyStatusController
from kubemini.runtime.controller import Controller
from kubemini.runtime.settings import Settings


def create(settings: Settings) -> list[Controller]:
    """Build the loop."""
    return [PolicyStatusController(settings.kubernetes_version)]
