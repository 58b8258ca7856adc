"""Pruning, null handling and defaulting of custom objects, in one pass that copies only what changes.

Mirrors apiextensions-apiserver's ``pruning``, ``defaulting`` and ``objectmeta`` (1.36): unknown fields go unless they are preserved, a null that
may not be null is dropped or becomes the default, absent fields with a default are filled, metadata of embedded resources is decoded like any
other. A subtree that is clean already is returned as the very same object and remembered, so that a write that changes the status costs
nothing for the spec.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery.errors import invalid
from kubemini.machinery.schema.builtin import BuiltinSchemas
from kubemini.machinery.schema.mismatch import Mismatch
from kubemini.machinery.schema.nodes import ObjectNode
from kubemini.machinery.schema.structure import META_FIELDS, NOTHING, Node, remember


class Uncoercible(Exception):
    """An embedded resource has type or metadata of the wrong form; objects on the way out add the key it stands under."""

    def __init__(self, body: str, key: str) -> None:
        super().__init__()
        self.body = body
        self.path = [key]

    def text(self) -> str:
        """Return the text of the field error."""
        return f"{'.'.join(reversed(self.path)).replace('.[', '[')}: {self.body}"


def clean(node: Node, value: Any, dropped: list[str] | None = None, stored: Any = NOTHING) -> Any:
    """Return a value as the schema has it stored: the same object where nothing changed. Names of dropped fields are appended to `dropped`.

    `stored` is what is stored in this place now: what is the very same there is clean.
    """
    if value is stored:
        return value
    kind = type(value)
    if kind is dict:
        if node.heavy:
            if node.clean.get(id(value)) is value:
                return value
            marks = len(dropped) if dropped is not None else 0
            new = _clean_object(node, value, dropped, stored)
            if dropped is None or len(dropped) == marks:
                remember(node.clean, new)
            return new
        return _clean_object(node, value, dropped, stored)
    if kind is list:
        return _clean_list(node, value, dropped, stored)
    return value


def full_default(node: Node) -> Any:
    """Return a schema's default with the defaults below it."""
    if node.full_default is NOTHING:
        node.full_default = clean(node, node.default)
    return node.full_default


def _defaulted(node: Node) -> tuple[tuple[str, Any], ...]:
    found = node.defaulted
    if found is None:
        found = node.defaulted = tuple((name, full_default(child)) for name, child in node.properties.items() if child.default is not None)
    return found


def clean_root(node: Node, tree: Tree, dropped: list[str] | None, stored: Tree | None = None) -> Tree:
    """Return a whole object as it is stored. Raise `Mismatch` (its metadata), `Uncoercible` (metadata of an embedded resource)."""
    body = {key: each for key, each in tree.items() if key not in META_FIELDS}
    new = _clean_object(node, body, dropped, stored)
    meta = tree.get("metadata")
    fresh = clean_metadata(meta, dropped, stored["metadata"] if stored is not None else None) if meta is not None else None
    if new is body and fresh is meta:
        return tree
    head: Tree = {key: tree[key] for key in ("apiVersion", "kind") if key in tree}
    return {**head, "metadata": fresh, **new} if fresh is not None else {**head, **new}


def _clean_object(node: Node, value: dict[str, Any], dropped: list[str] | None, stored: Any) -> dict[str, Any]:
    if node.transparent:
        return value
    properties = node.properties
    before: dict[str, Any] = stored if type(stored) is dict else _NOTHING_STORED
    changes: dict[str, Any] | None = None
    key = ""
    try:
        for key, each in value.items():
            child = properties.get(key)
            if child is not None and not (node.embedded and key in META_FIELDS):
                if each is None and not child.nullable:
                    new = full_default(child) if child.default is not None else NOTHING
                elif type(each) is dict or type(each) is list:
                    new = clean(child, each, dropped, before.get(key, NOTHING))
                else:
                    continue
            else:
                new = _clean_other(node, key, each, dropped)
            if new is not each:
                if changes is None:
                    changes = {}
                changes[key] = new
    except Uncoercible as problem:
        if problem.path[-1] != key or not node.embedded:
            problem.path.append(key)
        raise
    out = value
    if changes is not None:
        out = {key: changes.get(key, each) for key, each in value.items() if changes.get(key, each) is not NOTHING}
    for key, default in _defaulted(node):
        if key not in out:
            if out is value:
                out = dict(value)
            out[key] = default
    return out


_NOTHING_STORED: dict[str, Any] = {}


def _clean_other(node: Node, key: str, value: Any, dropped: list[str] | None) -> Any:
    """Return what becomes of a key that is no plain property."""
    if node.embedded and key in META_FIELDS:
        return _embedded_meta(key, value, dropped)
    additional = node.additional
    if additional is not None:
        if value is None and not additional.nullable:
            return NOTHING
        return clean(additional, value, dropped)
    if node.open:
        return _emptied(value, dropped)
    if node.preserve:
        return value
    if dropped is not None:
        dropped.append(key)
    return NOTHING


def _emptied(value: Any, dropped: list[str] | None) -> Any:
    """Return a value of which no schema knows anything: objects lose all their fields, also those inside lists."""
    if type(value) is dict:
        if value and dropped is not None:
            dropped.extend(value)
        return {} if value else value
    if type(value) is list:
        new = [_emptied(each, dropped) for each in value]
        return value if all(a is b for a, b in zip(new, value, strict=True)) else new
    return value


def _clean_list(node: Node, value: list[Any], dropped: list[str] | None, stored: Any) -> list[Any]:
    items = node.items
    before: list[Any] | tuple[()] = stored if type(stored) is list else ()
    if items is None:
        return value if node.preserve else _emptied(value, dropped)
    out: list[Any] | None = None
    for place, each in enumerate(value):
        if place < len(before) and each is before[place]:
            continue
        if each is None and not items.nullable and items.default is not None:
            new = full_default(items)
        else:
            new = _kept(items, each, dropped) if node.preserve else clean(items, each, dropped)
        if new is not each:
            if out is None:
                out = list(value)
            out[place] = new
    return value if out is None else out


def _kept(items: Node, value: Any, dropped: list[str] | None) -> Any:
    """Return an element of a list that preserves unknown fields."""
    return value if items.transparent else clean(items, value, dropped)


# ----------------------------------------------------------------------------------------------- metadata


@cache
def object_meta() -> ObjectNode:
    """Return the decoder of metadata, the same for all custom objects."""
    return _metadata_types().compiler.object("meta/v1.ObjectMeta")


@cache
def _metadata_types() -> BuiltinSchemas:
    return BuiltinSchemas()


def clean_metadata(value: Any, dropped: list[str] | None, stored: Tree | None = None) -> Any:
    """Return metadata in its canonical form; what is the very same in `stored` is. Raise `Mismatch`."""
    unknown = _metadata_types().compiler.unknown
    unknown.clear()
    new = object_meta().value(value) if stored is None else object_meta().value(value, stored)
    if unknown and dropped is not None:
        dropped.extend(unknown)
    return new


def _embedded_meta(key: str, value: Any, dropped: list[str] | None) -> Any:
    if key != "metadata":
        if not isinstance(value, str):
            raise Uncoercible(invalid(key, value, "must be a string").body, key)
        return value
    try:
        new = clean_metadata(value, dropped)
    except Mismatch as mismatch:
        raise Uncoercible(invalid(key, value, mismatch.text()).body, key) from None
    return NOTHING if new == {} and value is None else new


# ----------------------------------------------------------------------------------------------- unknown fields


def unknown_fields(node: Node, value: Any) -> list[str]:
    """Return the paths of the fields of a root object that no schema knows, sorted: what strict validation tells of."""
    found = [f"metadata.{path}" for path in object_meta().unknown_fields(value.get("metadata"))]
    body: list[str] = []
    _collect(node, {key: each for key, each in value.items() if key not in META_FIELDS}, "", body)
    return found + sorted(body)


def _collect(node: Node | None, value: Any, path: str, found: list[str]) -> None:
    if node is not None and node.transparent:
        return
    if type(value) is dict:
        for key, each in value.items():
            here = f"{path}.{key}" if path else key
            if node is not None and node.embedded and key in META_FIELDS:
                if key == "metadata":
                    found.extend(f"{here}.{unknown}" for unknown in object_meta().unknown_fields(each))
            elif node is not None and (child := node.child(key)) is not None:
                _collect(child, each, here, found)
            elif node is not None and node.open:
                _collect(None, each, here, found)
            elif node is None or not node.preserve:
                found.append(here)
    elif type(value) is list:
        items = node.items if node is not None else None
        if node is not None and items is None and node.preserve:
            return
        for place, each in enumerate(value):
            _collect(items, each, f"{path}[{place}]", found)
