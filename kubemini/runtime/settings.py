"""Settings that a composition root hands to every controller package when it builds it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kubemini.api.trees import Tree
from kubemini.runtime.gates import FeatureGates
from kubemini.runtime.metrics import MetricProgram


@dataclass(frozen=True, slots=True)
class Settings:
    """Gates and configuration of one cluster."""

    gates: FeatureGates = field(default_factory=FeatureGates)
    kueue: Mapping[str, Any] = field(default_factory=dict)
    """Kueue's ``Configuration`` object."""
    lws: Mapping[str, Any] = field(default_factory=dict)
    """LeaderWorkerSet's ``Configuration`` object."""
    pods: str = "forever"
    """What pods do by default: ``forever`` or ``programs`` (see the kubelet)."""
    kubernetes_version: str = "1.36"
    program: Callable[[Tree], Any] | None = None
    """Given by tests: what a pod does (a kubelet ``Program`` or its fields as a mapping), or None for pods that it does not care about."""
    metrics: MetricProgram | None = None
    """What pods use and other metrics, for autoscalers; what it does not know is read from annotations (see ``machinery.pod_usage``)."""
    autoscaling_period: float = 15.0
    """Seconds between two looks of an autoscaler (--horizontal-pod-autoscaler-sync-period)."""
    start_latency: float = 0.05
    """Seconds from a pod's binding to its containers running."""
    provisioning_latency: float = 1.0
    """Seconds from the acceptance of a ProvisioningRequest to its answer by the simulated autoscaler."""
    root_certificate: str = ""
    """PEM of the certificate authority, published in every namespace."""
    tokens: bool = False
    """Whether Secrets for tokens of service accounts are filled in: where somebody can present them."""
    kill_exit_code: int = 137
    """Exit code of containers that are stopped by a deletion."""
