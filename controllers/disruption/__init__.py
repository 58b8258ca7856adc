"""PodDisruptionBudgets: how many disruptions they allow, and DisruptionTarget conditions that came to nothing. Mirrors the disruption controller (Kubernetes 1.36)."""

from __future__ import annotations

from kubemini.controllers.disruption.controller import DisruptionController
from kubemini.controllers.disruption.stale import StaleDisruptions
from kubemini.runtime.controller import Controller
from kubemini.runtime.settings import Settings


def create(settings: Settings) -> list[Controller]:
    """Build both loops."""
    return [DisruptionController(), StaleDisruptions()]
