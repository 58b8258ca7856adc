"""What is served: kinds with their versions, and how they are found by URL, by kind, or by short name.

Discovery, OpenAPI and kubectl's view of the server are derived from here; a change (a CRD established or removed) bumps
`Registry.generation`, so caches of derived documents know that they are stale.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from weakref import WeakKeyDictionary

from kubemini.api.resources import Resource
from kubemini.api.trees import Tree
from kubemini.server.strategy import Codec, Strategy, Table, WriteContext

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")

Convert = Callable[[Tree], Tree]


@dataclass(frozen=True, slots=True)
class KindVersion:
    """One served version of a kind. `to_storage` and `from_storage` convert trees; None means that only apiVersion differs."""

    name: str
    codec: Codec
    served: bool = True
    to_storage: Convert | None = None
    from_storage: Convert | None = None
    table: Table | None = None
    """Overrides the strategy's table (CRD columns are per version)."""
    deprecation: str = ""
    """Text of the Warning header for each request to this version; "" = not deprecated."""


@dataclass(frozen=True, slots=True)
class Subresource:
    """One subresource as discovery shows it; its behaviour is in `kubemini.server.subresources`."""

    name: str
    kind: str
    verbs: tuple[str, ...]
    group: str = ""
    version: str = ""
    """Group and version of `kind` where they differ from the parent's (``autoscaling``/``v1`` of a Scale)."""


class Virtual:
    """Answers for a kind of which nothing is stored. Override the verbs that the kind lists; trees are in the storage version."""

    def create(self, namespace: str, obj: Tree, ctx: WriteContext) -> Tree:
        """Answer a POST (reviews)."""
        raise NotImplementedError

    def get(self, namespace: str, name: str, ctx: WriteContext) -> Tree | None:
        """Answer a GET of one name, None = not found."""
        raise NotImplementedError

    def list(self, namespace: str, ctx: WriteContext) -> Sequence[Tree]:
        """Answer a list."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Kind:
    """One resource: names, scope, versions, rules. The first version is the storage version unless `storage_version` names another."""

    group: str
    kind: str
    plural: str
    versions: tuple[KindVersion, ...]
    strategy: Strategy
    namespaced: bool = True
    singular: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    """Verbs of the resource itself; reviews have only ``create``."""
    subresources: tuple[Subresource, ...] = ()
    custom: bool = False
    """Whether it behaves as a custom resource (error texts, patch types, forced RV on update): CRDs and the kinds we own."""
    storage: str = ""
    """Name of the table; "" = plural.group. Two kinds may share one (Event of v1 and of events.k8s.io)."""
    storage_version: str = ""
    posts_to: str = ""
    """For a kind that is only another door to an action: ``pods/binding`` for Binding; the object's name says on which pod."""
    handler: Virtual | None = None
    """For kinds of which nothing is stored (reviews, metrics): who answers."""
    by_name: dict[str, KindVersion] = field(init=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "singular", self.singular or self.kind.lower())
        put(self, "list_kind", self.list_kind or f"{self.kind}List")
        put(self, "storage", self.storage or (f"{self.plural}.{self.group}" if self.group else self.plural))
        put(self, "storage_version", self.storage_version or self.versions[0].name)
        put(self, "by_name", {version.name: version for version in self.versions})

    @property
    def qualified(self) -> str:
        """``plural.group``, or the bare plural of the core group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def api_version(self, version: str) -> str:
        """Return ``group/version`` (bare version for the core group)."""
        return f"{self.group}/{version}" if self.group else version

    def subresource(self, name: str) -> Subresource | None:
        """Return a subresource by name, or None."""
        return next((each for each in self.subresources if each.name == name), None)


@dataclass(frozen=True, slots=True)
class Served:
    """A kind as seen through one of its versions: what a URL resolves to."""

    kind: Kind
    version: KindVersion

    @property
    def api_version(self) -> str:
        """``group/version``."""
        return self.kind.api_version(self.version.name)

    @property
    def stored_as_is(self) -> bool:
        """Whether this is the storage version, so that stored trees can be served without conversion."""
        return self.version.name == self.kind.storage_version

    def from_storage(self, tree: Tree) -> Tree:
        """Return a stored tree in this version."""
        if self.version.name == self.kind.storage_version:
            return tree
        if self.version.from_storage is not None:
            return self.version.from_storage(tree)
        return {**tree, "apiVersion": self.api_version}

    def to_storage(self, tree: Tree) -> Tree:
        """Return a tree of this version as it is stored."""
        if self.version.name == self.kind.storage_version:
            return tree
        if self.version.to_storage is not None:
            # A body need not say its kind, which the path tells
            return self.version.to_storage(tree if tree.get("kind") else {**tree, "kind": self.kind.kind})
        return {**tree, "apiVersion": self.kind.api_version(self.kind.storage_version)}


class Registry:
    """All kinds served. Lookups are O(1)."""

    def __init__(self, kinds: Iterable[Kind] = ()) -> None:
        self._kinds: dict[tuple[str, str], Kind] = {}
        self._served: dict[tuple[str, str, str], Served] = {}
        self._by_kind: dict[tuple[str, str, str], Served] = {}
        self.generation = 0
        """Goes up with every change of what is served."""
        self._resources: tuple[int, list[Resource]] = (-1, [])
        for kind in kinds:
            self.add(kind)

    def add(self, kind: Kind) -> None:
        """Serve a kind from now on, replacing one of the same group and plural."""
        self.remove(kind.group, kind.plural)
        self._kinds[kind.group, kind.plural] = kind
        for version in kind.versions:
            if version.served:
                served = Served(kind, version)
                self._served[kind.group, version.name, kind.plural] = served
                self._by_kind.setdefault((kind.group, version.name, kind.kind), served)
        self.generation += 1

    def remove(self, group: str, plural: str) -> None:
        """Serve a kind no longer (nothing happens where it is unknown)."""
        kind = self._kinds.pop((group, plural), None)
        if kind is None:
            return
        for version in kind.versions:
            self._served.pop((group, version.name, plural), None)
            found = self._by_kind.get((group, version.name, kind.kind))
            if found is not None and found.kind is kind:
                del self._by_kind[group, version.name, kind.kind]
        self.generation += 1

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._kinds.values())

    def kind(self, group: str, plural: str) -> Kind | None:
        """Return a kind by group and plural."""
        return self._kinds.get((group, plural))

    def served(self, group: str, version: str, plural: str) -> Served | None:
        """Return what a URL names, or None."""
        return self._served.get((group, version, plural))

    def by_kind(self, api_version: str, kind: str) -> Served | None:
        """Return what a manifest's apiVersion and kind name, or None."""
        group, _, version = api_version.rpartition("/")
        return self._by_kind.get((group, version, kind))

    def preferred(self, kind: Kind) -> Served:
        """Return a kind through its preferred served version."""
        names = sorted((version.name for version in kind.versions if version.served), key=version_priority)
        return self._served[kind.group, names[0], kind.plural]

    def resources(self) -> list[Resource]:
        """Return what is served and stored, every version of it, preferred versions first; the same list as long as that stays the same."""
        if self._resources[0] != self.generation:
            self._resources = (self.generation, [each for kind in self._kinds.values() for each in _resources_of(kind)])
        return self._resources[1]

    def group_versions(self) -> dict[str, list[str]]:
        """Return the served versions by group, groups in order of first registration, versions preferred first."""
        found: dict[str, dict[str, None]] = {}
        for kind in self._kinds.values():
            for version in kind.versions:
                if version.served:
                    found.setdefault(kind.group, {})[version.name] = None
        return {group: sorted(versions, key=version_priority) for group, versions in found.items()}


_RESOURCES: WeakKeyDictionary[Kind, tuple[Resource, ...]] = WeakKeyDictionary()


def _resources_of(kind: Kind) -> tuple[Resource, ...]:
    found = _RESOURCES.get(kind)
    if found is None:
        names = sorted((version.name for version in kind.versions if version.served), key=version_priority)
        every = tuple(Resource(kind.group, name, kind.plural, kind.kind, kind.namespaced) for name in names)
        found = _RESOURCES[kind] = every if kind.handler is None else ()
    return found


_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")


@lru_cache(maxsize=1024)
def version_priority(version: str) -> tuple[int, int, int, str]:
    """Return a sort key that puts versions in Kubernetes' order: v2, v1, v1beta2, v1beta1, v1alpha1, then the rest by name.

    >>> sorted(["v1beta1", "v1", "foo", "v2", "v1alpha1", "v1beta2"], key=version_priority)
    ['v2', 'v1', 'v1beta2', 'v1beta1', 'v1alpha1', 'foo']
    """
    found = _VERSION.fullmatch(version)
    if found is None:
        return (3, 0, 0, version)
    major, stage, minor = found.groups()
    return ({None: 0, "beta": 1, "alpha": 2}[stage], -int(major), -int(minor or 0), version)
