"""What the EndpointSlice controller counts, by upstream's names, labels and buckets (Kubernetes 1.36)."""

from __future__ import annotations

from kubemini.controllers.endpoints.planning import SLICE_LIMIT, Plan
from kubemini.runtime.telemetry import Counter, Families, Gauge, Histogram, exponential


class Metrics:
    """The numbers of one controller process."""

    def __init__(self) -> None:
        name = "endpoint_slice_controller_{}".format
        bounds = exponential(2, 2, 15)
        self._added = Histogram(name("endpoints_added_per_sync"), "Number of endpoints added on each Service sync", (), bounds)
        self._removed = Histogram(name("endpoints_removed_per_sync"), "Number of endpoints removed on each Service sync", (), bounds)
        self.changes = Counter(name("changes"), "Number of EndpointSlice changes", ("operation",))
        self._changed = Histogram(
            name("endpointslices_changed_per_sync"),
            "Number of EndpointSlices changed on each Service sync",
            ("topology", "traffic_distribution"),
            (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
        )
        self.syncs = Counter(name("syncs"), "Number of EndpointSlice syncs", ("result",))
        self._held: dict[str, tuple[int, int, int]] = {}
        """Service → (endpoints, slices, slices if all were full), of the family that was looked at last."""
        self._near: dict[str, str] = {}
        """Service → its traffic distribution, where it has one that counts."""
        self._gauges = (
            Gauge(name("endpoints_desired"), "Number of endpoints desired", (), lambda: self._sum(0)),
            Gauge(name("num_endpoint_slices"), "Number of EndpointSlices", (), lambda: self._sum(1)),
            Gauge(
                name("desired_endpoint_slices"),
                "Number of EndpointSlices that would exist with perfect endpoint allocation",
                (),
                lambda: self._sum(2),
            ),
            Gauge(
                name("services_count_by_traffic_distribution"),
                "Number of Services using some specific trafficDistribution",
                ("traffic_distribution",),
                self._by_distribution,
            ),
        )

    def planned(self, key: str, step: Plan, near: str) -> None:
        """Count what a pass wants for one family of addresses of a Service; `near` is its traffic distribution, "" for none that counts."""
        self._added.observe(step.added)
        self._removed.observe(step.removed)
        endpoints = slices = full = 0
        for wanted, existing in step.held.values():
            endpoints, slices, full = endpoints + wanted, slices + existing, full - (-wanted // SLICE_LIMIT)
        self._held[key] = endpoints, slices, full or 1
        if near:
            self._near[key] = near
        else:
            self._near.pop(key, None)

    def written(self, steps: int, near: str, *, auto: bool) -> None:
        """Count how many slices a pass has changed for one family."""
        self._changed.observe(steps, "Auto" if auto else "Disabled", near)

    def forget(self, key: str) -> None:
        """Leave out a Service that is gone."""
        self._held.pop(key, None)
        self._near.pop(key, None)

    def _sum(self, part: int) -> dict[tuple[str, ...], float]:
        return {(): sum(each[part] for each in self._held.values())}

    def _by_distribution(self) -> dict[tuple[str, ...], float]:
        found: dict[tuple[str, ...], float] = {}
        for near in self._near.values():
            found[near,] = found.get((near,), 0) + 1
        return found

    def all(self) -> Families:
        """Return every family."""
        return (self._added, self._removed, self.changes, self._changed, self.syncs, *self._gauges)
