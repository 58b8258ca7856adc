"""What differs between kinds on the write path: a `Strategy` per kind, pure functions over immutable trees.

Mirrors the registry strategies of kube-apiserver (``PrepareForCreate``, ``Validate``, …). The generic path in
`kubemini.server.requests` calls these hooks in a fixed order and does everything else itself: metadata, names,
generation, status/spec split, resourceVersion, finalizers, graceful deletion, field managers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from kubemini.api.trees import Tree
from kubemini.machinery.errors import FieldError
from kubemini.machinery.names import dns1123_subdomain
from kubemini.machinery.schema.contract import Codec, Decoded
from kubemini.runtime.env import Env

__all__ = ["Codec", "Column", "Decoded", "Feed", "Followable", "Reader", "Scale", "Strategy", "Table", "WriteContext"]


class Reader(Protocol):
    """Synchronous reads of other objects at the current revision, for strategies and admission."""

    def get(self, resource: str, namespace: str, name: str) -> Tree | None:
        """Return an object by storage resource (``pods``, ``jobs.batch``), or None; `namespace` is "" for cluster-scoped kinds."""
        ...

    def list(self, resource: str, namespace: str = "") -> Sequence[Tree]:
        """Return all objects of a resource, of one namespace if given, in key order."""
        ...

    def starting(self, resource: str, namespace: str, prefix: str) -> Sequence[Tree]:
        """Return the objects of a namespace whose names start with `prefix`, in key order. O(log n) beside the matches."""
        ...


class Feed(Protocol):
    """A cursor over the changes of one resource, for what keeps sums instead of counting again."""

    def poll(self) -> list[tuple[Tree | None, Tree | None]] | None:
        """Return each change since the last call as (before, after), None where there was or is no object. None = some are lost: count again."""


@runtime_checkable
class Followable(Protocol):
    """A reader that can say what changed."""

    def feed(self, resource: str) -> Feed:
        """Return a cursor that starts now."""
        ...


@dataclass(frozen=True, slots=True)
class WriteContext:
    """What a strategy may know about the request beside the objects."""

    env: Env
    reader: Reader
    user: str = "system:admin"
    groups: tuple[str, ...] = ("system:masters", "system:authenticated")
    dry_run: bool = False
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def user_info(self) -> Tree:
        """Return who asks as a ``UserInfo``."""
        info: Tree = {"username": self.user}
        if self.uid:
            info["uid"] = self.uid
        info["groups"] = list(self.groups)
        if self.extra:
            info["extra"] = {key: list(values) for key, values in self.extra}
        return info


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the Table form (`kubectl get`)."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """How a kind prints: `columns`, and `row(obj, now)` that returns one cell per column (`now` in Unix seconds)."""

    columns: tuple[Column, ...]
    row: Callable[[Tree, float], list[Any]]
    conditions: Callable[[Tree], list[Tree]] | None = None


@dataclass(frozen=True, slots=True)
class Scale:
    """Where a kind keeps its scale: dotted paths without a leading dot, as in a CRD's ``subresources.scale``."""

    spec_replicas: str = "spec.replicas"
    status_replicas: str = "status.replicas"
    selector: str = ""
    """Path of a selector *string* (CRDs), or of a LabelSelector object (built-ins); "" = none."""


class Strategy:
    """The defaults: a kind with metadata only. Subclass and override what differs; never mutate an argument."""

    has_status: bool = False
    """Whether ``/status`` is served: creates reset the status, main writes keep it, status writes keep the rest."""
    has_generation: bool = False
    """Whether metadata.generation is kept (1 on create, +1 when `spec_changed`)."""
    unconditional_update: bool = True
    """Whether a PUT without resourceVersion overwrites."""
    create_on_update: bool = False
    """Whether a PUT of a missing object creates it."""
    returns_deleted: bool = False
    """Whether DELETE answers with the object instead of a Status."""
    orphans_by_default: bool = False
    """Whether a DELETE that names no propagation leaves the dependents (Jobs and ReplicationControllers, for the sake of old clients)."""
    orphaning_advice: str = ""
    """The warning to who deletes without saying whether dependents stay."""
    graceful: bool = False
    """Whether deletion is graceful (pods)."""
    any_finalizer: bool = False
    """Whether finalizers need not be standard or domain-qualified (kinds that upstream validates outside of the core: definitions)."""
    metadata_again: str = ""
    """Whether the kind's check of an update looks at the metadata as at that of a new object too: ``before`` the change or ``after`` it (upstream's strategies differ)."""
    vouched: tuple[str, ...] = ()
    """Subresources ("" for the object itself) in which nothing stands but what a controller says: who vouches for its form has made it valid, too."""
    scale: Scale | None = None
    """Where ``/scale`` reads and writes; None = not served."""
    table: Table | None = None
    """None = Name and Created At (built-ins) or the CRD's columns."""

    def default(self, obj: Tree, ctx: WriteContext) -> Tree:
        """Fill defaults that depend on other fields (the codec has filled the plain ones)."""
        return obj

    def default_update(self, new: Tree, old: Tree, ctx: WriteContext) -> Tree:
        """Fill the same in a new state of an object, which was defaulted in its old one."""
        return self.default(new, ctx)

    def initial_status(self, obj: Tree) -> Tree | None:
        """Return the status of a new object, or None for none (only asked when `has_status`)."""
        return None

    def prepare_for_create(self, obj: Tree, ctx: WriteContext) -> Tree:
        """Reset or compute fields on create, after mutating admission."""
        return obj

    def prepare_for_update(self, new: Tree, old: Tree, ctx: WriteContext) -> Tree:
        """Restore or compute fields on an update of the main resource, before validation."""
        return new

    def prepare_for_status(self, new: Tree, old: Tree, ctx: WriteContext) -> Tree:
        """The same for ``/status``; `new` already holds old's spec and metadata."""
        return new

    def validate_name(self, name: str, *, prefix: bool = False) -> str | None:
        """Return what is wrong with a name (or a generateName when `prefix`), None when it is fine. Default: DNS-1123 subdomain."""
        return dns1123_subdomain(name, prefix=prefix)

    def validate_create(self, obj: Tree, ctx: WriteContext) -> list[FieldError]:
        """Return the broken rules of a new object (metadata is checked by the generic path)."""
        return []

    def validate_update(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """Return the broken rules of an update. Upstream mostly validates `new` as on create, then the transition."""
        return self.validate_create(new, ctx)

    def validate_status(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """Return the broken rules of a status write."""
        return []

    def warnings(self, new: Tree, old: Tree | None, ctx: WriteContext) -> list[str]:
        """Return texts for ``Warning`` headers."""
        return []

    def spec_changed(self, new: Tree, old: Tree) -> bool:
        """Tell whether the generation goes up (default: spec differs)."""
        return new.get("spec") != old.get("spec")

    def stored(self, obj: Tree) -> Tree:
        """Return a new object, valid and admitted, as it is read from then on: with defaults that it gets when it is read."""
        return obj

    def after_create(self, obj: Tree, ctx: WriteContext) -> None:
        """Take what was allocated for a committed object (cluster IPs, node ports); not called on dry runs."""

    def after_delete(self, obj: Tree, ctx: WriteContext) -> None:
        """Give back what was allocated, after the object is gone."""

    def grace(self, obj: Tree, asked: int | None) -> int:
        """Return the grace period in seconds of a deletion that asks for `asked` (None = names none); 0 = at once. Only asked when `graceful`."""
        return 0

    def terminating(self, obj: Tree, ctx: WriteContext) -> Tree | None:
        """Return the object as it stays behind when something of its kind's own (a namespace's spec.finalizers) outlives the deletion, or None."""
        return None

    def may_go(self, obj: Tree) -> bool:
        """Tell whether an object under deletion without finalizers may vanish (a namespace waits for its spec.finalizers)."""
        return True

    def check_delete(self, obj: Tree, ctx: WriteContext) -> None:
        """Raise an `ApiStatus` where the object may not be deleted."""

    unsupported_field: str = "field label not supported: {}"
    """Text of the refusal of a field selector that the kind does not know; ``{}`` is the field."""
    fields: Mapping[str, Callable[[Tree], str]] = {}
    """Selectable fields beside metadata.name and metadata.namespace: path → value as text."""
