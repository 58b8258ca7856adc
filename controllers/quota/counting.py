"""The sums behind the quotas of a cluster, kept up to date by every event: a pass costs the limits of one quota, not the objects of its namespace."""

from __future__ import annotations

from collections.abc import Callable

from kubemini.api.resources import Resource
from kubemini.api.trees import Tree
from kubemini.machinery import quota
from kubemini.machinery.pod_requests import Amounts
from kubemini.machinery.quota_tally import Tally
from kubemini.runtime.controller import Context
from kubemini.runtime.keys import key_of


class Counts:
    """Follows the resources that quotas count. `changed` is called with the namespace of every object that comes, changes or goes where there is a quota."""

    def __init__(self, ctx: Context, changed: Callable[[str], None]) -> None:
        self._ctx = ctx
        self._changed = changed
        self._running = False
        self._tallies: dict[str, dict[str, dict[str, Tally]]] = {}
        """Resource → namespace → quota → tally."""
        self._counted: dict[str, dict[str, dict[str, Tree]]] = {}
        """Resource → namespace → what is counted, by key: the state to take out again."""
        self._resources: dict[str, Resource] = {}

    def started(self) -> None:
        """Called when the manager runs: caches that are asked for from now on are started at once."""
        self._running = True

    def used(self, limit: Tree, now: float) -> Amounts:
        """Return what is used of each resource that a quota limits and that can be counted."""
        hard = (limit.get("spec") or {}).get("hard") or {}
        sums: Amounts = {}
        for resource in sorted(quota.resources_of(limit)):
            tally = self._tally(limit, resource)
            if tally is not None:
                for name, size in tally.used(now).items():
                    if resource == _counter(name):
                        sums[name] = size
        return {name: sums[name] for name in hard if name in sums}

    def forget(self, key: str) -> None:
        """A quota is gone."""
        namespace, _, name = key.partition("/")
        for by_namespace in self._tallies.values():
            quotas = by_namespace.get(namespace)
            if quotas is not None and quotas.pop(name, None) is not None and not quotas:
                del by_namespace[namespace]
        for resource, by_namespace in self._tallies.items():
            if namespace not in by_namespace:
                self._counted.get(resource, {}).pop(namespace, None)

    def _tally(self, limit: Tree, resource: str) -> Tally | None:
        if not self._follow(resource):
            return None
        namespace, name = limit["metadata"]["namespace"], limit["metadata"]["name"]
        quotas = self._tallies[resource].setdefault(namespace, {})
        found = quotas.get(name)
        if found is None or found.spec is not limit.get("spec"):
            counted = self._counted[resource].get(namespace)
            if counted is None:
                informer = self._ctx.informer(self._resources[resource])
                counted = self._counted[resource][namespace] = {key_of(each): each for each in informer.list(namespace)}
            found = quotas[name] = Tally(limit, resource, counted.values())
        return found

    def _follow(self, resource: str) -> bool:
        """Follow a resource; tell whether it is served."""
        if resource in self._tallies:
            return True
        if resource not in self._resources:
            self._resources |= {each.storage: each for each in reversed(self._ctx.client.resources())}
        served = self._resources.get(resource)
        if served is None:
            return False
        self._tallies[resource], self._counted[resource] = {}, {}
        informer = self._ctx.informer(served)
        informer.on_change(lambda old, new: self._on_change(resource, old, new))
        if self._running:
            informer.start(self._ctx.client)
        return True

    def _on_change(self, resource: str, old: Tree | None, new: Tree | None) -> None:
        obj = new if new is not None else old
        if obj is None:
            return
        namespace = obj["metadata"].get("namespace", "")
        counted = self._counted[resource].get(namespace)
        if counted is None:
            return
        key = key_of(obj)
        # What was counted, not what the event says was there: a final state may be news, too
        before = counted.pop(key, None) if new is None else counted.get(key)
        if new is not None:
            counted[key] = new
        for tally in self._tallies[resource].get(namespace, {}).values():
            tally.replace(before, new)
        self._changed(namespace)


def _counter(name: str) -> str:
    """Return the storage resource that a limited resource is counted by."""
    (found,) = quota.resources_of({"spec": {"hard": {name: "0"}}})
    return found
