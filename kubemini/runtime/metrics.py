"""Metrics as a program gives them: what autoscalers ask in a simulated cluster (`Settings.metrics`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kubemini.api.trees import Tree

Value = float | int | str
"""A number in base units (cores, bytes, requests), or a quantity as text."""


@dataclass(frozen=True, slots=True)
class MetricQuery:
    """One question. `type` is that of the metric source of an autoscaler."""

    type: str
    """``Resource``, ``ContainerResource``, ``Pods``, ``Object`` or ``External``."""
    name: str
    """Resource or metric."""
    namespace: str
    pod: Tree | None = None
    """The pod asked about (Resource, ContainerResource, Pods)."""
    container: str = ""
    described: Tree | None = None
    """The reference to the object asked about (Object)."""
    selector: str = ""
    """Selector of the metric's own labels."""


MetricProgram = Callable[[MetricQuery], Value | Sequence[Value] | None]
"""Answers a query, or None for what it does not know; an external metric may have several values, which are added up."""
