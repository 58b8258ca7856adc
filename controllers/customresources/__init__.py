"""CustomResourceDefinitions: names are accepted, kinds established, and the objects of a deleted definition removed."""

from __future__ import annotations

from kubemini.controllers.customresources.controller import CustomResourceController
from kubemini.runtime.controller import Controller
from kubemini.runtime.settings import Settings


def create(settings: Settings) -> list[Controller]:
    """Build the controller."""
    return [CustomResourceController()]
