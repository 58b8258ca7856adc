"""DaemonSet: one pod on each node that it fits. Mirrors kube-controller-manager's daemonset controller (Kubernetes 1.36)."""

from __future__ import annotations

from kubemini.controllers.daemon_set.controller import DaemonSetController
from kubemini.runtime.controller import Controller
from kubemini.runtime.settings import Settings


def create(settings: Settings) -> list[Controller]:
    """Build the loop."""
    return [DaemonSetController()]
