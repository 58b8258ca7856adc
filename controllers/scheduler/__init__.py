"""The pod scheduler. Mirrors kube-scheduler's default profile (Kubernetes 1.36)."""

from __future__ import annotations

from kubemini.controllers.scheduler.controller import SchedulerController
from kubemini.runtime.controller import Controller
from kubemini.runtime.settings import Settings


def create(settings: Settings) -> list[Controller]:
    """Build the scheduler."""
    return [SchedulerController()]
