"""The simulated kubelet of every node: pods that are bound start, run, end and are taken down."""

from __future__ import annotations

from kubemini.controllers.kubelet.controller import KubeletController
from kubemini.runtime.controller import Controller
from kubemini.runtime.settings import Settings


def create(settings: Settings) -> list[Controller]:
    """Build the kubelet of all nodes."""
    return [KubeletController(settings)]
