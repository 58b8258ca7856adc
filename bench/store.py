"""The store alone: commits, reads, deliveries."""

from __future__ import annotations

import time

from kubemini.benchmarks.scenario import Figure, scenario
from kubemini.store import Store


@scenario("store", "store operations in process: create, update, get, watch delivery")
def store(scale: float) -> list[Figure]:
    """Measure 20,000 objects of pod size."""
    count = max(int(20_000 * scale), 100)
    table = Store(history=4 * count).table("pods")
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default", "uid": "u", "labels": {"app": "a", "index": "1"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": "Pending"},
    }
    keys = [f"default/p-{number}" for number in range(count)]
    watch = table.watch()
    marks = [time.perf_counter()]
    for key in keys:
        table.create(key, pod)
    marks.append(time.perf_counter())
    for key in keys:
        table.update(key, pod)
    marks.append(time.perf_counter())
    for key in keys:
        table.get(key)
    marks.append(time.perf_counter())
    delivered = len(watch.poll())
    marks.append(time.perf_counter())
    each = [(later - earlier) * 1e6 / number for earlier, later, number in zip(marks, marks[1:], (count, count, count, delivered), strict=False)]
    budgets = (("create", 15.0), ("update", 10.0), ("get", 1.0), ("watch delivery", 0.5))
    return [Figure(name, value, "µs", budget) for (name, budget), value in zip(budgets, each, strict=True)]
