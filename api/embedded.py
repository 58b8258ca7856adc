"""Built-in types as a CustomResourceDefinition embeds them: what ``$ref`` in the schemas of our kinds means.

A CRD that holds a pod template states the whole template in its own schema, as controller-gen derives it from the Go types. That is not
what the built-in API does with a pod, and the difference can be observed:

- Metadata inside keeps ``annotations``, ``finalizers``, ``labels``, ``name`` and ``namespace``; everything else is pruned.
- Nothing is defaulted but what `DEFAULTS` lists (``ports[].protocol: TCP`` and some volume sources); no ``restartPolicy``, no ``dnsPolicy``.
- Types, required fields, and the keys of list maps hold, so a wrong type, a container without a name or a duplicate port is refused by
  the CRD. Quantities are integers or strings of the pattern of quantities. Values behind them (names, enums, ranges) are not looked at.

`EmbeddedTypes` makes these definitions one by one, on demand, from the built-in schema data: a structural schema for each type in which
other types are ``$ref`` again. Checked field by field against the CRDs of JobSet, LeaderWorkerSet and Kueue (built with Kubernetes 1.36).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kubemini.api.schemas.records import Records, TypeRecord
from kubemini.api.trees import Tree

REF = "#/definitions/"
"""What stands before the name of a built-in type in ``$ref``."""
BUILT_WITH = "1.36"
"""The Kubernetes version whose types the CRDs embed; what the cluster serves may be another."""

DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "core/v1.AzureDiskVolumeSource": {"fsType": "ext4", "readOnly": False},
    "core/v1.ConfigMapEnvSource": {"name": ""},
    "core/v1.ConfigMapKeySelector": {"name": ""},
    "core/v1.ConfigMapProjection": {"name": ""},
    "core/v1.ConfigMapVolumeSource": {"name": ""},
    "core/v1.ContainerPort": {"protocol": "TCP"},
    "core/v1.FileKeySelector": {"optional": False},
    "core/v1.GRPCAction": {"service": ""},
    "core/v1.ISCSIVolumeSource": {"iscsiInterface": "default"},
    "core/v1.LocalObjectReference": {"name": ""},
    "core/v1.RBDVolumeSource": {"keyring": "/etc/ceph/keyring", "pool": "rbd", "user": "admin"},
    "core/v1.ScaleIOVolumeSource": {"fsType": "xfs", "storageMode": "ThinProvisioned"},
    "core/v1.SecretEnvSource": {"name": ""},
    "core/v1.SecretKeySelector": {"name": ""},
    "core/v1.SecretProjection": {"name": ""},
}
"""Type → field → default, of the embedded types that have one."""

_ATOMIC = frozenset(
    {
        "core/v1.ConfigMapEnvSource",
        "core/v1.ConfigMapProjection",
        "core/v1.ConfigMapVolumeSource",
        "core/v1.SecretEnvSource",
        "core/v1.SecretProjection",
    }
)
"""Types that server-side apply owns as a whole here, though not in the built-in API: controller-gen hands down the mark of the inlined reference."""

_STRING: Tree = {"type": "string"}
_INT_OR_STRING: Tree = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
QUANTITY = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
"""What a quantity looks like, as every CRD states it."""
_LEAVES: Mapping[str, Tree] = {
    "string": _STRING,
    "bool": {"type": "boolean"},
    "int32": {"format": "int32", "type": "integer"},
    "int64": {"format": "int64", "type": "integer"},
    "double": {"type": "number"},
    "bytes": {"format": "byte", "type": "string"},
    "strings": {"items": _STRING, "type": "array"},
    "Quantity": {**_INT_OR_STRING, "pattern": QUANTITY},
    "IntOrString": _INT_OR_STRING,
    "Time": {"format": "date-time", "type": "string"},
    "MicroTime": {"format": "date-time", "type": "string"},
    "RawExtension": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}
_METADATA: Tree = {
    "properties": {
        "annotations": {"additionalProperties": _STRING, "type": "object"},
        "finalizers": {"items": _STRING, "type": "array"},
        "labels": {"additionalProperties": _STRING, "type": "object"},
        "name": _STRING,
        "namespace": _STRING,
    },
    "type": "object",
}
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_API = "io.k8s.api."


class EmbeddedTypes(Mapping[str, Tree]):
    """Definition name (``io.k8s.api.core.v1.PodSpec``) → structural schema. Schemas are shared: never mutate one."""

    def __init__(self, version: str = BUILT_WITH) -> None:
        self._records = Records(version)
        self._made: dict[str, Tree] = {}

    def __getitem__(self, definition: str) -> Tree:
        made = self._made.get(definition)
        if made is None:
            record = self._records.get(_record_name(definition))
            if record is None:
                raise KeyError(definition)
            made = self._made[definition] = _METADATA if record.name == "meta/v1.ObjectMeta" else _schema(record)
        return made

    def __iter__(self) -> Iterator[str]:
        return (_definition(name) for name in self._records.names())

    def __len__(self) -> int:
        return len(self._records.names())


def expanded(schema: Tree, definitions: Mapping[str, Tree], known: dict[str, Tree] | None = None) -> Tree:
    """Return a schema with every ``$ref`` replaced by what it means, all the way down: the very form of a CRD.

    `known` keeps what definitions come to, so that equal parts are one tree, in this schema and in later ones.
    """
    known = {} if known is None else known
    ref = schema.get("$ref")
    if ref is not None:
        inner = known.get(ref)
        if inner is None:
            inner = known[ref] = expanded(definitions[ref.removeprefix(REF)], definitions, known)
        return {**inner, "description": schema["description"]} if "description" in schema else inner
    out = dict(schema)
    if "properties" in schema:
        out["properties"] = {name: expanded(each, definitions, known) for name, each in schema["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            out[key] = expanded(schema[key], definitions, known)
    return out


def referenced(schema: Tree, definitions: Mapping[str, Tree]) -> dict[str, Tree]:
    """Return every definition that a schema refers to, directly or through another one, by name and sorted."""
    found: dict[str, Tree] = {}
    todo = [schema]
    while todo:
        for name in _references(todo.pop()):
            if name not in found:
                found[name] = definitions[name]
                todo.append(found[name])
    return dict(sorted(found.items()))


def _references(schema: Tree) -> Iterator[str]:
    ref = schema.get("$ref")
    if ref is not None:
        yield ref.removeprefix(REF)
    for each in (schema.get("properties") or {}).values():
        yield from _references(each)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from _references(schema[key])


def _record_name(definition: str) -> str:
    if definition.startswith(_META):
        return f"meta/v1.{definition.removeprefix(_META)}"
    group, _, rest = definition.removeprefix(_API).partition(".")
    return f"{group}/{rest}"


def _definition(name: str) -> str:
    group, _, rest = name.partition("/")
    return _META + rest.removeprefix("v1.") if group == "meta" else f"{_API}{group}.{rest}"


def _schema(record: TypeRecord) -> Tree:
    owner = record.name.rpartition(".")[0]
    defaults = DEFAULTS.get(record.name, {})
    properties: Tree = {}
    required: list[str] = []
    for name, spelled, *words in record.fields:
        if "required" in words:
            required.append(name)
        schema = _field(spelled, owner, words)
        if name in defaults:
            schema["default"] = defaults[name]
        properties[name] = schema
    out: Tree = {"properties": properties, "type": "object"}
    if required:
        out["required"] = required
    if record.atomic or record.name in _ATOMIC:
        out["x-kubernetes-map-type"] = "atomic"
    return out


def _field(spelled: str, owner: str, words: list[str]) -> Tree:
    if spelled.startswith("[]"):
        schema: Tree = {"items": _element(spelled[2:], owner), "type": "array"}
    elif spelled.startswith("map[]"):
        schema = {"additionalProperties": _element(spelled[5:], owner), "type": "object"}
    else:
        schema = dict(_element(spelled, owner))
    for word in words:
        key, _, value = word.partition("=")
        if key == "list":
            kind, _, keys = value.partition(":")
            schema["x-kubernetes-list-type"] = kind
            if keys:
                schema["x-kubernetes-list-map-keys"] = keys.split(",")
        elif key == "map":
            schema["x-kubernetes-map-type"] = value
    return schema


def _element(spelled: str, owner: str) -> Tree:
    leaf = _LEAVES.get(spelled)
    if leaf is not None:
        return leaf
    return {"$ref": REF + _definition(spelled if "/" in spelled else f"{owner}.{spelled}")}
