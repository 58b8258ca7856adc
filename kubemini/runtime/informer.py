"""Informers: a cache of one resource, fed by watch events, with indexes and change handlers.

The cache lags behind the API server, in the simulation by a seeded delay: a controller must be right on a stale view. One set of
informers belongs to one manager (the equivalent of one process) and is shared by its controllers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kubemini.api.resources import Resource
from kubemini.api.trees import Tree
from kubemini.machinery.labels import Selector
from kubemini.runtime.client import Client, Handler, Subscription
from kubemini.runtime.keys import key_of
from kubemini.runtime.selecting import LabelIndex

IndexFunction = Callable[[Tree], Iterable[str]]


class Informer:
    """The cached objects of one resource. Lookups by key or index are O(1) plus the matches; objects are immutable."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self.objects: dict[str, Tree] = {}
        """Key (``namespace/name`` or ``name``) → object."""
        self.synced = asyncio.Event()
        """Set once the first snapshot is in the cache."""
        self._indexes: dict[str, tuple[IndexFunction, dict[str, dict[str, Tree]]]] = {}
        self._labels = LabelIndex(self.objects)
        self._handlers: list[Handler] = []
        self._subscription: Subscription | None = None

    # ------------------------------------------------------------------ reading

    def get(self, name: str, namespace: str = "") -> Tree | None:
        """Return a cached object, or None."""
        return self.objects.get(f"{namespace}/{name}" if namespace else name)

    def get_key(self, key: str) -> Tree | None:
        """Return a cached object by key, or None."""
        return self.objects.get(key)

    def list(self, namespace: str = "") -> list[Tree]:
        """Return cached objects in the order in which they were first seen; of one namespace if given (then O(population))."""
        if not namespace:
            return list(self.objects.values())
        prefix = namespace + "/"
        return [obj for key, obj in self.objects.items() if key.startswith(prefix)]

    def by_index(self, name: str, value: str) -> Sequence[Tree]:
        """Return the cached objects under an index value."""
        found = self._indexes[name][1].get(value)
        return list(found.values()) if found else ()

    def count_index(self, name: str, value: str) -> int:
        """Return how many cached objects are under an index value."""
        return len(self._indexes[name][1].get(value, ()))

    def select(self, selector: Selector, namespace: str = "") -> Sequence[Tree]:
        """Return the cached objects of a namespace that a label selector takes. O(objects with its most telling label pair)."""
        return self._labels.select(selector, namespace)

    # ------------------------------------------------------------------ set-up

    def add_index(self, name: str, function: IndexFunction) -> None:
        """Keep an index under a name; the same name must always mean the same function. `function` returns the values of one object."""
        if name in self._indexes:
            return
        entries: dict[str, dict[str, Tree]] = {}
        self._indexes[name] = (function, entries)
        for key, obj in self.objects.items():
            for value in function(obj):
                entries.setdefault(value, {})[key] = obj

    def on_change(self, handler: Handler) -> None:
        """Call `handler(old, new)` after every change of the cache. Handlers are synchronous and quick: they put keys on queues."""
        self._handlers.append(handler)

    def start(self, client: Client) -> None:
        """Begin to follow the resource."""
        if self._subscription is None:
            self._subscription = client.watch(self.resource, self)

    def stop(self) -> None:
        """Follow no longer; the cache stays as it is."""
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None

    # ------------------------------------------------------------------ the sink

    def replace(self, objects: Sequence[Tree]) -> None:
        """Take a snapshot: what is missing in it was deleted, the rest was added or changed."""
        seen = {key_of(obj): obj for obj in objects}
        for key in [key for key in self.objects if key not in seen]:
            self._set(key, None)
        for key, obj in seen.items():
            old = self.objects.get(key)
            if old is None or old["metadata"]["resourceVersion"] != obj["metadata"]["resourceVersion"]:
                self._set(key, obj)
        self.synced.set()

    def change(self, type_: str, obj: Tree) -> None:
        """Take one watch event."""
        self._set(key_of(obj), None if type_ == "DELETED" else obj, obj)

    def _set(self, key: str, new: Tree | None, last: Tree | None = None) -> None:
        old = self.objects.get(key)
        if new is None:
            if old is None:
                return
            del self.objects[key]
        else:
            self.objects[key] = new
        for function, entries in self._indexes.values():
            before: Any = function(old) if old is not None else ()
            after: Any = function(new) if new is not None else ()
            for value in before:
                if new is None or value not in after:
                    entry = entries[value]
                    del entry[key]
                    if not entry:
                        del entries[value]
            if new is not None:
                for value in after:
                    entries.setdefault(value, {})[key] = new
        self._labels.change(key, old, new)
        if new is None:
            old = last if last is not None else old
        for handler in self._handlers:
            handler(old, new)


class Informers:
    """The informers of one manager, one per resource."""

    def __init__(self) -> None:
        self._informers: dict[str, Informer] = {}

    def of(self, resource: Resource) -> Informer:
        """Return the informer of a resource, making it on first use."""
        name = f"{resource.storage}/{resource.version}"
        found = self._informers.get(name)
        if found is None:
            found = self._informers[name] = Informer(resource)
        return found

    def start(self, client: Client) -> None:
        """Start those that do not run yet."""
        for informer in list(self._informers.values()):
            informer.start(client)

    def stop(self) -> None:
        """Stop them all."""
        for informer in self._informers.values():
            informer.stop()

    @property
    def synced(self) -> bool:
        """Whether every cache has its first snapshot."""
        return all(informer.synced.is_set() for informer in self._informers.values())

    async def wait_synced(self) -> None:
        """Return when every cache has its first snapshot."""
        for informer in list(self._informers.values()):
            await informer.synced.wait()
