"""Simple JSON paths of CRDs (``.spec.color``, ``.data['a.b']``): what ``fieldPath`` and ``selectableFields`` may say of a schema."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kubemini.machinery.schema.structure import Node

_tokens = re.compile(r"'(?:\\.|[^'\\])*'|[.\[\]]|[^.\[\]']+|'").findall
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


class FieldPathError(ValueError):
    """A path does not fit its schema; the message is upstream's."""


@dataclass(frozen=True, slots=True)
class FieldPath:
    """A path that fits: its parts, its normal text (``spec.color``), and the schema it leads to."""

    parts: tuple[str, ...]
    text: str
    node: Node | None


def field_path(text: str, node: Node, *, arrays: bool = True) -> FieldPath:
    """Return where a path leads in a schema. `arrays` allows ``['name']``. Raise `FieldPathError`.

    Mirrors ``ValidFieldPath`` of apiextensions-apiserver.
    """
    here: Node | None = node
    names: list[str] = []
    shown = ""
    tokens = iter(_tokens(text))
    for part in tokens:
        if part == "[":
            if not arrays:
                raise FieldPathError("array notation is not allowed")
            name = _quoted(next(tokens, None))
        elif part == ".":
            found = next(tokens, None)
            if found is None:
                raise FieldPathError("unexpected end of JSON path")
            name = found
        else:
            raise FieldPathError(f"expected [ or . but got: {part}")
        here, named = _step(here, name)
        shown += (f".{name}" if shown else name) if named else f"[{name}]"
        names.append(name)
        if part == "[":
            closing = next(tokens, None)
            if closing is None:
                raise FieldPathError("unexpected end of JSON path")
            if closing != "]":
                raise FieldPathError(f"expected ] but got {closing}")
    return FieldPath(tuple(names), shown, here)


def _step(node: Node | None, name: str) -> tuple[Node | None, bool]:
    """Return the node behind a name, and whether that is a property (else a map's key)."""
    if node is not None and node.schema.get("properties") is not None:
        found = node.properties.get(name)
        if found is None:
            raise FieldPathError("does not refer to a valid field")
        return found, True
    if node is not None and node.open:
        return node.additional, False
    raise FieldPathError("does not refer to a valid field")


def _quoted(token: str | None) -> str:
    if token is None:
        raise FieldPathError("unexpected end of JSON path")
    if len(token) < 2 or token[0] != "'" or token[-1] != "'":
        raise FieldPathError(f"expected single quoted string but got {token}")

    def replaced(match: re.Match[str]) -> str:
        found = _ESCAPES.get(match.group(1))
        if found is None:
            raise FieldPathError(f"invalid string literal: invalid escape char {match.group()}")
        return found

    return re.sub(r"\\(.)", replaced, token[1:-1])
