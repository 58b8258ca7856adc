"""What a schema knows of one object type: its fields, their types, and how two writers' values merge.

`TypeInfo` describes one named object type (``core/v1.Container``), `FieldInfo` one field of it as it appears in JSON. Decoding, strategic
merge patch, server-side apply, protobuf and OpenAPI all read these and nothing else. Type names are ``group/version.Kind`` with the first
label of the group (``rbac/v1.Role``, ``core/v1.Pod``, ``meta/v1.ObjectMeta``); everything else is one of the `LEAVES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Literal, NamedTuple, Protocol

Cardinality = Literal["one", "list", "map"]
"""How many elements a field holds; the keys of a map are always strings."""


class Unset(Enum):
    """The type of `UNSET`: "no default", where None would be a value."""

    UNSET = "unset"

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset.UNSET

SCALARS: Final = frozenset({"string", "bool", "int32", "int64", "double", "bytes", "Quantity", "Time", "MicroTime", "IntOrString"})
"""Element types whose JSON value is no object and no list (bytes are base64 text)."""

OPAQUE: Final = frozenset({"RawExtension", "FieldsV1", "JSON", "JSONSchemaPropsOrArray", "JSONSchemaPropsOrBool", "JSONSchemaPropsOrStringArray"})
"""Element types without declared fields: any JSON (RawExtension and FieldsV1: a JSON object)."""

STRINGS: Final = "strings"
"""The element type of a map of lists of strings (``ExtraValue``)."""

_GO_LEAVES: Final = {
    **{name: name for name in ("string", "bool", "int32", "int64")},
    "double": "float64",
    "bytes": "[]uint8",
    STRINGS: "[]string",
    "Quantity": "resource.Quantity",
    "Time": "v1.Time",
    "MicroTime": "v1.MicroTime",
    "IntOrString": "intstr.IntOrString",
    "RawExtension": "runtime.RawExtension",
    "FieldsV1": "v1.FieldsV1",
    **{name: f"v1.{name}" for name in ("JSON", "JSONSchemaPropsOrArray", "JSONSchemaPropsOrBool", "JSONSchemaPropsOrStringArray")},
}

LEAVES: Final = SCALARS | OPAQUE | {STRINGS}
"""All element types that have no `TypeInfo`."""


class GroupVersionKind(NamedTuple):
    """The identity of a kind in one version; the core group is ""."""

    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        """``apps/v1``, or ``v1`` for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version


@dataclass(frozen=True, slots=True)
class FieldInfo:
    """One field of an object type as it stands in JSON (members of inlined Go structs are fields of their parent)."""

    name: str
    """The JSON name; case matters."""
    type: str
    """The element type: one of `LEAVES`, or the name of a `TypeInfo`."""
    cardinality: Cardinality = "one"
    required: bool = False
    """Whether OpenAPI lists the field as required."""
    req: bool = False
    """Whether Go always serialises it, even when zero (no ``omitempty``, or a struct that is no pointer)."""
    pointer: bool = False
    """Whether nil differs from the zero value, so that a zero value is kept."""
    patch_strategy: str = ""
    """Strategic merge: ``merge``, ``replace``, ``retainKeys`` or ``merge,retainKeys``; "" = objects merge, lists are replaced."""
    merge_key: str = ""
    """The key by which strategic merge finds elements of a ``merge`` list of objects; "" for primitive lists."""
    list_type: Literal["", "atomic", "set", "map"] = ""
    """Server-side apply: how a list merges; "" = atomic."""
    list_keys: tuple[str, ...] = ()
    """Server-side apply: the keys of a ``map`` list."""
    map_type: Literal["", "atomic", "granular"] = ""
    """Server-side apply: how an object or map merges here; "" = as its type says, otherwise granular."""
    default: Any = UNSET
    """What decoding fills in when the field is absent, or `UNSET`. Never mutate it."""
    schema_default: Any = UNSET
    """The ``default`` that OpenAPI publishes (for list keys the value of an absent key), or `UNSET`. Never mutate it."""
    enum: tuple[str, ...] = ()
    """The values that OpenAPI lists."""
    numbers: tuple[int, ...] = ()
    """The protobuf field numbers from the type down to this field; several where Go inlines a struct, none where unknown."""
    go_name: str = ""
    """The Go name of an element type that is a named string or list (``v1.RestartPolicy``), "" for a plain one."""
    go_inlined: str = ""
    """The Go structs that Go inlines around the field, joined by dots (``VolumeSource``), "" where it inlines none."""
    go_whole: str = ""
    """The Go name of a list or map that is named as a whole or has named keys (``v1.ResourceList``), else ""."""

    @property
    def is_leaf(self) -> bool:
        """Whether the element type has no declared fields."""
        return self.type in LEAVES

    @property
    def go_type(self) -> str:
        """The Go type as decoding errors print it: ``int64``, ``[]v1.Container``, ``map[string]string``."""
        if self.go_whole:
            return self.go_whole
        element = self.go_element
        return {"one": element, "list": f"[]{element}", "map": f"map[string]{element}"}[self.cardinality]

    @property
    def go_element(self) -> str:
        """The Go type of one element."""
        element = self.go_name or _GO_LEAVES.get(self.type)
        if element is None:
            version, _, kind = self.type.rpartition("/")[2].partition(".")
            element = f"{version}.{kind}"
        return element

    @property
    def number(self) -> int:
        """The protobuf number of a field that is not inlined; 0 where unknown."""
        return self.numbers[-1] if self.numbers else 0

    @property
    def strategies(self) -> tuple[str, ...]:
        """The strategic merge strategies, one by one."""
        return tuple(self.patch_strategy.split(",")) if self.patch_strategy else ()


@dataclass(frozen=True, slots=True)
class TypeInfo:
    """One named object type."""

    name: str
    """``core/v1.Pod``."""
    definition: str
    """The OpenAPI name: ``io.k8s.api.core.v1.Pod``."""
    fields: Mapping[str, FieldInfo]
    """By JSON name, sorted."""
    atomic: bool = False
    """Whether server-side apply owns and replaces the whole object (``x-kubernetes-map-type: atomic``)."""
    kinds: tuple[GroupVersionKind, ...] = ()
    """The kinds that have this type; none for parts of kinds."""
    unions: tuple[Mapping[str, Any], ...] = ()
    """``x-kubernetes-unions`` as published."""

    @property
    def go_name(self) -> str:
        """The name of the Go struct: ``PodSpec``."""
        return self.name.rpartition(".")[2]


class Types(Protocol):
    """A set of object types that can be looked up by name: what merges and decoders ask for."""

    def type(self, name: str) -> TypeInfo:
        """Return a type by its name; KeyError where there is none. The same object each time."""
        ...

    def type_of(self, group: str, version: str, kind: str) -> TypeInfo | None:
        """Return the type of a kind, or None for an unknown kind."""
        ...


def definition_name(name: str) -> str:
    """Return the OpenAPI name of a type.

    >>> definition_name("core/v1.Pod"), definition_name("meta/v1.ObjectMeta")
    ('io.k8s.api.core.v1.Pod', 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta')
    """
    group = name.partition("/")[0]
    prefix = _PREFIXES.get(group, "io.k8s.api.")
    return prefix + name.replace("/", ".")


_PREFIXES = {
    "meta": "io.k8s.apimachinery.pkg.apis.",
    "apiextensions": "io.k8s.apiextensions-apiserver.pkg.apis.",
    "apiregistration": "io.k8s.kube-aggregator.pkg.apis.",
}
