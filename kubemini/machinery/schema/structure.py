"""Structural schemas compiled to nodes, one node a schema, children on demand.

A node answers what the passes over an object need: which child stands behind a key, what is defaulted, whether rules or embedded resources lie
below. Schemas may be huge (a JobSet's holds a whole pod template) and most of their nodes are never visited, so a node looks no further than its own
keywords until it is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

from kubemini.api.trees import Tree

NOTHING: Final = object()
"""No such value, where None would be one."""

META_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})
HEAVY: Final = 24
"""A subtree whose schema has at least so many properties is remembered by identity once it is clean."""
REMEMBERED: Final = 2048
"""How many subtrees a node remembers."""
_COMPOSITIONS: Final = ("allOf", "anyOf", "oneOf")


class Structure:
    """The nodes of one schema. `definitions` says what ``$ref`` means, by the last part of the reference."""

    def __init__(self, schema: Tree, definitions: Mapping[str, Tree] | None = None) -> None:
        self._definitions = definitions or {}
        self._nodes: dict[int, tuple[Tree, Node]] = {}
        self.root = self.node(schema)
        self.root.is_root = True

    def resolve(self, schema: Tree) -> Tree:
        """Return the schema that a ``$ref`` stands for, or the schema itself. KeyError for an unknown reference."""
        while (ref := schema.get("$ref")) is not None:
            schema = self._definitions[ref.rpartition("/")[2]]
        return schema

    def node(self, schema: Tree) -> Node:
        """Return the node of a schema; the same one for the same (or referenced) schema."""
        schema = self.resolve(schema)
        found = self._nodes.get(id(schema))
        if found is None:
            found = self._nodes[id(schema)] = (schema, Node(self, schema))
        return found[1]


class Node:
    """One schema. Attributes are its keywords where they are simple, properties of this class where they take work."""

    def __init__(self, structure: Structure, schema: Tree) -> None:
        self.structure = structure
        self.schema = schema
        self.is_root = False
        self.nullable: bool = bool(schema.get("nullable"))
        self.preserve: bool = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
        self.embedded: bool = bool(schema.get("x-kubernetes-embedded-resource"))
        self.int_or_string: bool = bool(schema.get("x-kubernetes-int-or-string"))
        self.default: Any = schema.get("default")
        """The default as stated; None = none."""
        self.clean: dict[int, Any] = {}
        """Subtrees known to be pruned and defaulted, by identity."""
        self.full_default: Any = NOTHING
        """The default with the defaults below it, kept here by `kubemini.machinery.schema.cleaning`, which finds it."""
        self.defaulted: tuple[tuple[str, Any], ...] | None = None
        """The properties with a default and their full defaults, kept here by the same."""
        self.valid: dict[int, Any] = {}
        """Subtrees known to be valid (schema, embedded metadata, list keys), by identity."""
        self.plan: Any = None
        """The checks of this node, kept here by `kubemini.machinery.schema.validating`."""

    # ------------------------------------------------------------------------------------------- children

    @cached_property
    def properties(self) -> dict[str, Node]:
        """The children by property."""
        node = self.structure.node
        return {name: node(child) for name, child in (self.schema.get("properties") or {}).items()}

    @cached_property
    def additional(self) -> Node | None:
        """The schema of additional properties, None without one (see `open`)."""
        schema = self.schema.get("additionalProperties")
        return self.structure.node(schema) if isinstance(schema, dict) else None

    @cached_property
    def open(self) -> bool:
        """Whether ``additionalProperties`` is stated at all: true admits keys of any value, of which objects are emptied (as upstream)."""
        return self.schema.get("additionalProperties") is not None

    @cached_property
    def items(self) -> Node | None:
        """The schema of a list's elements."""
        schema = self.schema.get("items")
        return self.structure.node(schema) if isinstance(schema, dict) else None

    def child(self, key: str) -> Node | None:
        """Return the node behind a key of an object, None for one without a schema."""
        return self.properties.get(key) or self.additional

    # ------------------------------------------------------------------------------------------- what it says

    @cached_property
    def list_type(self) -> str:
        """``atomic``, ``set``, ``map`` or ""."""
        return str(self.schema.get("x-kubernetes-list-type") or "")

    @cached_property
    def list_keys(self) -> tuple[str, ...]:
        """The keys of a ``map`` list."""
        return tuple(self.schema.get("x-kubernetes-list-map-keys") or ())

    @cached_property
    def transparent(self) -> bool:
        """Whether everything below is kept as it is."""
        return self.preserve and not any(key in self.schema for key in ("properties", "additionalProperties", "items")) and not self.embedded

    # ------------------------------------------------------------------------------------------- what lies below

    @cached_property
    def heavy(self) -> bool:
        """Whether it pays to remember subtrees by identity."""
        return not self.is_root and self._weight(self.schema, HEAVY, 0) >= HEAVY

    def _weight(self, schema: Tree, enough: int, depth: int) -> int:
        """Count properties below, up to `enough`."""
        schema = self.structure.resolve(schema)
        total = 0
        properties = schema.get("properties") or {}
        total += len(properties)
        for child in (*properties.values(), schema.get("items"), schema.get("additionalProperties")):
            if total >= enough or depth > 12:
                break
            if isinstance(child, dict):
                total += self._weight(child, enough - total, depth + 1)
        return total

    @cached_property
    def rules(self) -> list[Tree]:
        """The CEL rules stated here."""
        return self.schema.get("x-kubernetes-validations") or []

    @cached_property
    def has_rules(self) -> bool:
        """Whether CEL rules are stated here or below."""
        return self._any_below(lambda schema: bool(schema.get("x-kubernetes-validations")))

    @cached_property
    def has_transitions(self) -> bool:
        """Whether rules that look at the old value are stated here or below: those run even when nothing changed."""
        return self._any_below(lambda schema: any("oldSelf" in rule.get("rule", "") for rule in schema.get("x-kubernetes-validations") or ()))

    @cached_property
    def has_embedded(self) -> bool:
        """Whether embedded resources are here or below."""
        return self._any_below(lambda schema: bool(schema.get("x-kubernetes-embedded-resource")))

    def _any_below(self, test: Any) -> bool:
        """Tell whether a schema here or below passes a test; references are followed once each."""
        seen: set[int] = set()
        stack: list[Any] = [self.schema]
        while stack:
            schema = stack.pop()
            if not isinstance(schema, dict):
                continue
            if "$ref" in schema:
                schema = self.structure.resolve(schema)
                if id(schema) in seen:
                    continue
                seen.add(id(schema))
            if test(schema):
                return True
            properties = schema.get("properties")
            if properties:
                stack.extend(properties.values())
            if "items" in schema:
                stack.append(schema["items"])
            if "additionalProperties" in schema:
                stack.append(schema["additionalProperties"])
            for keyword in _COMPOSITIONS:
                if keyword in schema:
                    stack.extend(schema[keyword])
        return False


def remember(known: dict[int, Any], tree: Any) -> None:
    """Note that a subtree is known; when a node knows too many, it starts afresh."""
    if len(known) >= REMEMBERED:
        known.clear()
    known[id(tree)] = tree
