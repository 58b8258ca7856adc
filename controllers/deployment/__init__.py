"""Deployment: ReplicaSets that follow one another. Mirrors kube-controller-manager's deployment controller (Kubernetes 1.36)."""

from __future__ import annotations

from kubemini.controllers.deployment.controller import DeploymentController
from kubemini.runtime.controller import Controller
from kubemini.runtime.settings import Settings


def create(settings: Settings) -> list[Controller]:
    """Build the loop."""
    return [DeploymentController()]
