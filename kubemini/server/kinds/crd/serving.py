"""From an established CustomResourceDefinition to the kind it brings, and a registry that follows the definitions in the store.

The registry changes in the very step that commits a definition, before any watcher hears of it: whoever sees Established=True can use the kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace

from kubemini.api.trees import Tree
from kubemini.machinery.errors import FieldError, invalid
from kubemini.server.kinds.crd.layout import versions_of
from kubemini.server.kinds.crd.strategy import GROUP, is_true
from kubemini.server.kinds.custom import CustomStrategy, custom_table, scale_of
from kubemini.server.registry import Kind, KindVersion, Registry, Subresource
from kubemini.server.strategy import Scale, Strategy, WriteContext
from kubemini.store import Store, Watch

STORAGE = f"customresourcedefinitions.{GROUP}"
_WRITTEN = ("get", "patch", "update")
_MAX_REPLICAS = 2**31 - 1


def is_established(crd: Tree) -> bool:
    """Tell whether the objects of a definition are served."""
    return is_true(crd, "Established")


def kinds_of(crd: Tree) -> list[Kind]:
    """Return the kinds that a definition brings: one when it is established and serves a version, else none."""
    served = [version for version in versions_of(crd) if version.get("served")]
    if not is_established(crd) or not served:
        return []
    spec = crd["spec"]
    accepted = crd["status"]["acceptedNames"]
    stored = next(version for version in versions_of(crd) if version.get("storage"))
    strategy = _strategy(crd, stored)
    subresources: list[Subresource] = []
    if strategy.has_status:
        subresources.append(Subresource("status", accepted["kind"], _WRITTEN))
    if strategy.scale is not None:
        subresources.append(Subresource("scale", "Scale", _WRITTEN, "autoscaling", "v1"))
    kind = Kind(
        group=spec["group"],
        kind=accepted["kind"],
        plural=accepted["plural"],
        versions=tuple(_version(crd, version) for version in versions_of(crd)),
        strategy=strategy,
        namespaced=spec["scope"] == "Namespaced",
        singular=accepted.get("singular", ""),
        list_kind=accepted.get("listKind", ""),
        short_names=tuple(accepted.get("shortNames") or ()),
        categories=tuple(accepted.get("categories") or ()),
        subresources=tuple(subresources),
        custom=True,
        storage_version=stored["name"],
    )
    return [kind]


def _version(crd: Tree, version: Tree) -> KindVersion:
    spec = crd["spec"]
    names = crd["status"]["acceptedNames"]
    # Imported here: a server without definitions never needs it.
    from kubemini.machinery.schema.structural import StructuralCodec

    schema = (version.get("schema") or {}).get("openAPIV3Schema") or {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    name = version["name"]
    deprecation = ""
    if version.get("deprecated"):
        deprecation = version.get("deprecationWarning") or f"{spec['group']}/{name} {names['kind']} is deprecated"
    return KindVersion(
        name,
        StructuralCodec(schema, group=spec["group"], version=name, kind=names["kind"]),
        served=bool(version.get("served")),
        table=custom_table(version.get("additionalPrinterColumns") or ()),
        deprecation=deprecation,
    )


def _strategy(crd: Tree, stored: Tree) -> DefinedStrategy:
    """Return the strategy of the objects of a definition. Where versions differ in their subresources, the stored one decides."""
    subresources = stored.get("subresources") or {}
    scale = subresources.get("scale")
    return DefinedStrategy(
        crd,
        status=subresources.get("status") is not None,
        scale=scale_of(scale["specReplicasPath"], scale["statusReplicasPath"], scale.get("labelSelectorPath") or "") if scale else None,
        selectable=[each["jsonPath"] for each in stored.get("selectableFields") or ()],
    )


class DefinedStrategy(CustomStrategy):
    """The strategy of the objects of one definition: none are made while it terminates, replica counts are whole and small."""

    def __init__(self, crd: Tree, *, status: bool, scale: Scale | None = None, selectable: Sequence[str] = ()) -> None:
        super().__init__(status=status, scale=scale, selectable=selectable)
        if _closed(crd):
            self.closed_for = f"{crd['status']['acceptedNames']['plural']}.{crd['spec']['group']}"

    def validate_create(self, obj: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check the replica counts that ``/scale`` shows."""
        if self.scale is None:
            return []
        return [*_replica_errors(obj, self.scale.spec_replicas), *_replica_errors(obj, self.scale.status_replicas)]

    def validate_status(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check the replica count of the status."""
        return [] if self.scale is None else _replica_errors(new, self.scale.status_replicas)


def _replica_errors(obj: Tree, path: str) -> list[FieldError]:
    here: object = obj
    for key in path.split("."):
        if not isinstance(here, dict) or key not in here:
            return []
        here = here[key]
    shown = f".{path}"
    if not isinstance(here, int) or isinstance(here, bool):
        return [invalid(shown, 0, f"{shown} accessor error: {here} is of the type {_go_type(here)}, expected int64")]
    if here < 0:
        return [invalid(shown, here, "should be a non-negative integer")]
    return [invalid(shown, here, f"should be less than or equal to {_MAX_REPLICAS}")] if here > _MAX_REPLICAS else []


def _go_type(value: object) -> str:
    if value is None:
        return "<nil>"
    names: dict[type, str] = {bool: "bool", str: "string", float: "float64", list: "[]interface {}", dict: "map[string]interface {}"}
    return names.get(type(value), "int64")


class CustomKinds:
    """Keeps the kinds of definitions in a registry.

    A built-in kind is left alone. A custom one that the registry brings itself (ours) stays as it is whatever its definition says, but goes and comes with it.
    """

    def __init__(self, registry: Registry, store: Store) -> None:
        self._registry = registry
        self._served: dict[str, tuple[Tree, Tree, bool, Kind]] = {}
        self._ours: dict[str, Kind] = {}
        table = store.table(STORAGE)
        for record in table.values():
            self._follow(record.obj["metadata"]["name"], record.obj)
        self._watch: Watch = table.watch()
        self._watch.on_ready(self._changed)

    def _changed(self) -> None:
        for event in self._watch.poll():
            self._follow(event.record.obj["metadata"]["name"], None if event.type == "DELETED" else event.record.obj)
        self._watch.on_ready(self._changed)

    def _follow(self, name: str, crd: Tree | None) -> None:
        """Serve what a definition says now, if that is something else than before."""
        known = self._served.get(name)
        if crd is not None and is_established(crd):
            state = (crd["spec"], crd["status"]["acceptedNames"], _closed(crd))
            if known is not None and known[:3] == state:
                return
            kind = self._kind(name, crd, known)
            if kind is not None:
                if self._registry.kind(kind.group, kind.plural) is not kind:
                    self._registry.add(kind)
                self._served[name] = (*state, kind)
                return
        if known is not None:
            del self._served[name]
            self._registry.remove(known[3].group, known[3].plural)

    def _kind(self, name: str, crd: Tree, known: tuple[Tree, Tree, bool, Kind] | None) -> Kind | None:
        """Return what to serve for an established definition: ours, or what it brings; None where that is nothing, or built in."""
        ours = self._ours.get(name)
        if ours is None:
            there = self._registry.kind(crd["spec"]["group"], crd["status"]["acceptedNames"]["plural"])
            if there is None or (known is not None and there is known[3]):
                found = kinds_of(crd)
                return found[0] if found else None
            if not there.custom:
                return None
            ours = self._ours[name] = there
        return replace(ours, strategy=_closing(ours.strategy, name)) if _closed(crd) else ours


def _closing(strategy: Strategy, name: str) -> Strategy:
    closing = copy(strategy)
    if isinstance(closing, CustomStrategy):
        closing.closed_for = name
    return closing


def _closed(crd: Tree) -> bool:
    """Tell whether no more objects may be made."""
    return "deletionTimestamp" in crd["metadata"] or is_true(crd, "Terminating")
