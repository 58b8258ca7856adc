"""The contract between the write path and the schema of a kind: `Codec`, what it answers (`Decoded`), and how it refuses (`Undecodable`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from kubemini.api.trees import Tree
from kubemini.machinery.errors import BadRequest, FieldError


@dataclass(slots=True)
class Decoded:
    """What a codec made of a body: the clean tree, and texts for ``Warning`` headers."""

    tree: Tree
    warnings: list[str] = field(default_factory=list)


class Undecodable(BadRequest):
    """400: a body does not fit its type. `why` is the text alone, for those who wrap it otherwise (patches)."""

    def __init__(self, message: str, why: str) -> None:
        super().__init__(message)
        self.why = why

    @classmethod
    def of(cls, kind: str, version: str, why: str) -> Undecodable:
        """Return ``Pod in version "v1" cannot be handled as a Pod: WHY``."""
        return cls(f'{kind} in version "{version}" cannot be handled as a {kind}: {why}', why)


class Codec(Protocol):
    """The schema of one kind in one version: decoding, schema validation, OpenAPI."""

    def decode(self, tree: Tree, *, validation: str = "Warn", duplicates: Sequence[str] = (), stored: Tree | None = None) -> Decoded:
        """Check types, drop unknown fields, canonicalise and fill schema defaults. Raise `Undecodable` (or `Invalid`).

        `validation` is Ignore, Warn or Strict. `duplicates` are texts about duplicate fields that the parser found in the body: they are
        warned of or refused along with unknown fields. `stored` is the present state of the object in this version: whatever is the very same there needs
        no second look.
        """
        ...

    def validate(self, new: Tree, old: Tree | None = None) -> list[FieldError]:
        """Return broken schema and CEL rules."""
        ...

    def openapi(self) -> Tree:
        """Return the structural OpenAPI v3 schema of the kind."""
        ...
