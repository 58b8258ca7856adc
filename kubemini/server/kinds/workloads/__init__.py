"""The kinds that run pods, and the two that guard and scale them: apps, batch, autoscaling, policy, and v1's ReplicationController and PodTemplate.

Each kind is a strategy (defaults, validation, what may change, what a status may say); what is the same for all kinds
is done by the write path in `kubemini.server.writing`.
"""

from __future__ import annotations

from collections.abc import Callable

from kubemini.server.kinds.workloads.controllerrevision import ControllerRevisionStrategy, PodTemplateStrategy
from kubemini.server.kinds.workloads.cronjob import CronJobStrategy
from kubemini.server.kinds.workloads.daemonset import DaemonSetStrategy
from kubemini.server.kinds.workloads.deployment import DeploymentStrategy
from kubemini.server.kinds.workloads.hpa import HorizontalPodAutoscalerStrategy
from kubemini.server.kinds.workloads.hpa_conversion import to_v1, to_v2
from kubemini.server.kinds.workloads.job import JobStrategy
from kubemini.server.kinds.workloads.pdb import PodDisruptionBudgetStrategy
from kubemini.server.kinds.workloads.replicaset import ReplicaSetStrategy, ReplicationControllerStrategy
from kubemini.server.kinds.workloads.statefulset import StatefulSetStrategy
from kubemini.server.registry import Kind, KindVersion, Subresource
from kubemini.server.strategy import Codec, Strategy

CodecOf = Callable[[str, str, str], Codec]
"""Returns the codec of a built-in kind, named by group, version and kind."""

_OBJECT_VERBS = ("get", "patch", "update")


def workload_kinds(codec: CodecOf) -> list[Kind]:
    """Return the workload kinds, each with fresh strategies."""
    return [
        _kind("apps", "Deployment", DeploymentStrategy(), codec, short=("deploy",), everywhere=True),
        _kind("apps", "ReplicaSet", ReplicaSetStrategy(), codec, short=("rs",), everywhere=True),
        _kind("apps", "StatefulSet", StatefulSetStrategy(), codec, short=("sts",), everywhere=True),
        _kind("apps", "DaemonSet", DaemonSetStrategy(), codec, short=("ds",), everywhere=True),
        _kind("apps", "ControllerRevision", ControllerRevisionStrategy(), codec),
        _kind("batch", "Job", JobStrategy(), codec, everywhere=True),
        _kind("batch", "CronJob", CronJobStrategy(), codec, short=("cj",), everywhere=True),
        _autoscaler(codec),
        _kind("policy", "PodDisruptionBudget", PodDisruptionBudgetStrategy(), codec, short=("pdb",)),
        _kind("", "ReplicationController", ReplicationControllerStrategy(), codec, short=("rc",), everywhere=True),
        _kind("", "PodTemplate", PodTemplateStrategy(), codec),
    ]


def _kind(group: str, kind: str, strategy: Strategy, codec: CodecOf, *, short: tuple[str, ...] = (), everywhere: bool = False) -> Kind:
    """Return a kind that is served as v1. `everywhere`: listed by ``kubectl get all``."""
    return Kind(
        group,
        kind,
        f"{kind.lower()}s",
        (KindVersion("v1", codec(group, "v1", kind)),),
        strategy,
        short_names=short,
        categories=("all",) if everywhere else (),
        subresources=_subresources(kind, strategy),
    )


def _subresources(kind: str, strategy: Strategy) -> tuple[Subresource, ...]:
    found = []
    if strategy.scale is not None:
        found.append(Subresource("scale", "Scale", _OBJECT_VERBS, "autoscaling", "v1"))
    if strategy.has_status:
        found.append(Subresource("status", kind, _OBJECT_VERBS))
    return tuple(found)


def _autoscaler(codec: CodecOf) -> Kind:
    group, kind, strategy = "autoscaling", "HorizontalPodAutoscaler", HorizontalPodAutoscalerStrategy()
    return Kind(
        group,
        kind,
        "horizontalpodautoscalers",
        (
            KindVersion("v2", codec(group, "v2", kind)),
            KindVersion("v1", codec(group, "v1", kind), to_storage=to_v2, from_storage=to_v1),
        ),
        strategy,
        short_names=("hpa",),
        categories=("all",),
        subresources=_subresources(kind, strategy),
    )
