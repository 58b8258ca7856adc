"""JobSet: groups of Jobs that start, fail and finish together. Mirrors JobSet v0.13 (v1alpha2) with its webhooks."""

from __future__ import annotations

from kubemini.controllers.jobset import pod_webhook
from kubemini.controllers.jobset.controller import JobSetController
from kubemini.controllers.jobset.pod_controller import PlacementController
from kubemini.controllers.jobset.webhook import MUTATING, VALIDATING
from kubemini.runtime.controller import Controller
from kubemini.runtime.settings import Settings
from kubemini.runtime.webhooks import Webhook


def create(settings: Settings) -> list[Controller]:
    """Build both loops."""
    return [JobSetController(settings.kubernetes_version), PlacementController()]


def webhooks(settings: Settings) -> list[Webhook]:
    """Build the webhooks of JobSets and of their pods."""
    return [MUTATING, VALIDATING, pod_webhook.MUTATING, pod_webhook.VALIDATING]
