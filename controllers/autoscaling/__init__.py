"""HorizontalPodAutoscaler: sizes that follow metrics. Mirrors kube-controller-manager's horizontal-pod-autoscaler-controller (Kubernetes 1.36).

Metrics are simulated: a program of the cluster gives them (`Settings.metrics`), or annotations do (`machinery.pod_usage`).
"""

from __future__ import annotations

from kubemini.controllers.autoscaling.controller import HorizontalController
from kubemini.runtime.controller import Controller
from kubemini.runtime.settings import Settings


def create(settings: Settings) -> list[Controller]:
    """Build the loop."""
    return [HorizontalController(settings)]
