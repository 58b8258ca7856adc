"""Kueue's kinds, kueue.x-k8s.io/v1beta1: served for old clients, stored as v1beta2 (see `kubemini.api.kueue.conversion`).

Mirrors the schema of Kueue 0.20. What is the same in both versions is taken from `kubemini.api.kueue.v1beta2`.
"""

from kubemini.api.kueue.v1beta1.checks import AdmissionCheck, MultiKueueCluster, MultiKueueConfig, ProvisioningRequestConfig
from kubemini.api.kueue.v1beta1.queues import LocalQueue, ResourceFlavor, Topology, WorkloadPriorityClass
from kubemini.api.kueue.v1beta1.quota import ClusterQueue, Cohort
from kubemini.api.kueue.v1beta1.workload import Workload

__all__ = [
    "AdmissionCheck",
    "ClusterQueue",
    "Cohort",
    "LocalQueue",
    "MultiKueueCluster",
    "MultiKueueConfig",
    "ProvisioningRequestConfig",
    "ResourceFlavor",
    "Topology",
    "Workload",
    "WorkloadPriorityClass",
]
