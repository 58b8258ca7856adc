"""The types of objects as expressions see them: built-in kinds from the schema of the Kubernetes version, others from their definitions."""

from __future__ import annotations

from functools import lru_cache

from kubemini.api.trees import Tree
from kubemini.controllers.admission_policies.matching import GroupVersionKind
from kubemini.machinery.cel.declared import declared
from kubemini.machinery.cel.types import Declared
from kubemini.machinery.schema.builtin import BuiltinSchemas
from kubemini.runtime.informer import Informer

REFERENCE = "#/components/schemas/"
META = "meta/v1.ObjectMeta"


class ObjectTypes:
    """Types by kind. `of` costs milliseconds the first time that a process is asked for a built-in kind."""

    def __init__(self, version: str, definitions: Informer) -> None:
        self._version = version
        self._definitions = definitions

    def of(self, kind: GroupVersionKind) -> Declared | None:
        """Return the type of a kind's objects, None where nothing is known about them."""
        built_in = _built_in(self._version, kind)
        if built_in is not None:
            return built_in
        for definition in self._definitions.list():
            spec = definition["spec"]
            if (spec["group"], spec["names"]["kind"]) == (kind.group, kind.kind):
                for version in spec["versions"]:
                    if version["name"] == kind.version:
                        return _custom(self._version, (version.get("schema") or {}).get("openAPIV3Schema") or {})
        return None


@lru_cache(maxsize=4)
def _schemas(version: str) -> BuiltinSchemas:
    return BuiltinSchemas(version)


@lru_cache(maxsize=64)
def _built_in(version: str, kind: GroupVersionKind) -> Declared | None:
    schemas = _schemas(version)
    info = schemas.type_of(kind.group, kind.version, kind.kind)
    return None if info is None else _declared_of(version, info.name)


@lru_cache(maxsize=64)
def _declared_of(version: str, name: str) -> Declared | None:
    known = _schemas(version).openapi_definitions([name])
    root = _schemas(version).type(name).definition
    if _repeats(known, root, ()):
        # A type within itself has no end; upstream cannot check those either
        return None
    return declared(known[root], name="object", resolve=lambda schema: _followed(known, schema))


def _custom(version: str, schema: Tree) -> Declared | None:
    """Return the type of a custom kind; its metadata is that of every object."""
    found = declared(schema, root=True, name="object")
    meta = _declared_of(version, META)
    if found is not None and meta is not None and "metadata" in found.fields:
        found.fields = {**found.fields, "metadata": found.fields["metadata"]._replace(value=meta)}
    return found


def _reference(schema: Tree) -> str:
    """Return the name that a schema stands for, or ""."""
    direct: str = schema.get("$ref", "")
    parts: list[Tree] = schema.get("allOf") or []
    return (direct or (parts[0].get("$ref", "") if len(parts) == 1 else "")).removeprefix(REFERENCE)


def _followed(known: dict[str, Tree], schema: Tree) -> Tree:
    name = _reference(schema)
    return known[name] if name else schema


def _repeats(known: dict[str, Tree], name: str, above: tuple[str, ...]) -> bool:
    if name in above:
        return True
    return any(_repeats(known, each, (*above, name)) for each in _references(known[name]))


def _references(schema: Tree) -> list[str]:
    name = _reference(schema)
    found = [name] if name else []
    children = [*(schema.get("properties") or {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return found + [each for child in children if isinstance(child, dict) for each in _references(child)]
