"""The Services whose endpoints a loop keeps: which of them a change of a pod concerns, and when to look."""

from __future__ import annotations

from collections.abc import Sequence

from kubemini.api.resources import SERVICES
from kubemini.api.trees import Tree
from kubemini.controllers.endpoints import pods as view
from kubemini.machinery.labels import from_labels
from kubemini.runtime.controller import Context
from kubemini.runtime.informer import Informer
from kubemini.runtime.keys import key_of
from kubemini.runtime.selecting import SelectorIndex
from kubemini.runtime.workqueue import WorkQueue

BATCH_SECONDS, BATCH_PER_POD, BATCH_LIMIT = 0.02, 1e-4, 1.0
"""Pod events are answered together: a pass follows the first one after this long, longer where a pass costs more (upstream has --endpoint-updates-batch-period)."""


class Services:
    """Puts the keys of Services on a queue. Register `on_service` and `on_pod` as handlers of their informers."""

    def __init__(self, ctx: Context, queue: WorkQueue[str]) -> None:
        self._services = ctx.informer(SERVICES)
        self._queue = queue
        self._selectors = SelectorIndex()
        self.sizes: dict[str, int] = {}
        """How many pods each Service had at the last pass."""

    def get(self, key: str) -> Tree | None:
        """Return a Service, or None."""
        service = self._services.get_key(key)
        if service is None:
            self.sizes.pop(key, None)
        return service

    def on_service(self, old: Tree | None, new: Tree | None) -> None:
        """Take a change of a Service."""
        obj = new if new is not None else old
        if obj is None:
            return
        key = key_of(obj)
        if new is not None and view.selects(new):
            if old is None or old["spec"].get("selector") != new["spec"]["selector"] or not view.selects(old):
                self._selectors.put(key, new["metadata"]["namespace"], from_labels(new["spec"]["selector"]))
        else:
            self._selectors.drop(key)
        self._queue.add(key)

    def on_pod(self, old: Tree | None, new: Tree | None) -> None:
        """Take a change of a pod: the Services that it leaves, enters or looks different to are due."""
        before = old is not None and view.is_member(old)
        after = new is not None and view.is_member(new)
        if not before and not after:
            return
        if before and after and old is not None and new is not None:
            labels, was = new["metadata"].get("labels"), old["metadata"].get("labels")
            moved = labels is not was and labels != was
            if not moved and not view.differs(old, new):
                return
            if moved:
                self._due(old)
        pod = new if new is not None else old
        if pod is not None:
            self._due(pod)

    def _due(self, pod: Tree) -> None:
        meta = pod["metadata"]
        for key in self._selectors.matching(meta["namespace"], meta.get("labels")):
            self._queue.add_after(key, min(BATCH_SECONDS + self.sizes.get(key, 0) * BATCH_PER_POD, BATCH_LIMIT))

    @staticmethod
    def strays(service: Tree, pods: Sequence[Tree], nodes: Informer) -> str:
        """Return what is wrong with pods whose node does not exist, "" where that is none."""
        if service["spec"].get("publishNotReadyAddresses"):
            return ""
        meta = service["metadata"]
        found = [
            f"skipping Pod {pod['metadata']['name']} for Service {meta['namespace']}/{meta['name']}: Node {node} Not Found"
            for pod in pods
            if view.is_member(pod) and nodes.get(node := pod["spec"].get("nodeName", "")) is None
        ]
        return found[0] if len(found) == 1 else f"[{', '.join(found)}]" if found else ""
