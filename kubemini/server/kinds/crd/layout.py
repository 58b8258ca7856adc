"""Where the parts of a CustomResourceDefinition stand when it is validated.

The API server validates its internal form, in which what all versions have in common was moved to the top: with one version (or equal ones) a
schema is refused at ``spec.validation.openAPIV3Schema``, else at ``spec.versions[0].schema.openAPIV3Schema``. Clients see those paths.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kubemini.api.trees import Tree


@dataclass(frozen=True, slots=True)
class Part:
    """One part of one version, or of all of them (`version` is ""): its value and the path that errors name."""

    value: Any
    path: str
    version: str
    index: int


def versions_of(crd: Tree) -> list[Tree]:
    """Return ``spec.versions``."""
    return (crd.get("spec") or {}).get("versions") or []


def parts(crd: Tree, key: str, common: str) -> list[Part]:
    """Return a part of every version that has it: once, at ``spec.COMMON``, when all versions have the same."""
    versions = versions_of(crd)
    if not versions:
        return []
    first = versions[0].get(key)
    if all(version.get(key) == first for version in versions):
        return [Part(first, f"spec.{common}", "", -1)] if first else []
    return [
        Part(version[key], f"spec.versions[{place}].{key}", version.get("name", ""), place)
        for place, version in enumerate(versions)
        if version.get(key)
    ]


def schemas(crd: Tree) -> list[Part]:
    """Return the schemas, paths ending in ``openAPIV3Schema``."""
    return [
        Part(part.value["openAPIV3Schema"], f"{part.path}.openAPIV3Schema", part.version, part.index)
        for part in parts(crd, "schema", "validation")
        if part.value.get("openAPIV3Schema") is not None
    ]


def schema_of_version(crd: Tree, name: str) -> Tree | None:
    """Return the schema of one version, or None."""
    for version in versions_of(crd):
        if version.get("name") == name:
            found: Tree | None = (version.get("schema") or {}).get("openAPIV3Schema")
            return found
    return None


def subschemas(schema: Tree) -> Iterator[Tree]:
    """Yield a schema and all schemas within it."""
    stack: list[Any] = [schema]
    while stack:
        each = stack.pop()
        if not isinstance(each, dict):
            continue
        yield each
        for key in ("properties", "patternProperties", "definitions", "dependencies"):
            stack.extend((each.get(key) or {}).values())
        for key in ("allOf", "anyOf", "oneOf"):
            stack.extend(each.get(key) or ())
        for key in ("items", "not", "additionalProperties", "additionalItems"):
            found = each.get(key)
            stack.extend(found if isinstance(found, list) else (found,))
