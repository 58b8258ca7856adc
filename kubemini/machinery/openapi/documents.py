"""The documents under ``/openapi``: an index, one OpenAPI v3 document for each group and version, and Swagger 2.0 for all."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha512
from typing import Final

import orjson

from kubemini.api.trees import Tree
from kubemini.machinery.openapi.operations import Operations
from kubemini.machinery.openapi.schemas import Schemas
from kubemini.machinery.openapi.served import ServedKind, ServedKinds, group_version_path
from kubemini.machinery.openapi.swagger import swagger
from kubemini.machinery.schema.builtin import BuiltinSchemas

_SECURITY: Final[Tree] = {"BearerToken": {"description": "Bearer Token authentication", "in": "header", "name": "authorization", "type": "apiKey"}}

Kinds = tuple[ServedKind, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """A document as it is sent."""

    body: bytes
    digest: str
    """SHA-512 of the body, in capitals."""

    @property
    def tag(self) -> str:
        """Its ``ETag``."""
        return f'"{self.digest}"'


class OpenApiDocuments:
    """The documents of what `kinds` serves, and `types` for the built-in kinds among them. Nothing is made before it is asked for.

    Documents of a group and version are kept as long as its kinds are the same, also by other clusters of the process.
    """

    def __init__(self, kinds: ServedKinds, types: BuiltinSchemas) -> None:
        self._kinds = kinds
        self._types = types

    def index(self) -> tuple[bytes, str]:
        """Return the body of ``/openapi/v3`` and its ETag: where the document of each group and version is, with its hash."""
        paths = {
            path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={self._document(path, served).digest}"} for path, served in self._by_path().items()
        }
        document = _document({"paths": paths})
        return document.body, document.tag

    def group_version(self, path: str) -> tuple[bytes, str] | None:
        """Return the document of ``api/v1`` or ``apis/batch/v1`` with its hash, or None where that is not served."""
        served = self._by_path().get(path)
        if served is None:
            return None
        document = self._document(path, served)
        return document.body, document.digest

    def swagger(self) -> tuple[bytes, str]:
        """Return the body of ``/openapi/v2`` and its ETag."""
        document = _swagger(self._types, tuple(self._by_path().items()))
        return document.body, document.tag

    def _by_path(self) -> dict[str, Kinds]:
        found: dict[str, list[ServedKind]] = {}
        for kind in self._kinds:
            for version in kind.versions:
                if version.served:
                    found.setdefault(group_version_path(kind.group, version.name), []).append(kind)
        return {path: tuple(found[path]) for path in sorted(found)}

    def _document(self, path: str, served: Kinds) -> Document:
        return _group_version(self._types, path, served)


def _document(tree: Tree) -> Document:
    body = orjson.dumps(tree)
    return Document(body, sha512(body).hexdigest().upper())


@lru_cache(maxsize=128)
def _group_version(types: BuiltinSchemas, path: str, kinds: Kinds) -> Document:
    group, version = kinds[0].group, path.rpartition("/")[2]
    schemas = Schemas(types, group, version)
    operations = Operations(group, version, schemas)
    for kind in sorted(kinds, key=lambda each: each.plural):
        codec = next(each.codec for each in kind.versions if each.name == version)
        operations.add(kind, codec)
    return _document(
        {
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": f"v{types.version}.0"},
            "paths": dict(sorted(operations.paths.items())),
            "components": {"schemas": schemas.closed(), "securitySchemes": _SECURITY},
        }
    )


@lru_cache(maxsize=4)
def _swagger(types: BuiltinSchemas, served: tuple[tuple[str, Kinds], ...]) -> Document:
    documents = (orjson.loads(_group_version(types, path, kinds).body) for path, kinds in served)
    return _document(swagger(documents, types.version))
