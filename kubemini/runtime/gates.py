"""Feature gates: upstream's names and defaults, one namespace for Kubernetes, JobSet, LeaderWorkerSet and Kueue."""

from __future__ import annotations

from collections.abc import Mapping


class FeatureGates:
    """Which gates are on. Unknown names are kept as given: a gate that nothing reads changes nothing. Raise ValueError where one that is locked is switched off."""

    def __init__(self, overrides: Mapping[str, bool] | None = None) -> None:
        self.given = dict(overrides or {})
        """What was switched, whether it is the default or not."""
        for name, value in self.given.items():
            if name in LOCKED and not value:
                raise ValueError(f"cannot set feature gate {name} to false, feature is locked to true")
        self._on = {**DEFAULTS, **self.given}

    @property
    def unknown(self) -> list[str]:
        """The names that were given and that nothing reads: gates of parts that are not emulated, or typing errors."""
        return [name for name in self._on if name not in DEFAULTS and name not in LOCKED]

    def enabled(self, name: str) -> bool:
        """Tell whether a gate is on; a gate without a default is off."""
        return self._on.get(name, name in LOCKED)

    def with_overrides(self, overrides: Mapping[str, bool]) -> FeatureGates:
        """Return these gates with some switched otherwise."""
        return FeatureGates({**self._on, **overrides})

    @classmethod
    def parse(cls, text: str) -> FeatureGates:
        """Return the gates of a ``NAME=true,NAME=false`` flag. Raise ValueError naming the bad item."""
        overrides: dict[str, bool] = {}
        for item in filter(None, (each.strip() for each in text.split(","))):
            name, _, value = item.partition("=")
            if value.lower() not in ("true", "false"):
                raise ValueError(f"--feature-gates: {item!r} must be NAME=true or NAME=false")
            overrides[name] = value.lower() == "true"
        return cls(overrides)


DEFAULTS: dict[str, bool] = {
    # Kubernetes 1.36
    "DRAWorkloadResourceClaims": False,
    "DeploymentReplicaSetTerminatingReplicas": True,
    "HPAConfigurableTolerance": True,
    "HPAScaleToZero": False,
    "GangScheduling": False,
    "GenericWorkload": False,
    "MaxUnavailableStatefulSet": False,
    "MutablePodResourcesForSuspendedJobs": True,
    "MutableSchedulingDirectivesForSuspendedJobs": True,
    "StaleControllerConsistencyJob": True,
    "StatefulSetSemanticRevisionComparison": True,
    "TopologyAwareWorkloadScheduling": False,
    "WatchList": True,
    "WorkloadAwarePreemption": False,
    "WorkloadWithJob": False,
    # JobSet 0.13
    "ElasticJobSet": False,
    "InPlaceRestart": False,
    "RestartJob": False,
    # Kueue, main branch of August 2026
    "DisableWaitForPodsReady": False,
    "PartialAdmission": True,
    "PriorityBoost": False,
    "FlavorFungibility": True,
    "PrioritySortingWithinCohort": True,
    "TopologyAwareScheduling": True,
    "AdmissionFairSharing": True,
    "ElasticJobsViaWorkloadSlices": True,
    "ReclaimablePods": True,
    "CleanupProvisioningRequestsOnEviction": True,
    "FairSharingPreemptWithinNominal": True,
    "FairSharingPrioritizeNonBorrowing": True,
    "SchedulingEquivalenceHashing": True,
    "AssignQueueLabelsForPods": True,
    "AdmissionGatedBy": True,
    "FinishOrphanedWorkloads": True,
    "QuotaCheckStrategy": True,
    "LWSImmutableGroupSize": True,
    "TASProfileMixed": True,
    "TASFailedNodeReplacement": True,
    "TASFailedNodeReplacementFailFast": True,
    "TASReplaceNodeDueToNotReadyOverFixedTime": False,
    "TASReplaceNodeOnPodTermination": True,
    "TASReplaceNodeOnNodeTaints": True,
    "TASValidateWorkloadSliceSize": True,
    "TASMultiLayerTopology": True,
    "TASRecomputeAssignmentWithinSchedulingCycle": True,
    "TASAssignmentsEncodingByHostnamePrefix": True,
    "SkipReassignmentForPodOwnedWorkloads": True,
    "UnadmittedWorkloadsExplicitStatus": False,
    "UnadmittedWorkloadsObservability": True,
    "LocalQueueMetrics": True,
    "MetricsForCohorts": True,
    "MultiKueue": True,
    "RejectUpdatesToCQWithInvalidOnFlavors": False,
    "SkipAncestorCheckForDeletedWorkloads": True,
    "VisibilityOnDemand": True,
    "WorkloadValidateResourcesAreNonNegative": True,
    "WorkloadValidationForPodSetMetadata": True,
    "RecomputeAssignmentUponPreemptionTargetsOverlap": True,
    "WorkloadPriorityClassDefaulting": True,
}
"""Defaults of the gates that kubemini reads; each controller's modules add theirs here."""

LOCKED = frozenset(
    {
        "JobBackoffLimitPerIndex",
        "JobManagedBy",
        "JobPodReplacementPolicy",
        "JobSuccessPolicy",
        "PodObservedGenerationTracking",
        "StatefulSetAutoDeletePVC",
        "TLSOptions",
    }
)
"""Gates that are generally available: on, and cannot be switched off any more."""
