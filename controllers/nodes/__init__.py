"""Node life: registration, readiness, the taints that follow from it, evictions by taint, and pods of nodes that are gone."""

from __future__ import annotations

from kubemini.controllers.nodes.lifecycle import NodeLifecycle
from kubemini.controllers.nodes.pod_gc import PodGarbageCollector
from kubemini.controllers.nodes.taint_eviction import TaintEviction
from kubemini.runtime.controller import Controller
from kubemini.runtime.settings import Settings


def create(settings: Settings) -> list[Controller]:
    """Build the three loops."""
    return [NodeLifecycle(), TaintEviction(), PodGarbageCollector()]
