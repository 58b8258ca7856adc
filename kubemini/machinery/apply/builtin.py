"""The apply schema of built-in kinds, from their types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery.apply.shapes import DEDUCED, UNTYPED, Scalar, Shape, list_of, object_of, scalar
from kubemini.machinery.schema.types import LEAVES, STRINGS, UNSET, FieldInfo, TypeInfo, Types

UNOWNED_META = frozenset(
    {"name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields", "resourceVersion"}
)
"""Fields of an object's own metadata that nobody ever owns."""

_SCALARS: dict[str, Scalar] = {
    "string": "string",
    "bytes": "string",
    "bool": "boolean",
    "int32": "numeric",
    "int64": "numeric",
    "double": "numeric",
    "Quantity": "untyped",
    "Time": "untyped",
    "MicroTime": "untyped",
}
_ZERO: dict[str, Any] = {"string": "", "bool": False, "int32": 0, "int64": 0, "double": 0}
_META = "meta/v1.ObjectMeta"


class BuiltinShapes:
    """The shapes of built-in types, each compiled once."""

    def __init__(self, types: Types) -> None:
        self._types = types
        self._known: dict[str, Shape] = {}
        self._roots: dict[str, Shape] = {}
        self._meta: Shape | None = None

    def root(self, info: TypeInfo) -> Shape:
        """Return the shape of a kind: its type with apiVersion, kind, and metadata of which the server's own fields are nobody's."""
        found = self._roots.get(info.name)
        if found is None:
            found = self._type(info.name).copy()
            found.fields = {**found.fields, "apiVersion": scalar("string"), "kind": scalar("string")}
            if "metadata" in found.fields:
                found.fields["metadata"] = self.metadata
            self._roots[info.name] = found.sealed()
        return found

    @property
    def metadata(self) -> Shape:
        """The shape of an object's own metadata."""
        if self._meta is None:
            meta = self._type(_META).copy()
            meta.skip = UNOWNED_META
            self._meta = meta.sealed()
        return self._meta

    def _type(self, name: str) -> Shape:
        found = self._known.get(name)
        if found is None:
            # Known before its fields are: types may contain themselves.
            found = self._known[name] = Shape()
            info = self._types.type(name)
            found.is_object, found.atomic_object = True, info.atomic
            found.sealed()
            found.fields = {field.name: self._field(field) for field in info.fields.values()}
            found.present = {field.name: zero for field in info.fields.values() if (zero := _present(field)) is not UNSET}
        return found

    def _field(self, field: FieldInfo) -> Shape:
        element = self._element(field.type)
        if field.cardinality == "list":
            kind, keys = list_rule(field.list_type, field.list_keys, field.patch_strategy, field.merge_key)
            return list_of(element, kind=kind, keys=keys, defaults=self._key_defaults(field.type) if keys else {})
        if field.cardinality == "map":
            return object_of(element, atomic=field.map_type == "atomic")
        if field.map_type and element.is_object and element.atomic_object is not (field.map_type == "atomic"):
            element = element.copy()
            element.atomic_object = field.map_type == "atomic"
            return element.sealed()
        return element

    def _element(self, name: str) -> Shape:
        if name in _SCALARS:
            return scalar(_SCALARS[name])
        if name == "RawExtension":
            return UNTYPED
        if name == "FieldsV1":
            return object_of(DEDUCED)
        if name == STRINGS:
            return list_of(scalar("string"))
        return DEDUCED if name in LEAVES else self._type(name)

    def _key_defaults(self, name: str) -> dict[str, Any]:
        if name in LEAVES:
            return {}
        fields = self._types.type(name).fields
        return {field.name: field.schema_default for field in fields.values() if field.schema_default is not UNSET}


def list_rule(list_type: str, keys: tuple[str, ...], strategy: str, merge_key: str) -> tuple[str, tuple[str, ...]]:
    """Return kind and keys of a list; one without a list type goes by its strategic merge strategy."""
    if list_type:
        return list_type, keys
    if "merge" in strategy.split(","):
        return ("map", (merge_key,)) if merge_key else ("set", ())
    return "atomic", ()


def _present(field: FieldInfo) -> Any:
    """Return the zero value that Go holds for an absent field, `UNSET` where it can be absent."""
    if field.cardinality == "one" and field.type not in LEAVES:
        return UNSET if field.pointer else {}
    if not field.req or field.pointer:
        return UNSET
    return _ZERO.get(field.type) if field.cardinality == "one" else None


class BuiltinApplySchema:
    """The apply schema of one built-in kind: its type in each version (by apiVersion), and a conversion where there are several."""

    def __init__(self, shapes: BuiltinShapes, versions: Mapping[str, TypeInfo], convert: Callable[[Tree, str], Tree] | None = None) -> None:
        self._shapes = shapes
        self._versions = versions
        self._convert = convert

    @property
    def stable(self) -> bool:
        """Built-in types do not change under stored objects."""
        return True

    def root(self, api_version: str) -> Shape | None:
        """Return the shape of the object in a version, None for a version that is not served."""
        info = self._versions.get(api_version)
        return None if info is None else self._shapes.root(info)

    def convert(self, tree: Tree, api_version: str) -> Tree:
        """Return an object in another version."""
        return tree if self._convert is None or tree.get("apiVersion") == api_version else self._convert(tree, api_version)
