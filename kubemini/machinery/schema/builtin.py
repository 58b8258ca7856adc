"""The schemas of the built-in kinds of one Kubernetes version: their types, codecs and OpenAPI definitions.

Everything is lazy: making a `BuiltinSchemas` reads nothing, a type is taken from the data (`kubemini.api.schemas`) when it is first used,
and its decoder is compiled when an object of it is first decoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

import orjson

from kubemini.api.schemas.defaults import PLAIN
from kubemini.api.schemas.records import DEFAULT_VERSION, KindRecord, Records
from kubemini.api.trees import Tree
from kubemini.machinery.errors import ConfigError, FieldError
from kubemini.machinery.schema.contract import Decoded, Undecodable
from kubemini.machinery.schema.mismatch import Mismatch
from kubemini.machinery.schema.nodes import Compiler, ObjectNode
from kubemini.machinery.schema.types import LEAVES, UNSET, Cardinality, FieldInfo, GroupVersionKind, TypeInfo, definition_name
from kubemini.machinery.strategic import TypeMergeSchema

MAX_PROBLEMS = 100
"""How many unknown fields of one object are told, as upstream."""


class BuiltinSchemas:
    """The types of all built-in kinds. Raise `ConfigError` for a Kubernetes version without data."""

    def __init__(self, version: str = DEFAULT_VERSION) -> None:
        try:
            self._records = Records(version)
        except ValueError as problem:
            raise ConfigError(str(problem)) from None
        self.version = self._records.version
        self._types: dict[str, TypeInfo] = {}
        self._codecs: dict[tuple[str, str, str], BuiltinCodec] = {}
        self.compiler = Compiler(self)

    # ------------------------------------------------------------------ types

    def type(self, name: str) -> TypeInfo:
        """Return a type by its name (``core/v1.Pod``); KeyError where there is none. The same object each time."""
        found = self._types.get(name)
        if found is None:
            record = self._records.get(name)
            if record is None:
                raise KeyError(name)
            owner = name.rpartition(".")[0]
            fields = {words[0]: _field(words, owner, PLAIN.get(name, {})) for words in record.fields}
            kinds = tuple(GroupVersionKind(*each) for each in record.kinds)
            unions = tuple(orjson.loads(each) for each in record.unions)
            found = self._types[name] = TypeInfo(name, definition_name(name), fields, record.atomic, kinds, unions)
        return found

    def type_of(self, group: str, version: str, kind: str) -> TypeInfo | None:
        """Return the type of a kind, or None for an unknown kind. The core group is ""."""
        name = self._records.kinds.get(KindRecord(group, version, kind))
        return None if name is None else self.type(name)

    def names(self) -> list[str]:
        """Return the names of all types, sorted."""
        return self._records.names()

    def kinds(self) -> list[GroupVersionKind]:
        """Return all kinds, sorted; lists, options and reviews included."""
        return sorted(GroupVersionKind(*each) for each in self._records.kinds)

    def by_definition(self, definition: str) -> TypeInfo:
        """Return a type by its OpenAPI name (``io.k8s.api.core.v1.Pod``); KeyError where there is none."""
        return self.type(".".join("/".join(definition.split(".")[-3:]).rsplit("/", 1)))

    # ------------------------------------------------------------------ short cuts for one field

    def element_type(self, owner: str, name: str) -> str:
        """Return the element type of a field: one of `LEAVES` or a type name. KeyError for an unknown field."""
        return self.type(owner).fields[name].type

    def merge_strategy(self, owner: str, name: str) -> tuple[tuple[str, ...], str]:
        """Return the strategic merge strategies of a field and the merge key. KeyError for an unknown field."""
        field = self.type(owner).fields[name]
        return field.strategies, field.merge_key

    def list_type(self, owner: str, name: str) -> tuple[str, tuple[str, ...]]:
        """Return how server-side apply merges a list (``atomic``, ``set``, ``map``) and the keys of a ``map``. KeyError for an unknown field."""
        field = self.type(owner).fields[name]
        return field.list_type or "atomic", field.list_keys

    # ------------------------------------------------------------------ codecs and OpenAPI

    def codec(self, group: str, version: str, kind: str) -> BuiltinCodec:
        """Return the codec of a kind; KeyError for an unknown kind. The same object each time."""
        key = (group, version, kind)
        found = self._codecs.get(key)
        if found is None:
            info = self.type_of(group, version, kind)
            if info is None:
                raise KeyError(key)
            found = self._codecs[key] = BuiltinCodec(self, GroupVersionKind(group, version, kind), info)
        return found

    @cached_property
    def descriptions(self) -> Mapping[str, Mapping[str, str]]:
        """Descriptions by OpenAPI name and field, where the package ``kubernetes-validate`` is installed (extra ``explain``), else none."""
        from kubemini.machinery.schema.definitions import published_texts

        return published_texts(self.version)

    def type_schema(self, name: str) -> Tree:
        """Return the OpenAPI v3 definition of a type or named leaf, with references by OpenAPI names. KeyError for an unknown type."""
        from kubemini.machinery.schema.definitions import LEAF_NAMES, leaf_schema, type_schema

        return leaf_schema(name, self.descriptions) if name in LEAF_NAMES else type_schema(self.type(name), self.descriptions)

    def openapi_definitions(self, roots: Iterable[str]) -> dict[str, Tree]:
        """Return the OpenAPI v3 definitions of types and of all that they refer to, by OpenAPI name: ``components.schemas``. Costs milliseconds."""
        from kubemini.machinery.schema.definitions import closure

        return closure(self, roots, self.descriptions)


class BuiltinCodec:
    """The codec of one built-in kind in one version (see `kubemini.machinery.schema.contract.Codec`)."""

    def __init__(self, schemas: BuiltinSchemas, gvk: GroupVersionKind, info: TypeInfo) -> None:
        self.types = schemas
        self.gvk = gvk
        self.type_info = info

    @cached_property
    def _node(self) -> ObjectNode:
        return self.types.compiler.object(self.type_info.name)

    @cached_property
    def merging(self) -> TypeMergeSchema:
        """How a strategic merge patch changes the kind."""
        return TypeMergeSchema(self.types, self.type_info)

    def decode(self, tree: Tree, *, validation: str = "Warn", duplicates: Sequence[str] = (), stored: Tree | None = None) -> Decoded:
        """Return the tree as Go's decoder and encoder would leave it, defaulted. Costs little more than a look where nothing is to be done.

        `duplicates` are the texts about duplicate fields that the parser found (see `kubemini.machinery.schema.text`), `stored` is the present state of the
        object in this version. Raise `Undecodable`.
        """
        unknown = self.types.compiler.unknown
        unknown.clear()
        try:
            clean = self._node.value(tree) if stored is None else self._node.value(tree, stored)
        except Mismatch as mismatch:
            raise Undecodable.of(self.gvk.kind, self.gvk.version, mismatch.text()) from None
        if (not unknown and not duplicates) or validation == "Ignore":
            return Decoded(clean)
        fields = self._node.unknown_fields(tree) if unknown else ()
        texts = [f"unknown field {orjson.dumps(path).decode()}" for path in fields]
        # What the YAML parser says goes first: it has seen the body before.
        texts += duplicates
        texts.sort(key=lambda text: not text.startswith("yaml: "))
        problems = list(dict.fromkeys(texts))[:MAX_PROBLEMS]
        if validation == "Strict" and problems:
            raise Undecodable.of(self.gvk.kind, self.gvk.version, f"strict decoding error: {', '.join(problems)}")
        return Decoded(clean, problems)

    def validate(self, new: Tree, old: Tree | None = None) -> list[FieldError]:
        """Return nothing: what is wrong with a built-in object is for its strategy to say."""
        return []

    def openapi(self) -> Tree:
        """Return the OpenAPI v3 definition of the kind."""
        return self.types.type_schema(self.type_info.name)


@lru_cache(maxsize=8)
def builtin_schemas(version: str = DEFAULT_VERSION) -> BuiltinSchemas:
    """Return the types of a Kubernetes version, the same object each time in one process. Raise `ConfigError`."""
    return BuiltinSchemas(version)


def _field(words: tuple[str, ...], owner: str, plain: Tree) -> FieldInfo:
    """Return a field from the words of its line (see `kubemini.api.schemas.boil`)."""
    name, spelled, *rest = words
    cardinality: Cardinality = "one"
    if spelled.startswith("[]"):
        cardinality, spelled = "list", spelled[2:]
    elif spelled.startswith("map[]"):
        cardinality, spelled = "map", spelled[5:]
    more: dict[str, Any] = {}
    for word in rest:
        key, _, value = word.partition("=")
        if word[0] == "#":
            more["numbers"] = tuple(map(int, word[1:].split(".")))
        elif key == "ptr":
            more["pointer"] = True
        elif key in {"req", "required"}:
            more[key] = True
        elif key == "list":
            more["list_type"], _, keys = value.partition(":")
            more["list_keys"] = tuple(keys.split(",")) if keys else ()
        elif key == "map":
            more["map_type"] = value
        elif key == "patch":
            more["patch_strategy"], _, more["merge_key"] = value.partition(":")
        elif key == "enum":
            more["enum"] = tuple(value.replace("%20", " ").split("|"))
        elif key == "go":
            more["go_name"] = value
        elif key == "in":
            more["go_inlined"] = value
        elif key == "goas":
            more["go_whole"] = value
        elif key == "default":
            more["schema_default"] = orjson.loads(value)
    default = plain.get(name, UNSET)
    if default is UNSET and (published := more.get("schema_default", UNSET)) is not UNSET and (published or "pointer" in more):
        default = published
    kind = spelled if spelled in LEAVES or "/" in spelled else f"{owner}.{spelled}"
    return FieldInfo(name, kind, cardinality, default=default, **more)
