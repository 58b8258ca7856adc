"""StatefulSet: pods with an identity. Mirrors ``pkg/controller/statefulset`` (Kubernetes 1.36)."""

from __future__ import annotations

from kubemini.controllers.stateful_set.controller import StatefulSetController
from kubemini.runtime.controller import Controller
from kubemini.runtime.settings import Settings


def create(settings: Settings) -> list[Controller]:
    """Build the loop."""
    return [StatefulSetController()]
