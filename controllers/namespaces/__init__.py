"""Namespace deletion: all content goes, then the namespace."""

from __future__ import annotations

from kubemini.controllers.namespaces.controller import NamespaceController
from kubemini.runtime.controller import Controller
from kubemini.runtime.settings import Settings


def create(settings: Settings) -> list[Controller]:
    """Build the controller."""
    return [NamespaceController()]
