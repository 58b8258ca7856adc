"""What an invariant is, and the checker that holds a store to a list of them.

    checker = Checker(cluster.store, jobset_invariants())
    ...                        # every commit is checked from here on
    checker.at_rest()          # and what only holds once nothing moves any more

An invariant sees every commit in order, so it may keep what it needs of the past; it never writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from kubemini.api.resources import Resource
from kubemini.api.trees import Tree
from kubemini.machinery.errors import KubeminiError
from kubemini.store import Change, Record, Store


class View(Protocol):
    """The live objects at this moment, in their storage version."""

    def list(self, resource: Resource, namespace: str = "") -> Sequence[Tree]:
        """Return the objects of a resource in key order, of one namespace if given."""
        ...

    def get(self, resource: Resource, namespace: str, name: str) -> Tree | None:
        """Return an object, or None; `namespace` is "" for cluster-scoped kinds."""
        ...


class Invariant(Protocol):
    """One promise. `name` stands in front of every violation."""

    name: str

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Look at one commit in a table (a storage name such as ``jobs.batch``); return what it violates. `view` shows the state after it."""
        ...

    def at_rest(self, view: View) -> Iterable[str]:
        """Return what is violated now that nothing will happen any more."""
        ...


class InvariantViolation(KubeminiError):
    """A promise was broken: by which commit (its `revision`, 0 at rest), which invariant, and how."""

    def __init__(self, invariant: str, revision: int, texts: Sequence[str]) -> None:
        where = f"at revision {revision}" if revision else "at rest"
        super().__init__(f"{invariant} does not hold {where}: {'; '.join(texts)}")
        self.invariant = invariant
        self.revision = revision
        self.texts = tuple(texts)


class StoreView:
    """A view of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def list(self, resource: Resource, namespace: str = "") -> Sequence[Tree]:
        """Return the objects of a resource in key order."""
        return [record.obj for record in self._store.table(resource.storage).values(f"{namespace}/" if namespace else "")]

    def get(self, resource: Resource, namespace: str, name: str) -> Tree | None:
        """Return an object, or None."""
        record = self._store.table(resource.storage).get(f"{namespace}/{name}" if namespace else name)
        return record.obj if record is not None else None


class Checker:
    """Holds a store to invariants from now on; what is stored already is shown to them first, as if it were created now.

    The first violation is raised out of the commit that caused it, whoever wrote; and again by `at_rest`, since a controller may have survived it.
    """

    def __init__(self, store: Store, invariants: Iterable[Invariant]) -> None:
        self.invariants = list(invariants)
        self.violation: InvariantViolation | None = None
        """The first one, None as long as all is well."""
        self.checked = 0
        """How many commits were looked at."""
        self._view = StoreView(store)
        self._before = store.observer
        self._store = store
        for name, table in list(store.tables.items()):
            for record in table.values():
                self._check(name, Change(record.revision, record.key, None, record))
        store.observer = self._observe

    def close(self) -> None:
        """Check no further commits."""
        self._store.observer = self._before

    def _observe(self, table: str, change: Change) -> None:
        if self._before is not None:
            self._before(table, change)
        self._check(table, change)

    def _check(self, table: str, change: Change) -> None:
        self.checked += 1
        for invariant in self.invariants:
            texts = list(invariant.observe(table, change, self._view))
            if texts:
                self._violated(InvariantViolation(invariant.name, change.revision, texts))

    def at_rest(self) -> None:
        """Check what holds at quiescence. Raise `InvariantViolation`, also for one that was found before."""
        if self.violation is not None:
            raise self.violation
        for invariant in self.invariants:
            texts = list(invariant.at_rest(self._view))
            if texts:
                self._violated(InvariantViolation(invariant.name, 0, texts))

    def _violated(self, violation: InvariantViolation) -> None:
        self.violation = self.violation or violation
        raise violation


def tree_of(record: Record | None) -> Tree | None:
    """Return the tree of a record that may be missing."""
    return record.obj if record is not None else None
