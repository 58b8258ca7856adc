"""Field managers on the write path: who owns which field, and server-side apply.

The rules are `kubemini.machinery.apply`; this module gives them the schema of each kind, and turns stored trees into the version that a
manager wrote in. What admission and strategies change afterwards is owned by nobody: entries are computed from what the client wanted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from kubemini.api.trees import Tree, get_in
from kubemini.machinery.apply import (
    NOTHING_RESET,
    ApplySchema,
    BuiltinApplySchema,
    BuiltinShapes,
    Reset,
    Shape,
    StructuralApplySchema,
    StructuralShapes,
    apply,
    same_but_times,
    track_update,
)
from kubemini.machinery.errors import BadRequest, Conflict
from kubemini.machinery.schema.builtin import BuiltinCodec, BuiltinSchemas

if TYPE_CHECKING:
    from kubemini.server.registry import Kind, Served

_MAIN = Reset("status")
_STATUS = Reset("spec", "metadata.ownerReferences")
_CUSTOM_STATUS = Reset("spec", "metadata")


class Managing:
    """The field managers of one server. `types` are the built-in types, for the shape of metadata."""

    def __init__(self, types: BuiltinSchemas) -> None:
        self._shapes = BuiltinShapes(types)
        self._schemas: WeakKeyDictionary[Kind, ApplySchema] = WeakKeyDictionary()

    def _schema(self, kind: Kind) -> ApplySchema:
        found = self._schemas.get(kind)
        if found is None:
            found = self._schemas[kind] = self._built(kind)
        return found

    def _built(self, kind: Kind) -> ApplySchema:
        convert = _conversion(kind) if len(kind.versions) > 1 else None
        codecs = {kind.api_version(version.name): version.codec for version in kind.versions if version.served}
        builtin = {api_version: codec.type_info for api_version, codec in codecs.items() if isinstance(codec, BuiltinCodec)}
        if len(builtin) == len(codecs):
            return BuiltinApplySchema(self._shapes, builtin, convert)
        roots = {}
        for api_version, codec in codecs.items():
            definitions: Any = getattr(codec, "definitions", None)
            shapes = StructuralShapes(self._shapes.metadata) if definitions is None else StructuralShapes(self._shapes.metadata, definitions)
            roots[api_version] = shapes.root(codec.openapi())
        return StructuralApplySchema(roots, convert)

    def shape(self, kind: Kind, api_version: str) -> Shape | None:
        """Return how the objects of a kind are merged in an apiVersion, None for one that is not served."""
        return self._schema(kind).root(api_version)

    def _reset(self, kind: Kind, subresource: str) -> Reset:
        if subresource == "status":
            return _CUSTOM_STATUS if kind.custom else _STATUS
        return _MAIN if kind.strategy.has_status else NOTHING_RESET

    # ------------------------------------------------------------------ plain writes

    def entries(self, served: Served, wanted: Tree, old: Tree | None, manager: str, time: str, subresource: str = "") -> list[Tree] | None:
        """Return the managedFields after a create or update. `wanted` and `old` are in the storage version; `wanted` is what the client asked for."""
        kind = served.kind
        return track_update(
            served.from_storage(old) if old is not None else None,
            served.from_storage(wanted),
            manager=manager,
            api_version=served.api_version,
            time=time,
            schema=self._schema(kind),
            subresource=subresource,
            reset=self._reset(kind, subresource),
        )

    # ------------------------------------------------------------------ apply

    def applied(
        self, served: Served, live: Tree | None, config: Any, name: str, namespace: str, manager: str, time: str, subresource: str, *, force: bool
    ) -> tuple[Tree, list[Tree] | None]:
        """Return the merged object in the served version (not decoded yet) and its managedFields. `live` None = it is created. Raise `FieldConflict`, `BadRequest`."""
        kind = served.kind
        config = checked(served, config, name, namespace)
        result = apply(
            served.from_storage(live) if live is not None else None,
            config,
            manager=manager,
            force=force,
            api_version=served.api_version,
            kind=kind.kind,
            time=time,
            schema=self._schema(kind),
            subresource=subresource,
            reset=self._reset(kind, subresource),
        )
        return result.tree, result.managed_fields

    def applied_scale(
        self, served: Served, replicas_path: str, live: Tree, config: Any, manager: str, time: str, *, force: bool
    ) -> tuple[Tree, list[Tree] | None]:
        """The same for an apply to ``/scale``; the parent owns the entry under its own path and version."""
        if not isinstance(config, dict):
            raise BadRequest("error decoding patch: the body must be an object")
        replicas = get_in(config, "spec", "replicas")
        path = replicas_path.split(".")
        body: Tree = {}
        here = body
        for step in path[:-1]:
            here = here.setdefault(step, {})
        if replicas is not None:
            here[path[-1]] = replicas
        meta = live["metadata"]
        parent = {"apiVersion": served.api_version, "kind": served.kind.kind, "metadata": {"name": meta["name"]}, **body}
        return self.applied(served, live, parent, meta["name"], meta.get("namespace", ""), manager, time, "scale", force=force)


def with_entries(obj: Tree, entries: list[Tree] | None, old: Tree | None) -> Tree:
    """Return an object with managedFields; the old entries where only their times differ and nothing else of the object changed."""
    meta = obj["metadata"]
    before = meta.get("managedFields")
    if entries is before:
        return obj
    if old is not None and entries is not None:
        stored = old["metadata"].get("managedFields")
        if stored is not None and same_but_times(stored, entries) and _same_but_entries(obj, old):
            entries = stored
    rest = {key: value for key, value in meta.items() if key != "managedFields"}
    return {**obj, "metadata": {**rest, "managedFields": entries} if entries else rest}


def _same_but_entries(new: Tree, old: Tree) -> bool:
    if new.keys() != old.keys() or any(new[key] != old[key] for key in new if key != "metadata"):
        return False
    left, right = new["metadata"], old["metadata"]
    names = (left.keys() | right.keys()) - {"managedFields", "resourceVersion"}
    return all(left.get(name) == right.get(name) for name in names)


def checked(served: Served, config: Any, name: str, namespace: str) -> Tree:
    """Return an applied configuration. Raise `BadRequest` for one that cannot be meant for this URL."""
    if not isinstance(config, dict):
        raise BadRequest("error decoding YAML: the body must be an object")
    found = config.get("apiVersion")
    if found != served.api_version:
        raise BadRequest(f"Incorrect version specified in apply patch. Specified patch version: {found or ''}, expected: {served.api_version}")
    meta = config.get("metadata") or {}
    if meta.get("name") not in (None, "", name):
        raise BadRequest(f"the name of the object ({meta['name']}) does not match the name on the URL ({name})")
    if served.kind.namespaced and meta.get("namespace") not in (None, "", namespace):
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
    found_config: Tree = config
    return found_config


def uid_mismatch(served: Served, name: str, uid: str) -> Conflict:
    """Return the refusal of an apply that names the uid of an object that does not exist."""
    kind = served.kind
    return Conflict.of(kind.plural, kind.group, name, f"uid mismatch: the provided object specified uid {uid}, and no existing object was found")


def _conversion(kind: Kind) -> Callable[[Tree, str], Tree]:
    from kubemini.server.registry import Served

    by_api_version = {kind.api_version(version.name): Served(kind, version) for version in kind.versions}

    def convert(tree: Tree, api_version: str) -> Tree:
        found = tree.get("apiVersion")
        if found == api_version or found not in by_api_version or api_version not in by_api_version:
            return tree
        return by_api_version[api_version].from_storage(by_api_version[found].to_storage(tree))

    return convert
