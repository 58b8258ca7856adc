"""Kueue's kinds, kueue.x-k8s.io/v1beta2 (the storage version).

Mirrors the schema of Kueue 0.20. Each kind stands in the module of its subject: `workload`, `quota`, `local_queue`, `flavors`, `checks`.
"""

from kubemini.api.kueue.v1beta2.checks import AdmissionCheck, MultiKueueCluster, MultiKueueConfig, ProvisioningRequestConfig
from kubemini.api.kueue.v1beta2.flavors import ResourceFlavor, Topology, WorkloadPriorityClass
from kubemini.api.kueue.v1beta2.local_queue import LocalQueue
from kubemini.api.kueue.v1beta2.quota import ClusterQueue, Cohort
from kubemini.api.kueue.v1beta2.workload import Workload

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
