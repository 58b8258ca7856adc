"""The built-in kinds: strategies, tables, and what is served of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from kubemini.server.registry import Kind, Registry


@lru_cache(maxsize=4)
def builtin_kinds(version: str) -> tuple[Kind, ...]:
    """Return the kinds of a Kubernetes version and the kinds we own, built once per process: strategies hold no state of a cluster."""
    from kubemini.machinery.schema.builtin import builtin_schemas
    from kubemini.server.kinds.core import core_kinds
    from kubemini.server.kinds.crd import crd_kind
    from kubemini.server.kinds.owned import owned_kinds
    from kubemini.server.kinds.workloads import workload_kinds

    codec = builtin_schemas(version).codec
    crds = crd_kind(codec("apiextensions.k8s.io", "v1", "CustomResourceDefinition"))
    return (*core_kinds(codec), *workload_kinds(codec), crds, *owned_kinds())


def builtin_registry(version: str, *, metrics_server: bool = False, enabled: Callable[[str], bool] | None = None) -> Registry:
    """Return a fresh registry of the built-in kinds, with what a metrics server and feature gates bring.

    Gates bring alpha kinds, maxUnavailable of StatefulSets, and autoscalers that go down to nothing; without theirs templates of suspended Jobs open less.
    """
    registry = Registry(builtin_kinds(version))
    if enabled is not None:
        from kubemini.server.kinds.workloads.job import JobStrategy
        from kubemini.server.kinds.workloads.job_update import ALL_OPEN, Openness

        for kind in _gated(version, enabled):
            registry.add(kind)
        if enabled("MaxUnavailableStatefulSet"):
            from kubemini.server.kinds.workloads.statefulset import StatefulSetStrategy

            sets = next(each for each in registry if (each.group, each.plural) == ("apps", "statefulsets"))
            registry.add(replace(sets, strategy=StatefulSetStrategy(budgeted=True)))
        if enabled("HPAScaleToZero"):
            from kubemini.server.kinds.workloads.hpa import HorizontalPodAutoscalerStrategy

            scalers = next(each for each in registry if each.plural == "horizontalpodautoscalers")
            registry.add(replace(scalers, strategy=HorizontalPodAutoscalerStrategy(to_zero=True)))
        openness = Openness(enabled("MutableSchedulingDirectivesForSuspendedJobs"), enabled("MutablePodResourcesForSuspendedJobs"))
        if openness != ALL_OPEN:
            jobs = next(each for each in registry if (each.group, each.plural) == ("batch", "jobs"))
            registry.add(replace(jobs, strategy=JobStrategy(openness)))
    if metrics_server:
        from kubemini.server.kinds.catalogue import metrics_kinds

        for kind in metrics_kinds():
            registry.add(kind)
    return registry


def _gated(version: str, enabled: Callable[[str], bool]) -> list[Kind]:
    from kubemini.machinery.schema.builtin import builtin_schemas
    from kubemini.server.kinds.catalogue import gated_kinds

    return [kind for gate, kinds in gated_kinds(builtin_schemas(version).codec).items() if enabled(gate) for kind in kinds]
