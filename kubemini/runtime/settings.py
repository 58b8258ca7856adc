"""Settings that a composition root hands to every controller package when it builds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kubemini.runtime.gates import FeatureGates


@dataclass(frozen=True, slots=True)
class Settings:
    """Gates and configuration of one cluster."""

    gates: FeatureGates = field(default_factory=FeatureGates)
    kueue: Mapping[str, Any] = field(default_factory=dict)
    """Kueue's ``Configuration`` object."""
    pods: str = "forever"
    """What pods do by default: ``forever`` or ``programs`` (see the kubelet)."""
    kubernetes_version: str = "1.36"
