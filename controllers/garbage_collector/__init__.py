"""The garbage collector: what its owners leave behind goes, in the foreground, in the background, or is orphaned."""

from __future__ import annotations

from kubemini.controllers.garbage_collector.controller import GarbageCollector
from kubemini.runtime.controller import Controller
from kubemini.runtime.settings import Settings


def create(settings: Settings) -> list[Controller]:
    """Build the collector."""
    return [GarbageCollector()]
