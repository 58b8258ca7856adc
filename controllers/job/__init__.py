"""Job: pods that run to completion. Mirrors kube-controller-manager's job controller and ttl-after-finished controller (Kubernetes 1.36)."""

from __future__ import annotations

from kubemini.controllers.job.controller import JobController
from kubemini.controllers.job.ttl import TtlAfterFinished
from kubemini.runtime.controller import Controller
from kubemini.runtime.settings import Settings


def create(settings: Settings) -> list[Controller]:
    """Build both loops."""
    return [JobController(), TtlAfterFinished()]
