"""The Services that the loops keep endpoints for, and the pods of each: kept up to date by every event, so that a pass need not search.

Both loops (slices and legacy objects) share one `Services`; each registers its queue and its trigger times as a `Reader`.
"""

from __future__ import annotations

from dataclasses import dataclass
from sys import intern
from typing import Self

from kubemini.api.resources import PODS, SERVICES
from kubemini.api.trees import Tree
from kubemini.controllers.endpoints import pods as view
from kubemini.controllers.endpoints.triggers import Triggers
from kubemini.machinery.labels import from_labels
from kubemini.runtime.controller import Context
from kubemini.runtime.keys import key_of
from kubemini.runtime.selecting import SelectorIndex
from kubemini.runtime.workqueue import WorkQueue

BATCH_SECONDS, BATCH_PER_POD, BATCH_LIMIT = 0.02, 2e-4, 2.0
"""Pod events are answered together: a pass follows the first one after this long, longer where a pass costs more (upstream has --endpoint-updates-batch-period)."""


@dataclass(slots=True, eq=False)
class Member:
    """A pod that is an endpoint. A new one is made whenever something changes that endpoints show."""

    pod: Tree
    ready: bool
    terminating: bool
    turned: str
    """When its readiness turned last, "" where that is not known."""

    @classmethod
    def of(cls, pod: Tree) -> Self:
        """Look at a pod."""
        condition = view.readiness(pod)
        terminating = "deletionTimestamp" in pod["metadata"]
        if condition is None:
            return cls(pod, False, terminating, "")
        return cls(pod, condition["status"] == "True", terminating, condition.get("lastTransitionTime") or "")


Members = dict[str, Member]
"""By the key of the pod, in the order in which they came."""


@dataclass(frozen=True, slots=True)
class Reader:
    """A loop that is told which Services are due."""

    queue: WorkQueue[str]
    triggers: Triggers


class Services:
    """The shared view. `attach` a reader in a controller's setup."""

    def __init__(self) -> None:
        self._readers: list[Reader] = []
        self._selectors = SelectorIndex()
        self._members: dict[str, Members] = {}
        self._where: dict[str, tuple[str, ...]] = {}
        """Pod → the Services that it is an endpoint of."""

    def attach(self, ctx: Context, reader: Reader) -> None:
        """Tell a reader of every change from now on."""
        self._readers.append(reader)
        if len(self._readers) == 1:
            self._services = ctx.informer(SERVICES)
            self._pods = ctx.informer(PODS)
            self._services.on_change(self._on_service)
            self._pods.on_change(self._on_pod, reads=("labels", "deletionTimestamp", "spec", "status"))

    def get(self, key: str) -> Tree | None:
        """Return a Service, or None."""
        return self._services.get_key(key)

    def members(self, key: str) -> Members:
        """Return the pods of a Service; the mapping lives on."""
        return self._members.get(key) or {}

    # ------------------------------------------------------------------ events

    def _on_service(self, old: Tree | None, new: Tree | None) -> None:
        obj = new if new is not None else old
        if obj is None:
            return
        key = key_of(obj)
        selector = new["spec"]["selector"] if new is not None and view.selects(new) else None
        before = old["spec"]["selector"] if old is not None and view.selects(old) else None
        if selector != before or (selector is not None and key not in self._members):
            self._select(key, obj["metadata"]["namespace"], selector)
        for reader in self._readers:
            if new is None:
                reader.triggers.forget(key)
            reader.queue.add(key)

    def _select(self, key: str, namespace: str, selector: Tree | None) -> None:
        for member in self._members.pop(key, {}):
            self._leave(member, key)
        self._selectors.drop(key)
        if selector is None:
            return
        wanted = from_labels(selector)
        self._selectors.put(key, namespace, wanted)
        members = self._members[key] = {}
        for pod in self._pods.select(wanted, namespace):
            if view.is_member(pod):
                name = key_of(pod)
                members[name] = Member.of(pod)
                self._where[name] = (*self._where.get(name, ()), key)

    def _leave(self, pod: str, key: str) -> None:
        left = tuple(each for each in self._where.get(pod, ()) if each != key)
        if left:
            self._where[pod] = left
        else:
            self._where.pop(pod, None)

    def _on_pod(self, old: Tree | None, new: Tree | None) -> None:
        obj = new if new is not None else old
        if obj is None:
            return
        meta = obj["metadata"]
        name = f"{meta['namespace']}/{meta['name']}"
        where = self._where.get(name, ())
        if new is None or not view.is_member(new):
            if where:
                del self._where[name]
                for key in where:
                    del self._members[key][name]
                    self._due(key, "")
            return
        if (
            old is not None
            and ((labels := old["metadata"].get("labels")) is meta.get("labels") or labels == meta.get("labels"))
            and view.is_member(old)
        ):
            if not where or not view.differs(old, new):
                return
            now = where
        else:
            now = tuple(self._selectors.matching(meta["namespace"], meta.get("labels")))
            for key in where:
                if key not in now:
                    del self._members[key][name]
                    self._due(key, "")
            if now:
                name = intern(name)
                self._where[name] = now
            elif where:
                del self._where[name]
        if now:
            member = Member.of(new)
            for key in now:
                members = self._members[key]
                before = members.get(name)
                members[name] = member
                self._due(key, member.turned if before is None or member.turned > before.turned else "")

    def _due(self, key: str, turned: str) -> None:
        delay = min(BATCH_SECONDS + len(self._members[key]) * BATCH_PER_POD, BATCH_LIMIT)
        for reader in self._readers:
            if turned:
                reader.triggers.note(key, turned)
            reader.queue.add_after(key, delay)
