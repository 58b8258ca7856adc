"""CronJob: Jobs on a schedule. Mirrors kube-controller-manager's cronjob controller (Kubernetes 1.36)."""

from __future__ import annotations

from kubemini.controllers.cron_job.controller import CronJobController
from kubemini.runtime.controller import Controller
from kubemini.runtime.settings import Settings


def create(settings: Settings) -> list[Controller]:
    """Build the loop."""
    return [CronJobController()]
