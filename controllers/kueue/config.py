"""Kueue's Configuration, as far as it changes behaviour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kubemini.api.trees import Tree
from kubemini.controllers.kueue.configuration import check
from kubemini.machinery import duration
from kubemini.machinery.labels import Selector, from_label_selector
from kubemini.runtime.gates import FeatureGates

FRAMEWORKS = ("batch/job", "jobset.x-k8s.io/jobset", "pod", "deployment", "statefulset", "leaderworkerset.x-k8s.io/leaderworkerset")
EXCLUDED_NAMESPACES: Tree = {
    "matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", "kueue-system"]}]
}


@dataclass(frozen=True, slots=True)
class PodsReady:
    """``waitForPodsReady``; times in seconds."""

    timeout: float = 1800.0
    recovery: float | None = 1800.0
    block_admission: bool = False
    by_eviction: bool = True
    backoff_base: int = 60
    backoff_max: int = 3600
    backoff_limit: int | None = None


@dataclass(frozen=True, slots=True)
class Transformation:
    """One of ``resources.transformations``."""

    input: str
    retain: bool
    outputs: Mapping[str, str]
    multiply_by: str = ""


@dataclass(frozen=True, slots=True)
class AdmissionFairSharing:
    """``admissionFairSharing``, where its gate is on; times in seconds. Without a half-life nothing that was used is remembered."""

    half_life: float = 0.0
    sampling: float = 300.0
    weights: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MetricsConfig:
    """``metrics``: what is told beyond the counts of ClusterQueues, and which LocalQueues are counted; `role` is that of our replica."""

    resources: bool = False
    local_queues: Selector | None = field(default_factory=Selector)
    role: str = "leader"


@dataclass(frozen=True, slots=True)
class KueueConfig:
    """The settings of one Kueue."""

    gates: FeatureGates
    frameworks: tuple[str, ...] = FRAMEWORKS
    manage_without_queue: bool = False
    namespace_selector: Tree | None = None
    pods_ready: PodsReady | None = PodsReady()
    fair_sharing: bool = False
    fair_strategies: tuple[str, ...] = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")
    admission_fair_sharing: AdmissionFairSharing | None = None
    excluded_prefixes: tuple[str, ...] = ()
    transformations: Mapping[str, Transformation] = field(default_factory=dict)
    ignore_undeclared: bool = False
    labels_to_copy: tuple[str, ...] = ()
    keep_finished: float | None = None
    keep_deactivated: float | None = None
    metrics: MetricsConfig = MetricsConfig()

    def on(self, gate: str) -> bool:
        """Tell whether a gate of Kueue's is on."""
        return self.gates.enabled(gate)

    @property
    def reasons(self) -> bool:
        """Whether QuotaReserved=False has the finer reasons (``UnadmittedWorkloadsObservability``)."""
        return self.on("UnadmittedWorkloadsObservability")

    @classmethod
    def of(cls, raw: Mapping[str, Any], gates: FeatureGates) -> KueueConfig:
        """Read a Configuration object. Raise `ConfigError` for what it cannot hold."""
        check(raw)
        integrations = raw.get("integrations") or {}
        resources = raw.get("resources") or {}
        retention = ((raw.get("objectRetentionPolicies") or {}).get("workloads")) or {}
        fair = raw.get("fairSharing")
        merged = gates.with_overrides(raw.get("featureGates") or {})
        return cls(
            merged,
            frameworks=tuple(integrations.get("frameworks") or FRAMEWORKS),
            manage_without_queue=bool(raw.get("manageJobsWithoutQueueName")),
            namespace_selector=raw.get("managedJobsNamespaceSelector", EXCLUDED_NAMESPACES),
            pods_ready=_pods_ready(raw.get("waitForPodsReady"), merged),
            fair_sharing=fair is not None and fair.get("enable") is not False,
            fair_strategies=tuple((fair or {}).get("preemptionStrategies") or ("LessThanOrEqualToFinalShare", "LessThanInitialShare")),
            admission_fair_sharing=_admission_fair_sharing(raw.get("admissionFairSharing"), merged),
            excluded_prefixes=tuple(resources.get("excludeResourcePrefixes") or ()),
            transformations={
                each["input"]: Transformation(
                    each["input"], each.get("strategy", "Retain") != "Replace", each.get("outputs") or {}, each.get("multiplyBy", "")
                )
                for each in resources.get("transformations") or ()
            },
            ignore_undeclared=raw.get("quotaCheckStrategy") == "IgnoreUndeclared" or resources.get("quotaCheckStrategy") == "IgnoreUndeclared",
            labels_to_copy=tuple(integrations.get("labelKeysToCopy") or ()),
            keep_finished=_seconds(retention.get("afterFinished")),
            keep_deactivated=_seconds(retention.get("afterDeactivatedByKueue")),
            metrics=_metrics(raw, merged),
        )


def _seconds(text: str | None, default: float | None = None) -> float | None:
    return duration.seconds(text) if text is not None else default


def _metrics(raw: Mapping[str, Any], gates: FeatureGates) -> MetricsConfig:
    metrics = raw.get("metrics") or {}
    local = metrics.get("localQueueMetrics")
    counted = gates.enabled("LocalQueueMetrics") and (local is None or bool(local.get("enable")))
    selector = (local or {}).get("localQueueSelector")
    return MetricsConfig(
        bool(metrics.get("enableClusterQueueResources")),
        (from_label_selector(selector) if selector is not None else Selector()) if counted else None,
        "standalone" if (raw.get("leaderElection") or {}).get("leaderElect") is False else "leader",
    )


def _pods_ready(raw: Mapping[str, Any] | None, gates: FeatureGates) -> PodsReady | None:
    if gates.enabled("DisableWaitForPodsReady") or (raw is not None and raw.get("enable") is False):
        return None
    raw = raw or {}
    timeout = _seconds(raw.get("timeout"), 1800.0) or 1800.0
    requeuing = raw.get("requeuingStrategy") or {}
    return PodsReady(
        timeout,
        _seconds(raw.get("recoveryTimeout"), timeout),
        bool(raw.get("blockAdmission")),
        requeuing.get("timestamp", "Eviction") == "Eviction",
        requeuing.get("backoffBaseSeconds", 60),
        requeuing.get("backoffMaxSeconds", 3600),
        requeuing.get("backoffLimitCount"),
    )


def _admission_fair_sharing(raw: Mapping[str, Any] | None, gates: FeatureGates) -> AdmissionFairSharing | None:
    if raw is None or not gates.enabled("AdmissionFairSharing"):
        return None
    weights = {name: float(value) for name, value in (raw.get("resourceWeights") or {}).items()}
    return AdmissionFairSharing(
        _seconds(raw.get("usageHalfLifeTime"), 0.0) or 0.0, _seconds(raw.get("usageSamplingInterval"), 300.0) or 300.0, weights
    )
