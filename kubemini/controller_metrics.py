"""What `/metrics` says of controllers: their own counters, their work queues, and for operators the outcomes of their reconciles.

Names and labels are those of client-go's work queue, of controller-runtime, and of each controller. A real cluster serves them by process; here one page has them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from kubemini.components import OPERATORS
from kubemini.runtime.controller import Controller
from kubemini.runtime.manager import Manager
from kubemini.runtime.telemetry import Family, Gauge, Histogram

if TYPE_CHECKING:
    from prometheus_client.core import Metric

_BUILT_WITH_RUNTIME = tuple(f"kubemini.controllers.{name}." for name in OPERATORS)
"""Modules of controllers whose originals stand on controller-runtime."""


class ControllerMetrics:
    """A collector (prometheus-client's interface) over the managers that run at the time."""

    def __init__(self, managers: Callable[[], Iterable[Manager]]) -> None:
        self._managers = managers

    def collect(self) -> Iterator[Metric]:
        """Yield the families."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        depth = GaugeMetricFamily("workqueue_depth", "Current depth of workqueue by workqueue", labels=("name",))
        adds = CounterMetricFamily("workqueue_adds", "Total number of adds handled by workqueue", labels=("name",))
        retries = CounterMetricFamily("workqueue_retries", "Total number of retries handled by workqueue", labels=("name",))
        reconciles = CounterMetricFamily(
            "controller_runtime_reconcile", "Total number of reconciliations per controller", labels=("controller", "result")
        )
        errors = CounterMetricFamily(
            "controller_runtime_reconcile_errors", "Total number of reconciliation errors per controller", labels=("controller",)
        )
        workers = GaugeMetricFamily(
            "controller_runtime_max_concurrent_reconciles", "Maximum number of concurrent reconciles per controller", labels=("controller",)
        )
        active = GaugeMetricFamily("controller_runtime_active_workers", "Number of currently used workers per controller", labels=("controller",))
        families: dict[str, Metric] = {}
        staff: dict[str, list[int]] = {}
        counted: dict[str, list[int]] = {}
        told: dict[tuple[str, str], int] = {}
        for manager in self._managers():
            shown = {each.name: each.measured_as or each.name for each in manager.controllers}
            operators = {each.name for each in manager.controllers if _is_operator(each)}
            durations = replace(manager.durations, samples={})
            for (name,), sample in manager.durations.samples.items():
                if name in operators:
                    durations.add(sample, shown[name])
            _merge(families, durations)
            for controller in manager.controllers:
                name, queue = shown[controller.name], controller.queue
                sums = counted.setdefault(name, [0, 0, 0])
                counted[name] = [before + more for before, more in zip(sums, (len(queue), queue.adds, queue.retries), strict=True)]
                if controller.name in operators:
                    most, busy = staff.get(name, [0, 0])
                    staff[name] = [most + controller.workers, busy + queue.busy]
                    for result, count in manager.outcomes[controller.name].items():
                        told[name, result] = told.get((name, result), 0) + count
                for family in controller.families:
                    _merge(families, family)
        for name, sums in counted.items():
            waiting, added, retried = sums
            depth.add_metric((name,), waiting)
            adds.add_metric((name,), added)
            retries.add_metric((name,), retried)
        for (name, result), count in told.items():
            reconciles.add_metric((name, result), count)
            if result == "error":
                errors.add_metric((name,), count)
        for name, (most, busy) in staff.items():
            workers.add_metric((name,), most)
            active.add_metric((name,), busy)
        yield from (depth, adds, retries, reconciles, errors, workers, active)
        yield from families.values()


def _is_operator(controller: Controller) -> bool:
    return type(controller).__module__.startswith(_BUILT_WITH_RUNTIME)


def _merge(families: dict[str, Metric], family: Family) -> None:
    """Add a family, or its samples to the one of that name."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, UnknownMetricFamily

    found = families.get(family.name)
    if isinstance(family, Gauge):
        if found is None:
            found = families[family.name] = GaugeMetricFamily(family.name, family.help, labels=family.labels)
        assert isinstance(found, GaugeMetricFamily)
        for values, value in family.read().items():
            found.add_metric(values, value)
        return
    if isinstance(family, Histogram):
        if found is None:
            found = families[family.name] = HistogramMetricFamily(family.name, family.help, labels=family.labels)
        assert isinstance(found, HistogramMetricFamily)
        for values, (counts, total) in family.samples.items():
            running, buckets = 0, []
            for bound, count in zip((*map(str, family.bounds), "+Inf"), counts, strict=True):
                running += count
                buckets.append((bound, float(running)))
            found.add_metric(values, buckets, total[0])
        return
    if found is None:
        # The format's counters end in _total; one that does not upstream has no type of its own here
        bare = not family.name.endswith("_total")
        kind = UnknownMetricFamily if bare else CounterMetricFamily
        found = families[family.name] = kind(family.name.removesuffix("_total"), family.help, labels=family.labels)
    assert isinstance(found, CounterMetricFamily | UnknownMetricFamily)
    for values, count in family.samples.items():
        found.add_metric(values, count)
