"""Kueue: jobs wait until quota is free, and are started and stopped as wholes.

One `Hub` is shared by the controllers of a process: the cache of held quota and the queues of pending Workloads. The scheduler runs synchronous cycles on it.
"""

from __future__ import annotations

from kubemini.controllers.kueue.config import KueueConfig
from kubemini.controllers.kueue.hub import Hub
from kubemini.controllers.kueue.integrations.framework import Integration
from kubemini.controllers.kueue.integrations.job import JobIntegration
from kubemini.controllers.kueue.integrations.jobset import JobSetIntegration
from kubemini.controllers.kueue.integrations.pod_controller import PodController
from kubemini.controllers.kueue.integrations.reconciler import JobReconciler
from kubemini.controllers.kueue.integrations.serving import LeaderWorkerSetController, StatefulSetController
from kubemini.controllers.kueue.multikueue import MultiKueueCheckController, MultiKueueClusterController
from kubemini.controllers.kueue.provisioning.controller import ProvisioningCheckController, ProvisioningController
from kubemini.controllers.kueue.queue_controllers import ClusterQueueController, CohortController, LocalQueueController, in_use_controllers
from kubemini.controllers.kueue.scheduler import Scheduler
from kubemini.controllers.kueue.topology.delayed import DelayedPlacement
from kubemini.controllers.kueue.topology.failures import NodeFailures
from kubemini.controllers.kueue.topology.ungater import Ungater
from kubemini.controllers.kueue.webhooks import jobs as job_webhooks
from kubemini.controllers.kueue.webhooks import pods as pod_webhooks
from kubemini.controllers.kueue.webhooks import quota as quota_webhooks
from kubemini.controllers.kueue.webhooks import serving as serving_webhooks
from kubemini.controllers.kueue.webhooks import workloads as workload_webhooks
from kubemini.controllers.kueue.workload_controller import WorkloadController
from kubemini.runtime.controller import Controller
from kubemini.runtime.settings import Settings
from kubemini.runtime.webhooks import Webhook

INTEGRATIONS: tuple[Integration, ...] = (JobIntegration(), JobSetIntegration())


def create(settings: Settings) -> list[Controller]:
    """Build the controllers of one Kueue."""
    config = KueueConfig.of(settings.kueue, settings.gates)
    hub = Hub(config)
    controllers: list[Controller] = [
        Scheduler(hub),
        WorkloadController(hub),
        ClusterQueueController(hub),
        LocalQueueController(hub),
        CohortController(hub),
        *in_use_controllers(hub),
    ]
    controllers += [JobReconciler(hub, kind) for kind in INTEGRATIONS if kind.name in config.frameworks]
    if "pod" in config.frameworks:
        controllers.append(PodController(hub))
    if "statefulset" in config.frameworks:
        controllers.append(StatefulSetController(hub))
    if "leaderworkerset.x-k8s.io/leaderworkerset" in config.frameworks:
        controllers.append(LeaderWorkerSetController(hub))
    controllers += [ProvisioningController(hub), ProvisioningCheckController()]
    if config.on("MultiKueue"):
        controllers += [MultiKueueClusterController(), MultiKueueCheckController()]
    if config.on("TopologyAwareScheduling"):
        controllers += [Ungater(hub), NodeFailures(hub), DelayedPlacement(hub)]
    return controllers


def webhooks(settings: Settings) -> list[Webhook]:
    """Build its webhooks."""
    config = KueueConfig.of(settings.kueue, settings.gates)
    return [
        *quota_webhooks.webhooks(),
        *workload_webhooks.webhooks(),
        *job_webhooks.webhooks(config),
        *pod_webhooks.webhooks(config),
        *serving_webhooks.webhooks(config),
    ]
