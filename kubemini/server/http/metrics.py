"""What ``/metrics`` counts: requests, their durations, open watches, stored objects. Names and labels as kube-apiserver's (1.36).

Counting is two dictionary operations per request; families are built only when somebody asks for the page.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from kubemini.machinery.errors import ServiceUnavailable
from kubemini.store import Store

if TYPE_CHECKING:
    from prometheus_client.core import Metric
    from prometheus_client.registry import Collector

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS: Final = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0)
"""Upper bounds of the duration histogram, in seconds."""

Labels = tuple[str, str, str, str, str, str]
"""verb, group, version, resource, subresource, scope."""
_NAMES: Final = ("verb", "group", "version", "resource", "subresource", "scope")


class RequestMetrics:
    """The counters of one facade."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._requests: dict[tuple[Labels, int], int] = {}
        self._durations: dict[Labels, list[float]] = {}
        self.watches: dict[Labels, int] = {}
        """Open watches."""
        self.deliveries: dict[tuple[str, str, str], int] = {}
        """Watch events sent, by group, version and kind."""
        self.inflight = {"readOnly": 0, "mutating": 0}
        self.collectors: list[Collector] = [self]
        """Whose families the page shows; others may add theirs."""

    def begin(self, labels: Labels, inflight: str) -> None:
        """Count a request that comes in; `inflight` is readOnly or mutating."""
        if labels[0] == "WATCH":
            self.watches[labels] = self.watches.get(labels, 0) + 1
        else:
            self.inflight[inflight] += 1

    def end(self, labels: Labels, inflight: str, code: int, seconds: float) -> None:
        """Count the answer."""
        key = (labels, code)
        self._requests[key] = self._requests.get(key, 0) + 1
        if labels[0] == "WATCH":
            self.watches[labels] -= 1
            return
        self.inflight[inflight] -= 1
        counts = self._durations.get(labels)
        if counts is None:
            counts = self._durations[labels] = [0.0] * (len(BUCKETS) + 2)
        counts[bisect_left(BUCKETS, seconds)] += 1
        counts[-1] += seconds

    def delivered(self, group: str, version: str, kind: str, count: int) -> None:
        """Count watch events sent."""
        key = (group, version, kind)
        self.deliveries[key] = self.deliveries.get(key, 0) + count

    def text(self) -> bytes:
        """Return the page. Raise `ServiceUnavailable` where prometheus-client is not installed."""
        try:
            from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
        except ImportError:
            raise ServiceUnavailable("metrics need prometheus-client; install kubemini[metrics]") from None
        registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        for collector in self.collectors:
            registry.register(collector)
        return generate_latest(registry)

    def collect(self) -> Iterator[Metric]:
        """Yield the families (prometheus-client's collector interface)."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        total = CounterMetricFamily(
            "apiserver_request",
            "Counter of apiserver requests broken out for each verb, dry run value, group, version, resource, scope, component, and HTTP response code.",
            labels=(*_NAMES, "component", "code"),
        )
        for (labels, code), count in self._requests.items():
            total.add_metric((*labels, "apiserver", str(code)), count)
        yield total
        durations = HistogramMetricFamily(
            "apiserver_request_duration_seconds",
            "Response latency distribution in seconds for each verb, group, version, resource, subresource, scope and component.",
            labels=(*_NAMES, "component"),
        )
        for labels, counts in self._durations.items():
            running, buckets = 0.0, []
            for bound, each in zip((*map(str, BUCKETS), "+Inf"), counts, strict=False):
                running += each
                buckets.append((bound, running))
            durations.add_metric((*labels, "apiserver"), buckets, counts[-1])
        yield durations
        open_ = GaugeMetricFamily(
            "apiserver_longrunning_requests",
            "Gauge of all active long-running apiserver requests broken out by verb, group, version, resource, scope and component.",
            labels=(*_NAMES, "component"),
        )
        for labels, count in self.watches.items():
            open_.add_metric((*labels, "apiserver"), count)
        yield open_
        inflight = GaugeMetricFamily(
            "apiserver_current_inflight_requests",
            "Maximal number of currently used inflight request limit of this apiserver per request kind in last second.",
            labels=("request_kind",),
        )
        for kind, count in self.inflight.items():
            inflight.add_metric((kind,), count)
        yield inflight
        events = CounterMetricFamily("apiserver_watch_events", "Number of events sent in watch clients", labels=("group", "version", "kind"))
        for names, count in self.deliveries.items():
            events.add_metric(names, count)
        yield events
        objects = GaugeMetricFamily(
            "apiserver_storage_objects", "Number of stored objects at the time of last check split by kind.", labels=("resource",)
        )
        for name, table in self._store.tables.items():
            objects.add_metric((name,), len(table))
        yield objects
