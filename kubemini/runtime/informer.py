"""Informers: a cache of one resource, fed by watch events, with indexes and change handlers.

The cache lags behind the API server, in the simulation by a seeded delay: a controller must be right on a stale view. One set of
informers belongs to one manager (the equivalent of one process) and is shared by its controllers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from sys import intern
from typing import Any

from kubemini.api.resources import Resource
from kubemini.api.trees import Tree
from kubemini.machinery.labels import Selector
from kubemini.runtime.client import Client, Handler, Subscription
from kubemini.runtime.keys import key_of
from kubemini.runtime.selecting import LabelIndex

IndexFunction = Callable[[Tree], Iterable[str]]

PARTS = {
    "labels": 1,
    "annotations": 2,
    "ownerReferences": 4,
    "deletionTimestamp": 8,
    "finalizers": 16,
    "spec": 32,
    "spec.nodeName": 64,
    "spec.volumes": 128,
    "spec.resourceClaims": 256,
    "spec.schedulingGroup": 512,
    "status": 1024,
}
"""What indexes and handlers may say that they read. A part counts as changed where it is not the very same object as before."""
_ANYTHING = 2048
_LABELS, _ANNOTATIONS, _OWNERS, _DELETION, _FINALIZERS, _SPEC, _STATUS = (
    PARTS[name] for name in ("labels", "annotations", "ownerReferences", "deletionTimestamp", "finalizers", "spec", "status")
)
_ABOUT = _LABELS | _ANNOTATIONS | _OWNERS
"""The parts that tell whom an object is about: marks and controllers."""
_WITHIN = tuple((name.partition(".")[2], bit) for name, bit in PARTS.items() if name.startswith("spec."))


def _mask(reads: Iterable[str] | None) -> int:
    return _ANYTHING if reads is None else sum(PARTS[each] for each in reads)


def _changed(old: Tree, new: Tree) -> int:
    """Return the parts that differ between two states of an object; all of them (-1) where it is another one of that name."""
    changed = _ANYTHING
    before, after = old["metadata"].get, new["metadata"].get
    if before("uid") != after("uid"):
        return -1
    # Not a loop: this is asked of every change of every object
    if before("labels") is not after("labels"):
        changed |= _LABELS
    if before("annotations") is not after("annotations"):
        changed |= _ANNOTATIONS
    if before("ownerReferences") is not after("ownerReferences"):
        changed |= _OWNERS
    if before("deletionTimestamp") is not after("deletionTimestamp"):
        changed |= _DELETION
    if before("finalizers") is not after("finalizers"):
        changed |= _FINALIZERS
    one, other = old.get("spec"), new.get("spec")
    if one is not other:
        changed |= _SPEC
        if one and other:
            for part, bit in _WITHIN:
                if one.get(part) is not other.get(part):
                    changed |= bit
    if old.get("status") is not new.get("status"):
        changed |= _STATUS
    return changed


def _kind_of(references: Any) -> str:
    for each in references or ():
        if each.get("controller"):
            kind: str = each["kind"]
            return kind
    return ""


class _Index:
    """Values of objects, by a function of an object. Keys are listed, not objects: most changes of an object mean nothing to an index."""

    __slots__ = ("entries", "function", "marked", "mask")

    def __init__(self, function: IndexFunction, mask: int, *, marked: bool) -> None:
        self.function = function
        self.mask = mask
        self.marked = marked
        self.entries: dict[str, dict[str, None]] = {}

    def change(self, key: str, old: Tree | None, new: Tree | None) -> None:
        """Take a change of one object."""
        before: Any = self.function(old) if old is not None else ()
        after: Any = self.function(new) if new is not None else ()
        if before == after:
            return
        entries = self.entries
        for value in before:
            if value not in after:
                entry = entries[value]
                del entry[key]
                if not entry:
                    del entries[value]
        for value in after:
            entries.setdefault(value, {})[key] = None


_Plan = tuple[tuple[_Index, ...], tuple[Handler, ...]]
_About = tuple[bool, tuple[str, ...]]
"""Whether an object is marked for somebody, and the kinds of its controllers, now and before."""


class Informer:
    """The cached objects of one resource. Lookups by key or index are O(1) plus the matches; objects are immutable."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self.objects: dict[str, Tree] = {}
        """Key (``namespace/name`` or ``name``) → object."""
        self.synced = asyncio.Event()
        """Set once the first snapshot is in the cache."""
        self._indexes: dict[str, _Index] = {}
        self._labels = LabelIndex(self.objects)
        self._handlers: list[tuple[int, str | None, bool, Handler]] = []
        self._kinds: frozenset[str] = frozenset()
        """Kinds of controllers that handlers asked for."""
        self._abouts: dict[str, _About] = {}
        """Whom each object is about, as far as somebody has looked."""
        self._known: dict[_About, _About] = {}
        self._plans: dict[tuple[int, _About], _Plan] = {}
        """What is to be done for each way in which an object can change."""
        self._marks: frozenset[str] = frozenset()
        """Every key that marks an object as one that some index or handler is about."""
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
        found = self._indexes[name].entries.get(value)
        return [*map(self.objects.__getitem__, found)] if found else ()

    def count_index(self, name: str, value: str) -> int:
        """Return how many cached objects are under an index value."""
        return len(self._indexes[name].entries.get(value, ()))

    def select(self, selector: Selector, namespace: str = "") -> Sequence[Tree]:
        """Return the cached objects of a namespace that a label selector takes. O(objects with its most telling label pair)."""
        return self._labels.select(selector, namespace)

    # ------------------------------------------------------------------ set-up

    def add_index(self, name: str, function: IndexFunction, *, reads: Iterable[str] | None = None, marks: Iterable[str] = ()) -> None:
        """Keep an index under a name; the same name must always mean the same function.

        `function` returns the values of one object. `reads` names what it looks at beside the object's name and namespace (`PARTS`; None = anything):
        an object is looked at again only when that changes. With `marks`, objects that have none of these keys among their labels and annotations have
        no values.
        """
        if name in self._indexes:
            return
        if marks:
            self._marks = self._marks.union(marks)
        self._forget()
        index = self._indexes[name] = _Index(function, _mask(reads), marked=bool(marks))
        for key, obj in self.objects.items():
            index.change(key, None, obj)

    def on_change(self, handler: Handler, *, reads: Iterable[str] | None = None, controller: str | None = None, marks: Iterable[str] = ()) -> None:
        """Call `handler(old, new)` after every change of the cache. Handlers are synchronous and quick: they put keys on queues.

        `reads` names what the handler wants to hear of beside additions and deletions (`PARTS`; None = everything, () = nothing else). With
        `controller` it need not hear of objects whose controller is of another kind, before the change and after; with `marks` not of those that have
        none of these keys among their labels and annotations.
        """
        if marks:
            self._marks = self._marks.union(marks)
        if controller is not None:
            self._kinds = self._kinds.union((controller,))
        self._forget()
        self._handlers.append((_mask(reads), controller, bool(marks), handler))

    def _forget(self) -> None:
        """Think anew about whom objects are about and who is concerned."""
        self._plans.clear()
        self._abouts.clear()
        self._known.clear()

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
        changed = -1
        if new is None:
            if old is None:
                return
            del self.objects[key]
            about = self._abouts.pop(key, None) or self._about(old)
        elif old is None:
            # One string for all who keep the key of this object
            key = intern(key)
            self.objects[key] = new
            about = self._abouts[key] = self._about(new)
        else:
            self.objects[key] = new
            changed = _changed(old, new)
            about = self._abouts.get(key) or self._about(old)
            if changed & _ABOUT:
                after = self._abouts[key] = self._about(new)
                if after is not about:
                    about = (about[0] or after[0], about[1] + after[1])
        plan = self._plans.get((changed, about))
        if plan is None:
            plan = self._plans[changed, about] = self._planned(changed, *about)
        for index in plan[0]:
            index.change(key, old, new)
        self._labels.change(key, old, new)
        if new is None:
            old = last if last is not None else old
        for handler in plan[1]:
            handler(old, new)

    def _planned(self, changed: int, marked: bool, kinds: tuple[str, ...]) -> _Plan:
        """Return which indexes and handlers are concerned by a change. An addition or deletion (-1) is for all who are about the object."""
        indexes = tuple(index for index in self._indexes.values() if changed & index.mask and (marked or not index.marked))
        handlers = tuple(
            handler
            for mask, kind, by_mark, handler in self._handlers
            if (changed < 0 or changed & mask) and (marked or not by_mark) and (kind is None or kind in kinds or "" in kinds)
        )
        return indexes, handlers

    def _about(self, obj: Tree) -> _About:
        """Return whom an object is about: whether it has a key that marks it for somebody, and the kind of its controller.

        That is "" for none, "*" for a kind that nobody asked for. Equal answers are one object.
        """
        meta = obj["metadata"]
        marks, marked = self._marks, False
        kinds: tuple[str, ...] = ()
        if marks:
            labels, annotations = meta.get("labels"), meta.get("annotations")
            marked = bool((labels and not marks.isdisjoint(labels)) or (annotations and not marks.isdisjoint(annotations)))
        if self._kinds:
            kind = _kind_of(meta.get("ownerReferences"))
            kinds = (kind if kind in self._kinds or not kind else "*",)
        found = (marked, kinds)
        return self._known.setdefault(found, found)


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
