"""Small worlds for tests of scheduling: queues, flavors and Workloads as trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kubemini.api.trees import Tree
from kubemini.controllers.kueue.cache import Cache
from kubemini.controllers.kueue.config import KueueConfig
from kubemini.controllers.kueue.cycle import Cycle, Entry, Places
from kubemini.controllers.kueue.requests import totals
from kubemini.controllers.kueue.workloads import Info
from kubemini.runtime.gates import FeatureGates


class World:
    """A cache with everything a cycle asks for."""

    def __init__(self, **config: Any) -> None:
        self.cache = Cache(KueueConfig.of(config, FeatureGates()))
        self.places: Places | None = None

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """No labels."""
        return {}

    def limit_ranges(self, namespace: str) -> Sequence[Tree]:
        """None."""
        return ()

    def flavor(self, name: str, **spec: Any) -> None:
        """Add a ResourceFlavor."""
        self.cache.set_flavor(name, {"metadata": {"name": name}, "spec": spec})

    def queue(self, name: str, quotas: Mapping[str, Any], **spec: Any) -> None:
        """Add a ClusterQueue: cpu by flavor, a number or a whole quota."""
        flavors = []
        for flavor, quota in quotas.items():
            if flavor not in self.cache.flavors:
                self.flavor(flavor)
            flavors.append({"name": flavor, "resources": [{"name": "cpu", **(quota if isinstance(quota, dict) else {"nominalQuota": str(quota)})}]})
        groups = [{"coveredResources": ["cpu"], "flavors": flavors}]
        self.cache.set_queue({"metadata": {"name": name}, "spec": {"namespaceSelector": {}, "resourceGroups": groups, **spec}})

    def pending(self, name: str, queue: str, cpu: int, *, priority: int = 0, at: float = 100.0, **pod: Any) -> Info:
        """Return a Workload of one pod set with `cpu` pods of one cpu."""
        spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}], **pod}
        tree: Tree = {
            "metadata": {"name": name, "namespace": "ns", "uid": name},
            "spec": {"podSets": [{"name": "main", "count": cpu, "template": {"spec": spec}}], "queueName": "lq", "priority": priority},
        }
        info = Info(tree, f"ns/{name}", name, priority, at, queue=queue, pod_sets=tree["spec"]["podSets"])
        info.requests = totals(info.pod_sets, self.cache.config, {})
        return info

    def held(self, name: str, queue: str, cpu: int, *, flavor: str = "f", priority: int = 0, at: float = 1.0) -> Info:
        """Let a Workload hold quota already."""
        info = self.pending(name, queue, cpu, priority=priority, at=at)
        info.usage = {(flavor, "cpu"): cpu * 1000}
        info.reserved_at = at
        self.cache.hold(info)
        return info

    def run(self, *heads: Info) -> list[Entry]:
        """Run one cycle."""
        return Cycle(self).run(heads)
