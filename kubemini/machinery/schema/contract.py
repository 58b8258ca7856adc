"""The contract between the write path and the schema of a kind: `Codec`, and what it answers, `Decoded`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from kubemini.api.trees import Tree
from kubemini.machinery.errors import FieldError


@dataclass(frozen=True, slots=True)
class Decoded:
    """What a codec made of a body: the clean tree, and texts for ``Warning`` headers."""

    tree: Tree
    warnings: list[str] = field(default_factory=list)


class Codec(Protocol):
    """The schema of one kind in one version: decoding, schema validation, OpenAPI."""

    def decode(self, tree: Tree, *, validation: str = "Warn") -> Decoded:
        """Check types, drop unknown fields, canonicalise and fill schema defaults; `validation` is Ignore, Warn or Strict. Raise `BadRequest` (or `Invalid`)."""

    def validate(self, new: Tree, old: Tree | None = None) -> list[FieldError]:
        """Return broken schema and CEL rules."""

    def openapi(self) -> Tree:
        """Return the structural OpenAPI v3 schema of the kind."""
